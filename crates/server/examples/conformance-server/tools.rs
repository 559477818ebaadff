//! The fixture tools.
//! Invariant: each does what the conformance suite's description of it says, and uses nothing of the product.

use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ErrorData, JsonObject, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::changes::Change;
use crate::fixtures::Fixtures;
use crate::rounds::Round;
use crate::{asks, data, jobs};

const PAUSE: Duration = Duration::from_millis(50);

pub async fn call(
    fixtures: &Fixtures,
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.clone().unwrap_or_default();
    let name = request.name.as_ref();
    if let Some(answered) = jobs::call(&fixtures.jobs, name, &arguments, &context).await {
        return answered;
    }
    match fixtures.rounds.of_tool(&request, &context)? {
        Some(Round::Ask(asked)) => return Ok(asked.into()),
        Some(Round::Done(answers)) if name == "test_tool_with_task" => {
            return jobs::start_with_answers(&fixtures.jobs, &answers, &context);
        }
        Some(Round::Done(answers)) => {
            return Ok(asks::text(format!("state-ok: {}", Value::from_iter(answers))).into());
        }
        None => {}
    }
    if let Some(answered) = asks::ask_user(name, &arguments, &context).await? {
        return Ok(answered.into());
    }
    simple_tool(fixtures, name, &arguments, &context).await.map(Into::into)
}

async fn simple_tool(
    fixtures: &Fixtures,
    name: &str,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    match name {
        "test_sampling" => return asks::ask_model(arguments, context).await,
        "greet" => {
            let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
            return Ok(asks::text(format!("Hello, {name}!")));
        }
        "test_missing_capability" if asks::capabilities(context).is_none_or(|can| can.sampling.is_none()) => {
            return Err(ErrorData::missing_required_client_capability(
                ClientCapabilities::builder().enable_sampling().build(),
            ));
        }
        "test_trigger_tool_change" => fixtures.changes.announce(Change::Tools),
        "test_trigger_prompt_change" => fixtures.changes.announce(Change::Prompts),
        "test_tool_with_progress" => progress(context).await,
        "test_tool_with_logging" => {
            log(context, "Tool execution started").await;
            tokio::time::sleep(PAUSE).await;
            log(context, "Tool processing data").await;
            tokio::time::sleep(PAUSE).await;
            log(context, "Tool execution completed").await;
        }
        "test_logging_tool" => log(context, "Called").await,
        _ => {}
    }
    Ok(data::answer(name).unwrap_or_else(|| asks::text("Done.")))
}

async fn progress(context: &RequestContext<RoleServer>) {
    for step in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let notification = ProgressNotificationParam::new(token, step).with_total(100.0);
            let _ = context.peer.notify_progress(notification).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sends a log message. In 2026-07-28 each request says whether it wants log messages.
async fn log(context: &RequestContext<RoleServer>, text: &str) {
    if asks::is_at_least_2026_07_28(context) && context.meta.log_level().is_none() {
        return;
    }
    let notification = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(text));
    let _ = context.peer.notify_logging_message(notification).await;
}
