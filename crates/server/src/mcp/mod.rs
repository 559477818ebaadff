//! MCP on stdio and Streamable HTTP, both protocol eras. The only module that names the MCP SDK.
//! Invariant: the tool list is the same for every connection and never changes as a side effect of a call.

mod caller;
mod handler;
mod http;
mod meta;
mod named;
mod progress;
mod resources;
mod stdio;
mod tools;
mod transport_store;

pub use http::{HttpLists, service};
pub use named::{during as during_headers, read as read_headers};
pub use stdio::{StdioError, serve_stdio};

/// Which tools there are for a client, and what its connection is called where it does not say so itself.
#[derive(Debug, Clone, Default)]
pub struct McpOptions {
    pub tools: ToolSet,
    pub session_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolSet {
    /// Those that a model needs to work with programs and code.
    Core,
    #[default]
    All,
}

/// Name, description and input schema of every tool: what a model sees of them.
pub fn tool_list() -> serde_json::Value {
    serde_json::to_value(tools::offered(ToolSet::All)).unwrap_or_default()
}
