//! Decodes the escape sequences of common encoders.
//!
//! Encoders of one family differ in the characters they escape and in the case of their digits
//! (`rawurlencode`, `encodeURI` and `escape` all write `%22`, but only one of them writes
//! `%2F`). Decoding covers all of them, which a list of encoded texts cannot.

/// A family of encoders, by the escape sequences that they write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// No escapes; only line breaks are recognised.
    None,
    /// `%2F`, `%u20AC` of JavaScript's `escape`, and `+` for a space.
    Percent,
    /// `\/`, `\"`, `\n`, `\u00e9`, `\u{e9}`, `\U000000e9`, `\xe9`, `\303`.
    Backslash,
    /// `&quot;`, `&#233;`, `&#xE9;`.
    Html,
    /// `=C3`, and `=` at the end of a line as a soft line break (RFC 2045, 6.7).
    QuotedPrintable,
}

/// The characters that HTML encoders must escape, with their named character references.
const NAMED: &[(&[u8], char)] = &[
    (b"&amp;", '&'),
    (b"&lt;", '<'),
    (b"&gt;", '>'),
    (b"&quot;", '"'),
    (b"&apos;", '\''),
];
/// Maximum number of digits of a numeric character reference, leading zeros included.
const HTML_DIGITS: usize = 8;

/// One decoded character or escape sequence of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    bytes: [u8; 4],
    size: usize,
    /// Number of input bytes that were decoded.
    pub length: usize,
    /// Whether the decoded input was an escape sequence.
    pub escape: bool,
}

impl Step {
    /// Returns the decoded bytes; empty for a soft line break.
    pub(super) fn stands_for(&self) -> &[u8] {
        &self.bytes[..self.size]
    }

    fn literal(byte: u8) -> Self {
        Self {
            escape: false,
            ..Self::byte(byte, 1)
        }
    }

    fn byte(byte: u8, length: usize) -> Self {
        Self {
            bytes: [byte, 0, 0, 0],
            size: 1,
            length,
            escape: true,
        }
    }

    fn nothing(length: usize) -> Self {
        Self {
            size: 0,
            ..Self::byte(0, length)
        }
    }

    fn char(char: char, length: usize) -> Self {
        let mut bytes = [0; 4];
        let size = char.encode_utf8(&mut bytes).len();
        Self {
            bytes,
            size,
            length,
            escape: true,
        }
    }
}

/// Why no escape was decoded.
enum NoEscape {
    /// The bytes are not an escape.
    NotAnEscape,
    /// The input ends before an escape can be recognised.
    Incomplete,
}

impl Escapes {
    /// Returns the family of encoders whose escapes, or removable line breaks, begin with this
    /// byte.
    pub(super) const fn led_by(byte: u8) -> Option<Self> {
        match byte {
            b'\r' | b'\n' => Some(Self::None),
            b'%' | b'+' => Some(Self::Percent),
            b'\\' => Some(Self::Backslash),
            b'&' => Some(Self::Html),
            b'=' => Some(Self::QuotedPrintable),
            _ => None,
        }
    }

    /// Decodes the next character or escape; `None` if the input ends inside it.
    pub(super) fn step(self, text: &[u8]) -> Option<Step> {
        let first = *text.first()?;
        let escape = match (self, first) {
            (Self::Percent, b'%') => percent(text),
            (Self::Percent, b'+') => Ok(Step::byte(b' ', 1)),
            (Self::Backslash, b'\\') => backslash(text),
            (Self::Html, b'&') => html(text),
            (Self::QuotedPrintable, b'=') => quoted_printable(text),
            _ => Err(NoEscape::NotAnEscape),
        };
        match escape {
            Ok(step) => Some(step),
            Err(NoEscape::NotAnEscape) => Some(Step::literal(first)),
            Err(NoEscape::Incomplete) => None,
        }
    }
}

fn percent(text: &[u8]) -> Result<Step, NoEscape> {
    match text.get(1).ok_or(NoEscape::Incomplete)? {
        b'u' => utf16(text, b"%u"),
        _ => Ok(Step::byte(byte(text, 1, 2)?, 3)),
    }
}

fn backslash(text: &[u8]) -> Result<Step, NoEscape> {
    let control = match *text.get(1).ok_or(NoEscape::Incomplete)? {
        b'x' => return Ok(Step::byte(byte(text, 2, 2)?, 4)),
        b'u' => {
            return match text.get(2).ok_or(NoEscape::Incomplete)? {
                b'{' => number(text, 3, 16, 6, b'}'),
                _ => utf16(text, b"\\u"),
            };
        }
        b'U' => {
            let code = fixed(text, 2, 8)?;
            return Ok(Step::char(
                char::from_u32(code).ok_or(NoEscape::NotAnEscape)?,
                10,
            ));
        }
        b'0'..=b'7' => return octal(text),
        b'a' => 0x07,
        b'b' => 0x08,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 0x0b,
        b'f' => 0x0c,
        b'r' => b'\r',
        b'e' => 0x1b,
        other => other,
    };
    Ok(Step::byte(control, 2))
}

