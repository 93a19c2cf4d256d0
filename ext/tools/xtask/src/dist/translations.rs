//! Makes the template of the translations with WP-CLI's `i18n make-pot`.
//!
//! Creation date and year of the copyright are those of the newest entry of Debian's changelog, so
//! that the template depends only on the checkout and on the version of WP-CLI.

use super::rules::{self, DIRECTORY, SLUG};
use crate::findings::TaskError;
use crate::{commands, php, tree};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// The template in the plugin.
pub(super) const TEMPLATE: &str = "languages/codebox.pot";
const CHANGELOG: &str = "packaging/debian/changelog";
const MONTHS: &[&str] = &[
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Writes the template into the directory `plugin`, which has all other files of the plugin, and
/// returns its bytes.
pub(super) fn template(root: &Path, plugin: &Path) -> Result<Vec<u8>, TaskError> {
    let wp_cli = wp_cli(root)?;
    if !wp_cli.is_file() {
        return finding(format!(
            "WP-CLI is missing at {}; run: tests/provision files build, or set CODEBOX_WP_CLI",
            wp_cli.display()
        ));
    }
    let Some(date) = creation_date(&tree::read(&root.join(CHANGELOG))?) else {
        return finding(format!(
            "{CHANGELOG}: the newest entry does not end with ` -- NAME <ADDRESS>  DATE`, DATE as `date -R` prints it"
        ));
    };
    let main = tree::read(&plugin.join(format!("{DIRECTORY}.php")))?;
    let target = plugin.join(TEMPLATE);
    let php = env::var("PHP").unwrap_or_else(|_| php::program().to_owned());
    let answer = commands::quiet(
        root,
        "env",
        &[
            // The configuration and the packages of the user may change the template.
            "WP_CLI_CONFIG_PATH=/dev/null",
            &php,
            &wp_cli.to_string_lossy(),
            "--skip-packages",
            // Has no effect on other users than root.
            "--allow-root",
            "i18n",
            "make-pot",
            &plugin.to_string_lossy(),
            &target.to_string_lossy(),
            &format!("--slug={SLUG}"),
            &format!("--domain={SLUG}"),
            &format!(r#"--headers={{"POT-Creation-Date":"{date}"}}"#),
            &format!("--file-comment={}", copyright(&date, &main)),
            &format!("--exclude={}", scripts_without_texts(plugin)?.join(",")),
            "--skip-audit",
        ],
    )?;
    if !answer.success {
        return finding(format!("wp i18n make-pot failed: {}", answer.said.trim()));
    }
    fs::read(&target).map_err(TaskError::file(&target))
}

fn finding<T>(text: String) -> Result<T, TaskError> {
    Err(TaskError::Findings(vec![text]))
}

/// Returns the path of WP-CLI: that of CODEBOX_WP_CLI, else where `tests/provision` installs it.
fn wp_cli(root: &Path) -> Result<PathBuf, TaskError> {
    if let Some(path) = env::var_os("CODEBOX_WP_CLI") {
        return Ok(root.join(path));
    }
    let script = r#"root=$PWD; . tests/paths && printf %s "$CODEBOX_WP_CLI""#;
    let answer = commands::quiet(root, "bash", &["-c", script])?;
    if !answer.success {
        return finding(format!("tests/paths failed: {}", answer.said.trim()));
    }
    Ok(String::from_utf8_lossy(&answer.stdout).into_owned().into())
}

/// Returns the date of the newest entry of a Debian changelog, in ISO 8601 with time and zone.
fn creation_date(changelog: &str) -> Option<String> {
    let end = changelog.lines().find(|line| line.starts_with(" -- "))?;
    let (_, date) = end.rsplit_once(">  ")?;
    let parts: Vec<&str> = date.split_whitespace().collect();
    let [_, day, month, year, time, zone] = parts[..] else {
        return None;
    };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let (hours, minutes) = zone.split_at_checked(3)?;
    Some(format!(
        "{year}-{month:02}-{day:0>2}T{time}{hours}:{minutes}"
    ))
}

/// Returns the first lines of the template. Without them make-pot writes the same with the present
/// year. It takes `\n` for the end of a line.
fn copyright(date: &str, main: &str) -> String {
    let value = |name| rules::header(main, name).unwrap_or_default();
    format!(
        r"Copyright (C) {} {}\nThis file is distributed under the {}.",
        date.split('-').next().unwrap_or_default(),
        value("Author"),
        value("License"),
    )
}

/// Returns the scripts that do not contain the text domain as a string. Every call of a
/// translation contains it, so these scripts have no texts. To parse those of the browser engine
/// takes make-pot several seconds.
fn scripts_without_texts(plugin: &Path) -> Result<Vec<String>, TaskError> {
    let domain = ['\'', '"', '`'].map(|quote| format!("{quote}{SLUG}{quote}"));
    let mut found = Vec::new();
    for path in tree::files(plugin)? {
        if tree::has_extension(&path, "js") {
            let text = tree::read(&path)?;
            if !domain.iter().any(|domain| text.contains(domain)) {
                found.push(tree::shown(plugin, &path));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creation_date_is_that_of_the_newest_changelog_entry() {
        let changelog = "wp-codebox (0.2) bookworm; urgency=medium\n\n  * Text.\n\n -- A <a@example.org>  Tue, 01 Dec 2026 09:30:00 +0130\n\nwp-codebox (0.1) bookworm\n\n -- A <a@example.org>  Mon, 30 Nov 2026 00:00:00 +0000\n";
        let date = creation_date(changelog);
        assert_eq!(date.as_deref(), Some("2026-12-01T09:30:00+01:30"));
        for (from, to) in [("Dec", "Foo"), (">  ", "> "), (" +0130", "")] {
            assert_eq!(creation_date(&changelog.replacen(from, to, 1)), None);
        }
    }

    #[test]
    fn copyright_has_the_year_of_the_date_and_the_author_and_license_of_the_plugin() {
        let main = "<?php\n/**\n * Author: A B\n * License: GPL-2.0-or-later\n */\n";
        assert_eq!(
            copyright("2026-12-01T09:30:00+01:30", main),
            r"Copyright (C) 2026 A B\nThis file is distributed under the GPL-2.0-or-later."
        );
    }

    #[test]
    fn only_scripts_without_the_quoted_text_domain_are_excluded_from_the_template() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("a.js", r#"g.__("Text","codebox")"#),
            ("b.js", "__( 'Text', 'codebox' )"),
            ("c.js", "__( 'Text', `codebox` )"),
            ("d.js", "const name = 'wp-codebox'; // codebox"),
            ("e.php", "<?php"),
        ] {
            fs::write(directory.path().join(name), text).unwrap();
        }
        assert_eq!(scripts_without_texts(directory.path()).unwrap(), ["d.js"]);
    }
}
