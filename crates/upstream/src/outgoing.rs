//! One request, ready to be sent any number of times.
//! Invariant: a header of the request chooses neither host, framing, connection nor encoding, and every name and value is
//! one that cannot start another header. The credential's value is marked sensitive.

use std::time::Duration;

use base::{Method, Origin, Request, Secret};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use crate::address::{AddressError, address, encode};
use crate::payload::{self, Encoded, FORM, JSON, NotAContentType};

/// Headers that decide where a request goes, where it ends, or what this adapter must be able to read back.
const RESERVED: [HeaderName; 10] = [
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

const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// Why a request is not sent. Nothing of a value is in it: a value may be private.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("`{0}` is not a header's name")]
    Name(String),
    #[error("the value of header `{0}` has a character that no header can carry")]
    Value(HeaderName),
    #[error("header `{0}` is not a catalog's to set")]
    Reserved(HeaderName),
    #[error(transparent)]
    ContentType(#[from] NotAContentType),
    #[error("the pace is no rate: more than zero a second, and at least one call at a time")]
    Pace,
}

pub(crate) struct Outgoing {
    method: reqwest::Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Vec<u8>>,
}

impl Outgoing {
    /// The request as its catalog means it, addressed to `place`: its origin, or where that is routed to.
    pub(crate) fn new(request: &Request, place: &Origin) -> Result<Self, Refusal> {
        let asked = address(&request.origin, &request.path, &request.query)?;
        let url = if *place == request.origin { asked } else { address(place, &request.path, &request.query)? };
        let body = request.body.as_ref().map(payload::encode).transpose()?;
        let mut headers = HeaderMap::new();
        for (name, text) in &request.headers {
            let name = header_name(name)?;
            let value = HeaderValue::from_str(text).map_err(|_| Refusal::Value(name.clone()))?;
            headers.append(name, value);
        }
        headers.entry(header::ACCEPT).or_insert(JSON);
        headers.insert(header::ACCEPT_ENCODING, GZIP);
        let body = body.map(|Encoded { bytes, content_type }| {
            headers.entry(header::CONTENT_TYPE).or_insert(content_type);
            bytes
        });
        Ok(Self { method: method(request.method), url, headers, body })
    }

    /// A form, as a token endpoint wants it: not what a catalog asks for, so it has no `Request`.
    pub(crate) fn form(origin: &Origin, path: &str, fields: &[(String, String)]) -> Result<Self, Refusal> {
        let url = address(origin, path, &[])?;
        let headers = HeaderMap::from_iter([
            (header::ACCEPT, JSON),
            (header::ACCEPT_ENCODING, GZIP),
            (header::CONTENT_TYPE, FORM),
        ]);
        Ok(Self { method: reqwest::Method::POST, url, headers, body: Some(encode(fields).into_bytes()) })
    }

    /// Adds a credential, in place of any header of that name.
    pub(crate) fn put_header(&mut self, name: &str, text: &Secret) -> Result<(), Refusal> {
        let name = header_name(name)?;
        let mut value = HeaderValue::from_str(text.expose()).map_err(|_| Refusal::Value(name.clone()))?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        Ok(())
    }

    /// Adds a credential, in place of any parameter of that name.
    pub(crate) fn put_query(&mut self, name: &str, text: &Secret) {
        let mut pairs: Vec<_> = self.url.query_pairs().into_owned().filter(|(key, _)| key != name).collect();
        pairs.push((name.to_owned(), text.expose().to_owned()));
        self.url.set_query(Some(&encode(&pairs)));
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

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
    if RESERVED.contains(&name) { Err(Refusal::Reserved(name)) } else { Ok(name) }
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
