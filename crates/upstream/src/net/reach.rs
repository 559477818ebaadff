//! The type `Reach`: the class of an IP address, which is the network from which the address can be reached (public,
//! loopback, private or other).
//! Invariant: an IPv6 address that contains an IPv4 address gets the class of the IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The network from which an IP address can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Public,
    Loopback,
    /// The private networks 10/8, 172.16/12, 192.168/16, 100.64/10 and fc00::/7.
    Private,
    /// Link-local, unspecified, multicast and reserved addresses. No API has such an address, but the metadata services
    /// of clouds are at link-local addresses.
    Other,
}

impl Reach {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => reach_of_ipv4(address),
            IpAddr::V6(address) => reach_of_ipv6(address),
        }
    }
}

/// Returns whether the address is an IPv6 address that contains an IPv4 address.
pub(crate) fn wraps_ipv4(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if wrapped_ipv4(address).is_some())
}

/// Returns the IPv4 address in an address that contains one, and otherwise the address itself.
pub(crate) fn plain(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(inner) => wrapped_ipv4(inner).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

fn reach_of_ipv4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        [127, ..] => Reach::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Reach::Private,
        // The ranges "this network", link-local, IETF assignments, benchmarks, multicast, reserved and broadcast, in
        // this order.
        [0, ..] | [169, 254, ..] | [192, 0, 0, _] | [198, 18..=19, ..] | [224..=255, ..] => Reach::Other,
        _ => Reach::Public,
    }
}

fn reach_of_ipv6(address: Ipv6Addr) -> Reach {
    if address.is_loopback() {
        return Reach::Loopback;
    }
    if let Some(inner) = wrapped_ipv4(address) {
        return reach_of_ipv4(inner);
    }
    match address.segments() {
        [0xfc00..=0xfdff, ..] => Reach::Private,
        // The ranges ::/8 (unspecified, local NAT64 and unassigned), discard-only, Teredo, link-local with site-local,
        // and multicast, in this order.
        [0x0000..=0x00ff, ..] | [0x0100, ..] | [0x2001, 0, ..] | [0xfe80..=0xfeff, ..] | [0xff00..=0xffff, ..] => {
            Reach::Other
        }
        _ => Reach::Public,
    }
}

/// Returns the IPv4 address in a mapped (`::ffff:a.b.c.d`), compatible (`::a.b.c.d`), translated (`::ffff:0:a.b.c.d`), 6to4
/// (`2002:…`) or NAT64 (`64:ff9b::…`) address.
fn wrapped_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x2002, high, low, ..]
        | [0x0064, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(text: &str) -> Reach {
        Reach::of(text.parse().unwrap())
    }

    #[test]
    fn each_range_of_addresses_has_its_class() {
        let table: [(Reach, &[&str]); 4] = [
            (
                Reach::Public,
                &[
                    "1.1.1.1",
                    "9.255.255.255",
                    "11.0.0.0",
                    "100.63.255.255",
                    "100.128.0.0",
                    "126.255.255.255",
                    "128.0.0.0",
                    "169.253.255.255",
                    "169.255.0.0",
                    "172.15.255.255",
                    "172.32.0.0",
                    "192.167.255.255",
                    "192.169.0.0",
                    "192.0.1.0",
                    "198.17.255.255",
                    "198.20.0.0",
                    "223.255.255.255",
                    "2606:4700::1111",
                    "2001:4860:4860::8888",
                    "2003::1",
                    "64:ff9b::8.8.8.8",
                    "::ffff:8.8.8.8",
                    "2002:808:808::1",
                ],
            ),
            (
                Reach::Loopback,
                &["127.0.0.1", "127.255.255.255", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "2002:7f00:1::"],
            ),
            (
                Reach::Private,
                &[
                    "10.0.0.0",
                    "10.255.255.255",
                    "172.16.0.0",
                    "172.31.255.255",
                    "192.168.0.0",
                    "192.168.255.255",
                    "100.64.0.0",
                    "100.127.255.255",
                    "fc00::",
                    "fd12:3456::1",
                    "fdff:ffff::",
                    "::ffff:10.0.0.1",
                    "64:ff9b::192.168.1.1",
                    "2002:a00:1::5",
                    "::ffff:0:10.0.0.1",
                ],
            ),
            (
                Reach::Other,
                &[
                    "0.0.0.0",
                    "0.255.0.1",
                    "169.254.0.0",
                    "169.254.169.254",
                    "169.254.255.255",
                    "192.0.0.8",
                    "198.18.0.1",
                    "224.0.0.1",
                    "239.255.255.255",
                    "240.0.0.1",
                    "255.255.255.255",
                    "::",
                    "fe80::1",
                    "febf::1",
                    "fec0::1",
                    "ff02::1",
                    "ffff::",
                    "100::1",
                    "64:ff9b:1::1",
                    "2001::1",
                    "::2:3:4:5",
                    "::ffff:169.254.169.254",
                    "64:ff9b::a9fe:a9fe",
                    "2002:a9fe:a9fe::",
                    "::ffff:0.0.0.0",
                ],
            ),
        ];
        for (expected, addresses) in table {
            for text in addresses {
                assert_eq!(reach(text), expected, "{text}");
            }
        }
    }

    #[test]
    fn a_wrapped_address_has_the_class_of_the_ipv4_address() {
        // The test takes the first two addresses and the last one of every /16 of IPv4 in every wrapping.
        for high in 0..=u16::MAX {
            for low in [0, 1, u16::MAX] {
                let inner = Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
                let wrapped = [
                    Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
                    Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
                    Ipv6Addr::new(0x2002, high, low, 7, 7, 7, 7, 7),
                    Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                    Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
                ];
                for outer in wrapped {
                    // `::` and `::1` contain no IPv4 address.
                    if high != 0 || low > 1 {
                        assert_eq!(reach_of_ipv6(outer), reach_of_ipv4(inner), "{outer}");
                    }
                    assert!(reach_of_ipv4(inner) == Reach::Public || reach_of_ipv6(outer) != Reach::Public, "{outer}");
                }
                let is_special =
                    inner.is_private() || inner.is_loopback() || inner.is_link_local() || inner.is_multicast();
                assert!(!is_special || reach_of_ipv4(inner) != Reach::Public, "{inner}");
            }
        }
    }
}