fn html(text: &[u8]) -> Result<Step, NoEscape> {
    if text.starts_with(b"&#") {
        return match text.get(2).ok_or(NoEscape::Incomplete)? {
            b'x' | b'X' => number(text, 3, 16, HTML_DIGITS, b';'),
            _ => number(text, 2, 10, HTML_DIGITS, b';'),
        };
    }
    for (name, char) in NAMED {
        if text.starts_with(name) {
            return Ok(Step::char(*char, name.len()));
        }
        if name.starts_with(text) {
            return Err(NoEscape::Incomplete);
        }
    }
    Err(NoEscape::NotAnEscape)
}

fn quoted_printable(text: &[u8]) -> Result<Step, NoEscape> {
    match (text.get(1).ok_or(NoEscape::Incomplete)?, text.get(2)) {
        (b'\n', _) => Ok(Step::nothing(2)),
        (b'\r', None) => Err(NoEscape::Incomplete),
        (b'\r', Some(b'\n')) => Ok(Step::nothing(3)),
        _ => Ok(Step::byte(byte(text, 1, 2)?, 3)),
    }
}

/// Decodes one UTF-16 code unit, or two for a character above U+FFFF; `lead` precedes each.
fn utf16(text: &[u8], lead: &[u8; 2]) -> Result<Step, NoEscape> {
    let unit = fixed(text, 2, 4)?;
    if let Some(char) = char::from_u32(unit) {
        return Ok(Step::char(char, 6));
    }
    let (high, rest) = (unit, &text[6..]);
    if lead.starts_with(rest) {
        return Err(NoEscape::Incomplete);
    }
    if !rest.starts_with(lead) {
        return Err(NoEscape::NotAnEscape);
    }
    let low = fixed(rest, 2, 4)?;
    let code = (0xd800..0xdc00)
        .contains(&high)
        .then_some(())
        .and_then(|()| low.checked_sub(0xdc00))
        .filter(|low| *low < 0x400)
        .map(|low| 0x10000 + ((high - 0xd800) << 10) + low);
    let char = code.and_then(char::from_u32).ok_or(NoEscape::NotAnEscape)?;
    Ok(Step::char(char, 12))
}

/// Decodes a backslash and up to three octal digits to one byte.
fn octal(text: &[u8]) -> Result<Step, NoEscape> {
    let (code, digits) = digits(text, 1, 8, 3);
    if digits < 3 && text.len() == 1 + digits {
        return Err(NoEscape::Incomplete);
    }
    let code = u8::try_from(code).map_err(|_| NoEscape::NotAnEscape)?;
    Ok(Step::byte(code, 1 + digits))
}

/// Decodes a code point of up to `most` digits, which begin at `from`, and the terminator `end`.
fn number(text: &[u8], from: usize, radix: u32, most: usize, end: u8) -> Result<Step, NoEscape> {
    let (code, digits) = digits(text, from, radix, most);
    let after = from + digits;
    if text.get(after).ok_or(NoEscape::Incomplete)? != &end || digits == 0 {
        return Err(NoEscape::NotAnEscape);
    }
    Ok(Step::char(
        char::from_u32(code).ok_or(NoEscape::NotAnEscape)?,
        after + 1,
    ))
}

fn byte(text: &[u8], from: usize, count: usize) -> Result<u8, NoEscape> {
    u8::try_from(fixed(text, from, count)?).map_err(|_| NoEscape::NotAnEscape)
}

/// Decodes exactly `count` hexadecimal digits, which begin at `from`.
fn fixed(text: &[u8], from: usize, count: usize) -> Result<u32, NoEscape> {
    match digits(text, from, 16, count) {
        (code, found) if found == count => Ok(code),
        (_, found) if text.len() == from + found => Err(NoEscape::Incomplete),
        _ => Err(NoEscape::NotAnEscape),
    }
}

/// Decodes a number of up to `most` digits (callers allow at most eight, which fit into 32 bits);
/// returns the number and how many digits it has.
fn digits(text: &[u8], from: usize, radix: u32, most: usize) -> (u32, usize) {
    text[from..]
        .iter()
        .take(most)
        .map_while(|&byte| char::from(byte).to_digit(radix))
        .fold((0_u32, 0), |(code, count), digit| {
            (code.wrapping_mul(radix).wrapping_add(digit), count + 1)
        })
}
