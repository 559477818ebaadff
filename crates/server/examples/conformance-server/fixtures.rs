//! The MCP handler with the tools, resources and prompts that the conformance suite asks for by name.
//! Invariant: a name of the product means the same as without fixtures. Everything else about a request (transport, checks,
//! sessions) is the product's own.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam, CompleteRequestParams,
    CompleteResult, CompletionInfo, ErrorData, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{RoleServer, ServerHandler};

use server::{Handler, WrapHandler};

use crate::changes::Changes;
use crate::rounds::Rounds;
use crate::{asks, data, tools};

/// The product's handler behind the fixtures.
#[derive(Clone)]
pub struct HandlerWithFixtures {
    own: Handler,
    fixtures: Arc<Fixtures>,
}

/// The state of the fixtures, which all connections share.
#[derive(Default)]
pub struct Fixtures {
    pub rounds: Rounds,
    pub jobs: TaskManager,
    pub changes: Changes,
}

/// Puts the fixtures before the product's handler.
#[derive(Clone, Default)]
pub struct AddFixtures(Arc<Fixtures>);

impl WrapHandler for AddFixtures {
    type Wrapped = HandlerWithFixtures;

    fn wrap(&self, own: Handler) -> HandlerWithFixtures {
        HandlerWithFixtures { own, fixtures: self.0.clone() }
    }
}

impl ServerHandler for HandlerWithFixtures {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.own.get_info();
        info.capabilities = capabilities();
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.own.supported_protocol_versions()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = self.own.list_tools(request, context).await?;
        list.tools.extend(data::tools());
        Ok(list)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let fixture = data::tools().into_iter().find(|tool| tool.name == name);
        fixture.or_else(|| self.own.get_tool(name))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if data::tools().iter().any(|tool| tool.name == request.name) {
            return tools::call(&self.fixtures, request, context).await;
        }
        self.own.call_tool(request, context).await
    }

    async fn on_cancelled(&self, notification: CancelledNotificationParam, context: NotificationContext<RoleServer>) {
        self.own.on_cancelled(notification, context).await;
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut list = self.own.list_resources(request, context).await?;
        list.resources.extend(data::resources());
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut list = self.own.list_resource_templates(request, context).await?;
        list.resource_templates.extend(data::resource_templates());
        Ok(list)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match data::read(&request.uri) {
            Some(read) => Ok(read.into()),
            None => self.own.read_resource(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(data::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(requests) = self.fixtures.rounds.of_prompt(&request)? {
            return Ok(requests);
        }
        let arguments = request.arguments.unwrap_or_default();
        let unknown = || ErrorData::invalid_params(format!("unknown prompt `{}`", request.name), None);
        data::prompt(&request.name, &arguments).map(Into::into).ok_or_else(unknown)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let near = ["paris", "park", "party"].into_iter().filter(|word| word.starts_with(&request.argument.value));
        let values = near.map(str::to_owned).collect();
        let info = CompletionInfo::new(values).map_err(|why| ErrorData::internal_error(why, None))?;
        Ok(CompleteResult::new(info))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if asks::is_at_least_2026_07_28(&context) {
            return self.own.set_level(request, context).await;
        }
        // The fixtures send all log messages, whatever the level.
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if data::read(&request.uri).is_none() {
            return self.own.subscribe(request, context).await;
        }
        // The resources of the fixtures never change, so there is nothing to record.
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if data::read(&request.uri).is_none() {
            return self.own.unsubscribe(request, context).await;
        }
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.fixtures.changes.forward_to(&context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        match self.fixtures.jobs.get_task(&request.task_id) {
            Ok(task) => Ok(GetTaskResult::new(task)),
            Err(_) => self.own.get_task(request, context).await,
        }
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.fixtures.jobs.get_task(&request.task_id).is_ok() {
            return self.fixtures.jobs.update_task(&request.task_id, request.input_responses);
        }
        self.own.update_task(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        match self.fixtures.jobs.cancel_task(&request.task_id) {
            Ok(_) => Ok(()),
            Err(_) => self.own.cancel_task(request, context).await,
        }
    }
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities::builder()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_resources()
        .enable_resources_subscribe()
        .enable_prompts()
        .enable_prompts_list_changed()
        .enable_completions()
        .enable_logging()
        .enable_tasks()
        .build()
}
