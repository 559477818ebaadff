//! The HTTP clients for APIs, and the rules for the addresses to which they may connect.
//! Invariants:
//! - The client never connects to a non-public address for a public host name, and never to this server itself.
//! - The client connects to exactly the addresses that were checked, because a second lookup could return other
//!   addresses (DNS rebinding).

mod client;
mod own;
mod reach;
mod resolve;

use std::net::IpAddr;
use std::sync::Arc;

use base::Origin;
use reqwest::Client;
use url::{Host, Url};

pub use resolve::NameLookup;
pub(crate) use resolve::{OwnServerError, PrivateAddressError, SystemLookup};

use crate::options::{BuildError, Options};
use crate::own_servers::RefusedServers;
use reach::Reach;
use resolve::{AddressRule, Resolver};

/// One HTTP client for each address rule. Each client has its own connection pool, so that a connection that one rule
/// allowed is never used under the other rule.
pub(crate) struct Clients {
    /// The client for origins of catalogs.
    guarded: Client,
    /// The client for routes to host names. A route to an IP address needs no lookup and uses `guarded`.
    routed: Option<Client>,
    /// The servers that no client may reach.
    refused: RefusedServers,
    /// The clients for requests whose port is that of an own server. Their resolvers also refuse addresses of own
    /// servers.
    beside_own: Option<BesideOwn>,
}

/// Clients like those of `Clients`, for requests whose port is that of an own server.
struct BesideOwn {
    guarded: Client,
    routed: Client,
}

/// The reason for which a request gets no client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressRefusal {
    Private,
    OwnServer,
}

impl Clients {
    pub(crate) fn build(options: &Options, lookup: Arc<dyn NameLookup>) -> Result<Self, BuildError> {
        let build = |rule, refused| {
            let resolver = Resolver { lookup: Arc::clone(&lookup), rule, refused };
            client::build(options, Arc::new(resolver))
        };
        let has_named_route = options.routes.values().any(|target| address_of(target.as_str()).is_none());
        let routed = if has_named_route { Some(build(AddressRule::Any, None)?) } else { None };
        let guarded = build(AddressRule::PublicOrLocalhost, None)?;
        let refused = options.refused_servers.clone();
        let beside_own = if refused == RefusedServers::default() {
            None
        } else {
            Some(BesideOwn {
                guarded: build(AddressRule::PublicOrLocalhost, Some(refused.clone()))?,
                routed: build(AddressRule::Any, Some(refused.clone()))?,
            })
        };
        Ok(Self { guarded, routed, refused, beside_own })
    }

    /// Returns the client for a request to `url`. `origin` is the origin of the request in the catalog, and `is_routed`
    /// is true if the operator has set a route for this origin.
    pub(crate) fn of(&self, url: &Url, origin: &Origin, is_routed: bool) -> Result<&Client, AddressRefusal> {
        // The resolver is not called for a host that is an IP address, so such an address is checked here.
        let address = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            _ => None,
        };
        let listeners = self.refused.listeners_at_port_of(url);
        if self.refused.has_name_of(url) || address.is_some_and(|address| own::reaches_listener(address, &listeners)) {
            return Err(AddressRefusal::OwnServer);
        }
        let beside_own = self.beside_own.as_ref().filter(|_| !listeners.is_empty());
        let guarded = beside_own.map_or(&self.guarded, |clients| &clients.guarded);
        if is_routed {
            return Ok(beside_own.map(|clients| &clients.routed).or(self.routed.as_ref()).unwrap_or(guarded));
        }
        let Some(address) = address else { return Ok(guarded) };
        let is_plainly_written = address_of(origin.as_str()) == Some(address);
        match Reach::of(address) {
            Reach::Public => Ok(guarded),
            // An origin may be a private address only if a reader of the catalog can recognise it: `127.0.0.1` is
            // allowed, `0x7f000001` and `::ffff:7f00:1` are not.
            Reach::Loopback | Reach::Private if is_plainly_written && !reach::wraps_ipv4(address) => Ok(guarded),
            _ => Err(AddressRefusal::Private),
        }
    }
}

/// Returns the IP address in an origin's text, or `None` if the host is not an IP address in its usual form.
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
