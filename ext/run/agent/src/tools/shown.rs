//! Shortens texts for the model: keeps head and tail and states how much is omitted.

/// Shortens a text to about `most` bytes, with a note on the omitted part. Two thirds of the bytes
/// that it keeps are from the end of the text, because programs print failures there.
pub(super) fn bounded(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let head = floor(text, most / 3);
    let tail = ceil(text, text.len() - (most - most / 3).min(text.len()));
    format!(
        "{}\n… {} bytes left out …\n{}",
        &text[..head],
        tail - head,
        &text[tail..]
    )
}

/// Returns the last character boundary at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns the first character boundary at or after `at`.
fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// Returns one page of a text: at most `most` bytes from byte `offset`. Returns also the offset of
/// the next page; `None` for the last page.
pub(super) fn page(text: &str, offset: usize, most: usize) -> (&str, Option<usize>) {
    let start = ceil(text, offset.min(text.len()));
    let end = floor(text, (start + most).min(text.len()));
    let next = (end < text.len()).then_some(end);
    (&text[start..end], next)
}

/// Returns a file name in one line: unchanged, or as JSON when it contains control characters.
pub(super) fn name(name: &str) -> String {
    if name.chars().any(char::is_control) {
        serde_json::Value::from(name).to_string()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_text_keeps_head_and_tail() {
        assert_eq!(bounded("abc", 3), "abc");
        let long = "é".repeat(1000) + "end";
        let cut = bounded(&long, 100);
        assert!(cut.len() < 150, "{}", cut.len());
        assert!(cut.starts_with('é') && cut.ends_with("end"));
        assert!(cut.contains("bytes left out"));
    }

    #[test]
    fn consecutive_pages_of_a_long_text_cover_it_completely() {
        let text = "aé".repeat(50);
        let (mut read, mut at) = (String::new(), Some(0));
        while let Some(offset) = at {
            let (piece, next) = page(&text, offset, 7);
            read.push_str(piece);
            at = next;
        }
        assert_eq!(read, text);
        assert_eq!(page(&text, 10_000, 7), ("", None));
    }

    #[test]
    fn file_name_with_control_characters_is_shown_as_json() {
        assert_eq!(name("a b"), "a b");
        assert_eq!(name("a\nb"), "\"a\\nb\"");
    }
}
