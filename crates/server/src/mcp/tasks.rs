//! The Tasks extension of 2026-07-28: a run that takes long, for clients that would rather ask for it than wait.
//! Invariant: a task is an operation by another name: durable before its handle is answered, there after a restart, and stopped
//! only when that is asked for.

use std::sync::Arc;

use access::Caller;
use rmcp::RoleServer;
use rmcp::model::{
    CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, JsonObject, ProtocolVersion, Task, TaskPayload,
    TaskStatus,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use session::{Error, RunAnswer, Service, TaskState};

use super::tools;

/// Results are kept for longer than that.
const TTL_MS: u64 = 24 * 60 * 60 * 1000;
const POLL_MS: u64 = 1_000;

/// Whether the request says that its client knows tasks.
pub fn declared(context: &RequestContext<RoleServer>) -> bool {
    let modern = context.protocol_version().is_some_and(|v| v.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    modern && context.client_capabilities().is_some_and(|can| can.supports_tasks())
}

/// The handle of an operation that goes on.
pub async fn created(service: &Arc<Service>, caller: &Caller, name: &str) -> Result<CreateTaskResult, ErrorData> {
    let state = service.task(caller, name, false).await.map_err(|error| refused(&error))?;
    // It may have ended since; the client hears of it when it asks.
    Ok(CreateTaskResult::new(task(name, &state)))
}

pub async fn get(service: &Arc<Service>, caller: &Caller, name: &str) -> Result<GetTaskResult, ErrorData> {
    let state = service.task(caller, name, false).await.map_err(|error| refused(&error))?;
    let mut task = task(name, &state);
    let payload = match state.answer {
        Ok(RunAnswer::Running(_)) => TaskPayload::Working,
        Ok(RunAnswer::Finished(ran)) if ran.outcome.cancelled => {
            // A cancelled task has no result on the wire, and what was done before it stopped must not be lost.
            let answer = tools::ran(&ran, service.limits().shown_chars);
            let said = answer.content.iter().find_map(|block| block.as_text());
            task.status_message = said.map(|text| text.text.clone());
            TaskPayload::Cancelled
        }
        Ok(RunAnswer::Finished(ran)) => {
            TaskPayload::Completed { result: object(json!(tools::ran(&ran, service.limits().shown_chars))) }
        }
        Err(error) => {
            let failed = ErrorData::internal_error(crate::text::error(&error), None);
            TaskPayload::Failed { error: object(json!(failed)) }
        }
    };
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// It stops before its next effect; one that has ended stays as it is.
pub async fn cancel(service: &Arc<Service>, caller: &Caller, name: &str) -> Result<(), ErrorData> {
    service.task(caller, name, true).await.map(|_| ()).map_err(|error| refused(&error))
}

/// A run asks its client nothing, so answers to it are answers to nothing.
pub async fn update(service: &Arc<Service>, caller: &Caller, name: &str) -> Result<(), ErrorData> {
    service.task(caller, name, false).await.map(|_| ()).map_err(|error| refused(&error))
}

fn task(name: &str, state: &TaskState) -> Task {
    let (started, changed) = (state.started.to_string(), state.changed.to_string());
    let task =
        Task::new(name, TaskStatus::Working, started, changed).with_ttl_ms(TTL_MS).with_poll_interval_ms(POLL_MS);
    match &state.answer {
        Ok(RunAnswer::Running(operation)) => {
            let told = operation.progress;
            let stopping = if operation.stopping { ", stopping" } else { "" };
            let (done, of, effects) = (told.steps_done, told.steps, told.effects_done);
            task.with_status_message(format!("{done} of {of} steps done, {effects} effects{stopping}"))
        }
        _ => task,
    }
}

fn refused(error: &Error) -> ErrorData {
    if error.is_fault() {
        tracing::error!(error = error as &dyn std::error::Error, "asking for a task failed");
        return ErrorData::internal_error(crate::text::error(error), None);
    }
    ErrorData::invalid_params(crate::text::error(error), None)
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    }
}
