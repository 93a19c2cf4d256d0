//! Tests of plugins: headers, several headers in a directory, slugs and activation.

use super::{PLUGIN, Tree};
use crate::{Kind, ProjectError};
use rustix::fs::{CWD, Mode, mkfifoat};
use wp_codebox_contracts::{ActivationKind, CodedError, ErrorCode};

#[test]
fn plugin_is_found_from_every_directory_of_it() {
    let tree = Tree::new(&[
        ("code/hello/hello.php", PLUGIN),
        ("code/hello/src/a/b/", ""),
    ]);
    for start in ["code/hello", "code/hello/src", "code/hello/src/a/b"] {
        let project = tree.around(start).unwrap();
        assert_eq!(
            project.kind,
            Kind::Plugin {
                slug: "hello".to_owned(),
                name: "Hello".to_owned(),
                file: "hello.php".to_owned(),
            }
        );
        assert_eq!(project.root, tree.at("code/hello"));
        assert_eq!(project.target, "/wordpress/wp-content/plugins/hello");
        assert_eq!(
            project.activation(),
            Some((ActivationKind::Plugin, "hello/hello.php".to_owned()))
        );
        assert_eq!(project.site, None);
        assert_eq!(
            project.why,
            format!(
                "plugin \"Hello\" 1.2 (hello.php) at {} → /wordpress/wp-content/plugins/hello",
                tree.at("code/hello").display()
            )
        );
    }
}

#[test]
fn plugin_header_counts_only_in_the_first_eight_kib_of_a_php_file_directly_in_the_directory() {
    let late = |bytes: usize| format!("<?php\n{}\n// Plugin Name: Late\n", "/".repeat(bytes));
    for (file, content, is_plugin) in [
        ("main.php", PLUGIN, true),
        ("main.php", &late(8000), true),
        ("main.php", &late(8192), false),
        ("main.php", "<?php // no header\n", false),
        ("main.php", "<?php // Plugin Name:\n", false),
        ("main.PHP", PLUGIN, false),
        ("main.inc", PLUGIN, false),
        ("readme.txt", PLUGIN, false),
        (".main.php", PLUGIN, false),
        ("a\u{1b}b.php", PLUGIN, false),
        ("inc/main.php", PLUGIN, false),
    ] {
        let tree = Tree::new(&[(&format!("code/hello/{file}"), content)]);
        let project = tree.around("code/hello").unwrap();
        let found = matches!(project.kind, Kind::Plugin { .. });
        assert_eq!(found, is_plugin, "{file:?} {}", content.len());
    }
}

#[test]
fn fifo_named_like_the_main_file_does_not_block_the_search() {
    let tree = Tree::new(&[("code/hello/main.php", PLUGIN)]);
    for name in ["hello.php", "style.css", "composer.json", "other.php"] {
        let fifo = tree.at("code/hello").join(name);
        mkfifoat(CWD, &fifo, Mode::from_raw_mode(0o644)).unwrap();
    }
    let project = tree.around("code/hello").unwrap();
    assert!(matches!(project.kind, Kind::Plugin { file, .. } if file == "main.php"));
}

#[test]
fn main_file_named_like_the_directory_is_found_among_more_than_five_hundred_entries() {
    let tree = Tree::new(&[("code/hello/hello.php", PLUGIN)]);
    for number in 0..700 {
        tree.write(&format!("code/hello/{number}.php"), "");
    }
    assert_eq!(tree.place("code/hello"), "code/hello -> plugins/hello");
}

