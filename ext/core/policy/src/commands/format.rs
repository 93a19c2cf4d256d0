//! Formats of the values of command arguments.

use serde_json::Value;
use std::fmt;
use wp_codebox_contracts::GuestPath;

/// Values of a boolean argument that mean true (`YES`) and false (`NO`).
const YES: [&str; 4] = ["1", "true", "yes", "on"];
const NO: [&str; 4] = ["0", "false", "no", "off"];

/// Format of an argument value. Its `Display` text describes it in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Any text.
    Text,
    /// A command line, split by the rules of a shell. Later arguments without an accepted name are
    /// further words of the command line.
    CommandLine,
    /// A JSON document.
    Json,
    /// A JSON object.
    JsonObject,
    /// A JSON list.
    JsonList,
    /// A JSON object, or `@` and the path of a file that contains one.
    JsonObjectOrFile,
    /// A JSON list, or `@` and the path of a file that contains one.
    JsonListOrFile,
    /// True as 1, true, yes or on; false as 0, false, no or off.
    Boolean,
    /// An integer.
    Integer {
        /// Smallest accepted value.
        least: i64,
        /// Largest accepted value.
        most: i64,
    },
    /// A number with or without decimals.
    Number {
        /// Smallest accepted value.
        least: i32,
        /// Largest accepted value.
        most: i32,
    },
    /// A duration: a number with `ms` or `s`.
    Duration,
    /// Width and height in pixels, `1280x720`.
    Viewport,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A comma-separated list of these strings.
    ListOf(&'static [&'static str]),
    /// An absolute path in the guest.
    GuestPath,
    /// A name of letters, digits, `.`, `_` and `-`, at most 64 characters, so that it never needs
    /// escaping.
    Label,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Format::Text => f.write_str("text"),
            Format::CommandLine => f.write_str("command-line"),
            Format::Json => f.write_str("json"),
            Format::JsonObject => f.write_str("json-object"),
            Format::JsonList => f.write_str("json-list"),
            Format::JsonObjectOrFile => f.write_str("json-object or @path"),
            Format::JsonListOrFile => f.write_str("json-list or @path"),
            Format::Boolean => f.write_str("boolean"),
            Format::Integer {
                least,
                most: i64::MAX,
            } => write!(f, "integer {least}.."),
            Format::Integer { least, most } => write!(f, "integer {least}..{most}"),
            Format::Number { least, most } => write!(f, "number {least}..{most}"),
            Format::Duration => f.write_str("duration"),
            Format::Viewport => f.write_str("viewport"),
            Format::OneOf(words) => f.write_str(&words.join("|")),
            Format::ListOf(words) => write!(f, "list of {}", words.join("|")),
            Format::GuestPath => f.write_str("guest-path"),
            Format::Label => f.write_str("label"),
        }
    }
}

impl Format {
    /// Checks that a value has this format. The error is the end of a sentence that begins with
    /// the argument's name.
    ///
    /// # Errors
    ///
    /// The value does not have this format.
    pub fn check(self, value: &str) -> Result<(), String> {
        let good = match self {
            Format::Text | Format::CommandLine => true,
            Format::Json => serde_json::from_str::<Value>(value).is_ok(),
            Format::JsonObject => serde_json::from_str::<Value>(value).is_ok_and(|v| v.is_object()),
            Format::JsonList => serde_json::from_str::<Value>(value).is_ok_and(|v| v.is_array()),
            Format::JsonObjectOrFile => {
                named_file(value).is_some() || Format::JsonObject.check(value).is_ok()
            }
            Format::JsonListOrFile => {
                named_file(value).is_some() || Format::JsonList.check(value).is_ok()
            }
            Format::Boolean => {
                let value = value.trim().to_ascii_lowercase();
                YES.contains(&value.as_str()) || NO.contains(&value.as_str())
            }
            Format::Integer { least, most } => value
                .parse::<i64>()
                .is_ok_and(|n| (least..=most).contains(&n)),
            Format::Number { least, most } => value
                .parse::<f64>()
                .is_ok_and(|n| n.is_finite() && (f64::from(least)..=f64::from(most)).contains(&n)),
            Format::Duration => duration_form(value),
            Format::Viewport => viewport(value),
            Format::OneOf(words) => words.contains(&value),
            Format::ListOf(words) => value.split(',').all(|w| words.contains(&w.trim())),
            Format::GuestPath => GuestPath::new(value).is_ok(),
            Format::Label => label(value),
        };
        if good { Ok(()) } else { Err(self.accepted()) }
    }

