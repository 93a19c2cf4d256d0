//! Parses the readable parts of a message: subject, body and links.

use base64::Engine;

/// Number of bytes at the start of a message in which the subject header is searched.
const HEADERS: usize = 64 * 1024;
/// Maximum number of characters of a subject that are stored. Lists of mails show fewer, but the
/// redactor must see the whole of a secret whose end the list cuts off.
const SUBJECT: usize = 1000;
/// Maximum nesting depth of MIME parts that the parser reads; MIME itself sets no limit.
const DEPTH: u32 = 4;
/// Maximum length of a link in bytes. Longer links are omitted, as a truncated link would lead
/// elsewhere.
const LINK: usize = 2048;

/// Returns the decoded subject; empty when the message has none.
pub(super) fn subject(content: &[u8]) -> String {
    let head = &content[..content.len().min(HEADERS)];
    let raw = field(&String::from_utf8_lossy(head), "subject");
    decoded(&raw.unwrap_or_default())
        .chars()
        .take(SUBJECT)
        .collect()
}

/// Returns the decoded body of a message that has a single part; returns the body of a multipart
/// message undecoded.
pub fn readable(content: &[u8]) -> String {
    let text = String::from_utf8_lossy(content);
    let (head, body) = text
        .split_once("\r\n\r\n")
        .or_else(|| text.split_once("\n\n"))
        .unwrap_or((&text, ""));
    let encoding = field(head, "content-transfer-encoding").unwrap_or_default();
    let bytes = match encoding.to_ascii_lowercase().as_str() {
        "base64" => {
            let compact: String = body.split_whitespace().collect();
            base64::engine::general_purpose::STANDARD
                .decode(compact)
                .ok()
        }
        "quoted-printable" => {
            let joined = body.replace("=\r\n", "").replace("=\n", "");
            // `quoted` decodes the Q encoding of RFC 2047, in which `_` is a blank. In a body `_`
            // is an ordinary character, so it is escaped first.
            quoted(&joined.replace('_', "=5F"))
        }
        _ => None,
    };
    match bytes {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => body.to_owned(),
    }
}

/// Returns http and https URLs in the text parts of a message, in order and without duplicates.
/// Returns at most `most` URLs, only those for which `wanted` is true.
pub fn links(content: &str, most: usize, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    texts(content, DEPTH, &mut |text| {
        let mut rest = text;
        while let Some(start) = rest.find("http") {
            if found.len() >= most {
                return;
            }
            rest = &rest[start..];
            if !rest.starts_with("http://") && !rest.starts_with("https://") {
                rest = &rest["http".len()..];
                continue;
            }
            let end = |c: char| c.is_whitespace() || c.is_control() || "<>\"'`{}|\\^".contains(c);
            // Continue the search behind this link, so that a text of many `http://` is scanned
            // only once.
            let (link, behind) = rest.split_at(rest.find(end).unwrap_or(rest.len()));
            rest = behind;
            // Punctuation after a link belongs to the sentence.
            let link = link.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']']);
            if link.len() > LINK {
                continue;
            }
            // HTML writes `&` as an entity. Plain text is decoded too, because it rarely contains
            // these sequences.
            let link = link.replace("&amp;", "&").replace("&#038;", "&");
            if wanted(&link) && !found.contains(&link) {
                found.push(link);
            }
        }
    });
    found
}

/// Passes each decoded text part of a message to `take`; skips other content types.
fn texts(content: &str, depth: u32, take: &mut dyn FnMut(&str)) {
    let (head, body) = content
        .split_once("\r\n\r\n")
        .or_else(|| content.split_once("\n\n"))
        .unwrap_or((content, ""));
    let kind = field(head, "content-type").unwrap_or_default();
    match boundary(&kind) {
        Some(boundary) if depth > 0 => {
            // The text before the first boundary is skipped: it is for readers without MIME
            // support.
            for part in body.split(&format!("--{boundary}")).skip(1) {
                texts(part.trim_start_matches(['\r', '\n']), depth - 1, take);
            }
        }
        Some(_) => {}
        None if kind.is_empty() || kind.to_ascii_lowercase().starts_with("text/") => {
            take(&readable(content.as_bytes()));
        }
        None => {}
    }
}

/// Returns the boundary parameter of a multipart content type.
fn boundary(kind: &str) -> Option<&str> {
    // Lower-casing ASCII letters keeps byte offsets valid.
    let lower = kind.to_ascii_lowercase();
    if !lower.starts_with("multipart/") {
        return None;
    }
    let value = kind.get(lower.find("boundary=")? + "boundary=".len()..)?;
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => value.split([';', ' ']).next()?,
    };
    (!value.is_empty()).then_some(value)
}

/// Returns the value of the header field `wanted`, with folded lines joined.
fn field(head: &str, wanted: &str) -> Option<String> {
    let mut value: Option<String> = None;
    for line in head.lines() {
        if line.is_empty() {
            break;
        }
        match &mut value {
            // A folded line continues the field's value; its leading white space becomes one blank.
            Some(text) if line.starts_with([' ', '\t']) => {
                text.push(' ');
                text.push_str(line.trim_start());
            }
            Some(_) => break,
            None => {
                let named = line
                    .split_once(':')
                    .filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
                value = named.map(|(_, value)| value.trim().to_owned());
            }
        }
    }
    value
}

/// Decodes the encoded words of RFC 2047; malformed ones and unsupported character sets stay as
/// they are.
fn decoded(text: &str) -> String {
    let mut out = String::new();
    let mut after_word = false;
    for piece in text.split(' ') {
        let word = encoded_word(piece);
        // Blanks between two encoded words only separate them (RFC 2047, 6.2).
        let separator = after_word && word.is_some();
        if !separator && !out.is_empty() {
            out.push(' ');
        }
        after_word = word.is_some();
        out.push_str(word.as_deref().unwrap_or(piece));
    }
    out
}

