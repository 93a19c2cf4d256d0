//! Tests with the directory layouts of real projects.

use super::{PLUGIN, THEME, Tree, tree_with_cores};
use crate::Kind;

/// Returns the header of a plugin with a name and a text domain.
fn plugin(name: &str, domain: &str) -> String {
    format!("<?php\n/**\n * Plugin Name: {name}\n * Version: 1.0\n * Text Domain: {domain}\n */\n")
}

#[test]
fn project_in_a_monorepo_is_the_nearest_plugin_else_the_nearest_package() {
    let shop = plugin("Shop", "shop");
    let beta = plugin("Shop Beta Tester", "shop-beta-tester");
    let tree = Tree::new(&[
        (
            "shop/composer.json",
            r#"{"name": "acme/monorepo", "type": "project"}"#,
        ),
        ("shop/.git/HEAD", ""),
        ("shop/plugins/shop/shop.php", &shop),
        (
            "shop/plugins/shop/composer.json",
            r#"{"name": "acme/shop"}"#,
        ),
        ("shop/plugins/shop/uninstall.php", "<?php\n"),
        (
            "shop/plugins/shop/packages/blocks/composer.json",
            r#"{"name": "acme/blocks"}"#,
        ),
        ("shop/plugins/shop/vendor/bin/phpunit", ""),
        ("shop/plugins/shop-beta-tester/shop-beta-tester.php", &beta),
        (
            "shop/packages/php/util/composer.json",
            r#"{"name": "acme/util"}"#,
        ),
        ("shop/packages/js/data/", ""),
    ]);
    for (start, expected) in [
        ("shop/plugins/shop", "shop/plugins/shop -> plugins/shop"),
        (
            "shop/plugins/shop/packages/blocks",
            "shop/plugins/shop -> plugins/shop",
        ),
        (
            "shop/plugins/shop/vendor/bin",
            "shop/plugins/shop -> plugins/shop",
        ),
        (
            "shop/plugins/shop-beta-tester",
            "shop/plugins/shop-beta-tester -> plugins/shop-beta-tester",
        ),
        (
            "shop/packages/php/util",
            "shop/packages/php/util -> /workspace/util",
        ),
        ("shop/packages/js/data", "shop -> /workspace/monorepo"),
        ("shop/plugins", "shop -> /workspace/monorepo"),
        ("shop", "shop -> /workspace/monorepo"),
    ] {
        assert_eq!(tree.place(start), expected);
    }
}

#[test]
fn plugin_is_found_from_its_packages_and_a_plugin_or_theme_among_its_tests_is_a_project_itself() {
    let editor = plugin("Editor", "editor");
    let tree = Tree::new(&[
        ("editor/editor.php", &editor),
        ("editor/post-content.php", "<?php\n"),
        (
            "editor/composer.json",
            r#"{"name": "acme/editor", "type": "wordpress-plugin"}"#,
        ),
        ("editor/packages/blocks/src/", ""),
        ("editor/node_modules/react/", ""),
        (
            "editor/packages/e2e-tests/plugins/a.php",
            "<?php // Plugin Name: A\n",
        ),
        (
            "editor/packages/e2e-tests/plugins/b.php",
            "<?php // Plugin Name: B\n",
        ),
        ("editor/packages/e2e-tests/plugins/frame/frame.php", PLUGIN),
        ("editor/test/emptytheme/style.css", THEME),
    ]);
    for (start, expected) in [
        ("editor", "editor -> plugins/editor"),
        ("editor/packages/blocks/src", "editor -> plugins/editor"),
        ("editor/node_modules/react", "editor -> plugins/editor"),
        (
            "editor/packages/e2e-tests/plugins/frame",
            "editor/packages/e2e-tests/plugins/frame -> plugins/frame",
        ),
        (
            "editor/test/emptytheme",
            "editor/test/emptytheme -> themes/emptytheme",
        ),
        // This directory has several single-file plugins, so the result is an error.
        (
            "editor/packages/e2e-tests/plugins",
            "wp_codebox_input_invalid",
        ),
    ] {
        assert_eq!(tree.place(start), expected);
    }
}

#[test]
fn main_file_among_several_plugin_files_is_the_one_named_like_the_directory_or_with_a_version() {
    let main = plugin("Pack", "pack");
    let tree = Tree::new(&[
        ("projects/plugins/pack/pack.php", &main),
        ("projects/plugins/pack/extra.php", PLUGIN),
        (
            "projects/plugins/pack/modules/stats/stats.php",
            "<?php // Module Name: Stats\n",
        ),
        (
            "projects/packages/sync/composer.json",
            r#"{"name": "acme/pack-sync"}"#,
        ),
        // The same plugin pack in a directory with the name that a GitHub download gives it.
        ("downloads/pack-trunk/pack.php", &main),
        (
            "downloads/pack-trunk/extra.php",
            "<?php // Plugin Name: Extra\n",
        ),
    ]);
    for (start, expected) in [
        (
            "projects/plugins/pack/modules/stats",
            "projects/plugins/pack -> plugins/pack",
        ),
        (
            "projects/packages/sync",
            "projects/packages/sync -> /workspace/pack-sync",
        ),
        (
            "downloads/pack-trunk",
            "downloads/pack-trunk -> plugins/pack-trunk",
        ),
    ] {
        assert_eq!(tree.place(start), expected);
    }
}

