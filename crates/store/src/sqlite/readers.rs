//! A few read-only connections: for scans on blocking threads, for single rows and a few of them on the caller's own.
//! Invariant: no connection holds a transaction between two reads, so each read sees every commit answered before it began;
//! a read on the caller's thread never waits for a lock.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ports::store::Error;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::Options;
use super::connection::{Opened, open_reader};
use super::fault::Fault;

#[derive(Debug)]
pub struct Readers {
    path: PathBuf,
    options: Options,
    idle: Mutex<Vec<Opened>>,
    /// Connections that give up at once where another one waits for a lock.
    quick: Mutex<Vec<Opened>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub fn new(path: &Path, options: &Options) -> Self {
        let permits = Arc::new(Semaphore::new(options.readers.max(1)));
        Self {
            path: path.to_owned(),
            options: options.clone(),
            idle: Mutex::default(),
            quick: Mutex::default(),
            permits,
        }
    }

    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let gone = |error: Box<dyn std::error::Error + Send + Sync>| Fault::unavailable(error);
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|error| gone(error.into()))?;
        let readers = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            readers.read_now(work)
        });
        Ok(done.await.map_err(|error| gone(error.into()))??)
    }

    /// One row, or a few small ones, on the caller's thread: from the page cache that is some ten microseconds, and handing it
    /// to another thread and waking up again took twice as much (docs/benchmarks.md, "Sessions"). `None`: a lock is in the way;
    /// use `read`.
    pub fn read_here<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Option<Result<T, Error>> {
        match self.read_with(&self.quick, Duration::ZERO, work) {
            Err(fault) if fault.is_busy() => None,
            done => Some(done.map_err(Error::from)),
        }
    }

    /// Closes the connections at rest; one in use closes when its read ends.
    pub fn close(&self) {
        self.permits.close();
        locked(&self.idle).clear();
        locked(&self.quick).clear();
    }

    fn read_now<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        self.read_with(&self.idle, self.options.busy_timeout, work)
    }

    fn read_with<T>(
        &self,
        pool: &Mutex<Vec<Opened>>,
        busy_timeout: Duration,
        work: impl FnOnce(&Connection) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let reader = self.take(pool, busy_timeout)?;
        // A connection on which a read failed is closed: the next read opens another.
        let value = work(&reader.connection)?;
        let mut idle = locked(pool);
        if !self.permits.is_closed() {
            idle.push(reader);
        }
        Ok(value)
    }

    fn take(&self, pool: &Mutex<Vec<Opened>>, busy_timeout: Duration) -> Result<Opened, Fault> {
        let reader = locked(pool).pop();
        match reader {
            Some(reader) if reader.is_on(&self.path).map_err(|error| Fault::unavailable(Box::new(error)))? => {
                Ok(reader)
            }
            _ => Ok(open_reader(&self.path, busy_timeout)?),
        }
    }
}

fn locked(pool: &Mutex<Vec<Opened>>) -> MutexGuard<'_, Vec<Opened>> {
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}
