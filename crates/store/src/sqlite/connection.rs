//! Opens connections to the SQLite database file.
//! Invariant: a connection for writing is in WAL mode with `synchronous = FULL`. Every connection is to a database of
//! Tokamak with the schema of this version.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::modes::{APPLICATION_ID, configure};
use super::{Options, migration};
use crate::{OpenError, folder, network};

/// The cause of an error of `open_reader`: the database was replaced by an older one while the store is open.
const OUTDATED: &str = "the database is of an older format; the next write migrates it";

/// The effect of opening a database file that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    Create,
    /// Opening fails. This is for a database that existed before, because a new empty database would hide the loss.
    Fail,
}

/// An open connection, and the identities of the files that it has open.
#[derive(Debug)]
pub struct OpenedDatabase {
    pub connection: Connection,
    files: DatabaseFiles,
    /// The identities of the database, its WAL and its memory file.
    ids: FileIds,
}

/// The state of the files of an open connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilesState {
    /// The paths lead to the files that the connection has open.
    Unchanged,
    /// The database is unchanged, its WAL or memory file was deleted, and no other file has taken a place. The connection still has the only
    /// copy of the commits that were not moved into the database yet.
    Deleted,
    /// A file has another identity, or the database is missing.
    Replaced,
}

impl OpenedDatabase {
    /// Takes a connection that has read from its database, so that its WAL and its memory file exist.
    fn new(path: &Path, connection: Connection) -> Result<Self, OpenError> {
        let files = DatabaseFiles::of(path);
        let id = |path: &Path| FileId::of(path).map_err(|error| OpenError::from_io(path, error));
        let ids = [id(&files.0[0])?, id(&files.0[1])?, id(&files.0[2])?];
        Ok(Self { connection, files, ids })
    }

    /// Returns whether the paths still lead to the files of this connection. SQLite does not notice that a file was moved, deleted or
    /// replaced, and commits to the old file would be lost.
    pub fn files_state(&self) -> std::io::Result<FilesState> {
        self.files.state(&self.ids)
    }

    /// Returns the identities of the files that the connection has open.
    pub fn ids(&self) -> FileIds {
        self.ids
    }

    /// Closes a connection whose files were changed. If only the WAL or the memory file was deleted, its commits are moved into the database
    /// first. Otherwise nothing is written, because another process may use the files that are there now.
    pub fn close_after_change(self, state: FilesState) {
        let moved = match state {
            FilesState::Unchanged => return,
            FilesState::Deleted => self
                .connection
                .query_row("PRAGMA wal_checkpoint(FULL)", [], |row| row.get::<_, i64>(0))
                .map(|busy| busy == 0),
            FilesState::Replaced => Ok(false),
        };
        let no_checkpoint =
            self.connection.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        tracing::error!(
            path = %self.files.0[0].display(), ?state, ?moved, ?no_checkpoint,
            "the files of the database were deleted or replaced while the database was open; commits may be missing unless `moved` is Ok(true)"
        );
    }
}

/// The identities of the database, its WAL and its memory file.
pub type FileIds = [FileId; 3];

/// The paths of the database, its WAL and its memory file.
#[derive(Debug, Clone)]
pub struct DatabaseFiles([PathBuf; 3]);

impl DatabaseFiles {
    pub fn of(path: &Path) -> Self {
        let with_suffix = |suffix: &str| {
            let mut name = path.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        Self([path.to_owned(), with_suffix("-wal"), with_suffix("-shm")])
    }

    /// Compares the files at the paths with the files that a connection has open.
    pub fn state(&self, ids: &FileIds) -> std::io::Result<FilesState> {
        let mut state = FilesState::Unchanged;
        for (at, (path, id)) in self.paths().zip(ids).enumerate() {
            match FileId::of(path) {
                Ok(found) if found == *id => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && at > 0 => state = FilesState::Deleted,
                Ok(_) => return Ok(FilesState::Replaced),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(FilesState::Replaced),
                Err(error) => return Err(error),
            }
        }
        Ok(state)
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
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
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if if_missing == IfMissing::Create {
        let parent = path.parent().unwrap_or(Path::new("."));
        folder::create(parent).map_err(|error| OpenError::from_io(parent, error))?;
        check_file_system(path, parent, options)?;
        // SQLite would create the file with permissions for all users. An empty file is a valid empty database, and SQLite gives the WAL and
        // the memory file the permissions of the database.
        match folder::create_new_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(OpenError::from_io(path, error));
            }
            _ => {}
        }
    }
    for file in DatabaseFiles::of(path).paths() {
        folder::restrict_file(file)?;
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
    // A database that was not in WAL mode until now gets its WAL and its memory file with the first read in this mode.
    migration::schema_version(&connection).map_err(open_error)?;
    // SQLite's own wait for locks is switched off, because the writer waits in shorter steps (`wait_while_busy`).
    connection.busy_timeout(Duration::ZERO).map_err(open_error)?;
    OpenedDatabase::new(path, connection)
}

/// Refuses a database on a network file system.
fn check_file_system(path: &Path, parent: &Path, options: &Options) -> Result<(), OpenError> {
    let file_system = (options.file_system_type)(parent).map_err(|error| OpenError::from_io(parent, error))?;
    match network::network_name(file_system) {
        Some(kind) => Err(OpenError::NetworkFileSystem { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

/// Opens a read-only connection.
pub fn open_reader(path: &Path, busy_timeout: Duration) -> Result<OpenedDatabase, OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(open_error)?;
    connection.busy_timeout(busy_timeout).map_err(open_error)?;
    if check_schema(path, &connection)? == Schema::Outdated {
        return Err(OpenError::Failed { path: path.to_owned(), source: OUTDATED.into() });
    }
    OpenedDatabase::new(path, connection)
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
pub struct FileId(u64, u64);

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
