//! Decides which IP addresses are public, so that the egress bridge may connect to them.
//!
//! IPv6 addresses outside the global unicast range are refused, and so is every format that
//! embeds an IPv4 address. The exception is the well-known NAT64 prefix, which hosts without
//! IPv4 need; its embedded address is checked instead. Documentation ranges count as public:
//! they are not routed, and tests need addresses that no host owns.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why the egress bridge may not connect to an IP address: the kind of a non-public address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Forbidden {
    /// Unspecified addresses: `0.0.0.0/8`, `::`.
    #[error("the address is unspecified")]
    Unspecified,
    /// Loopback addresses: `127.0.0.0/8`, `::1`.
    #[error("the address is a loopback address")]
    Loopback,
    /// Private addresses of RFC 1918.
    #[error("the address is private (RFC 1918)")]
    Private,
    /// Link-local addresses `169.254.0.0/16` and `fe80::/10`; most cloud metadata services have
    /// one.
    #[error("the address is link-local")]
    LinkLocal,
    /// Addresses of carrier-grade NAT: `100.64.0.0/10`.
    #[error("the address belongs to carrier-grade NAT (100.64.0.0/10)")]
    CarrierGrade,
    /// Multicast addresses: `224.0.0.0/4`, `ff00::/8`.
    #[error("the address is a multicast address")]
    Multicast,
    /// Reserved addresses `240.0.0.0/4`, which include the broadcast address.
    #[error("the address is reserved")]
    Reserved,
    /// Special-purpose addresses: `192.0.0.0/24`, `192.88.99.0/24`, `198.18.0.0/15`, `2001::/23`.
    #[error("the address is in a range that IANA reserves for special purposes")]
    SpecialPurpose,
    /// Unique-local IPv6 addresses: `fc00::/7`.
    #[error("the address is unique-local (private IPv6)")]
    UniqueLocal,
    /// An IPv4 address embedded in IPv6: mapped, compatible, 6to4, Teredo, ISATAP, local NAT64.
    #[error("the address is an IPv4 address embedded in IPv6")]
    Embedded,
    /// Any other IPv6 address outside `2000::/3`.
    #[error("the address is outside the global unicast range of IPv6")]
    NotGlobal,
    /// Address of a cloud provider's metadata service, in a range whose other addresses are
    /// allowed.
    #[error("the address belongs to a cloud metadata service")]
    Metadata,
}

/// Checks that the egress bridge may connect to an address.
pub fn check_address(address: IpAddr) -> Result<(), Forbidden> {
    match address {
        IpAddr::V4(v4) => judge_v4(v4),
        IpAddr::V6(v6) => judge_v6(v6),
    }
}

fn judge_v4(address: Ipv4Addr) -> Result<(), Forbidden> {
    let forbidden = match address.octets() {
        [0, ..] => Forbidden::Unspecified,
        [127, ..] => Forbidden::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Forbidden::Private,
        [169, 254, ..] => Forbidden::LinkLocal,
        [100, 64..=127, ..] => Forbidden::CarrierGrade,
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => Forbidden::SpecialPurpose,
        [224..=239, ..] => Forbidden::Multicast,
        [240..=255, ..] => Forbidden::Reserved,
        // Azure's host agent answers at this address on every virtual machine.
        [168, 63, 129, 16] => Forbidden::Metadata,
        _ => return Ok(()),
    };
    Err(forbidden)
}

fn judge_v6(address: Ipv6Addr) -> Result<(), Forbidden> {
    let forbidden = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Forbidden::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Forbidden::Loopback,
        // `::/96` (IPv4-compatible) and `::ffff:0:0/96` (IPv4-mapped).
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] => Forbidden::Embedded,
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            return judge_v4(Ipv4Addr::new(a, b, c, d));
        }
        [0x64, 0xff9b, ..] => Forbidden::Embedded,
        [0xfe80..=0xfebf, ..] => Forbidden::LinkLocal,
        [0xfc00..=0xfdff, ..] => Forbidden::UniqueLocal,
        [0xff00..=0xffff, ..] => Forbidden::Multicast,
        [0x2002, ..] | [0x2001, 0, ..] => Forbidden::Embedded,
        [0x2001, 0..=0x1ff, ..] => Forbidden::SpecialPurpose,
        // ISATAP: the interface identifier is 0000:5efe or 0200:5efe followed by an IPv4
        // address.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => Forbidden::Embedded,
        [0x2000..=0x3fff, ..] => return Ok(()),
        _ => Forbidden::NotGlobal,
    };
    Err(forbidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_and_documentation_addresses_are_allowed() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "169.253.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "126.255.255.255",
            "128.0.0.0",
            "203.0.113.5",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "2001:db8::1",
            "64:ff9b::808:808",
        ] {
            assert_eq!(check_address(text.parse().unwrap()), Ok(()), "{text}");
        }
    }

    #[test]
    fn non_public_addresses_are_refused_with_a_reason() {
        for (text, reason) in [
            ("0.0.0.0", Forbidden::Unspecified),
            ("0.1.2.3", Forbidden::Unspecified),
            ("127.0.0.1", Forbidden::Loopback),
            ("127.255.255.255", Forbidden::Loopback),
            ("10.0.0.1", Forbidden::Private),
            ("172.16.0.1", Forbidden::Private),
            ("172.31.255.255", Forbidden::Private),
            ("192.168.1.1", Forbidden::Private),
            ("169.254.169.254", Forbidden::LinkLocal),
            ("100.64.0.1", Forbidden::CarrierGrade),
            ("100.100.100.200", Forbidden::CarrierGrade),
            ("192.0.0.192", Forbidden::SpecialPurpose),
            ("192.88.99.1", Forbidden::SpecialPurpose),
            ("198.19.0.1", Forbidden::SpecialPurpose),
            ("224.0.0.1", Forbidden::Multicast),
            ("240.0.0.1", Forbidden::Reserved),
            ("255.255.255.255", Forbidden::Reserved),
            ("168.63.129.16", Forbidden::Metadata),
            ("::", Forbidden::Unspecified),
            ("::1", Forbidden::Loopback),
            ("::ffff:127.0.0.1", Forbidden::Embedded),
            ("::ffff:8.8.8.8", Forbidden::Embedded),
            ("::127.0.0.1", Forbidden::Embedded),
            ("64:ff9b::7f00:1", Forbidden::Loopback),
            ("64:ff9b::a9fe:a9fe", Forbidden::LinkLocal),
            ("64:ff9b:1::a00:1", Forbidden::Embedded),
            ("2002:7f00:1::", Forbidden::Embedded),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Forbidden::Embedded),
            ("2001:20::1", Forbidden::SpecialPurpose),
            ("2606:4700::5efe:a00:1", Forbidden::Embedded),
            ("fe80::1", Forbidden::LinkLocal),
            ("fd00:ec2::254", Forbidden::UniqueLocal),
            ("fc00::1", Forbidden::UniqueLocal),
            ("ff02::1", Forbidden::Multicast),
            ("fec0::1", Forbidden::NotGlobal),
            ("100::1", Forbidden::NotGlobal),
            ("4000::1", Forbidden::NotGlobal),
        ] {
            assert_eq!(check_address(text.parse().unwrap()), Err(reason), "{text}");
        }
    }
}
