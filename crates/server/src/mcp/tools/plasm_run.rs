//! `plasm_run`: run a program and answer its rows.
//! Invariant: a run in which a step failed is an error that still carries everything that succeeded.

use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use session::{ArtifactUri, Caller, RunRequest, Service};

use super::{Answer, Name, arguments, describe, schema};
use crate::mcp::meta;
use crate::text;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The ref that plasm_context answered (s0).
    logical_session_ref: String,
    /// The program, in the language of the session's table.
    program: String,
    /// Why; for the log only.
    #[serde(default)]
    reasoning: Option<String>,
    /// Run even when the plan's verdict is review.
    #[serde(default)]
    force: bool,
}

pub fn tool() -> Tool {
    describe(
        Name::PlasmRun,
        "Run a program",
        "Run a program over the session's APIs and answer its rows. Look at the plan with plasm first when the program is \
         not trivial.",
        schema::of::<Arguments>(),
        true,
    )
}

pub async fn call(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Arguments = match arguments(Name::PlasmRun, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    if let Some(reasoning) = &given.reasoning {
        tracing::debug!(reasoning, "the caller says why");
    }
    let request = RunRequest { session: given.logical_session_ref, program: given.program, force: given.force };
    let ran = match service.run(caller, &request).await {
        Ok(ran) => ran,
        Err(error) => return Answer::failed(&error),
    };
    let artifact = ArtifactUri::short(ran.slot, ran.number);
    let shown = text::run_result(&ran.outcome, &artifact, service.limits().shown_chars);
    let notes = base::render_for_model(&request.program, &ran.planned.notes);
    let whole = if notes.is_empty() { shown.text } else { format!("{}\n{notes}", shown.text) };
    let mut answer = Answer::text(ran.slot, whole, Some(meta::ran(&ran, &shown.lossy)));
    if ran.outcome.failed() {
        answer.result.is_error = Some(true);
        answer.outcome = "step_failed";
    }
    answer
}
