//! `run_js`: run JavaScript on a heap that lasts.
//! Invariant: a run that did not complete is an error that still carries its execution.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::Caller;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use session::{ExecutionState, RunJsRequest, Service};

use super::super::{Answer, Name, arguments, describe, schema};
use crate::js;
use crate::mcp::named::Named;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    code: String,
    /// Key to start from; "" is fresh.
    #[serde(default)]
    heap: Option<String>,
    /// Goes on from its heap.
    #[serde(default)]
    logical_session_ref: Option<String>,
    #[serde(default)]
    tags: Option<BTreeMap<String, String>>,
    #[serde(default)]
    require_heap: bool,
    #[serde(default)]
    wait_ms: Option<u64>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    memory_mb: Option<u64>,
}

pub fn tool() -> Tool {
    describe(
        Name::RunJs,
        "Run JavaScript",
        "Run JavaScript or TypeScript; top-level await; the last value is the result; globals last. In a session \
         `(await plasm(program)).rows`.",
        schema::of::<Arguments>(),
        false,
    )
}

pub async fn run(service: &Arc<Service>, caller: &Caller, named: Named, given: JsonObject) -> Answer {
    let given: Arguments = match arguments(Name::RunJs, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    let slot = given.logical_session_ref.clone();
    let asked = RunJsRequest {
        code: given.code,
        heap: given.heap,
        session: named.session(given.logical_session_ref),
        tags: given.tags,
        require_heap: given.require_heap,
        wait_ms: given.wait_ms,
        timeout_ms: given.timeout_ms,
        memory_mb: given.memory_mb,
        headers: named.headers,
        id_cell: named.id_cell,
    };
    let ran = match service.run_js(caller, &asked).await {
        Ok(ran) => ran,
        Err(error) => return Answer::failed(&error),
    };
    let value = match js::ran(service, caller, &ran).await {
        Ok(value) => value,
        Err(error) => return Answer::failed(&error),
    };
    let mut answer = Answer::structured(value, None);
    answer.slot = slot;
    answer.outcome = ran.state.as_str();
    if matches!(ran.state, ExecutionState::Failed | ExecutionState::Cancelled | ExecutionState::TimedOut) {
        answer.result.is_error = Some(true);
    }
    answer
}
