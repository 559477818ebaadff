//! Stores the result of a run: artifact, run, page handles, and the end of its claim and operation.
//! Invariant: blob before pointer; every row that refers to the result is written in one transaction.

use std::collections::BTreeMap;

use access::Caller;
use base::{Digest, RunId};
use exec::Outcome;
use ports::store::{Batch, Expect, Key, Table};

use super::operation::{OperationRow, OperationState, operation_key};
use super::page::{UnreadList, page_handles, page_key, unread_lists};
use crate::artifact::{Artifact, principal_run_key};
use crate::commit::{STORE_AGAIN, STORE_TRIES, TRIES, unchanged};
use crate::engine::claim_name;
use crate::error::Error;
use crate::live_runs::LiveRun;
use crate::load::{Session, Versioned};
use crate::open_run::OpenRunRow;
use crate::program::PlannedProgram;
use crate::rows::{self, Claim, ClaimRow, ConnectionRow, LogicalRow, RunAt, RunRow};
use crate::run_result::PageHandle;
use crate::service::Service;

/// The number and the page handles of a stored run.
pub(super) struct StoredResult {
    pub number: u64,
    pub pages: Vec<PageHandle>,
}

impl Service {
    /// Stores a result, with retries, so that a short failure of the storage loses nothing.
    pub(super) async fn store_result(
        &self,
        caller: &Caller,
        session: &Session,
        ended: (&LiveRun, &PlannedProgram, &Outcome),
    ) -> Result<StoredResult, Error> {
        let mut tried = 1;
        loop {
            match self.try_store_result(caller, session, ended).await {
                Err(error @ (Error::Store(_) | Error::Blobs(_))) if tried < STORE_TRIES => {
                    tracing::warn!(%error, tried, "a result could not be stored and is retried");
                    self.ports.clock.sleep(STORE_AGAIN).await;
                    tried += 1;
                    // The answer of the store may have been lost after the result was stored.
                    if let Some(number) = self.run_number(caller, session, ended.0.run).await.ok().flatten() {
                        let key = rows::run_key(&caller.tenant, session.id, number);
                        let row: Option<Versioned<RunRow>> = self.fetch(&key).await?;
                        ended.0.mark_stored();
                        let pages = row.map(|row| page_handles(session.slot, &row.row)).unwrap_or_default();
                        return Ok(StoredResult { number, pages });
                    }
                }
                kept => return kept,
            }
        }
    }

    async fn try_store_result(
        &self,
        caller: &Caller,
        session: &Session,
        (live, planned, outcome): (&LiveRun, &PlannedProgram, &Outcome),
    ) -> Result<StoredResult, Error> {
        let finished = self.ports.clock.now();
        let bytes = Artifact::of(live.run, planned.plan.digest, finished, outcome).bytes();
        // A small result is stored as a row of the same transaction, which needs a flush anyway. A separate file
        // would cost three more.
        let inline = bytes.len() <= self.limits.row_bytes;
        let artifact = if inline { Digest::of(&bytes) } else { self.ports.blobs.put(&bytes).await? };
        let unread_lists = unread_lists(&planned.plan, outcome);
        let _turn = self.turn(&session.id.to_string()).await;
        for _ in 0..TRIES {
            let logical =
                self.logical(caller, session.id).await?.ok_or_else(|| Error::NoSession(session.id.to_string()))?;
            let (number, first_page) = (logical.row.runs + 1, logical.row.pages + 1);
            let unnamed = logical.row.is_unnamed();
            let pages = logical.row.pages + unread_lists.len() as u64;
            let next = LogicalRow { runs: number, pages, used: finished, ..logical.row };
            let at = Key::new(&caller.tenant, Table::LogicalSession, session.id.to_string());
            let row = RunRow {
                run: live.run,
                execute: Some(session.binding.clone()),
                program: live.program.clone(),
                started: Some(live.started),
                pinned: false,
                plan: planned.plan.digest,
                artifact,
                inline,
                finished,
                pages: unread_lists.iter().zip(first_page..).map(|(rest, page)| (rest.label.clone(), page)).collect(),
                unapplied_steps: unapplied_steps(&unread_lists, first_page),
            };
            let mut batch = Batch::default().put(at, rows::write(&next), unchanged(logical.version)).put(
                rows::run_key(&caller.tenant, session.id, number),
                rows::write(&row),
                Expect::Absent,
            );
            if inline {
                let key = rows::artifact_key(&caller.tenant, session.id, number);
                batch = batch.put(key, bytes.clone(), Expect::Absent);
            }
            let at = RunAt { session: session.id, number };
            batch = batch.put(rows::run_id_key(&caller.tenant, live.run), rows::write(&at), Expect::Any);
            let bare = self.count_principal_run(caller, (unnamed, at), batch).await?;
            batch = bare.0;
            for (UnreadList { page, .. }, number) in unread_lists.iter().zip(first_page..) {
                batch = batch.put(page_key(caller, session, number), rows::write(page), Expect::Absent);
            }
            let lease = live.lease.lock().await;
            if live.is_lost() {
                return Err(self.taken_over(session, live));
            }
            batch = self.end_claim(caller, (&lease.row, live.run), number, batch).await?;
            batch = self.end_operation(caller, session, (&lease.row, number), batch).await?;
            if lease.version > 0 {
                batch = batch.delete(lease.key.clone(), Expect::Version(lease.version));
            }
            let claim = lease.row.claim.clone();
            drop(lease);
            if self.commit_result(caller, session, (live, number), batch).await? {
                live.mark_stored();
                if let (Some(js), Some(claim)) = (&self.js, &claim) {
                    js.notify(&claim_name(&claim.id));
                }
                return Ok(StoredResult { number, pages: page_handles(session.slot, &row) });
            }
            // The lease may be what changed: another process cancelled the run, gave it a handle, or took it over.
            self.reread_lease(live).await?;
        }
        Err(Error::Busy)
    }