    fn accepted(self) -> String {
        match self {
            Format::Text | Format::CommandLine => "must be text".to_owned(),
            Format::Json => "must be JSON".to_owned(),
            Format::JsonObject => "must be a JSON object".to_owned(),
            Format::JsonList => "must be a JSON list".to_owned(),
            Format::JsonObjectOrFile => {
                "must be a JSON object, or @ and the path of a file with one".to_owned()
            }
            Format::JsonListOrFile => {
                "must be a JSON list, or @ and the path of a file with one".to_owned()
            }
            Format::Boolean => {
                format!("must be one of {} or {}", YES.join(", "), NO.join(", "))
            }
            Format::Integer {
                least,
                most: i64::MAX,
            } => format!("must be a whole number of at least {least}"),
            Format::Integer { least, most } => {
                format!("must be a whole number from {least} to {most}")
            }
            Format::Number { least, most } => format!("must be a number from {least} to {most}"),
            Format::Duration => "must be a number with ms or s, like 500ms or 1.5s".to_owned(),
            Format::Viewport => "must be WIDTHxHEIGHT in pixels, like 1280x720".to_owned(),
            Format::OneOf(words) => format!("must be one of {}", words.join(", ")),
            Format::ListOf(words) => {
                format!(
                    "must be one or more of {}, separated by commas",
                    words.join(", ")
                )
            }
            Format::GuestPath => {
                "must be an absolute path in the guest without . and .. segments".to_owned()
            }
            Format::Label => {
                "must be letters, digits, dots, dashes and underscores, at most 64".to_owned()
            }
        }
    }
}

/// Returns the path in a value of the form `@path`, which names a file that contains the value.
#[must_use]
pub fn named_file(value: &str) -> Option<&str> {
    value.strip_prefix('@').filter(|path| !path.is_empty())
}

/// Returns whether a valid boolean argument means true.
#[must_use]
pub fn is_true(value: &str) -> bool {
    YES.contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Returns whether a value is a duration; accepts `^\d+(\.\d+)?(ms|s)$`.
pub(super) fn duration_form(value: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = value.strip_suffix("ms").or_else(|| value.strip_suffix('s'));
    number.is_some_and(|n| match n.split_once('.') {
        Some((whole, part)) => digits(whole) && digits(part),
        None => digits(n),
    })
}

fn label(value: &str) -> bool {
    (1..=64).contains(&value.len())
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn viewport(value: &str) -> bool {
    let side = |text: &str| {
        text.bytes().all(|b| b.is_ascii_digit())
            && text.parse::<u32>().is_ok_and(|n| (1..=16_384).contains(&n))
    };
    value
        .split_once('x')
        .is_some_and(|(width, height)| side(width) && side(height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_argument_format_accepts_valid_and_refuses_invalid_values() {
        let word = Format::OneOf(&["a", "b"]);
        let words = Format::ListOf(&["a", "b"]);
        let count = Format::Integer { least: 1, most: 9 };
        let many = Format::Integer {
            least: 1,
            most: i64::MAX,
        };
        let degree = Format::Number {
            least: -90,
            most: 90,
        };
        for (format, good, bad) in [
            (Format::Text, &["", "x"][..], &[][..]),
            (Format::CommandLine, &["", "a 'b"], &[]),
            (Format::Json, &["1", "{}", "null"], &["", "{", "x"]),
            (Format::JsonObject, &["{}"], &["[]", "1", ""]),
            (Format::JsonList, &["[]"], &["{}", "", "1"]),
            (
                Format::JsonObjectOrFile,
                &["{}", "@a.json"],
                &["[]", "@", "a.json"],
            ),
            (
                Format::JsonListOrFile,
                &["[]", "@/a.json"],
                &["{}", "@", "a.json"],
            ),
            (
                Format::Boolean,
                &["1", "true", "yes", "on", "0", "FALSE", "No", "off"],
                &["", "2", "y"],
            ),
            (count, &["1", "9"], &["0", "10", "1.0", "", "x"]),
            (
                many,
                &["1", "5000000000"],
                &["0", "-1", "9223372036854775808"],
            ),
            (degree, &["-90", "12.5"], &["90.1", "NaN", "inf", ""]),
            (
                Format::Duration,
                &["1s", "500ms", "1.5s", "0.25ms"],
                &["1", "s", "1m", "1.s", ".5s", "-1s", "1e3s", "1 s"],
            ),
            (
                Format::Label,
                &["a", "Shop_1.x-y"],
                &["", "a b", "ä", "a\u{1b}"],
            ),
            (
                Format::Viewport,
                &["1280x720"],
                &["1280", "0x1", "1x", "1x2x3", "+1x2", "99999x1"],
            ),
            (word, &["a"], &["c", "", "a,b"]),
            (words, &["a", "a,b", "b, a"], &["c", "a,c", ""]),
            (Format::GuestPath, &["/tmp/x"], &["x", "/../x", ""]),
        ] {
            for value in good {
                assert_eq!(format.check(value), Ok(()), "{format} {value:?}");
            }
            for value in bad {
                assert!(format.check(value).is_err(), "{format} {value:?}");
            }
        }
        assert!(is_true("yes") && is_true("TRUE") && !is_true("no"));
    }
}
