//! The embedded store: rows in one SQLite file.
//! Invariant: all writes go through one thread with one connection; reads never wait for it, and see every answered commit.

mod connection;
mod fault;
mod readers;
mod rows;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use base::TenantId;
use ports::store::{Batch, Error, Key, Range, Row, Store, Table};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::OpenError;
use fault::Fault;
use readers::Readers;
use writer::{Job, Writer};

/// The file's name in a data folder.
pub const FILE_NAME: &str = "tokamak.db";

/// So many rows at most are read on the caller's own thread: runs that have not ended, each of which is read there alone as well.
const FEW_ROWS: usize = 16;

/// Batches that may wait for the writer before a caller has to wait to hand one over.
const WAITING_BATCHES: usize = 256;

#[derive(Debug, Clone)]
pub struct Options {
    /// How long a call waits for another process that is writing.
    pub busy_timeout: Duration,
    /// Connections for scans on threads of their own, which is also how many of those run at once.
    pub readers: usize,
    /// A ceiling for the file, in pages of 4 KiB; beyond it a commit is `Full`.
    pub max_pages: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), readers: 4, max_pages: None }
    }
}

#[derive(Debug)]
pub struct SqliteStore {
    /// `None` only while dropping: closing the channel is what ends the writer.
    jobs: Option<mpsc::Sender<Job>>,
    writer: Option<JoinHandle<()>>,
    readers: Arc<Readers>,
}

impl SqliteStore {
    /// Opens the database file at `path`, made with its folder where there is none, and brings its schema up to date.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::open_with(path, &Options::default())
    }

    pub fn open_with(path: &Path, options: &Options) -> Result<Self, OpenError> {
        // Absolute, so that the file is found again also after the process has changed its folder.
        let path = &std::path::absolute(path).map_err(|error| OpenError::from_io(path, error))?;
        let writer = Writer::open(path, options)?;
        let (jobs, waiting) = mpsc::channel(WAITING_BATCHES);
        let thread = std::thread::Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || writer.run(waiting))
            .map_err(|error| OpenError::Failed { path: path.to_owned(), source: Box::new(error) })?;
        let readers = Arc::new(Readers::new(path, options));
        Ok(Self { jobs: Some(jobs), writer: Some(thread), readers })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn get(&self, key: &Key) -> Result<Option<Row>, Error> {
        let get = |connection: &Connection, key: &Key| {
            let what = || format!("the place of row {}/{} in {FILE_NAME}", key.table.name(), key.id);
            rows::get(connection, key).map_err(|fault| fault.looking_for(what))
        };
        if let Some(done) = self.readers.read_here(|connection| get(connection, key)) {
            return done;
        }
        let key = key.clone();
        self.readers.read(move |connection| get(connection, &key)).await
    }

    async fn scan(&self, range: &Range) -> Result<Vec<(String, Row)>, Error> {
        let scan = |connection: &Connection, range: &Range| {
            let what = || format!("the place of rows {}/{}… in {FILE_NAME}", range.table.name(), range.prefix);
            rows::scan(connection, range).map_err(|fault| fault.looking_for(what))
        };
        let range = range.clone();
        self.readers.read(move |connection| scan(connection, &range)).await
    }

    async fn scan_with(&self, range: &Range, other: Table) -> Result<Vec<(String, Option<Row>)>, Error> {
        let scan = move |connection: &Connection, range: &Range| {
            let what = || format!("the place of rows {}/{}… in {FILE_NAME}", other.name(), range.prefix);
            rows::scan_with(connection, range, other).map_err(|fault| fault.looking_for(what))
        };
        if range.limit <= FEW_ROWS
            && range.table == Table::OpenExecution
            && let Some(done) = self.readers.read_here(|connection| scan(connection, range))
        {
            return done;
        }
        let range = range.clone();
        self.readers.read(move |connection| scan(connection, &range)).await
    }

    /// A caller that stops waiting does not take its batch back: it may still land, whole.
    async fn commit(&self, batch: Batch) -> Result<(), Error> {
        let (answer, answered) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or_else(writer_is_gone)?;
        jobs.send(Job { batch, answer }).await.map_err(|_| writer_is_gone())?;
        answered.await.map_err(|_| writer_is_gone())?
    }

    async fn tenants(&self) -> Result<Vec<TenantId>, Error> {
        self.readers.read(rows::tenants).await
    }

    /// Reads, and takes the write lock: a database that cannot be written is not ready.
    async fn ping(&self) -> Result<(), Error> {
        self.readers.read(rows::probe).await?;
        self.commit(Batch::default()).await
    }
}

fn writer_is_gone() -> Error {
    Fault::unavailable("the writer thread has ended").into()
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // Readers first: the last connection to close is the writer's, which then folds the WAL into the database.
        self.readers.close();
        self.jobs = None;
        if let Some(writer) = self.writer.take()
            && writer.join().is_err()
        {
            tracing::error!("the SQLite writer thread panicked");
        }
    }
}
