//! Tests of themes, child themes, and directories with a plugin header and a theme header.

use super::{PLUGIN, THEME, Tree};
use crate::{Kind, ProjectError};
use wp_codebox_contracts::{ActivationKind, CodedError, ErrorCode};

#[test]
fn theme_is_found_and_activated_by_its_slug() {
    let tree = Tree::new(&[
        ("code/sky/style.css", THEME),
        ("code/sky/theme.json", "{}"),
        ("code/sky/templates/index.html", ""),
    ]);
    for start in ["code/sky", "code/sky/templates"] {
        let project = tree.around(start).unwrap();
        assert_eq!(
            project.kind,
            Kind::Theme {
                slug: "sky".to_owned(),
                name: "Sky".to_owned(),
            }
        );
        assert_eq!(project.target, "/wordpress/wp-content/themes/sky");
        let expected = (ActivationKind::Theme, "sky".to_owned());
        assert_eq!(project.activation(), Some(expected));
        assert!(project.why.starts_with("theme \"Sky\" 2.0 (style.css) at "));
        assert!(!project.why.contains("child theme"));
    }
}

#[test]
fn project_of_a_child_theme_names_its_parent_theme() {
    let child = "/*\nTheme Name: Night\nTemplate: sky\n*/";
    let tree = Tree::new(&[("code/night/style.css", child)]);
    let project = tree.around("code/night").unwrap();
    assert_eq!(project.target, "/wordpress/wp-content/themes/night");
    assert_eq!(project.parent_theme.as_deref(), Some("sky"));
    let note = "it is a child theme of \"sky\"";
    assert!(project.why.ends_with(note), "{}", project.why);
}

#[test]
fn stylesheet_without_a_theme_name_makes_no_theme() {
    for (content, is_theme) in [
        (THEME, true),
        ("/* Theme Name: */", false),
        ("/* Template: sky */", false),
        ("body {}", false),
    ] {
        let tree = Tree::new(&[("code/sky/style.css", content)]);
        let project = tree.around("code/sky").unwrap();
        let found = matches!(project.kind, Kind::Theme { .. });
        assert_eq!(found, is_theme, "{content}");
    }
}

#[test]
fn error_for_a_directory_with_a_plugin_and_a_theme_header_names_both_files() {
    let tree = Tree::new(&[
        ("code/both/main.php", PLUGIN),
        ("code/both/style.css", THEME),
    ]);
    for found in [tree.around("code/both"), tree.of("code/both")] {
        let error = found.unwrap_err();
        assert!(matches!(error, ProjectError::PluginAndTheme { .. }));
        let body = error.body();
        assert_eq!(body.code, ErrorCode::InputInvalid);
        assert!(body.message.contains("main.php") && body.message.contains("style.css"));
    }
}
