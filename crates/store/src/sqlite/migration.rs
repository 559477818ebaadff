//! Brings a database of an older version to the schema of this version, in numbered steps.
//!
//! Steps only go forward. They run while no other connection to the database is open, in this process or another one:
//! a process of an older version that lives on the folder would go on writing rows in the form that it knows.
//!
//! Invariants:
//! - Each step is one transaction that also stores its number. After a kill, the next start continues with the step
//!   that was interrupted.
//! - Before the first step a copy of the database is durable. It is removed by the first clean stop of a store that
//!   has written rows, and until then it opens with the version that wrote it.
//! - From its first step on, a database is refused by every version that does not know the last step.

use std::fmt;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::Options;
use super::modes::{APPLICATION_ID, configure, wait_while_busy};
use super::{error::is_busy, holders};
use crate::{OpenError, folder};

/// One change of the schema.
struct Step {
    name: &'static str,
    sql: &'static str,
}

/// The step at index `n` changes the schema from version `n` to version `n + 1`. The version of a whole schema is in
/// `PRAGMA user_version`. A released step is never changed, because existing databases have already run it.
const STEPS: [Step; 4] = [
    Step {
        name: "rows",
        sql: "
            CREATE TABLE row (
                tenant TEXT NOT NULL,
                tbl TEXT NOT NULL,
                id TEXT NOT NULL,
                version INTEGER NOT NULL,
                value BLOB NOT NULL,
                PRIMARY KEY (tenant, tbl, id)
            ) STRICT, WITHOUT ROWID;
        ",
    },
    // `sum` is the checksum of the row (`stored_row.rs`). A row that is older than this step has no checksum until it is
    // written again.
    Step { name: "checksums of rows", sql: "ALTER TABLE row ADD COLUMN sum INTEGER" },
    // A table with rowid stores keys apart from values. A table without rowid stores values in the tree that SQLite
    // searches by key, so comparing a key can read the overflow pages of a large value. These reads took a fifth of
    // the time of a dry run.
    Step {
        name: "keys apart from values",
        sql: "
            CREATE TABLE keyed (
                tenant TEXT NOT NULL,
                tbl TEXT NOT NULL,
                id TEXT NOT NULL,
                version INTEGER NOT NULL,
                value BLOB NOT NULL,
                sum INTEGER,
                PRIMARY KEY (tenant, tbl, id)
            ) STRICT;
            INSERT INTO keyed SELECT tenant, tbl, id, version, value, sum FROM row;
            DROP TABLE row;
            ALTER TABLE keyed RENAME TO row;
        ",
    },
    // `keys` has the index entries of the row, which a later put or delete must remove. It is NULL for a row without
    // entries, which is how SQLite reads it in older rows, so this step rewrites no row. A second tree that finds
    // entries by their row would double the work of each change of an entry.
    Step {
        name: "index entries",
        sql: "
            ALTER TABLE row ADD COLUMN keys BLOB;
            CREATE TABLE row_index (
                idx TEXT NOT NULL,
                tenant TEXT NOT NULL,
                sort TEXT NOT NULL,
                tbl TEXT NOT NULL,
                id TEXT NOT NULL,
                PRIMARY KEY (idx, tenant, sort, tbl, id)
            ) STRICT, WITHOUT ROWID;
        ",
    },
];

/// The schema version that this build writes.
pub const CURRENT_VERSION: i64 = STEPS.len() as i64;

/// The number of pages that are copied between two reports of progress: 16 MiB.
const PAGES_PER_REPORT: i32 = 4096;

/// The pause between two looks at the lock of a migration in another process.
const WAIT_INTERVAL: Duration = Duration::from_millis(50);

/// An event of a migration, in the order in which they happen. Each one is logged, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationEvent {
    /// The lock is held, and nothing was changed yet.
    Started {
        from: i64,
        to: i64,
    },
    /// A part of the copy is written.
    Copying {
        pages_done: i64,
        pages: i64,
    },
    /// The copy is durable under its name.
    Copied,
    StepStarted {
        step: i64,
        name: &'static str,
    },
    /// The step's changes are made, and not yet committed.
    StepApplied {
        step: i64,
        name: &'static str,
    },
    StepCommitted {
        step: i64,
        name: &'static str,
    },
    Finished,
}

impl fmt::Display for MigrationEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { from, to } => write!(f, "the migration from format {from} to format {to} starts"),
            Self::Copying { pages_done, pages } => write!(f, "{pages_done} of {pages} pages are copied"),
            Self::Copied => f.write_str("the copy of the old database is complete"),
            Self::StepStarted { step, name } => write!(f, "step {step} (`{name}`) starts"),
            Self::StepApplied { step, name } => write!(f, "step {step} (`{name}`) is applied and not yet durable"),
            Self::StepCommitted { step, name } => write!(f, "step {step} (`{name}`) is durable"),
            Self::Finished => f.write_str("the migration is complete"),
        }
    }
}

