//! A generated file of the repository: path and text.

/// A generated file of the repository: its path below the root and its text.
pub struct Generated {
    pub path: &'static str,
    pub text: String,
}

/// Replaces the lines of `text` between the lines `begin` and `end`; `None` unless both lines exist
/// in this order.
pub fn with_block(text: &str, begin: &str, block: &str, end: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{block}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::with_block;

    #[test]
    fn with_block_replaces_only_the_lines_between_the_markers() {
        let text = "a\nBEGIN\nold\nEND\nb";
        let wanted = "a\nBEGIN\nnew\nEND\nb";
        let replace = |text| with_block(text, "BEGIN", "new\n", "END");
        assert_eq!(replace(text).as_deref(), Some(wanted));
        assert_eq!(replace(wanted).as_deref(), Some(wanted));
        assert_eq!(replace("END\nBEGIN"), None);
    }
}
