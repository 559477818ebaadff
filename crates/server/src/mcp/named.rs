//! What a connection said of itself in its `X-MCP-*` headers: the name of its session, and what code reads as `mcp.headers`.
//! Invariant: in the older revisions they are those of `initialize`, kept with the transport session over restarts; in
//! 2026-07-28 those of each request. Nothing else of a request gets here.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use session::{Became, Caller, Connection, Error, InSession, Service};

pub type Headers = BTreeMap<String, String>;

const PREFIX: &str = "x-mcp-";
const NAME: &str = "x-mcp-session-id";
/// Of one connection.
const MOST: usize = 32;
const VALUE_BYTES: usize = 4 * 1024;
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

pub fn read(headers: &HeaderMap) -> Headers {
    let named = headers.iter().filter(|(name, _)| name.as_str().starts_with(PREFIX));
    let text = named.filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
    text.filter(|(_, value)| value.len() <= VALUE_BYTES).take(MOST).collect()
}

/// Who a call comes from, as far as JavaScript is concerned.
#[derive(Debug, Clone, Default)]
pub struct Named {
    pub name: Option<String>,
    pub headers: Headers,
    /// Of this call: which run it became.
    pub became: Option<Became>,
}

impl Named {
    pub fn of(headers: Headers) -> Self {
        Self { name: headers.get(NAME).cloned(), headers, became: None }
    }

    /// The session that a call means: a ref before the connection's name.
    pub fn session(&self, reference: Option<String>) -> InSession {
        match (reference, &self.name) {
            (Some(reference), _) => InSession::Logical(reference),
            (None, Some(name)) => InSession::Named(name.clone()),
            (None, None) => InSession::None,
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
        let Connection::Transport(id) = &caller.connection else { return Ok(Named::of(read(&parts.headers))) };
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
