//! Outgoing HTTP requests and their answers as data, so that the code that binds and decodes needs no network.
//! Invariant: a request contains its origin and the *names* of secrets. Only the crate `upstream` reads the values of
//! these secrets.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The methods of HTTP that a catalog may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    /// Reads the name of a method, or returns `None`. The name must be in upper case, because methods are
    /// case-sensitive (RFC 9110, section 9.1).
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "GET" => Self::Get,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "PATCH" => Self::Patch,
            "DELETE" => Self::Delete,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// Scheme, host and port, such as `https://api.example.com`. A request is never sent to another origin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Origin(String);

/// Why a text was refused as an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    #[error("an origin starts with `https://` or `http://`")]
    Scheme,
    #[error("an origin has a host: `https://api.example.com`")]
    Host,
    #[error("`{0}` is not allowed in an origin; write scheme, host and port only")]
    Character(char),
    #[error("`{0}` is not a port")]
    Port(String),
}

impl Origin {
    /// Returns whether a credential may be sent to this origin: the origin uses TLS or is on this machine.
    pub fn is_safe_for_secrets(&self) -> bool {
        let Some(host) = self.0.strip_prefix("http://") else { return true };
        let name = if host.starts_with('[') { host } else { host.split(':').next().unwrap_or(host) };
        let loopback = name.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback());
        name == "localhost" || name.ends_with(".localhost") || loopback || name.starts_with("[::1]")
    }

    /// Reads a scheme, a host and an optional port. A path, a user or a query is refused. Scheme and host become
    /// lower case, and a default port is dropped.
    pub fn parse(text: &str) -> Result<Self, OriginError> {
        let lower = text.to_ascii_lowercase();
        let (scheme, authority) = match (lower.strip_prefix("https://"), lower.strip_prefix("http://")) {
            (Some(rest), _) => ("https", rest),
            (None, Some(rest)) => ("http", rest),
            (None, None) => return Err(OriginError::Scheme),
        };
        let (host, port) = split_host_and_port(authority)?;
        if host.is_empty() {
            return Err(OriginError::Host);
        }
        let default = if scheme == "https" { 443 } else { 80 };
        match port {
            Some(port) if port != default => Ok(Self(format!("{scheme}://{host}:{port}"))),
            _ => Ok(Self(format!("{scheme}://{host}"))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host and the port. An IPv6 address has no brackets.
    pub fn host_and_port(&self) -> (&str, u16) {
        let (scheme, authority) = self.0.split_once("://").unwrap_or(("https", &self.0));
        let default = if scheme == "https" { 443 } else { 80 };
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        (host, port.and_then(|port| port.parse().ok()).unwrap_or(default))
    }
}

/// Splits `host:port` into host and port. Characters that could begin a user, a path or a query are refused.
fn split_host_and_port(authority: &str) -> Result<(&str, Option<u16>), OriginError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(ipv6) => {
            let end = ipv6.find(']').ok_or(OriginError::Host)?;
            if let Some(bad) = ipv6[..end].chars().find(|c| !(c.is_ascii_hexdigit() || *c == ':' || *c == '.')) {
                return Err(OriginError::Character(bad));
            }
            // The brackets of an IPv6 address are part of the host.
            let (host, rest) = authority.split_at(end + 2);
            (host, if rest.is_empty() { None } else { Some(rest.strip_prefix(':').ok_or(OriginError::Host)?) })
        }
        None => {
            let (host, port) = authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
            if let Some(bad) = host.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))) {
                return Err(OriginError::Character(bad));
            }
            (host, port)
        }
    };
    let port = port.map(|text| text.parse::<u16>().map_err(|_| OriginError::Port(text.to_owned()))).transpose()?;
    Ok((host, port))
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Origin {
    type Error = OriginError;
    fn try_from(text: String) -> Result<Self, OriginError> {
        Self::parse(&text)
    }
}

impl From<Origin> for String {
    fn from(origin: Origin) -> String {
        origin.0
    }
}

/// How a catalog's requests are authenticated. The strings name secrets, headers and parameters; only those about
/// fetching a token are values.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Auth {
    /// `Authorization: Bearer …`
    Bearer(String),
    /// A header with a name of its own; `prefix` is written before the secret, as in `Authorization: token …`.
    Header {
        name: String,
        secret: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<String>,
    },
    /// A query parameter, for APIs that accept the secret nowhere else.
    Query { name: String, secret: String },
    /// `Authorization: Basic …`
    Basic { user: String, password: String },
    /// A bearer token of the client-credentials grant, fetched from the API's token endpoint.
    Oauth2 {
        #[schemars(with = "String")]
        token_origin: Origin,
        token_path: String,
        client_id: String,
        client_secret: String,
        #[serde(default)]
        scopes: Vec<String>,
    },
}

impl Auth {
    /// Returns the origin that receives the secrets, for requests to `request_origin`: the token endpoint of OAuth, and
    /// otherwise the origin of the request.
    pub fn secret_origin<'a>(&'a self, request_origin: &'a Origin) -> &'a Origin {
        match self {
            Self::Oauth2 { token_origin, .. } => token_origin,
            _ => request_origin,
        }
    }

    /// Returns the names of the secrets that are needed to sign a request.
    pub fn secret_names(&self) -> Vec<&str> {
        match self {
            Self::Bearer(secret) | Self::Header { secret, .. } | Self::Query { secret, .. } => vec![secret],
            Self::Basic { user, password } => vec![user, password],
            Self::Oauth2 { client_id, client_secret, .. } => vec![client_id, client_secret],
        }
    }
}