#[test]
fn plugin_file_named_like_the_directory_is_chosen_else_the_only_one_with_a_version() {
    let bare = "<?php // Plugin Name: Bare\n";
    for (directory, files, expected) in [
        (
            "pack",
            &[("pack.php", PLUGIN), ("extra.php", PLUGIN)][..],
            Some("pack.php"),
        ),
        (
            "pack",
            &[("pack.php", bare), ("extra.php", PLUGIN)],
            Some("pack.php"),
        ),
        (
            "pack",
            &[("main.php", PLUGIN), ("extra.php", bare)],
            Some("main.php"),
        ),
        ("pack", &[("main.php", bare)], Some("main.php")),
        // A drop-in is not the main file, unless it is named like the directory.
        (
            "pack",
            &[("main.php", PLUGIN), ("object-cache.php", PLUGIN)],
            Some("main.php"),
        ),
        (
            "sunrise",
            &[("main.php", PLUGIN), ("sunrise.php", PLUGIN)],
            Some("sunrise.php"),
        ),
        (
            "pack/trunk",
            &[("pack.php", PLUGIN), ("extra.php", PLUGIN)],
            Some("pack.php"),
        ),
        ("pack", &[("a.php", PLUGIN), ("b.php", PLUGIN)], None),
        ("pack", &[("a.php", bare), ("b.php", bare)], None),
        (
            "pack",
            &[("a.php", PLUGIN), ("b.php", PLUGIN), ("c.php", bare)],
            None,
        ),
    ] {
        let tree = Tree::new(&[]);
        for (file, content) in files {
            tree.write(&format!("code/{directory}/{file}"), content);
        }
        let file = match tree.around(&format!("code/{directory}")) {
            Ok(project) => match project.kind {
                Kind::Plugin { file, .. } => Some(file),
                kind => panic!("{kind:?}"),
            },
            Err(ProjectError::TwoPlugins { .. }) => None,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(file.as_deref(), expected, "{files:?}");
    }
}

#[test]
fn two_plugins_in_one_directory_are_named_in_the_error() {
    let tree = Tree::new(&[("code/pack/a.php", PLUGIN), ("code/pack/b.php", PLUGIN)]);
    let error = tree.around("code/pack").unwrap_err().body();
    assert_eq!(error.code, ErrorCode::InputInvalid);
    for part in ["two plugins", "a.php", "b.php", "code/pack"] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    assert!(error.hints[0].contains("--mount DIR:"), "{:?}", error.hints);
}

#[test]
fn directory_names_that_are_generic_or_invalid_slugs_are_replaced_and_the_reason_is_stated() {
    let domain = "<?php\n/*\nPlugin Name: Hello\nText Domain: hello\n*/\n";
    for (directory, header, target, reason) in [
        ("my-plugin-main", domain, "my-plugin-main", None),
        ("greet/trunk", domain, "greet", Some("above trunk")),
        ("src", domain, "hello", Some("text domain")),
        ("workspace", domain, "hello", Some("text domain")),
        ("my plugin", domain, "hello", Some("text domain")),
        ("my plugin", PLUGIN, "main-file", Some("name of its file")),
        ("плагин", domain, "hello", Some("text domain")),
        ("src/trunk", PLUGIN, "main-file", Some("name of its file")),
    ] {
        let tree = Tree::new(&[(&format!("code/{directory}/main-file.php"), header)]);
        let project = tree.around(&format!("code/{directory}")).unwrap();
        assert_eq!(
            project.target,
            format!("/wordpress/wp-content/plugins/{target}"),
            "{directory}"
        );
        let expected = format!("{target}/main-file.php");
        assert_eq!(
            project.activation(),
            Some((ActivationKind::Plugin, expected))
        );
        match reason {
            Some(reason) => assert!(project.why.contains(reason), "{}", project.why),
            None => assert!(!project.why.contains(';'), "{}", project.why),
        }
    }
}

#[test]
fn control_characters_of_a_header_are_removed_from_the_message() {
    let tree = Tree::new(&[(
        "code/hello/hello.php",
        "<?php\n// Plugin Name: A\u{1b}[2J\u{202e}B\n// Version: \u{7}1\n",
    )]);
    let project = tree.around("code/hello").unwrap();
    assert!(project.why.starts_with("plugin \"A[2JB\" 1 (hello.php)"));
}

#[test]
fn must_use_plugin_in_a_directory_of_its_own_becomes_an_ordinary_plugin() {
    let tree = Tree::new(&[
        ("site/wp-content/mu-plugins/loader.php", PLUGIN),
        ("site/wp-content/mu-plugins/hello/hello.php", PLUGIN),
    ]);
    let project = tree.around("site/wp-content/mu-plugins/hello").unwrap();
    assert_eq!(project.target, "/wordpress/wp-content/plugins/hello");
    assert!(
        project.why.contains("as an ordinary plugin"),
        "{}",
        project.why
    );
}
