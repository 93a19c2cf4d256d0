//! Placeholders out, values in, and never a value back.
//!
//! The guest holds a placeholder. In header values and queries of a request the bridge can
//! see, it is replaced by the value when the request goes to a host of that secret; towards
//! any other host it goes on as it is and is worth nothing. Bodies are not touched. What a
//! secret's host sends back is searched for the value in its usual spellings.
//!
//! What this does not stop: a host that hands the value out in a spelling of its own, and
//! one that echoes what it is sent byte by byte, where a guest could watch for the bytes
//! that are held back. Bind a secret to hosts that do neither.

use super::config::SecretSwap;
use super::denial::Reason;
use super::route::Target;
use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::{Bytes, BytesMut};
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use std::sync::Arc;
use wp_codebox_policy::Host;

/// Every secret of a bridge.
pub(super) struct Secrets {
    rows: Vec<Row>,
}

struct Row {
    swap: SecretSwap,
    needles: Arc<Needles>,
}

/// What was done to one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Swapped {
    /// The query with values in it, if there is a query.
    pub query: Option<String>,
    /// Names whose value was put in.
    pub used: Vec<String>,
    /// Names whose placeholder went on.
    pub withheld: Vec<String>,
}

impl Secrets {
    pub(super) fn new(swaps: Vec<SecretSwap>) -> Self {
        Self {
            rows: swaps
                .into_iter()
                .filter(|swap| !swap.placeholder.is_empty() && !swap.value.is_empty())
                .map(|swap| Row {
                    needles: Arc::new(Needles::new(&swap)),
                    swap,
                })
                .collect(),
        }
    }

    /// Puts values into headers and query, where this target may have them.
    pub(super) fn apply(
        &self,
        target: &Target,
        headers: &mut HeaderMap,
    ) -> Result<Swapped, Reason> {
        let mut answer = Swapped {
            query: target.path.query().map(str::to_owned),
            ..Swapped::default()
        };
        for Row { swap, .. } in &self.rows {
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
                    *query = query.replace(&swap.placeholder, &percent(&swap.value, Hex::Upper));
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

    /// Names of secrets that are bound to this host, at any port.
    pub(super) fn bound(&self, host: &Host) -> Vec<String> {
        self.rows_of(host)
            .map(|row| row.swap.name.clone())
            .collect()
    }

    /// What cleans this host's responses; `None` when no secret is bound to it.
    pub(super) fn scrubber(&self, host: &Host) -> Option<Scrubber> {
        let needles: Vec<Arc<Needles>> = self
            .rows_of(host)
            .map(|row| Arc::clone(&row.needles))
            .collect();
        (!needles.is_empty()).then(|| Scrubber {
            stages: needles.into_iter().map(Stage::new).collect(),
        })
    }

    /// What cleans a response of every secret; `None` when there is none.
    pub(super) fn scrub_all(&self) -> Option<Scrubber> {
        (!self.rows.is_empty()).then(|| Scrubber {
            stages: self
                .rows
                .iter()
                .map(|row| Stage::new(Arc::clone(&row.needles)))
                .collect(),
        })
    }

    fn rows_of<'a>(&'a self, host: &'a Host) -> impl Iterator<Item = &'a Row> {
        self.rows
            .iter()
            .filter(move |row| row.swap.hosts.iter().any(|scope| scope.binds(host)))
    }
}

/// The header with the value in it, when the placeholder is there: as it is, or inside
/// the base64 of basic authentication.
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

/// The spellings of one value and what stands for each of them.
struct Needles {
    automaton: Option<AhoCorasick>,
    patterns: Vec<Vec<u8>>,
    placeholder: Vec<u8>,
}

impl Needles {
    fn new(swap: &SecretSwap) -> Self {
        let value = swap.value.as_str();
        let mut patterns: Vec<Vec<u8>> = vec![value.as_bytes().to_vec()];
        for text in [
            percent(value, Hex::Upper),
            percent(value, Hex::Lower),
            percent(value, Hex::Upper).replace("%20", "+"),
            hexadecimal(value).to_ascii_uppercase(),
            hexadecimal(value),
            value
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;")
                .replace('"', "&quot;"),
        ] {
            patterns.push(text.into_bytes());
        }
        if let Ok(json) = serde_json::to_string(value) {
            let inner = &json[1..json.len() - 1];
            patterns.push(inner.as_bytes().to_vec());
            patterns.push(inner.replace('/', "\\/").into_bytes());
        }
        for lead in 0..3 {
            patterns.extend(base64_core(value.as_bytes(), lead));
        }
        patterns.sort();
        patterns.dedup();
        Self {
            automaton: AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(&patterns)
                .ok(),
            patterns,
            placeholder: swap.placeholder.clone().into_bytes(),
        }
    }

    /// Where the longest rest begins that could become a spelling with more bytes.
    fn unfinished(&self, bytes: &[u8], from: usize) -> usize {
        let longest = self.patterns.iter().map(Vec::len).max().unwrap_or_default();
        let first = bytes
            .len()
            .saturating_sub(longest.saturating_sub(1))
            .max(from);
        (first..bytes.len())
            .find(|&at| {
                self.patterns
                    .iter()
                    .any(|p| p.len() > bytes.len() - at && p.starts_with(&bytes[at..]))
            })
            .unwrap_or(bytes.len())
    }
}

/// The characters of a value's base64 that do not depend on what surrounds it, when it
/// begins `lead` bytes into a group of three; in both alphabets.
fn base64_core(value: &[u8], lead: usize) -> Vec<Vec<u8>> {
    let mut padded = vec![0; lead];
    padded.extend_from_slice(value);
    padded.truncate(padded.len() / 3 * 3);
    let skip = [0, 2, 3][lead.min(2)];
    [
        STANDARD_NO_PAD.encode(&padded),
        URL_SAFE_NO_PAD.encode(&padded),
    ]
    .into_iter()
    .filter_map(|text| text.as_bytes().get(skip..).map(<[u8]>::to_vec))
    .filter(|core| core.len() >= 8)
    .collect()
}

#[derive(Clone, Copy)]
enum Hex {
    Upper,
    Lower,
}

fn percent(value: &str, hex: Hex) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => out.push_str(&match hex {
                Hex::Upper => format!("%{byte:02X}"),
                Hex::Lower => format!("%{byte:02x}"),
            }),
        }
    }
    out
}