#[test]
fn slug_in_a_subversion_checkout_is_the_directory_name_above_trunk_tags_or_branches() {
    let header = plugin("Hello", "hello");
    let tree = Tree::new(&[
        ("svn/hello/trunk/main.php", &header),
        ("svn/hello/tags/1.0/main.php", &header),
        ("svn/hello/branches/next/main.php", &header),
        ("svn/hello/assets/", ""),
    ]);
    for directory in ["trunk", "tags/1.0", "branches/next"] {
        let project = tree.around(&format!("svn/hello/{directory}")).unwrap();
        assert_eq!(project.target, "/wordpress/wp-content/plugins/hello");
        let (_, name) = project.activation().unwrap();
        assert_eq!(name, "hello/main.php");
    }
}

#[test]
fn plugins_themes_and_must_use_plugins_of_a_bedrock_site_are_projects() {
    let tree = tree_with_cores(
        &["bedrock/web/wp"],
        &[
            (
                "bedrock/composer.json",
                r#"{"name": "roots/bedrock", "type": "project"}"#,
            ),
            ("bedrock/.env", "DB_PASSWORD=x"),
            ("bedrock/web/wp-config.php", ""),
            ("bedrock/web/app/mu-plugins/bedrock-autoloader.php", PLUGIN),
            ("bedrock/web/app/mu-plugins/must/must.php", PLUGIN),
            ("bedrock/web/app/plugins/hello/hello.php", PLUGIN),
            ("bedrock/web/app/themes/sage/style.css", THEME),
            ("bedrock/web/app/themes/sage/app/", ""),
            (
                "bedrock/vendor/roots/wp-config/composer.json",
                r#"{"name": "roots/wp-config"}"#,
            ),
        ],
    );
    for (start, expected) in [
        (
            "bedrock/web/app/plugins/hello",
            "bedrock/web/app/plugins/hello -> plugins/hello",
        ),
        (
            "bedrock/web/app/themes/sage/app",
            "bedrock/web/app/themes/sage -> themes/sage",
        ),
        (
            "bedrock/web/app/mu-plugins/must",
            "bedrock/web/app/mu-plugins/must -> plugins/must",
        ),
        ("bedrock", "wp_codebox_input_invalid"),
        ("bedrock/web/app/mu-plugins", "wp_codebox_input_invalid"),
    ] {
        assert_eq!(tree.place(start), expected);
    }
    for start in [
        "bedrock/web/app/plugins/hello",
        "bedrock/web/app/themes/sage",
    ] {
        assert_eq!(tree.site(start).as_deref(), Some("bedrock/web/wp"));
    }
}

#[test]
fn subdirectory_with_a_stylesheet_belongs_to_its_theme_and_a_child_theme_is_a_project_itself() {
    let child = "/*\nTheme Name: Night\nTemplate: sky\nText Domain: night\n*/";
    let tree = tree_with_cores(
        &["site"],
        &[
            ("site/wp-content/themes/sky/style.css", THEME),
            ("site/wp-content/themes/sky/assets/css/style.css", "body {}"),
            ("site/wp-content/themes/sky/parts/", ""),
            ("site/wp-content/themes/night/style.css", child),
        ],
    );
    for (start, slug) in [
        ("site/wp-content/themes/sky/assets/css", "sky"),
        ("site/wp-content/themes/sky/parts", "sky"),
        ("site/wp-content/themes/night", "night"),
    ] {
        let project = tree.around(start).unwrap();
        assert!(matches!(&project.kind, Kind::Theme { slug: found, .. } if found == slug));
        assert_eq!(project.site, Some(tree.at("site")));
    }
}

#[test]
fn directory_with_the_drop_ins_of_a_plugin_belongs_to_the_plugin() {
    let tree = Tree::new(&[
        ("code/monitor/monitor.php", PLUGIN),
        (
            "code/monitor/wp-content/db.php",
            "<?php // Plugin Name: Drop-in\n",
        ),
        ("repo/wp-content/themes/", ""),
    ]);
    let plugin = tree.place("code/monitor/wp-content");
    assert_eq!(plugin, "code/monitor -> plugins/monitor");
    // Positive control: a content directory with themes.
    assert_eq!(tree.place("repo/wp-content"), "wp_codebox_input_invalid");
}
