//! Names to addresses, for the client.
//! Invariant: the client connects to the addresses that come from here and to no others, and all of them have been checked.
//! If one of a name's addresses is not allowed, none is used: a mixture is what an attack looks like.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::public::Reach;

/// What asks for a name's addresses.
#[async_trait]
pub trait Lookup: Send + Sync {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The operating system's way.
pub(crate) struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn lookup(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|found| found.ip()).collect())
    }
}

pub(crate) struct Resolver {
    pub(crate) lookup: Arc<dyn Lookup>,
    pub(crate) rule: Rule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Wherever a name leads: the operator chose it.
    Any,
    /// As far as the name says: public addresses, and loopback for `localhost` and what is under it.
    Named,
}

#[derive(Debug, thiserror::Error)]
#[error("the name leads to an address that is not public")]
pub(crate) struct PrivateError;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (lookup, rule) = (Arc::clone(&self.lookup), self.rule);
        Box::pin(async move {
            let found = lookup.lookup(name.as_str()).await?;
            if !found.iter().all(|address| allowed(rule, name.as_str(), *address)) {
                return Err(PrivateError.into());
            }
            // The client puts the port in.
            let addresses: Vec<_> = found.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn allowed(rule: Rule, name: &str, address: IpAddr) -> bool {
    match Reach::of(address) {
        Reach::Public => true,
        Reach::Loopback => rule == Rule::Any || is_localhost(name),
        Reach::Private | Reach::Other => rule == Rule::Any,
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
    fn a_name_leads_only_where_it_says() {
        let allowed = |name: &str, address: &str| allowed(Rule::Named, name, address.parse().unwrap());
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
