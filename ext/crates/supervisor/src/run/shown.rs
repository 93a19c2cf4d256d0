//! Output of programs as rows of an answer show it: whole as long as there is room, otherwise
//! beginning and end, with members that say so.

use serde_json::{Map, Value, json};
use wp_codebox_artifacts::text_ends;

/// Room for the output of all rows of one document, bytes as JSON text. An answer with two such
/// documents stays far below the longest frame.
pub(super) const OUTPUT_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of a character in JSON text, as serde_json writes it.
fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

/// Bytes of a text in JSON text, without its quotes.
pub(super) fn json_size(text: &str) -> usize {
    text.chars().map(json_bytes).sum()
}

/// How much each of several texts may take so that all of them fit: short ones leave their room
/// to long ones.
pub(super) fn equal_share(mut sizes: Vec<usize>, room: usize) -> usize {
    sizes.sort_unstable();
    let mut left = room;
    for (at, size) in sizes.iter().enumerate() {
        let share = left / (sizes.len() - at);
        if *size > share {
            return share;
        }
        left -= size;
    }
    room
}

/// Puts a stream into a row, at most so many bytes of it. Answers how many they are. `printed` is
/// the size of the stream where the text is not all of it.
pub(super) fn insert(
    row: &mut Map<String, Value>,
    name: &str,
    (text, printed): (&str, Option<u64>),
    most: usize,
) -> usize {
    let ends = text_ends(text, most, json_bytes);
    if ends.is_some() || printed.is_some() {
        row.insert(format!("{name}Truncated"), json!(true));
        let bytes = printed.unwrap_or(text.len() as u64);
        row.insert(format!("{name}Bytes"), json!(bytes));
    }
    let shown = ends.unwrap_or_else(|| text.to_owned());
    let size = json_size(&shown);
    row.insert(name.to_owned(), Value::String(shown));
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_json() {
        let text: String = ('\0'..='\u{ff}').chain(['…', '😀']).collect();
        let written = serde_json::to_string(&text).unwrap_or_default();
        assert_eq!(json_size(&text), written.len() - 2);
    }

    #[test]
    fn short_texts_leave_their_room_to_long_ones() {
        assert_eq!(equal_share(vec![1, 2, 3], 6), 6);
        assert_eq!(equal_share(vec![100, 2, 100], 12), 5);
        assert_eq!(equal_share(vec![], 6), 6);
    }

    #[test]
    fn what_is_cut_is_said() {
        let mut row = Map::new();
        assert_eq!(insert(&mut row, "stdout", ("short", None), 5), 5);
        assert_eq!(Value::Object(row), json!({"stdout": "short"}));
        let mut row = Map::new();
        insert(&mut row, "stderr", ("0123456789", None), 6);
        assert_eq!(
            Value::Object(row),
            json!({"stderr": "0123\n[… 4 bytes left out …]\n89", "stderrTruncated": true, "stderrBytes": 10})
        );
        let mut row = Map::new();
        insert(&mut row, "stdout", ("ends", Some(99)), 6);
        assert_eq!(
            Value::Object(row),
            json!({"stdout": "ends", "stdoutTruncated": true, "stdoutBytes": 99})
        );
    }
}
