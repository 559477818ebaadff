//! The addresses of this server itself, which no request may reach. Code that could call the server that runs it could
//! approve its own writes.
//! Invariant: an address is compared after it was resolved, so every way to write an address and every name that leads to
//! it counts.

use std::fmt;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;

use url::{Host, Url};

use super::reach;

/// The servers on this data folder: this process, and the other live processes.
pub trait OwnServers: Send + Sync {
    /// Returns the addresses on which the servers listen at this moment.
    fn listeners(&self) -> Vec<SocketAddr>;

    /// Returns the host names, with ports, by which callers reach the servers from outside, such as the name of a proxy.
    fn names(&self) -> Vec<(String, u16)>;
}

/// The servers that a client must not reach. The default has none.
#[derive(Clone, Default)]
pub struct RefusedServers(Option<Arc<dyn OwnServers>>);

impl RefusedServers {
    pub fn new(servers: Arc<dyn OwnServers>) -> Self {
        Self(Some(servers))
    }

    pub(crate) fn listeners(&self) -> Vec<SocketAddr> {
        self.0.as_ref().map(|servers| servers.listeners()).unwrap_or_default()
    }

    /// Returns the listeners whose port is the port of the URL. Without such a listener the URL cannot lead to one.
    pub(crate) fn listeners_at_port_of(&self, url: &Url) -> Vec<SocketAddr> {
        let port = url.port_or_known_default();
        self.listeners().into_iter().filter(|listener| Some(listener.port()) == port).collect()
    }

    /// Returns whether the URL has a name of the servers.
    pub(crate) fn has_name_of(&self, url: &Url) -> bool {
        let (Some(servers), Some(host)) = (&self.0, url.host()) else { return false };
        let host = match host {
            Host::Domain(name) => name.trim_end_matches('.').to_ascii_lowercase(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        servers.names().iter().any(|(name, port)| {
            Some(*port) == url.port_or_known_default() && name.trim_end_matches('.').eq_ignore_ascii_case(&host)
        })
    }
}

impl fmt::Debug for RefusedServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "RefusedServers(own)" } else { "RefusedServers(none)" })
    }
}

impl PartialEq for RefusedServers {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for RefusedServers {}

/// Returns whether a connection to this IP address reaches one of the listeners.
pub(crate) fn reaches_listener(address: IpAddr, listeners: &[SocketAddr]) -> bool {
    let address = reach::plain(address);
    listeners.iter().any(|listener| {
        let listener = reach::plain(listener.ip());
        // A connection to the unspecified address goes to this machine.
        if address.is_unspecified() {
            return true;
        }
        if listener.is_unspecified() {
            return address.is_loopback() || is_of_this_machine(address);
        }
        // All loopback addresses are refused for a listener on one of them, because a firewall rule may join them.
        address == listener || address.is_loopback() && listener.is_loopback()
    })
}

/// Returns whether this machine has the address. The system lets a socket use only an address of the machine.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_address_reaches_a_listener() {
        let reaches = |address: &str, listener: &str| {
            reaches_listener(address.parse().unwrap(), &[listener.parse::<SocketAddr>().unwrap()])
        };
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "::127.0.0.1"] {
            for listener in ["127.0.0.1:1", "0.0.0.0:1", "[::]:1", "[::1]:1"] {
                assert!(reaches(address, listener), "{address} {listener}");
            }
        }
        assert!(reaches("192.0.2.1", "192.0.2.1:1") && reaches("::ffff:192.0.2.1", "192.0.2.1:1"));
        // No machine has an address of the networks for documentation.
        for listener in ["127.0.0.1:1", "0.0.0.0:1", "[::]:1", "192.0.2.2:1"] {
            assert!(!reaches("192.0.2.1", listener), "{listener}");
        }
        assert!(!reaches_listener("127.0.0.1".parse().unwrap(), &[]));
    }
}
