//! The HTTP clients under the S3 client: one for the storage, one for sources of credentials.
//!
//! Invariants:
//! - Certificates are verified and redirects are not followed.
//! - A refusal is a typed error with S3's own code. Nothing else of the answer is repeated, because an answer may echo the
//!   credentials that were sent.

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
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Short, because the address of the metadata service does not answer on a machine without a role.
const METADATA_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Shorter than the idle time of common load balancers, so that a request seldom meets a connection that is being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// The part of a refusal's body that is read. Those of S3 have a few hundred bytes.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The storage answered with an error.
#[derive(Debug, thiserror::Error)]
#[error("{status} {code}")]
pub struct S3Refusal {
    pub status: u16,
    /// S3's own code, such as `NoSuchBucket`. It is empty if the answer has none.
    pub code: String,
}

/// The source of credentials, such as the metadata service of a machine, gave none.
#[derive(Debug, thiserror::Error)]
#[error("no credentials from {host}")]
pub struct NoCredentials {
    host: String,
    #[source]
    cause: Option<HttpError>,
}

/// The two clients. The S3 client sends every request through this type.
#[derive(Debug, Clone)]
pub struct S3HttpClients {
    /// For requests to `storage_host`.
    storage: Client,
    /// For requests to all other hosts: the S3 client sends those to sources of credentials only.
    credentials: Client,
    storage_host: String,
}

impl S3HttpClients {
    /// Makes the clients for the storage at `storage_host`.
    pub fn new(options: &Options, storage_host: String) -> Result<Self, SettingsError> {
        // An error means that the process has a provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut storage = client_builder(options.timeout).connect_timeout(CONNECT_TIMEOUT);
        if options.is_local() {
            storage = storage.no_proxy();
        }
        // Without a proxy: the metadata service is on this machine or next to it, and a proxy must not see credentials.
        let credentials = client_builder(options.timeout).connect_timeout(METADATA_CONNECT_TIMEOUT).no_proxy();
        Ok(Self { storage: build(storage)?, credentials: build(credentials)?, storage_host })
    }
}

impl HttpConnector for S3HttpClients {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for S3HttpClients {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        if host != self.storage_host {
            let answer = self.credentials.call(request).await.map_err(|cause| no_credentials(&host, Some(cause)))?;
            return if answer.status().is_success() { Ok(answer) } else { Err(no_credentials(&host, None)) };
        }
        let answer = self.storage.call(request).await?;
        if answer.status().is_success() { Ok(answer) } else { missing_or_refusal(answer).await }
    }
}

fn client_builder(timeout: Duration) -> ClientBuilder {
    Client::builder()
        .tls_backend_rustls()
        .user_agent(USER_AGENT)
        .timeout(timeout)
        .pool_idle_timeout(IDLE_TIMEOUT)
        // A redirect would send a signed request to a host that the settings do not name.
        .redirect(redirect::Policy::none())
        .referer(false)
        // Only the S3 client retries. Two layers of retries would multiply.
        .retry(retry::never())
        // An object is the bytes that were put: a decoder would change them.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
}

fn build(builder: ClientBuilder) -> Result<Client, SettingsError> {
    builder.build().map_err(|cause| {
        tracing::error!(cause = &cause as &dyn Error, "the S3 client cannot be made; are there root certificates?");
        SettingsError::Client
    })
}

fn no_credentials(host: &str, cause: Option<HttpError>) -> HttpError {
    // An error of the kind `Unknown` is not retried: asking again does not give this machine a role.
    HttpError::new(HttpErrorKind::Unknown, NoCredentials { host: host.to_owned(), cause })
}

/// Returns the answer of a missing object unchanged. Any other answer becomes an error with S3's code.
async fn missing_or_refusal(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (parts, body) = answer.into_parts();
    let status = parts.status;
    let text = read_beginning(body).await;
    let code = code_of(&text);
    // The code is compared, because a missing bucket answers 404 as well and is an error. A HEAD has no body and no code.
    if status == http::StatusCode::NOT_FOUND && matches!(code.as_str(), "" | "NoSuchKey") {
        return Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(text)));
    }
    // An upload that was changed on its way, or that was too slow, may arrive intact the next time.
    let in_transit = ["BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "RequestTimeout"];
    let is_temporary =
        status.is_server_error() || matches!(status.as_u16(), 408 | 429) || in_transit.contains(&code.as_str());
    // The S3 client retries errors of the kind `Request`, and no error of the kind `Unknown`.
    let kind = if is_temporary { HttpErrorKind::Request } else { HttpErrorKind::Unknown };
    Err(HttpError::new(kind, S3Refusal { status: status.as_u16(), code }))
}

/// Reads at most `MAX_REFUSAL_BYTES`. A body that breaks off is taken as far as it came.
async fn read_beginning(body: HttpResponseBody) -> Vec<u8> {
    let mut text = Vec::new();
    let mut chunks = body.bytes_stream();
    while let Some(Ok(chunk)) = chunks.next().await {
        text.extend_from_slice(&chunk[..chunk.len().min(MAX_REFUSAL_BYTES - text.len())]);
        if text.len() == MAX_REFUSAL_BYTES {
            break;
        }
    }
    text
}

/// Returns the text of the first element `Code`, or an empty text if that cannot be a code. Other texts are not passed on,
/// since they may hold what was sent.
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
    fn only_letters_and_digits_are_read_as_a_code() {
        assert_eq!(code_of(b"<Error><Code>NoSuchBucket</Code><Message>m</Message></Error>"), "NoSuchBucket");
        for text in [&b""[..], b"<Code>", b"<Code></Code>", b"<Code>secret: hunter2</Code>", b"\xff<Code>\xff</Code>"] {
            assert_eq!(code_of(text), "");
        }
    }
}
