//! `fetch` for scripts: a request that a rule of the settings allows.
//! Invariant: the request goes through the same port as every call of a catalog. The port pins the origin, refuses
//! redirects and adds the rule's credential, which the code neither sees nor chooses. Tenants and forks that may not
//! write cannot write by `fetch` either.

use std::collections::BTreeMap;

use access::Caller;
use base::{Auth, LogicalSessionId, Method, Origin, Payload, Request};
use base64::prelude::{BASE64_STANDARD, Engine};
use ports::receipts::State;
use ports::scripts::Thrown;
use ports::upstream::{Call, DepartureCheck, NoCheck};
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::thrown;
use crate::engine::FetchRule;
use crate::engine::fetch_rule::{self, NoMatchingRule};
use crate::service::Service;

/// Some servers take the method from these headers, which would bypass the rule's methods.
const OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// A longer address is cut in a receipt.
const MAX_LABEL_CHARS: usize = 500;
/// The headers that ask for a part of an answer, or for an answer on a condition. An API that echoes the credential could
/// be asked for one piece of it after the other, and no piece would be recognised.
const PARTIAL_HEADERS: [&str; 6] =
    ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];

/// The guest's message for one `fetch`.
#[derive(Debug, Deserialize)]
struct FetchRequest {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body in base64.
    #[serde(default)]
    body: Option<String>,
}

pub(super) fn is_write(request: &Value) -> bool {
    let method = request.get("method").and_then(Value::as_str).unwrap_or("GET");
    !method.eq_ignore_ascii_case("GET")
}

/// The origin of a `fetch`: caller, headers and session.
pub(super) struct FetchCaller<'a> {
    pub caller: &'a Caller,
    /// The `X-MCP-*` headers of the connection.
    pub headers: &'a BTreeMap<String, String>,
    pub session: Option<LogicalSessionId>,
}

/// The result of one `fetch`: its answer, and what is known of its effect.
pub(super) struct Fetched {
    pub answer: Result<Value, Thrown>,
    pub state: State,
}

/// Returns the method and address of a request without query values, for its receipt.
pub(super) fn label(request: &Value) -> String {
    let text = |name: &str| request.get(name).and_then(Value::as_str);
    let url = text("url").unwrap_or_default();
    let address = url.split_once(['?', '#']).map_or(url, |(before, _)| before);
    let address: String = address.chars().take(MAX_LABEL_CHARS).collect();
    format!("{} {address}", text("method").unwrap_or("GET").to_ascii_uppercase())
}

/// Sends one request. `check` opens the receipt of a request with an effect when it is about to leave.
pub(super) async fn fetch(
    service: &Service,
    from: FetchCaller<'_>,
    request: Value,
    check: Option<&dyn DepartureCheck>,
) -> Fetched {
    let not_sent = |why: &str| State::Failed { status: None, why: why.to_owned() };
    let (url, call) = match prepare(service, from, request).await {
        Ok(prepared) => prepared,
        Err(refused) => return Fetched { answer: Err(refused), state: not_sent("refused before it left") },
    };
    let sent = service.ports.upstream.send_checked(call, check.unwrap_or(&NoCheck)).await;
    let response = match sent {
        Ok(response) => response,
        Err(error) => {
            let state = match error.may_have_arrived() {
                true => State::Unknown { status: None, why: "the answer was lost".to_owned() },
                false => not_sent("it did not leave"),
            };
            return Fetched { answer: Err(refuse(format!("fetch failed: {error}"))), state };
        }
    };
    let state = match response.status {
        status @ 400..=499 => State::Failed { status: Some(status), why: "the API refused it".to_owned() },
        status @ 500.. => State::Unknown { status: Some(status), why: "the API failed".to_owned() },
        _ => State::Done,
    };
    let headers: Vec<(String, String)> =
        response.headers.into_iter().map(|(name, value)| (name, byte_string(value))).collect();
    let answer = json!({
        "url": url,
        "status": response.status,
        "headers": headers,
        "body": BASE64_STANDARD.encode(&response.body),
    });
    Fetched { answer: Ok(answer), state }
}

