//! `plasm_run`: runs a program, or the plan of a plan commit.

use access::Caller;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{CallRecord, RunAnswer, RunRequest, RunResult};

use crate::call::{App, Call, CallSummary};
use crate::error::Error;

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlasmRun {
    pub logical_session_ref: String,
    /// Not needed with plan_commit_ref.
    #[serde(default)]
    pub program: Option<String>,
    // A model may give its reason for the call, which is only logged.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// Needed when the plan's verdict is review (pc0).
    #[serde(default)]
    pub plan_commit_ref: Option<String>,
    /// Run it without a commit.
    #[serde(default)]
    pub force: bool,
    /// With force: one id runs once.
    #[serde(default)]
    pub request_id: Option<String>,
    /// false: answer wait(..) at once.
    #[serde(default)]
    pub wait: Option<bool>,
}

impl PlasmRun {
    /// Returns the outcome of a run that has ended: `ok`, `step_failed` or `cancelled`.
    pub fn outcome(run: &RunResult) -> &'static str {
        match (run.outcome.cancelled, run.outcome.failed()) {
            (true, _) => "cancelled",
            (false, true) => "step_failed",
            (false, false) => "ok",
        }
    }
}

impl Call for PlasmRun {
    const NAME: &'static str = "plasm_run";
    type Answer = RunAnswer;

    async fn run(&self, app: &App, caller: &Caller) -> Result<RunAnswer, Error> {
        if let Some(reasoning) = &self.reasoning {
            tracing::debug!(reasoning, "the caller gave a reason");
        }
        let request = RunRequest {
            session: self.logical_session_ref.clone(),
            program: self.program.clone(),
            plan_commit_ref: self.plan_commit_ref.clone(),
            force: self.force,
            request_id: self.request_id.clone(),
            wait: self.wait,
            parent: None,
        };
        Ok(app.service().run(caller, &request).await?)
    }

    fn summary(&self, result: &Result<RunAnswer, Error>) -> CallSummary {
        let program = self.program.as_deref().or(self.plan_commit_ref.as_deref()).unwrap_or_default();
        let record = CallRecord::default().with_program(program);
        let summary = CallSummary::of(result);
        match result {
            Ok(RunAnswer::Finished(run)) => CallSummary { outcome: Self::outcome(run), ..summary }
                .with_slot(run.slot)
                .with_record(&self.logical_session_ref, record.with_run(run)),
            Ok(RunAnswer::Running(run)) => CallSummary { outcome: "running", ..summary }
                .with_slot(run.slot)
                .with_record(&self.logical_session_ref, record),
            Err(_) => summary.with_record(&self.logical_session_ref, record),
        }
    }
}
