//! Fixtures that send requests to the client while they run: to its model or to its user. Only the older revisions have this.
//! Invariant: a client that did not declare the capability gets no request.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ClientCapabilities, ClientResult, ContentBlock, CreateMessageRequest, CreateMessageRequestParams,
    ElicitRequest, ElicitRequestParams, ErrorData, JsonObject, ProtocolVersion, ServerRequest,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use crate::data;

/// The request to the user, by tool.
static ASKS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| data::parse(include_str!("asks.json")));

pub async fn ask_user(
    tool: &str,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<Option<CallToolResult>, ErrorData> {
    let Some(mut request) = ASKS.get(tool).cloned() else { return Ok(None) };
    if capabilities(context).is_none_or(|can| can.elicitation.is_none()) {
        return Ok(Some(refused("the client cannot ask its user")));
    }
    if let Some(message) = arguments.get("message") {
        request["message"] = message.clone();
    }
    let params: ElicitRequestParams = parse_params(request)?;
    let answered = send(context, ServerRequest::ElicitRequest(ElicitRequest::new(params))).await?;
    let answer = match answered {
        ClientResult::ElicitResult(elicited) => json!(elicited),
        other => json!(other),
    };
    let action = answer["action"].as_str().unwrap_or_default();
    let content = &answer["content"];
    Ok(Some(text(format!("User response: action={action}, content={content}"))))
}

pub async fn ask_model(
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResult, ErrorData> {
    if capabilities(context).is_none_or(|can| can.sampling.is_none()) {
        return Ok(refused("the client cannot ask its model"));
    }
    let prompt = json!({"role": "user", "content": {"type": "text", "text": arguments.get("prompt")}});
    let params: CreateMessageRequestParams = parse_params(json!({"messages": [prompt], "maxTokens": 100}))?;
    let answered = send(context, ServerRequest::CreateMessageRequest(CreateMessageRequest::new(params))).await?;
    let answer = json!(answered);
    Ok(text(format!("LLM response: {}", answer["content"]["text"].as_str().unwrap_or_default())))
}

pub fn capabilities(context: &RequestContext<RoleServer>) -> Option<ClientCapabilities> {
    context.client_capabilities()
}

pub fn is_at_least_2026_07_28(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|v| v.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Returns a result that a model reads as a failure.
pub fn refused(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text.into())])
}

pub fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text.into())])
}

fn parse_params<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn send(context: &RequestContext<RoleServer>, request: ServerRequest) -> Result<ClientResult, ErrorData> {
    let answered = context.peer.send_request(request).await;
    answered.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}
