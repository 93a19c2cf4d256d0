//! The plugin's copy of the class that selects content for site seeds.
//!
//! Recipes read a parent site with `share/host`, tasks with the plugin that runs in the site. Both
//! use this class, so the rules about private data exist in one file.

use crate::findings::TaskError;
use crate::generated::Generated;
use crate::tree;
use std::path::Path;

const SOURCE: &str = "share/host/site-content.php";
const COPY: &str = "plugin-php/includes/SiteSeed/SiteContent.php";
/// Texts of the source, and what the plugin has instead.
const CHANGES: [(&str, &str); 4] = [
    (
        " * The plugin has a generated copy of this file for the site that it runs on, so both have the same rules.",
        " * Generated from share/host/site-content.php by: cargo xtask generate.",
    ),
    (
        "namespace WPCodebox\\Host;\n",
        "namespace WPCodebox\\SiteSeed;\n\ndefined( 'ABSPATH' ) || exit;\n",
    ),
    ("declare( strict_types=1 );", "declare(strict_types=1);"),
    ("final class Site_Content {", "final class SiteContent {"),
];

/// Returns the copy.
pub fn copy(root: &Path) -> Result<Generated, TaskError> {
    let mut text = tree::read(&root.join(SOURCE))?;
    for (from, to) in CHANGES {
        if text.matches(from).count() != 1 {
            return Err(TaskError::Findings(vec![format!(
                "{SOURCE}: must have this text once: {from}"
            )]));
        }
        text = text.replace(from, to);
    }
    Ok(Generated {
        path: COPY,
        text: text
            .replace(
                "Site_Database        $database",
                "SiteDatabase         $database",
            )
            .replace("Site_Database", "SiteDatabase"),
    })
}
