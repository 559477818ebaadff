//! The pooled HTTP client and its TLS.
//! Invariant: certificates are always verified, against the operating system's roots. Without roots every `https` call
//! fails; it never becomes an unverified one.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, redirect, retry};

use super::resolve::Resolver;
use crate::options::{BuildError, Options};

const USER_AGENT: &str = concat!("tokamak/", env!("CARGO_PKG_VERSION"));

/// Shorter than the idle time of common load balancers (60 s and more), so that a write seldom meets a connection
/// that the other side is just closing.
const IDLE: Duration = Duration::from_secs(20);

/// A silent HTTP/2 connection is given up after these, rather than failing every call on it until its deadline.
const PING_AFTER: Duration = Duration::from_secs(20);
const PING_WAIT: Duration = Duration::from_secs(10);

pub(crate) fn build(options: &Options, resolver: Arc<Resolver>) -> Result<Client, BuildError> {
    // An error means that the process has a provider already; that one serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match configure(options, Arc::clone(&resolver)).build() {
        Ok(client) => Ok(client),
        Err(cause) => {
            // A bare container without `ca-certificates` can still serve origins on plain loopback.
            tracing::warn!(
                cause = &cause as &dyn std::error::Error,
                "no root certificates: calls to https origins will fail; install ca-certificates or set SSL_CERT_FILE"
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
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(options.calls_per_origin)
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_WAIT)
        .dns_resolver(resolver)
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
        // The whole retry policy is `crate::retry`: the client's own would send some writes twice.
        .retry(retry::never())
        // `crate::answer` decodes, under its limit. Off in this crate's features; said here as well, since another crate
        // of the build could turn a feature on.
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
}

#[cfg(test)]
mod tests {
    use super::super::resolve::{Rule, SystemLookup};
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn a_machine_without_roots_still_has_a_client_that_trusts_nobody() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let resolver = Resolver { lookup: Arc::new(SystemLookup), rule: Rule::Named };
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