/// An outgoing request before its credential is added.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub method: Method,
    /// The only origin that the request may be sent to.
    pub origin: Origin,
    /// The percent-encoded path, which starts with `/` and has no query.
    pub path: String,
    /// The names and values of the query, which the sender encodes.
    pub query: Vec<(String, String)>,
    /// The headers that the catalog sets. The sender refuses headers for the host, the framing or the encoding.
    pub headers: Vec<(String, String)>,
    pub body: Option<Payload>,
    /// How to sign the request, with the names of secrets instead of their values.
    pub auth: Option<Auth>,
    /// Whether the request is sent without a credential if the tenant has not set the secret.
    pub anonymous: bool,
}

/// The body of a request, before the sender encodes it.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    Json {
        value: Value,
        /// The content type, if it differs from `application/json`.
        content_type: Option<String>,
    },
    /// `application/x-www-form-urlencoded`
    Form(Vec<(String, String)>),
    /// `multipart/form-data`
    Multipart(Vec<FormPart>),
    /// Bytes that are sent unchanged.
    Bytes { content_type: String, bytes: Vec<u8> },
}

/// One part of `multipart/form-data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormPart {
    /// The name of the form field.
    pub name: String,
    /// The name of the file, if the part is a file.
    pub file_name: Option<String>,
    pub content_type: Option<String>,
    pub bytes: Vec<u8>,
}

/// The rate at which all callers together may call one origin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pace {
    /// The number of calls per second, greater than zero.
    pub per_second: f64,
    /// The number of calls that may be made at once after a pause. 0 means 1.
    pub burst: u32,
    /// The number of simultaneous calls, or `None` without a limit of this catalog. The limit of the adapter
    /// `upstream` applies as well.
    pub concurrent: Option<u32>,
}

impl Payload {
    /// Returns a JSON body with the content type `application/json`.
    pub fn json(value: Value) -> Self {
        Self::Json { value, content_type: None }
    }

    pub fn as_json(&self) -> Option<&Value> {
        match self {
            Self::Json { value, .. } => Some(value),
            _ => None,
        }
    }
}

impl Request {
    /// Returns method, origin and path, for plans, logs and errors. Query values and credentials are left out,
    /// because they may be private.
    pub fn label(&self) -> String {
        format!("{} {}{}", self.method.as_str(), self.origin, self.path)
    }
}

/// The answer of an API.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    pub status: u16,
    /// The headers. Their names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// Returns the first header of this name. `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns whether the status is 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_auth_is_read_and_lists_its_secrets() {
        let forms = [
            (r#"{"bearer": "T"}"#, vec!["T"]),
            (r#"{"header": {"name": "X-Key", "secret": "K"}}"#, vec!["K"]),
            (r#"{"query": {"name": "api_key", "secret": "K"}}"#, vec!["K"]),
            (r#"{"basic": {"user": "U", "password": "P"}}"#, vec!["U", "P"]),
            (
                r#"{"oauth2": {"token_origin": "https://id.example", "token_path": "/token", "client_id": "I",
                    "client_secret": "S", "scopes": ["read"]}}"#,
                vec!["I", "S"],
            ),
            (
                r#"{"oauth2": {"token_origin": "https://id.example", "token_path": "/token", "client_id": "I",
                    "client_secret": "S"}}"#,
                vec!["I", "S"],
            ),
        ];
        for (text, names) in forms {
            let auth: Auth = serde_json::from_str(text).unwrap();
            assert_eq!(auth.secret_names(), names);
            assert_eq!(serde_json::from_value::<Auth>(serde_json::to_value(&auth).unwrap()).unwrap(), auth);
        }
        for bad in [
            r#"{"query": {"name": "k", "secret": "K", "more": 1}}"#,
            r#"{"basic": {"user": "U"}}"#,
            r#"{"oauth2": {"token_origin": "id.example", "token_path": "/t", "client_id": "I", "client_secret": "S"}}"#,
            r#"{"Basic": {"user": "U", "password": "P"}}"#,
        ] {
            assert!(serde_json::from_str::<Auth>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_origin_is_only_scheme_host_and_port() {
        let origin = |text: &str| Origin::parse(text).map(|origin| origin.to_string());
        assert_eq!(origin("HTTPS://Api.Example.com:443"), Ok("https://api.example.com".into()));
        assert_eq!(origin("http://127.0.0.1:8080"), Ok("http://127.0.0.1:8080".into()));
        assert_eq!(origin("http://[::1]:90"), Ok("http://[::1]:90".into()));
        for (text, host, port) in [
            ("https://api.example.com", "api.example.com", 443),
            ("http://api.example.com", "api.example.com", 80),
            ("https://127.0.0.1:8443", "127.0.0.1", 8443),
            ("http://[::1]:90", "::1", 90),
            ("https://[fd00::1]", "fd00::1", 443),
        ] {
            assert_eq!(Origin::parse(text).unwrap().host_and_port(), (host, port));
        }
        for bad in [
            "ftp://x",
            "https://",
            "https://a/b",
            "https://user@a",
            "https://a?b",
            "https://a:99999",
            "https://a\\b",
            "https://[::1",
            "https://[x]",
        ] {
            assert!(Origin::parse(bad).is_err(), "{bad}");
        }
    }
}
