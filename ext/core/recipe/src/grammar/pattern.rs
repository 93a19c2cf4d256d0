//! Text patterns of the grammar, each with its rule in words and its issue code.

use crate::issue::IssueCode;
use regex::Regex;
use std::sync::LazyLock;

/// Pattern that a text in a recipe must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Any text.
    Any,
    /// Name: letters, digits, `_ . -`; begins with a letter or digit.
    Name,
    /// WordPress slug: letters, digits, `_ -`; begins with a letter or digit.
    Slug,
    /// Id: letters, digits, `. _ -`; begins with any of them.
    Handle,
    /// Environment variable: capitals, digits, `_`; does not begin with a digit.
    EnvName,
    /// Absolute path: begins with `/`.
    Absolute,
    /// SHA-256: 64 hex digits.
    Sha256,
    /// Git commit: 40 to 64 hex digits.
    Revision,
    /// PHP version like `8.3`.
    PhpVersion,
    /// PHP memory limit like `256M`.
    Memory,
    /// Database table: letters, digits, `_ $`.
    Table,
    /// Type name: letters, digits, `_ . : / -`; begins with a letter or digit.
    Type,
    /// Composer package: `vendor/package` in small letters.
    Package,
    /// Repository name: small letters, digits and `-`.
    Repository,
    /// Git repository: `https://…` or `git@host:path.git`.
    RepositoryUrl,
    /// JSON pointer (RFC 6901).
    Pointer,
}

/// The patterns as regular expressions. The JSON Schema contains the same ones for editors.
const EXPRESSIONS: &[(Pattern, &str)] = &[
    (Pattern::Name, "^[A-Za-z0-9][A-Za-z0-9_.-]*$"),
    (Pattern::Slug, "^[A-Za-z0-9][A-Za-z0-9_-]*$"),
    (Pattern::Handle, "^[A-Za-z0-9._-]+$"),
    (Pattern::EnvName, "^[A-Z_][A-Z0-9_]*$"),
    (Pattern::Absolute, "^/"),
    (Pattern::Sha256, "^[a-fA-F0-9]{64}$"),
    (Pattern::Revision, "^[a-fA-F0-9]{40,64}$"),
    (Pattern::PhpVersion, "^[0-9]+\\.[0-9]+$"),
    (Pattern::Memory, "^[0-9]+[KMG]?$"),
    (Pattern::Table, "^[A-Za-z0-9_$]+$"),
    (Pattern::Type, "^[A-Za-z0-9][A-Za-z0-9_.:/-]*$"),
    (Pattern::Package, "^[a-z0-9_.-]+/[a-z0-9_.-]+$"),
    (Pattern::Repository, "^[a-z0-9-]+$"),
    (
        Pattern::RepositoryUrl,
        "^(https://|git@[A-Za-z0-9._-]+:[A-Za-z0-9._/-]+\\.git$)",
    ),
    (Pattern::Pointer, "^(/[^/]*)*$"),
];

static COMPILED: LazyLock<Vec<(Pattern, Regex)>> = LazyLock::new(|| {
    let compiled =
        |(pattern, expression): &(Pattern, &str)| Some((*pattern, Regex::new(expression).ok()?));
    EXPRESSIONS.iter().filter_map(compiled).collect()
});

impl Pattern {
    /// Returns whether a text matches the pattern.
    pub(crate) fn fits(self, text: &str) -> bool {
        match self {
            Pattern::Any => true,
            // The parser also checks length, escapes and names that a pointer may not contain.
            Pattern::Pointer => crate::continuation::Pointer::parse(text).is_ok(),
            _ => COMPILED
                .iter()
                .any(|(pattern, regex)| *pattern == self && regex.is_match(text)),
        }
    }

