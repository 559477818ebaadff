//! Compares addresses with the listeners of this server itself, which no request may reach.
//! Invariant: an address is compared after it was resolved, so every way to write an address and every name that leads to
//! it counts.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use super::reach;

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
