//! Names to addresses, for the client.
//! Invariant: none yet on which addresses are allowed. A rule against private addresses belongs here, since only here is
//! the address that will be connected to known; a host written as an IP address does not come through, so the rule
//! needs the same check where the address is built.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

pub(crate) struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(Box::new(found.collect::<Vec<_>>().into_iter()) as Addrs)
        })
    }
}
