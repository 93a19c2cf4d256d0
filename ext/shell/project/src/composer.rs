//! Reads values from composer.json. A value of another type than expected is ignored.

use super::folder::Folder;
use serde_json::{Map, Value};

/// Maximum size of a composer.json that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// Maximum length of a package's name in bytes.
const MAX_NAME: usize = 200;

/// The members of a composer.json.
#[derive(Debug, Default)]
pub(super) struct Package {
    members: Map<String, Value>,
}

impl Package {
    /// Reads the composer.json of a directory; `None` if there is none, or it is too large or not a
    /// JSON object.
    pub(super) fn read(folder: &Folder) -> Option<Self> {
        let bytes = folder.content("composer.json", MAX_BYTES)?;
        let members = serde_json::from_slice(&bytes).ok()?;
        Some(Self { members })
    }

    /// Returns the package's name, e.g. `vendor/package`.
    pub(super) fn name(&self) -> Option<&str> {
        let name = self.text("name")?;
        let (vendor, package) = name.split_once('/')?;
        let valid = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && part
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        (name.len() <= MAX_NAME && valid(vendor) && valid(package)).then_some(name)
    }

    /// Returns the package's type, e.g. `wordpress-plugin`.
    pub(super) fn package_type(&self) -> Option<&str> {
        self.text("type")
    }

    /// Returns the command line of a script; `None` if there is no such script, or if it does not
    /// have exactly one command line.
    pub(super) fn script(&self, name: &str) -> Option<&str> {
        match self.members.get("scripts")?.get(name)? {
            Value::String(line) => Some(line),
            Value::Array(lines) => match &lines[..] {
                [Value::String(line)] => Some(line),
                _ => None,
            },
            _ => None,
        }
    }

    fn text(&self, member: &str) -> Option<&str> {
        self.members.get(member)?.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn package(json: &str) -> Option<Package> {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("composer.json"), json).unwrap();
        Package::read(&Folder::open(temp.path()).unwrap())
    }

    #[test]
    fn only_a_valid_package_name_in_a_json_object_is_returned() {
        let name = |json: &str| package(json).and_then(|p| p.name().map(str::to_owned));
        for (json, expected) in [
            (r#"{"name": "acme/lib"}"#, Some("acme/lib")),
            (r#"{"name": "Acme/my.lib_2"}"#, Some("Acme/my.lib_2")),
            (r#"{"name": "lib"}"#, None),
            (r#"{"name": "a/b/c"}"#, None),
            (r#"{"name": "a/.."}"#, None),
            (r#"{"name": "a/b c"}"#, None),
            (r#"{"name": ["a/b"]}"#, None),
            (r#"{"name": "a/b",}"#, None),
            (r#"["name", "a/b"]"#, None),
            ("{'name': 'a/b'}", None),
            ("", None),
        ] {
            assert_eq!(name(json).as_deref(), expected, "{json}");
        }
        let nested = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(package(&format!(r#"{{"name": "a/b", "x": {nested}}}"#)).is_none());
    }

    #[test]
    fn composer_json_above_one_mebibyte_is_not_read() {
        let json = |length: usize| {
            let start = r#"{"name": "acme/lib", "x": ""#;
            format!("{start}{}\"}}", "x".repeat(length - start.len() - 2))
        };
        let limit = usize::try_from(MAX_BYTES).unwrap();
        assert!(package(&json(limit)).is_some());
        assert!(package(&json(limit + 1)).is_none());
    }

    #[test]
    fn only_scripts_with_one_command_line_are_returned() {
        let json = r#"{"scripts": {
            "one": "phpunit", "list": ["phpunit"], "two": ["a", "b"], "none": [],
            "object": {"a": "b"}, "number": 1, "mixed": [1]
        }}"#;
        let package = package(json).unwrap();
        for name in ["one", "list"] {
            assert_eq!(package.script(name), Some("phpunit"), "{name}");
        }
        for name in ["two", "none", "object", "number", "mixed", "missing"] {
            assert_eq!(package.script(name), None, "{name}");
        }
        assert_eq!(Package::default().script("one"), None);
    }
}
