//! The type `SqliteStore`: rows in one SQLite file, with one writer thread and a few read-only connections.
//! Invariant: one thread with one connection makes all writes of this process. Reads never wait for the writer thread,
//! and see every commit that was answered.

mod connection;
mod error;
mod holders;
mod index_rows;
mod migration;
mod modes;
mod readers;
mod rows;
mod stored_row;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use base::TenantId;
use ports::store::{Batch, Error, IndexEntry, IndexRange, Key, MaintenanceRange, Range, Row, Store, Table};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{OpenError, network};
use error::{SqliteError, is_files_changed};
pub use migration::MigrationEvent;
use readers::{IdleReaders, Readers};
use writer::{Closed, CommitRequest, Writer};

/// The name of the database file in a data folder.
pub const FILE_NAME: &str = "tokamak.db";

/// A scan of open executions with at most this limit runs on the caller's thread. Other scans run on a blocking thread.
const MAX_INLINE_ROWS: usize = 16;

/// The number of batches that may wait for the writer thread. If more batches arrive, `commit` waits until the queue
/// has room.
const MAX_QUEUED_BATCHES: usize = 256;

/// The options of a SQLite store.
#[derive(Debug, Clone)]
pub struct Options {
    /// The time that a call waits for a lock of another process before it returns an error.
    pub busy_timeout: Duration,
    /// The largest number of concurrent scans. Each scan uses a connection and a blocking thread.
    pub readers: usize,
    /// The largest size of the database file, in pages of 4 KiB. A commit that needs more pages returns `Full`. `None`
    /// means no limit.
    pub max_pages: Option<u32>,
    /// Returns the number of the file system of a folder. A test replaces it by a file system that the machine does not have.
    pub file_system_type: fn(&Path) -> std::io::Result<u64>,
    /// The time that a process waits while another one migrates the database.
    pub migration_timeout: Duration,
    /// This function is called for each event of a migration, which is also logged.
    pub on_migration: fn(&MigrationEvent),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            busy_timeout: Duration::from_secs(5),
            readers: 4,
            max_pages: None,
            file_system_type: network::file_system_type,
            migration_timeout: Duration::from_secs(600),
            on_migration: |_| {},
        }
    }
}

/// A store of rows in a SQLite file. Several processes may use the same file.
#[derive(Debug)]
pub struct SqliteStore {
    /// Sends batches to the writer thread. It is `None` only during `drop`: closing the channel ends the thread.
    requests: Option<mpsc::Sender<CommitRequest>>,
    /// The writer thread. It is `None` only during `drop`, which joins it.
    writer: Option<JoinHandle<Closed>>,
    readers: Arc<Readers>,
    path: PathBuf,
}

impl SqliteStore {
    /// Opens the database file at `path` and migrates its schema to the current version. The file and its folder are
    /// created if they do not exist.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(path, &Options::default())
    }

    /// Opens the database file at `path` like `open`, with these options.
    pub fn open_with(path: &Path, options: &Options) -> Result<Self, OpenError> {
        // The path is made absolute, so that the file is found after the process has changed its current folder.
        let path = &std::path::absolute(path).map_err(|error| OpenError::from_io(path, error))?;
        let idle_readers = Arc::new(IdleReaders::default());
        let writer = Writer::open(path, Arc::clone(&idle_readers), options)?;
        let writer_files = writer.files();
        let (requests, waiting_requests) = mpsc::channel(MAX_QUEUED_BATCHES);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || writer.run(waiting_requests))
            .map_err(|error| OpenError::Failed { path: path.to_owned(), source: Box::new(error) })?;
        let readers = Arc::new(Readers::new(path, idle_readers, writer_files, options));
        Ok(Self { requests: Some(requests), writer: Some(thread), readers, path: path.clone() })
    }
}

impl SqliteStore {
    async fn read_row(&self, key: &Key) -> Result<Option<Row>, Error> {
        let get = |connection: &Connection, key: &Key| {
            let what = || format!("the place of row {}/{} in {FILE_NAME}", key.table.name(), key.id);
            rows::get(connection, key).map_err(|error| error.while_reading(what))
        };
        if let Some(result) = self.readers.read_inline(|connection| get(connection, key)) {
            return result;
        }
        let key = key.clone();
        self.readers.read(move |connection| get(connection, &key)).await
    }

    async fn read_range(&self, range: &Range) -> Result<Vec<(String, Row)>, Error> {
        let range = range.clone();
        let scan = move |connection: &Connection| {
            let what = || format!("the place of rows {}/{}… in {FILE_NAME}", range.table.name(), range.prefix);
            rows::scan(connection, &range).map_err(|error| error.while_reading(what))
        };
        self.readers.read(scan).await
    }

