//! Page handles: where a list that a run left unread goes on.
//! Invariant: a handle belongs to its session; one of another session's slot is refused with the right one named.

use std::collections::BTreeMap;

use base::Slot;
use exec::Continuation;
use lang::plan::{Plan, StepKind};
use ports::store::{Key, Table};

use crate::caller::Caller;
use crate::error::Error;
use crate::load::{Session, Versioned};
use crate::service::Service;

/// `s0_pg3`, `s0_o1`: a slot, a kind and a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle {
    pub slot: Slot,
    pub number: u64,
}

impl Handle {
    pub fn parse(text: &str, kind: &str) -> Option<Self> {
        let (slot, rest) = text.trim().trim_matches('`').split_once('_')?;
        let number = rest.strip_prefix(kind)?.parse().ok()?;
        Some(Self { slot: slot.parse().ok()?, number })
    }
}

pub(crate) fn page_handle(slot: Slot, number: u64) -> String {
    format!("{slot}_pg{number}")
}

pub(crate) fn page_key(caller: &Caller, session: &Session, number: u64) -> Key {
    Key::new(&caller.tenant, Table::Page, format!("{}/{number:010}", session.id))
}

impl Service {
    /// The places in lists that a plan reads on from.
    pub(super) async fn pages_of(
        &self,
        caller: &Caller,
        session: &Session,
        plan: &Plan,
    ) -> Result<BTreeMap<String, Continuation>, Error> {
        let mut found = BTreeMap::new();
        for step in &plan.steps {
            let StepKind::Page { handle, .. } = &step.kind else { continue };
            let unknown = || Error::NoHandle(handle.chars().take(60).collect());
            let parsed = Handle::parse(handle, "pg").ok_or_else(unknown)?;
            own(session, parsed.slot, handle)?;
            let row: Option<Versioned<Continuation>> = self.fetch(&page_key(caller, session, parsed.number)).await?;
            found.insert(handle.clone(), row.ok_or_else(unknown)?.row);
        }
        Ok(found)
    }
}

/// A handle with another slot's prefix is a slip of the pen that would read another session's list.
pub(super) fn own(session: &Session, slot: Slot, handle: &str) -> Result<(), Error> {
    if slot == session.slot {
        return Ok(());
    }
    let right = handle.split_once('_').map(|(_, rest)| format!("{}_{rest}", session.slot)).unwrap_or_default();
    Err(Error::ForeignHandle { handle: handle.chars().take(60).collect(), right })
}