fn encoded_word(piece: &str) -> Option<String> {
    let inner = piece.strip_prefix("=?")?.strip_suffix("?=")?;
    let mut parts = inner.splitn(3, '?');
    let charset = parts.next()?.to_ascii_lowercase();
    let encoding = parts.next()?.to_ascii_lowercase();
    let text = parts.next()?;
    if !matches!(charset.as_str(), "utf-8" | "us-ascii") {
        return None;
    }
    let bytes = match encoding.as_str() {
        "b" => base64::engine::general_purpose::STANDARD
            .decode(text)
            .ok()?,
        "q" => quoted(text)?,
        _ => return None,
    };
    String::from_utf8(bytes).ok()
}

fn quoted(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::new();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'_' => b' ',
            b'=' => {
                let digits = [bytes.next()?, bytes.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                u8::from_str_radix(digits, 16).ok()?
            }
            other => other,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_and_encoded_mail_subjects_are_decoded() {
        for (head, wanted) in [
            (
                "From: a\r\nSubject: [My Site] Hello\r\nTo: b\r\n\r\nSubject: no",
                "[My Site] Hello",
            ),
            ("SUBJECT:one\r\n two\r\n\r\n", "one two"),
            (
                "Subject: =?UTF-8?B?w6TDtg==?= x =?utf-8?Q?=C3=BC_y?=\r\n\r\n",
                "äö x ü y",
            ),
            ("Subject: =?UTF-8?Q?a?=\r\n =?UTF-8?Q?b?=\r\n\r\n", "ab"),
            (
                "Subject: =?UTF-8?Q?=G1?= =?x?Q?a?= =?UTF-8?B?%?=\r\n\r\n",
                "=?UTF-8?Q?=G1?= =?x?Q?a?= =?UTF-8?B?%?=",
            ),
            ("Subject: =?UTF-8?Q?=C?=\r\n\r\n", "=?UTF-8?Q?=C?="),
            ("To: b\r\n\r\nSubject: of the body\r\n", ""),
            ("", ""),
        ] {
            assert_eq!(subject(head.as_bytes()), wanted, "{head}");
        }
        assert_eq!(subject(b"Subject: \xff\xfe\r\n\r\n"), "\u{fffd}\u{fffd}");
        let long = format!("Subject: {}\r\n\r\n", "x".repeat(1000));
        assert_eq!(subject(long.as_bytes()).len(), SUBJECT);
    }

    #[test]
    fn mail_links_are_extracted_from_every_text_part_up_to_a_limit() {
        let all = |content: &str| links(content, 9, |_| true);
        assert_eq!(
            all(
                "A: b\r\n\r\nSee <https://x.test/a?b=1>, (http://y.test/). https://x.test/a?b=1 httpx://no http"
            ),
            ["https://x.test/a?b=1", "http://y.test/"]
        );
        let parts = "Content-Type: multipart/mixed;\r\n boundary=\"=_b\"\r\n\r\nhttp://preamble.test/\r\n--=_b\r\n\
            Content-Type: multipart/alternative; boundary=in\r\n\r\n--in\r\nContent-Type: text/html\r\n\
            Content-Transfer-Encoding: quoted-printable\r\n\r\n<a href=3D\"http://html.test/?a=3D1&amp;b=\r\n=3D2\">x</a>\r\n--in--\r\n\
            --=_b\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\naHR0cDovL2Jhc2UudGVzdC8=\r\n\
            --=_b\r\nContent-Type: application/pdf\r\n\r\nhttp://attached.test/\r\n--=_b--\r\n";
        assert_eq!(
            all(parts),
            ["http://html.test/?a=1&b=2", "http://base.test/"]
        );
        assert_eq!(
            links(parts, 9, |link| link.contains("base")),
            ["http://base.test/"]
        );
        let many: String = (0..50).map(|n| format!("http://{n}.test/ ")).collect();
        assert_eq!(all(&format!("A: b\n\n{many}")).len(), 9);
        assert!(all(&format!("A: b\n\nhttp://x.test/{}", "y".repeat(LINK))).is_empty());
        // MIME parts nested deeper than the limit, and a multipart message with an empty boundary,
        // have no links.
        let mut nested = "http://deep.test/".to_owned();
        for _ in 0..100 {
            nested = format!("Content-Type: multipart/x; boundary=b\r\n\r\n--b\r\n{nested}");
        }
        assert!(all(&nested).is_empty());
        assert!(all("Content-Type: multipart/x; boundary=\r\n\r\nhttp://x.test/").is_empty());
    }

    #[test]
    fn mail_text_body_is_decoded_in_each_transfer_encoding() {
        let of = |head: &str, body: &str| readable(format!("{head}\r\n\r\n{body}").as_bytes());
        assert_eq!(of("A: b", "x\r\n\r\ny"), "x\r\n\r\ny");
        let encoding = |name| format!("Content-Transfer-Encoding: {name}");
        assert_eq!(of(&encoding("base64"), "w6Q9\r\nPQ==\r\n"), "ä==");
        let quoted = of(&encoding("Quoted-Printable"), "=C3=A4_a=\r\nb =3D\r\n");
        assert_eq!(quoted, "ä_ab =\r\n");
        // A body that cannot be decoded is shown unchanged.
        assert_eq!(of(&encoding("base64"), "%"), "%");
        assert_eq!(of(&encoding("quoted-printable"), "=x"), "=x");
        assert_eq!(readable(b"no end of the headers"), "");
        assert_eq!(readable(b"A: b\n\nbare"), "bare");
    }
}
