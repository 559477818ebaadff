//! MCP on stdio and Streamable HTTP, both protocol eras. The only module that names the MCP SDK.
//! Invariant: the tool list is the same for every connection and never changes as a side effect of a call.

mod caller;
#[cfg(feature = "conformance-fixtures")]
mod fixtures;
mod handler;
mod http;
mod meta;
mod offer;
mod progress;
mod stdio;
mod tasks;
mod tools;
mod transport_store;

use std::sync::Arc;

use session::Service;

pub use handler::instructions;
pub use http::{HttpLists, service};
pub use offer::{Offer, ToolSet};
pub use stdio::{StdioError, serve_stdio};

/// Name, description and input schema of every tool of a set: what a model sees of them.
pub fn tool_list(set: ToolSet) -> serde_json::Value {
    serde_json::to_value(tools::all(set)).unwrap_or_default()
}

#[cfg(not(feature = "conformance-fixtures"))]
type Root = handler::Handler;
#[cfg(feature = "conformance-fixtures")]
type Root = fixtures::Served;

/// What answers every request, whatever it came by.
fn root(service: Arc<Service>, offer: Offer) -> Root {
    let handler = handler::Handler::new(service, offer.tools);
    #[cfg(feature = "conformance-fixtures")]
    let handler = fixtures::Served::new(handler, offer.fixtures);
    handler
}
