//! Who an MCP request comes from.
//! Invariant: slots belong to the transport session where there is one, else to the principal.

use base::{Principal, TenantId};
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use session::{Caller, Connection};

/// The header of the older revisions; 2026-07-28 has none.
const SESSION_HEADER: &str = "mcp-session-id";
const REQUEST_HEADER: &str = "x-request-id";

pub fn caller(context: &RequestContext<RoleServer>) -> Caller {
    let connection = match header(context, SESSION_HEADER) {
        Some(id) => Connection::Transport(id),
        None => Connection::Principal(Principal::local()),
    };
    Caller { tenant: TenantId::local(), connection }
}

/// The id that the HTTP layer gave the request.
pub fn request_id(context: &RequestContext<RoleServer>) -> Option<String> {
    header(context, REQUEST_HEADER)
}

fn header(context: &RequestContext<RoleServer>, name: &str) -> Option<String> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    parts.headers.get(name)?.to_str().ok().map(str::to_owned)
}