/// Returns a header's value in the form that `Headers` takes: no character above U+00FF. The Fetch standard makes a character of each
/// byte of a header ("isomorphic decode"), so other text becomes the bytes of its UTF-8.
fn byte_string(value: String) -> String {
    if value.chars().all(|c| u32::from(c) <= 0xff) { value } else { value.bytes().map(char::from).collect() }
}

/// Checks a request against the rules and makes the call.
async fn prepare(service: &Service, from: FetchCaller<'_>, request: Value) -> Result<(String, Call), Thrown> {
    let asked: FetchRequest = serde_json::from_value(request).map_err(|error| refuse(format!("fetch: {error}")))?;
    let name = asked.method.as_deref().unwrap_or("GET").to_ascii_uppercase();
    let method = Method::parse(&name).ok_or_else(|| refuse(format!("fetch: method {name} is not available")))?;
    let (origin, path, query) = split(&asked.url).ok_or_else(|| refuse(format!("fetch: not a URL: {}", asked.url)))?;
    let rules = &service.js().map_err(|error| refuse(error.to_string()))?.settings.fetch;
    let tenant = &from.caller.tenant;
    let which = fetch_rule::RuleQuery { tenant, headers: from.headers, origin: &origin, method };
    let rule = FetchRule::of(rules, &which).map_err(|unfit| refuse(not_allowed(&origin, method, &unfit)))?;
    if method != Method::Get {
        check_writes_allowed(service, &from).await?;
    }
    refuse_own_credential(rule, &asked.headers, &query)?;
    refuse_partial_answer(rule, &asked.headers)?;
    if let Some(name) = asked.headers.keys().find(|name| OVERRIDES.iter().any(|other| name.eq_ignore_ascii_case(other)))
    {
        return Err(refuse(format!("fetch: leave out the header `{name}`; the method is the request's own")));
    }
    let content_type = asked.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let content_type = content_type.map_or("text/plain;charset=UTF-8".to_owned(), |(_, value)| value.clone());
    let body = match &asked.body {
        Some(body) => {
            Some(BASE64_STANDARD.decode(body).map_err(|_| refuse("fetch: the body is not base64".to_owned()))?)
        }
        None => None,
    };
    let headers = asked.headers.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
    let request = Request {
        method,
        origin,
        path,
        query,
        headers: headers.collect(),
        body: body.map(|bytes| Payload::Bytes { content_type, bytes }),
        auth: rule.auth.clone(),
        anonymous: false,
    };
    let call = Call { tenant: tenant.clone(), request, repeatable: method == Method::Get, pace: None };
    Ok((asked.url, call))
}

fn refuse(message: String) -> Thrown {
    thrown("TypeError", message)
}

/// Refuses a write for a read-only tenant or an unpromoted fork.
async fn check_writes_allowed(service: &Service, from: &FetchCaller<'_>) -> Result<(), Thrown> {
    if service.tenants.is_read_only(&from.caller.tenant) {
        return Err(refuse("fetch: this tenant may only read, so only GET is sent".to_owned()));
    }
    let Some(id) = from.session else { return Ok(()) };
    let found = service.logical(from.caller, id).await.map_err(|error| refuse(format!("fetch: {error}")))?;
    match found {
        Some(session) if !session.row.fenced => Ok(()),
        Some(_) => Err(refuse(
            "fetch: this session is a fork; until promote_session it changes nothing, so only GET is sent".to_owned(),
        )),
        None => Err(refuse("fetch: the session of this run was removed".to_owned())),
    }
}

/// Refuses a credential in the request if the server adds one, since it would be unclear which of the two is meant.
fn refuse_own_credential(
    rule: &FetchRule,
    headers: &BTreeMap<String, String>,
    query: &[(String, String)],
) -> Result<(), Thrown> {
    let header = match &rule.auth {
        None => return Ok(()),
        Some(Auth::Query { name, .. }) => {
            let there = query.iter().any(|(given, _)| given == name);
            return if there { Err(refuse(signed(&rule.origin, "parameter", name))) } else { Ok(()) };
        }
        Some(Auth::Header { name, .. }) => name.as_str(),
        Some(Auth::Bearer(_) | Auth::Basic { .. } | Auth::Oauth2 { .. }) => "authorization",
    };
    let there = headers.keys().any(|given| given.eq_ignore_ascii_case(header));
    if there { Err(refuse(signed(&rule.origin, "header", header))) } else { Ok(()) }
}

