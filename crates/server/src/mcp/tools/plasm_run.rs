//! `plasm_run`: run a program and answer its rows.
//! Invariant: a run in which a step failed is an error that still carries everything that succeeded.

use std::sync::Arc;

use access::Caller;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use session::{Call, RunAnswer, RunRequest, RunResult, Service};

use super::{Answer, Name, arguments, describe, schema};
use crate::mcp::meta;
use crate::text;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    logical_session_ref: String,
    /// Not needed with plan_commit_ref.
    #[serde(default)]
    program: Option<String>,
    // For the log only.
    #[serde(default)]
    reasoning: Option<String>,
    /// Needed when the plan's verdict is review (pc0).
    #[serde(default)]
    plan_commit_ref: Option<String>,
    /// Run it without a commit.
    #[serde(default)]
    force: bool,
    /// With force: one id runs once.
    #[serde(default)]
    request_id: Option<String>,
    /// false: answer wait(..) at once.
    #[serde(default)]
    wait: Option<bool>,
}

pub fn tool() -> Tool {
    describe(
        Name::PlasmRun,
        "Run a program",
        "Run a program and answer its rows. One that changes something needs the plan_commit_ref of its plan (plasm). More \
         rows: page(s0_pg1). Long runs: wait(s0_o1), cancel(s0_o1).",
        schema::of::<Arguments>(),
        false,
    )
}

pub async fn call(service: &Arc<Service>, caller: &Caller, given: JsonObject) -> Answer {
    let given: Arguments = match arguments(Name::PlasmRun, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    if let Some(reasoning) = &given.reasoning {
        tracing::debug!(reasoning, "the caller says why");
    }
    let request = RunRequest {
        session: given.logical_session_ref,
        program: given.program,
        plan_commit_ref: given.plan_commit_ref,
        force: given.force,
        request_id: given.request_id,
        wait: given.wait,
    };
    let asked = request.program.as_deref().or(request.plan_commit_ref.as_deref()).unwrap_or_default();
    let call = Call::new(Name::PlasmRun.as_str()).with_program(asked);
    match service.run(caller, &request).await {
        Ok(RunAnswer::Finished(ran)) => {
            finished(&ran, service.limits().shown_chars).traced(&request.session, call.with_run(&ran))
        }
        Ok(RunAnswer::Running(operation)) => {
            let mut answer = Answer::text(operation.slot, text::running(&operation), Some(meta::running(&operation)));
            answer.outcome = "running";
            // Who asks not to wait wants the handle itself.
            answer.task = (request.wait != Some(false)).then_some(operation.task);
            answer.traced(&request.session, call)
        }
        Err(error) => Answer::failed(&error).traced(&request.session, call),
    }
}

/// The answer of a run that has ended, whoever waited for it.
pub fn finished(ran: &RunResult, shown_chars: usize) -> Answer {
    let shown = text::ran(ran, shown_chars);
    let mut answer = Answer::text(ran.slot, shown.text, Some(meta::ran(ran, &shown.lossy)));
    if ran.outcome.failed() || ran.outcome.cancelled {
        answer.result.is_error = Some(true);
        answer.outcome = if ran.outcome.cancelled { "cancelled" } else { "step_failed" };
    }
    answer
}
