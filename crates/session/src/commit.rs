//! Compare-and-set batches, retried after a lost race.
//! Invariant: a retry repeats the whole read, decision and write on fresh rows; the number of attempts is bounded.

use std::time::Duration;

use ports::store::{Batch, Expect};

use crate::error::Error;
use crate::service::Service;

/// The attempts of a compare-and-set loop. Enough for dozens of concurrent callers of one session, since each lost race means that another caller succeeded.
pub const TRIES: usize = 64;

/// How often a write that must succeed is tried while the storage fails, and the pause between two attempts.
pub(crate) const STORE_TRIES: usize = 3;
pub(crate) const STORE_AGAIN: Duration = Duration::from_millis(300);

/// Returns the condition that a row still has the version at which it was read. Version 0 means that the row did not
/// exist.
pub fn unchanged(version: u64) -> Expect {
    if version == 0 { Expect::Absent } else { Expect::Version(version) }
}

impl Service {
    /// Commits a batch. Returns `None` after a lost race, after which the caller must read its rows again.
    pub(crate) async fn try_commit(&self, batch: Batch) -> Result<Option<()>, Error> {
        match self.ports.store.commit(batch).await {
            Ok(()) => Ok(Some(())),
            Err(ports::store::Error::Conflict(key)) => {
                tracing::debug!(table = key.table.name(), id = key.id, "a commit lost a race and is retried");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}
