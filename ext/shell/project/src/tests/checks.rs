//! Tests of the checks that are proposed for a project.

use super::{PLUGIN, Tree};
use crate::checks::propose;
use std::os::unix::fs::symlink;

/// Returns the proposed command lines for a project with these files and programs, on a host with
/// the programs `host` in `/usr/bin`.
fn commands(files: &[(&str, &str)], programs: &[&str], host: &[&str]) -> Vec<String> {
    let tree = Tree::new(&[("p/p.php", PLUGIN), ("usr/bin/", "")]);
    for (path, content) in files {
        tree.write(&format!("p/{path}"), content);
    }
    for path in programs {
        tree.program(&format!("p/{path}"));
    }
    for name in host {
        tree.program(&format!("usr/bin/{name}"));
    }
    let checks = propose(&tree.at("p"), &tree.at("usr/bin"));
    checks.into_iter().map(|check| check.command).collect()
}

const BIN: &[&str] = &[
    "vendor/bin/phpunit",
    "vendor/bin/phpcs",
    "vendor/bin/phpstan",
];

#[test]
fn configuration_file_of_a_tool_proposes_the_tools_program_in_vendor_bin() {
    for (file, expected) in [
        ("phpunit.xml", "vendor/bin/phpunit"),
        ("phpunit.xml.dist", "vendor/bin/phpunit"),
        ("phpunit.dist.xml", "vendor/bin/phpunit"),
        ("phpcs.xml", "vendor/bin/phpcs"),
        ("phpcs.xml.dist", "vendor/bin/phpcs"),
        (".phpcs.xml", "vendor/bin/phpcs"),
        (".phpcs.xml.dist", "vendor/bin/phpcs"),
        ("phpstan.neon", "vendor/bin/phpstan analyse"),
        ("phpstan.neon.dist", "vendor/bin/phpstan analyse"),
    ] {
        // The host has the same programs, which must not be chosen.
        let host = ["phpunit", "phpcs", "phpstan"];
        assert_eq!(commands(&[(file, "")], BIN, &host), [expected], "{file}");
    }
    for file in ["phpunit.xml.bak", "tests/phpunit.xml", "package.json"] {
        let json = r#"{"scripts": {"test": "phpunit"}}"#;
        assert!(commands(&[(file, json)], BIN, &[]).is_empty(), "{file}");
    }
}

#[test]
fn bootstrap_file_that_loads_the_wordpress_test_suite_proposes_phpunit_with_wordpress() {
    let configuration = "<phpunit bootstrap=\"./tests/bootstrap.php\"/>";
    for (bootstrap, expected) in [
        (
            "<?php $dir = getenv( 'WP_TESTS_DIR' );",
            "wordpress-phpunit",
        ),
        (
            "<?php require getenv('WP_PHPUNIT__DIR') . '/includes/bootstrap.php';",
            "wordpress-phpunit",
        ),
        (
            "<?php require __DIR__ . '/../vendor/autoload.php';",
            "vendor/bin/phpunit",
        ),
    ] {
        let files = [
            ("phpunit.xml.dist", configuration),
            ("tests/bootstrap.php", bootstrap),
            ("composer.json", r#"{"scripts": {"test": "phpunit"}}"#),
        ];
        assert_eq!(commands(&files, BIN, &[]), [expected], "{bootstrap}");
    }
    // Without PHPUnit, the check could not run.
    let files = [
        ("phpunit.xml.dist", configuration),
        ("tests/bootstrap.php", "WP_TESTS_DIR"),
    ];
    assert!(commands(&files, &[], &[]).is_empty());
    assert_eq!(commands(&files, &[], &["phpunit"]), ["wordpress-phpunit"]);
    let pest = commands(&files, &["vendor/bin/pest"], &[]);
    assert_eq!(pest, ["vendor/bin/pest"]);
}

#[test]
fn checks_are_proposed_in_a_fixed_order_of_tools_and_each_tool_once() {
    let scripts = r#"{"scripts": {
        "phpstan": "phpstan analyse --level=5",
        "lint": ["@php vendor/bin/parallel-lint src"],
        "phpcs": "phpcs -s .",
        "test": "vendor/bin/phpunit --testsuite unit"
    }}"#;
    let configured = [
        ("phpunit.xml.dist", ""),
        ("phpcs.xml", ""),
        ("phpstan.neon", ""),
        ("composer.json", scripts),
    ];
    let programs: Vec<&str> = BIN
        .iter()
        .copied()
        .chain(["vendor/bin/parallel-lint"])
        .collect();
    assert_eq!(
        commands(&configured, &programs, &[]),
        [
            "vendor/bin/phpunit",
            "php vendor/bin/parallel-lint src",
            "vendor/bin/phpcs -s .",
            "vendor/bin/phpstan analyse --level=5",
        ]
    );
    assert_eq!(
        commands(&configured[3..], &programs, &[]),
        [
            "vendor/bin/phpunit --testsuite unit",
            "php vendor/bin/parallel-lint src",
            "vendor/bin/phpcs -s .",
            "vendor/bin/phpstan analyse --level=5",
        ]
    );
    // `lint` and `phpcs` run the same tool: only `lint` is proposed, which comes first.
    let twice = r#"{"scripts": {"phpcs": "phpcs", "lint": "@php vendor/bin/phpcs src"}}"#;
    assert_eq!(
        commands(&[("composer.json", twice)], BIN, &[]),
        ["php vendor/bin/phpcs src"]
    );
}

