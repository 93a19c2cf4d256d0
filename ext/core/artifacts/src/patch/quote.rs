//! Quoting of file names as git prints them, similar to C string literals.
//!
//! A name is quoted if it contains a control character, `"`, `\` or a byte above 0x7e. Such
//! bytes are written as escapes, so a quoted name is ASCII.

use wp_codebox_contracts::terminal_text::is_hidden;

/// Returns whether git would quote this name.
#[must_use]
pub fn needs_quoting(name: &[u8]) -> bool {
    name.iter()
        .any(|b| !matches!(b, 0x20..=0x7e) || matches!(b, b'"' | b'\\'))
}

/// Returns the name as git prints it, quoted only if necessary.
#[must_use]
pub fn quote_name(name: &[u8]) -> String {
    if needs_quoting(name) {
        quoted(name)
    } else {
        String::from_utf8_lossy(name).into_owned()
    }
}

/// Returns a name for one line of a list. The name is quoted like in git if it contains a hidden
/// character, a quote or a backslash, so that each row is one name and different names never look
/// alike. Visible characters beyond ASCII are not escaped. [`unquote_name`] parses the result.
fn listed_name(name: &str, is_hidden: impl Fn(char) -> bool) -> String {
    let escaped = |c: char| matches!(c, '"' | '\\' | '\n' | '\t') || is_hidden(c);
    if !name.chars().any(&escaped) {
        return name.to_owned();
    }
    let mut out = String::from("\"");
    for c in name.chars() {
        if escaped(c) {
            let mut bytes = [0; 4];
            escape(&mut out, c.encode_utf8(&mut bytes).as_bytes());
        } else {
            out.push(c);
        }
    }
    out.push('"');
    out
}

/// Formats a file name for one line, also in pipes: quoted like git does if it contains invisible
/// characters.
#[must_use]
pub fn terminal_name(path: &str) -> String {
    // A guest path that is not UTF-8 is already quoted as a whole.
    let quoted = path.starts_with("\"/")
        && unquote_name(path.as_bytes()).is_some_and(|(_, taken)| taken == path.len());
    if quoted {
        return path.to_owned();
    }
    listed_name(path, is_hidden)
}

/// Maximum length in bytes up to which an error message shows a file name.
pub(crate) const SHOWN_BYTES: usize = 512;

/// Returns a name for an error message: quoted like in git, and shortened if it is long.
#[must_use]
pub(crate) fn shown_name(name: &[u8]) -> String {
    match name.get(..SHOWN_BYTES) {
        Some(start) if name.len() > SHOWN_BYTES => quote_name(&[start, b"..."].concat()),
        _ => quote_name(name),
    }
}

/// Returns the name in quotes, even if quotes are unnecessary.
pub(super) fn quoted(name: &[u8]) -> String {
    let mut out = String::from("\"");
    escape(&mut out, name);
    out.push('"');
    out
}

fn escape(out: &mut String, name: &[u8]) {
    for &byte in name {
        match byte {
            0x07 => out.push_str("\\a"),
            0x08 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0x0b => out.push_str("\\v"),
            0x0c => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
}

/// Parses a quoted name at the start of `text`. Returns the name and the number of bytes
/// consumed.
#[must_use]
pub fn unquote_name(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut rest = text.strip_prefix(b"\"")?.iter().enumerate();
    let mut name = Vec::new();
    while let Some((at, &byte)) = rest.next() {
        match byte {
            b'"' => return Some((name, at + 2)),
            b'\\' => {
                let (_, &kind) = rest.next()?;
                name.push(match kind {
                    b'a' => 0x07,
                    b'b' => 0x08,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    b'r' => b'\r',
                    b'"' | b'\\' => kind,
                    b'0'..=b'3' => {
                        let mut value = kind - b'0';
                        for _ in 0..2 {
                            let (_, &digit) = rest.next()?;
                            if !matches!(digit, b'0'..=b'7') {
                                return None;
                            }
                            value = (value << 3) | (digit - b'0');
                        }
                        value
                    }
                    _ => return None,
                });
            }
            b'\n' => return None,
            _ => name.push(byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_file_name_in_a_list_is_one_line_and_can_be_unquoted() {
        let hidden = |c: char| c.is_control() || c == '\u{202e}';
        for (name, listed) in [
            ("a b é 価.txt", "a b é 価.txt"),
            ("a\nb", "\"a\\nb\""),
            ("é\u{1b}[2J", "\"é\\033[2J\""),
            ("a\u{202e}b", "\"a\\342\\200\\256b\""),
            ("\"", "\"\\\"\""),
            ("a\\n", "\"a\\\\n\""),
        ] {
            assert_eq!(listed_name(name, hidden), listed);
            if listed != name {
                let (read, taken) = unquote_name(listed.as_bytes()).unwrap();
                assert_eq!((read.as_slice(), taken), (name.as_bytes(), listed.len()));
            }
        }
    }

    #[test]
    fn quoted_file_names_are_unquoted_to_the_same_bytes() {
        assert_eq!(quote_name(b"a b.txt"), "a b.txt");
        assert_eq!(quote_name("é".as_bytes()), "\"\\303\\251\"");
        assert_eq!(quote_name(b"a\"\\\n\x01\xff"), "\"a\\\"\\\\\\n\\001\\377\"");
        for byte in 0..=255_u8 {
            let name = [b'x', byte, b'y'];
            let quoted = quote_name(&name);
            if needs_quoting(&name) {
                let tail = format!("{quoted} rest");
                assert_eq!(
                    unquote_name(tail.as_bytes()),
                    Some((name.to_vec(), quoted.len()))
                );
            } else {
                assert_eq!(quoted.as_bytes(), name);
            }
        }
        for bad in ["x", "\"x", "\"\\x\"", "\"\\9\"", "\"a\nb\""] {
            assert_eq!(unquote_name(bad.as_bytes()), None, "{bad}");
        }
    }
}
