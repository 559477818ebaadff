//! Compare-and-set batches, retried after a lost race.
//! Invariant: a retry repeats the whole read, decision and write on fresh rows; the number of attempts is bounded.

use std::time::Duration;

use access::Caller;
use base::{LogicalSessionId, Slot};
use ports::store::{Batch, Expect, Key, Table};

use crate::error::Error;
use crate::rows::{self, ConnectionRow};
use crate::service::Service;

/// The attempts of a compare-and-set loop. Enough for dozens of concurrent callers of one session, since each lost race means that another caller succeeded.
pub const TRIES: usize = 64;

/// How often a write that must succeed is tried while the storage fails, and the pause between two attempts.
pub(crate) const STORE_TRIES: usize = 3;
pub(crate) const STORE_AGAIN: Duration = Duration::from_millis(300);

/// The `used` time of a connection is written no more often than this.
const TOUCH_CONNECTION_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns the condition that a row still has the version at which it was read. Version 0 means that the row did not
/// exist.
pub fn unchanged(version: u64) -> Expect {
    if version == 0 { Expect::Absent } else { Expect::Version(version) }
}

/// A slot with the write that assigns it. While this value lives, no other caller in this process assigns a slot on
/// the connection.
pub(crate) struct SlotAssignment {
    /// The slot, which the caller may answer only after the batch was committed.
    pub slot: Slot,
    /// The write that assigns the slot. Empty if the connection already has the slot and was used recently.
    pub batch: Batch,
    /// Held until the batch is committed. `None` if there is nothing to commit.
    _turn: Option<tokio::sync::OwnedMutexGuard<()>>,
}

impl SlotAssignment {
    /// Returns a slot that the connection already has.
    fn without_write(index: usize) -> Self {
        Self { slot: Slot(index as u32), batch: Batch::default(), _turn: None }
    }
}

impl ConnectionRow {
    /// Returns the position of a session among the slots.
    fn slot_index(&self, session: LogicalSessionId) -> Option<usize> {
        self.slots.iter().position(|known| *known == session)
    }
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

    /// Returns the connection's slot for a session, assigned on first use.
    pub(crate) async fn slot_for(&self, caller: &Caller, id: LogicalSessionId) -> Result<Slot, Error> {
        for _ in 0..TRIES {
            // Binding the turn keeps it until the commit below.
            let SlotAssignment { slot, batch, _turn } = self.slot_batch(caller, id).await?;
            if batch.writes.is_empty() || self.try_commit(batch).await?.is_some() {
                return Ok(slot);
            }
        }
        Err(Error::Busy)
    }

    /// Returns the slot, and the write that assigns it if it is new.
    pub(crate) async fn slot_batch(&self, caller: &Caller, id: LogicalSessionId) -> Result<SlotAssignment, Error> {
        let current = self.connection(caller).await?;
        if let Some(index) = current.row.slot_index(id)
            && self.now().0.saturating_sub(current.row.used.0) < TOUCH_CONNECTION_MS
        {
            return Ok(SlotAssignment::without_write(index));
        }
        // All new sessions of a connection compete for its next number, so callers of this process take turns.
        let turn = self.turn(&format!("{}/{}", caller.tenant, caller.connection.row_id())).await;
        let mut connection = self.connection(caller).await?;
        let index = match connection.row.slot_index(id) {
            // Another caller assigned or touched it in this very millisecond, so nothing is left to write.
            Some(index) if connection.row.used == self.now() => return Ok(SlotAssignment::without_write(index)),
            Some(index) => index,
            None => {
                connection.row.slots.push(id);
                connection.row.slots.len() - 1
            }
        };
        connection.row.used = self.now();
        let slot = Slot(index as u32);
        let key = Key::new(&caller.tenant, Table::Connection, caller.connection.row_id());
        let batch = Batch::default().put(key, rows::write(&connection.row), unchanged(connection.version));
        Ok(SlotAssignment { slot, batch, _turn: Some(turn) })
    }
}
