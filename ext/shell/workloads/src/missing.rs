//! Finds in the output of a failed check which file or package the check misses in the guest.

use std::path::Path;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Paths by which bootstrap files of plugins' tests load the WordPress test suite.
const TEST_SUITE: [&str; 3] = [
    "wordpress-tests-lib",
    "wp-phpunit/includes/functions.php",
    "wordpress-develop/tests/phpunit",
];

/// Returns advice about a missing file or package that the output reports and that the advice would
/// provide. If several are missing, the advice is about `vendor/autoload.php` first, then about the
/// WordPress test suite, then about a coding standard. `root` is the directory of the project.
/// Returns `None` if the output reports none of these as missing.
pub fn missing_hint(printed: &str, root: Option<&Path>) -> Option<&'static str> {
    let missing = |text: &str| {
        let mut lines = printed.lines();
        lines.any(|line| line.contains(text) && says_missing(line))
    };
    let has = |name: &str| root.is_some_and(|root| root.join(name).is_file());
    let installable = has("composer.json") && !has("vendor/autoload.php");
    if missing("vendor/autoload.php") && installable {
        return Some("vendor/autoload.php is missing: run composer install");
    }
    if TEST_SUITE.iter().any(|text| missing(text)) {
        return Some(
            "these tests need the WordPress test suite: the check wordpress-phpunit, or wp-codebox phpunit, loads WordPress and the project's wp-phpunit before the tests",
        );
    }
    let mut lines = printed.lines();
    let standard = |line: &str| {
        line.contains("Referenced sniff") && line.contains("does not exist")
            || line.contains("coding standard is not installed")
    };
    lines.any(standard).then_some(if installable {
        "a coding standard of the configuration is not installed: run composer install"
    } else {
        "a coding standard of the configuration is not installed: add its package to require-dev of composer.json"
    })
}

/// Returns advice about the program of a check that the sandbox does not have.
pub fn program_hint(error: &ErrorBody, program: &str) -> Option<&'static str> {
    if error.code != ErrorCode::AgentProgramMissing {
        return None;
    }
    Some(if program.starts_with("vendor/bin/") {
        "run composer install in the project, or add the program's package to its composer.json"
    } else if program.starts_with("node_modules/.bin/") {
        "run npm install in the project, or add the program's package to its package.json"
    } else {
        "a check can run programs of the project, by their path such as vendor/bin/phpunit, and of this machine's /usr"
    })
}

fn says_missing(line: &str) -> bool {
    [
        "Failed opening",
        "Could not find",
        "No such file",
        "not found",
    ]
    .iter()
    .any(|text| line.contains(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTOLOAD: &str =
        "Failed opening required '/workspace/a/vendor/autoload.php' (include_path='.')";

    fn project(files: &[&str]) -> tempfile::TempDir {
        let temp = tempfile::tempdir().unwrap();
        for file in files {
            let path = temp.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        temp
    }

    #[test]
    fn hint_names_the_missing_package_that_the_output_reports() {
        let root = project(&["composer.json"]);
        for (printed, expected) in [
            (AUTOLOAD, "run composer install"),
            (
                "Failed opening required '/tmp/wordpress-tests-lib/includes/functions.php'",
                "WordPress test suite",
            ),
            (
                "Could not find /tmp/wordpress-tests-lib/includes/functions.php, have you run bin/install-wp-tests.sh ?",
                "WordPress test suite",
            ),
            (
                "Failed opening required '/wp-phpunit/includes/functions.php' (include_path='.')",
                "WordPress test suite",
            ),
            (
                "ERROR: Referenced sniff \"WordPress-Extra\" does not exist",
                "run composer install",
            ),
            (
                "ERROR: the \"WordPress\" coding standard is not installed.",
                "run composer install",
            ),
        ] {
            let found = missing_hint(printed, Some(root.path()));
            assert!(
                found.is_some_and(|hint| hint.contains(expected)),
                "{printed}: {found:?}"
            );
        }
    }

    #[test]
    fn composer_install_is_advised_only_if_it_would_add_the_file() {
        for files in [
            &[][..],
            &["a.php"],
            &["vendor/autoload.php"],
            &["composer.json", "vendor/autoload.php"],
        ] {
            let root = project(files);
            assert_eq!(missing_hint(AUTOLOAD, Some(root.path())), None, "{files:?}");
            let standard = "ERROR: the \"WordPress\" coding standard is not installed.";
            let found = missing_hint(standard, Some(root.path())).unwrap();
            assert!(found.contains("require-dev"), "{files:?}: {found}");
        }
        assert_eq!(missing_hint(AUTOLOAD, None), None);
    }

    #[test]
    fn missing_program_has_a_hint_that_fits_its_path() {
        let error = |code| ErrorBody::new(code, "m");
        for (program, expected) in [
            ("vendor/bin/phpunit", "composer install"),
            ("node_modules/.bin/jest", "npm install"),
            ("phpstan", "/usr"),
        ] {
            let found = program_hint(&error(ErrorCode::AgentProgramMissing), program).unwrap();
            assert!(found.contains(expected), "{program}: {found}");
            let other = error(ErrorCode::RunFailed);
            assert_eq!(program_hint(&other, program), None);
        }
    }

    #[test]
    fn output_that_reports_no_known_file_or_package_as_missing_has_no_hint() {
        let root = project(&["composer.json"]);
        for printed in [
            "",
            "FAILURES!\nTests: 3, Assertions: 4, Failures: 1.",
            "1) loads vendor/autoload.php twice",
            "#0 /workspace/a/vendor/autoload.php(7)\nsrc/a.php not found",
            "WP_TESTS_DIR is /tmp/wordpress-tests-lib",
        ] {
            assert_eq!(missing_hint(printed, Some(root.path())), None, "{printed}");
        }
    }
}
