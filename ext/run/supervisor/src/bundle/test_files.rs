//! Finds changed files that influence the result of a check: tests, and files that checks run or
//! read.
//!
//! An agent can make a check pass by changing the check. A person must judge such a change, so the
//! bundle lists the changed files that could have this effect.

use wp_codebox_artifacts::{Change, MountChanges, Node};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::GuestMount;

/// Maximum number of file names in the note for the reviewer.
const LISTED: usize = 10;
/// Names of directories that contain tests.
const DIRECTORIES: [&str; 5] = ["tests", "test", "__tests__", "spec", "specs"];
/// Beginnings of the names of files that configure checks.
const CONFIGURATION: [&str; 12] = [
    "phpunit.xml",
    ".phpunit.",
    "phpcs.xml",
    ".phpcs.xml",
    "phpstan.neon",
    ".php-cs-fixer",
    "psalm.xml",
    "jest.config.",
    "playwright.config.",
    "vitest.config.",
    ".eslintrc",
    "eslint.config.",
];
/// Files with scripts that checks may run.
const SCRIPTS: [&str; 3] = ["composer.json", "package.json", "makefile"];

/// Returns the guest paths of changed files that can influence the result of a check.
pub(crate) fn changed(
    mounts: &[GuestMount],
    changes: &[Option<MountChanges>],
    checks: &[String],
    redactor: &Redactor,
) -> Vec<String> {
    let words: Vec<String> = checks
        .iter()
        .flat_map(|line| shell_words::split(line).unwrap_or_default())
        .collect();
    let mut found = Vec::new();
    for (mount, changes) in mounts.iter().zip(changes) {
        let base = mount.target.as_str();
        for entry in changes.iter().flat_map(|changes| &changes.entries) {
            if is_directory(&entry.change) {
                continue;
            }
            let relative = String::from_utf8_lossy(&entry.path);
            let absolute = format!("{base}/{relative}");
            if decides(&relative) || words.iter().any(|word| names(word, &relative, &absolute)) {
                found.push(redactor.redact(&absolute).into_owned());
            }
        }
    }
    found
}

/// Returns a sentence that tells the reviewer that the files `paths`, which can influence the
/// result of a check, were changed; `None` if `paths` is empty.
pub(crate) fn note(paths: &[String]) -> Option<String> {
    if paths.is_empty() {
        return None;
    }
    let more = match paths.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let listed: Vec<&str> = paths.iter().take(LISTED).map(String::as_str).collect();
    Some(format!(
        "tests or files that checks run were changed, too: review {}{more} before you trust the checks",
        listed.join(", ")
    ))
}

fn is_directory(change: &Change) -> bool {
    let mut nodes = change.before().into_iter().chain(change.after());
    nodes.all(|node| matches!(node, Node::Directory))
}

/// Returns whether a path is that of a test, of a file that configures checks, or of a file with
/// scripts that checks may run.
fn decides(relative: &str) -> bool {
    let lower = relative.to_ascii_lowercase();
    let (directories, name) = lower.rsplit_once('/').unwrap_or(("", lower.as_str()));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let original = relative.rsplit('/').next().unwrap_or(relative);
    directories.split('/').any(|d| DIRECTORIES.contains(&d))
        || CONFIGURATION.iter().any(|begin| name.starts_with(begin))
        || SCRIPTS.contains(&name)
        || [".test.", ".spec.", "_test."]
            .iter()
            .any(|part| name.contains(part))
        || (name.starts_with("test_") && stem.len() > 5)
        || (name.starts_with("test-") && stem.len() > 5)
        || original.ends_with("Test.php")
        || original.ends_with("Tests.php")
        || original.ends_with("TestCase.php")
}

/// Returns whether a word of a check's command line names the file.
fn names(word: &str, relative: &str, absolute: &str) -> bool {
    let value = match word.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => value,
        _ => word,
    };
    let value = value.strip_prefix("./").unwrap_or(value);
    !value.is_empty() && (value == relative || value == absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_and_test_configuration_are_recognised_by_path() {
        for path in [
            "tests/run.php",
            "src/Test/a.php",
            "SettingsTest.php",
            "a/b_test.go",
            "a/b.spec.ts",
            "js/a.test.js",
            "phpunit.xml.dist",
            "lib/phpcs.xml",
            "composer.json",
            "package.json",
            "tests/fixtures/data.json",
            "test_settings.py",
            "inc/class-test-helper/test-save.php",
        ] {
            assert!(decides(path), "{path}");
        }
        for path in [
            "src/Settings.php",
            "latest/a.php",
            "src/Contest.php",
            "src/attest.php",
            "readme.txt",
            "src/testimonials.php",
            "inc/protest.test",
            "composer.lock",
        ] {
            assert!(!decides(path), "{path}");
        }
    }

    #[test]
    fn check_command_names_a_file_only_by_its_relative_or_absolute_path() {
        for word in [
            "bin/check.php",
            "./bin/check.php",
            "/w/p/bin/check.php",
            "--configuration=bin/check.php",
        ] {
            assert!(names(word, "bin/check.php", "/w/p/bin/check.php"), "{word}");
        }
        for word in ["", "bin", "check.php", "a=bin/check.php", "src"] {
            assert!(
                !names(word, "bin/check.php", "/w/p/bin/check.php"),
                "{word}"
            );
        }
    }

    #[test]
    fn note_about_changed_test_files_lists_at_most_ten() {
        assert_eq!(note(&[]), None);
        let many: Vec<String> = (0..30).map(|n| format!("/w/tests/{n}.php")).collect();
        let note = note(&many).unwrap();
        assert!(note.contains("/w/tests/9.php and 20 more"), "{note}");
    }
}
