//! Builds the HTTP client: connection pool, timeouts, TLS, and the features that are switched off.
//! Invariant: certificates are always verified against the root certificates of the operating system. If the system has
//! no root certificates, every `https` call fails.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, redirect, retry};

use super::resolve::Resolver;
use crate::options::{BuildError, Options};

const USER_AGENT: &str = concat!("tokamak/", env!("CARGO_PKG_VERSION"));

/// An idle connection is closed after this time. It is shorter than the idle time of common load balancers (60 s and
/// more), so that a write seldom uses a connection that the server is closing. Such a write would be lost and could not
/// be sent again.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

/// The time after which a silent HTTP/2 connection is tested with a ping. A connection without an answer to the ping is
/// closed; otherwise each call on a dead connection would wait until its deadline.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns a client that resolves host names with `resolver` only.
pub(crate) fn build(options: &Options, resolver: Arc<Resolver>) -> Result<Client, BuildError> {
    // An error means that the process already has a TLS provider, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match configure(options, Arc::clone(&resolver)).build() {
        Ok(client) => Ok(client),
        Err(cause) => {
            // A client without roots is still useful: a container without `ca-certificates` can call local origins over
            // plain HTTP.
            tracing::warn!(
                cause = &cause as &dyn std::error::Error,
                "the system has no root certificates, so all calls to https origins will fail; install ca-certificates or set SSL_CERT_FILE"
            );
            without_roots(options, resolver)
        }
    }
}

fn without_roots(options: &Options, resolver: Arc<Resolver>) -> Result<Client, BuildError> {
    configure(options, resolver).tls_certs_only([]).build().map_err(BuildError::Client)
}

fn configure(options: &Options, resolver: Arc<Resolver>) -> ClientBuilder {
    Client::builder()
        .tls_backend_rustls()
        .user_agent(USER_AGENT)
        .connect_timeout(options.connect_timeout)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .pool_max_idle_per_host(options.calls_per_origin)
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .dns_resolver(resolver)
        // Redirects are not followed, because they would send the credential to another host.
        .redirect(redirect::Policy::none())
        .referer(false)
        // No proxy is used, because a proxy would connect to addresses that `Resolver` has not checked.
        .no_proxy()
        // Only `crate::retry` decides about retries. The retries of the client could send a write twice.
        .retry(retry::never())
        // `crate::body` decompresses with a size limit. These decoders are features that are off in this crate, but
        // another crate of the build could switch them on.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
}

#[cfg(test)]
mod tests {
    use super::super::resolve::{AddressRule, SystemLookup};
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn without_roots_there_is_a_client_that_trusts_no_certificate() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let resolver = Resolver { lookup: Arc::new(SystemLookup), rule: AddressRule::PublicOrLocalhost, refused: None };
        let client = without_roots(&Options::default(), Arc::new(resolver)).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 1024]).await;
        });
        let error = client.get(format!("https://127.0.0.1:{port}/")).send().await.unwrap_err();
        assert!(error.is_connect(), "{error:?}");
    }
}
