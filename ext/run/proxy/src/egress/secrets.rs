//! Replaces placeholders by secret values in requests, and secret values by placeholders in
//! responses.
//!
//! The guest holds only a placeholder. In requests that the bridge can read, it replaces
//! placeholders in header values and queries when the request goes to a host of that secret.
//! Requests to any other host keep the placeholder, which is worthless there. The bridge does not
//! change request bodies. It searches the responses of every host for every value of the run in
//! all [`SecretEncodings`], because a host that stored a value could make it readable from another
//! host.
//!
//! Two leaks remain: a host may return the value in an encoding of its own, and a host may echo a
//! request byte by byte, so that the guest can observe which bytes the bridge holds back. Bind
//! secrets only to hosts that do neither. The bridge cannot read tunnels and scrubs nothing in
//! them.

use super::config::SecretSwap;
use super::denial::Reason;
use super::route::Target;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use wp_codebox_policy::{Host, SecretEncodings};

/// All secrets of a run, for one bridge.
pub(super) struct Secrets {
    swaps: Vec<SecretSwap>,
    known: Arc<Known>,
}

/// The secret values of the run, which no response may contain.
struct Known {
    spellings: SecretEncodings,
    /// Placeholder of each value in `spellings`, in the same order.
    placeholders: Vec<String>,
}

/// What was replaced in one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Swapped {
    /// Query with inserted values; `None` when the request has no query.
    pub query: Option<String>,
    /// Names of secrets whose values were inserted.
    pub used: Vec<String>,
    /// Names of secrets whose placeholders were left, because the host may not receive the value.
    pub withheld: Vec<String>,
}

impl Secrets {
    /// Creates the secrets of a bridge from `swaps`. `key` is the model's key: it is removed from
    /// responses, but [`Self::apply`] never inserts it.
    pub(super) fn new(mut swaps: Vec<SecretSwap>, key: Option<&SecretSwap>) -> Self {
        swaps.retain(|swap| !swap.placeholder.is_empty() && !swap.value.is_empty());
        let all = || swaps.iter().chain(key);
        let known = Arc::new(Known {
            spellings: SecretEncodings::of(all().map(|swap| swap.value.as_str())),
            placeholders: all().map(|swap| swap.placeholder.clone()).collect(),
        });
        Self { swaps, known }
    }

    /// Replaces the placeholders in headers and query by values that the destination may receive.
    pub(super) fn apply(
        &self,
        target: &Target,
        headers: &mut HeaderMap,
    ) -> Result<Swapped, Reason> {
        let mut answer = Swapped {
            query: target.path.query().map(str::to_owned),
            ..Swapped::default()
        };
        for swap in &self.swaps {
            let entitled = swap
                .hosts
                .iter()
                .any(|scope| scope.covers(target.transport, &target.host, target.port));
            let mut found = false;
            for (name, value) in headers.iter_mut() {
                let Some(changed) = in_header(name == AUTHORIZATION, value.as_bytes(), swap) else {
                    continue;
                };
                found = true;
                if entitled {
                    *value =
                        HeaderValue::from_bytes(&changed).map_err(|_| Reason::SecretUnusable)?;
                    value.set_sensitive(true);
                }
            }
            if let Some(query) = &mut answer.query
                && query.contains(&swap.placeholder)
            {
                found = true;
                if entitled {
                    *query = query.replace(&swap.placeholder, &percent(&swap.value));
                }
            }
            if found && entitled {
                answer.used.push(swap.name.clone());
            } else if found {
                answer.withheld.push(swap.name.clone());
            }
        }
        Ok(answer)
    }

    /// Returns the log note for a tunnel to this host at any port; empty when the run has no
    /// secrets.
    pub(super) fn tunnel_note(&self, host: &Host) -> String {
        if self.known.spellings.is_empty() {
            return String::new();
        }
        let unclean = "responses in a tunnel are not searched for secret values; with tls: terminate they are searched";
        let bound: Vec<&str> = self
            .swaps
            .iter()
            .filter(|swap| swap.hosts.iter().any(|scope| scope.binds(host)))
            .map(|swap| swap.name.as_str())
            .collect();
        if bound.is_empty() {
            return unclean.to_owned();
        }
        let names = bound.join(", ");
        format!(
            "the bridge cannot insert secret values into a tunnel, so {names} was not sent; {unclean}"
        )
    }

