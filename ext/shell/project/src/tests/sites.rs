//! Tests of WordPress sites around a project, and of directories that belong to a whole site.

use super::{PLUGIN, THEME, Tree, tree_with_cores};
use crate::ProjectError;
use wp_codebox_contracts::CodedError;
use wp_codebox_contracts::ErrorCode;

#[test]
fn core_around_a_project_is_found_in_every_known_layout() {
    for (core, project) in [
        ("site", "site/wp-content/plugins/hello"),
        ("site/web/wp", "site/web/app/plugins/hello"),
        ("site/wp", "site/content/plugins/hello"),
        ("site/wordpress", "site/hello"),
        ("site/public", "site/packages/hello"),
        ("site/htdocs", "site/hello"),
        (
            "site/app/public",
            "site/app/public/wp-content/plugins/hello",
        ),
        // The project contains a core for its tests.
        ("site/hello/wordpress", "site/hello"),
    ] {
        let tree = tree_with_cores(&[core], &[(&format!("{project}/hello.php"), PLUGIN)]);
        assert_eq!(tree.site(project).as_deref(), Some(core), "{project}");
        assert_eq!(tree.place(project), format!("{project} -> plugins/hello"));
    }
}

#[test]
fn only_a_complete_core_that_surrounds_the_project_is_its_site() {
    let project = "code/hello/hello.php";
    for files in [
        &[(project, PLUGIN)][..],
        &[(project, PLUGIN), ("code/wp-load.php", "")],
        &[(project, PLUGIN), ("code/wp-includes/version.php", "")],
        &[
            (project, PLUGIN),
            ("code/other/wp-load.php", ""),
            ("code/other/wp-includes/version.php", ""),
        ],
        // The home directory is the root of this tree. A core in another subdirectory of it may
        // belong to another project, so it is not taken as the site of the plugin.
        &[
            (project, PLUGIN),
            ("wordpress/wp-load.php", ""),
            ("wordpress/wp-includes/version.php", ""),
        ],
    ] {
        assert_eq!(Tree::new(files).site("code/hello"), None, "{files:?}");
    }
    let home = [
        ("wp-load.php", ""),
        ("wp-includes/version.php", ""),
        ("wp-content/plugins/hello/hello.php", PLUGIN),
    ];
    let site = Tree::new(&home).site("wp-content/plugins/hello");
    assert_eq!(
        site.as_deref(),
        Some(""),
        "the home directory is the document root"
    );
}

