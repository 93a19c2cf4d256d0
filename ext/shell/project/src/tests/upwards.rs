//! Tests of the search upwards: which directory is the project, and where the search ends.

use super::{PLUGIN, THEME, Tree};
use crate::{Kind, ProjectError};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use wp_codebox_contracts::{CodedError, ErrorCode};

const PACKAGE: &str = r#"{"name": "acme/lib"}"#;

#[test]
fn nearest_plugin_or_theme_wins_then_package_then_work_tree_then_the_start() {
    for (files, start, expected) in [
        // A plugin below a package, then a package below a plugin.
        (
            &[
                ("m/composer.json", PACKAGE),
                ("m/plugins/hello/hello.php", PLUGIN),
            ][..],
            "m/plugins/hello",
            "m/plugins/hello -> plugins/hello",
        ),
        (
            &[
                ("p/p.php", PLUGIN),
                ("p/packages/lib/composer.json", PACKAGE),
            ],
            "p/packages/lib",
            "p -> plugins/p",
        ),
        (
            &[("p/p.php", PLUGIN), ("p/demo/sky/style.css", THEME)],
            "p/demo/sky",
            "p/demo/sky -> themes/sky",
        ),
        (
            &[
                ("a/composer.json", PACKAGE),
                ("a/b/composer.json", r#"{"name": "acme/b"}"#),
            ],
            "a/b",
            "a/b -> /workspace/b",
        ),
        // A composer.json without a name or with invalid JSON does not count.
        (
            &[("a/composer.json", PACKAGE), ("a/b/composer.json", "{}")],
            "a/b",
            "a -> /workspace/lib",
        ),
        (
            &[
                ("a/composer.json", PACKAGE),
                ("a/b/composer.json", "{name}"),
            ],
            "a/b",
            "a -> /workspace/lib",
        ),
        // A package wins over a work tree, also over a nearer one.
        (
            &[("a/composer.json", PACKAGE), ("a/.git/HEAD", "")],
            "a",
            "a -> /workspace/lib",
        ),
        (
            &[("a/composer.json", PACKAGE), ("a/b/.git/HEAD", "")],
            "a/b",
            "a -> /workspace/lib",
        ),
        (
            &[("repo/.git/HEAD", ""), ("repo/src/x/", "")],
            "repo/src/x",
            "repo -> /workspace/repo",
        ),
        // The .git of a worktree or submodule is a file.
        (
            &[("repo/.git/HEAD", ""), ("repo/sub/.git", "gitdir: x")],
            "repo/sub",
            "repo/sub -> /workspace/sub",
        ),
        (
            &[("a/My Notes/", "")],
            "a/My Notes",
            "a/My Notes -> /workspace/My-Notes",
        ),
    ] {
        assert_eq!(Tree::new(files).place(start), expected, "{start} {files:?}");
    }
}

#[test]
fn search_ends_at_the_home_directory() {
    // The home directory has a plugin, a theme, a package and a work tree, which must not be found.
    let tree = Tree::new(&[
        ("stray.php", PLUGIN),
        ("style.css", THEME),
        ("composer.json", PACKAGE),
        (".git/HEAD", ""),
        ("notes/a/", ""),
        ("code/hello/hello.php", PLUGIN),
    ]);
    assert_eq!(tree.place("notes/a"), "notes/a -> /workspace/a");
    assert_eq!(tree.place("code/hello"), "code/hello -> plugins/hello");
    for start in [
        tree.root.clone(),
        tree.root.parent().unwrap().to_owned(),
        "/".into(),
    ] {
        for reach in [super::Reach::Upward, super::Reach::Here] {
            let error = tree.find(&start, reach).unwrap_err();
            assert!(matches!(error, ProjectError::NotAProject { .. }), "{error}");
            assert_eq!(error.body().code, ErrorCode::InputInvalid);
        }
    }
}

#[test]
fn search_ends_at_a_world_writable_directory_with_the_sticky_bit() {
    let tree = Tree::new(&[("shared/stray.php", PLUGIN), ("shared/mine/", "")]);
    let mode = |mode: u32| {
        fs::set_permissions(tree.at("shared"), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o1777);
    assert_eq!(tree.place("shared/mine"), "shared/mine -> /workspace/mine");
    assert_eq!(tree.place("shared"), ErrorCode::InputInvalid.to_string());
    // A world-writable directory without the sticky bit does not end the search: on a file system
    // without permissions every directory is world-writable.
    mode(0o777);
    assert_eq!(tree.place("shared/mine"), "shared -> plugins/shared");
}

#[test]
fn search_visits_at_most_sixty_four_directories() {
    let below = |count: usize| format!("hello{}", "/d".repeat(count));
    let tree = Tree::new(&[
        ("hello/hello.php", PLUGIN),
        (&format!("{}/", below(64)), ""),
    ]);
    assert_eq!(tree.place(&below(63)), "hello -> plugins/hello");
    assert!(tree.place(&below(64)).ends_with(" -> /workspace/d"));
}

#[test]
fn project_around_a_dependency_directory_wins_over_the_dependency() {
    let dependency = [
        ("p/vendor/acme/lib/lib.php", PLUGIN),
        ("p/vendor/acme/lib/composer.json", PACKAGE),
        ("p/vendor/acme/lib/.git/HEAD", ""),
        ("p/node_modules/x/node_modules/y/style.css", THEME),
    ];
    for (outer, expected) in [
        (Some(("p/p.php", PLUGIN)), "p -> plugins/p"),
        (Some(("p/style.css", THEME)), "p -> themes/p"),
        (
            Some(("p/composer.json", r#"{"name": "acme/p"}"#)),
            "p -> /workspace/p",
        ),
        (Some(("p/.git/HEAD", "")), "p -> /workspace/p"),
        // No project contains `vendor`, so the directory may have this name by chance.
        (None, "p/vendor/acme/lib -> plugins/lib"),
    ] {
        let tree = Tree::new(&dependency);
        if let Some((path, content)) = outer {
            tree.write(path, content);
            let inner = tree.place("p/node_modules/x/node_modules/y");
            assert_eq!(inner, expected, "{path}");
            assert_eq!(tree.place("p/vendor"), expected, "{path}");
        }
        assert_eq!(tree.place("p/vendor/acme/lib"), expected, "{outer:?}");
        // If the user names exactly this directory, the project is the dependency.
        let exact = tree.shown(tree.of("p/vendor/acme/lib"));
        assert_eq!(exact, "p/vendor/acme/lib -> plugins/lib");
    }
}

#[test]
fn project_of_an_explicitly_given_directory_is_never_a_directory_above_it() {
    let tree = Tree::new(&[
        ("p/p.php", PLUGIN),
        ("p/src/a.php", "<?php\n"),
        ("p/lib/composer.json", PACKAGE),
    ]);
    for (directory, expected) in [
        ("p", "p -> plugins/p"),
        ("p/src", "p/src -> /workspace/src"),
        ("p/lib", "p/lib -> /workspace/lib"),
    ] {
        assert_eq!(tree.shown(tree.of(directory)), expected);
    }
}

#[test]
fn package_of_a_wordpress_type_without_a_header_says_that_it_is_not_activated() {
    for (package_type, noted) in [
        ("wordpress-plugin", "plugin header"),
        ("wordpress-muplugin", "plugin header"),
        ("wordpress-theme", "theme header"),
        ("library", ""),
    ] {
        let json = format!(r#"{{"name": "acme/my.lib", "type": "{package_type}"}}"#);
        let tree = Tree::new(&[("code/x/composer.json", &json)]);
        let project = tree.around("code/x").unwrap();
        let name = "acme/my.lib".to_owned();
        assert_eq!(project.kind, Kind::Composer { name });
        assert_eq!(project.target, "/workspace/my.lib");
        assert_eq!(project.activation(), None);
        assert!(project.why.contains(noted), "{}", project.why);
        assert_eq!(project.why.contains("activated"), !noted.is_empty());
    }
}
