//! The result of a run, kept: artifact, run, page handles, and the end of what it was claimed or detached by.
//! Invariant: blob before pointer; everything that names the result is written in one transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Digest, RunId};
use exec::Outcome;
use ports::store::{Batch, Expect, Key, Table};

use super::operation::{OperationRow, OperationState, operation_key};
use super::page::{Rest, more, page_key, rests};
use crate::artifact::{Artifact, bare_key};
use crate::commit::{TRIES, unchanged};
use crate::engine::claim_name;
use crate::error::Error;
use crate::live::Live;
use crate::load::{Session, Versioned};
use crate::program::Planned;
use crate::ran::More;
use crate::rows::{self, Claim, ClaimRow, ConnectionRow, LogicalRow, RunAt, RunRow};
use crate::service::Service;
use access::Caller;

/// How often a result is tried to be kept while the storage fails, and how long between two tries.
const KEEP_TRIES: usize = 3;
const KEEP_AGAIN: Duration = Duration::from_millis(300);

pub(super) struct Kept {
    pub number: u64,
    pub pages: Vec<More>,
}

impl Service {
    /// A storage that fails for a moment loses no result.
    pub(super) async fn keep(
        &self,
        caller: &Caller,
        session: &Session,
        ended: (&Live, &Planned, &Outcome),
    ) -> Result<Kept, Error> {
        let mut tried = 1;
        loop {
            match self.keep_once(caller, session, ended).await {
                Err(error @ (Error::Store(_) | Error::Blobs(_))) if tried < KEEP_TRIES => {
                    tracing::warn!(%error, tried, "a result could not be kept, trying again");
                    self.ports.clock.sleep(KEEP_AGAIN).await;
                    tried += 1;
                }
                kept => return kept,
            }
        }
    }

    async fn keep_once(
        &self,
        caller: &Caller,
        session: &Session,
        (live, planned, outcome): (&Live, &Planned, &Outcome),
    ) -> Result<Kept, Error> {
        let finished = self.ports.clock.now();
        let bytes = Artifact::of(live.run, planned.plan.digest, finished, outcome).bytes();
        // A small result is durable with its run, in the flush that both need anyway: a file of its own costs three more.
        let inline = bytes.len() <= self.limits.row_bytes;
        let artifact = if inline { Digest::of(&bytes) } else { self.ports.blobs.put(&bytes).await? };
        let rests = rests(&planned.plan, outcome);
        let _turn = self.turn(&session.id.to_string()).await;
        for _ in 0..TRIES {
            let logical =
                self.logical(caller, session.id).await?.ok_or_else(|| Error::NoSession(session.id.to_string()))?;
            let (number, first_page) = (logical.row.runs + 1, logical.row.pages + 1);
            let unnamed = logical.row.is_unnamed();
            let pages = logical.row.pages + rests.len() as u64;
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
                pages: rests.iter().zip(first_page..).map(|(rest, page)| (rest.label.clone(), page)).collect(),
                before: before(&rests, first_page),
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
            let bare = self.bare_batch(caller, (unnamed, at), batch).await?;
            batch = bare.0;
            batch = with_handles(batch, (caller, session), (&rests, first_page), (live, number));
            batch = self.end_operation(caller, session, (live, number), batch).await?;
            if self.is_kept(caller, session, (live, number), batch).await? {
                live.is_kept();
                if let (Some(js), Some((key, _))) = (&self.js, &live.claim) {
                    js.changed(&claim_name(&key.id));
                }
                return Ok(Kept { number, pages: more(session.slot, &row) });
            }
        }
        Err(Error::Busy)
    }

    /// A run of a session without an intent also counts among its principal's. Nobody else counts until the guard is dropped.
    async fn bare_batch(
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
        Ok((batch.put(bare_key(caller, number), rows::write(&at), Expect::Any), Some(turn)))
    }

    /// Whether the batch is in the store. Where its answer was lost, the row of the run tells.
    async fn is_kept(
        &self,
        caller: &Caller,
        session: &Session,
        (live, number): (&Live, u64),
        batch: Batch,
    ) -> Result<bool, Error> {
        let error = match self.try_commit(batch).await {
            Ok(committed) => return Ok(committed.is_some()),
            Err(error) => error,
        };
        let found = self.fetch::<RunRow>(&rows::run_key(&caller.tenant, session.id, number)).await.ok().flatten();
        if found.is_some_and(|found| found.row.run == live.run) { Ok(true) } else { Err(error) }
    }

    /// Whoever asks the operation that speaks for this run gets its result from now on.
    async fn end_operation(
        &self,
        caller: &Caller,
        session: &Session,
        (live, number): (&Live, u64),
        batch: Batch,
    ) -> Result<Batch, Error> {
        let Some(operation) = live.operation() else { return Ok(batch) };
        let key = operation_key(caller, session, operation);
        let Some(found): Option<Versioned<OperationRow>> = self.fetch(&key).await? else { return Ok(batch) };
        // Its result is the new owner's to keep.
        if !found.row.is_of(live) {
            return Err(Error::TakenOver(format!("{}_o{operation}", session.slot)));
        }
        let row = OperationRow { state: OperationState::Ended { number }, ..found.row };
        Ok(batch.put(key, rows::write(&row), Expect::Version(found.version)))
    }

    /// The number of a run that ended.
    pub(super) async fn number_of(&self, caller: &Caller, session: &Session, run: RunId) -> Result<Option<u64>, Error> {
        let found: Option<Versioned<RunAt>> = self.fetch(&rows::run_id_key(&caller.tenant, run)).await?;
        Ok(found.filter(|at| at.row.session == session.id).map(|at| at.row.number))
    }
}

/// By the number of a page handle, the steps that its rows have not been through.
fn before(rests: &[Rest], first_page: u64) -> BTreeMap<u64, String> {
    rests.iter().zip(first_page..).filter_map(|(rest, page)| Some((page, rest.before.clone()?))).collect()
}

/// The page handles of a run, and the end of what it was claimed by.
fn with_handles(
    mut batch: Batch,
    (caller, session): (&Caller, &Session),
    (rests, first_page): (&[Rest], u64),
    (live, number): (&Live, u64),
) -> Batch {
    for (Rest { page, .. }, number) in rests.iter().zip(first_page..) {
        batch = batch.put(page_key(caller, session, number), rows::write(page), Expect::Absent);
    }
    if let Some((key, row)) = &live.claim {
        let done = ClaimRow { state: Claim::Done(number), operation: live.operation(), ..row.clone() };
        batch = batch.put(key.clone(), rows::write(&done), Expect::Any);
    }
    batch
}
