//! What a plan with a `review` verdict needs before it runs: a commit that a dry run gave, or `force`.
//! Invariant: a claim is durable before anything leaves, and is made once; whoever comes later gets what became of it.

use std::collections::BTreeMap;

use base::{Digest, RunId};
use lang::plan::Verdict;
use ports::store::{Batch, Expect, Key, Table};

use super::page::PageRow;
use crate::commit::TRIES;
use crate::error::{Error, JsError};
use crate::load::{Session, Versioned};
use crate::program::Planned;
use crate::ran::RunRequest;
use crate::rows::{self, Claim, ClaimRow};
use crate::service::Service;
use access::Caller;

/// An unused commit is good for this long.
const GOOD_FOR_MS: i64 = 10 * 60 * 1000;
const REQUEST_ID_BYTES: usize = 200;

/// Whether a run may start.
pub(super) enum Gate {
    Go(Box<Ticket>),
    /// It ran already, with this number.
    Ran(u64),
    /// It was started by this run and has no result yet; the operation that speaks for it, where there is one.
    Started(RunId, Option<u64>),
}

/// Leave to run one plan.
pub(super) struct Ticket {
    pub planned: Planned,
    pub run: RunId,
    pub program: String,
    /// Lists that it reads on, by handle.
    pub pages: BTreeMap<String, PageRow>,
    /// What is marked as done when the run ends.
    pub claim: Option<(Key, ClaimRow)>,
}

impl Service {
    pub(super) async fn gate(&self, caller: &Caller, session: &Session, request: &RunRequest) -> Result<Gate, Error> {
        if let Some(commit) = &request.plan_commit_ref {
            return self.by_commit(caller, session, commit, request).await;
        }
        let program = request.program.as_deref().ok_or(Error::NoProgram)?;
        let mut planned = self.plan_in(session, program, self.now())?;
        if planned.plan.verdict == Verdict::Review {
            self.check_fence(session, &planned)?;
            if !request.force {
                self.keep_plan(caller, session, (&mut planned, program)).await?;
                return Err(Error::Review { explained: planned.explained, commit: planned.commit.unwrap_or_default() });
            }
            if let Some(id) = &request.request_id {
                return self.by_request(caller, session, id, (planned, program)).await;
            }
        }
        let pages = self.pages_of(caller, session, &planned.plan).await?;
        let (run, program) = (self.new_run_id(), program.to_owned());
        Ok(Gate::Go(Box::new(Ticket { planned, run, program, pages, claim: None })))
    }

    /// A fork that nobody promoted changes nothing.
    fn check_fence(&self, session: &Session, planned: &Planned) -> Result<(), Error> {
        if session.logical.row.fenced && !planned.plan.bounds.effects.is_empty() {
            return Err(JsError::Fenced { explained: planned.explained.clone() }.into());
        }
        Ok(())
    }

    async fn by_commit(
        &self,
        caller: &Caller,
        session: &Session,
        commit: &str,
        request: &RunRequest,
    ) -> Result<Gate, Error> {
        let unknown = || Error::NoCommit(base::printable(commit, 40));
        let number = rows::commit_number(commit.trim().trim_matches('`')).ok_or_else(unknown)?;
        let key = commit_key(caller, session, number);
        for _ in 0..TRIES {
            let Some(found): Option<Versioned<ClaimRow>> = self.fetch(&key).await? else {
                let commits = self.logical(caller, session.id).await?.map_or(0, |row| row.row.commits);
                return Err(if number < commits {
                    Error::CommitExpired(base::printable(commit, 40))
                } else {
                    unknown()
                });
            };
            let row = found.row;
            let program = request.program.as_deref().unwrap_or(&row.program);
            let planned = self.plan_in(session, program, row.planned)?;
            if planned.plan.digest != row.plan {
                return Err(Error::OtherPlan(base::printable(commit, 40)));
            }
            match row.state {
                Claim::Done(number) => return Ok(Gate::Ran(number)),
                Claim::Claimed(run) => return Ok(Gate::Started(run, row.operation)),
                Claim::Unused if self.now().0 > row.planned.0.saturating_add(GOOD_FOR_MS) => {
                    return Err(Error::CommitExpired(base::printable(commit, 40)));
                }
                Claim::Unused => self.check_fence(session, &planned)?,
            }
            // All that can fail comes before the claim, which is good for one run.
            let pages = self.pages_of(caller, session, &planned.plan).await?;
            let run = self.new_run_id();
            let claimed = ClaimRow { state: Claim::Claimed(run), owner: self.instance(), ..row };
            if self.claim(&key, &claimed, Expect::Version(found.version)).await? {
                let program = claimed.program.clone();
                return Ok(Gate::Go(Box::new(Ticket { planned, run, program, pages, claim: Some((key, claimed)) })));
            }
        }
        Err(Error::Busy)
    }

