//! Plans that were shown: stored under a number of their session, and under a plan commit if they need a review.
//! Invariant: a plan is durable before it is shown, in one transaction with the plan commit that allows to run it.

use access::Caller;
use base::{Digest, Timestamp};
use lang::plan::{Plan, Verdict};
use ports::store::{Batch, Expect, Key, Table};
use serde::{Deserialize, Serialize};

use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::load::{Session, Versioned};
use crate::program::PlannedProgram;
use crate::rows::{self, Claim, ClaimRow, LogicalRow, PlanBody, PlanRow};
use crate::service::Service;
use crate::uri::ResourceUri;

/// A plan with more bytes than this is stored as a blob.
const MAX_ROW_BYTES: usize = 32 * 1024;

/// A plan as it was shown.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredPlan {
    pub digest: Digest,
    pub program: String,
    /// The time that `now` means in the program.
    pub planned: Timestamp,
    pub verdict: Verdict,
    /// The plan commit with which it can be run, if it needs a review.
    pub plan_commit_ref: Option<String>,
    /// The plan as text, as the model read it.
    pub explained: String,
    /// The plan as data.
    pub plan: Plan,
}

impl Service {
    /// Stores a plan before it is shown, so that it can be read again and, if it needs a review, run exactly as
    /// shown.
    pub(crate) async fn store_plan(
        &self,
        caller: &Caller,
        session: &Session,
        planned: &mut PlannedProgram,
        program: &str,
    ) -> Result<(), Error> {
        let body = self.plan_body(&planned.plan).await?;
        let review = planned.plan.verdict == Verdict::Review;
        let _turn = self.turn(&session.id.to_string()).await;
        let mut loaded = Some(session.logical.clone());
        for _ in 0..TRIES {
            // The row that was read with the session is usually current. After a lost race it is read again.
            let logical = match loaded.take() {
                Some(logical) => logical,
                None => {
                    self.logical(caller, session.id).await?.ok_or_else(|| Error::NoSession(session.id.to_string()))?
                }
            };
            let number = logical.row.plans + 1;
            // Plan commits are counted from 0 and plans from 1, as callers see them: `pc0` and `p/1`.
            let commit = logical.row.commits;
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
            let session_key = Key::new(&caller.tenant, Table::LogicalSession, session.id.to_string());
            let mut batch = Batch::default().put(session_key, rows::write(&next), unchanged(logical.version)).put(
                plan_key(caller, session.id, number),
                rows::write(&row),
                Expect::Absent,
            );
            if review {
                let claim = ClaimRow {
                    plan: row.digest,
                    program: row.program,
                    planned: row.planned,
                    state: Claim::Unused,
                    operation: None,
                    owner: None,
                };
                let claim_key = rows::commit_key(&caller.tenant, session.id, commit);
                batch = batch.put(claim_key, rows::write(&claim), Expect::Absent);
            }
            if self.try_commit(batch).await?.is_some() {
                planned.number = Some(number);
                planned.commit = review.then(|| format!("pc{commit}"));
                let uri = ResourceUri::plan(planned.slot, number);
                planned.explained = lang::plan::explain_within(&planned.plan, self.limits.plan_chars, &uri);
                return Ok(());
            }
        }
        Err(Error::Busy)
    }

    /// Stores the plan in its row, or as a blob. The blob is stored before the row that names it.
    async fn plan_body(&self, plan: &Plan) -> Result<PlanBody, Error> {
        let bytes = rows::write(plan);
        if bytes.len() <= MAX_ROW_BYTES {
            return Ok(PlanBody::Inline(Box::new(plan.clone())));
        }
        Ok(PlanBody::Blob(self.ports.blobs.put(&bytes).await?))
    }

    /// Reads a plan by its number in a session.
    pub(crate) async fn stored_plan(
        &self,
        caller: &Caller,
        uri: &str,
        session: &str,
        number: u64,
    ) -> Result<StoredPlan, Error> {
        let (id, _) = self.resolve(caller, session).await?;
        let Some(found): Option<Versioned<PlanRow>> = self.fetch(&plan_key(caller, id, number)).await? else {
            let existed = self.logical(caller, id).await?.is_some_and(|row| (1..=row.row.plans).contains(&number));
            return Err(self.missing_resource_error(uri, existed));
        };
        let row = found.row;
        let plan: Plan = match row.body {
            PlanBody::Inline(plan) => *plan,
            PlanBody::Blob(digest) => rows::read("plan", &self.read_blob(digest).await?)?,
        };
        let explained = lang::plan::explain(&plan);
        Ok(StoredPlan {
            digest: row.digest,
            program: row.program,
            planned: row.planned,
            verdict: row.verdict,
            plan_commit_ref: row.commit.map(|number| format!("pc{number}")),
            explained,
            plan,
        })
    }
}

/// Returns the text of a stored plan for a reviewer who was not asked for it: with the URI under which any caller of the tenant can read
/// all of it.
pub(crate) fn review_text(planned: &PlannedProgram, session: base::LogicalSessionId) -> String {
    let uri = planned.number.map(|number| format!("plan: {}", ResourceUri::plan_of(session, number)));
    [Some(planned.explained.clone()), uri].into_iter().flatten().collect::<Vec<_>>().join("\n")
}

pub(crate) fn plan_key(caller: &Caller, session: base::LogicalSessionId, number: u64) -> Key {
    Key::new(&caller.tenant, Table::Plan, format!("{session}/{number:010}"))
}
