//! Connections, and to which addresses they may lead.
//! Invariant: a public name never leads to an address that is not public. The addresses that were checked are the ones
//! that are connected to: there is no second lookup between the check and the connect.

mod client;
mod public;
mod resolve;

use std::net::IpAddr;
use std::sync::Arc;

use base::Origin;
use reqwest::Client;
use url::{Host, Url};

pub use resolve::Lookup;
pub(crate) use resolve::{PrivateError, SystemLookup};

use crate::options::{BuildError, Options};
use public::Reach;
use resolve::{Resolver, Rule};

/// A pool each for the two rules, so that a connection made under one never serves a request under the other.
pub(crate) struct Clients {
    guarded: Client,
    /// For routes to names; routes to addresses need no lookup.
    routed: Option<Client>,
}

impl Clients {
    pub(crate) fn build(options: &Options, lookup: Arc<dyn Lookup>) -> Result<Self, BuildError> {
        let named = options.routes.values().any(|place| address_of(place.as_str()).is_none());
        let routed = if named {
            let resolver = Resolver { lookup: Arc::clone(&lookup), rule: Rule::Any };
            Some(client::build(options, Arc::new(resolver))?)
        } else {
            None
        };
        let guarded = client::build(options, Arc::new(Resolver { lookup, rule: Rule::Named }))?;
        Ok(Self { guarded, routed })
    }

    /// The client for a request to `url`. `origin` is what its catalog names; `routed` if the operator maps that elsewhere.
    pub(crate) fn of(&self, url: &Url, origin: &Origin, routed: bool) -> Result<&Client, PrivateError> {
        if routed {
            return Ok(self.routed.as_ref().unwrap_or(&self.guarded));
        }
        // A host written as an address is not looked up.
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            _ => return Ok(&self.guarded),
        };
        let plain = address_of(origin.as_str()) == Some(address);
        match Reach::of(address) {
            Reach::Public => Ok(&self.guarded),
            // Named as what it is: `127.0.0.1`, not `0x7f000001` and not `::ffff:7f00:1`.
            Reach::Loopback | Reach::Private if plain && !public::wraps(address) => Ok(&self.guarded),
            _ => Err(PrivateError),
        }
    }
}

/// The address in an origin's text, if it is written as one in the usual way.
fn address_of(origin: &str) -> Option<IpAddr> {
    let authority = origin.split_once("://")?.1;
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?.parse().ok().map(IpAddr::V6),
        None => authority.split(':').next()?.parse().ok().map(IpAddr::V4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_may_name_a_private_address_but_not_disguise_one() {
        let clients = Clients::build(&Options::default(), Arc::new(SystemLookup)).unwrap();
        let allowed = |text: &str| {
            let origin = Origin::parse(text).unwrap();
            clients.of(&Url::parse(text).unwrap(), &origin, false).is_ok()
        };
        for good in [
            "http://127.0.0.1:81",
            "http://10.1.2.3",
            "http://[::1]",
            "http://[fd00::1]:99",
            "https://93.184.215.14",
            "https://[2606:2800:21f::1]",
            "https://api.example.com",
            "http://192.168.0.1",
        ] {
            assert!(allowed(good), "{good}");
        }
        for bad in [
            "http://0x7f000001",
            "http://2130706433",
            "http://0177.0.0.1",
            "http://127.1",
            "http://10.1",
            "http://[::ffff:127.0.0.1]",
            "http://[::ffff:7f00:1]",
            "http://[64:ff9b::10.0.0.1]",
            "http://[2002:7f00:1::]",
            "http://0.0.0.0",
            "http://[::]",
            "http://169.254.169.254",
            "http://[fe80::1]",
            "http://224.0.0.1",
            "http://255.255.255.255",
        ] {
            assert!(!allowed(bad), "{bad}");
            let origin = Origin::parse(bad).unwrap();
            assert!(clients.of(&Url::parse(bad).unwrap(), &origin, true).is_ok(), "a route is the operator's word");
        }
    }
}
