//! MCP on stdio and Streamable HTTP, both protocol eras. The only module that names the MCP SDK.
//! Invariant: the tool list is the same for every connection and never changes as a side effect of a call.

mod caller;
mod handler;
mod http;
mod meta;
mod progress;
mod resources;
mod stdio;
mod tools;
mod transport_store;

pub use http::{HttpLists, service};
pub use stdio::{StdioError, serve_stdio};

/// Name, description and input schema of every tool: what a model sees of them.
pub fn tool_list() -> serde_json::Value {
    serde_json::to_value(tools::all()).unwrap_or_default()
}