    /// The same id returns what the first call with it did.
    async fn by_request(
        &self,
        caller: &Caller,
        session: &Session,
        id: &str,
        (planned, program): (Planned, &str),
    ) -> Result<Gate, Error> {
        if id.is_empty() || id.len() > REQUEST_ID_BYTES {
            return Err(Error::BadRequestId { max: REQUEST_ID_BYTES });
        }
        let key = request_key(caller, session, id);
        let pages = self.pages_of(caller, session, &planned.plan).await?;
        let run = self.new_run_id();
        let (plan, now, program) = (planned.plan.digest, planned.now, program.to_owned());
        let (state, owner) = (Claim::Claimed(run), self.instance());
        let claimed = ClaimRow { plan, program: program.clone(), planned: now, state, operation: None, owner };
        if self.claim(&key, &claimed, Expect::Absent).await? {
            return Ok(Gate::Go(Box::new(Ticket { planned, run, program, pages, claim: Some((key, claimed)) })));
        }
        let found: Versioned<ClaimRow> = self.fetch(&key).await?.ok_or(Error::Busy)?;
        if found.row.program != program {
            return Err(Error::OtherPlan(base::printable(id, 80)));
        }
        Ok(match found.row.state {
            Claim::Done(number) => Gate::Ran(number),
            Claim::Claimed(run) => Gate::Started(run, found.row.operation),
            Claim::Unused => return Err(Error::Busy),
        })
    }
}

impl Service {
    /// Whether it is this run's now. An answer that was lost is asked for once more: the run's id is in the row, and nobody else's.
    async fn claim(&self, key: &Key, claimed: &ClaimRow, expect: Expect) -> Result<bool, Error> {
        let batch = Batch::default().put(key.clone(), rows::write(claimed), expect);
        let error = match self.try_commit(batch).await {
            Ok(made) => return Ok(made.is_some()),
            Err(error) => error,
        };
        let found: Option<Versioned<ClaimRow>> = self.fetch(key).await.ok().flatten();
        if found.is_some_and(|found| found.row.state == claimed.state) { Ok(true) } else { Err(error) }
    }

    /// Between a claim and the start of its run nobody in this process looks at it.
    pub(crate) async fn claim_turn(
        &self,
        session: &Session,
        request: &RunRequest,
    ) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        let by = request.plan_commit_ref.as_ref().or(request.request_id.as_ref())?;
        Some(self.turn(&format!("{}/{}", session.id, Digest::of(by.trim().as_bytes()))).await)
    }
}

/// Any text may be an id; its row is found by its digest.
pub(crate) fn request_key(caller: &Caller, session: &Session, id: &str) -> Key {
    Key::new(&caller.tenant, Table::Request, format!("{}/{}", session.id, Digest::of(id.as_bytes())))
}

fn commit_key(caller: &Caller, session: &Session, number: u64) -> Key {
    rows::commit_key(&caller.tenant, session.id, number)
}
