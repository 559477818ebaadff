//! The type `Resolver`: looks up host names for the HTTP client, and checks the addresses.
//! Invariant: for a host name, the client connects only to addresses that the resolver has checked and returned. If one
//! address of a name is not allowed, no address of the name is used, because a mixture of public and private addresses
//! is a sign of an attack.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::own::reaches_listener;
use super::reach::Reach;
use crate::own_servers::RefusedServers;

/// A source of the addresses of host names.
#[async_trait]
pub trait NameLookup: Send + Sync {
    /// Returns the addresses of a host.
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Looks up host names with the operating system.
pub(crate) struct SystemLookup;

#[async_trait]
impl NameLookup for SystemLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Looks up host names and checks their addresses against a rule.
pub(crate) struct Resolver {
    pub(crate) lookup: Arc<dyn NameLookup>,
    pub(crate) rule: AddressRule,
    /// Set for the client of requests whose port is that of an own server: addresses of own servers are refused.
    pub(crate) refused: Option<RefusedServers>,
}

/// The rule for the addresses that a host name may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressRule {
    /// Any address, for names that the operator chose.
    Any,
    /// Public addresses, and loopback addresses for `localhost` and names that end with `.localhost`.
    PublicOrLocalhost,
}

/// The error for a host that has an address of this server itself.
#[derive(Debug, thiserror::Error)]
#[error("the host of the request has an address of this server itself")]
pub(crate) struct OwnServerError;

/// The error for a host that has an address which its rule does not allow.
#[derive(Debug, thiserror::Error)]
#[error("the host name of the request has an address that is not public")]
pub(crate) struct PrivateAddressError;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup = Arc::clone(&self.lookup);
        let rule = self.rule;
        let listeners = self.refused.as_ref().map(RefusedServers::listeners).unwrap_or_default();
        Box::pin(async move {
            let addresses = lookup.lookup(name.as_str()).await?;
            if addresses.iter().any(|address| reaches_listener(*address, &listeners)) {
                return Err(OwnServerError.into());
            }
            if !addresses.iter().all(|address| is_allowed(rule, name.as_str(), *address)) {
                return Err(PrivateAddressError.into());
            }
            // The HTTP client replaces port 0 by the port of the URL.
            let addresses: Vec<_> = addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn is_allowed(rule: AddressRule, name: &str, address: IpAddr) -> bool {
    match Reach::of(address) {
        Reach::Public => true,
        Reach::Loopback => rule == AddressRule::Any || is_localhost(name),
        Reach::Private | Reach::Other => rule == AddressRule::Any,
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_localhost_names_may_have_loopback_addresses() {
        let allowed =
            |name: &str, address: &str| is_allowed(AddressRule::PublicOrLocalhost, name, address.parse().unwrap());
        for name in ["localhost", "LOCALHOST", "localhost.", "demo.localhost", "a.b.localhost"] {
            assert!(allowed(name, "127.0.0.1") && allowed(name, "::1"), "{name}");
            assert!(!allowed(name, "10.0.0.1") && !allowed(name, "169.254.169.254"), "{name}");
        }
        for name in ["example.com", "localhost.example.com", "notlocalhost", "localhost.com", "x-localhost", ""] {
            assert!(!allowed(name, "127.0.0.1") && !allowed(name, "::1") && !allowed(name, "10.0.0.1"), "{name}");
            assert!(allowed(name, "93.184.215.14"), "{name}");
        }
    }
}
