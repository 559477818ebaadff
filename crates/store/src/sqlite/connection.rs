//! Opens connections to the database file, and creates and migrates its schema.
//! Invariant: a connection for writing is in WAL mode with `synchronous = FULL`. Every connection is on a database of this
//! program with a schema that this version knows. Migrations only go forward.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::Options;
use super::error::is_busy;
use crate::{OpenError, folder};

/// Each migration brings the schema from the version of its index to the next one. The version is in `PRAGMA user_version`.
/// A released migration is never changed, because a database that has run it will not run it again.
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
    // `sum` is the checksum of the row (`rows.rs`). An older row has none until it is written again.
    "ALTER TABLE row ADD COLUMN sum INTEGER",
    // A table with rowid keeps keys apart from values. In a table without rowid, values are in the tree that is searched by
    // key. To compare a key, SQLite then reads a value of more than a quarter of a page whole, from its overflow pages. That
    // took a fifth of the time of a dry run.
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

/// `tkmk` in ASCII, which tells a database of this program from another program's.
const APPLICATION_ID: i64 = 0x746b_6d6b;

/// A WAL that a burst of writes has made larger is cut back to this size.
const MAX_WAL_BYTES: i64 = 64 * 1024 * 1024;

/// The pause between two tries for a lock. SQLite's own pauses grow to 100 ms, and a busy process would take the lock in
/// each of them.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The effect of opening a database that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    Create,
    /// For a database that existed before: an empty one in its place would hide the loss.
    Fail,
}

/// A connection, and the identity of its file.
#[derive(Debug)]
pub struct OpenedDatabase {
    pub connection: Connection,
    file: FileId,
}

impl OpenedDatabase {
    /// Returns whether `path` is still the file of this connection. SQLite would go on with a file that was moved away or
    /// replaced, and commits to it would be lost.
    pub fn is_on(&self, path: &Path) -> std::io::Result<bool> {
        Ok(FileId::of(path)? == self.file)
    }
}

/// Opens the connection that writes, and migrates the schema to this version.
pub fn open_writer(path: &Path, options: &Options, if_missing: IfMissing) -> Result<OpenedDatabase, OpenError> {
    if path.is_dir() {
        return Err(OpenError::IsFolder { path: path.to_owned() });
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if if_missing == IfMissing::Create {
        let parent = path.parent().unwrap_or(Path::new("."));
        folder::create(parent).map_err(|error| OpenError::from_io(parent, error))?;
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let open_error = |error| OpenError::from_sqlite(path, error);
    let mut connection = Connection::open_with_flags(path, flags).map_err(open_error)?;
    connection.busy_timeout(options.busy_timeout).map_err(open_error)?;
    check_schema(path, &connection)?;
    // SQLite opens a file without write permission silently for reading.
    if connection.is_readonly("main").map_err(open_error)? {
        return Err(OpenError::Unwritable { path: path.to_owned(), source: "the file is read-only".into() });
    }
    configure(path, &connection, options)?;
    migrate(path, &mut connection)?;
    // From now on the writer waits for the lock itself, in short steps (`wait_while_busy`).
    connection.busy_timeout(Duration::ZERO).map_err(open_error)?;
    let file = FileId::of(path).map_err(|error| OpenError::from_io(path, error))?;
    Ok(OpenedDatabase { connection, file })
}

/// Opens a connection that only reads.
pub fn open_reader(path: &Path, busy_timeout: Duration) -> Result<OpenedDatabase, OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // The id is taken first. If the file is replaced before the connection is opened, `is_on` then returns false, and the
    // next read opens another connection.
    let file = FileId::of(path).map_err(|error| OpenError::from_io(path, error))?;
    let connection = Connection::open_with_flags(path, flags).map_err(open_error)?;
    connection.busy_timeout(busy_timeout).map_err(open_error)?;
    check_schema(path, &connection)?;
    Ok(OpenedDatabase { connection, file })
}

/// Repeats `attempt` while another connection holds the lock, for at most `timeout`.
pub fn wait_while_busy<T>(timeout: Duration, mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let deadline = Instant::now() + timeout;
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < deadline => std::thread::sleep(LOCK_POLL_INTERVAL),
            result => return result,
        }
    }
}

/// Refuses the database of another program or of a newer version. This runs before anything is written, so that such a
/// database stays as it is.
fn check_schema(path: &Path, connection: &Connection) -> Result<(), OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    // The three numbers come from one snapshot, because another process may be migrating at this moment.
    let snapshot = connection.unchecked_transaction().map_err(open_error)?;
    let number = |sql: &str| snapshot.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(open_error);
    let entries = number("SELECT count(*) FROM sqlite_schema")?;
    let application = number("PRAGMA application_id")?;
    let found = number("PRAGMA user_version")?;
    snapshot.finish().map_err(open_error)?;
    let known = MIGRATIONS.len() as i64;
    let is_empty = entries == 0 && application == 0 && found == 0;
    if !is_empty && application != APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    Ok(())
}

/// Sets the modes that durability needs, and the bounds on size.
fn configure(path: &Path, connection: &Connection, options: &Options) -> Result<(), OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    // For this statement SQLite does not wait: two processes that create the database at the same moment get `busy` at once,
    // whatever the timeout.
    let mode: String = wait_while_busy(options.busy_timeout, || {
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
    })
    .map_err(open_error)?;
    if mode != "wal" {
        let source = format!("the file system gives journal mode `{mode}`, not WAL").into();
        return Err(OpenError::Failed { path: path.to_owned(), source });
    }
    // In WAL mode, `NORMAL` would flush at checkpoints only, and a power cut would lose commits that were answered.
    connection.pragma_update(None, "synchronous", "FULL").map_err(open_error)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(open_error)?;
    // These two pragmas answer with the new value, which `pragma_update` would take for an error.
    let set_number = |name: &str, value: i64| {
        connection.pragma_update_and_check(None, name, value, |row| row.get::<_, i64>(0)).map_err(open_error)
    };
    set_number("journal_size_limit", MAX_WAL_BYTES)?;
    if let Some(pages) = options.max_pages {
        set_number("max_page_count", i64::from(pages))?;
    }
    Ok(())
}

/// Runs the migrations that the database has not run, in one transaction with its new version.
fn migrate(path: &Path, connection: &mut Connection) -> Result<(), OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    let known = MIGRATIONS.len() as i64;
    if schema_version(connection).map_err(open_error)? == known {
        return Ok(());
    }
    // The version is read again under the lock, because another process may have migrated in between.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(open_error)?;
    let found = schema_version(&transaction).map_err(open_error)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(migration).map_err(open_error)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(open_error)?;
    transaction.pragma_update(None, "user_version", known.max(found)).map_err(open_error)?;
    transaction.commit().map_err(open_error)?;
    // The process that migrated in between may be of a newer version.
    check_schema(path, connection)
}

fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// The identity of a file: device and inode. On systems other than Unix, every file counts as the same one.
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
