//! The two pools of read-only connections: one for scans on blocking threads, one for small reads on the caller's own
//! thread.
//!
//! Invariants:
//! - No connection keeps a transaction open between two reads, so each read sees every commit that was answered before
//!   the read began.
//! - No connection is opened while the paths lead to other files than those of the writer. A new connection would create a WAL where the
//!   writer's was deleted, and the writer could not move its commits into the database any more.
//! - A read on the caller's thread never waits for a lock, because that thread belongs to the async runtime.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ports::store::Error;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::Options;
use super::connection::{DatabaseFiles, FileIds, FilesState, OpenedDatabase, open_reader};
use super::error::{FilesChanged, SqliteError};

/// The pools of connections. A connection is opened when its pool is empty, and returns to the pool after a successful
/// read.
#[derive(Debug)]
pub struct Readers {
    path: PathBuf,
    files: DatabaseFiles,
    /// The files that the writer has open.
    writer_files: Arc<Mutex<FileIds>>,
    options: Options,
    idle: Arc<IdleReaders>,
    /// The permits for reads on blocking threads, one for each connection. The semaphore is closed when the store is
    /// dropped.
    permits: Arc<Semaphore>,
}

/// The idle connections of both pools. The writer closes them when the files of the database have changed: SQLite lets all connections of a
/// process share one memory file, so a new connection would use the deleted one as long as any of the old ones is open.
#[derive(Debug, Default)]
pub struct IdleReaders {
    /// Connections for reads on blocking threads. They wait for a lock up to `busy_timeout`.
    blocking: Mutex<Vec<OpenedDatabase>>,
    /// Connections for reads on the caller's thread. They return an error at once if a lock is taken.
    inline: Mutex<Vec<OpenedDatabase>>,
}

impl IdleReaders {
    /// Closes all idle connections.
    pub fn clear(&self) {
        locked(&self.blocking).clear();
        locked(&self.inline).clear();
    }
}

impl Readers {
    /// Returns empty pools for the database at `path`. `writer_files` are the files that the writer has open.
    pub fn new(path: &Path, idle: Arc<IdleReaders>, writer_files: Arc<Mutex<FileIds>>, options: &Options) -> Self {
        Self {
            path: path.to_owned(),
            files: DatabaseFiles::of(path),
            writer_files,
            options: options.clone(),
            idle,
            permits: Arc::new(Semaphore::new(options.readers.max(1))),
        }
    }

    /// Runs `work` on a blocking thread.
    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    ) -> Result<T, Error> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(SqliteError::unavailable)?;
        let readers = Arc::clone(self);
        let result = tokio::task::spawn_blocking(move || {
            // The blocking thread keeps the permit until the read ends, because the read goes on even if the caller
            // stops waiting.
            let _permit = permit;
            readers.read_with(&readers.idle.blocking, readers.options.busy_timeout, work)
        });
        Ok(result.await.map_err(SqliteError::unavailable)??)
    }

    /// Runs `work` on the caller's thread, for one row or a few small rows. A read from the page cache takes about ten
    /// microseconds, and a change of threads takes twice as long (docs/benchmarks.md, "Sessions"). `None` means that a
    /// lock is taken, and the caller must use `read`.
    pub fn read_inline<T>(&self, work: impl FnOnce(&Connection) -> Result<T, SqliteError>) -> Option<Result<T, Error>> {
        match self.read_with(&self.idle.inline, Duration::ZERO, work) {
            Err(error) if error.is_busy() => None,
            result => Some(result.map_err(Error::from)),
        }
    }

    /// Closes the idle connections. A connection in use is closed when its read ends.
    pub fn close(&self) {
        self.permits.close();
        self.idle.clear();
    }

    fn read_with<T>(
        &self,
        pool: &Mutex<Vec<OpenedDatabase>>,
        busy_timeout: Duration,
        work: impl FnOnce(&Connection) -> Result<T, SqliteError>,
    ) -> Result<T, SqliteError> {
        let reader = self.take(pool, busy_timeout)?;
        // After an error the connection is closed and not reused, because its transaction may still be open.
        let value = work(&reader.connection)?;
        let mut idle = locked(pool);
        if !self.permits.is_closed() {
            idle.push(reader);
        }
        Ok(value)
    }

    /// Takes an idle connection, or opens a new one. If the files are not those of the writer, the read fails until the writer has opened
    /// the files that are there.
    fn take(&self, pool: &Mutex<Vec<OpenedDatabase>>, busy_timeout: Duration) -> Result<OpenedDatabase, SqliteError> {
        let expected = *self.writer_files.lock().unwrap_or_else(PoisonError::into_inner);
        if self.files.state(&expected).map_err(SqliteError::unavailable)? != FilesState::Unchanged {
            return Err(SqliteError::unavailable(FilesChanged));
        }
        let idle = locked(pool).pop();
        match idle {
            Some(reader) if reader.ids() == expected => Ok(reader),
            // The other idle connections belong to files that were replaced, too.
            Some(_) => {
                locked(pool).clear();
                Ok(open_reader(&self.path, busy_timeout)?)
            }
            None => Ok(open_reader(&self.path, busy_timeout)?),
        }
    }
}

fn locked(pool: &Mutex<Vec<OpenedDatabase>>) -> MutexGuard<'_, Vec<OpenedDatabase>> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}
