//! `get_execution`, `get_execution_output`, `cancel_execution`, `list_executions`.
//! Invariant: they change nothing but the state of the run that is cancelled.

use access::Caller;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use session::{OutputRequest, Service};

use super::super::{Answer, Name, arguments, describe, schema};
use super::done;
use crate::js;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct One {
    execution_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Look {
    execution_id: String,
    #[serde(default)]
    wait_ms: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Output {
    execution_id: String,
    #[serde(default)]
    line_offset: Option<u64>,
    #[serde(default)]
    line_limit: Option<u64>,
    #[serde(default)]
    byte_offset: Option<u64>,
    #[serde(default)]
    byte_limit: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

pub fn tool(name: Name) -> Option<Tool> {
    let one = schema::of::<One>;
    Some(match name {
        Name::GetExecution => {
            describe(name, "Run state", "A run; wait_ms waits for its end.", schema::of::<Look>(), true)
        }
        Name::GetExecutionOutput => describe(name, "Run output", "Console output.", schema::of::<Output>(), true),
        Name::CancelExecution => describe(name, "Stop run", "Stop a run.", one(), false),
        Name::ListExecutions => describe(name, "List runs", "Newest first.", schema::of::<Nothing>(), true),
        _ => return None,
    })
}

pub async fn get(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Look = match arguments(Name::GetExecution, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    match service.wait_for_execution(caller, &given.execution_id, given.wait_ms).await {
        Ok(found) => Answer::structured(js::execution(&found), None),
        Err(error) => Answer::failed(&error),
    }
}

pub async fn output(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: Output = match arguments(Name::GetExecutionOutput, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    let Output { execution_id, line_offset, line_limit, byte_offset, byte_limit } = given;
    let asked = OutputRequest { line_offset, line_limit, byte_offset, byte_limit };
    match service.execution_output(caller, &execution_id, &asked).await {
        Ok(page) => Answer::structured(js::output(&page), None),
        Err(error) => Answer::failed(&error),
    }
}

pub async fn cancel(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let given: One = match arguments(Name::CancelExecution, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    done(service.cancel_execution(caller, &given.execution_id).await)
}

pub async fn list(service: &Service, caller: &Caller, given: JsonObject) -> Answer {
    let Nothing {} = match arguments(Name::ListExecutions, given) {
        Ok(given) => given,
        Err(bad) => return bad.into(),
    };
    match service.executions(caller, None, js::LISTED).await {
        Ok(found) => Answer::structured(js::list(&found), None),
        Err(error) => Answer::failed(&error),
    }
}
