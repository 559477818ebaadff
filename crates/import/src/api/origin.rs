//! The choice of an API's origin from OpenAPI servers with variables, Swagger 2.0 hosts, and servers of single operations.
//! Invariant: the chosen origin is valid in a catalog. A specification without an origin gets a placeholder origin and a guess
//! in the report.

use std::collections::BTreeMap;

use base::Origin;
use serde_json::Value;
use url::Url;

use crate::spec::{Operation, Spec};

/// The origin that is written if the specification declares none. A person replaces it in the draft.
const PLACEHOLDER_ORIGIN: &str = "https://api.example.com";

/// The maximum number of servers that are read from one list.
const MAX_SERVERS: usize = 50;

/// A server of the specification, split into origin and base path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Server {
    origin: String,
    /// The path that is put before each operation's path: empty, or starting with `/`.
    base_path: String,
}

/// The origin that was chosen for a catalog, with the path prefix of each operation.
#[derive(Debug)]
pub struct ApiOrigin {
    /// The origin with the base path that all operations share.
    pub origin: String,
    /// For each operation, the text to put before its path; or the other origin on which the operation is served.
    pub path_prefixes: Vec<Result<String, OtherOrigin>>,
    /// The report's text if the origin is only a placeholder.
    pub guess: Option<String>,
}

/// The origin of an operation that is served elsewhere. A catalog has one origin, so it cannot call this operation.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherOrigin(pub String);

/// Chooses the server that most operations use. `from` is the URL of the specification; relative servers are resolved against
/// it.
pub fn choose_origin(spec: &Spec, operations: &[Operation<'_>], from: Option<&str>) -> ApiOrigin {
    let from = from.and_then(|text| Url::parse(text).ok());
    let common = if spec.is_swagger {
        swagger_server(spec, from.as_ref())
    } else {
        preferred_server(spec.root().get("servers"), from.as_ref())
    };
    let fetched_from = || from.as_ref().and_then(|url| parse_server("/", Some(url)));
    let placeholder = Server { origin: PLACEHOLDER_ORIGIN.to_owned(), base_path: String::new() };
    let common = common.or_else(fetched_from).unwrap_or(placeholder);
    let own_server = |op: &Operation<'_>| op.servers.and_then(|list| preferred_server(Some(list), from.as_ref()));
    let servers: Vec<Server> = operations.iter().map(|op| own_server(op).unwrap_or_else(|| common.clone())).collect();
    let mut count: BTreeMap<&Server, usize> = BTreeMap::new();
    for server in &servers {
        *count.entry(server).or_default() += 1;
    }
    let most =
        count.iter().max_by_key(|(server, n)| (**n, std::cmp::Reverse(*server))).map(|(server, _)| (*server).clone());
    let main = most.unwrap_or(common);
    let guess = (main.origin == PLACEHOLDER_ORIGIN)
        .then(|| "the specification does not say where the API is: write its `origin`".to_owned());
    // If base paths differ between operations, each base path becomes a path prefix instead of a part of the origin.
    let bases_differ = servers.iter().any(|server| server.origin == main.origin && server.base_path != main.base_path);
    let base_path = if bases_differ { String::new() } else { main.base_path.clone() };
    let path_prefixes = servers
        .iter()
        .map(|server| match server {
            server if server.origin != main.origin => Err(OtherOrigin(server.origin.clone())),
            server if bases_differ => Ok(server.base_path.clone()),
            _ => Ok(String::new()),
        })
        .collect();
    ApiOrigin { origin: format!("{}{base_path}", main.origin), path_prefixes, guess }
}

/// Returns the first server of a list with an `https` URL; if there is none, the first server.
fn preferred_server(list: Option<&Value>, from: Option<&Url>) -> Option<Server> {
    let servers = list?.as_array()?;
    let parse = |server: &Value| {
        let url = replace_variables(server.get("url")?.as_str()?, server.get("variables"));
        parse_server(&url, from)
    };
    let servers: Vec<Server> = servers.iter().take(MAX_SERVERS).filter_map(parse).collect();
    servers.iter().find(|server| server.origin.starts_with("https://")).or(servers.first()).cloned()
}

/// Replaces each `{variable}` of a server URL by its default, its first allowed value, or `example`.
fn replace_variables(text: &str, variables: Option<&Value>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}') else { break };
        let name = &rest[open + 1..open + close];
        let variable = variables.and_then(|v| v.get(name));
        let default = variable.and_then(|v| v.get("default")).and_then(Value::as_str);
        let first_choice = || variable.and_then(|v| v.get("enum")?.get(0)?.as_str());
        out.push_str(&rest[..open]);
        out.push_str(default.filter(|d| !d.is_empty()).or_else(first_choice).unwrap_or("example"));
        rest = &rest[open + close + 1..];
    }
    out.push_str(rest);
    out
}

/// Parses the URL of a server, which may be absolute or relative to `from`.
fn parse_server(text: &str, from: Option<&Url>) -> Option<Server> {
    let text = text.trim();
    let url = match text.strip_prefix("//") {
        Some(rest) => Url::parse(&format!("https://{rest}")).ok()?,
        None => match (Url::parse(text), from) {
            (Ok(url), _) => url,
            (Err(_), Some(from)) => from.join(text).ok()?,
            (Err(_), None) => {
                let base_path = base_path(text);
                return (!base_path.is_empty()).then(|| Server { origin: PLACEHOLDER_ORIGIN.to_owned(), base_path });
            }
        },
    };
    let host = url.host_str()?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let is_local = host == "localhost" || host.ends_with(".localhost") || host == "[::1]" || host.starts_with("127.");
    // A catalog accepts plain HTTP only for loopback hosts.
    let scheme = if is_local && url.scheme() == "http" { "http" } else { "https" };
    let port = if scheme != url.scheme() && port == ":80" { String::new() } else { port };
    let origin = Origin::parse(&format!("{scheme}://{host}{port}")).ok()?;
    Some(Server { origin: origin.as_str().to_owned(), base_path: base_path(url.path()) })
}

/// Returns a base path with one `/` before each segment. Returns an empty text if a segment has invalid characters.
fn base_path(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != "." && *part != "..").collect();
    let is_valid = |part: &&str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~@:!$()+,;=".contains(&b));
    if parts.iter().all(is_valid) && !parts.is_empty() { format!("/{}", parts.join("/")) } else { String::new() }
}

/// Returns the server that a Swagger 2.0 specification declares by `schemes`, `host` and `basePath`.
fn swagger_server(spec: &Spec, from: Option<&Url>) -> Option<Server> {
    let host = spec.text(&["host"]);
    let base_path = spec.text(&["basePath"]);
    let schemes = spec.root().get("schemes").and_then(Value::as_array);
    let only_http = schemes.is_some_and(|list| !list.iter().any(|s| s == "https") && list.iter().any(|s| s == "http"));
    if host.is_empty() {
        return parse_server(if base_path.is_empty() { "/" } else { base_path }, from);
    }
    let scheme = if only_http { "http" } else { "https" };
    parse_server(&replace_variables(&format!("{scheme}://{host}{base_path}"), None), from)
}
