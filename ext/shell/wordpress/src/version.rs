//! Versions of WordPress: syntax, order, and the version that a core states in `version.php`.

use std::cmp::Ordering;
use std::path::Path;
use wp_codebox_recipe::UNKNOWN_VERSION;

/// Maximum length of a version in bytes.
const MAX_LENGTH: usize = 32;

/// A version of WordPress, such as `6.9`, `6.9.1` or `7.0-RC1`.
///
/// The text is also the name of a directory. It contains only letters, digits, dots and hyphens and
/// begins with a digit, so it cannot be a hidden name, an option or a word such as `latest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(String);

impl Version {
    /// Returns the version if the text has the syntax of one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
        let valid = text.len() <= MAX_LENGTH
            && text.starts_with(|first: char| first.is_ascii_digit())
            && text.bytes().all(known);
        valid.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is a release of the given series: 6.9.1 and 6.9.2 belong to 6.9, but
    /// neither 6.9 itself nor 6.9.1-RC1.
    pub(super) fn is_release_of(&self, series: &str) -> bool {
        let rest = self.0.strip_prefix(series);
        rest.and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
    }

    /// Returns the parts of the version by which versions are ordered.
    fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        for piece in self.0.split(['.', '-']) {
            let mut rest = piece;
            while let Some(first) = rest.chars().next() {
                let same = |c: char| c.is_ascii_digit() == first.is_ascii_digit();
                let (part, later) = rest.split_at(rest.find(|c| !same(c)).unwrap_or(rest.len()));
                parts.push(match part.parse() {
                    Ok(number) => (NUMBER, number, ""),
                    Err(_) => (rank(part), 0, part),
                });
                rest = later;
            }
        }
        parts
    }
}

/// Rank, number and word of a part of a version.
type Part<'v> = (u8, u128, &'v str);

/// Part that stands for the end of a version: greater than the words of pre-releases, less than a
/// further number.
const END: Part<'static> = (5, 0, "");
/// Rank of a number.
const NUMBER: u8 = 6;

/// Returns the part at an index, or [`END`] after the last part.
fn part<'v>(parts: &[Part<'v>], at: usize) -> Part<'v> {
    parts.get(at).copied().unwrap_or(END)
}

/// Returns the rank of a word in the order of PHP's `version_compare`, with which WordPress
/// compares its own versions.
fn rank(word: &str) -> u8 {
    match word {
        "dev" => 1,
        "alpha" | "a" => 2,
        "beta" | "b" => 3,
        "RC" | "rc" => 4,
        "pl" | "p" => 7,
        _ => 0,
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (self.parts(), other.parts());
        (0..mine.len().max(theirs.len()))
            .map(|at| part(&mine, at).cmp(&part(&theirs, at)))
            .find(|order| order.is_ne())
            // Different spellings of one version must not be equal: `Eq` compares the texts.
            .unwrap_or_else(|| self.0.cmp(&other.0))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Returns the text that a `version.php` assigns to `$wp_version`. The file is read as text: its
/// PHP is never executed.
pub(super) fn stated(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let value = line.trim_start().strip_prefix("$wp_version")?;
        let value = value.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|c| ['\'', '"'].contains(c))?;
        let (value, rest) = value.get(1..)?.split_once(quote)?;
        rest.trim_start().starts_with(';').then_some(value)
    })
}

/// Returns the version of the WordPress in a directory, or `unknown` if it cannot be read.
#[must_use]
pub fn wordpress_version(wordpress: &Path) -> String {
    let text = std::fs::read_to_string(wordpress.join("wp-includes/version.php"));
    text.unwrap_or_default()
        .lines()
        .find_map(|line| line.trim().strip_prefix("$wp_version")?.split('\'').nth(1))
        .unwrap_or(UNKNOWN_VERSION)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn version_has_only_letters_digits_dots_and_hyphens_begins_with_a_digit_and_is_not_too_long() {
        for good in ["6.9", "7.1.1", "6.9-alpha-60093-src", "6.9-RC1", "10"] {
            assert_eq!(version(good).as_str(), good);
        }
        let long = "1".repeat(MAX_LENGTH + 1);
        assert!(Version::parse(&long[1..]).is_some());
        for bad in [
            "", ".9", "..", "../6.9", "6/9", "6.9 ", "6.9\n", "6.9\0", "-6", "latest", "current",
            "6.9;x", "6.é", &long,
        ] {
            assert_eq!(Version::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn versions_are_ordered_like_php_version_compare_orders_them() {
        let sorted = [
            "6.8.3",
            "6.9-alpha-60093",
            "6.9-beta1",
            "6.9-beta2",
            "6.9-RC1",
            "6.9-RC1-61000",
            "6.9-RC10",
            "6.9",
            "6.9.0",
            "6.9.1-RC1",
            "6.9.1",
            "6.9.10",
            "6.10",
            "7.0",
            "10.0",
        ];
        for (at, low) in sorted.iter().enumerate() {
            for (other, high) in sorted.iter().enumerate() {
                let order = version(low).cmp(&version(high));
                assert_eq!(order, at.cmp(&other), "{low} {high}");
            }
        }
        assert_eq!(version("6.9-x").cmp(&version("6.9x")), Ordering::Less);
    }

    #[test]
    fn series_6_9_contains_release_6_9_2_but_neither_6_9_itself_nor_a_release_candidate() {
        assert!(version("6.9.2").is_release_of("6.9"));
        assert!(version("6.9.2").is_release_of("6"));
        for other in ["6.9", "6.90", "6.9.1-RC1", "6.9-RC1", "16.9.1"] {
            assert!(!version(other).is_release_of("6.9"), "{other}");
        }
    }

    #[test]
    fn version_is_read_from_the_assignment_and_not_from_comments() {
        let real = "<?php\n/**\n * @global string $wp_version\n */\n$wp_version = '7.1.1';\n";
        assert_eq!(stated(real), Some("7.1.1"));
        assert_eq!(stated("\t$wp_version=\"6.9\" ;"), Some("6.9"));
        // An invalid version is returned too: the caller checks the syntax and shows the text.
        assert_eq!(stated("$wp_version = '../x';"), Some("../x"));
        for text in [
            "",
            "<?php\n$wp_db_version = 1;",
            "$wp_version = 'a' . phpversion();",
            "$wp_version = '6.9",
            "$wp_version = getenv('X');",
            "$wp_version .= '6.9';",
        ] {
            assert_eq!(stated(text), None, "{text}");
        }
    }
}
