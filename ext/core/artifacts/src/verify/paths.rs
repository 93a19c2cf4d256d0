//! Validation of paths inside a bundle and of URLs shown to a reviewer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wp_codebox_policy::{check_address, split_port};

/// Returns why a text is not a path inside a bundle. A `.` component and `//` are harmless and
/// accepted.
pub(crate) fn path_fault(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("a path must not be empty");
    }
    if path.contains('\0') {
        return Some("a path must not contain NUL");
    }
    if path.contains('\\') || path.starts_with('/') || scheme(path).is_some() {
        return Some("a path must be relative to the bundle, without backslash and URL scheme");
    }
    if path.split('/').any(|part| part == "..") {
        return Some("a path must not leave the bundle");
    }
    None
}

/// Splits `scheme:rest`; returns `None` if the text does not start with a valid scheme.
fn scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut bytes = scheme.bytes();
    let fits = bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'));
    fits.then_some((scheme, rest))
}

/// Reason why a URL may not be shown to a reviewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UrlFault {
    /// The text cannot be parsed as a URL.
    Malformed,
    /// The scheme is neither http nor https, or the host is `localhost`, a `.local` name or an
    /// address that is not public.
    NotPublic,
}

/// Returns why a URL may not be shown to a reviewer, or `None` if it may be shown. A host is judged
/// as browsers read it, also in unusual notations such as `http://127.1`.
pub(super) fn url_fault(url: &str) -> Option<UrlFault> {
    let Some((scheme, rest)) = scheme(url.trim()) else {
        return Some(UrlFault::Malformed);
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Some(UrlFault::NotPublic);
    }
    let rest = rest.trim_start_matches(['/', '\\']);
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let Ok((host, _)) = split_port(authority.rsplit('@').next().unwrap_or_default()) else {
        return Some(UrlFault::Malformed);
    };
    if let Some(inner) = host.strip_prefix('[') {
        return match inner.strip_suffix(']') {
            Some(address) => six_fault(address),
            None => Some(UrlFault::Malformed),
        };
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let odd = |b: u8| {
        b <= b' '
            || matches!(
                b,
                b':' | b'<' | b'>' | b'^' | b'|' | b'%' | b'"' | b'`' | 0x7f
            )
    };
    if host.is_empty() || host.bytes().any(odd) || host.split('.').any(str::is_empty) {
        return Some(UrlFault::Malformed);
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") {
        return match four(&host) {
            Some(address) => address_fault(Ipv4Addr::from(address).into()),
            None => Some(UrlFault::Malformed),
        };
    }
    let local = last == "localhost" || last == "local";
    local.then_some(UrlFault::NotPublic)
}

fn six_fault(text: &str) -> Option<UrlFault> {
    match text.parse::<Ipv6Addr>() {
        Err(_) => Some(UrlFault::Malformed),
        Ok(address) => address_fault(address.into()),
    }
}

/// Judges an address by the rule of the egress bridge, so that both agree on what is public.
fn address_fault(address: IpAddr) -> Option<UrlFault> {
    check_address(address).err().map(|_| UrlFault::NotPublic)
}

/// Parses an IPv4 address in every notation that browsers accept: one to four parts, decimal,
/// octal or hexadecimal.
fn four(host: &str) -> Option<u32> {
    let parts: Vec<&str> = host.split('.').collect();
    let (last, front) = parts.split_last()?;
    if front.len() > 3 {
        return None;
    }
    let number = |text: &str| -> Option<u32> {
        if let Some(hex) = text.strip_prefix("0x") {
            u32::from_str_radix(if hex.is_empty() { "0" } else { hex }, 16).ok()
        } else if text.len() > 1 && text.starts_with('0') {
            u32::from_str_radix(text, 8).ok()
        } else {
            text.parse().ok()
        }
    };
    let mut address = 0_u64;
    for part in front {
        let value = number(part).filter(|v| *v < 256)?;
        address = (address << 8) | u64::from(value);
    }
    let tail_bits = 8 * (4 - front.len() as u32);
    let tail = u64::from(number(last)?);
    if tail >= 1 << tail_bits {
        return None;
    }
    u32::try_from((address << tail_bits) | tail).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_and_paths_that_leave_the_bundle_are_refused() {
        for good in ["a", "a/b", "./a", "a//b", "a..b", "...", "a/:b"] {
            assert_eq!(path_fault(good), None, "{good}");
        }
        for bad in ["", "/a", "a\\b", "../a", "a/..", "c:a", "file:///x", "a\0"] {
            assert!(path_fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn local_and_malformed_urls_in_a_bundle_are_refused() {
        use UrlFault::{Malformed, NotPublic};
        for (url, fault) in [
            ("https://example.org/x", None),
            ("HTTP://user@example.org:8080", None),
            ("https://8.8.8.8", None),
            ("https://[2001:db8::1]/", None),
            ("https://localhost.example.org", None),
            ("nothing", Some(Malformed)),
            ("https://", Some(Malformed)),
            ("https://a b/", Some(Malformed)),
            ("https://1.2.3.400", Some(Malformed)),
            ("https://example.org:65535/", None),
            ("https://[2001:db8::1]:8443/", None),
            ("https://example.org:/", Some(Malformed)),
            ("https://example.org:0/", Some(Malformed)),
            ("https://example.org:080/", Some(Malformed)),
            ("https://example.org:+80/", Some(Malformed)),
            ("https://example.org:65536/", Some(Malformed)),
            ("https://example.org:80:90/", Some(Malformed)),
            ("https://8.8.8.8:99999/", Some(Malformed)),
            ("https://[2001:db8::1]:/", Some(Malformed)),
            ("https://[2001:db8::1]:65536/", Some(Malformed)),
            ("https://[2001:db8::1]x/", Some(Malformed)),
            ("https://[2001:db8::1/", Some(Malformed)),
            ("ftp://example.org", Some(NotPublic)),
            ("javascript:alert(1)", Some(NotPublic)),
            ("http://localhost", Some(NotPublic)),
            ("http://LOCALHOST.:80/x", Some(NotPublic)),
            ("http://a@127.0.0.1/", Some(NotPublic)),
            ("http://127.1", Some(NotPublic)),
            ("http://2130706433/", Some(NotPublic)),
            ("http://0x7f.0.0.1/", Some(NotPublic)),
            ("http://0.0.0.0", Some(NotPublic)),
            ("http://[::1]:8080/", Some(NotPublic)),
            ("http://[::ffff:127.0.0.1]/", Some(NotPublic)),
            ("http://printer.local/", Some(NotPublic)),
            ("http://0.1.2.3", Some(NotPublic)),
            ("http://10.0.0.1/", Some(NotPublic)),
            ("http://0xa000001/", Some(NotPublic)),
            ("http://172.16.0.1", Some(NotPublic)),
            ("http://192.168.1.1:8080", Some(NotPublic)),
            ("http://169.254.169.254/latest", Some(NotPublic)),
            ("http://100.64.0.1", Some(NotPublic)),
            ("http://255.255.255.255", Some(NotPublic)),
            ("http://[::]/", Some(NotPublic)),
            ("http://[0:0:0:0:0:0:0:0]:80/", Some(NotPublic)),
            ("http://[::ffff:0.0.0.0]/", Some(NotPublic)),
            ("http://[::ffff:10.0.0.1]/", Some(NotPublic)),
            ("http://[::ffff:a9fe:a9fe]/", Some(NotPublic)),
            ("http://[::7f00:1]/", Some(NotPublic)),
            ("http://[64:ff9b::a00:1]/", Some(NotPublic)),
            ("http://[2002:7f00:1::]/", Some(NotPublic)),
            ("http://[fe80::1]/", Some(NotPublic)),
            ("http://[fd00::1]/", Some(NotPublic)),
            ("http://[ff02::1]/", Some(NotPublic)),
            ("https://[64:ff9b::808:808]/", None),
            ("https://[2606:4700::1111]/", None),
            ("https://172.32.0.1", None),
        ] {
            assert_eq!(url_fault(url), fault, "{url}");
        }
    }
}
