//! `fetch` of code: a request to an origin that the settings allow.
//! Invariant: it goes through the same port as every call of a catalog, which pins the origin and refuses redirects; no
//! credential is added.

use std::collections::BTreeMap;

use base::{Method, Origin, Payload, Request, TenantId};
use base64::prelude::{BASE64_STANDARD, Engine};
use ports::scripts::Thrown;
use ports::upstream::Call;
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::thrown;
use crate::service::Service;

/// What the guest sends for one `fetch`.
#[derive(Debug, Deserialize)]
struct Asked {
    url: String,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// In base64.
    #[serde(default)]
    body: Option<String>,
}

pub(super) fn changes_something(request: &Value) -> bool {
    let method = request.get("method").and_then(Value::as_str).unwrap_or("GET");
    !method.eq_ignore_ascii_case("GET")
}

pub(super) async fn fetch(service: &Service, tenant: &TenantId, request: Value) -> Result<Value, Thrown> {
    let refuse = |message: String| thrown("TypeError", message);
    let asked: Asked = serde_json::from_value(request).map_err(|error| refuse(format!("fetch: {error}")))?;
    let name = asked.method.as_deref().unwrap_or("GET").to_ascii_uppercase();
    let method = Method::parse(&name).ok_or_else(|| refuse(format!("fetch: method {name} is not available")))?;
    let (origin, path, query) = split(&asked.url).ok_or_else(|| refuse(format!("fetch: not a URL: {}", asked.url)))?;
    let allowed = &service.js().map_err(|error| refuse(error.to_string()))?.settings.fetch;
    if !allowed.contains(&origin) {
        return Err(refuse(not_allowed(&origin, allowed)));
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
        auth: None,
        anonymous: true,
    };
    let call = Call { tenant: tenant.clone(), request, repeatable: method == Method::Get, pace: None };
    let response = service.ports.upstream.send(call).await.map_err(|error| refuse(format!("fetch failed: {error}")))?;
    Ok(json!({
        "url": asked.url,
        "status": response.status,
        "headers": response.headers,
        "body": BASE64_STANDARD.encode(&response.body),
    }))
}

/// Who reads this cannot change the settings; who can is told what to write.
fn not_allowed(origin: &Origin, allowed: &[Origin]) -> String {
    let which = match allowed {
        [] => "this server allows code to fetch from no origin".to_owned(),
        some => {
            let some: Vec<&str> = some.iter().map(Origin::as_str).collect();
            format!("this server allows code to fetch only from {}", some.join(", "))
        }
    };
    format!(
        "fetch: {which}; its operator allows {origin} with `fetch = [\"{origin}\"]` under `[js]` in the settings file"
    )
}

type Parts = (Origin, String, Vec<(String, String)>);

/// A URL as the port takes it: names and values of the query as they are meant.
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
    fn a_url_is_split_as_it_is_meant() {
        let (origin, path, query) = split("https://api.example.com:443/a%20b/c?q=x%26y+z&e=#top").unwrap();
        assert_eq!((origin.as_str(), path.as_str()), ("https://api.example.com", "/a%20b/c"));
        assert_eq!(query, [("q".to_owned(), "x&y z".to_owned()), ("e".to_owned(), String::new())]);
        assert_eq!(split("http://h").unwrap().1, "/");
        for bad in ["", "api.example.com/x", "https://user@h/x", "https://h/a b", "ftp://h/", "https://h/?q=%zz"] {
            assert!(split(bad).is_none(), "{bad}");
        }
    }
}
