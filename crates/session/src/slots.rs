//! The slots of principals as they were a moment ago.
//! Invariant: a principal's slots are only ever added to, so what stands here is true, if perhaps not all; and it is read anew
//! every second, in case the storage under us became another one.
//!
//! Every call of a session names it by its slot, and the row with all slots of a principal was a twentieth of a short run:
//! each commit makes a reader of SQLite forget its pages, and a client with many sessions has a long row.

use std::collections::HashMap;
use std::sync::Mutex;

use base::{LogicalSessionId, Principal, Slot, TenantId, Timestamp};

use crate::shared::lock;

const KEPT_MS: i64 = 1_000;
/// Principals whose slots are remembered; they can be read again.
const REMEMBERED: usize = 1_000;

#[derive(Default)]
pub(crate) struct Slots(Mutex<HashMap<(TenantId, Principal), Seen>>);

struct Seen {
    at: Timestamp,
    slots: Box<[LogicalSessionId]>,
}

impl Slots {
    pub fn get(&self, of: &(TenantId, Principal), slot: Slot, now: Timestamp) -> Option<LogicalSessionId> {
        let known = lock(&self.0);
        let seen = known.get(of).filter(|seen| (0..KEPT_MS).contains(&now.0.saturating_sub(seen.at.0)))?;
        seen.slots.get(slot.0 as usize).copied()
    }

    pub fn put(&self, of: (TenantId, Principal), slots: &[LogicalSessionId], at: Timestamp) {
        let mut known = lock(&self.0);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(of, Seen { at, slots: slots.into() });
    }
}
