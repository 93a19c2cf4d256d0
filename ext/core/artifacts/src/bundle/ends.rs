//! Shortening of long texts to their beginning and end with a mark between.

/// Shortens a text whose total cost, the sum of `cost` over its characters, exceeds `most`: returns
/// its beginning (two thirds of `most`) and its end with a mark between them. Returns `None` if the
/// text is not that long. The mark itself is not counted. Cuts are at character boundaries.
#[must_use]
pub fn text_ends(text: &str, most: usize, cost: impl Fn(char) -> usize) -> Option<String> {
    if text.chars().map(&cost).sum::<usize>() <= most {
        return None;
    }
    let tail_room = most / 3;
    let head = fitting(text.chars(), most - tail_room, &cost);
    // The text costs more than the limits for its beginning and its end together, so these two
    // parts do not overlap.
    let tail = text.len() - fitting(text.chars().rev(), tail_room, &cost);
    let mark = left_out((tail - head) as u64);
    Some(format!("{}{mark}{}", &text[..head], &text[tail..]))
}

/// Returns the mark that replaces `bytes` omitted bytes.
#[must_use]
pub fn left_out(bytes: u64) -> String {
    format!("\n[… {bytes} bytes left out …]\n")
}

/// Returns the length in bytes of the leading characters whose total cost is at most `room`.
fn fitting(chars: impl Iterator<Item = char>, room: usize, cost: impl Fn(char) -> usize) -> usize {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += cost(*c);
            used <= room
        })
        .map(char::len_utf8)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_shortened_to_beginning_and_end() {
        assert_eq!(text_ends("abcdef", 6, char::len_utf8), None);
        let ends = |text: &str, most| text_ends(text, most, char::len_utf8).unwrap_or_default();
        assert_eq!(ends("abcdefg", 6), "abcd\n[… 1 bytes left out …]\nfg");
        assert_eq!(ends("abc", 0), "\n[… 3 bytes left out …]\n");
        // Cuts never split a character.
        assert_eq!(ends("aéééééb", 6), "aé\n[… 8 bytes left out …]\nb");
        assert_eq!(
            text_ends("\n\n\nabc", 6, |c| if c == '\n' { 2 } else { 1 }),
            Some("\n\n\n[… 2 bytes left out …]\nbc".to_owned())
        );
    }
}
