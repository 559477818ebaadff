//! Fixtures of the Tasks extension.
//! Invariant: only a client that declared the extension gets a task. For other clients a tool answers at once, or refuses if the
//! conformance suite requires that.

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult, ErrorData, InputResponses, JsonObject,
};
use rmcp::service::RequestContext;
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::Value;

use crate::asks::refused;
use crate::{asks, rounds};

type JobResult = Result<CallToolResult, TaskExit>;

/// Runs a tool of this file. `None` for any other tool.
pub async fn call(
    jobs: &TaskManager,
    name: &str,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let declared = asks::capabilities(context).is_some_and(|can| can.supports_tasks());
    let started = match name {
        "slow_compute" => {
            let seconds = arguments.get("seconds").and_then(Value::as_u64).unwrap_or(1);
            if !declared {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                return Some(Ok(slept(seconds).into()));
            }
            jobs.spawn(options(), move |task| sleep(task, seconds).boxed())
        }
        _ if !declared && matches!(name, "failing_job" | "protocol_error_job" | "confirm_delete" | "multi_input") => {
            return Some(Err(needs_tasks()));
        }
        "failing_job" => jobs.spawn(options(), |_| fail(Ok(refused("the job failed")))),
        "protocol_error_job" => {
            let broken = ErrorData::internal_error("the job broke", None);
            jobs.spawn(options(), |_| fail(Err(TaskExit::Error(broken))))
        }
        "confirm_delete" | "multi_input" => {
            let tool = name.to_owned();
            jobs.spawn(options(), move |task| request_answers(task, tool).boxed())
        }
        _ => return None,
    };
    Some(Ok(CreateTaskResult::new(started).into()))
}

/// Starts a task that ends with the answers that the user gave before.
pub fn start_with_answers(
    jobs: &TaskManager,
    answers: &InputResponses,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    if !asks::capabilities(context).is_some_and(|can| can.supports_tasks()) {
        return Err(needs_tasks());
    }
    let text = format!("Done for {}", Value::from_iter(answers.clone()));
    let task = jobs.spawn(options(), move |_| std::future::ready(Ok(asks::text(text))).boxed());
    Ok(CreateTaskResult::new(task).into())
}

fn options() -> TaskOptions {
    TaskOptions::new().with_poll_interval_ms(200)
}

fn needs_tasks() -> ErrorData {
    ErrorData::missing_required_client_capability(ClientCapabilities::builder().enable_tasks().build())
}

fn slept(seconds: u64) -> CallToolResult {
    asks::text(format!("Computed for {seconds} s"))
}

async fn sleep(task: TaskContext, seconds: u64) -> JobResult {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_secs(seconds)) => Ok(slept(seconds)),
        () = task.cancelled() => Err(TaskExit::Cancelled),
    }
}

/// Ends after a second, so that the suite sees the task working.
fn fail(result: JobResult) -> BoxFuture<'static, JobResult> {
    async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        result
    }
    .boxed()
}

/// Requests all answers at once.
async fn request_answers(task: TaskContext, name: String) -> JobResult {
    let requests = rounds::first_requests_of(&name).into_iter();
    let waiting = requests.map(|(key, request)| task.request_input(key, request));
    let answers = futures::future::try_join_all(waiting).await?;
    Ok(asks::text(format!("Answered: {}", Value::from_iter(answers))))
}
