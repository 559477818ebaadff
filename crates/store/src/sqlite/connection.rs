//! Connections to the database file, and its schema.
//! Invariant: a connection handed out is in WAL mode with `synchronous = FULL`, on a database of ours whose schema this
//! version knows; migrations only go forward.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::Options;
use super::fault::is_busy;
use crate::{OpenError, folder};

/// Each brings the schema from its index to the next number, which is kept in `PRAGMA user_version`.
/// A released one is never changed: a database that has it will not run it again.
const MIGRATIONS: [&str; 3] = [
    "
    CREATE TABLE row (
        tenant TEXT NOT NULL,
        tbl TEXT NOT NULL,
        id TEXT NOT NULL,
        version INTEGER NOT NULL,
        value BLOB NOT NULL,
        PRIMARY KEY (tenant, tbl, id)
    ) STRICT, WITHOUT ROWID;
",
    // What the row was when it was written; a row of before has none until it is written again.
    "ALTER TABLE row ADD COLUMN sum INTEGER",
    // Keys apart from values. In a table without rowid the values are in the tree that is searched by key, and SQLite reads a
    // value of more than a quarter of a page whole, from its overflow pages, to compare its key: a fifth of a dry run.
    "
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
];

/// `tkmk`: what tells a database of ours from another program's.
const APPLICATION_ID: i64 = 0x746b_6d6b;

/// A WAL that a burst has made larger is cut back to this.
const WAL_BYTES: i64 = 64 * 1024 * 1024;

/// Between two tries for a lock. Short, so that one busy process does not starve another.
const LOCK_POLL: Duration = Duration::from_millis(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    Create,
    /// For a database that was there before: an empty one in its place would hide the loss.
    Fail,
}

/// A connection, and which file it is on.
#[derive(Debug)]
pub struct Opened {
    pub connection: Connection,
    file: FileId,
}

impl Opened {
    /// Whether `path` is still the file this connection is on. SQLite would go on with a file that was moved away.
    pub fn is_on(&self, path: &Path) -> std::io::Result<bool> {
        Ok(FileId::of(path)? == self.file)
    }
}

pub fn open_writer(path: &Path, options: &Options, if_missing: IfMissing) -> Result<Opened, OpenError> {
    if path.is_dir() {
        return Err(OpenError::IsFolder { path: path.to_owned() });
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if if_missing == IfMissing::Create {
        let parent = path.parent().unwrap_or(Path::new("."));
        folder::create(parent).map_err(|error| OpenError::from_io(parent, error))?;
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let wrong = |error| OpenError::from_sqlite(path, error);
    let mut connection = Connection::open_with_flags(path, flags).map_err(wrong)?;
    connection.busy_timeout(options.busy_timeout).map_err(wrong)?;
    check_ours(path, &connection)?;
    if connection.is_readonly("main").map_err(wrong)? {
        return Err(OpenError::Unwritable { path: path.to_owned(), source: "the file is read-only".into() });
    }
    configure(path, &connection, options)?;
    migrate(path, &mut connection)?;
    // From here on the writer waits for the lock itself, in short steps.
    connection.busy_timeout(Duration::ZERO).map_err(wrong)?;
    let file = FileId::of(path).map_err(|error| OpenError::from_io(path, error))?;
    Ok(Opened { connection, file })
}

pub fn open_reader(path: &Path, busy_timeout: Duration) -> Result<Opened, OpenError> {
    let wrong = |error| OpenError::from_sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // The id first: should the file be replaced in between, the connection is found to be on another one.
    let file = FileId::of(path).map_err(|error| OpenError::from_io(path, error))?;
    let connection = Connection::open_with_flags(path, flags).map_err(wrong)?;
    connection.busy_timeout(busy_timeout).map_err(wrong)?;
    check_ours(path, &connection)?;
    Ok(Opened { connection, file })
}

/// Tries again while another connection holds the lock, until the time is over.
pub fn wait_while_busy<T>(timeout: Duration, mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let deadline = Instant::now() + timeout;
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < deadline => std::thread::sleep(LOCK_POLL),
            done => return done,
        }
    }
}

/// Before anything is written: another program's database stays as it is, and so does a newer one.
fn check_ours(path: &Path, connection: &Connection) -> Result<(), OpenError> {
    let wrong = |error| OpenError::from_sqlite(path, error);
    // One snapshot for the three: another process may be migrating at this moment.
    let snapshot = connection.unchecked_transaction().map_err(wrong)?;
    let number = |sql: &str| snapshot.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(wrong);
    let entries = number("SELECT count(*) FROM sqlite_schema")?;
    let (application, found) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    snapshot.finish().map_err(wrong)?;
    let known = MIGRATIONS.len() as i64;
    let empty = entries == 0 && application == 0 && found == 0;
    if !empty && application != APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    Ok(())
}

fn configure(path: &Path, connection: &Connection, options: &Options) -> Result<(), OpenError> {
    let wrong = |error| OpenError::from_sqlite(path, error);
    // Two processes that make the database at the same moment get `busy` here at once, whatever the timeout.
    let mode: String = wait_while_busy(options.busy_timeout, || {
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
    })
    .map_err(wrong)?;
    if mode != "wal" {
        let source = format!("the file system gives journal mode `{mode}`, not WAL").into();
        return Err(OpenError::Failed { path: path.to_owned(), source });
    }
    connection.pragma_update(None, "synchronous", "FULL").map_err(wrong)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(wrong)?;
    let set = |name: &str, value: i64| {
        connection.pragma_update_and_check(None, name, value, |row| row.get::<_, i64>(0)).map_err(wrong)
    };
    set("journal_size_limit", WAL_BYTES)?;
    if let Some(pages) = options.max_pages {
        set("max_page_count", i64::from(pages))?;
    }
    Ok(())
}

fn migrate(path: &Path, connection: &mut Connection) -> Result<(), OpenError> {
    let wrong = |error| OpenError::from_sqlite(path, error);
    let known = MIGRATIONS.len() as i64;
    if version(connection).map_err(wrong)? == known {
        return Ok(());
    }
    // The version is read again under the lock: another process may have migrated in between.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(wrong)?;
    let found = version(&transaction).map_err(wrong)?;
    for step in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step).map_err(wrong)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(wrong)?;
    transaction.pragma_update(None, "user_version", known.max(found)).map_err(wrong)?;
    transaction.commit().map_err(wrong)?;
    // A newer version may have been the one that migrated.
    check_ours(path, connection)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Device and inode; elsewhere than on Unix every file counts as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    #[cfg(unix)]
    fn of(path: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).map(|metadata| Self(metadata.dev(), metadata.ino()))
    }

    #[cfg(not(unix))]
    fn of(path: &Path) -> std::io::Result<Self> {
        std::fs::metadata(path).map(|_| Self(0, 0))
    }
}
