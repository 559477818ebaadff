//! Writing: compare-and-set batches, retried when the race was lost.
//! Invariant: what is retried is the whole read-decide-write, on fresh rows; the number of tries is bounded.

use base::{LogicalSessionId, Slot};
use ports::store::{Batch, Expect, Key, Table};

use crate::error::Error;
use crate::rows::{self, ConnectionRow};
use crate::service::Service;
use access::Caller;

/// Enough for dozens of callers on one session; each lost race means that another one got through.
pub const TRIES: usize = 64;

/// A connection that is only used is written no more often than this.
const TOUCH_CONNECTION_MS: i64 = 24 * 60 * 60 * 1000;

/// What a row read at this version must still be.
pub fn unchanged(version: u64) -> Expect {
    if version == 0 { Expect::Absent } else { Expect::Version(version) }
}

/// A slot, and what makes it one. Nobody else of this process assigns one on the connection until it is dropped.
pub(crate) struct Assigned {
    pub slot: Slot,
    pub batch: Batch,
    _turn: Option<tokio::sync::OwnedMutexGuard<()>>,
}

impl Service {
    /// `None` when someone else was faster and the caller should look again.
    pub(crate) async fn try_commit(&self, batch: Batch) -> Result<Option<()>, Error> {
        match self.ports.store.commit(batch).await {
            Ok(()) => Ok(Some(())),
            Err(ports::store::Error::Conflict(key)) => {
                tracing::debug!(table = key.table.name(), id = key.id, "lost a race, trying again");
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The connection's slot for a session, assigned on first use.
    pub(crate) async fn slot_for(&self, caller: &Caller, id: LogicalSessionId) -> Result<Slot, Error> {
        for _ in 0..TRIES {
            let Assigned { slot, batch, _turn } = self.slot_batch(caller, id).await?;
            if batch.writes.is_empty() || self.try_commit(batch).await?.is_some() {
                return Ok(slot);
            }
        }
        Err(Error::Busy)
    }

    /// The slot, and the write that assigns it if it is new.
    pub(crate) async fn slot_batch(&self, caller: &Caller, id: LogicalSessionId) -> Result<Assigned, Error> {
        let mine = |connection: &ConnectionRow| connection.slots.iter().position(|known| *known == id);
        let known = |at: usize| Assigned { slot: Slot(at as u32), batch: Batch::default(), _turn: None };
        let seen = self.connection(caller).await?;
        if let Some(at) = mine(&seen.row)
            && self.now().0.saturating_sub(seen.row.used.0) < TOUCH_CONNECTION_MS
        {
            return Ok(known(at));
        }
        // A connection's new sessions would all race for its next number.
        let turn = self.turn(&format!("{}/{}", caller.tenant, caller.connection.row_id())).await;
        let mut connection = self.connection(caller).await?;
        let at = match mine(&connection.row) {
            Some(at) if connection.row.used == self.now() => return Ok(known(at)),
            Some(at) => at,
            None => {
                connection.row.slots.push(id);
                connection.row.slots.len() - 1
            }
        };
        connection.row.used = self.now();
        let slot = Slot(at as u32);
        let key = Key::new(&caller.tenant, Table::Connection, caller.connection.row_id());
        let batch = Batch::default().put(key, rows::write(&connection.row), unchanged(connection.version));
        Ok(Assigned { slot, batch, _turn: Some(turn) })
    }
}
