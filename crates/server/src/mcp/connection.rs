//! The `X-MCP-*` headers of a connection: the name of its session, and the headers that scripts read as `mcp.headers`.
//!
//! In the older protocol revisions the headers of `initialize` count. They are stored with the transport session and survive a
//! restart. In 2026-07-28 the headers of each request count, because that revision has no transport sessions.
//! Invariant: no other header of a request gets to a script. A session name that cannot be used is refused, never ignored.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use access::{Caller, Connection};
use app::App;
use app::calls::ConnectionScope;
use http::HeaderMap;
use rmcp::RoleServer;
use rmcp::service::RequestContext;

/// Header names in lower case, with their values.
pub type ConnectionHeaders = BTreeMap<String, String>;

/// The beginning of the names of headers that scripts may see.
const PREFIX: &str = "x-mcp-";
/// The header that names the connection's session.
const SESSION_NAME_HEADER: &str = "x-mcp-session-id";
/// The most headers of one connection. Others are left out.
const MAX_HEADERS: usize = 32;
/// Longer values are left out.
const MAX_VALUE_BYTES: usize = 4 * 1024;
/// The limit for the name of any session.
const MAX_SESSION_NAME_CHARS: usize = 256;
/// The bytes of cached headers, with their names. The store has those of all connections.
const MAX_CACHED_BYTES: usize = 4 * 1024 * 1024;
/// The bytes of a cache entry beside its headers.
const ENTRY_BYTES: usize = 256;

/// The session name of a request cannot be used. Ignoring it would run the call outside of the session that its client means.
#[derive(Debug, thiserror::Error)]
#[error(
    "X-MCP-Session-Id: a session's name has from 1 to {MAX_SESSION_NAME_CHARS} characters of ASCII, none of them a control character"
)]
pub struct BadSessionName;

impl BadSessionName {
    pub const CODE: &str = "bad_session_name";
}

/// Reads the headers that scripts may see. The session name is among them even if there are too many others.
pub fn read_headers(headers: &HeaderMap) -> Result<ConnectionHeaders, BadSessionName> {
    let mut kept = ConnectionHeaders::new();
    if let Some(value) = headers.get(SESSION_NAME_HEADER) {
        let name = value.to_str().map_err(|_| BadSessionName)?;
        if name.is_empty() || name.len() > MAX_SESSION_NAME_CHARS || name.contains(char::is_control) {
            return Err(BadSessionName);
        }
        kept.insert(SESSION_NAME_HEADER.to_owned(), name.to_owned());
    }
    for (name, value) in headers {
        if kept.len() >= MAX_HEADERS {
            break;
        }
        let Ok(value) = value.to_str() else { continue };
        if name.as_str().starts_with(PREFIX) && name != SESSION_NAME_HEADER && value.len() <= MAX_VALUE_BYTES {
            kept.insert(name.as_str().to_owned(), value.to_owned());
        }
    }
    Ok(kept)
}

/// Returns the scope of calls that come with these headers.
pub fn scope_of(headers: ConnectionHeaders) -> ConnectionScope {
    ConnectionScope { session_name: headers.get(SESSION_NAME_HEADER).cloned(), headers, id_cell: None }
}

/// Finds the headers of connections. Clones share one cache.
#[derive(Clone, Default)]
pub struct Connections {
    /// The session name of a connection that has no headers: standard input has one client, and the command line names its session.
    default_session_name: Option<String>,
    /// Scopes of transport sessions, by tenant and id. A transport session keeps the headers of its `initialize`, so an entry
    /// never goes out of date. Each is stored too, so the cache can be cleared.
    cache: Arc<Mutex<ScopeCache>>,
}

/// Scopes of transport sessions, and the bytes that they take.
#[derive(Default)]
struct ScopeCache {
    scopes: HashMap<String, ConnectionScope>,
    bytes: usize,
}

impl ScopeCache {
    /// Adds a scope. A full cache is cleared first, because a lost entry costs one read and no order of use has to be kept.
    fn insert(&mut self, key: String, scope: ConnectionScope) {
        let headers: usize = scope.headers.iter().map(|(name, value)| name.len() + value.len() + ENTRY_BYTES).sum();
        let bytes = ENTRY_BYTES + key.len() + headers;
        if self.bytes + bytes > MAX_CACHED_BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.scopes.insert(key, scope);
    }
}

impl Connections {
    pub fn new(default_session_name: Option<String>) -> Self {
        Self { default_session_name, cache: Arc::default() }
    }

    /// Returns what the connection of a request says about its scripts.
    pub async fn find(
        &self,
        app: &App,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<ConnectionScope, app::Error> {
        let Some(parts) = context.extensions.get::<http::request::Parts>() else {
            return Ok(ConnectionScope {
                session_name: self.default_session_name.clone(),
                ..ConnectionScope::default()
            });
        };
        let Connection::Transport(id) = &caller.connection else {
            // A bad name was refused before the SDK saw the request.
            return Ok(scope_of(read_headers(&parts.headers).unwrap_or_default()));
        };
        // The tenant is part of the key, because the id comes from the client.
        let key = format!("{}/{id}", caller.tenant);
        if let Some(cached) = self.cache.lock().unwrap_or_else(PoisonError::into_inner).scopes.get(&key) {
            return Ok(cached.clone());
        }
        // The lock is not held while the store is read.
        let stored = app.service().transport(caller, id).await?;
        let scope = scope_of(stored.as_deref().map(stored_headers).unwrap_or_default());
        self.cache.lock().unwrap_or_else(PoisonError::into_inner).insert(key, scope.clone());
        Ok(scope)
    }
}

/// The member of a stored transport session that holds its headers.
pub const STORED_MEMBER: &str = "mcp_headers";

/// Returns the headers of a stored transport session.
fn stored_headers(bytes: &[u8]) -> ConnectionHeaders {
    let row: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    row.get(STORED_MEMBER).and_then(|headers| serde_json::from_value(headers.clone()).ok()).unwrap_or_default()
}
