//! Plans that were shown: kept under a number of their session, and where they need a review under a commit.
//! Invariant: a plan is durable before it is shown, in one transaction with the commit it may be run by.

use base::{Digest, Timestamp};
use lang::plan::{Plan, Verdict};
use ports::store::{Batch, Expect, Key, Table};
use serde::{Deserialize, Serialize};

use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::load::{Session, Versioned};
use crate::program::Planned;
use crate::rows::{self, Claim, ClaimRow, LogicalRow, PlanBody, PlanRow};
use crate::service::Service;
use access::Caller;

/// A larger plan is a blob of its own.
const IN_ROW: usize = 32 * 1024;

/// A plan as it was shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShownPlan {
    pub digest: Digest,
    pub program: String,
    /// The moment that `now` means in it.
    pub planned: Timestamp,
    pub verdict: Verdict,
    /// What a run of it is asked for with, where it needs a review.
    pub plan_commit_ref: Option<String>,
    pub explained: String,
    pub plan: Plan,
}

impl Service {
    /// Keeps that this plan was shown, so that it can be read again and, where it needs a review, be run as it was shown.
    pub(crate) async fn keep_plan(
        &self,
        caller: &Caller,
        session: &Session,
        (planned, program): (&mut Planned, &str),
    ) -> Result<(), Error> {
        let body = self.plan_body(&planned.plan).await?;
        let review = planned.plan.verdict == Verdict::Review;
        let _turn = self.turn(&session.id.to_string()).await;
        let mut known = Some(session.logical.clone());
        for _ in 0..TRIES {
            // What was read with the session is seldom old; a commit that finds it so reads it again.
            let logical = match known.take() {
                Some(logical) => logical,
                None => {
                    self.logical(caller, session.id).await?.ok_or_else(|| Error::NoSession(session.id.to_string()))?
                }
            };
            let (number, commit) = (logical.row.plans + 1, logical.row.commits);
            let commits = commit + u64::from(review);
            let next = LogicalRow { plans: number, commits, used: self.now(), ..logical.row };
            let row = PlanRow {
                digest: planned.plan.digest,
                program: program.to_owned(),
                planned: planned.now,
                verdict: planned.plan.verdict,
                commit: review.then_some(commit),
                body: body.clone(),
            };
            let at = Key::new(&caller.tenant, Table::LogicalSession, session.id.to_string());
            let mut batch = Batch::default().put(at, rows::write(&next), unchanged(logical.version)).put(
                plan_key(caller, session.id, number),
                rows::write(&row),
                Expect::Absent,
            );
            if review {
                let (plan, program, planned) = (row.digest, row.program, row.planned);
                let claim = ClaimRow { plan, program, planned, state: Claim::Unused, operation: None, owner: None };
                batch = batch.put(
                    rows::commit_key(&caller.tenant, session.id, commit),
                    rows::write(&claim),
                    Expect::Absent,
                );
            }
            if self.try_commit(batch).await?.is_some() {
                planned.number = Some(number);
                planned.commit = review.then(|| format!("pc{commit}"));
                return Ok(());
            }
        }
        Err(Error::Busy)
    }

    /// Blob before pointer.
    async fn plan_body(&self, plan: &Plan) -> Result<PlanBody, Error> {
        let bytes = rows::write(plan);
        if bytes.len() <= IN_ROW {
            return Ok(PlanBody::Here(Box::new(plan.clone())));
        }
        Ok(PlanBody::Blob(self.ports.blobs.put(&bytes).await?))
    }

    pub(crate) async fn shown_plan(&self, caller: &Caller, uri: &str, at: (&str, u64)) -> Result<ShownPlan, Error> {
        let (session, number) = at;
        let (id, _) = self.resolve(caller, session).await?;
        let Some(found): Option<Versioned<PlanRow>> = self.fetch(&plan_key(caller, id, number)).await? else {
            let known = self.logical(caller, id).await?.is_some_and(|row| (1..=row.row.plans).contains(&number));
            return Err(self.no_resource(uri, known));
        };
        let row = found.row;
        let plan: Plan = match row.body {
            PlanBody::Here(plan) => *plan,
            PlanBody::Blob(digest) => rows::read("plan", &self.kept_blob(digest).await?)?,
        };
        let explained = lang::plan::explain(&plan);
        let plan_commit_ref = row.commit.map(|n| format!("pc{n}"));
        let (digest, program, planned, verdict) = (row.digest, row.program, row.planned, row.verdict);
        Ok(ShownPlan { digest, program, planned, verdict, plan_commit_ref, explained, plan })
    }
}

pub(crate) fn plan_key(caller: &Caller, session: base::LogicalSessionId, number: u64) -> Key {
    Key::new(&caller.tenant, Table::Plan, format!("{session}/{number:010}"))
}
