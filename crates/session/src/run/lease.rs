//! The lease of a program run: who may continue it, whether it was cancelled, and what another process needs to continue it.
//! Invariant: a receipt is opened, and a result stored, only in a transaction that checks this row. A process that lost the run
//! therefore sends nothing more and stores nothing.
//!
//! A run without effects whose caller waits for it has no row: nothing is lost when its process dies. The row is written with the
//! claim of the run, with its handle, or with its first receipt, whichever comes first, so it costs no transaction of its own.

use access::Caller;
use base::{Digest, ExecutionId, RunId, Timestamp};
use durable::Lease;
use ports::store::{self, Batch, Expect, Write};

use crate::commit::{STORE_AGAIN, STORE_TRIES, TRIES, unchanged};
use crate::engine::rows as js_rows;
use crate::error::Error;
use crate::live_runs::LiveRun;
use crate::load::{Session, Versioned};
use crate::open_run::{AfterCrash, HeldLease, OpenRunRow, open_run_key};
use crate::rows;
use crate::service::Service;

/// Whether a write under a lease was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnderLease {
    Written,
    /// The run was cancelled. This process still owns it and stores its end.
    Cancelled,
    /// Another process owns the run, or it has ended.
    Lost,
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
            parent: new.parent,
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
            let mut parent_key = None;
            if let Some(parent) = held.row.parent {
                let open = js_rows::open_key(&key.tenant, parent);
                let Some(found) = self.ports.store.get(&open).await? else {
                    drop(held);
                    tracing::info!(run = %live.run, %parent, "a program was cancelled, because the script run that asked for it has ended");
                    live.cancel.cancel();
                    return Ok(UnderLease::Cancelled);
                };
                batch = batch.check(open.clone(), Expect::Version(found.version));
                parent_key = Some(open);
            }
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
                // The script run has ended or has another owner, which the next attempt sees.
                Err(store::Error::Conflict(changed)) if parent_key.as_ref() == Some(&changed) => {}
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

/// The properties of a run that its new lease records.
pub(super) struct NewLease<'a> {
    pub run: RunId,
    pub program: &'a str,
    pub plan: Digest,
    pub planned: Timestamp,
    /// The script run that asks for the program.
    pub parent: Option<ExecutionId>,
}
