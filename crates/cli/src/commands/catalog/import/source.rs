//! Reads a specification from a file, from standard input, or from a URL.
//! Invariant: a URL is fetched without credentials and without a redirect to another origin, and the size of the answer is limited.

use std::io::Read;
use std::path::Path;

use base::{Method, Origin, Payload, Request, TenantId};
use ports::Upstream;
use ports::upstream::Call;
use serde_json::json;

use crate::args::CatalogFolders;
use crate::commands::catalog::find;
use crate::failure::Failure;
use crate::wiring;

/// The largest specification. The limit for the answers of APIs (`limits.response_bytes`) is too small for specifications.
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// The introspection query, which asks a GraphQL endpoint for its schema.
pub const INTROSPECTION: &str = "query { __schema { queryType { name } mutationType { name } types { kind name description interfaces { name } enumValues(includeDeprecated: true) { name } inputFields { name description defaultValue type { ...T } } fields(includeDeprecated: true) { name description isDeprecated type { ...T } args { name description defaultValue type { ...T } } } } } } fragment T on __Type { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } }";

pub fn is_url(name: &str) -> bool {
    name.starts_with("http://") || name.starts_with("https://")
}

/// Reads a specification. A URL is fetched with GET, or with a POST of the GraphQL query `query` if there is one.
pub async fn read(config_file: Option<&Path>, name: &str, query: Option<&str>) -> Result<Vec<u8>, Failure> {
    if is_url(name) {
        return fetch(config_file, name, query).await;
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

async fn fetch(config_file: Option<&Path>, url: &str, graphql_query: Option<&str>) -> Result<Vec<u8>, Failure> {
    let unfetched = |problem: String| Failure::Unfetched { url: url.to_owned(), problem };
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let origin_end = url[after_scheme..].find(['/', '?', '#']).map_or(url.len(), |at| after_scheme + at);
    let (origin, rest) = url.split_at(origin_end);
    let origin = Origin::parse(origin).map_err(|error| unfetched(error.to_string()))?;
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), value.to_owned())
    };
    let request = Request {
        method: if graphql_query.is_some() { Method::Post } else { Method::Get },
        origin,
        path: if path.is_empty() { "/".to_owned() } else { path.to_owned() },
        query: query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect(),
        headers: Vec::new(),
        body: graphql_query.map(|query| Payload::json(json!({"query": query}))),
        auth: None,
        anonymous: true,
    };
    let mut config = find::read_config(config_file, &CatalogFolders::default())?;
    config.limits.response_bytes = MAX_BYTES;
    let upstream = wiring::upstream_without_catalog(&config)?;
    let call = Call { tenant: TenantId::local(), request, repeatable: true, pace: None };
    let response = upstream.send(call).await.map_err(|error| unfetched(error.to_string()))?;
    if !response.is_success() {
        return Err(unfetched(format!("the server answered with status {}", response.status)));
    }
    Ok(response.body)
}
