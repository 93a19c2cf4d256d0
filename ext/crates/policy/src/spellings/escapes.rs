//! How encoders escape the characters that they do not leave as they are.
//!
//! Encoders of one family differ in the characters they escape and in the case of their
//! digits (`rawurlencode`, `encodeURI` and `escape` all write `%22`, but only one of them
//! writes `%2F`). Decoding meets all of them; a list of encoded texts would not.

/// A family of encoders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// None; only line breaks are told apart.
    None,
    /// `%2F`, `%u20AC` of JavaScript's `escape`, and `+` for a blank.
    Percent,
    /// `\/`, `\"`, `\n`, `\u00e9`, `\u{e9}`, `\U000000e9`, `\xe9`, `\303`.
    Backslash,
    /// `&quot;`, `&#233;`, `&#xE9;`.
    Html,
    /// `=C3`, and `=` at the end of a line for nothing at all (RFC 2045, 6.7).
    QuotedPrintable,
}

/// Named characters of HTML that its encoders must escape.
const NAMED: &[(&[u8], char)] = &[
    (b"&amp;", '&'),
    (b"&lt;", '<'),
    (b"&gt;", '>'),
    (b"&quot;", '"'),
    (b"&apos;", '\''),
];
/// Most digits of a numeric character reference, leading zeros included.
const HTML_DIGITS: usize = 8;

/// What one character or escape of a text stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    bytes: [u8; 4],
    size: usize,
    /// Bytes of the text that it takes up.
    pub length: usize,
    /// Whether it is an escape.
    pub escape: bool,
}

impl Step {
    /// The bytes it stands for; none at a soft line break.
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

/// Why there is no escape.
enum Not {
    /// The text says otherwise.
    One,
    /// The text ends before one can be told.
    Yet,
}

impl Escapes {
    /// The family whose escapes, or line breaks, begin with this byte.
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

    /// The next character or escape; `None` when the text ends inside it.
    pub(super) fn step(self, text: &[u8]) -> Option<Step> {
        let first = *text.first()?;
        let escape = match (self, first) {
            (Self::Percent, b'%') => percent(text),
            (Self::Percent, b'+') => Ok(Step::byte(b' ', 1)),
            (Self::Backslash, b'\\') => backslash(text),
            (Self::Html, b'&') => html(text),
            (Self::QuotedPrintable, b'=') => quoted_printable(text),
            _ => Err(Not::One),
        };
        match escape {
            Ok(step) => Some(step),
            Err(Not::One) => Some(Step::literal(first)),
            Err(Not::Yet) => None,
        }
    }
}

fn percent(text: &[u8]) -> Result<Step, Not> {
    match text.get(1).ok_or(Not::Yet)? {
        b'u' => utf16(text, b"%u"),
        _ => Ok(Step::byte(byte(text, 1, 2)?, 3)),
    }
}

fn backslash(text: &[u8]) -> Result<Step, Not> {
    let control = match *text.get(1).ok_or(Not::Yet)? {
        b'x' => return Ok(Step::byte(byte(text, 2, 2)?, 4)),
        b'u' => {
            return match text.get(2).ok_or(Not::Yet)? {
                b'{' => number(text, 3, 16, 6, b'}'),
                _ => utf16(text, b"\\u"),
            };
        }
        b'U' => {
            let code = fixed(text, 2, 8)?;
            return Ok(Step::char(char::from_u32(code).ok_or(Not::One)?, 10));
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

fn html(text: &[u8]) -> Result<Step, Not> {
    if text.starts_with(b"&#") {
        return match text.get(2).ok_or(Not::Yet)? {
            b'x' | b'X' => number(text, 3, 16, HTML_DIGITS, b';'),
            _ => number(text, 2, 10, HTML_DIGITS, b';'),
        };
    }
    for (name, char) in NAMED {
        if text.starts_with(name) {
            return Ok(Step::char(*char, name.len()));
        }
        if name.starts_with(text) {
            return Err(Not::Yet);
        }
    }
    Err(Not::One)
}

fn quoted_printable(text: &[u8]) -> Result<Step, Not> {
    match (text.get(1).ok_or(Not::Yet)?, text.get(2)) {
        (b'\n', _) => Ok(Step::nothing(2)),
        (b'\r', None) => Err(Not::Yet),
        (b'\r', Some(b'\n')) => Ok(Step::nothing(3)),
        _ => Ok(Step::byte(byte(text, 1, 2)?, 3)),
    }
}

/// One or two units of UTF-16, each behind the same two bytes.
fn utf16(text: &[u8], lead: &[u8; 2]) -> Result<Step, Not> {
    let unit = fixed(text, 2, 4)?;
    if let Some(char) = char::from_u32(unit) {
        return Ok(Step::char(char, 6));
    }
    let (high, rest) = (unit, &text[6..]);
    if lead.starts_with(rest) {
        return Err(Not::Yet);
    }
    if !rest.starts_with(lead) {
        return Err(Not::One);
    }
    let low = fixed(rest, 2, 4)?;
    let code = (0xd800..0xdc00)
        .contains(&high)
        .then_some(())
        .and_then(|()| low.checked_sub(0xdc00))
        .filter(|low| *low < 0x400)
        .map(|low| 0x10000 + ((high - 0xd800) << 10) + low);
    let char = code.and_then(char::from_u32).ok_or(Not::One)?;
    Ok(Step::char(char, 12))
}

/// One byte as up to three octal digits.
fn octal(text: &[u8]) -> Result<Step, Not> {
    let (code, digits) = digits(text, 1, 8, 3);
    if digits < 3 && text.len() == 1 + digits {
        return Err(Not::Yet);
    }
    let code = u8::try_from(code).map_err(|_| Not::One)?;
    Ok(Step::byte(code, 1 + digits))
}

/// A code point of up to `most` digits and what ends it.
fn number(text: &[u8], from: usize, radix: u32, most: usize, end: u8) -> Result<Step, Not> {
    let (code, digits) = digits(text, from, radix, most);
    let after = from + digits;
    if text.get(after).ok_or(Not::Yet)? != &end || digits == 0 {
        return Err(Not::One);
    }
    Ok(Step::char(char::from_u32(code).ok_or(Not::One)?, after + 1))
}

fn byte(text: &[u8], from: usize, count: usize) -> Result<u8, Not> {
    u8::try_from(fixed(text, from, count)?).map_err(|_| Not::One)
}

/// Exactly so many hexadecimal digits.
fn fixed(text: &[u8], from: usize, count: usize) -> Result<u32, Not> {
    match digits(text, from, 16, count) {
        (code, found) if found == count => Ok(code),
        (_, found) if text.len() == from + found => Err(Not::Yet),
        _ => Err(Not::One),
    }
}

/// The number that up to `most` digits make (nine fit), and how many there are.
fn digits(text: &[u8], from: usize, radix: u32, most: usize) -> (u32, usize) {
    text[from..]
        .iter()
        .take(most)
        .map_while(|&byte| char::from(byte).to_digit(radix))
        .fold((0_u32, 0), |(code, count), digit| {
            (code.wrapping_mul(radix).wrapping_add(digit), count + 1)
        })
}