#[test]
fn error_for_a_whole_site_or_a_part_of_it_lists_the_plugins_and_themes() {
    let standard = &[
        ("site/wp-config.php", ""),
        ("site/wp-content/plugins/hello.php", PLUGIN),
        ("site/wp-content/plugins/b/b.php", PLUGIN),
        ("site/wp-content/plugins/a/a.php", PLUGIN),
        ("site/wp-content/plugins/.hidden/x.php", PLUGIN),
        ("site/wp-content/themes/sky/style.css", THEME),
        ("site/.git/HEAD", ""),
        ("site/composer.json", r#"{"name": "acme/site"}"#),
    ][..];
    let bedrock = &[
        ("site/web/wp-config.php", ""),
        ("site/web/app/plugins/a/a.php", PLUGIN),
        ("site/web/app/themes/sky/style.css", THEME),
        ("site/composer.json", r#"{"name": "roots/bedrock"}"#),
        ("site/.git/HEAD", ""),
    ][..];
    let moved = &[
        ("site/wp-config.php", ""),
        ("site/content/plugins/a/a.php", PLUGIN),
        ("site/content/themes/sky/style.css", THEME),
    ][..];
    let local = &[
        ("site/public/wp-config.php", ""),
        ("site/public/wp-content/plugins/a/a.php", PLUGIN),
        ("site/public/wp-content/themes/sky/style.css", THEME),
        ("site/.git/HEAD", ""),
    ][..];
    let whole = "plugins/a, plugins/b, themes/sky";
    for (core, files, start, members) in [
        ("site", standard, "site", whole),
        ("site", standard, "site/wp-content", whole),
        (
            "site",
            standard,
            "site/wp-content/plugins",
            "plugins/a, plugins/b",
        ),
        ("site", standard, "site/wp-content/themes", "themes/sky"),
        ("site", standard, "site/wp-admin", whole),
        ("site", standard, "site/wp-includes", whole),
        ("site/web/wp", bedrock, "site", "plugins/a, themes/sky"),
        ("site/web/wp", bedrock, "site/web", "plugins/a, themes/sky"),
        (
            "site/web/wp",
            bedrock,
            "site/web/wp",
            "plugins/a, themes/sky",
        ),
        (
            "site/web/wp",
            bedrock,
            "site/web/app",
            "plugins/a, themes/sky",
        ),
        ("site/web/wp", bedrock, "site/web/app/plugins", "plugins/a"),
        ("site/wp", moved, "site", "plugins/a, themes/sky"),
        ("site/wp", moved, "site/content", "plugins/a, themes/sky"),
        ("site/public", local, "site", "plugins/a, themes/sky"),
        ("site/public", local, "site/public", "plugins/a, themes/sky"),
    ] {
        let tree = tree_with_cores(&[core], files);
        for found in [tree.around(start), tree.of(start)] {
            let error = found.unwrap_err();
            assert!(matches!(error, ProjectError::WholeSite { .. }), "{error}");
            let body = error.body();
            assert_eq!(body.code, ErrorCode::InputInvalid);
            assert!(
                body.message.ends_with(&format!("it contains {members}")),
                "{start}: {}",
                body.message
            );
            assert!(body.hints[0].contains("cd into") && body.hints[0].contains("--mount"));
        }
        // Positive control: one plugin of the same site.
        let plugin = files.iter().find(|(path, _)| path.ends_with("/a/a.php"));
        let (directory, _) = plugin.unwrap().0.rsplit_once('/').unwrap();
        assert_eq!(tree.place(directory), format!("{directory} -> plugins/a"));
    }
}

#[test]
fn single_file_plugin_in_the_plugins_directory_does_not_make_that_directory_a_plugin() {
    let tree = tree_with_cores(
        &["site"],
        &[
            ("site/wp-content/plugins/hello.php", PLUGIN),
            ("site/wp-content/mu-plugins/loader.php", PLUGIN),
            ("site/wp-content/plugins/draft/src/", ""),
            ("site/wp-content/mu-plugins/parts/", ""),
            ("site/.git/HEAD", ""),
        ],
    );
    for (start, expected) in [
        ("site/wp-content/plugins/draft/src", "src"),
        ("site/wp-content/plugins/draft", "draft"),
        ("site/wp-content/mu-plugins/parts", "parts"),
    ] {
        assert_eq!(
            tree.place(start),
            format!("{start} -> /workspace/{expected}")
        );
    }
    let list = tree.around("site/wp-content/mu-plugins").unwrap_err();
    assert!(
        list.to_string().ends_with("it contains mu-plugins/parts"),
        "{list}"
    );
}

#[test]
fn code_without_a_header_is_a_project_itself_in_a_work_tree_that_contains_a_site() {
    let tree = tree_with_cores(
        &["site"],
        &[
            ("site/wp-content/plugins/draft/", ""),
            ("repo/wp-content/plugins/draft/", ""),
        ],
    );
    tree.write(".git/HEAD", "");
    tree.write("site/.git/HEAD", "");
    tree.write("repo/.git/HEAD", "");
    let start = "site/wp-content/plugins/draft";
    assert_eq!(tree.place(start), format!("{start} -> /workspace/draft"));
    // Positive control: a work tree without a core.
    let start = "repo/wp-content/plugins/draft";
    assert_eq!(tree.place(start), "repo -> /workspace/repo");
}

#[test]
fn directory_in_the_core_is_refused() {
    let tree = tree_with_cores(
        &["site"],
        &[("site/wp-includes/blocks/", ""), ("site/tools/", "")],
    );
    let error = tree.around("site/wp-includes/blocks").unwrap_err();
    assert!(matches!(error, ProjectError::WholeSite { .. }), "{error}");
    assert_eq!(tree.place("site/tools"), "site/tools -> /workspace/tools");
}

#[test]
fn package_that_contains_a_wordpress_without_configuration_is_a_project_and_not_a_site() {
    let files = [("lib/composer.json", r#"{"name": "acme/lib"}"#)];
    let tree = tree_with_cores(&["lib/wordpress"], &files);
    assert_eq!(tree.place("lib"), "lib -> /workspace/lib");
    tree.write("lib/wordpress/wp-config.php", "");
    assert_eq!(tree.place("lib"), ErrorCode::InputInvalid.to_string());
}

#[test]
fn single_file_plugin_in_a_checkout_without_the_core_does_not_make_its_directory_a_plugin() {
    let files = [
        ("repo/composer.json", r#"{"name": "acme/site"}"#),
        ("repo/plugins/hello.php", PLUGIN),
        ("repo/plugins/draft/", ""),
        ("repo/plugins/a/a.php", PLUGIN),
        ("repo/themes/sky/style.css", THEME),
        ("alone/plugins/hello.php", PLUGIN),
    ];
    let tree = Tree::new(&files);
    for (start, expected) in [
        ("repo/plugins", "repo -> /workspace/site"),
        ("repo/plugins/draft", "repo -> /workspace/site"),
        ("repo/plugins/a", "repo/plugins/a -> plugins/a"),
        // Positive control: the name `plugins` alone does not make it a directory of plugins.
        ("alone/plugins", "alone/plugins -> plugins/hello"),
    ] {
        assert_eq!(tree.place(start), expected);
    }
    let exact = tree.shown(tree.of("repo/plugins"));
    assert_eq!(exact, "repo/plugins -> /workspace/plugins");
}
