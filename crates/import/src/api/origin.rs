//! Where the API is: servers with their variables, hosts of Swagger 2.0, paths that live elsewhere.
//! Invariant: what comes out is an origin that a catalog takes; where the specification says none, a placeholder says so.

use std::collections::BTreeMap;

use base::Origin;
use serde_json::Value;
use url::Url;

use crate::spec::{Operation, Spec};

const NOWHERE: &str = "https://api.example.com";

/// One server: origin and the path before every other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Server {
    origin: String,
    base: String,
}

#[derive(Debug)]
pub struct Home {
    /// With the path that goes before every other.
    pub origin: String,
    /// What goes before the path of each operation, or why it cannot be called from here.
    pub before: Vec<Result<String, Elsewhere>>,
    pub guess: Option<String>,
}

/// The origin that an operation lives at, when it is not the catalog's.
#[derive(Debug, Clone, PartialEq)]
pub struct Elsewhere(pub String);

/// `from` is where the specification was fetched: servers may be said relative to it.
pub fn home(spec: &Spec, operations: &[Operation<'_>], from: Option<&str>) -> Home {
    let from = from.and_then(|text| Url::parse(text).ok());
    let common =
        if spec.old { old_server(spec, from.as_ref()) } else { server(spec.root().get("servers"), from.as_ref()) };
    let fetched = || from.as_ref().and_then(|url| parsed("/", Some(url)));
    let common = common.or_else(fetched).unwrap_or(Server { origin: NOWHERE.to_owned(), base: String::new() });
    let servers = |op: &Operation<'_>| op.servers.and_then(|list| server(Some(list), from.as_ref()));
    let own: Vec<Server> = operations.iter().map(|op| servers(op).unwrap_or_else(|| common.clone())).collect();
    let mut count: BTreeMap<&Server, usize> = BTreeMap::new();
    for server in &own {
        *count.entry(server).or_default() += 1;
    }
    let most =
        count.iter().max_by_key(|(server, n)| (**n, std::cmp::Reverse(*server))).map(|(server, _)| (*server).clone());
    let main = most.unwrap_or(common);
    let nowhere = main.origin == NOWHERE;
    let guess = nowhere.then(|| "the specification does not say where the API is: write its `origin`".to_owned());
    let bases_differ = own.iter().any(|server| server.origin == main.origin && server.base != main.base);
    let base = if bases_differ { String::new() } else { main.base.clone() };
    let before = own
        .iter()
        .map(|server| match server {
            server if server.origin != main.origin => Err(Elsewhere(server.origin.clone())),
            server if bases_differ => Ok(server.base.clone()),
            _ => Ok(String::new()),
        })
        .collect();
    Home { origin: format!("{}{base}", main.origin), before, guess }
}

fn server(list: Option<&Value>, from: Option<&Url>) -> Option<Server> {
    let servers = list?.as_array()?;
    let read = |server: &Value| {
        let text = filled(server.get("url")?.as_str()?, server.get("variables"));
        parsed(&text, from)
    };
    let all: Vec<Server> = servers.iter().take(50).filter_map(read).collect();
    all.iter().find(|server| server.origin.starts_with("https://")).or(all.first()).cloned()
}

/// The address with each variable at its default.
fn filled(text: &str, variables: Option<&Value>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}') else { break };
        let name = &rest[open + 1..open + close];
        let variable = variables.and_then(|v| v.get(name));
        let default = variable.and_then(|v| v.get("default")).and_then(Value::as_str);
        let first = || variable.and_then(|v| v.get("enum")?.get(0)?.as_str());
        out.push_str(&rest[..open]);
        out.push_str(default.filter(|d| !d.is_empty()).or_else(first).unwrap_or("example"));
        rest = &rest[open + close + 1..];
    }
    out.push_str(rest);
    out
}

fn parsed(text: &str, from: Option<&Url>) -> Option<Server> {
    let text = text.trim();
    let url = match text.strip_prefix("//") {
        Some(rest) => Url::parse(&format!("https://{rest}")).ok()?,
        None => match (Url::parse(text), from) {
            (Ok(url), _) => url,
            (Err(_), Some(from)) => from.join(text).ok()?,
            (Err(_), None) => {
                let base = base_of(text);
                return (!base.is_empty()).then(|| Server { origin: NOWHERE.to_owned(), base });
            }
        },
    };
    let host = url.host_str()?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let local = host == "localhost" || host.ends_with(".localhost") || host == "[::1]" || host.starts_with("127.");
    let scheme = if local && url.scheme() == "http" { "http" } else { "https" };
    let port = if scheme != url.scheme() && port == ":80" { String::new() } else { port };
    let origin = Origin::parse(&format!("{scheme}://{host}{port}")).ok()?;
    Some(Server { origin: origin.as_str().to_owned(), base: base_of(url.path()) })
}

/// A path that may go before others; empty where it may not.
fn base_of(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != "." && *part != "..").collect();
    let fine = |part: &&str| part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.~@:!$()+,;=".contains(&b));
    if parts.iter().all(fine) && !parts.is_empty() { format!("/{}", parts.join("/")) } else { String::new() }
}

fn old_server(spec: &Spec, from: Option<&Url>) -> Option<Server> {
    let host = spec.text(&["host"]);
    let base = spec.text(&["basePath"]);
    let schemes = spec.root().get("schemes").and_then(Value::as_array);
    let http = schemes.is_some_and(|list| !list.iter().any(|s| s == "https") && list.iter().any(|s| s == "http"));
    if host.is_empty() {
        return parsed(if base.is_empty() { "/" } else { base }, from);
    }
    let scheme = if http { "http" } else { "https" };
    parsed(&filled(&format!("{scheme}://{host}{base}"), None), from)
}
