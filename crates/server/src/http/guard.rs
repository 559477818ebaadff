//! The first check of each request: it gets a request id, and its Host and Origin must be known. The Origin check keeps out web
//! pages that a user of this machine visits; the Host check keeps out pages that rebind their own name to this address.
//! Invariant: a request for an unknown host name, or from an unknown page, reaches no handler.

use std::sync::Arc;

use app::App;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use super::problem::Problem;

/// The header with the id that all log lines of a request carry. The response repeats it.
pub const REQUEST_ID_HEADER: &str = "x-request-id";

/// The names by which this server may be addressed.
pub struct Guard {
    /// Makes request ids.
    app: Arc<App>,
    /// The host names of this server, without a port.
    hosts: Vec<String>,
    /// The origins of pages that may send requests.
    origins: Vec<String>,
}

impl Guard {
    pub fn new(app: Arc<App>, hosts: &[String], origins: &[String]) -> Self {
        Self { app, hosts: hosts.to_vec(), origins: origins.to_vec() }
    }
}

/// Returns the origins of pages that this server itself would serve.
pub fn own_origins(hosts: &[String], port: u16) -> Vec<String> {
    hosts.iter().map(|host| format!("http://{}:{port}", bracketed(host))).collect()
}

/// Puts an IPv6 address into brackets, as a URL has it.
fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() }
}

/// Gives a request its id, and refuses it if its Host or its Origin is not known.
pub async fn check(State(guard): State<Arc<Guard>>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers()).unwrap_or_else(|| guard.app.service().new_request_id());
    let span = tracing::info_span!(
        "http",
        request_id = id,
        // Recorded when the identity is known.
        tenant = tracing::field::Empty,
        method = %request.method(),
        path = request.uri().path()
    );
    let id_header = HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("none"));
    request.headers_mut().insert(REQUEST_ID_HEADER, id_header.clone());
    let mut response = match refusal(&guard, &request) {
        Some(problem) => {
            let _entered = span.enter();
            tracing::warn!(code = problem.code, detail = problem.detail, "refused");
            problem.into_response()
        }
        None => next.run(request).instrument(span).await,
    };
    response.headers_mut().insert(REQUEST_ID_HEADER, id_header);
    response
}

/// Returns the id that the client chose, if it can stand in a log line.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(REQUEST_ID_HEADER)?.to_str().ok()?;
    base::RequestId::parse(text).ok().map(|id| id.to_string())
}

/// Returns the reason for which a request is refused.
fn refusal(guard: &Guard, request: &Request) -> Option<Problem> {
    let status = StatusCode::FORBIDDEN;
    let host_headers = request.headers().get_all(header::HOST).iter().count();
    let authority = request
        .uri()
        .authority()
        .map(|authority| authority.as_str())
        .or_else(|| header_text(request.headers(), header::HOST));
    // Two Host headers are refused, because a proxy in front may have judged the other one.
    let host = authority.and_then(host_only).filter(|_| host_headers <= 1);
    if !host.is_some_and(|host| guard.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))) {
        let shown = clip(authority.unwrap_or_default());
        let detail = format!("this server is not reached by the name `{shown}`; see `hosts` in the configuration");
        return Some(Problem::new(status, "host_refused", detail));
    }
    // Clients that are no browser send no Origin.
    let mut origins = request.headers().get_all(header::ORIGIN).iter();
    let origin = origins.next()?.to_str().unwrap_or_default();
    let origin = if origins.next().is_some() { "several origins" } else { origin };
    if guard.origins.iter().any(|known| known.eq_ignore_ascii_case(origin)) {
        return None;
    }
    let detail = format!("requests from pages of `{}` are refused", clip(origin));
    Some(Problem::new(status, "origin_refused", detail))
}

fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the host of an authority without its port: `127.0.0.1` of `127.0.0.1:3000`, `::1` of `[::1]:3000`. `None` if anything
/// else follows the host.
fn host_only(authority: &str) -> Option<&str> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = rest.strip_prefix(':').unwrap_or(rest);
    port.bytes().all(|byte| byte.is_ascii_digit()).then_some(host)
}

/// Cuts a text of the client for a message.
fn clip(text: &str) -> String {
    base::printable(text, 100)
}

#[cfg(test)]
mod tests {
    use super::host_only;

    #[test]
    fn an_authority_is_a_host_and_a_port_and_nothing_else() {
        assert_eq!(host_only("127.0.0.1:3000"), Some("127.0.0.1"));
        assert_eq!(host_only("localhost"), Some("localhost"));
        assert_eq!(host_only("[::1]:3000"), Some("::1"));
        for bad in ["[::1]evil.com", "127.0.0.1:80@evil.com", "127.0.0.1:evil", "[::1", "127.0.0.1:80:90"] {
            assert_eq!(host_only(bad), None, "{bad}");
        }
    }
}
