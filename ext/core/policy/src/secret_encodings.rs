//! Encodings of secret values, and the search for them; used by the redactor and the egress
//! bridge.
//!
//! | encoding | found as |
//! |---|---|
//! | unchanged; line ends as CR LF | form |
//! | reversed, by bytes and by characters | form |
//! | hex, upper and lower case | form |
//! | base64, standard and URL-safe, at each of the three offsets | form |
//! | Latin-1, UTF-16 in either byte order | form |
//! | percent-encoding of any set of characters, upper and lower case; form fields; `escape()` | escapes of the value and its Latin-1 |
//! | JSON, JavaScript, SQL and shell escapes of any set of characters | escapes |
//! | HTML, numeric and the five named characters | escapes |
//! | quoted-printable with soft line breaks | escapes |
//! | base64 inside any of these (`\/`, `%2B`), broken into lines | escapes of the base64 |
//!
//! A form is one encoded byte string; the search compares it with the input byte by byte. Escapes
//! are decoded where they occur in the input (see [`Escapes`]).
//!
//! Not found: HTML names of other characters, other Unicode normal forms, values with reordered or
//! omitted characters, and values encoded twice (except those whose inner encoding is base64). No
//! table can cover custom encodings.
//!
//! Cost: one pass over the input with a filter of 64 Kbit, and a few binary searches at each
//! escape and line break; neither grows with the number of values. Memory: 8 KiB, and about 180
//! bytes per byte of a value.

mod escapes;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use escapes::{Escapes, Step};
use std::cmp::Reverse;
use wp_codebox_contracts::hex;

/// Minimum length of a secret value in bytes; shorter ones would match in ordinary text.
pub const SECRET_MIN_BYTES: usize = 8;
/// Number of bytes at the beginning of a form that the filter checks; no form is shorter.
const HEAD: usize = 4;
/// Size in bits of the filter, which excludes most positions at which no form begins.
const FILTER_BITS: usize = 1 << 16;
/// Number of input bytes before an escape that are looked up in the index of the texts.
const GRAM: usize = 4;

/// Secret values and their encodings.
#[derive(Clone, Default)]
pub struct SecretEncodings {
    /// Every encoded byte string to search for, sorted, without duplicates.
    forms: Vec<Form>,
    /// Forms that are also found when some of their characters are escaped.
    texts: Vec<Text>,
    /// Index of the texts: maps up to four consecutive bytes to the positions after them in the
    /// texts. Fewer than four bytes occur only at the beginning of a text. Sorted.
    grams: Vec<Gram>,
    /// Filter with one bit for each hash of a form's first bytes; empty without forms.
    filter: Vec<u64>,
    longest: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    bytes: Vec<u8>,
    value: usize,
}

#[derive(Debug, Clone)]
struct Text {
    form: Form,
    /// Whether line breaks inside the text are insignificant, as in base64.
    wraps: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Gram {
    /// Consecutive bytes of an encoded secret.
    key: GramKey,
    /// Index of the [`Text`] that contains the bytes.
    text: u32,
    /// Offset in that text just after the bytes.
    end: u32,
}

/// Number of consecutive bytes of a text (at most four), and these bytes; unused ones are zero.
type GramKey = (u8, [u8; GRAM]);

/// Position of an encoded secret value in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodedMatch {
    /// Offset of the first byte of the match.
    pub start: usize,
    /// Offset after the last byte of the match.
    pub end: usize,
    /// Index of the secret value among the values passed to [`SecretEncodings::of`]. Merged
    /// overlapping matches have the index of the first match.
    pub value: usize,
}

/// Result of searching an input for encoded values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodingSearch {
    /// Matches in the order of the input, without overlaps.
    pub found: Vec<EncodedMatch>,
    /// First position at which an encoded value may begin whose end has not arrived yet; the end
    /// of the input if there is no such position.
    pub open: usize,
}

/// Line break that the comparison skipped last, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Skipped {
    No,
    Cr,
    Line,
}

