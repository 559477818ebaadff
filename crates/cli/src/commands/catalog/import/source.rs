//! Where a specification comes from: a file, standard input, or a URL.
//! Invariant: what is fetched comes from the URL's own origin, with no credential; the size of an answer is bounded.

use std::io::Read;
use std::path::Path;

use base::{Method, Origin, Payload, Request, TenantId};
use ports::Upstream;
use ports::upstream::Call;
use serde_json::json;

use crate::args::Folders;
use crate::commands::catalog::find;
use crate::failure::Failure;
use crate::wiring;

/// Specifications are larger than answers.
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// What a GraphQL endpoint says of itself when asked with this.
pub const INTROSPECTION: &str = "query { __schema { queryType { name } mutationType { name } types { kind name description interfaces { name } enumValues(includeDeprecated: true) { name } inputFields { name description defaultValue type { ...T } } fields(includeDeprecated: true) { name description isDeprecated type { ...T } args { name description defaultValue type { ...T } } } } } } fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } }";

pub fn is_url(name: &str) -> bool {
    name.starts_with("http://") || name.starts_with("https://")
}

/// `ask` is what a URL is asked with, where it is not just fetched.
pub async fn read(config: Option<&Path>, name: &str, ask: Option<&str>) -> Result<Vec<u8>, Failure> {
    if is_url(name) {
        return fetch(config, name, ask).await;
    }
    let unreadable = |cause: std::io::Error| match cause.kind() {
        std::io::ErrorKind::NotFound => Failure::Missing { path: name.into() },
        _ => Failure::Unreadable { path: name.into(), cause },
    };
    if name != "-" {
        return std::fs::read(name).map_err(unreadable);
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

async fn fetch(config: Option<&Path>, url: &str, ask: Option<&str>) -> Result<Vec<u8>, Failure> {
    let unfetched = |why: String| Failure::Unfetched { url: url.to_owned(), why };
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let path_at = url[after_scheme..].find(['/', '?', '#']).map_or(url.len(), |at| after_scheme + at);
    let (origin, rest) = url.split_at(path_at);
    let origin = Origin::parse(origin).map_err(|error| unfetched(error.to_string()))?;
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), value.to_owned())
    };
    let request = Request {
        method: if ask.is_some() { Method::Post } else { Method::Get },
        origin,
        path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
        query: query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect(),
        headers: Vec::new(),
        body: ask.map(|query| Payload::json(json!({"query": query}))),
        auth: None,
        anonymous: true,
    };
    let mut config = find::config(config, &Folders::default())?;
    config.limits.response_bytes = MAX_BYTES;
    let upstream = wiring::upstream_alone(&config)?;
    let call = Call { tenant: TenantId::local(), request, repeatable: true, pace: None };
    let response = upstream.send(call).await.map_err(|error| unfetched(error.to_string()))?;
    if !response.is_success() {
        return Err(unfetched(format!("it answered with status {}", response.status)));
    }
    Ok(response.body)
}
