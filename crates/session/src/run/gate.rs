//! The approval that a plan with the verdict `review` needs before it runs: a plan commit of a dry run, or `force`.
//! Invariant: a claim is durable before the first call of the run, and is made once. Later callers get the outcome of
//! the claimed run.

use std::collections::BTreeMap;

use access::Caller;
use base::{Digest, RunId};
use lang::plan::Verdict;
use ports::store::{Batch, Expect, Key, Table};

use super::lease::NewLease;
use super::page::PageRow;
use crate::commit::TRIES;
use crate::error::{Error, JsError};
use crate::live_runs::Starting;
use crate::load::{Session, Versioned};
use crate::open_run::{AfterCrash, ClaimPlace, HeldLease};
use crate::program::PlannedProgram;
use crate::rows::{self, Claim, ClaimRow};
use crate::run_result::RunRequest;
use crate::service::Service;

/// How long an unused plan commit is valid.
const GOOD_FOR_MS: i64 = 10 * 60 * 1000;
const REQUEST_ID_BYTES: usize = 200;

/// Whether a run may start.
pub(super) enum Gate {
    Go(Box<Ticket>),
    /// The claim's run has ended, with this number.
    AlreadyRan(u64),
    /// The claim's run has no result yet.
    Started(RunId, Box<ClaimRow>, Key),
}

/// The permission to run one plan.
pub(super) struct Ticket {
    pub planned: PlannedProgram,
    pub run: RunId,
    pub program: String,
    /// The lists that the plan reads on from, by page handle.
    pub pages: BTreeMap<String, PageRow>,
    /// The lease of the run, which names the claim that is marked as done when the run ends.
    pub lease: HeldLease,
    /// Held until the run is listed.
    pub starting: Starting,
}

impl Service {
    /// Decides whether the requested plan may run, and claims it if it needs an approval.
    pub(super) async fn gate(&self, caller: &Caller, session: &Session, request: &RunRequest) -> Result<Gate, Error> {
        if let Some(commit) = &request.plan_commit_ref {
            return self.gate_by_commit(caller, session, commit, request).await;
        }
        let program = request.program.as_deref().ok_or(Error::NoProgram)?;
        let mut planned = self.plan_in(session, program, self.now())?;
        if planned.plan.verdict == Verdict::Review {
            self.check_fence(session, &planned)?;
            if !request.force {
                self.store_plan(caller, session, &mut planned, program).await?;
                return Err(Error::Review { explained: planned.explained, commit: planned.commit.unwrap_or_default() });
            }
            if let Some(id) = &request.request_id {
                return self.gate_by_request_id(caller, session, (id, request), (planned, program)).await;
            }
        }
        let pages = self.pages_of(caller, session, &planned.plan).await?;
        let (run, starting) = self.new_run()?;
        let (plan, planned_at) = (planned.plan.digest, planned.now);
        let lease = self.new_lease(
            caller,
            session,
            NewLease { run, program, plan, planned: planned_at, parent: request.parent },
        );
        Ok(Gate::Go(Box::new(Ticket { planned, run, program: program.to_owned(), pages, lease, starting })))
    }

    /// Refuses a plan with effects in a fork that was not promoted.
    fn check_fence(&self, session: &Session, planned: &PlannedProgram) -> Result<(), Error> {
        if session.logical.row.fenced && !planned.plan.bounds.effects.is_empty() {
            return Err(JsError::Fenced { explained: planned.explained.clone() }.into());
        }
        Ok(())
    }

