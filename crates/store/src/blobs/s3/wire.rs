//! The HTTP client under the S3 client.
//! Invariant: certificates are verified and redirects are not followed; a refusal is a typed error with S3's own code, and
//! nothing else of what the other side wrote is repeated: it may echo what it was sent.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use reqwest::{Client, ClientBuilder, redirect, retry};

use super::options::{Options, SettingsError};

const USER_AGENT: &str = concat!("tokamak/", env!("CARGO_PKG_VERSION"));
const CONNECT: Duration = Duration::from_secs(5);
/// Where a machine has no role, nobody answers.
const CONNECT_TO_METADATA: Duration = Duration::from_secs(1);
/// Shorter than the idle time of common load balancers.
const IDLE: Duration = Duration::from_secs(20);
/// Of a refusal; S3's are a few hundred bytes.
const REFUSAL_BYTES: usize = 64 * 1024;

/// The other side does not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{status} {code}")]
pub struct Refusal {
    pub status: u16,
    /// As S3 spells it, such as `NoSuchBucket`; empty where it said none.
    pub code: String,
}

/// Whoever should know the credentials did not say them.
#[derive(Debug, thiserror::Error)]
#[error("no credentials from {host}")]
pub struct NoCredentials {
    host: String,
    #[source]
    cause: Option<HttpError>,
}

/// Makes the one client that all parts of the S3 client share.
#[derive(Debug, Clone)]
pub struct Wire {
    storage: Client,
    metadata: Client,
    /// Everything else is asked for credentials.
    host: String,
}

impl Wire {
    pub fn new(options: &Options, host: String) -> Result<Self, SettingsError> {
        // An error means that the process has a provider already; that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut storage = configured(options.timeout).connect_timeout(CONNECT);
        if options.is_local() {
            storage = storage.no_proxy();
        }
        let metadata = configured(options.timeout).connect_timeout(CONNECT_TO_METADATA).no_proxy();
        Ok(Self { storage: built(storage)?, metadata: built(metadata)?, host })
    }
}

impl HttpConnector for Wire {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Wire {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        if host != self.host {
            let answer = self.metadata.call(request).await.map_err(|cause| unknown(&host, Some(cause)))?;
            return if answer.status().is_success() { Ok(answer) } else { Err(unknown(&host, None)) };
        }
        let answer = self.storage.call(request).await?;
        if answer.status().is_success() { Ok(answer) } else { refused(answer).await }
    }
}

fn configured(timeout: Duration) -> ClientBuilder {
    Client::builder()
        .tls_backend_rustls()
        .user_agent(USER_AGENT)
        .timeout(timeout)
        .pool_idle_timeout(IDLE)
        .redirect(redirect::Policy::none())
        .referer(false)
        // What is asked again is decided in one place.
        .retry(retry::never())
        // An object is the bytes that were put.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
}

fn built(client: ClientBuilder) -> Result<Client, SettingsError> {
    client.build().map_err(|cause| {
        tracing::error!(cause = &cause as &dyn Error, "the S3 client cannot be made; are there root certificates?");
        SettingsError::Client
    })
}

fn unknown(host: &str, cause: Option<HttpError>) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, NoCredentials { host: host.to_owned(), cause })
}

/// A missing object stays an answer; whatever else is not a success becomes an error, with S3's code.
async fn refused(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (parts, body) = answer.into_parts();
    let status = parts.status;
    let text = beginning(body).await;
    let code = code_of(&text);
    if status == http::StatusCode::NOT_FOUND && matches!(code.as_str(), "" | "NoSuchKey") {
        return Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(text)));
    }
    // What was changed on its way there, or came too slowly, may arrive the next time.
    let in_transit = ["BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "RequestTimeout"];
    let again = status.is_server_error() || matches!(status.as_u16(), 408 | 429) || in_transit.contains(&code.as_str());
    let kind = if again { HttpErrorKind::Request } else { HttpErrorKind::Unknown };
    Err(HttpError::new(kind, Refusal { status: status.as_u16(), code }))
}

async fn beginning(body: HttpResponseBody) -> Vec<u8> {
    let (mut text, mut pieces) = (Vec::new(), body.bytes_stream());
    while let Some(Ok(piece)) = pieces.next().await {
        text.extend_from_slice(&piece[..piece.len().min(REFUSAL_BYTES - text.len())]);
        if text.len() == REFUSAL_BYTES {
            break;
        }
    }
    text
}

/// What stands in the first `Code`, where it can be a code at all.
fn code_of(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>")).map(|(code, _)| code.trim());
    code.filter(|code| code.len() <= 64 && code.bytes().all(|b| b.is_ascii_alphanumeric()))
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_code_is_one() {
        assert_eq!(code_of(b"<Error><Code>NoSuchBucket</Code><Message>m</Message></Error>"), "NoSuchBucket");
        for none in [&b""[..], b"<Code>", b"<Code></Code>", b"<Code>secret: hunter2</Code>", b"\xff<Code>\xff</Code>"] {
            assert_eq!(code_of(none), "");
        }
    }
}
