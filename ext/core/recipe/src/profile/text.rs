//! Checks the syntax of profile ids and versions.

/// Returns whether a text has 1 to 64 of the characters `[a-z0-9._-]`, begins with `[a-z0-9]` and
/// does not contain `..`; such an id is also a valid file name.
pub(super) fn is_id(text: &str) -> bool {
    let rest =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
    let first = text.bytes().next();
    first.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        && text.len() <= 64
        && text.bytes().all(rest)
        && !text.contains("..")
}

/// Returns whether a text is a semantic version.
pub(super) fn is_version(text: &str) -> bool {
    let (text, build) = text
        .split_once('+')
        .map_or((text, None), |(v, b)| (v, Some(b)));
    let (core, before) = text
        .split_once('-')
        .map_or((text, None), |(c, p)| (c, Some(p)));
    let number = |part: &str| {
        !part.is_empty()
            && part.len() <= 9
            && part.bytes().all(|b| b.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let words = |list: Option<&str>| {
        list.is_none_or(|list| {
            list.len() <= 64
                && list.split('.').all(|word| {
                    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
                })
        })
    };
    core.split('.').count() == 3 && core.split('.').all(number) && words(before) && words(build)
}
