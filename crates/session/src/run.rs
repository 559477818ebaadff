//! `plasm_run`: plan, run, keep the result, answer.
//! Invariant: the artifact is in the blobs and its row is committed before the answer names it.

use base::{RunId, Slot};
use exec::{Ctx, Outcome};
use lang::plan::Verdict;
use ports::store::{Batch, Expect, Key, Table};

use crate::artifact::Artifact;
use crate::caller::Caller;
use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::load::Session;
use crate::program::Planned;
use crate::rows::{self, LogicalRow, RunRow};
use crate::service::Service;

#[derive(Debug, Clone)]
pub struct RunRequest {
    pub session: String,
    pub program: String,
    /// Run a plan whose verdict is `review` all the same.
    pub force: bool,
}

#[derive(Debug)]
pub struct Ran {
    pub slot: Slot,
    pub planned: Planned,
    pub outcome: Outcome,
    /// The run's number in its session: the last part of `plasm://session/s0/r/3`.
    pub number: u64,
    pub run: RunId,
}

impl Service {
    pub async fn run(&self, caller: &Caller, request: &RunRequest) -> Result<Ran, Error> {
        let session = self.session(caller, &request.session).await?;
        let planned = self.plan_in(&session, &request.program)?;
        if planned.plan.verdict == Verdict::Review && !request.force {
            return Err(Error::Review { explained: planned.explained });
        }
        let calls = self.calls_of(session.id);
        let upstream = self.ports.upstream.as_ref();
        let ctx = Ctx::new(upstream, &caller.tenant, &session.catalogs, &self.limits, &calls);
        let outcome = exec::run(&ctx, &planned.plan).await;
        for failed in outcome.returns.iter().filter_map(|r| r.result.as_ref().err()) {
            tracing::warn!(error = %failed, "a step failed");
        }
        let run = self.new_run_id();
        let number = self.keep(caller, &session, run, (&planned, &outcome)).await?;
        Ok(Ran { slot: session.slot, planned, outcome, number, run })
    }

    async fn keep(
        &self,
        caller: &Caller,
        session: &Session,
        run: RunId,
        (planned, outcome): (&Planned, &Outcome),
    ) -> Result<u64, Error> {
        let finished = self.ports.clock.now();
        let artifact = Artifact::of(run, planned.plan.digest, finished, outcome);
        let artifact = self.ports.blobs.put(&artifact.bytes()).await?;
        let row = rows::write(&RunRow { run, plan: planned.plan.digest, artifact, finished });
        let _turn = self.turn(&session.id.to_string()).await;
        for _ in 0..TRIES {
            let logical =
                self.logical(caller, session.id).await?.ok_or_else(|| Error::NoSession(session.id.to_string()))?;
            let number = logical.row.runs + 1;
            let next = LogicalRow { runs: number, ..logical.row };
            let at = Key::new(&caller.tenant, Table::LogicalSession, session.id.to_string());
            let batch = Batch::default().put(at, rows::write(&next), unchanged(logical.version)).put(
                rows::run_key(&caller.tenant, session.id, number),
                row.clone(),
                Expect::Absent,
            );
            if self.try_commit(batch).await?.is_some() {
                return Ok(number);
            }
        }
        Err(Error::Busy)
    }
}