    async fn read_range_with(&self, range: &Range, other: Table) -> Result<Vec<(String, Option<Row>)>, Error> {
        let scan = move |connection: &Connection, range: &Range| {
            let what = || format!("the place of rows {}/{}… in {FILE_NAME}", other.name(), range.prefix);
            rows::scan_with(connection, range, other).map_err(|error| error.while_reading(what))
        };
        // Only open executions are read on the caller's thread, because their rows are few and small. Large rows of
        // other tables would block that thread for too long.
        if range.limit <= MAX_INLINE_ROWS
            && range.table == Table::OpenExecution
            && let Some(result) = self.readers.read_inline(|connection| scan(connection, range))
        {
            return result;
        }
        let range = range.clone();
        self.readers.read(move |connection| scan(connection, &range)).await
    }

    async fn read_index(&self, range: &IndexRange) -> Result<Vec<IndexEntry>, Error> {
        let range = range.clone();
        let scan = move |connection: &Connection| {
            let what = || format!("the index {} in {FILE_NAME}", range.index.name());
            index_rows::scan(connection, &range).map_err(|error| error.while_reading(what))
        };
        self.readers.read(scan).await
    }

    async fn read_index_of_all_tenants(&self, range: &MaintenanceRange) -> Result<Vec<IndexEntry>, Error> {
        let range = range.clone();
        let scan = move |connection: &Connection| {
            let what = || format!("the index {} in {FILE_NAME}", range.index.name());
            index_rows::scan_all_tenants(connection, &range).map_err(|error| error.while_reading(what))
        };
        self.readers.read(scan).await
    }

    /// Returns the result of a read, or `None` if the read must be repeated. It is repeated if the files of the database were deleted or
    /// replaced: an empty commit has then made the writer open the files that are there.
    async fn unless_files_changed<T>(&self, result: Result<T, Error>) -> Result<Option<T>, Error> {
        match result {
            Err(error) if is_files_changed(&error) => self.commit(Batch::default()).await.map(|()| None),
            result => result.map(Some),
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn get(&self, key: &Key) -> Result<Option<Row>, Error> {
        match self.unless_files_changed(self.read_row(key).await).await? {
            Some(row) => Ok(row),
            None => self.read_row(key).await,
        }
    }

    async fn scan(&self, range: &Range) -> Result<Vec<(String, Row)>, Error> {
        match self.unless_files_changed(self.read_range(range).await).await? {
            Some(rows) => Ok(rows),
            None => self.read_range(range).await,
        }
    }

    async fn scan_with(&self, range: &Range, other: Table) -> Result<Vec<(String, Option<Row>)>, Error> {
        match self.unless_files_changed(self.read_range_with(range, other).await).await? {
            Some(rows) => Ok(rows),
            None => self.read_range_with(range, other).await,
        }
    }

    async fn scan_index(&self, range: &IndexRange) -> Result<Vec<IndexEntry>, Error> {
        match self.unless_files_changed(self.read_index(range).await).await? {
            Some(entries) => Ok(entries),
            None => self.read_index(range).await,
        }
    }

    async fn scan_index_of_all_tenants(&self, range: &MaintenanceRange) -> Result<Vec<IndexEntry>, Error> {
        match self.unless_files_changed(self.read_index_of_all_tenants(range).await).await? {
            Some(entries) => Ok(entries),
            None => self.read_index_of_all_tenants(range).await,
        }
    }

    /// Sends the batch to the writer thread and waits for the result. If the caller stops waiting, the whole batch may
    /// still be committed.
    async fn commit(&self, batch: Batch) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let requests = self.requests.as_ref().ok_or_else(writer_has_ended)?;
        requests.send(CommitRequest { batch, answer }).await.map_err(|_| writer_has_ended())?;
        answered.await.map_err(|_| writer_has_ended())?
    }

    async fn tenants(&self) -> Result<Vec<TenantId>, Error> {
        match self.unless_files_changed(self.readers.read(rows::tenants).await).await? {
            Some(tenants) => Ok(tenants),
            None => self.readers.read(rows::tenants).await,
        }
    }

    /// Commits an empty batch and reads one row. The commit takes the write lock, so the check fails if the database
    /// cannot be written.
    async fn ping(&self) -> Result<(), Error> {
        // The commit repairs what the read may find, so the read comes last.
        self.commit(Batch::default()).await?;
        self.readers.read(rows::probe).await
    }
}

fn writer_has_ended() -> Error {
    SqliteError::unavailable("the SQLite writer thread has ended; restart the server").into()
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The readers are closed first, so that the writer's connection is closed last. SQLite moves the content of the
        // WAL into the database when the last connection closes, and a read-only connection cannot do this.
        self.readers.close();
        self.requests = None;
        match self.writer.take().map(JoinHandle::join) {
            // This version has written rows and has ended cleanly, so nobody goes back to the copy of the older format.
            Some(Ok(Closed { has_written: true })) => migration::remove_leftovers(&self.path),
            Some(Err(_)) => tracing::error!("the SQLite writer thread panicked before the store was closed"),
            Some(Ok(_)) | None => {}
        }
    }
}
