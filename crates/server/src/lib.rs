//! The entry points of the server: MCP (`mcp`, the only user of the MCP SDK) and HTTP (`http`, the only user of the web framework
//! in the product), with the answers that both give as text (`text`) and as typed JSON (`view`).
//!
//! Invariants:
//! - Nothing is decided here: a request becomes a use case of `app`, and its answer becomes text, JSON or a status.
//! - Host and Origin are checked before anything is read. Every request has an id that all its log lines carry.
//! - A failure is an answer with a code and a remedy. It never ends the process.

mod arguments;
mod http;
mod mcp;
mod message;
pub mod text;
mod under_way;
pub mod view;
mod warn_seldom;

pub use http::{HttpError, HttpOptions, openapi, result_json, serve, serve_wrapped};
pub use mcp::{Handler, McpOptions, StdioError, ToolSet, WrapHandler, instructions, serve_stdio, tool_list};
