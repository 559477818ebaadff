//! What a connection said of itself in its `X-MCP-*` headers: the name of its session, and what code reads as `mcp.headers`.
//! Invariant: in the older revisions they are those of `initialize`, kept with the transport session over restarts; in
//! 2026-07-28 those of each request. Nothing else of a request gets here. A name that cannot be used is refused, never left out.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use access::{Caller, Connection};
use http::HeaderMap;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use session::{Error, ExecutionIdCell, Service, SessionTarget};

pub type Headers = BTreeMap<String, String>;

const PREFIX: &str = "x-mcp-";
const NAME: &str = "x-mcp-session-id";
/// Of one connection.
const MOST: usize = 32;
const VALUE_BYTES: usize = 4 * 1024;
/// As long as any session's name.
const NAME_CHARS: usize = 256;
/// Connections whose headers are remembered; they can be read again.
const REMEMBERED: usize = 10_000;

tokio::task_local! {
    static OF_REQUEST: Headers;
}

/// Runs `work` as part of a request with these headers.
pub async fn during<T>(headers: Headers, work: impl Future<Output = T>) -> T {
    OF_REQUEST.scope(headers, work).await
}

/// Those of the request that this task answers.
pub fn of_request() -> Headers {
    OF_REQUEST.try_with(Clone::clone).unwrap_or_default()
}

/// A name that cannot be one: what would be logged under it would be logged nowhere.
#[derive(Debug, thiserror::Error)]
#[error(
    "X-MCP-Session-Id: a session's name has from 1 to {NAME_CHARS} characters of ASCII, none of them a control character"
)]
pub struct BadName;

impl BadName {
    pub const CODE: &str = "bad_session_name";
}

/// Those that code may see. The name is among them however many there are.
pub fn read(headers: &HeaderMap) -> Result<Headers, BadName> {
    let text = |value: &http::HeaderValue| value.to_str().map(str::to_owned).ok();
    let mut found = Headers::new();
    if let Some(value) = headers.get(NAME) {
        let usable = |name: &String| !name.is_empty() && name.len() <= NAME_CHARS && !name.contains(char::is_control);
        found.insert(NAME.to_owned(), text(value).filter(usable).ok_or(BadName)?);
    }
    let others = headers.iter().filter(|(name, _)| name.as_str().starts_with(PREFIX) && name.as_str() != NAME);
    let others = others.filter_map(|(name, value)| Some((name.as_str().to_owned(), text(value)?)));
    found.extend(others.filter(|(_, value)| value.len() <= VALUE_BYTES).take(MOST - found.len()));
    Ok(found)
}

/// Who a call comes from, as far as JavaScript is concerned.
#[derive(Debug, Clone, Default)]
pub struct Named {
    pub name: Option<String>,
    pub headers: Headers,
    /// Of this call: which run it became.
    pub id_cell: Option<ExecutionIdCell>,
}

impl Named {
    pub fn of(headers: Headers) -> Self {
        Self { name: headers.get(NAME).cloned(), headers, id_cell: None }
    }

    /// The session that a call means: a ref before the connection's name.
    pub fn session(&self, reference: Option<String>) -> SessionTarget {
        match (reference, &self.name) {
            (Some(reference), _) => SessionTarget::Logical(reference),
            (None, Some(name)) => SessionTarget::Named(name.clone()),
            (None, None) => SessionTarget::None,
        }
    }
}

/// Names of connections, and what was read of them.
#[derive(Clone, Default)]
pub struct Names {
    /// Of every connection that has none of its own: standard input has one client.
    pub given: Option<String>,
    known: Arc<Mutex<HashMap<String, Named>>>,
}

impl Names {
    pub fn new(given: Option<String>) -> Self {
        Self { given, known: Arc::default() }
    }

    pub async fn of(
        &self,
        service: &Service,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Named, Error> {
        let Some(parts) = context.extensions.get::<http::request::Parts>() else {
            return Ok(Named { name: self.given.clone(), ..Named::default() });
        };
        let Connection::Transport(id) = &caller.connection else {
            // Where there is a name that cannot be one, the request was refused before.
            return Ok(Named::of(read(&parts.headers).unwrap_or_default()));
        };
        let key = format!("{}/{id}", caller.tenant);
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known.clone());
        }
        let kept = service.transport(&caller.tenant, id).await?;
        let named = Named::of(kept.as_deref().map(kept_headers).unwrap_or_default());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, named.clone());
        Ok(named)
    }
}

/// The member of a stored transport session that holds its headers.
pub const KEPT: &str = "mcp_headers";

fn kept_headers(bytes: &[u8]) -> Headers {
    let row: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    row.get(KEPT).and_then(|headers| serde_json::from_value(headers.clone()).ok()).unwrap_or_default()
}
