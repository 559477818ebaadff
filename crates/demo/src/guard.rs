//! Refuses the requests of web pages: the Host of a request must be this API, and no page may be its origin.
//! Invariant: a page that a user of this machine visits can neither change the data nor read an answer, even if it rebinds its own name to
//! this address.

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::error::ApiError;

/// The names of this API: the origin of the shipped catalog, and the loopback address that stands for it.
const HOSTS: [&str; 4] = ["demo.localhost", "localhost", "127.0.0.1", "[::1]"];

/// The longest part of a foreign name that an answer repeats.
const MAX_SHOWN_CHARS: usize = 100;

/// Refuses a request with another Host, or from a page.
pub async fn check(request: Request, next: Next) -> Response {
    match refusal(&request) {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}

fn refusal(request: &Request) -> Option<ApiError> {
    let headers = request.headers();
    // Two Host headers are refused, because it is not known which one the client means.
    let host = only(headers, &header::HOST).unwrap_or_default();
    let named_by_uri = request.uri().authority().map_or(host, |authority| authority.as_str());
    if !is_own(host) || !is_own(named_by_uri) {
        return Some(ApiError::HostRefused { host: shown(host) });
    }
    // The API serves no page, so no page may call it. Clients that are not browsers send neither header.
    let fetched_by_page = headers.get("sec-fetch-site").is_some_and(|site| site != "none");
    let origin = headers.get(header::ORIGIN).map(|origin| String::from_utf8_lossy(origin.as_bytes()).into_owned());
    match origin {
        Some(origin) => Some(ApiError::OriginRefused { origin: shown(&origin) }),
        None if fetched_by_page => Some(ApiError::OriginRefused { origin: "a page".to_owned() }),
        None => None,
    }
}

/// Returns the value of a header that occurs exactly once and is text.
fn only<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Returns whether an authority is one of the names, with any port. The port is free, because the operating system chooses it.
fn is_own(authority: &str) -> bool {
    HOSTS.iter().any(|name| {
        let rest = authority
            .get(..name.len())
            .filter(|start| start.eq_ignore_ascii_case(name))
            .map(|_| &authority[name.len()..]);
        rest.is_some_and(|rest| match rest.strip_prefix(':') {
            Some(port) => port.bytes().all(|byte| byte.is_ascii_digit()),
            None => rest.is_empty(),
        })
    })
}

fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() { c } else { '?' }).take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::is_own;

    #[test]
    fn a_name_is_ours_whole_and_with_any_port() {
        for own in ["127.0.0.1:41234", "localhost", "DEMO.localhost:80", "[::1]:9", "demo.localhost"] {
            assert!(is_own(own), "{own}");
        }
        for other in
            ["", "evil.com", "localhost.evil.com", "127.0.0.1.evil.com", "127.0.0.1:80@evil.com", "[::1]x", "é"]
        {
            assert!(!is_own(other), "{other}");
        }
    }
}
