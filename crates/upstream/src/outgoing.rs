//! The type `Outgoing`: a checked request that can be signed and sent any number of times.
//! Invariant: no header of the catalog's request can change the host, the message length, the connection or the
//! encoding of the answer, and no header name or value can start another header. The value of a credential is marked as
//! sensitive, so that no `Debug` shows it.

use std::time::Duration;

use base::{Method, Origin, Request, Secret};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::address::{AddressError, encode_pairs, request_url};
use crate::payload::{self, EncodedBody, FORM_CONTENT_TYPE, JSON_CONTENT_TYPE, NotAContentType};

/// The headers that a catalog must not set. They decide to which host a request is sent, where the request ends, or how
/// its answer is encoded.
const RESERVED_HEADERS: [HeaderName; 10] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    header::ACCEPT_ENCODING,
    header::PROXY_AUTHORIZATION,
];

const GZIP_ENCODING: HeaderValue = HeaderValue::from_static("gzip");

/// The reason for which a request is refused and not sent. No variant contains the value of a header or parameter,
/// because a value may be private.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("`{0}` is not a valid name of an HTTP header")]
    Name(String),
    #[error("the value of the header `{0}` has a character that is not allowed in a header")]
    Value(HeaderName),
    #[error("the catalog sets the header `{0}`, which a catalog must not set")]
    Reserved(HeaderName),
    #[error(transparent)]
    ContentType(#[from] NotAContentType),
    #[error("the catalog's pace is invalid; allow more than zero calls a second and at least one concurrent call")]
    Pace,
}

pub(crate) struct Outgoing {
    method: reqwest::Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl Outgoing {
    /// Checks a request and builds its URL at `target`, which is the request's origin or the route of this origin.
    pub(crate) fn new(request: &Request, target: &Origin) -> Result<Self, Refusal> {
        // The URL at the origin is always built, because a routed request must be valid for its origin too.
        let origin_url = request_url(&request.origin, &request.path, &request.query)?;
        let url =
            if *target == request.origin { origin_url } else { request_url(target, &request.path, &request.query)? };
        let body = request.body.as_ref().map(payload::encode).transpose()?;
        let mut headers = HeaderMap::new();
        for (name, text) in &request.headers {
            let name = header_name(name)?;
            let value = HeaderValue::from_str(text).map_err(|_| Refusal::Value(name.clone()))?;
            headers.append(name, value);
        }
        headers.entry(header::ACCEPT).or_insert(JSON_CONTENT_TYPE);
        headers.insert(header::ACCEPT_ENCODING, GZIP_ENCODING);
        let body = body.map(|EncodedBody { bytes, content_type }| {
            headers.entry(header::CONTENT_TYPE).or_insert(content_type);
            bytes
        });
        Ok(Self { method: method(request.method), url, headers, body })
    }

    /// Returns a POST of a form to a token endpoint. No `Request` exists for it, because this crate makes the request
    /// itself.
    pub(crate) fn form(origin: &Origin, path: &str, fields: &[(String, String)]) -> Result<Self, Refusal> {
        let url = request_url(origin, path, &[])?;
        let headers = HeaderMap::from_iter([
            (header::ACCEPT, JSON_CONTENT_TYPE),
            (header::ACCEPT_ENCODING, GZIP_ENCODING),
            (header::CONTENT_TYPE, FORM_CONTENT_TYPE),
        ]);
        Ok(Self { method: reqwest::Method::POST, url, headers, body: Some(encode_pairs(fields).into_bytes()) })
    }

    /// Adds a credential as a header and removes other headers of that name.
    pub(crate) fn set_secret_header(&mut self, name: &str, secret: &Secret) -> Result<(), Refusal> {
        let name = header_name(name)?;
        let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| Refusal::Value(name.clone()))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }

    /// Adds a credential as a query parameter and removes other parameters of that name.
    pub(crate) fn set_secret_parameter(&mut self, name: &str, secret: &Secret) {
        let mut pairs: Vec<_> = self.url.query_pairs().into_owned().filter(|(key, _)| key != name).collect();
        pairs.push((name.to_owned(), secret.expose().to_owned()));
        self.url.set_query(Some(&encode_pairs(&pairs)));
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

    /// Returns the request for one try.
    pub(crate) fn request(&self, timeout: Duration) -> reqwest::Request {
        let mut request = reqwest::Request::new(self.method.clone(), self.url.clone());
        *request.headers_mut() = self.headers.clone();
        *request.body_mut() = self.body.clone().map(Into::into);
        *request.timeout_mut() = Some(timeout);
        request
    }
}

fn header_name(text: &str) -> Result<HeaderName, Refusal> {
    let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| Refusal::Name(text.escape_debug().to_string()))?;
    if RESERVED_HEADERS.contains(&name) { Err(Refusal::Reserved(name)) } else { Ok(name) }
}

fn method(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    }
}