fn hexadecimal(value: &str) -> String {
    value.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts placeholders back into what a host sends, across the borders of buffers. Only
/// bytes that could be the beginning of a value are held back, so streams keep flowing.
pub(super) struct Scrubber {
    stages: Vec<Stage>,
}

struct Stage {
    needles: Arc<Needles>,
    held: BytesMut,
}

impl Scrubber {
    /// Cleans the next bytes; may answer fewer, or more.
    pub(super) fn push(&mut self, bytes: Bytes) -> Bytes {
        self.stages
            .iter_mut()
            .fold(bytes, |bytes, stage| stage.push(&bytes))
    }

    /// What was held back at the end.
    pub(super) fn finish(&mut self) -> Bytes {
        let mut out = Bytes::new();
        for stage in &mut self.stages {
            let mut whole = BytesMut::from(&stage.push(&out)[..]);
            whole.extend_from_slice(&stage.held.split());
            out = whole.freeze();
        }
        out
    }

    /// Whether anything is held back.
    pub(super) fn holds(&self) -> bool {
        self.stages.iter().any(|stage| !stage.held.is_empty())
    }

    /// Cleans the values of headers.
    pub(super) fn headers(&self, headers: &mut HeaderMap) {
        for value in headers.values_mut() {
            let mut clean = Self {
                stages: self
                    .stages
                    .iter()
                    .map(|stage| Stage::new(Arc::clone(&stage.needles)))
                    .collect(),
            };
            let mut bytes = clean
                .push(Bytes::copy_from_slice(value.as_bytes()))
                .to_vec();
            bytes.extend_from_slice(&clean.finish());
            if bytes != value.as_bytes() {
                *value = HeaderValue::from_bytes(&bytes)
                    .unwrap_or_else(|_| HeaderValue::from_static("[removed]"));
            }
        }
    }
}

impl Stage {
    fn new(needles: Arc<Needles>) -> Self {
        Self {
            needles,
            held: BytesMut::new(),
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Bytes {
        let Some(automaton) = &self.needles.automaton else {
            // Without the search nothing may pass.
            return Bytes::new();
        };
        self.held.extend_from_slice(bytes);
        let whole = self.held.split();
        let mut out = BytesMut::with_capacity(whole.len());
        let mut at = 0;
        for found in automaton.find_iter(&whole[..]) {
            out.extend_from_slice(&whole[at..found.start()]);
            out.extend_from_slice(&self.needles.placeholder);
            at = found.end();
        }
        let keep = self.needles.unfinished(&whole, at);
        out.extend_from_slice(&whole[at..keep]);
        self.held.extend_from_slice(&whole[keep..]);
        out.freeze()
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

    fn secrets(value: &str) -> Secrets {
        Secrets::new(vec![SecretSwap {
            name: "API_KEY".to_owned(),
            placeholder: PLACEHOLDER.to_owned(),
            value: Zeroizing::new(value.to_owned()),
            hosts: vec![SecretScope::parse("api.example").unwrap()],
        }])
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
    fn values_go_to_their_host_and_nowhere_else() {
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
    fn a_value_that_fits_no_header_is_refused_without_being_shown() {
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

    fn spellings() -> Vec<String> {
        let json = serde_json::to_string(VALUE).unwrap();
        let mut all = vec![
            VALUE.to_owned(),
            percent(VALUE, Hex::Upper),
            percent(VALUE, Hex::Lower),
            json[1..json.len() - 1].to_owned(),
            json[1..json.len() - 1].replace('/', "\\/"),
            hexadecimal(VALUE),
        ];
        for lead in ["", "a", "ab"] {
            all.push(STANDARD.encode(format!("{lead}{VALUE}xyz")));
        }
        all
    }

    #[test]
    fn every_spelling_is_cleaned_at_every_border() {
        let secrets = secrets(VALUE);
        let host = Host::parse("api.example").unwrap();
        assert!(
            secrets
                .scrubber(&Host::parse("other.example").unwrap())
                .is_none()
        );
        for spelling in spellings() {
            let text = format!("before {spelling} after");
            for cut in 0..=text.len() {
                let mut scrubber = secrets.scrubber(&host).unwrap();
                let mut out = scrubber
                    .push(Bytes::copy_from_slice(&text.as_bytes()[..cut]))
                    .to_vec();
                out.extend_from_slice(
                    &scrubber.push(Bytes::copy_from_slice(&text.as_bytes()[cut..])),
                );
                out.extend_from_slice(&scrubber.finish());
                let out = String::from_utf8_lossy(&out);
                assert!(out.contains(PLACEHOLDER), "{spelling} cut at {cut}: {out}");
                assert!(
                    !out.contains(&spelling)
                        && out.starts_with("before ")
                        && out.ends_with(" after"),
                    "{out}"
                );
            }
            let mut scrubber = secrets.scrubber(&host).unwrap();
            let mut out: Vec<u8> = text
                .bytes()
                .flat_map(|b| scrubber.push(Bytes::copy_from_slice(&[b])))
                .collect();
            out.extend_from_slice(&scrubber.finish());
            assert!(
                String::from_utf8_lossy(&out).contains(PLACEHOLDER),
                "{spelling} byte by byte"
            );
        }
    }

    #[test]
    fn a_stream_is_not_held_up() {
        let secrets = secrets(VALUE);
        let mut scrubber = secrets
            .scrubber(&Host::parse("api.example").unwrap())
            .unwrap();
        assert_eq!(
            scrubber.push(Bytes::from_static(b"data: one\n\n")),
            "data: one\n\n"
        );
        assert_eq!(scrubber.push(Bytes::from_static(b"data: s3c")), "data: ");
        assert!(scrubber.holds());
        assert_eq!(scrubber.push(Bytes::from_static(b"ond\n\n")), "s3cond\n\n");
        assert_eq!(scrubber.push(Bytes::from_static(b"end s")), "end ");
        assert_eq!(scrubber.finish(), "s");
    }

    #[test]
    fn headers_are_cleaned() {
        let secrets = secrets("value-0123456789");
        let scrubber = secrets
            .scrubber(&Host::parse("api.example").unwrap())
            .unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("location", "/next?key=value-0123456789".parse().unwrap());
        headers.insert("x-plain", "kept".parse().unwrap());
        scrubber.headers(&mut headers);
        assert_eq!(headers["location"], format!("/next?key={PLACEHOLDER}"));
        assert_eq!(headers["x-plain"], "kept");
    }
}
