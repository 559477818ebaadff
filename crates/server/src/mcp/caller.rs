//! Who an MCP request comes from.
//! Invariant: slots belong to the transport session where there is one, else to the principal.

use access::{Caller, Identity};
use rmcp::RoleServer;
use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::RequestContext;

/// The header of the older revisions; 2026-07-28 has none.
pub const SESSION_HEADER: &str = "mcp-session-id";
const REQUEST_HEADER: &str = "x-request-id";

pub fn caller(context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
    // Over HTTP somebody was let in before; standard input is the operator's own.
    let identity = match context.extensions.get::<http::request::Parts>() {
        Some(parts) => parts.extensions.get::<Identity>().cloned().ok_or_else(|| {
            tracing::error!("a request reached a tool without an identity");
            ErrorData::internal_error("the request has no caller", None)
        })?,
        None => Identity::local(),
    };
    // In 2026-07-28 there are no transport sessions: whatever stands in the header, we did not mint it.
    let modern = context.protocol_version().is_some_and(|v| v.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    Ok(identity.caller(header(context, SESSION_HEADER).filter(|_| !modern)))
}

/// The id that the HTTP layer gave the request.
pub fn request_id(context: &RequestContext<RoleServer>) -> Option<String> {
    header(context, REQUEST_HEADER)
}

fn header(context: &RequestContext<RoleServer>, name: &str) -> Option<String> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    parts.headers.get(name)?.to_str().ok().map(str::to_owned)
}
