//! Opens connections to the SQLite database file, and creates and migrates the schema.
//! Invariant: a connection for writing is in WAL mode with `synchronous = FULL`. Every connection is to a database of
//! Tokamak whose schema this version knows. Migrations only go forward.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::Options;
use super::error::is_busy;
use crate::{OpenError, folder, network};

/// The migration at index `n` changes the schema from version `n` to version `n + 1`. The version is stored in `PRAGMA
/// user_version`. A released migration is never changed, because existing databases have already run it.
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
    // `sum` is the checksum of the row (`rows.rs`). A row that is older than this migration has no checksum until it is
    // written again.
    "ALTER TABLE row ADD COLUMN sum INTEGER",
    // A table with rowid stores keys apart from values. A table without rowid stores values in the tree that SQLite
    // searches by key, so comparing a key can read the overflow pages of a large value. These reads took a fifth of the
    // time of a dry run.
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

/// The application id in the header of the database file: `tkmk` in ASCII. A database with another id belongs to
/// another program.
const APPLICATION_ID: i64 = 0x746b_6d6b;

/// The WAL file is cut back to this size after a burst of writes has made it larger.
const MAX_WAL_BYTES: i64 = 64 * 1024 * 1024;

/// The pause between two attempts to take the write lock. SQLite's own pauses grow to 100 ms, and a busy process would
/// take the lock during each of them.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(1);

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

/// Opens the connection for writing, and migrates the schema to the version that this build knows.
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
    let mut connection = Connection::open_with_flags(path, flags).map_err(open_error)?;
    connection.busy_timeout(options.busy_timeout).map_err(open_error)?;
    check_schema(path, &connection)?;
    // SQLite opens a file without write permission as read-only and reports no error, so this is checked here.
    if connection.is_readonly("main").map_err(open_error)? {
        return Err(OpenError::Unwritable { path: path.to_owned(), source: "the database file is read-only".into() });
    }
    configure(path, &connection, options)?;
    migrate(path, &mut connection)?;
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
    check_schema(path, &connection)?;
    OpenedDatabase::new(path, connection)
}

/// Repeats `attempt` for at most `timeout` while another connection holds the lock.
pub fn wait_while_busy<T>(timeout: Duration, mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let deadline = Instant::now() + timeout;
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < deadline => std::thread::sleep(LOCK_POLL_INTERVAL),
            result => return result,
        }
    }
}

/// Refuses the database of another program or of a newer version of Tokamak. The check runs before the first write, so
/// that such a database stays unchanged.
fn check_schema(path: &Path, connection: &Connection) -> Result<(), OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    // The three numbers are read in one transaction, because another process may be migrating the schema at this
    // moment.
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

/// Sets the modes that durable commits need, and the size limits of the files.
fn configure(path: &Path, connection: &Connection, options: &Options) -> Result<(), OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    // SQLite does not wait for a lock in this statement. If two processes create the database at the same moment, one
    // gets `busy` at once, so the statement is repeated.
    let mode: String = wait_while_busy(options.busy_timeout, || {
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
    })
    .map_err(open_error)?;
    if mode != "wal" {
        let source = format!("the file system of the database supports journal mode `{mode}` and not WAL").into();
        return Err(OpenError::Failed { path: path.to_owned(), source });
    }
    // In WAL mode, `NORMAL` flushes at checkpoints only, so a power cut would lose commits that were already answered.
    connection.pragma_update(None, "synchronous", "FULL").map_err(open_error)?;
    connection.pragma_update(None, "foreign_keys", true).map_err(open_error)?;
    // These two pragmas return the new value as a row, which `pragma_update` treats as an error.
    let set_number = |name: &str, value: i64| {
        connection.pragma_update_and_check(None, name, value, |row| row.get::<_, i64>(0)).map_err(open_error)
    };
    set_number("journal_size_limit", MAX_WAL_BYTES)?;
    if let Some(pages) = options.max_pages {
        set_number("max_page_count", i64::from(pages))?;
    }
    Ok(())
}

/// Runs the missing migrations and stores the new version in one transaction.
fn migrate(path: &Path, connection: &mut Connection) -> Result<(), OpenError> {
    let open_error = |error| OpenError::from_sqlite(path, error);
    let known = MIGRATIONS.len() as i64;
    if schema_version(connection).map_err(open_error)? == known {
        return Ok(());
    }
    // The version is read again under the lock, because another process may have migrated since the first read.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(open_error)?;
    let found = schema_version(&transaction).map_err(open_error)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(migration).map_err(open_error)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(open_error)?;
    transaction.pragma_update(None, "user_version", known.max(found)).map_err(open_error)?;
    transaction.commit().map_err(open_error)?;
    // The other process may be of a newer version, so the schema is checked again.
    check_schema(path, connection)
}

fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
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
