//! Where a next link goes: to the host that was asked, or to another origin when a client is to be tempted.
//! Invariant: what tempts is carried along in the link, so the next page tempts again.

use axum::http::HeaderMap;
use axum::http::header::HOST;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::ApiError;
use crate::query::Params;

/// Reserved by RFC 2606: it never resolves, so a request that follows it fails instead of reaching someone.
const FOREIGN: &str = "http://foreign.invalid";

pub struct Target {
    origin: String,
    path: &'static str,
    kept: Vec<(&'static str, String)>,
    pub repeats: bool,
}

impl Target {
    pub fn new(path: &'static str, headers: &HeaderMap, params: &Params) -> Result<Target, ApiError> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        let origin = match params.text("next") {
            None => format!("http://{host}"),
            Some("foreign") => FOREIGN.to_owned(),
            // A test may listen there to see whether anyone comes.
            Some(origin) if origin.starts_with("http://") || origin.starts_with("https://") => origin.to_owned(),
            Some(other) => {
                let range = "`foreign` or an origin";
                return Err(ApiError::NotInRange { name: "next", value: other.to_owned(), range });
            }
        };
        let kept = ["next", "repeat"].into_iter();
        let kept = kept.filter_map(|name| params.text(name).map(|value| (name, value.to_owned()))).collect();
        Ok(Target { origin, path, kept, repeats: params.text("repeat").is_some() })
    }

    pub fn url(&self, query: &[(&str, &str)]) -> String {
        let kept = self.kept.iter().map(|(name, value)| (*name, value.as_str()));
        let pairs = query.iter().copied().chain(kept);
        let text = pairs.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
        format!("{}{}?{}", self.origin, self.path, text.collect::<Vec<_>>().join("&"))
    }
}
