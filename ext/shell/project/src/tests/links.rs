//! Projects that are reached through symbolic links.

use super::{PLUGIN, Tree, tree_with_cores};
use std::os::unix::fs::symlink;
use wp_codebox_contracts::ActivationKind;

#[test]
fn linked_plugin_has_the_real_root_and_the_name_and_site_of_the_link() {
    let tree = tree_with_cores(
        &["site"],
        &[
            ("src/hello-main/hello.php", PLUGIN),
            ("src/hello-main/inc/", ""),
            ("site/wp-content/plugins/", ""),
        ],
    );
    symlink(
        tree.at("src/hello-main"),
        tree.at("site/wp-content/plugins/hello"),
    )
    .unwrap();
    for start in [
        "site/wp-content/plugins/hello",
        "site/wp-content/plugins/hello/inc",
    ] {
        let project = tree.around(start).unwrap();
        assert_eq!(project.root, tree.at("src/hello-main"));
        assert_eq!(project.target, "/wordpress/wp-content/plugins/hello");
        assert_eq!(
            project.activation(),
            Some((ActivationKind::Plugin, "hello/hello.php".to_owned()))
        );
        assert_eq!(project.site, Some(tree.at("site")));
        assert!(
            project.why.contains("its name is that of the link"),
            "{}",
            project.why
        );
    }
    let project = tree.around("src/hello-main/inc").unwrap();
    assert_eq!(project.target, "/wordpress/wp-content/plugins/hello-main");
    assert_eq!(project.site, None);
}

#[test]
fn link_into_the_middle_of_a_project_leads_to_that_project() {
    let tree = Tree::new(&[
        ("src/hello/hello.php", PLUGIN),
        ("src/hello/inc/", ""),
        ("outer/outer.php", PLUGIN),
    ]);
    symlink(tree.at("src/hello/inc"), tree.at("outer/inc")).unwrap();
    // The mount must contain the current directory, which is really below `src/hello`.
    assert_eq!(tree.place("outer/inc"), "src/hello -> plugins/hello");
}

#[test]
fn linked_plugins_directory_is_refused_and_a_plugin_in_it_has_a_real_path_and_the_links_site() {
    let tree = tree_with_cores(
        &["site"],
        &[
            ("shared/a/a.php", PLUGIN),
            ("shared/hello.php", PLUGIN),
            ("site/wp-content/", ""),
        ],
    );
    symlink(tree.at("shared"), tree.at("site/wp-content/plugins")).unwrap();
    let error = tree.around("site/wp-content/plugins").unwrap_err();
    assert!(
        error.to_string().ends_with("it contains plugins/a"),
        "{error}"
    );
    assert_eq!(
        tree.place("site/wp-content/plugins/a"),
        "shared/a -> plugins/a"
    );
    assert_eq!(
        tree.around("site/wp-content/plugins/a").unwrap().site,
        Some(tree.at("site"))
    );
}

#[test]
fn plugin_file_that_is_a_link_out_of_the_project_is_not_read() {
    let tree = Tree::new(&[("secret.php", PLUGIN), ("code/hello/real/main.php", PLUGIN)]);
    symlink(tree.at("secret.php"), tree.at("code/hello/hello.php")).unwrap();
    assert_eq!(tree.place("code/hello"), "code/hello -> /workspace/hello");
    // Positive control: a link inside the project.
    symlink("real/main.php", tree.at("code/hello/main.php")).unwrap();
    assert_eq!(tree.place("code/hello"), "code/hello -> plugins/hello");
}