    /// Numbers a run without an intent among its principal's runs. The guard prevents other callers of this process
    /// from taking the same number.
    async fn count_principal_run(
        &self,
        caller: &Caller,
        (unnamed, at): (bool, RunAt),
        batch: Batch,
    ) -> Result<(Batch, Option<tokio::sync::OwnedMutexGuard<()>>), Error> {
        if !unnamed {
            return Ok((batch, None));
        }
        let principal = caller.as_principal();
        let row_id = principal.connection.row_id();
        let turn = self.turn(&format!("{}/{row_id}", caller.tenant)).await;
        let connection = self.connection(&principal).await?;
        let number = connection.row.runs + 1;
        let next = ConnectionRow { runs: number, ..connection.row };
        let key = Key::new(&caller.tenant, Table::Connection, row_id);
        let batch = batch.put(key, rows::write(&next), unchanged(connection.version));
        Ok((batch.put(principal_run_key(caller, number), rows::write(&at), Expect::Any), Some(turn)))
    }

    /// Commits the result. After a lost answer, the row of the run shows whether the batch was applied.
    async fn commit_result(
        &self,
        caller: &Caller,
        session: &Session,
        (live, number): (&LiveRun, u64),
        batch: Batch,
    ) -> Result<bool, Error> {
        let error = match self.try_commit(batch).await {
            Ok(committed) => return Ok(committed.is_some()),
            Err(error) => error,
        };
        let found = self.fetch::<RunRow>(&rows::run_key(&caller.tenant, session.id, number)).await.ok().flatten();
        if found.is_some_and(|found| found.row.run == live.run) { Ok(true) } else { Err(error) }
    }

    /// Reads the lease again after a lost race, if it is stored.
    async fn reread_lease(&self, live: &LiveRun) -> Result<(), Error> {
        if live.lease.lock().await.version > 0 {
            self.refresh_lease(live).await?;
        }
        Ok(())
    }

    /// Returns the error of a run that another process owns now. That process stores its result.
    fn taken_over(&self, session: &Session, live: &LiveRun) -> Error {
        Error::TakenOver(live.operation().map(|number| format!("{}_o{number}", session.slot)))
    }

    /// Marks the run's claim as done, so that callers with the same plan commit or request id get the result.
    async fn end_claim(
        &self,
        caller: &Caller,
        (lease, run): (&OpenRunRow, RunId),
        number: u64,
        batch: Batch,
    ) -> Result<Batch, Error> {
        let Some(claim) = &lease.claim else { return Ok(batch) };
        let key = claim.key(&caller.tenant);
        let found: Option<Versioned<ClaimRow>> = self.fetch(&key).await?;
        // A claim that is not this run's any more expired and was collected while the run went on.
        let Some(found) = found.filter(|found| found.row.state == Claim::Claimed(run)) else { return Ok(batch) };
        let done = ClaimRow { state: Claim::Done(number), operation: lease.operation, ..found.row };
        Ok(batch.put(key, rows::write(&done), Expect::Version(found.version)))
    }

    /// Marks the run's operation as ended, so that callers of its handle get the result.
    async fn end_operation(
        &self,
        caller: &Caller,
        session: &Session,
        (lease, number): (&OpenRunRow, u64),
        batch: Batch,
    ) -> Result<Batch, Error> {
        let Some(operation) = lease.operation else { return Ok(batch) };
        let key = operation_key(caller, session, operation);
        let Some(found): Option<Versioned<OperationRow>> = self.fetch(&key).await? else { return Ok(batch) };
        let row = OperationRow { state: OperationState::Ended { number }, ..found.row };
        Ok(batch.put(key, rows::write(&row), Expect::Version(found.version)))
    }

    /// Returns the number of a run that has ended.
    pub(super) async fn run_number(
        &self,
        caller: &Caller,
        session: &Session,
        run: RunId,
    ) -> Result<Option<u64>, Error> {
        let found: Option<Versioned<RunAt>> = self.fetch(&rows::run_id_key(&caller.tenant, run)).await?;
        Ok(found.filter(|at| at.row.session == session.id).map(|at| at.row.number))
    }
}

/// By the number of a page handle: the steps that were not applied to the rest of the list.
fn unapplied_steps(unread_lists: &[UnreadList], first_page: u64) -> BTreeMap<u64, String> {
    unread_lists
        .iter()
        .zip(first_page..)
        .filter_map(|(rest, page)| Some((page, rest.unapplied_steps.clone()?)))
        .collect()
}
