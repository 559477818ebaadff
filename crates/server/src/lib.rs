//! The doors: MCP (`mcp`, the only user of the MCP SDK) and HTTP (`http`, the only user of the web framework in the product),
//! and the text both of them answer (`text`).
//!
//! Invariants:
//! - Nothing is decided here: a request becomes a call of `session`, an answer becomes text, JSON or a status.
//! - Host and Origin are checked before anything is read; every request has an id that all its log lines carry.
//! - A failure is an answer with a code and what to do; it never ends the process.

mod arguments;
pub mod found;
mod http;
mod identity;
pub mod js;
mod mcp;
mod message;
mod plasm;
pub mod text;

pub use http::{HttpError, HttpOptions, openapi, result_json, serve};
pub use mcp::{McpOptions, StdioError, ToolSet, instructions, serve_stdio, tool_list};