/// Result of comparing the rest of a text with the input.
enum Rest {
    /// The input contains the whole text and continues at this position.
    EndsAt(usize),
    /// The input ends before the text does, and matches up to there.
    Open,
    /// The input differs from the text.
    Other,
}

impl std::fmt::Debug for SecretEncodings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SecretEncodings({} forms)", self.forms.len())
    }
}

impl SecretEncodings {
    /// Computes the encodings of these values. Ignores values shorter than
    /// [`SECRET_MIN_BYTES`]: they would match in ordinary text.
    #[must_use]
    pub fn of<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Self::default();
        for (index, value) in values.into_iter().enumerate() {
            if value.len() >= SECRET_MIN_BYTES {
                all.add(value, index);
            }
        }
        all.forms.sort();
        all.forms
            .dedup_by(|later, first| later.bytes == first.bytes);
        all.longest = all.forms.iter().map(|f| f.bytes.len()).max().unwrap_or(0);
        if !all.forms.is_empty() {
            all.filter = vec![0; FILTER_BITS / 64];
        }
        all.index();
        for form in &all.forms {
            if let Some(head) = form.bytes.first_chunk() {
                let (word, bit) = place(*head);
                all.filter[word] |= bit;
            }
        }
        all
    }

    /// Returns whether there are no values to find.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    fn add(&mut self, value: &str, index: usize) {
        let bytes = value.as_bytes();
        let form = |bytes: Vec<u8>| Form {
            bytes,
            value: index,
        };
        let mut escaped = vec![(bytes.to_vec(), false), (latin1(value), false)];
        if value.contains('\n') {
            escaped.push((value.replace('\n', "\r\n").into_bytes(), false));
        }
        for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            escaped.extend(
                (0..3).filter_map(|lead| Some((base64_core(bytes, lead, &alphabet)?, true))),
            );
        }
        escaped.sort();
        escaped.dedup();
        let plain = [
            bytes.iter().rev().copied().collect(),
            value.chars().rev().collect::<String>().into_bytes(),
            hex(bytes).to_ascii_uppercase().into_bytes(),
            hex(bytes).into_bytes(),
            value.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            value.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        ];
        self.forms.extend(plain.into_iter().map(form));
        self.forms
            .extend(escaped.iter().map(|(bytes, _)| form(bytes.clone())));
        self.texts
            .extend(escaped.into_iter().map(|(bytes, wraps)| Text {
                form: form(bytes),
                wraps,
            }));
    }

    fn index(&mut self) {
        for (text, index) in self.texts.iter().zip(0_u32..) {
            let ends = (1..=text.form.bytes.len()).zip(1_u32..);
            self.grams.extend(ends.map(|(size, end)| Gram {
                key: gram(&text.form.bytes[size.saturating_sub(GRAM)..size]),
                text: index,
                end,
            }));
        }
        self.grams.sort_unstable();
    }

    /// Returns the texts that may match the input up to an escape, each with the position in the
    /// text up to which it may match. `last` contains the input bytes before that escape. The four
    /// bytes of the text before the position equal the last four of `last`. If the position is
    /// below four, all bytes of the text before it equal as many bytes at the end of `last`.
    fn reached(&self, last: &[u8]) -> impl Iterator<Item = (&Text, usize)> {
        let sizes = 1..=last.len().min(GRAM);
        sizes.flat_map(move |size| {
            let key = gram(&last[last.len() - size..]);
            let from = self.grams.partition_point(|gram| gram.key < key);
            self.grams[from..]
                .iter()
                .take_while(move |gram| gram.key == key)
                .filter_map(|gram| Some((self.texts.get(gram.text as usize)?, gram.end as usize)))
        })
    }

    /// Finds every encoded secret value in the input.
    #[must_use]
    pub fn search(&self, bytes: &[u8]) -> EncodingSearch {
        let mut search = EncodingSearch {
            found: Vec::new(),
            open: bytes.len(),
        };
        if self.is_empty() {
            return search;
        }
        for (at, &byte) in bytes.iter().enumerate() {
            if self.may_begin(&bytes[at..]) {
                search.found_one(self.form_at(bytes, at));
            }
            if let Some(escapes) = Escapes::led_by(byte) {
                self.escaped_at(escapes, bytes, at, &mut search);
            }
        }
        search.open = search.open.min(self.opening(bytes));
        search.merge();
        search
    }

    fn may_begin(&self, rest: &[u8]) -> bool {
        rest.first_chunk().is_some_and(|head| {
            let (word, bit) = place(*head);
            self.filter[word] & bit != 0
        })
    }

    /// Returns the longest form that begins at this position of the input.
    fn form_at(&self, bytes: &[u8], at: usize) -> Option<EncodedMatch> {
        let rest = &bytes[at..];
        let head = rest.get(..HEAD)?;
        let from = self
            .forms
            .partition_point(|form| form.bytes.get(..HEAD) < Some(head));
        self.forms[from..]
            .iter()
            .take_while(|form| form.bytes.starts_with(head))
            .filter(|form| rest.starts_with(&form.bytes))
            .max_by_key(|form| form.bytes.len())
            .map(|form| EncodedMatch {
                start: at,
                end: at + form.bytes.len(),
                value: form.value,
            })
    }

    /// Finds texts whose first escape or line break in the input is at this position; the part
    /// before it must match unescaped.
    fn escaped_at(&self, escapes: Escapes, bytes: &[u8], at: usize, search: &mut EncodingSearch) {
        let (before, rest) = bytes.split_at(at);
        let Some(step) = escapes.step(rest) else {
            // The input ends inside an escape, which may be the next character of a text that has
            // matched up to here.
            search.open = search.open.min(self.opening(before));
            return;
        };
        let mut from = |text: &Text, matched: usize, after: usize, skipped: Skipped| {
            if !before.ends_with(&text.form.bytes[..matched]) {
                return;
            }
            let start = at - matched;
            match text.follow(escapes, bytes, at + step.length, after, skipped) {
                Rest::EndsAt(end) => search.found_one(Some(EncodedMatch {
                    start,
                    end,
                    value: text.form.value,
                })),
                Rest::Open => search.open = search.open.min(start),
                Rest::Other => {}
            }
        };
        let tail = &before[at.saturating_sub(GRAM)..];
        let stands_for = step.stands_for();
        if let (true, Some(&first)) = (step.escape, stands_for.first()) {
            for (text, end) in self.reached(&[tail, &[first]].concat()) {
                if text.form.bytes[end - 1..].starts_with(stands_for) {
                    from(text, end - 1, end - 1 + stands_for.len(), Skipped::No);
                }
            }
        }
        if !matches!(stands_for, b"" | b"\r" | b"\n") {
            return;
        }
        for (text, end) in self.reached(tail) {
            if let (Some(skipped), true) =
                (text.skips(&step, Skipped::No), end < text.form.bytes.len())
            {
                from(text, end, end, skipped);
            }
        }
    }

    /// Returns the start of the longest suffix of the input that is a prefix of a form.
    fn opening(&self, bytes: &[u8]) -> usize {
        let first = bytes.len().saturating_sub(self.longest.saturating_sub(1));
        (first..bytes.len())
            .find(|&at| {
                let rest = &bytes[at..];
                (rest.len() < HEAD || self.may_begin(rest)) && {
                    // In the sorted list, forms that continue `rest` follow directly after it.
                    let next = self
                        .forms
                        .partition_point(|form| form.bytes.as_slice() <= rest);
                    self.forms
                        .get(next)
                        .is_some_and(|form| form.bytes.starts_with(rest))
                }
            })
            .unwrap_or(bytes.len())
    }
}

