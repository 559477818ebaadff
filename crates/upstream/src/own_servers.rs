//! The port `OwnServers` and the type `RefusedServers`: the servers of this data folder, which no request may reach. Code
//! that could call the server that runs it could approve its own writes.
//! Invariant: the list is read at each request, so a server that started a moment ago is refused too.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use url::{Host, Url};

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
