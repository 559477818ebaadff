//! The HTTP clients that the S3 client uses: one for requests to the storage, one for requests to sources of
//! credentials.
//!
//! Invariants:
//! - Certificates are verified and redirects are not followed.
//! - A refusal of the storage becomes a typed error with S3's error code. No other part of the answer is in the error,
//!   because an answer may echo the credentials that were sent.
//! - At most `MAX_ANSWER_BYTES` of an answer that is no object are read.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};
use reqwest::{Client, ClientBuilder, redirect, retry};

use super::options::{Options, SettingsError};

const USER_AGENT: &str = concat!("tokamak/", env!("CARGO_PKG_VERSION"));
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The connect timeout for sources of credentials. It is short, because the metadata service does not answer on a
/// machine without a role.
const METADATA_CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// An idle connection is closed after this time. It is shorter than the idle time of common load balancers, so that a
/// request seldom uses a connection that the load balancer is closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// The largest part of a refusal's body that is read. A refusal of S3 has a few hundred bytes.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;

/// The largest answer that is not an object. A list of a thousand objects has less than two megabytes.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// The error of an answer that is longer than `MAX_ANSWER_BYTES`.
#[derive(Debug, thiserror::Error)]
#[error("the answer is longer than {MAX_ANSWER_BYTES} bytes")]
pub struct EndlessAnswer;

/// The error of a request that the storage refused.
#[derive(Debug, thiserror::Error)]
#[error("{status} {code}")]
pub struct S3Refusal {
    pub status: u16,
    /// S3's error code, such as `NoSuchBucket`. It is empty if the answer has no code.
    pub code: String,
}

/// The error of a source of credentials, such as the metadata service of a machine, that returned no credentials.
#[derive(Debug, thiserror::Error)]
#[error("the credential source at {host} returned no credentials; check the role of this machine")]
pub struct NoCredentials {
    host: String,
    #[source]
    cause: Option<HttpError>,
}

/// The two HTTP clients. The S3 client sends every request through this type.
#[derive(Debug, Clone)]
pub struct S3HttpClients {
    /// The client for requests to `storage_host`.
    storage: Client,
    /// The client for requests to other hosts. The S3 client sends such requests to sources of credentials only.
    credentials: Client,
    storage_host: String,
}

impl S3HttpClients {
    /// Creates the clients for the storage at `storage_host`.
    pub fn new(options: &Options, storage_host: String) -> Result<Self, SettingsError> {
        // An error means that the process already has a TLS provider, which is then used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut storage = client_builder(options.timeout).connect_timeout(CONNECT_TIMEOUT);
        if options.is_local() {
            storage = storage.no_proxy();
        }
        // Requests for credentials use no proxy: the metadata service is on this machine or in its network, and a proxy
        // must not see credentials.
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
        let is_list = request.uri().query().is_some_and(|query| query.contains("list-type="));
        // The length of an object is checked where it is read, because it may be large.
        let is_object = request.method() == http::Method::GET && !is_list && host == self.storage_host;
        if host != self.storage_host {
            let answer = self.credentials.call(request).await.map_err(|cause| no_credentials(&host, Some(cause)))?;
            return if answer.status().is_success() { Ok(bounded(answer)) } else { Err(no_credentials(&host, None)) };
        }
        let answer = self.storage.call(request).await?;
        match answer.status().is_success() {
            true if is_object => Ok(answer),
            true => Ok(bounded(answer)),
            false => missing_or_refusal(answer).await,
        }
    }
}

/// Returns the answer with a body that ends with an error after `MAX_ANSWER_BYTES`.
fn bounded(answer: HttpResponse) -> HttpResponse {
    answer.map(|body| {
        let body = Limited::new(body, MAX_ANSWER_BYTES).map_err(|error| match error.downcast::<HttpError>() {
            Ok(error) => *error,
            // The S3 client does not retry an error of the kind `Unknown`.
            Err(_) => HttpError::new(HttpErrorKind::Unknown, EndlessAnswer),
        });
        HttpResponseBody::new(body)
    })
}

fn client_builder(timeout: Duration) -> ClientBuilder {
    Client::builder()
        .tls_backend_rustls()
        .user_agent(USER_AGENT)
        .timeout(timeout)
        .pool_idle_timeout(IDLE_TIMEOUT)
        // Redirects are not followed, because they would send a signed request to a host that is not in the settings.
        .redirect(redirect::Policy::none())
        .referer(false)
        // Only the S3 client retries. With two layers of retries the numbers of attempts would multiply.
        .retry(retry::never())
        // Decoders are switched off, because they would change the bytes of an object.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
}

fn build(builder: ClientBuilder) -> Result<Client, SettingsError> {
    builder.build().map_err(|cause| {
        tracing::error!(
            cause = &cause as &dyn Error,
            "the HTTP client for S3 cannot be created; check that root certificates are installed"
        );
        SettingsError::Client
    })
}

fn no_credentials(host: &str, cause: Option<HttpError>) -> HttpError {
    // The S3 client does not retry an error of the kind `Unknown`. A retry would not help, because this machine has no
    // role.
    HttpError::new(HttpErrorKind::Unknown, NoCredentials { host: host.to_owned(), cause })
}

/// Returns the answer 404 of a missing object unchanged. Any other error answer becomes an error with S3's code.
async fn missing_or_refusal(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    let (parts, body) = answer.into_parts();
    let status = parts.status;
    let text = read_beginning(body).await;
    let code = code_of(&text);
    // The code is compared too, because the answer for a missing bucket is also 404 and must be an error. The answer to
    // a HEAD request has no body and so no code.
    if status == http::StatusCode::NOT_FOUND && matches!(code.as_str(), "" | "NoSuchKey") {
        return Ok(HttpResponse::from_parts(parts, HttpResponseBody::from(text)));
    }
    // These codes mean that an upload was damaged on its way or was too slow. The next attempt may succeed.
    let in_transit = ["BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "RequestTimeout"];
    let is_temporary =
        status.is_server_error() || matches!(status.as_u16(), 408 | 429) || in_transit.contains(&code.as_str());
    // The S3 client retries errors of the kind `Request`, and does not retry errors of the kind `Unknown`.
    let kind = if is_temporary { HttpErrorKind::Request } else { HttpErrorKind::Unknown };
    Err(HttpError::new(kind, S3Refusal { status: status.as_u16(), code }))
}

/// Reads at most `MAX_REFUSAL_BYTES` of a body. If the body breaks off, the bytes before the break are returned.
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

/// Returns the text of the first XML element `Code`, or an empty text if it is not made of letters and digits. Another
/// text could contain the credentials that were sent.
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