    /// Returns a scrubber for one response; `None` when the run has no secrets.
    pub(super) fn scrubber(&self) -> Option<Scrubber> {
        (!self.known.spellings.is_empty()).then(|| Scrubber {
            known: Arc::clone(&self.known),
            held: BytesMut::new(),
        })
    }
}

/// Returns the header value with the placeholder of `swap` replaced: in clear text, or inside the
/// base64 of basic authentication. Returns `None` when the header does not contain the placeholder.
fn in_header(authorization: bool, header: &[u8], swap: &SecretSwap) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(header).ok()?;
    if text.contains(&swap.placeholder) {
        return Some(text.replace(&swap.placeholder, &swap.value).into_bytes());
    }
    let scheme = text.get(..6).filter(|_| authorization)?;
    if !scheme.eq_ignore_ascii_case("basic ") {
        return None;
    }
    let pair = STANDARD.decode(text[6..].trim()).ok()?;
    let pair = String::from_utf8(pair).ok()?;
    pair.contains(&swap.placeholder).then(|| {
        let pair = pair.replace(&swap.placeholder, &swap.value);
        format!("Basic {}", STANDARD.encode(pair)).into_bytes()
    })
}

/// Percent-encodes a value for a query.
fn percent(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

impl Known {
    /// Replaces secret values in `bytes`. Returns the result and the number of input bytes that
    /// were consumed: all of them, or fewer when the last ones may be the beginning of a value.
    fn clean(&self, bytes: &[u8], more_to_come: bool) -> (BytesMut, usize) {
        let search = self.spellings.search(bytes);
        let mut end = bytes.len();
        if more_to_come {
            end = search.open;
            // The end of the consumed bytes must not split a found value, so the whole value is
            // left for the next call.
            if let Some(cut) = search.found.iter().find(|found| found.end > end) {
                end = end.min(cut.start);
            }
        }
        let mut out = BytesMut::with_capacity(end);
        let mut at = 0;
        for found in search.found.iter().take_while(|found| found.end <= end) {
            out.extend_from_slice(&bytes[at..found.start]);
            if let Some(placeholder) = self.placeholders.get(found.value) {
                out.extend_from_slice(placeholder.as_bytes());
            }
            at = found.end;
        }
        out.extend_from_slice(&bytes[at..end]);
        (out, end)
    }

    fn found_in(&self, bytes: &[u8]) -> bool {
        !self.spellings.search(bytes).found.is_empty()
    }
}

/// Replaces secret values by placeholders in a response, piece by piece. A value may span several
/// pieces. The scrubber holds back only bytes that could be the beginning of a value, so that
/// streams keep flowing.
pub(super) struct Scrubber {
    known: Arc<Known>,
    held: BytesMut,
}

impl Scrubber {
    /// Scrubs the next bytes of a body. The result may be shorter or longer than the input.
    pub(super) fn push(&mut self, bytes: &Bytes) -> Bytes {
        self.held.extend_from_slice(bytes);
        let (clean, end) = self.known.clean(&self.held, true);
        let _ = self.held.split_to(end);
        clean.freeze()
    }

    /// Returns the bytes that are still held back, scrubbed. To be called at the end of the body.
    pub(super) fn finish(&mut self) -> Bytes {
        let held = self.held.split();
        self.known.clean(&held, false).0.freeze()
    }

    /// Returns whether the scrubber holds bytes back.
    pub(super) fn holds_back(&self) -> bool {
        !self.held.is_empty()
    }

    /// Scrubs header values, and removes headers whose name contains a secret value.
    pub(super) fn headers(&self, headers: &mut HeaderMap) {
        let named: Vec<HeaderName> = headers
            .keys()
            .filter(|name| self.known.found_in(name.as_str().as_bytes()))
            .cloned()
            .collect();
        for name in named {
            headers.remove(name);
        }
        for value in headers.values_mut() {
            if self.known.found_in(value.as_bytes()) {
                let (clean, _) = self.known.clean(value.as_bytes(), false);
                *value = HeaderValue::from_bytes(&clean)
                    .unwrap_or_else(|_| HeaderValue::from_static("[removed]"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::EgressMode;
    use super::*;
    use wp_codebox_policy::{RequestPath, SecretScope, Transport};
    use zeroize::Zeroizing;

    const VALUE: &str = "s3cr/et \"välue\"+1234";
    const PLACEHOLDER: &str = "placeholder_0123456789abcdef";

    fn swap(name: &str, placeholder: &str, value: &str) -> SecretSwap {
        SecretSwap {
            name: name.to_owned(),
            placeholder: placeholder.to_owned(),
            value: Zeroizing::new(value.to_owned()),
            hosts: vec![SecretScope::parse("api.example").unwrap()],
        }
    }

    fn secrets(value: &str) -> Secrets {
        Secrets::new(vec![swap("API_KEY", PLACEHOLDER, value)], None)
    }

    fn target(transport: Transport, host: &str, port: u16, path: &str) -> Target {
        Target {
            mode: EgressMode::BaseUrl,
            transport,
            host: Host::parse(host).unwrap(),
            port,
            path: RequestPath::parse(path).unwrap(),
        }
    }

    fn headers() -> HeaderMap {
        let mut headers = HeaderMap::new();
        let basic = STANDARD.encode(format!("user:{PLACEHOLDER}"));
        headers.insert("x-key", PLACEHOLDER.parse().unwrap());
        headers.insert(AUTHORIZATION, format!("Basic {basic}").parse().unwrap());
        headers.insert("x-other", "untouched".parse().unwrap());
        headers
    }

    #[test]
    fn secret_values_are_inserted_only_for_their_hosts() {
        let secrets = secrets("value-0123456789");
        let mut found = headers();
        let path = format!("/x?key={PLACEHOLDER}&y=1");
        let answer = secrets
            .apply(
                &target(Transport::Tls, "api.example", 443, &path),
                &mut found,
            )
            .unwrap();
        assert_eq!(found["x-key"], "value-0123456789");
        assert_eq!(
            found[AUTHORIZATION],
            format!("Basic {}", STANDARD.encode("user:value-0123456789"))
        );
        assert!(found["x-key"].is_sensitive());
        assert_eq!(answer.query.as_deref(), Some("key=value-0123456789&y=1"));
        assert_eq!(
            (answer.used, answer.withheld),
            (vec!["API_KEY".to_owned()], vec![])
        );

        for (transport, host, port) in [
            (Transport::Tls, "other.example", 443),
            (Transport::Tls, "api.example", 8443),
            (Transport::Plain, "api.example", 443),
            (Transport::Plain, "api.example", 80),
        ] {
            let mut kept = headers();
            let answer = secrets
                .apply(&target(transport, host, port, &path), &mut kept)
                .unwrap();
            assert_eq!(kept, headers(), "{host}:{port}");
            assert_eq!(answer.query.as_deref(), path.split_once('?').map(|p| p.1));
            assert_eq!(
                (answer.used, answer.withheld),
                (vec![], vec!["API_KEY".to_owned()])
            );
        }
    }

    #[test]
    fn request_with_a_secret_value_invalid_in_a_header_is_refused_and_debug_output_omits_values() {
        let answer = secrets("a\r\nX: b").apply(
            &target(Transport::Tls, "api.example", 443, "/"),
            &mut headers(),
        );
        assert_eq!(answer, Err(Reason::SecretUnusable));
        let shown = format!(
            "{:?}",
            SecretSwap {
                name: "N".to_owned(),
                placeholder: String::new(),
                value: Zeroizing::new("visible".to_owned()),
                hosts: vec![],
            }
        );
        assert!(!shown.contains("visible"));
    }

    /// Scrubs `text` in two pieces, split at byte `cut`, and returns the joined result.
    fn cleaned(secrets: &Secrets, text: &str, cut: usize) -> String {
        let (first, second) = text.as_bytes().split_at(cut);
        let mut scrubber = secrets.scrubber().unwrap();
        let mut out = scrubber.push(&Bytes::copy_from_slice(first)).to_vec();
        out.extend_from_slice(&scrubber.push(&Bytes::copy_from_slice(second)));
        out.extend_from_slice(&scrubber.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_encoding_of_a_secret_is_scrubbed_at_every_buffer_split() {
        let secrets = secrets(VALUE);
        for spelling in [
            VALUE,
            "s3cr%2Fet%20%22v%c3%a4lue%22%2B1234",
            r#"s3cr\/et \"v\u00e4lue\"+1234"#,
            "s3cr/et &quot;v&#228;lue&#34;+1234",
            "s3cr/et=\r\n \"v=C3=A4lue\"+1234",
            "733363722f6574202276c3a46c7565222b31323334",
        ] {
            let text = format!("before {spelling} after");
            let wanted = format!("before {PLACEHOLDER} after");
            for cut in 0..=text.len() {
                if text.is_char_boundary(cut) {
                    assert_eq!(cleaned(&secrets, &text, cut), wanted, "{spelling} at {cut}");
                }
            }
            let mut scrubber = secrets.scrubber().unwrap();
            let mut out: Vec<u8> = text
                .bytes()
                .flat_map(|b| scrubber.push(&Bytes::copy_from_slice(&[b])))
                .collect();
            out.extend_from_slice(&scrubber.finish());
            assert_eq!(String::from_utf8(out).unwrap(), wanted, "byte by byte");
        }
        let other = "before s3cr/et \"välue\"+1235 after";
        assert_eq!(cleaned(&secrets, other, 20), other, "control");
    }

    #[test]
    fn each_secret_and_the_model_key_is_replaced_by_its_own_placeholder() {
        let (long, key) = ("value-0123456789-and-more", "model-key-0123456789");
        let swaps = vec![
            swap("A", "placeholder_a", VALUE),
            swap("B", "placeholder_b", "value-0123456789"),
            swap("C", "placeholder_c", long),
        ];
        let secrets = Secrets::new(swaps, Some(&swap("K", "placeholder_k", key)));
        let text = format!("{VALUE} value-0123456789 {long} {key}");
        for cut in [0, 24, 40, 45, 58, 70] {
            assert_eq!(
                cleaned(&secrets, &text, cut),
                "placeholder_a placeholder_b placeholder_c placeholder_k",
                "{cut}"
            );
        }
        assert!(Secrets::new(Vec::new(), None).scrubber().is_none());
    }

    #[test]
    fn secret_scrubber_delays_a_stream_only_for_a_possible_secret() {
        let secrets = secrets(VALUE);
        let mut scrubber = secrets.scrubber().unwrap();
        assert_eq!(
            scrubber.push(&Bytes::from_static(b"data: one\n\n")),
            "data: one\n\n"
        );
        assert_eq!(scrubber.push(&Bytes::from_static(b"data: s3c")), "data: ");
        assert!(scrubber.holds_back());
        assert_eq!(scrubber.push(&Bytes::from_static(b"ond\n\n")), "s3cond\n\n");
        assert_eq!(scrubber.push(&Bytes::from_static(b"end s")), "end ");
        assert_eq!(scrubber.finish(), "s");
    }

    #[test]
    fn secrets_are_scrubbed_from_response_headers() {
        let secrets = secrets("value-0123456789");
        let scrubber = secrets.scrubber().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("location", "/next?key=value-0123456789".parse().unwrap());
        headers.insert("x-plain", "kept".parse().unwrap());
        headers.insert("x-value-0123456789", "1".parse().unwrap());
        scrubber.headers(&mut headers);
        assert_eq!(headers["location"], format!("/next?key={PLACEHOLDER}"));
        assert_eq!(headers["x-plain"], "kept");
        assert_eq!(headers.len(), 2, "a name can be the value as well");
    }
}