impl EncodingSearch {
    fn found_one(&mut self, found: Option<EncodedMatch>) {
        let Some(found) = found else { return };
        match self.found.last_mut() {
            // Merge overlapping matches at once: a value of one repeated byte matches at every
            // position and would fill the list.
            Some(last) if (last.start..last.end).contains(&found.start) => {
                last.end = last.end.max(found.end);
            }
            _ => self.found.push(found),
        }
    }

    fn merge(&mut self) {
        let mut all = std::mem::take(&mut self.found);
        all.sort_by_key(|found| (found.start, Reverse(found.end)));
        for found in all {
            self.found_one(Some(found));
        }
    }
}

impl Text {
    /// Compares the rest of the text, from `matched` on, with the input at `at`.
    fn follow(
        &self,
        escapes: Escapes,
        bytes: &[u8],
        mut at: usize,
        mut matched: usize,
        mut skipped: Skipped,
    ) -> Rest {
        while let Some(&wanted) = self.form.bytes.get(matched) {
            let Some(step) = escapes.step(&bytes[at..]) else {
                return Rest::Open;
            };
            let stands_for = step.stands_for();
            if !stands_for.is_empty() && self.form.bytes[matched..].starts_with(stands_for) {
                matched += stands_for.len();
                at += step.length;
                skipped = Skipped::No;
            } else if let Some(now) = self.skips(&step, skipped) {
                at += step.length;
                skipped = now;
            } else if bytes[at] == wanted {
                // The apparent escape is a literal character of the value here.
                matched += 1;
                at += 1;
                skipped = Skipped::No;
            } else {
                return Rest::Other;
            }
        }
        Rest::EndsAt(at)
    }