#[test]
fn pest_replaces_phpunit_because_it_reads_the_same_configuration() {
    let files = [
        ("phpunit.xml", ""),
        ("composer.json", r#"{"scripts": {"test": "phpunit"}}"#),
    ];
    let programs = ["vendor/bin/phpunit", "vendor/bin/pest"];
    assert_eq!(commands(&files, &programs, &[]), ["vendor/bin/pest"]);
}

/// The guest has the host's `/usr`, but not its `/etc`.
#[test]
fn host_programs_are_proposed_only_without_the_projects_own_and_only_if_the_guest_sees_them() {
    let files = [("phpunit.xml", ""), ("phpcs.xml", ""), ("phpstan.neon", "")];
    let host = ["phpunit", "phpcs", "phpstan"];
    // The host's PHPStan is not proposed: PHPStan needs the project's own version.
    assert_eq!(commands(&files, &[], &host), ["phpunit", "phpcs"]);
    assert_eq!(commands(&files, &[], &["phpcs"]), ["phpcs"]);
    assert!(commands(&files, &[], &[]).is_empty());
    assert!(commands(&[], &[], &host).is_empty());

    let tree = Tree::new(&[
        ("p/phpunit.xml", ""),
        ("usr/bin/plain", ""),
        ("usr/bin/", ""),
    ]);
    tree.program("usr/share/phpunit");
    tree.program("etc/alternatives/phpunit");
    let proposed = |target: &str| {
        let link = tree.at("usr/bin/phpunit");
        let _ = std::fs::remove_file(&link);
        symlink(target, link).unwrap();
        propose(&tree.at("p"), &tree.at("usr/bin")).len()
    };
    assert_eq!(proposed("../share/phpunit"), 1);
    assert_eq!(proposed("../../etc/alternatives/phpunit"), 0);
    assert_eq!(proposed("plain"), 0, "not executable");
    assert_eq!(proposed("missing"), 0);
}

#[test]
fn programs_that_do_not_exist_in_the_guest_are_not_proposed() {
    let tree = Tree::new(&[
        ("p/phpunit.xml", ""),
        ("p/vendor/bin/", ""),
        ("usr/bin/", ""),
    ]);
    tree.program("outside/phpunit");
    tree.program("p/vendor/phpunit/phpunit");
    let link = tree.at("p/vendor/bin/phpunit");
    let proposed = || propose(&tree.at("p"), &tree.at("usr/bin")).len();
    symlink(tree.at("outside/phpunit"), &link).unwrap();
    assert_eq!(proposed(), 0, "the mount does not contain the target");
    std::fs::remove_file(&link).unwrap();
    symlink("../phpunit/phpunit", &link).unwrap();
    assert_eq!(proposed(), 1);
    std::fs::remove_file(&link).unwrap();
    std::fs::write(&link, "").unwrap();
    assert_eq!(proposed(), 0, "not executable");
}

#[test]
fn only_known_scripts_with_a_single_plain_command_are_proposed() {
    for json in [
        r#"{"scripts": {"check": "phpunit"}}"#,
        r#"{"scripts": {"test": "phpunit && phpcs"}}"#,
        r#"{"scripts": {"test": ["phpunit", "phpcs"]}}"#,
        r#"{"scripts": {"test": ["@phpunit"], "phpunit": "phpunit"}}"#,
        r#"{"scripts": {"test": {"a": "phpunit"}}}"#,
        r#"{"scripts": ["phpunit"]}"#,
        r#"{"scripts": {"test": "phpunit"}"#,
        "[]",
    ] {
        assert!(
            commands(&[("composer.json", json)], BIN, &[]).is_empty(),
            "{json}"
        );
    }
    let good = r#"{"scripts": {"test": "phpunit"}}"#;
    assert_eq!(
        commands(&[("composer.json", good)], BIN, &[]),
        ["vendor/bin/phpunit"]
    );
}

#[test]
fn project_without_configuration_has_no_proposed_checks() {
    let tree = Tree::new(&[("code/p/p.php", PLUGIN)]);
    let project = tree.around("code/p").unwrap();
    assert!(crate::proposed_checks(&project).is_empty());
    assert!(crate::NO_CHECKS.contains("phpunit"));
}

#[test]
fn quoted_words_of_a_proposed_check_are_unchanged_after_splitting_its_command_line() {
    let json = r#"{"scripts": {"test": "phpunit --filter 'a b'"}}"#;
    let lines = commands(&[("composer.json", json)], BIN, &[]);
    assert_eq!(
        shell_words::split(&lines[0]).unwrap(),
        ["vendor/bin/phpunit", "--filter", "a b"]
    );
}
