//! MCP on stdio and Streamable HTTP, both protocol eras. The only module that names the MCP SDK.
//! Invariant: the tool list is the same for every connection and never changes as a side effect of a call.

mod caller;
#[cfg(feature = "conformance-fixtures")]
mod fixtures;
mod given_up;
mod handler;
mod http;
mod meta;
mod named;
mod progress;
mod resources;
mod stdio;
mod tasks;
mod tools;
mod transport_store;

use std::sync::Arc;

use base::TenantId;
use session::Service;

pub use caller::SESSION_HEADER;
pub use handler::instructions;
pub use http::{HttpLists, McpHttp, service};
pub use named::{BadName, Named, during as during_headers, read as read_headers};
pub use stdio::{StdioError, serve_stdio};

/// Which tools there are for a client.
#[derive(Debug, Clone, Default)]
pub struct McpOptions {
    pub tools: ToolSet,
    /// What a connection is called that does not say so itself.
    pub session_id: Option<String>,
    /// Also what the conformance suite asks for by name.
    #[cfg(feature = "conformance-fixtures")]
    pub fixtures: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSet {
    /// Those that a model needs to work with programs and code.
    Core,
    #[default]
    All,
}

/// Name, description and input schema of every tool of a set: what a model sees of them.
pub fn tool_list(set: ToolSet) -> serde_json::Value {
    serde_json::to_value(tools::offered(set)).unwrap_or_default()
}

#[cfg(not(feature = "conformance-fixtures"))]
type Root = handler::Handler;
#[cfg(feature = "conformance-fixtures")]
type Root = fixtures::Served;

/// Makes what answers a request, or the requests of a connection.
#[derive(Clone)]
struct Roots {
    tools: ToolSet,
    names: named::Names,
    /// What they remember from one request to the next.
    #[cfg(feature = "conformance-fixtures")]
    fixtures: Option<Arc<fixtures::Fixtures>>,
}

impl Roots {
    fn new(options: &McpOptions) -> Self {
        Self {
            tools: options.tools,
            names: named::Names::new(options.session_id.clone()),
            #[cfg(feature = "conformance-fixtures")]
            fixtures: options.fixtures.then(Arc::default),
        }
    }

    fn root(&self, service: Arc<Service>, tenant: TenantId) -> Root {
        let handler = handler::Handler::new(service, tenant, self.tools, self.names.clone());
        #[cfg(feature = "conformance-fixtures")]
        let handler = fixtures::Served::new(handler, self.fixtures.clone());
        handler
    }
}