    /// Returns the new state if a line break of the input can be skipped in this text, otherwise
    /// `None`. Only one line break is skipped at a time: a blank line ends every match, so a
    /// stream whose events end with a blank line is not delayed until more input arrives.
    fn skips(&self, step: &Step, before: Skipped) -> Option<Skipped> {
        match (step.stands_for(), before) {
            (b"", Skipped::No) => Some(Skipped::Line),
            (b"\r", Skipped::No) if self.wraps => Some(Skipped::Cr),
            (b"\n", Skipped::No | Skipped::Cr) if self.wraps => Some(Skipped::Line),
            _ => None,
        }
    }
}

fn gram(bytes: &[u8]) -> GramKey {
    let mut key = [0; GRAM];
    let size = bytes.len().min(GRAM);
    key[..size].copy_from_slice(&bytes[..size]);
    (size as u8, key)
}

/// Returns where the prefix filter records the first bytes of an encoded secret: the index of the
/// 64-bit word, and the mask of the bit in it.
fn place(head: [u8; HEAD]) -> (usize, u64) {
    let hash = u32::from_le_bytes(head).wrapping_mul(0x9e37_79b1) >> 16;
    (hash as usize / 64, 1 << (hash % 64))
}

/// Returns the base64 characters that depend on the value alone if `lead` other bytes precede it in
/// its first group of three bytes; `None` if there are too few such characters to search for.
fn base64_core(value: &[u8], lead: usize, alphabet: &GeneralPurpose) -> Option<Vec<u8>> {
    let mut padded = vec![0_u8; lead];
    padded.extend_from_slice(value);
    let mut encoded = alphabet.encode(&padded).into_bytes();
    encoded.truncate(padded.len() * 8 / 6);
    let core = encoded.split_off((lead * 8).div_ceil(6));
    (core.len() >= SECRET_MIN_BYTES).then_some(core)
}