    /// Returns the regular expression; `None` when any text is permitted.
    pub(crate) fn expression(self) -> Option<&'static str> {
        let row = EXPRESSIONS.iter().find(|(pattern, _)| *pattern == self)?;
        Some(row.1)
    }

    /// Returns a description of the pattern for error messages.
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Pattern::Any => "text",
            Pattern::Name => "letters, digits, `_`, `.` and `-`, beginning with a letter or digit",
            Pattern::Slug => "letters, digits, `_` and `-`, beginning with a letter or digit",
            Pattern::Handle => "letters, digits, `.`, `_` and `-`",
            Pattern::EnvName => "upper-case letters, digits and `_`, not beginning with a digit",
            Pattern::Absolute => "an absolute path in the guest, beginning with `/`",
            Pattern::Sha256 => "64 hex digits",
            Pattern::Revision => "40 to 64 hex digits",
            Pattern::PhpVersion => "a version such as `8.3`",
            Pattern::Memory => "digits with K, M or G, such as `256M`",
            Pattern::Table => "letters, digits, `_` and `$`",
            Pattern::Type => {
                "letters, digits, `_`, `.`, `:`, `/` and `-`, beginning with a letter or digit"
            }
            Pattern::Package => "a Composer name such as `vendor/package`",
            Pattern::Repository => "lower-case letters, digits and `-`",
            Pattern::RepositoryUrl => "`https://…` or `git@host:path.git`",
            Pattern::Pointer => {
                "a JSON pointer (RFC 6901) of at most 1,024 bytes, without `__proto__`, `constructor` and `prototype`"
            }
        }
    }

    /// Returns the issue code of a text that does not match.
    pub(crate) fn code(self) -> IssueCode {
        match self {
            Pattern::Slug => IssueCode::InvalidSlug,
            Pattern::EnvName => IssueCode::InvalidSecretEnv,
            Pattern::Absolute => IssueCode::InvalidSandboxPath,
            Pattern::Sha256 => IssueCode::InvalidSourceSha256,
            Pattern::Memory => IssueCode::InvalidPluginRuntimeMemoryLimit,
            Pattern::Table => IssueCode::InvalidFixtureResetTable,
            Pattern::Pointer => IssueCode::InvalidContinuation,
            Pattern::Any
            | Pattern::Name
            | Pattern::Handle
            | Pattern::Revision
            | Pattern::PhpVersion
            | Pattern::Type
            | Pattern::Package
            | Pattern::Repository
            | Pattern::RepositoryUrl => IssueCode::InvalidRecipe,
        }
    }

    /// Returns a text that matches.
    #[cfg(test)]
    pub(crate) fn example(self) -> &'static str {
        match self {
            Pattern::Any | Pattern::Name | Pattern::Slug | Pattern::Handle => "demo",
            Pattern::EnvName => "DEMO_KEY",
            Pattern::Absolute => "/workspace/demo",
            Pattern::Sha256 | Pattern::Revision => {
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
            }
            Pattern::PhpVersion => "8.3",
            Pattern::Memory => "256M",
            Pattern::Table => "wp_posts",
            Pattern::Type => "demo/v1",
            Pattern::Package => "demo/demo",
            Pattern::Repository => "demo-1",
            Pattern::RepositoryUrl => "git@example.org:demo/demo.git",
            Pattern::Pointer => "/a/0",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern::*;

    #[test]
    fn each_recipe_text_pattern_matches_its_example_and_no_invalid_text() {
        for pattern in [
            Any,
            Name,
            Slug,
            Handle,
            EnvName,
            Absolute,
            Sha256,
            Revision,
            PhpVersion,
            Memory,
            Table,
            Type,
            Package,
            Repository,
            RepositoryUrl,
            Pointer,
        ] {
            assert!(pattern.fits(pattern.example()), "{pattern:?}");
        }
        for (pattern, bad) in [
            (Name, ""),
            (Name, "-a"),
            (Name, "a b"),
            (Slug, "a.b"),
            (Slug, "../a"),
            (Handle, "a/b"),
            (EnvName, "1A"),
            (EnvName, "a"),
            (EnvName, ""),
            (Absolute, "a"),
            (Sha256, "ab"),
            (PhpVersion, "8"),
            (PhpVersion, "8.3.1"),
            (Memory, "M"),
            (Memory, "1T"),
            (Table, "a-b"),
            (Type, "/a"),
            (Package, "a"),
            (Package, "A/b"),
            (Repository, "A"),
            (RepositoryUrl, "http://a"),
            (RepositoryUrl, "git@a:b"),
            (Pointer, "a"),
            (Pointer, "/~2"),
            (Pointer, "/a/__proto__"),
        ] {
            assert!(!pattern.fits(bad), "{pattern:?} {bad}");
        }
    }
}
