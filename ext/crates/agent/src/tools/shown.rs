//! Texts cut to size for the model: head and tail, and how much is left out between.

/// A text of at most about `most` bytes. What is left out is said; the end, where failures
/// are reported, gets the larger share.
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

/// The nearest character border at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The nearest character border at or after `at`.
fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// A page of a text: bytes from `offset` on, and where the next page begins.
pub(super) fn page(text: &str, offset: usize, most: usize) -> (&str, Option<usize>) {
    let start = ceil(text, offset.min(text.len()));
    let end = floor(text, (start + most).min(text.len()));
    let next = (end < text.len()).then_some(end);
    (&text[start..end], next)
}

/// A name as one word: as it is, or in JSON when it holds control characters.
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
    fn long_texts_keep_head_and_tail() {
        assert_eq!(bounded("abc", 3), "abc");
        let long = "é".repeat(1000) + "end";
        let cut = bounded(&long, 100);
        assert!(cut.len() < 150, "{}", cut.len());
        assert!(cut.starts_with('é') && cut.ends_with("end"));
        assert!(cut.contains("bytes left out"));
    }

    #[test]
    fn pages_follow_each_other() {
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
    fn names_are_one_word() {
        assert_eq!(name("a b"), "a b");
        assert_eq!(name("a\nb"), "\"a\\nb\"");
    }
}
