//! Initial files of a workspace that starts as a new plugin or theme.

use crate::model::Seed;
use std::collections::BTreeMap;

fn names(seed: &Seed) -> (String, String) {
    let slug = seed.slug.clone().unwrap_or_default();
    // Keeps the name on one line of the header comment.
    let name: String = seed
        .name
        .as_deref()
        .unwrap_or(&slug)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    (slug, name.replace("*/", "* /"))
}

pub(super) fn plugin(seed: &Seed) -> BTreeMap<String, String> {
    let (slug, name) = names(seed);
    let main = format!(
        "<?php\n/**\n * Plugin Name: {name}\n * Version: 0.1.0\n * Text Domain: {slug}\n *\n * @package {slug}\n */\n\ndefined( 'ABSPATH' ) || exit;\n"
    );
    let readme = format!("=== {name} ===\n\nA new plugin without functions.\n");
    BTreeMap::from([
        (format!("{slug}.php"), main),
        ("readme.txt".to_owned(), readme),
    ])
}

pub(super) fn theme(seed: &Seed) -> BTreeMap<String, String> {
    let (slug, name) = names(seed);
    let style = format!("/*\nTheme Name: {name}\nVersion: 0.1.0\nText Domain: {slug}\n*/\n");
    let index = format!(
        "<?php\n/**\n * The only template.\n *\n * @package {slug}\n */\n\nget_header();\nwhile ( have_posts() ) {{\n\tthe_post();\n\tthe_content();\n}}\nget_footer();\n"
    );
    let functions = format!(
        "<?php\n/**\n * Functions of the theme.\n *\n * @package {slug}\n */\n\ndefined( 'ABSPATH' ) || exit;\n"
    );
    BTreeMap::from([
        ("style.css".to_owned(), style),
        ("index.php".to_owned(), index),
        ("functions.php".to_owned(), functions),
    ])
}