/// Creates the schema in an empty database. If another process was faster, nothing is changed.
pub fn create_schema(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // The version is read under the lock, because another process may have made the schema since the first read.
    if schema_version(&transaction)? != 0 {
        return Ok(());
    }
    for step in &STEPS {
        transaction.execute_batch(step.sql)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", CURRENT_VERSION)?;
    transaction.commit()
}

/// Returns whether the database of this version has steps left, because its migration was interrupted.
pub fn is_unfinished(connection: &Connection) -> rusqlite::Result<bool> {
    let table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'migration'";
    connection.query_row(table, [], |row| row.get::<_, i64>(0)).map(|count| count > 0)
}

pub fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Migrates the existing database at `path` to the current version. The caller has no open connection to it. If
/// another process migrates at this moment, the function waits until that process is done.
pub fn migrate(path: &Path, options: &Options) -> Result<(), OpenError> {
    let _lock = MigrationLock::take(path, options.migration_timeout)?;
    let open_error = |error| OpenError::from_sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || Connection::open_with_flags(path, flags).map_err(open_error);
    // A process that has waited for the migration of another one finds nothing to do. It must not ask for the exclusive
    // lock, because the other one uses the database by now.
    let looked = open()?;
    looked.busy_timeout(options.busy_timeout).map_err(open_error)?;
    if Progress::read(&looked).map_err(open_error)?.is_none() {
        return Ok(());
    }
    looked.close().map_err(|(_, error)| open_error(error))?;
    let mut connection = open()?;
    take_exclusive_lock(path, &connection, options)?;
    configure(path, &connection, options)?;
    let Some(progress) = Progress::read(&connection).map_err(open_error)? else { return Ok(()) };
    let report = |event: MigrationEvent| {
        tracing::info!(path = %path.display(), "migration of the database: {event}");
        (options.on_migration)(&event);
    };
    report(MigrationEvent::Started { from: progress.reached, to: CURRENT_VERSION });
    if !progress.is_started || !copy_path(path, progress.original).exists() {
        copy_database(path, &connection, progress.reached, &report)?;
        report(MigrationEvent::Copied);
    }
    let done = usize::try_from(progress.reached).unwrap_or(0);
    for (step, number) in STEPS.iter().skip(done).zip(progress.reached + 1..) {
        report(MigrationEvent::StepStarted { step: number, name: step.name });
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(open_error)?;
        transaction.execute_batch(step.sql).map_err(open_error)?;
        progress.record(&transaction, number).map_err(open_error)?;
        report(MigrationEvent::StepApplied { step: number, name: step.name });
        transaction.commit().map_err(open_error)?;
        report(MigrationEvent::StepCommitted { step: number, name: step.name });
    }
    // The connection is closed before `Finished` is reported, so that the content of the WAL is in the database.
    connection.close().map_err(|(_, error)| open_error(error))?;
    report(MigrationEvent::Finished);
    Ok(())
}

/// Waits until the migration of another process ends. Returns `false` at once if none is running.
pub fn wait_for_other(path: &Path, timeout: Duration) -> Result<bool, OpenError> {
    if !lock_path(path).exists() {
        return Ok(false);
    }
    MigrationLock::take(path, timeout).map(|_| true)
}

/// Removes the copies of older versions of the database at `path`, and what a killed migration left. The database is
/// current, so no migration runs. A file that cannot be removed stays.
pub fn remove_leftovers(path: &Path) {
    remove_file(&lock_path(path));
    for version in 1..CURRENT_VERSION {
        let copy = copy_path(path, version);
        remove_file(&unfinished_copy_path(&copy));
        if remove_file(&copy) {
            tracing::info!(path = %copy.display(), "the copy of the database before its migration was removed");
        }
    }
}

/// Removes a file, and returns whether it was there.
fn remove_file(path: &Path) -> bool {
    match std::fs::remove_file(path) {
        Ok(()) => true,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "a file of a migration that is over could not be removed; remove it by hand");
            false
        }
    }
}

/// Takes SQLite's exclusive lock on the database, which no other connection may share. It is held until the connection
/// is closed.
fn take_exclusive_lock(path: &Path, connection: &Connection, options: &Options) -> Result<(), OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    connection.busy_timeout(Duration::ZERO).map_err(open_error)?;
    // In this mode a connection to a database in WAL mode locks the file itself and not only its log. Every other
    // connection, also one of an older version, holds a shared lock on the file for as long as it is open.
    connection
        .pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |row| row.get::<_, String>(0))
        .map_err(open_error)?;
    let locked = wait_while_busy(options.busy_timeout, || connection.execute_batch("BEGIN EXCLUSIVE; COMMIT"));
    locked.map_err(|error| {
        if is_busy(&error) {
            OpenError::InUse { path: path.to_owned(), holders: holders::of(path) }
        } else {
            open_error(error)
        }
    })
}

