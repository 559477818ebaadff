//! A few read-only connections, used on blocking threads.
//! Invariant: no connection holds a transaction between two reads, so each read sees every commit answered before it began.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
    permits: Arc<Semaphore>,
}

impl Readers {
    pub fn new(path: &Path, options: &Options) -> Self {
        let permits = Arc::new(Semaphore::new(options.readers.max(1)));
        Self { path: path.to_owned(), options: options.clone(), idle: Mutex::default(), permits }
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

    /// Closes the connections at rest; one in use closes when its read ends.
    pub fn close(&self) {
        self.permits.close();
        self.idle().clear();
    }

    fn read_now<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Fault> {
        let reader = self.take()?;
        // A connection on which a read failed is closed: the next read opens another.
        let value = work(&reader.connection)?;
        let mut idle = self.idle();
        if !self.permits.is_closed() {
            idle.push(reader);
        }
        Ok(value)
    }

    fn take(&self) -> Result<Opened, Fault> {
        let reader = self.idle().pop();
        match reader {
            Some(reader) if reader.is_on(&self.path).map_err(|error| Fault::unavailable(Box::new(error)))? => {
                Ok(reader)
            }
            _ => Ok(open_reader(&self.path, &self.options)?),
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Opened>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
