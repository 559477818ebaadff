//! `plasm`: the plan of a program; nothing is called.
//! Invariant: never calls an API.

use access::Caller;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use session::{Call, PlanRequest, Service};

use super::{Answer, Name, arguments, describe, schema};
use crate::mcp::meta;
use crate::text;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// From plasm_context (s0).
    logical_session_ref: String,
    program: String,
    // For the log only.
    #[serde(default)]
    reasoning: Option<String>,
}

pub fn tool() -> Tool {
    describe(
        Name::Plasm,
        "Plan a program",
        "Show the plan of a program without calling any API. Never send a bare $: replace it with a value.",
        schema::of::<Arguments>(),
        true,
    )
}

pub async fn call(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Arguments = match arguments(Name::Plasm, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    if let Some(reasoning) = &given.reasoning {
        tracing::debug!(reasoning, "the caller says why");
    }
    let request = PlanRequest { session: given.logical_session_ref, program: given.program };
    let call = Call::new(Name::Plasm.as_str()).with_program(&request.program);
    match service.plan(caller, &request).await {
        Ok(planned) => {
            let call = call.with_plan(&planned);
            Answer::text(planned.slot, text::planned(&planned, &request.program), Some(meta::planned(&planned)))
                .traced(&request.session, call)
        }
        Err(error) => Answer::failed(&error).traced(&request.session, call),
    }
}
