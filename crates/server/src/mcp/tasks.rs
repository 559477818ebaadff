//! The Tasks extension of revision 2026-07-28: long runs for clients that ask for the result later instead of waiting.
//! Invariant: a task is an operation under another name. It is durable before its handle is answered, survives a restart, and
//! stops only when its client asks for that.

use app::calls::{CancelTask, GetTask};
use app::{App, Context, EntryPoint, Error};
use rmcp::RoleServer;
use rmcp::model::{
    CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus,
};
use rmcp::service::RequestContext;
use serde::Serialize;
use serde_json::Value;
use session::{RunAnswer, TaskState};

use super::{caller, tools};
use crate::{text, view};

/// Results are kept for longer than this.
const TTL_MS: u64 = 24 * 60 * 60 * 1000;
/// The pause between two questions that clients are asked to make.
const POLL_INTERVAL_MS: u64 = 1_000;

/// Returns whether the request says that its client knows tasks.
pub fn client_knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    caller::is_at_least_2026_07_28(context)
        && context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks())
}

/// Returns the task of an operation that goes on. If the operation has ended since, the client learns that when it asks.
pub async fn create(app: &App, caller: access::Caller, name: &str) -> Result<CreateTaskResult, ErrorData> {
    let context = Context::new(caller, EntryPoint::Protocol);
    let state = task_state(app, &context, name).await?;
    Ok(CreateTaskResult::new(task(name, &state)))
}

/// Answers `tasks/get`: the state of a task, with its result or its failure once it has ended.
pub async fn get(app: &App, context: &Context, name: &str) -> Result<GetTaskResult, ErrorData> {
    let state = task_state(app, context, name).await?;
    let mut task = task(name, &state);
    let payload = match state.answer {
        Ok(RunAnswer::Running(_)) => TaskPayload::Working,
        Ok(RunAnswer::Finished(run)) => {
            let answer = tools::run_result(app, &run);
            if run.outcome.cancelled {
                // The wire has no result for a cancelled task. The text names the effects that were done before the stop.
                task.status_message = Some(answer.text().to_owned());
                TaskPayload::Cancelled
            } else {
                TaskPayload::Completed { result: object(&answer.result) }
            }
        }
        Err(error) => {
            let failed = ErrorData::internal_error(text::session_error(&error), None);
            TaskPayload::Failed { error: object(&failed) }
        }
    };
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// Stops a task before its next effect. A task that has ended stays as it is.
pub async fn cancel(app: &App, context: &Context, name: &str) -> Result<(), ErrorData> {
    let cancelled = app.call(context, CancelTask { task: name.to_owned() }).await;
    cancelled.map(|_| ()).map_err(|error| refused(&error))
}

/// Checks that the task exists, and ignores the update: a run never asks its client for input.
pub async fn update(app: &App, context: &Context, name: &str) -> Result<(), ErrorData> {
    task_state(app, context, name).await.map(|_| ())
}

async fn task_state(app: &App, context: &Context, name: &str) -> Result<TaskState, ErrorData> {
    app.call(context, GetTask { task: name.to_owned() }).await.map_err(|error| refused(&error))
}

/// Returns a task that works, with its progress. The caller adds the end.
fn task(name: &str, state: &TaskState) -> Task {
    let started = state.started.to_string();
    let changed = state.changed.to_string();
    let task = Task::new(name, TaskStatus::Working, started, changed)
        .with_ttl_ms(TTL_MS)
        .with_poll_interval_ms(POLL_INTERVAL_MS);
    let Ok(RunAnswer::Running(operation)) = &state.answer else { return task };
    let progress = operation.progress;
    let stopping = if operation.stopping { ", stopping" } else { "" };
    task.with_status_message(format!(
        "{} of {} steps done, {} effects{stopping}",
        progress.steps_done, progress.steps, progress.effects_done
    ))
}

/// Returns the protocol error for a task that the caller cannot ask for.
fn refused(error: &Error) -> ErrorData {
    if error.is_fault() || matches!(error, Error::Panicked) {
        return ErrorData::internal_error(text::error(error), None);
    }
    ErrorData::invalid_params(text::error(error), None)
}

/// Serializes an answer that is an object.
fn object(value: &impl Serialize) -> JsonObject {
    match view::json(value) {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}
