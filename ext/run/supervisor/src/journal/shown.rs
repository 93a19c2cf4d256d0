//! Shortens program output for rows of a JSON document. Output below a limit stays complete; of
//! longer output, beginning and end remain, and further members state the truncation.

use serde_json::{Map, Value, json};
use wp_codebox_artifacts::text_ends;

/// Maximum size of the output in all rows of one document, in bytes of JSON text. A reply with two
/// such documents stays well below the maximum length of a frame.
pub(crate) const OUTPUT_BYTES: usize = 4 * 1024 * 1024;

/// Returns the number of bytes that a character takes in JSON text as serde_json writes it.
fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

/// Returns the number of bytes that a text takes in JSON, without its quotes.
pub(crate) fn json_size(text: &str) -> usize {
    text.chars().map(json_bytes).sum()
}

/// Returns the maximum number of bytes that each text may take so that all together fit into
/// `room`. Bytes that short texts do not need are given to long texts.
pub(crate) fn equal_share(mut sizes: Vec<usize>, room: usize) -> usize {
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

/// Adds the text of an output stream to a row, shortened to this number of bytes, and returns the
/// number of bytes used. If the given text is already truncated, `printed` is the size of the whole
/// stream.
pub(crate) fn insert(
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
    fn json_size_of_a_text_is_the_length_of_its_serialized_form_without_quotes() {
        let text: String = ('\0'..='\u{ff}').chain(['…', '😀']).collect();
        let written = serde_json::to_string(&text).unwrap_or_default();
        assert_eq!(json_size(&text), written.len() - 2);
    }

    /// `equal_share` gets the sizes and the total limit and returns the limit of each text.
    #[test]
    fn bytes_that_short_texts_do_not_need_are_shared_by_the_long_texts() {
        assert_eq!(equal_share(vec![1, 2, 3], 6), 6);
        assert_eq!(equal_share(vec![100, 2, 100], 12), 5);
        assert_eq!(equal_share(vec![], 6), 6);
    }

    #[test]
    fn truncated_output_is_marked_as_truncated_with_its_full_size() {
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
