//! The HTTP clients, and the rules for the addresses that they may connect to.
//! Invariant: a public name never leads to an address that is not public. The client connects to the addresses that were
//! checked: a second lookup between the check and the connect could return others (DNS rebinding).

mod client;
mod reach;
mod resolve;

use std::net::IpAddr;
use std::sync::Arc;

use base::Origin;
use reqwest::Client;
use url::{Host, Url};

pub use resolve::NameLookup;
pub(crate) use resolve::{PrivateAddressError, SystemLookup};

use crate::options::{BuildError, Options};
use reach::Reach;
use resolve::{AddressRule, Resolver};

/// A client with its own pool for each rule, so that a connection that was made under one rule is never used under the other.
pub(crate) struct Clients {
    /// For origins as catalogs name them.
    guarded: Client,
    /// For routes to names. Routes to addresses need no lookup, so the other client serves them.
    routed: Option<Client>,
}

impl Clients {
    pub(crate) fn build(options: &Options, lookup: Arc<dyn NameLookup>) -> Result<Self, BuildError> {
        let has_named_route = options.routes.values().any(|target| address_of(target.as_str()).is_none());
        let routed = if has_named_route {
            let resolver = Resolver { lookup: Arc::clone(&lookup), rule: AddressRule::Any };
            Some(client::build(options, Arc::new(resolver))?)
        } else {
            None
        };
        let resolver = Resolver { lookup, rule: AddressRule::PublicOrLocalhost };
        let guarded = client::build(options, Arc::new(resolver))?;
        Ok(Self { guarded, routed })
    }

    /// Returns the client for a request to `url`. `origin` is the one that the request names, and `is_routed` says whether
    /// the operator has set a route for it.
    pub(crate) fn of(&self, url: &Url, origin: &Origin, is_routed: bool) -> Result<&Client, PrivateAddressError> {
        if is_routed {
            return Ok(self.routed.as_ref().unwrap_or(&self.guarded));
        }
        // A host that is written as an address is not looked up, so the resolver never sees it.
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            _ => return Ok(&self.guarded),
        };
        let is_plainly_written = address_of(origin.as_str()) == Some(address);
        match Reach::of(address) {
            Reach::Public => Ok(&self.guarded),
            // An origin may name a private address, if a reader of the catalog can see that: `127.0.0.1`, and neither
            // `0x7f000001` nor `::ffff:7f00:1`.
            Reach::Loopback | Reach::Private if is_plainly_written && !reach::wraps_ipv4(address) => Ok(&self.guarded),
            _ => Err(PrivateAddressError),
        }
    }
}

/// Returns the address in an origin's text, if it is written in the usual form.
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
    fn an_origin_may_name_a_private_address_in_its_usual_form_only() {
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
            assert!(clients.of(&Url::parse(bad).unwrap(), &origin, true).is_ok(), "a route is the operator's decision");
        }
    }
}
