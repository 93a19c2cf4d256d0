//! Finds in the output of a failed check which file or package the check misses in the guest.

/// Paths by which bootstrap files of plugins' tests load the WordPress test suite.
const TEST_SUITE: [&str; 3] = [
    "wordpress-tests-lib",
    "wp-phpunit/includes/functions.php",
    "wordpress-develop/tests/phpunit",
];

/// Returns advice about a missing file or package that the output reports. If several are missing,
/// the advice is about `vendor/autoload.php` first, then about the WordPress test suite, then about
/// a coding standard. Returns `None` if the output reports none of these as missing.
pub(super) fn hint(printed: &str) -> Option<&'static str> {
    let missing = |text: &str| {
        let mut lines = printed.lines();
        lines.any(|line| line.contains(text) && says_missing(line))
    };
    if missing("vendor/autoload.php") {
        return Some("vendor/autoload.php is missing: run composer install");
    }
    if TEST_SUITE.iter().any(|text| missing(text)) {
        return Some(
            "these tests need the WordPress test suite and its MySQL database, which the sandbox does not have; name a check that runs without them, such as wp-codebox test 'vendor/bin/phpunit tests/unit'",
        );
    }
    let mut lines = printed.lines();
    let standard = |line: &str| {
        line.contains("Referenced sniff") && line.contains("does not exist")
            || line.contains("coding standard is not installed")
    };
    lines.any(standard).then_some(
        "a coding standard of the configuration is not installed: run composer install in the project, or add the standard to its composer.json",
    )
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

    #[test]
    fn hint_names_the_missing_package_that_the_output_reports() {
        for (printed, expected) in [
            (
                "Failed opening required '/workspace/a/vendor/autoload.php' (include_path='.')",
                Some("composer install"),
            ),
            (
                "Failed opening required '/tmp/wordpress-tests-lib/includes/functions.php'",
                Some("WordPress test suite"),
            ),
            (
                "Could not find /tmp/wordpress-tests-lib/includes/functions.php, have you run bin/install-wp-tests.sh ?",
                Some("WordPress test suite"),
            ),
            (
                "Failed opening required '/wp-phpunit/includes/functions.php' (include_path='.')",
                Some("WordPress test suite"),
            ),
            (
                "ERROR: Referenced sniff \"WordPress-Extra\" does not exist",
                Some("coding standard"),
            ),
            (
                "ERROR: the \"WordPress\" coding standard is not installed.",
                Some("coding standard"),
            ),
        ] {
            let found = hint(printed);
            assert!(
                found.is_some_and(|hint| expected.is_some_and(|part| hint.contains(part))),
                "{printed}: {found:?}"
            );
        }
    }

    #[test]
    fn output_that_reports_no_known_file_or_package_as_missing_has_no_hint() {
        for printed in [
            "",
            "FAILURES!\nTests: 3, Assertions: 4, Failures: 1.",
            "1) loads vendor/autoload.php twice",
            "#0 /workspace/a/vendor/autoload.php(7)\nsrc/a.php not found",
            "WP_TESTS_DIR is /tmp/wordpress-tests-lib",
        ] {
            assert_eq!(hint(printed), None, "{printed}");
        }
    }
}
