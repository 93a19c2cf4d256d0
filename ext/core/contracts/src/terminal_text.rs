//! Terminal output without control characters and invisible characters.

/// Ranges (first, last) of characters that can control a terminal or disguise text: control
/// characters except tab and line feed, format characters, line and paragraph separators, and
/// Unicode's Default_Ignorable_Code_Point. `wp-cli/Console.php` has the same list; a test
/// compares them.
const HIDDEN: [(char, char); 20] = [
    ('\u{0}', '\u{8}'),
    ('\u{b}', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Returns whether a character can control a terminal or is invisible.
pub fn is_hidden(c: char) -> bool {
    // Most text is printable ASCII.
    !(' '..='~').contains(&c)
        && HIDDEN
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&c))
}

/// Converts bytes to text for a terminal, without [hidden](is_hidden) characters.
pub fn plain(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .filter(|c| !is_hidden(*c))
        .collect()
}

/// Converts a text to a paragraph that begins at most one line of its own: hidden characters are
/// removed and every further line is indented, so that a text of a guest cannot imitate a message.
pub fn plain_paragraph(text: &str) -> String {
    plain(text.trim_end_matches('\n').as_bytes()).replace('\n', "\n  ")
}

/// Converts a text to one line for a terminal, without hidden characters; line breaks and tabs
/// become spaces.
pub fn plain_line(text: &str) -> String {
    plain(text.as_bytes()).replace(['\n', '\t'], " ")
}

/// Escapes [hidden](is_hidden) characters of a JSON text. In JSON they can occur only inside
/// strings.
pub fn plain_json(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        if is_hidden(c) {
            // UTF-16 encodes a character above U+FFFF as two surrogates.
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn control_characters_are_removed_from_terminal_text_and_escaped_in_json() {
        let hostile = "\u{1b}]0;x\u{7}a\u{1b}[2J\u{202e}b\r\n\tc\u{9b}31m".as_bytes();
        assert_eq!(plain(hostile), "]0;xa[2Jb\n\tc31m");
        assert_eq!(plain(b"\xff"), "\u{fffd}");
        let said = json!({"a\u{9b}": String::from_utf8_lossy(hostile), "b": "é\u{7f}"});
        for text in [said.to_string(), format!("{said:#}")] {
            let shown = plain_json(&text);
            assert!(!shown.chars().any(is_hidden), "{shown}");
            assert!(shown.contains('é'));
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), said);
        }
    }

    /// One character of each kind: direction marks and isolates, joiners, fillers, tags.
    const INVISIBLE: &str = "\u{ad}\u{61c}\u{200b}\u{200d}\u{200f}\u{2028}\u{2060}\u{2066}\u{3164}\u{fe0f}\u{feff}\u{1d173}\u{e0041}";

    #[test]
    fn invisible_characters_are_removed_from_text_and_escaped_in_json() {
        assert_eq!(plain(format!("a{INVISIBLE}b ☃𝄞").as_bytes()), "ab ☃𝄞");
        assert_eq!(plain_line(&format!("a\nb\t{INVISIBLE}c")), "a b c");
        let said = json!({ INVISIBLE: format!("𝄞{INVISIBLE}") });
        let shown = plain_json(&said.to_string());
        assert!(shown.contains("\\udb40\\udc41") && shown.contains('𝄞'));
        assert!(!shown.chars().any(is_hidden), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), said);
    }
}