    /// Claims a plan commit. The program must still compile to the plan that was shown.
    async fn gate_by_commit(
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
                Claim::Done(number) => return Ok(Gate::AlreadyRan(number)),
                Claim::Claimed(run) => return Ok(Gate::Started(run, Box::new(row), key)),
                Claim::Unused if self.now().0 > row.planned.0.saturating_add(GOOD_FOR_MS) => {
                    return Err(Error::CommitExpired(base::printable(commit, 40)));
                }
                Claim::Unused => self.check_fence(session, &planned)?,
            }
            // Everything that can fail comes before the claim, since a claim allows only one run.
            let pages = self.pages_of(caller, session, &planned.plan).await?;
            let (run, starting) = self.new_run()?;
            let claimed = ClaimRow { state: Claim::Claimed(run), ..row };
            let (plan, planned_at) = (claimed.plan, claimed.planned);
            let new = NewLease { run, program: &claimed.program, plan, planned: planned_at, parent: request.parent };
            let mut lease = self.new_lease(caller, session, new);
            if self.claim(&key, &claimed, Expect::Version(found.version), &mut lease).await? {
                return Ok(Gate::Go(Box::new(Ticket {
                    planned,
                    run,
                    program: claimed.program,
                    pages,
                    lease,
                    starting,
                })));
            }
        }
        Err(Error::Busy)
    }

    /// Claims a request id. A second call with the same id gets the outcome of the first.
    async fn gate_by_request_id(
        &self,
        caller: &Caller,
        session: &Session,
        (id, request): (&str, &RunRequest),
        (planned, program): (PlannedProgram, &str),
    ) -> Result<Gate, Error> {
        if id.is_empty() || id.len() > REQUEST_ID_BYTES {
            return Err(Error::BadRequestId { max: REQUEST_ID_BYTES });
        }
        let key = request_key(caller, session, id);
        let pages = self.pages_of(caller, session, &planned.plan).await?;
        let (run, starting) = self.new_run()?;
        let claimed = ClaimRow {
            plan: planned.plan.digest,
            program: program.to_owned(),
            planned: planned.now,
            state: Claim::Claimed(run),
            operation: None,
            owner: None,
        };
        let (plan, planned_at) = (claimed.plan, claimed.planned);
        let new = NewLease { run, program, plan, planned: planned_at, parent: request.parent };
        let mut lease = self.new_lease(caller, session, new);
        if self.claim(&key, &claimed, Expect::Absent, &mut lease).await? {
            return Ok(Gate::Go(Box::new(Ticket { planned, run, program: claimed.program, pages, lease, starting })));
        }
        let found: Versioned<ClaimRow> = self.fetch(&key).await?.ok_or(Error::Busy)?;
        if found.row.program != program {
            return Err(Error::OtherPlan(base::printable(id, 80)));
        }
        Ok(match found.row.state {
            Claim::Done(number) => Gate::AlreadyRan(number),
            Claim::Claimed(run) => Gate::Started(run, Box::new(found.row), key),
            Claim::Unused => return Err(Error::Busy),
        })
    }
}

impl Service {
    /// Returns the id of a new run, which no other task of this process takes for one that lost its driver.
    fn new_run(&self) -> Result<(RunId, Starting), Error> {
        let run = self.new_run_id();
        // A new id is random, so it is not in use.
        let starting = self.live_runs.begin(run).ok_or(Error::Busy)?;
        Ok((run, starting))
    }

    /// Writes a claim together with the lease of its run, and returns whether this run got it. After a lost answer the row is
    /// read: only this run can have written its own id.
    async fn claim(&self, key: &Key, claimed: &ClaimRow, expect: Expect, lease: &mut HeldLease) -> Result<bool, Error> {
        lease.row.after_crash = AfterCrash::Continue;
        lease.row.claim = Some(ClaimPlace::of(key));
        let batch = Batch::default().put(key.clone(), rows::write(claimed), expect).put(
            lease.key.clone(),
            rows::write(&lease.row),
            Expect::Absent,
        );
        let committed = match self.try_commit(batch).await {
            Ok(committed) => committed.is_some(),
            Err(error) => {
                let found: Option<Versioned<ClaimRow>> = self.fetch(key).await.ok().flatten();
                if found.is_none_or(|found| found.row.state != claimed.state) {
                    return Err(error);
                }
                true
            }
        };
        if committed {
            lease.version = 1;
        }
        Ok(committed)
    }

    /// Returns the turn of a claim, so that no other caller in this process sees it between the claim and the start
    /// of its run.
    pub(crate) async fn claim_turn(
        &self,
        session: &Session,
        request: &RunRequest,
    ) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        let by = request.plan_commit_ref.as_ref().or(request.request_id.as_ref())?;
        Some(self.turn(&format!("{}/{}", session.id, Digest::of(by.trim().as_bytes()))).await)
    }
}

/// Returns the key of a request id. Any text may be an id, so its digest is used.
pub(crate) fn request_key(caller: &Caller, session: &Session, id: &str) -> Key {
    Key::new(&caller.tenant, Table::Request, format!("{}/{}", session.id, Digest::of(id.as_bytes())))
}

fn commit_key(caller: &Caller, session: &Session, number: u64) -> Key {
    rows::commit_key(&caller.tenant, session.id, number)
}
