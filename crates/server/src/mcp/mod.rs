//! MCP on standard input and over Streamable HTTP, in all supported protocol revisions. Only this module uses the MCP SDK.
//! Invariant: the tool list is the same for every connection and does not change while the server runs.

mod caller;
mod connection;
mod handler;
mod http;
mod live_sessions;
mod progress;
mod request_scope;
mod resources;
mod stdio;
mod tasks;
mod tools;
mod transport_store;
mod withdrawn;

use std::sync::Arc;

use app::App;
use base::{ConnectionLimits, TenantId};
use rmcp::ServerHandler;

pub use caller::TRANSPORT_SESSION_HEADER;
pub use connection::{BadSessionName, ConnectionHeaders, read_headers, scope_of};
pub use handler::{Handler, instructions};
pub use http::{McpHttpSettings, service};
pub use request_scope::RequestScope;
pub use stdio::{StdioError, serve_stdio};

/// The settings of MCP.
#[derive(Debug, Clone, Default)]
pub struct McpOptions {
    /// The tools that the server lists and answers.
    pub tools: ToolSet,
    /// The session name of a connection that has no headers.
    pub session_name: Option<String>,
    /// The limits on connections, which hold over HTTP and on standard input.
    pub connections: ConnectionLimits,
}

/// The tools that a server offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSet {
    /// The tools with which a model runs programs and scripts.
    Core,
    /// Every tool.
    #[default]
    All,
}

/// Returns the name, description and input schema of every tool of a set, as a model sees them.
pub fn tool_list(set: ToolSet) -> serde_json::Value {
    serde_json::to_value(tools::listed(set)).unwrap_or_default()
}

/// Decides which MCP handler answers a connection. The product answers with its own handler. The test server of the MCP
/// conformance suite wraps that handler, because the suite asks for tools and resources that the product does not have.
pub trait WrapHandler: Clone + Send + Sync + 'static {
    /// The handler that answers.
    type Wrapped: ServerHandler;

    /// Wraps the product's own handler.
    fn wrap(&self, own: Handler) -> Self::Wrapped;
}

/// Answers with the product's own handler.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnHandler;

impl WrapHandler for OwnHandler {
    type Wrapped = Handler;

    fn wrap(&self, own: Handler) -> Handler {
        own
    }
}

/// Makes the handlers of connections.
#[derive(Clone)]
struct HandlerFactory<W> {
    app: Arc<App>,
    tools: ToolSet,
    /// Shared by all handlers, because without transport sessions each request has a handler of its own.
    connections: connection::Connections,
    wrapper: W,
}

impl<W: WrapHandler> HandlerFactory<W> {
    fn new(app: Arc<App>, options: &McpOptions, wrapper: W) -> Self {
        let connections = connection::Connections::new(options.session_name.clone());
        Self { app, tools: options.tools, connections, wrapper }
    }

    /// Makes the handler of one connection of a tenant.
    fn handler(&self, tenant: TenantId) -> W::Wrapped {
        self.wrapper.wrap(Handler::new(self.app.clone(), tenant, self.tools, self.connections.clone()))
    }
}
