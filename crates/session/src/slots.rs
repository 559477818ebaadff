//! The slots of a connection: `s0`, `s1`, … and the sessions that they name.
//!
//! The row of a connection holds its newest slots. A principal's older slots are moved to rows of their own, two for each slot
//! (by number and by session), so that a new slot costs the same for the first session and for the ten-thousandth.
//! Invariant: a slot is in the connection's row or in rows of its own, never in both, and its number never changes.

use access::{Caller, Connection};
use base::{LogicalSessionId, Slot};
use ports::store::{Batch, Expect, Key, Table};

use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{self, ConnectionRow};
use crate::service::Service;

/// The `used` time of a connection is written no more often than this.
const TOUCH_CONNECTION_MS: i64 = 24 * 60 * 60 * 1000;
/// A connection's row with more slots than this moves the oldest of them to rows of their own.
const MAX_INLINE: usize = 64;
/// The newest slots that stay in the connection's row when others are moved. The list of resources reads no others.
const KEPT_INLINE: usize = 32;
/// The slots that one transaction moves. Rows of earlier versions may have thousands, and are emptied in several transactions.
const MOVED_AT_ONCE: usize = 256;

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
    fn without_write(slot: Slot) -> Self {
        Self { slot, batch: Batch::default(), _turn: None }
    }
}

impl ConnectionRow {
    /// Returns the number of slots that the connection ever assigned, which is the number of the next one.
    fn next_slot(&self) -> u32 {
        self.moved.saturating_add(u32::try_from(self.slots.len()).unwrap_or(u32::MAX))
    }

    /// Returns the session in a slot, if the slot is in this row.
    fn inline_session(&self, slot: Slot) -> Option<LogicalSessionId> {
        self.slots.get(slot.0.checked_sub(self.moved)? as usize).copied()
    }

    /// Returns the slot of a session, if the slot is in this row.
    fn inline_slot(&self, session: LogicalSessionId) -> Option<Slot> {
        let index = self.slots.iter().position(|known| *known == session)?;
        Some(Slot(self.moved.saturating_add(u32::try_from(index).ok()?)))
    }

    /// Returns the slots of this row with their sessions, the newest first.
    pub fn newest_slots(&self) -> impl Iterator<Item = (Slot, LogicalSessionId)> {
        let numbered = (self.moved..).map(Slot).zip(self.slots.iter().copied());
        numbered.collect::<Vec<_>>().into_iter().rev()
    }

    /// Moves the oldest slots of this row to rows of their own, if there are too many.
    fn move_oldest(&mut self, caller: &Caller, mut batch: Batch) -> Batch {
        if self.slots.len() <= MAX_INLINE {
            return batch;
        }
        let count = (self.slots.len() - KEPT_INLINE).min(MOVED_AT_ONCE);
        for session in self.slots.drain(..count) {
            let slot = Slot(self.moved);
            // No version is expected: the version of the connection's row, in the same transaction, guards both.
            batch = batch.put(slot_key(caller, slot), rows::write(&session), Expect::Any).put(
                session_slot_key(caller, session),
                rows::write(&slot),
                Expect::Any,
            );
            self.moved = self.moved.saturating_add(1);
        }
        batch
    }
}

/// Returns the key of the row that leads from a moved slot to its session.
fn slot_key(caller: &Caller, slot: Slot) -> Key {
    Key::new(&caller.tenant, Table::Connection, format!("{}/s/{:010}", caller.connection.row_id(), slot.0))
}

/// Returns the key of the row that leads from a session to its moved slot.
fn session_slot_key(caller: &Caller, session: LogicalSessionId) -> Key {
    Key::new(&caller.tenant, Table::Connection, format!("{}/i/{session}", caller.connection.row_id()))
}

impl Service {
    /// Returns the session in a slot of the caller's connection.
    pub(crate) async fn session_in_slot(&self, caller: &Caller, slot: Slot) -> Result<LogicalSessionId, Error> {
        // Only slots of principals are cached, because the slots of a transport are deleted with the transport.
        let owner = match &caller.connection {
            Connection::Principal(principal) => Some((caller.tenant.clone(), principal.clone())),
            Connection::Transport(_) | Connection::Execute(_) => None,
        };
        if let Some(id) = owner.as_ref().and_then(|owner| self.slot_cache.get(owner, slot, self.now())) {
            return Ok(id);
        }
        // Taken before the read, so that the cached slots are at least as new as this time.
        let now = self.now();
        let row = self.connection(caller).await?.row;
        let found = match row.inline_session(slot) {
            Some(id) => Some(id),
            None if slot.0 < row.moved => self.fetch(&slot_key(caller, slot)).await?.map(|found| found.row),
            None => None,
        };
        let id = found.ok_or(Error::UnknownSlot { slot })?;
        if let Some(owner) = owner {
            self.slot_cache.put(owner, slot, id, now);
        }
        Ok(id)
    }

    /// Returns the slot of a session on a connection, if it has one.
    pub(crate) async fn slot_of(
        &self,
        caller: &Caller,
        connection: &ConnectionRow,
        session: LogicalSessionId,
    ) -> Result<Option<Slot>, Error> {
        if let Some(slot) = connection.inline_slot(session) {
            return Ok(Some(slot));
        }
        if connection.moved == 0 {
            return Ok(None);
        }
        Ok(self.fetch(&session_slot_key(caller, session)).await?.map(|found| found.row))
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
        if self.now().0.saturating_sub(current.row.used.0) < TOUCH_CONNECTION_MS
            && let Some(slot) = self.slot_of(caller, &current.row, id).await?
        {
            return Ok(SlotAssignment::without_write(slot));
        }
        // All new sessions of a connection compete for its next number, so callers of this process take turns.
        let turn = self.turn(&format!("{}/{}", caller.tenant, caller.connection.row_id())).await;
        let Versioned { mut row, version } = self.connection(caller).await?;
        let mut batch = Batch::default();
        let slot = match self.slot_of(caller, &row, id).await? {
            // Another caller assigned or touched it in this very millisecond, so nothing is left to write.
            Some(slot) if row.used == self.now() => return Ok(SlotAssignment::without_write(slot)),
            Some(slot) => slot,
            None => {
                let slot = Slot(row.next_slot());
                row.slots.push(id);
                match &caller.connection {
                    Connection::Principal(_) => batch = row.move_oldest(caller, batch),
                    // These slots are deleted with one row, so they stay in it and are bounded instead.
                    Connection::Transport(_) | Connection::Execute(_) => {
                        let most = self.limits.slots_per_connection;
                        if row.slots.len() > most {
                            return Err(Error::TooManySlots { most });
                        }
                    }
                }
                slot
            }
        };
        row.used = self.now();
        let key = Key::new(&caller.tenant, Table::Connection, caller.connection.row_id());
        let batch = batch.put(key, rows::write(&row), unchanged(version));
        Ok(SlotAssignment { slot, batch, _turn: Some(turn) })
    }
}
