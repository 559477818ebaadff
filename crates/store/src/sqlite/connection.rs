//! Opens connections to the SQLite database file.
//! Invariant: a connection for writing is in WAL mode with `synchronous = FULL`. Every connection is to a database of
//! Tokamak with the schema of this version.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::modes::{APPLICATION_ID, configure};
use super::{Options, migration};
use crate::{OpenError, folder};

/// The cause of an error of `open_reader`: the database was replaced by an older one while the store is open.
const OUTDATED: &str = "the database is of an older format; the next write migrates it";

/// The effect of opening a database file that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    Create,
    /// Opening fails. This is for a database that existed before, because a new empty database would hide the loss.
    Fail,
}

/// An open connection, and the identity of its file.
#[derive(Debug)]
pub struct OpenedDatabase {
    pub connection: Connection,
    file: FileId,
}

impl OpenedDatabase {
    /// Returns whether `path` still leads to the file of this connection. SQLite does not notice that a file was moved
    /// or replaced, and commits to the old file would be lost.
    pub fn is_on(&self, path: &Path) -> std::io::Result<bool> {
        Ok(FileId::of(path)? == self.file)
    }
}

/// The schema of a database that this version may open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Schema {
    /// The database has no tables yet.
    Empty,
    /// Steps of a migration are left.
    Outdated,
    Current,
}

/// Opens the connection for writing. A new database gets its schema, and an older one is migrated first.
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
    let (mut connection, mut schema) = open_checked(path, options, flags)?;
    // SQLite opens a file without write permission as read-only and reports no error, so this is checked here.
    if connection.is_readonly("main").map_err(open_error)? {
        return Err(OpenError::Unwritable { path: path.to_owned(), source: "the database file is read-only".into() });
    }
    if schema == Schema::Empty {
        configure(path, &connection, options)?;
        migration::create_schema(&mut connection).map_err(open_error)?;
        // Another process may have been faster, and may be of another version.
        schema = check_schema(path, &connection)?;
    }
    if schema == Schema::Outdated {
        // A migration needs the database for itself, so this connection is closed.
        connection.close().map_err(|(_, error)| open_error(error))?;
        migration::migrate(path, options)?;
        (connection, _) = open_checked(path, options, flags)?;
    }
    configure(path, &connection, options)?;
    // SQLite's own wait for locks is switched off, because the writer waits in shorter steps (`wait_while_busy`).
    connection.busy_timeout(Duration::ZERO).map_err(open_error)?;
    let file = FileId::of(path).map_err(|error| OpenError::from_io(path, error))?;
    Ok(OpenedDatabase { connection, file })
}

/// Opens a read-only connection.
pub fn open_reader(path: &Path, busy_timeout: Duration) -> Result<OpenedDatabase, OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // The file id is read before the connection is opened. If the file is replaced in between, `is_on` returns false,
    // and the next read opens another connection.
    let file = FileId::of(path).map_err(|error| OpenError::from_io(path, error))?;
    let connection = Connection::open_with_flags(path, flags).map_err(open_error)?;
    connection.busy_timeout(busy_timeout).map_err(open_error)?;
    if check_schema(path, &connection)? == Schema::Outdated {
        return Err(OpenError::Failed { path: path.to_owned(), source: OUTDATED.into() });
    }
    Ok(OpenedDatabase { connection, file })
}

/// Opens a connection and reads the state of the schema. If another process migrates the database at this moment, the
/// function waits for it.
fn open_checked(path: &Path, options: &Options, flags: OpenFlags) -> Result<(Connection, Schema), OpenError> {
    let open = || {
        let open_error = |error| OpenError::from_sqlite(path, error);
        let connection = Connection::open_with_flags(path, flags).map_err(open_error)?;
        connection.busy_timeout(options.busy_timeout).map_err(open_error)?;
        let schema = check_schema(path, &connection)?;
        Ok((connection, schema))
    };
    match open() {
        Err(OpenError::Busy { .. }) if migration::wait_for_other(path, options.migration_timeout)? => open(),
        result => result,
    }
}

/// Refuses the database of another program or of a newer version of Tokamak. The check runs before the first write, so
/// that such a database stays unchanged.
fn check_schema(path: &Path, connection: &Connection) -> Result<Schema, OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    // The numbers are read in one transaction, because another process may be migrating the schema at this
    // moment.
    let snapshot = connection.unchecked_transaction().map_err(open_error)?;
    let number = |sql: &str| snapshot.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(open_error);
    let entries = number("SELECT count(*) FROM sqlite_schema")?;
    let application = number("PRAGMA application_id")?;
    let found = number("PRAGMA user_version")?;
    let is_unfinished = migration::is_unfinished(&snapshot).map_err(open_error)?;
    snapshot.finish().map_err(open_error)?;
    let known = migration::CURRENT_VERSION;
    let is_empty = entries == 0 && application == 0 && found == 0;
    if !is_empty && application != APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    Ok(match found {
        _ if is_empty => Schema::Empty,
        _ if is_unfinished || found < known => Schema::Outdated,
        _ => Schema::Current,
    })
}

/// The identity of a file: device and inode. On systems other than Unix, all files have the same id.
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
