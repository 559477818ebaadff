//! The two pools of read-only connections: one for scans on blocking threads, one for small reads on the caller's own
//! thread.
//!
//! Invariants:
//! - No connection keeps a transaction open between two reads, so each read sees every commit that was answered before
//!   the read began.
//! - A read on the caller's thread never waits for a lock, because that thread belongs to the async runtime.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ports::store::Error;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::Options;
use super::connection::{OpenedDatabase, open_reader};
use super::error::SqliteError;

/// The pools of connections. A connection is opened when its pool is empty, and returns to the pool after a successful
/// read.
#[derive(Debug)]
pub struct Readers {
    path: PathBuf,
    options: Options,
    /// Idle connections for reads on blocking threads. They wait for a lock up to `busy_timeout`.
    blocking_pool: Mutex<Vec<OpenedDatabase>>,
    /// Idle connections for reads on the caller's thread. They return an error at once if a lock is taken.
    inline_pool: Mutex<Vec<OpenedDatabase>>,
    /// The permits for reads on blocking threads, one for each connection. The semaphore is closed when the store is
    /// dropped.
    permits: Arc<Semaphore>,
}

impl Readers {
    /// Returns empty pools for the database at `path`.
    pub fn new(path: &Path, options: &Options) -> Self {
        Self {
            path: path.to_owned(),
            options: options.clone(),
            blocking_pool: Mutex::default(),
            inline_pool: Mutex::default(),
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
            readers.read_with(&readers.blocking_pool, readers.options.busy_timeout, work)
        });
        Ok(result.await.map_err(SqliteError::unavailable)??)
    }

    /// Runs `work` on the caller's thread, for one row or a few small rows. A read from the page cache takes about ten
    /// microseconds, and a change of threads takes twice as long (docs/benchmarks.md, "Sessions"). `None` means that a
    /// lock is taken, and the caller must use `read`.
    pub fn read_inline<T>(&self, work: impl FnOnce(&Connection) -> Result<T, SqliteError>) -> Option<Result<T, Error>> {
        match self.read_with(&self.inline_pool, Duration::ZERO, work) {
            Err(error) if error.is_busy() => None,
            result => Some(result.map_err(Error::from)),
        }
    }

    /// Closes the idle connections. A connection in use is closed when its read ends.
    pub fn close(&self) {
        self.permits.close();
        locked(&self.blocking_pool).clear();
        locked(&self.inline_pool).clear();
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

    /// Takes an idle connection if its file is still at the path. Otherwise opens a new connection.
    fn take(&self, pool: &Mutex<Vec<OpenedDatabase>>, busy_timeout: Duration) -> Result<OpenedDatabase, SqliteError> {
        let idle = locked(pool).pop();
        match idle {
            Some(reader) if reader.is_on(&self.path).map_err(SqliteError::unavailable)? => Ok(reader),
            _ => Ok(open_reader(&self.path, busy_timeout)?),
        }
    }
}

fn locked(pool: &Mutex<Vec<OpenedDatabase>>) -> MutexGuard<'_, Vec<OpenedDatabase>> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}