/// Refuses a request for a part of an answer if the server adds a credential.
fn refuse_partial_answer(rule: &FetchRule, headers: &BTreeMap<String, String>) -> Result<(), Thrown> {
    let is_partial = |name: &&String| PARTIAL_HEADERS.iter().any(|header| name.eq_ignore_ascii_case(header));
    match headers.keys().find(is_partial) {
        Some(name) if rule.auth.is_some() => Err(refuse(format!(
            "fetch: this server signs requests to {}, so it refuses the header `{name}` ({}); leave it out",
            rule.origin,
            ports::codes::PARTIAL_ANSWER
        ))),
        _ => Ok(()),
    }
}

fn signed(origin: &Origin, what: &str, name: &str) -> String {
    format!("fetch: this server signs requests to {origin} itself; leave out the {what} `{name}`")
}

/// Returns the message for a refused request. The caller cannot change the settings, so it names what the operator
/// must write.
fn not_allowed(origin: &Origin, method: Method, unfit: &NoMatchingRule<'_>) -> String {
    let which = match unfit {
        NoMatchingRule::Method(methods) => {
            let methods: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
            return format!(
                "fetch: this server allows {} to {origin}, not {}; its operator allows it with `methods` of that rule under `[js]` in the settings file",
                methods.join(", "),
                method.as_str()
            );
        }
        NoMatchingRule::Origin(origins) if origins.is_empty() => {
            "this server allows code to fetch from no origin".to_owned()
        }
        NoMatchingRule::Origin(origins) => {
            let some: Vec<&str> = origins.iter().map(|origin| origin.as_str()).collect();
            format!("this server allows code to fetch only from {}", some.join(", "))
        }
    };
    format!(
        "fetch: {which}; its operator allows {origin} with `fetch = [\"{origin}\"]` under `[js]` in the settings file"
    )
}

/// The origin, the path and the query of a URL.
type Parts = (Origin, String, Vec<(String, String)>);

/// Splits a URL into the parts that the port takes, with decoded query parameters.
fn split(url: &str) -> Option<Parts> {
    let (scheme, rest) = url.split_once("://")?;
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let origin = Origin::parse(&format!("{scheme}://{}", &rest[..end])).ok()?;
    let (path, query) = rest[end..].split_once('?').unwrap_or((&rest[end..], ""));
    let path = if path.is_empty() { "/" } else { path };
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
    if !path.chars().all(plain) {
        return None;
    }
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(name)?, decoded(value)?))
    };
    Some((origin, path.to_owned(), pairs.map(pair).collect::<Option<_>>()?))
}

fn decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let hex = rest.get(..2).and_then(|hex| std::str::from_utf8(hex).ok())?;
                bytes.push(u8::from_str_radix(hex, 16).ok()?);
                rest = &rest[2..];
            }
            other => bytes.push(*other),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_of_an_answer_can_be_read_by_code() {
        assert_eq!(byte_string("caf\u{e9}.txt".to_owned()), "caf\u{e9}.txt");
        assert_eq!(byte_string("日".to_owned()), "\u{e6}\u{97}\u{a5}");
    }

    #[test]
    fn a_url_is_split_into_decoded_parts() {
        let (origin, path, query) = split("https://api.example.com:443/a%20b/c?q=x%26y+z&e=#top").unwrap();
        assert_eq!((origin.as_str(), path.as_str()), ("https://api.example.com", "/a%20b/c"));
        assert_eq!(query, [("q".to_owned(), "x&y z".to_owned()), ("e".to_owned(), String::new())]);
        assert_eq!(split("http://h").unwrap().1, "/");
        for bad in ["", "api.example.com/x", "https://user@h/x", "https://h/a b", "ftp://h/", "https://h/?q=%zz"] {
            assert!(split(bad).is_none(), "{bad}");
        }
    }
}
