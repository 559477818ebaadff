//! The row of a program run that has not ended: its lease, and everything that another process needs to continue it.
//! Invariant: data only. `run/lease.rs` says when the row is written and checked.

use base::{Digest, ExecutionId, LogicalSessionId, Principal, RunId, Slot, TenantId, Timestamp};
use durable::Lease;
use ports::store::{Key, Table};
use serde::{Deserialize, Serialize};

/// A program run that has not ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OpenRunRow {
    pub lease: Lease,
    /// The principal on whose behalf the run makes its calls.
    pub principal: Principal,
    /// The caller's slot, which the texts of the run name.
    pub slot: Slot,
    pub program: String,
    /// The digest of the plan. A run is continued only with the same plan.
    pub plan: Digest,
    /// The time that `now` means in the program.
    pub planned: Timestamp,
    pub started: Timestamp,
    /// The next owner's treatment of the run.
    pub after_crash: AfterCrash,
    /// A caller cancelled the run, perhaps in another process, or left without an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// The row of the claim that is done when the run ends: a plan commit or a request id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimPlace>,
    /// The number of the operation through which callers ask for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<u64>,
    /// The script run that asked for this program. Its end, by a cancellation or its time limit, cancels the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ExecutionId>,
}

/// The treatment of a run whose process died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AfterCrash {
    /// The run goes on against its receipts, because a caller can ask for it: it has a handle, a plan commit or a request id.
    Continue,
    /// The run ends as interrupted. Its only caller was cut off, and would not expect further effects.
    Interrupt,
}

/// The table and id of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClaimPlace {
    pub table: Table,
    pub id: String,
}

impl ClaimPlace {
    pub fn of(key: &Key) -> Self {
        Self { table: key.table, id: key.id.clone() }
    }

    pub fn key(&self, tenant: &TenantId) -> Key {
        Key::new(tenant, self.table, self.id.clone())
    }
}

/// The lease as this process holds it.
#[derive(Debug)]
pub(crate) struct HeldLease {
    pub key: Key,
    pub row: OpenRunRow,
    /// The version of the stored row; 0 if it is not stored yet.
    pub version: u64,
}

pub(crate) fn open_run_key(tenant: &TenantId, session: LogicalSessionId, run: RunId) -> Key {
    Key::new(tenant, Table::OpenRun, format!("{session}/{run}"))
}

/// Returns the session and the run that the id of a row names.
pub(crate) fn parse_open_run_id(id: &str) -> Option<(LogicalSessionId, RunId)> {
    let (session, run) = id.split_once('/')?;
    Some((LogicalSessionId::parse(session).ok()?, RunId::parse(run).ok()?))
}
