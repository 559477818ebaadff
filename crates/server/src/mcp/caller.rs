//! The caller of an MCP request.
//! Invariant: slots belong to the transport session if the protocol revision has one, else to the principal.

use access::{Caller, Identity};
use rmcp::RoleServer;
use rmcp::model::{ErrorData, ProtocolVersion};
use rmcp::service::RequestContext;

/// The header of the older revisions that names the transport session.
pub const TRANSPORT_SESSION_HEADER: &str = "mcp-session-id";
/// The header into which `http::guard` put the request's id.
const REQUEST_ID_HEADER: &str = "x-request-id";

/// Returns the caller of a request.
pub fn caller(context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
    // Authentication put the identity into the request. Standard input has no HTTP request and belongs to the operator.
    let identity = match context.extensions.get::<http::request::Parts>() {
        Some(parts) => parts.extensions.get::<Identity>().cloned().ok_or_else(|| {
            tracing::error!("a request reached a tool without an identity");
            ErrorData::internal_error("the request has no caller", None)
        })?,
        None => Identity::local(),
    };
    // Revision 2026-07-28 has no transport sessions, so a client that sends the header made its value up.
    let has_transport_session = !is_at_least_2026_07_28(context);
    Ok(identity.caller(header(context, TRANSPORT_SESSION_HEADER).filter(|_| has_transport_session)))
}

/// Returns whether the request belongs to a protocol revision without transport sessions.
pub fn is_at_least_2026_07_28(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Returns the id that the HTTP layer gave the request.
pub fn request_id(context: &RequestContext<RoleServer>) -> Option<String> {
    header(context, REQUEST_ID_HEADER)
}

fn header(context: &RequestContext<RoleServer>, name: &str) -> Option<String> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    parts.headers.get(name)?.to_str().ok().map(str::to_owned)
}