/// Encodes each character as Latin-1 if possible, otherwise as UTF-8. A decoder of JavaScript's
/// `escape()` returns these bytes.
fn latin1(value: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    for char in value.chars() {
        match u8::try_from(char) {
            Ok(byte) => out.push(byte),
            Err(_) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: &str = r#"p/a+s"s'wü € <&>~*1=\z"#;
    /// Encoded values as other programs write them, one row per encoding. They are literals, so
    /// that an error in the encoder cannot repeat itself in the test.
    const WRITTEN: &[(&str, &str)] = &[
        ("as it is", VALUE),
        ("backwards", r#"z\=1*~>&< € üw's"s+a/p"#),
        (
            "PHP rawurlencode",
            "p%2Fa%2Bs%22s%27w%C3%BC%20%E2%82%AC%20%3C%26%3E~%2A1%3D%5Cz",
        ),
        (
            "in lower case",
            "p%2fa%2bs%22s%27w%c3%bc%20%e2%82%ac%20%3c%26%3e~%2a1%3d%5cz",
        ),
        (
            "PHP urlencode",
            "p%2Fa%2Bs%22s%27w%C3%BC+%E2%82%AC+%3C%26%3E%7E%2A1%3D%5Cz",
        ),
        (
            "Python quote",
            "p/a%2Bs%22s%27w%C3%BC%20%E2%82%AC%20%3C%26%3E~%2A1%3D%5Cz",
        ),
        (
            "URLSearchParams",
            "p%2Fa%2Bs%22s%27w%C3%BC+%E2%82%AC+%3C%26%3E%7E*1%3D%5Cz",
        ),
        (
            "encodeURIComponent",
            "p%2Fa%2Bs%22s'w%C3%BC%20%E2%82%AC%20%3C%26%3E~*1%3D%5Cz",
        ),
        (
            "encodeURI",
            "p/a+s%22s'w%C3%BC%20%E2%82%AC%20%3C&%3E~*1=%5Cz",
        ),
        (
            "JavaScript escape",
            "p/a+s%22s%27w%FC%20%u20AC%20%3C%26%3E%7E*1%3D%5Cz",
        ),
        (
            "every byte",
            "%70%2F%61%2B%73%22%73%27%77%C3%BC%20%E2%82%AC%20%3C%26%3E%7E%2A%31%3D%5C%7A",
        ),
        ("JSON.stringify", r#"p/a+s\"s'wü € <&>~*1=\\z"#),
        ("PHP json_encode", r#"p\/a+s\"s'w\u00fc \u20ac <&>~*1=\\z"#),
        (
            "JSON_HEX_*",
            r"p\/a+s\u0022s\u0027w\u00fc \u20ac \u003C\u0026\u003E~*1=\\z",
        ),
        (
            "JSON_HEX_TAG, slashes kept",
            r#"p/a+s\"s'w\u00fc \u20ac \u003C&\u003E~*1=\\z"#,
        ),
        (
            "Go, with \\u in lower case",
            r#"p/a+s\"s'wü € \u003c\u0026\u003e~*1=\\z"#,
        ),
        ("braces", r#"p/a+s"s'w\u{fc} \u{20ac} <&>~*1=\\z"#),
        ("PHP addslashes", r#"p/a+s\"s\'wü € <&>~*1=\\z"#),
        (
            "Python bytes",
            r#"p/a+s"s\'w\xc3\xbc \xe2\x82\xac <&>~*1=\\z"#,
        ),
        ("Python ascii", r#"p/a+s"s\'w\xfc \u20ac <&>~*1=\\z"#),
        ("bash %q", r#"p/a+s"s\'w\303\274 \342\202\254 <&>~*1=\\z"#),
        (
            "PHP htmlspecialchars",
            r"p/a+s&quot;s&#039;wü € &lt;&amp;&gt;~*1=\z",
        ),
        ("WordPress", r"p/a+s&quot;s&#039;wü € &lt;&#038;&gt;~*1=\z"),
        (
            "Python html.escape",
            r"p/a+s&quot;s&#x27;wü € &lt;&amp;&gt;~*1=\z",
        ),
        (
            "XML",
            r"p/a+s&quot;s&apos;w&#252; &#8364; &lt;&amp;&gt;~*1=\z",
        ),
        (
            "XML, hexadecimal",
            r#"p/a+s"s'w&#xFC; &#x20aC; &lt;&amp;&gt;~*1=\z"#,
        ),
        (
            "quoted-printable",
            r#"p/a+s"s'w=C3=BC =E2=82=AC <&>~*1=3D\z"#,
        ),
        (
            "quoted-printable, lower case, broken twice",
            "p/a+s=\r\n\"s'w=c3=bc =e2=82=ac=\n <&>~*1=3d\\z",
        ),
        (
            "PHP bin2hex",
            "702f612b7322732777c3bc20e282ac203c263e7e2a313d5c7a",
        ),
        (
            "upper hex",
            "702F612B7322732777C3BC20E282AC203C263E7E2A313D5C7A",
        ),
        ("base64", "cC9hK3Micyd3w7wg4oKsIDwmPn4qMT1ceg=="),
        (
            "base64, one byte on",
            "eHAvYStzInMnd8O8IOKCrCA8Jj5+KjE9XHp5",
        ),
        (
            "base64, two bytes on",
            "eHlwL2ErcyJzJ3fDvCDigqwgPCY+fioxPVx6eg==",
        ),
        ("base64url", "eHAvYStzInMnd8O8IOKCrCA8Jj5-KjE9XHp5"),
        (
            "base64 as a parameter",
            "eHAvYStzInMnd8O8IOKCrCA8Jj5%2bKjE9XHp5",
        ),
        (
            "base64 in lines",
            "eHlwL2ErcyJzJ3fDvCDi\r\ngqwgPCY+f\nioxPVx6eg==",
        ),
        (
            "base64 in lines in JSON",
            r"eHlwL2ErcyJzJ3fDvCDi\r\ngqwgPCY+fioxPVx6eg==\r\n",
        ),
        (
            "base64 with slashes in JSON",
            r"Pz8/cC9hK3Micyd3w7wg4oKsIDwmPn4qMT1ceg==",
        ),
    ];

    fn one(value: &str) -> SecretEncodings {
        SecretEncodings::of([value])
    }

    /// Returns start and end of the only match in a text; panics if there is not exactly one.
    fn found(encodings: &SecretEncodings, text: &[u8]) -> (usize, usize) {
        let search = encodings.search(text);
        match search.found.as_slice() {
            [found] => (found.start, found.end),
            other => panic!("{other:?} in {}", String::from_utf8_lossy(text)),
        }
    }

    #[test]
    fn secret_is_found_in_every_supported_encoding() {
        let (encodings, other) = (one(VALUE), one(&VALUE.replace('1', "2")));
        for (name, written) in WRITTEN {
            let text = format!("({written})");
            let (start, end) = found(&encodings, text.as_bytes());
            if name.contains("base64") {
                // Base64 characters at the edges also depend on the neighbouring bytes, so they are
                // not part of the match.
                let left = text.len() - (end - start);
                assert!(
                    end - start >= 32 && left <= 14,
                    "{name}: {start} {end} of {text}"
                );
            } else {
                assert_eq!((start, end), (1, text.len() - 1), "{name}");
            }
            assert_eq!(other.search(text.as_bytes()).found, [], "control: {name}");
        }
    }

    /// `open` is the first position at which a secret may begin whose end has not arrived yet.
    #[test]
    fn every_prefix_of_an_encoded_secret_is_held_back_as_a_possible_match() {
        let encodings = one(VALUE);
        for (name, written) in WRITTEN {
            let text = format!("({written})").into_bytes();
            let (start, end) = found(&encodings, &text);
            for cut in start + 1..end {
                let open = encodings.search(&text[..cut]).open;
                assert!(open <= start, "{name} cut at {cut}: {open} > {start}");
            }
            // After the closing `)` no further match can be incomplete, so nothing is held back.
            assert_eq!(encodings.search(&text).open, text.len(), "{name}");
        }
    }

    #[test]
    fn secret_is_found_in_latin1_and_utf16_and_reversed_and_with_an_escaped_emoji() {
        let value = "pässwörter-ß";
        let encodings = one(value);
        let latin1 = b"p\xe4ssw\xf6rter-\xdf".to_vec();
        let wide: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let network: Vec<u8> = value.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let backwards = value.bytes().rev().collect();
        for text in [
            latin1,
            backwards,
            wide,
            network,
            b"p%E4ssw%f6rter-%DF".to_vec(),
            b"p=E4ssw=F6rter-=DF".to_vec(),
        ] {
            assert_eq!(found(&encodings, &text), (0, text.len()), "{text:?}");
        }
        let pair = one("smile😀smile");
        for text in [
            r"smile\ud83d\ude00smile",
            "smile%uD83D%uDE00smile",
            "smile&#128512;smile",
            r"smile\U0001F600smile",
        ] {
            assert_eq!(found(&pair, text.as_bytes()), (0, text.len()), "{text}");
        }
    }

    #[test]
    fn secret_that_itself_looks_like_escaped_text_is_found() {
        for (value, written) in [
            ("100%25x-100%25x", "100%2525x-100%2525x"),
            (r"C:\new\table", r"C:\\new\\table"),
            ("a&amp;b-a&amp;b", "a&amp;amp;b-a&amp;amp;b"),
            ("a=3Db=3Dc=3D", "a=3D3Db=3D3Dc=3D3D"),
            ("a+b c+d e+f", "a+b%20c+d%20e+f"),
        ] {
            for text in [value, written] {
                assert_eq!(
                    found(&one(value), text.as_bytes()),
                    (0, text.len()),
                    "{text}"
                );
            }
        }
    }

    /// `open` is the first position at which a secret may begin whose end has not arrived yet.
    #[test]
    fn only_single_line_breaks_in_base64_are_skipped_and_line_breaks_of_a_secret_may_be_crlf() {
        let encodings = one(VALUE);
        let broken = b"cC9hK3Micyd3w7w\n\ng4oKsIDwmPn4qMT1ceg==";
        assert_eq!(encodings.search(broken).found, []);
        assert_eq!(encodings.search(b"cC9hK3Mi\n").open, 0);
        // A blank line ends an event of a stream. The event must not be held back until more input
        // arrives.
        assert_eq!(encodings.search(b"cC9hK3Mi\n\n").open, 10);
        let value = VALUE.replace('ü', "\n");
        assert_eq!(encodings.search(value.as_bytes()).found, []);
        let lines = one("first line\nsecond line");
        let text = b"first line\r\nsecond line";
        assert_eq!(found(&lines, text), (0, text.len()));
    }

    #[test]
    fn overlapping_matches_of_one_secret_are_merged_into_one() {
        let encodings = SecretEncodings::of(["abcabcabcabc", "short", "xyzxyzxyz"]);
        let search = encodings.search(b"-abcabcabcabcabc-xyzxyzxyz-short");
        let found: Vec<_> = search
            .found
            .iter()
            .map(|f| (f.start, f.end, f.value))
            .collect();
        assert_eq!(found, [(1, 16, 0), (17, 26, 2)]);
        assert!(SecretEncodings::of(["short"]).is_empty());
        let many = one("aaaaaaaa").search(&[b'a'; 100_000]).found;
        assert_eq!(many.len(), 1);
    }

    #[test]
    fn memory_for_the_encodings_of_a_secret_is_linear_in_its_length() {
        let value: String = (0..16 * 1024_u32)
            .map(|n| char::from(33 + (n.wrapping_mul(2_654_435_761) >> 16) as u8 % 94))
            .collect();
        let all = one(&value);
        let forms: usize = all.forms.iter().map(|form| form.bytes.len()).sum();
        let texts: usize = all.texts.iter().map(|text| text.form.bytes.len()).sum();
        let bytes = forms + texts + all.grams.len() * size_of::<Gram>() + all.filter.len() * 8;
        assert!(all.forms.len() <= 16, "{all:?}");
        assert!(bytes < 180 * value.len(), "{bytes}");
        let json = serde_json::to_string(&value).unwrap();
        assert_eq!(found(&all, json.as_bytes()), (1, json.len() - 1));
    }
}
