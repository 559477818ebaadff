//! MCP requests to tools and resources.
//! Invariant: an unknown tool is a protocol error; everything a tool itself refuses is an `isError` result the model can read.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use base::TenantId;
use futures::FutureExt;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, ContentBlock, DiscoverResult, ErrorData,
    GetTaskParams, GetTaskResult, Implementation, ListPromptsRequestMethod, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, ServerCapabilities,
    ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use session::{Call, Service};
use tracing::Instrument;

use super::named::{Named, Names};
use super::{ToolSet, caller, given_up, progress, tasks, tools};

const INSTRUCTIONS: &str = "Tokamak runs small typed programs over APIs. Call plasm_context first, with one stable \
`intent` for the whole task and the {api, entity} seeds it needs (discover_capabilities finds them; one call for the goal); it \
answers a session ref (`s0`) and a table that teaches how to write programs. Then plasm shows the plan of a program without calling anything, and plasm_run runs it. Keep using \
the same ref; call plasm_context again only to add seeds. Long results are cut; read_artifact reads the rest. A seed that \
does not exist is answered with those that do. APIs here: ";

/// More would only cost tokens; discovery knows them all.
const APIS_NAMED: usize = 30;

const PROTOCOLS: &[ProtocolVersion] = &[
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// The list is constant, so a client may keep it for the day.
const LIST_TTL_MS: u64 = 24 * 60 * 60 * 1000;

/// The instructions name the APIs, and those change when a file of the catalogs does.
const DISCOVER_TTL_MS: u64 = 60 * 1000;

/// Not longer than an artifact is kept.
const ARTIFACT_TTL_MS: u64 = 24 * 60 * 60 * 1000;

#[derive(Clone)]
pub struct Handler {
    service: Arc<Service>,
    /// Whose APIs the instructions name.
    tenant: TenantId,
    tools: ToolSet,
    names: Names,
    /// Of this connection.
    calls: given_up::Calls,
}

impl Handler {
    pub fn new(service: Arc<Service>, tenant: TenantId, tools: ToolSet, names: Names) -> Self {
        Self { service, tenant, tools, names, calls: given_up::Calls::default() }
    }

    fn instructions(&self) -> String {
        let registry = self.service.registry_for(&self.tenant);
        instructions(registry.iter().map(|c| c.id.as_str()))
    }

    fn unknown_tool(&self, name: &str) -> ErrorData {
        let offered = tools::Name::ALL.into_iter().filter(|tool| tool.is_in(self.tools));
        let near = base::similar_names(name, offered.map(tools::Name::as_str)).join(", ");
        ErrorData::invalid_params(format!("unknown tool `{}`; one of: {near}", base::printable(name, 80)), None)
    }
}

/// What a host shows a model before its first call.
pub fn instructions<'a>(apis: impl Iterator<Item = &'a str>) -> String {
    let named: Vec<&str> = apis.take(APIS_NAMED).collect();
    format!("{INSTRUCTIONS}{}.", named.join(", "))
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_tasks().build();
        let me = Implementation::new("tokamak", env!("CARGO_PKG_VERSION")).with_title("Tokamak");
        ServerConfig::new(capabilities).with_server_info(me).with_instructions(self.instructions())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(PROTOCOLS)
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()).with_ttl_ms(DISCOVER_TTL_MS))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = ListToolsResult::with_all_items(tools::offered(self.tools).to_vec());
        (list.ttl_ms, list.cache_scope) = (Some(LIST_TTL_MS), Some(CacheScope::Public));
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::offered(self.tools).iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::Name::parse(&request.name).filter(|tool| tool.is_in(self.tools)) else {
            return Err(self.unknown_tool(&request.name));
        };
        let request_id = caller::request_id(&context).unwrap_or_else(|| self.service.new_request_id());
        let span = tracing::info_span!("tool", request_id, tool = tool.as_str());
        async {
            let (started, clock) = (self.service.now(), std::time::Instant::now());
            let caller = caller::caller(&context)?;
            let run = (tool == tools::Name::RunJs).then(|| self.calls.enter(&context.id));
            let id_cell = run.as_ref().map(|run| run.id_cell.clone());
            let call = async {
                let named = if tool.is_named() {
                    self.names.of(&self.service, &caller, &context).await
                } else {
                    Ok(Named::default())
                };
                match named {
                    Ok(named) => {
                        let given = request.arguments.unwrap_or_default();
                        tools::call(&self.service, &caller, (tool, Named { id_cell, ..named }), given).await
                    }
                    Err(error) => tools::Answer::failed(&error),
                }
            };
            // A defect of ours ends one call, and the caller hears of it.
            let call =
                AssertUnwindSafe(call).catch_unwind().map(|ended| ended.unwrap_or_else(|_| tools::Answer::broken()));
            let answer = tokio::select! {
                // Looked at first: what was given up before it began does not begin.
                biased;
                // The client no longer waits: what it asked for stops before its next effect, and what was done is kept.
                () = context.ct.cancelled() => {
                    if let Some(run) = &run {
                        run.end(&self.service, &caller).await;
                    }
                    tools::Answer::cancelled()
                }
                answer = progress::while_running(&context, call) => answer,
            };
            let ms = self.service.now().0 - started.0;
            self.service.count_call(tool.as_str(), answer.outcome, clock.elapsed().as_secs_f64());
            if let Some((reference, call)) = &answer.call {
                let call = Call { at: started.0, ms, outcome: answer.outcome.to_owned(), ..call.clone() };
                self.service.record(&caller, reference, (call, answer.shown()));
            }
            tracing::info!(target: "tokamak::mcp", slot = answer.slot, outcome = answer.outcome, ms, "called");
            match answer.task.filter(|_| tasks::declared(&context)) {
                Some(task) => tasks::created(&self.service, &caller, &task).await.map(Into::into),
                None => Ok(answer.result.into()),
            }
        }
        .instrument(span)
        .await
    }

    async fn on_cancelled(&self, notification: CancelledNotificationParam, _context: NotificationContext<RoleServer>) {
        if let Some(id) = &notification.request_id {
            self.calls.give_up(id);
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listed = self.service.list_runs(&caller::caller(&context)?).await.map_err(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "listing resources failed");
            ErrorData::internal_error(crate::text::error(&error), None)
        })?;
        Ok(ListResourcesResult::with_all_items(super::resources::listed(listed)))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut list = ListResourceTemplatesResult::with_all_items(super::resources::templates());
        (list.ttl_ms, list.cache_scope) = (Some(LIST_TTL_MS), Some(CacheScope::Public));
        Ok(list)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = caller::caller(&context)?;
        let read = if request.uri.starts_with("heap://") {
            self.service.heap_info(&caller, &request.uri).await.map(|info| crate::js::heap(&info).to_string())
        } else {
            self.service.resource(&caller, &request.uri).await.map(|resource| super::resources::json(&resource))
        };
        match read {
            Ok(text) => {
                let contents = ResourceContents::text(text, request.uri).with_mime_type("application/json");
                let mut read = ReadResourceResult::new(vec![contents]);
                // Immutable, and of this tenant alone.
                (read.ttl_ms, read.cache_scope) = (Some(ARTIFACT_TTL_MS), Some(CacheScope::Private));
                Ok(read.into())
            }
            Err(error) if error.is_fault() => {
                tracing::error!(error = &error as &dyn std::error::Error, "reading a resource failed");
                Err(ErrorData::internal_error(crate::text::error(&error), None))
            }
            Err(error) => {
                let uri = serde_json::json!({"uri": request.uri});
                Err(ErrorData::resource_not_found(crate::text::error(&error), Some(uri)))
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::get(&self.service, &caller::caller(&context)?, &request.task_id).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::update(&self.service, &caller::caller(&context)?, &request.task_id).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel(&self.service, &caller::caller(&context)?, &request.task_id).await
    }

    /// Not declared, so not there; the SDK would answer an empty list.
    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    /// Not declared, so not there.
    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}

/// A result the model reads as a failure.
pub fn refused(text: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text.into())])
}
