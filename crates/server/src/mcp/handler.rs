//! The MCP handler: tools, resources and tasks of one connection.
//! Invariant: an unknown tool is a protocol error. A failure of a tool is a result with `isError` that the model can read.

use std::borrow::Cow;
use std::sync::Arc;

use app::calls::{ListRuns, ReadArtifact};
use app::{App, Context, EntryPoint};
use base::TenantId;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, DiscoverResult, ErrorData, GetTaskParams,
    GetTaskResult, Implementation, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig, Tool,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};

use super::connection::Connections;
use super::withdrawn::OpenScriptCalls;
use super::{ToolSet, caller, progress, resources, tasks, tools};
use crate::text;

const INSTRUCTIONS: &str = "Tokamak runs small typed programs over APIs. Call plasm_context first, with one stable \
`intent` for the whole task and the {api, entity} seeds it needs (discover_capabilities finds them; one call for the goal); it \
answers a session ref (`s0`) and a table that teaches how to write programs. Then plasm shows the plan of a program without calling anything, and plasm_run runs it. Keep using \
the same ref; call plasm_context again only to add seeds. Long results are cut; read_artifact reads the rest. A seed that \
does not exist is answered with those that do. APIs here: ";

/// The instructions name so many APIs. More would cost tokens, and discovery finds all of them.
const MAX_NAMED_APIS: usize = 30;

/// The supported revisions of the protocol, the oldest first.
const PROTOCOL_VERSIONS: &[ProtocolVersion] = &[
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// The tool list is constant, so a client may cache it for a day.
const LIST_TTL_MS: u64 = 24 * 60 * 60 * 1000;

/// The instructions name the APIs, which change when a catalog file changes.
const DISCOVER_TTL_MS: u64 = 60 * 1000;

/// An artifact is kept for at least this long.
const ARTIFACT_TTL_MS: u64 = 24 * 60 * 60 * 1000;

/// The handler of one connection. Without transport sessions, each request is a connection.
#[derive(Clone)]
pub struct Handler {
    /// The use cases.
    app: Arc<App>,
    /// The tenant whose APIs the instructions name.
    tenant: TenantId,
    /// The tools that this server offers.
    tools: ToolSet,
    /// Finds the session name and the headers of a request's connection.
    connections: Connections,
    /// The open `run_js` calls of this connection, which `notifications/cancelled` can withdraw.
    open_script_calls: OpenScriptCalls,
}

impl Handler {
    pub(super) fn new(app: Arc<App>, tenant: TenantId, tools: ToolSet, connections: Connections) -> Self {
        Self { app, tenant, tools, connections, open_script_calls: OpenScriptCalls::default() }
    }

    /// Returns the instructions with the tenant's APIs of this moment.
    fn instructions(&self) -> String {
        let registry = self.app.service().registry_for(&self.tenant);
        instructions(registry.iter().map(|catalog| catalog.id.as_str()))
    }

    /// Returns the protocol error for a tool that the server does not offer, with similar names.
    fn unknown_tool(&self, name: &str) -> ErrorData {
        let near = base::similar_names(name, tools::names(self.tools)).join(", ");
        ErrorData::invalid_params(format!("unknown tool `{}`; one of: {near}", base::printable(name, 80)), None)
    }
}

/// Returns the instructions that a host shows a model before its first call.
pub fn instructions<'a>(apis: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = apis.take(MAX_NAMED_APIS).collect();
    format!("{INSTRUCTIONS}{}.", names.join(", "))
}

/// Returns the context of a request that is not a tool call.
fn protocol_call(context: &RequestContext<RoleServer>) -> Result<Context, ErrorData> {
    Ok(Context::new(caller::caller(context)?, EntryPoint::Protocol))
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().enable_tasks().build();
        let implementation = Implementation::new("tokamak", env!("CARGO_PKG_VERSION")).with_title("Tokamak");
        ServerConfig::new(capabilities).with_server_info(implementation).with_instructions(self.instructions())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(PROTOCOL_VERSIONS)
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
        let mut list = ListToolsResult::with_all_items(tools::listed(self.tools).to_vec());
        list.ttl_ms = Some(LIST_TTL_MS);
        list.cache_scope = Some(CacheScope::Public);
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::listed(self.tools).iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = tools::find(&request.name, self.tools) else {
            return Err(self.unknown_tool(&request.name));
        };
        let caller = caller::caller(&context)?;
        // Entered before the run can start, so that a withdrawal is noted however early it comes.
        let open_call = (tool.name == tools::RUN_JS).then(|| self.open_script_calls.enter(&context.id));
        let connection = if tool.uses_connection {
            let scope = self.connections.find(&self.app, &caller, &context).await;
            scope.map(|scope| scope.with_id_cell(open_call.as_ref().map(|call| call.id_cell.clone())))
        } else {
            Ok(Default::default())
        };
        let call_context = Context {
            request_id: caller::request_id(&context),
            // The SDK cancels it for a withdrawal, and also if the connection breaks.
            withdrawn: Some(context.ct.clone()),
            ..Context::new(caller, EntryPoint::Tool)
        };
        let call = tool.call(&self.app, &call_context, connection, request.arguments.unwrap_or_default());
        let answer = progress::while_running(&context, call).await;
        if let Some(open_call) = open_call.filter(|_| answer.withdrawn) {
            open_call.cancel_run_if_withdrawn(&self.app, &call_context.caller).await;
        }
        // A client that knows tasks gets a task instead of the text that names the handle.
        match answer.task.filter(|_| tasks::client_knows_tasks(&context)) {
            Some(task) => tasks::create(&self.app, call_context.caller, &task).await.map(Into::into),
            None => Ok(answer.result.into()),
        }
    }

    async fn on_cancelled(&self, notification: CancelledNotificationParam, _context: NotificationContext<RoleServer>) {
        if let Some(request) = &notification.request_id {
            self.open_script_calls.withdraw(request);
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let runs = self.app.call(&protocol_call(&context)?, ListRuns).await;
        let runs = runs.map_err(|error| ErrorData::internal_error(text::error(&error), None))?;
        Ok(ListResourcesResult::with_all_items(resources::run_resources(runs)))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut list = ListResourceTemplatesResult::with_all_items(resources::templates());
        list.ttl_ms = Some(LIST_TTL_MS);
        list.cache_scope = Some(CacheScope::Public);
        Ok(list)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let content = self.app.call(&protocol_call(&context)?, ReadArtifact::whole(&request.uri)).await;
        let content = content.map_err(|error| {
            if error.is_fault() || matches!(error, app::Error::Panicked) {
                return ErrorData::internal_error(text::error(&error), None);
            }
            ErrorData::resource_not_found(text::error(&error), Some(serde_json::json!({"uri": request.uri})))
        })?;
        let text = ResourceContents::text(resources::resource_text(&content), request.uri);
        let mut result = ReadResourceResult::new(vec![text.with_mime_type(resources::MIME_TYPE)]);
        // A resource never changes, and belongs to one tenant.
        result.ttl_ms = Some(ARTIFACT_TTL_MS);
        result.cache_scope = Some(CacheScope::Private);
        Ok(result.into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::get(&self.app, &protocol_call(&context)?, &request.task_id).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::update(&self.app, &protocol_call(&context)?, &request.task_id).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::cancel(&self.app, &protocol_call(&context)?, &request.task_id).await
    }

    /// Refuses the method, because the server declares no prompts. The SDK would answer an empty list.
    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    /// Refuses the method, because the server declares no completions.
    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}