/// Copies the database to the file that `copy_path` names. The copy has this name only when it is complete and durable.
fn copy_database(
    path: &Path,
    source: &Connection,
    version: i64,
    report: &impl Fn(MigrationEvent),
) -> Result<(), OpenError> {
    let target = copy_path(path, version);
    let unfinished = unfinished_copy_path(&target);
    let io_error = |error| OpenError::from_io(&unfinished, error);
    let copy_error = |error| OpenError::from_sqlite(&unfinished, error);
    // The rest of an interrupted copy is removed. SQLite would add the pages to it.
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io_error(error)),
        _ => {}
    }
    // The copy is for this user only, as the database is.
    folder::create_new_file(&unfinished).map_err(io_error)?;
    let copied = write_copy(&unfinished, source, report).map_err(copy_error);
    // A copy that failed, such as on a full disk, must not take more space.
    copied.inspect_err(|_| drop(std::fs::remove_file(&unfinished)))?;
    File::open(&unfinished).and_then(|file| file.sync_all()).map_err(io_error)?;
    std::fs::rename(&unfinished, &target).map_err(io_error)?;
    let parent = path.parent().unwrap_or(Path::new("."));
    folder::sync(parent).map_err(|error| OpenError::from_io(parent, error))
}

/// Writes the pages of the database to an empty file. They are read through SQLite, because closing a second descriptor
/// of the database file would release the locks of this process.
fn write_copy(path: &Path, source: &Connection, report: &impl Fn(MigrationEvent)) -> rusqlite::Result<()> {
    let mut target = Connection::open(path)?;
    // The file is flushed once at the end, and an interrupted copy is made anew.
    target.pragma_update_and_check(None, "journal_mode", "OFF", |row| row.get::<_, String>(0))?;
    target.pragma_update(None, "synchronous", "OFF")?;
    let backup = Backup::new(source, &mut target)?;
    loop {
        let result = backup.step(PAGES_PER_REPORT)?;
        let progress = backup.progress();
        let pages = i64::from(progress.pagecount);
        report(MigrationEvent::Copying { pages_done: pages - i64::from(progress.remaining), pages });
        match result {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            // The source is locked by this connection, so no other one is in the way.
            _ => {
                return Err(rusqlite::Error::SqliteFailure(
                    rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY),
                    None,
                ));
            }
        }
    }
}

/// The place at which a migration starts or continues.
struct Progress {
    /// The version before the first step of the migration.
    original: i64,
    /// The number of the last step that is durable.
    reached: i64,
    /// A step of this migration is durable, so a copy of the original was made before it.
    is_started: bool,
}

impl Progress {
    /// Returns `None` if no step is left.
    fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let version = schema_version(connection)?;
        if is_unfinished(connection)? {
            let numbers = "SELECT original, reached FROM migration";
            let (original, reached) = connection.query_row(numbers, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            return Ok(Some(Self { original, reached, is_started: true }));
        }
        let is_outdated = version < CURRENT_VERSION;
        Ok(is_outdated.then_some(Self { original: version, reached: version, is_started: false }))
    }

    /// Records a step in the step's transaction. The version of the whole schema is set by the first step, so that an
    /// older version does not write to a half-migrated database.
    fn record(&self, transaction: &Connection, step: i64) -> rusqlite::Result<()> {
        transaction.execute_batch("DROP TABLE IF EXISTS migration")?;
        if step < CURRENT_VERSION {
            let table = "CREATE TABLE migration (original INTEGER NOT NULL, reached INTEGER NOT NULL) STRICT";
            transaction.execute_batch(table)?;
            transaction.execute("INSERT INTO migration VALUES (?1, ?2)", [self.original, step])?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", CURRENT_VERSION)
    }
}

/// The lock that one process holds while it migrates, so that the other ones wait. It protects nothing: SQLite's
/// exclusive lock does.
struct MigrationLock {
    path: PathBuf,
    _file: File,
}

impl MigrationLock {
    fn take(database: &Path, timeout: Duration) -> Result<Self, OpenError> {
        let path = lock_path(database);
        let io_error = |error| OpenError::from_io(&path, error);
        let file = folder::private_file().create(true).truncate(false).open(&path).map_err(io_error)?;
        let deadline = Instant::now() + timeout;
        let mut is_first = true;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { path, _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    if std::mem::take(&mut is_first) {
                        tracing::info!(path = %database.display(), "another process migrates the database; this process waits until it is done");
                    }
                    std::thread::sleep(WAIT_INTERVAL);
                }
                Err(TryLockError::WouldBlock) => {
                    let source = "another process has been migrating the database for too long".into();
                    return Err(OpenError::Busy { path: database.to_owned(), source });
                }
                Err(TryLockError::Error(error)) => return Err(io_error(error)),
            }
        }
    }
}

impl Drop for MigrationLock {
    fn drop(&mut self) {
        // A process that waits has the file open and finds the database migrated when it gets the lock.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn lock_path(database: &Path) -> PathBuf {
    with_suffix(database, ".migrating")
}

/// Returns the path of the copy of a database that had this schema version.
fn copy_path(database: &Path, version: i64) -> PathBuf {
    with_suffix(database, &format!(".format-{version}"))
}

fn unfinished_copy_path(copy: &Path) -> PathBuf {
    with_suffix(copy, ".new")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
