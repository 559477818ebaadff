//! The lease of a program run: who may continue it, whether it was cancelled, and what another process needs to continue it.
//! Invariant: a receipt is opened, and a result stored, only in a transaction that checks this row. A process that lost the run
//! therefore sends nothing more and stores nothing.
//!
//! A run without effects whose caller waits for it has no row: nothing is lost when its process dies. The row is written with the
//! claim of the run, with its handle, or with its first receipt, whichever comes first, so it costs no transaction of its own.

use std::time::Duration;

use access::Caller;
use base::{Digest, LogicalSessionId, Principal, RunId, Slot, TenantId, Timestamp};
use durable::Lease;
use ports::store::{self, Batch, Expect, Key, Table, Write};
use serde::{Deserialize, Serialize};

use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::live_runs::LiveRun;
use crate::load::{Session, Versioned};
use crate::rows;
use crate::service::Service;

/// How often a write under a lease is tried while the storage fails, and the pause between two attempts.
pub(crate) const STORE_TRIES: usize = 3;
pub(crate) const STORE_AGAIN: Duration = Duration::from_millis(300);

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
    /// What the next owner does with the run.
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
}

/// What happens to a run whose process died.
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

/// Whether a write under a lease was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnderLease {
    Written,
    /// The run was cancelled. This process still owns it and stores its end.
    Cancelled,
    /// Another process owns the run, or it has ended.
    Lost,
}

pub(crate) fn open_run_key(tenant: &TenantId, session: LogicalSessionId, run: RunId) -> Key {
    Key::new(tenant, Table::OpenRun, format!("{session}/{run}"))
}

/// Returns the session and the run that the id of a row names.
pub(crate) fn parse_open_run_id(id: &str) -> Option<(LogicalSessionId, RunId)> {
    let (session, run) = id.split_once('/')?;
    Some((LogicalSessionId::parse(session).ok()?, RunId::parse(run).ok()?))
}

impl Service {
    /// Returns the lease of a new run, which is not stored yet.
    pub(super) fn new_lease(&self, caller: &Caller, session: &Session, new: NewLease<'_>) -> HeldLease {
        let row = OpenRunRow {
            lease: Lease::first(self.owners.me()),
            principal: caller.principal.clone(),
            slot: session.slot,
            program: new.program.to_owned(),
            plan: new.plan,
            planned: new.planned,
            started: self.now(),
            after_crash: AfterCrash::Interrupt,
            cancelled: false,
            claim: None,
            operation: None,
        };
        HeldLease { key: open_run_key(&caller.tenant, session.id, new.run), row, version: 0 }
    }

    /// Commits writes together with the check that this process owns the run and that it was not cancelled. The first such write
    /// also stores the lease.
    pub(super) async fn write_under_lease(&self, live: &LiveRun, writes: &[Write]) -> Result<UnderLease, Error> {
        let mut failures = 0;
        for _ in 0..TRIES {
            let mut held = live.lease.lock().await;
            if held.row.cancelled {
                return Ok(UnderLease::Cancelled);
            }
            let (key, version) = (held.key.clone(), held.version);
            let mut batch = Batch { writes: writes.to_vec() };
            let outcome = if version == 0 {
                // The lock is kept, so that of two first writes one stores the lease.
                let outcome =
                    self.ports.store.commit(batch.put(key.clone(), rows::write(&held.row), Expect::Absent)).await;
                if outcome.is_ok() {
                    held.version = 1;
                }
                drop(held);
                outcome
            } else {
                // Effects of one run may be concurrent, so the lock is not kept during their transactions.
                drop(held);
                batch = batch.check(key.clone(), Expect::Version(version));
                self.ports.store.commit(batch).await
            };
            match outcome {
                Ok(()) => return Ok(UnderLease::Written),
                Err(store::Error::Conflict(changed)) if changed == key => match self.refresh_lease(live).await? {
                    UnderLease::Written => {}
                    other => return Ok(other),
                },
                Err(error @ store::Error::Conflict(_)) => return Err(error.into()),
                // The writes are the same at each attempt, so one whose answer was lost may be repeated.
                Err(error) => {
                    failures += 1;
                    if failures == STORE_TRIES {
                        return Err(error.into());
                    }
                    self.ports.clock.sleep(STORE_AGAIN).await;
                }
            }
        }
        Err(Error::Busy)
    }

    /// Reads the stored lease after a conflict. `Written` means that this process still owns the run and may go on.
    pub(super) async fn refresh_lease(&self, live: &LiveRun) -> Result<UnderLease, Error> {
        let mut held = live.lease.lock().await;
        let found: Option<Versioned<OpenRunRow>> = self.fetch(&held.key).await?;
        let Some(found) = found.filter(|found| found.row.lease == held.row.lease) else {
            live.lose();
            return Ok(UnderLease::Lost);
        };
        (held.row, held.version) = (found.row, found.version);
        live.set_operation(held.row.operation);
        if held.row.cancelled {
            live.cancel.cancel();
            return Ok(UnderLease::Cancelled);
        }
        Ok(UnderLease::Written)
    }

    /// Stores that the run was cancelled, if its lease is stored. Without a lease the run ends with its process anyway.
    pub(super) async fn store_cancel(&self, live: &LiveRun) -> Result<(), Error> {
        for _ in 0..TRIES {
            let mut held = live.lease.lock().await;
            if held.version == 0 || held.row.cancelled {
                return Ok(());
            }
            let row = OpenRunRow { cancelled: true, ..held.row.clone() };
            let batch = Batch::default().put(held.key.clone(), rows::write(&row), unchanged(held.version));
            if self.try_commit(batch).await?.is_some() {
                (held.row, held.version) = (row, held.version + 1);
                return Ok(());
            }
            drop(held);
            if self.refresh_lease(live).await? == UnderLease::Lost {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }
}

/// What a new lease says about its run.
pub(super) struct NewLease<'a> {
    pub run: RunId,
    pub program: &'a str,
    pub plan: Digest,
    pub planned: Timestamp,
}
