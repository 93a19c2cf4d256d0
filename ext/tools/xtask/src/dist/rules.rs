//! Rules that a plugin must satisfy so that reviewers of the WordPress plugin directory accept
//! it: types and names of files, headers of the main file and of readme.txt, and forbidden code.
//!
//! The rules follow the plugin directory's own checker as far as possible without WordPress,
//! and are stricter: file types need an explicit entry, and warnings of that checker are
//! findings here.

use crate::findings::TaskError;
use crate::tree;
use std::collections::BTreeSet;
use std::path::Path;

/// Directory below `dist/` in which the plugin is built, and name of its main file.
pub(super) const DIRECTORY: &str = "wp-codebox";
/// Slug in the WordPress plugin directory: name of the zip, its top directory, and text domain.
pub(super) const SLUG: &str = "codebox";
/// File types that the plugin may contain. Programs, archives, phars and Markdown are excluded.
const EXTENSIONS: &[&str] = &[
    "php", "json", "txt", "css", "js", "svg", "png", "pot", "po", "mo",
];
/// Types of files that only the engine of browser sandboxes may have.
const ENGINE_EXTENSIONS: &[&str] = &["html"];
const HEADERS: &[&str] = &[
    "Plugin Name",
    "Description",
    "Version",
    "Requires at least",
    "Requires PHP",
    "Author",
    "License",
    "License URI",
    "Text Domain",
];
const README_HEADERS: &[&str] = &[
    "Contributors",
    "Tags",
    "Requires at least",
    "Tested up to",
    "Requires PHP",
    "Stable tag",
    "License",
    "License URI",
];
/// Header fields that must be equal in the main file and readme.txt.
const SAME: &[(&str, &str)] = &[
    ("Version", "Stable tag"),
    ("Requires at least", "Requires at least"),
    ("Requires PHP", "Requires PHP"),
    ("License", "License"),
    ("License URI", "License URI"),
];
/// Maximum length of the short description in readme.txt; WordPress cuts longer ones.
const SHORT_DESCRIPTION: usize = 150;
const TAGS: usize = 5;

/// Text that must not occur in the plugin's code: file types, text and reason.
const FORBIDDEN: &[(&[&str], &str, &str)] = &[
    (&["php"], "proc_open", "only the runner may start programs"),
    (&["php"], "popen(", "only the runner may start programs"),
    (&["php"], "shell_exec", "only the runner may start programs"),
    (&["php"], "passthru", "only the runner may start programs"),
    (&["php"], "pcntl_fork", "only the runner may start programs"),
    (&["php"], "pcntl_exec", "only the runner may start programs"),
    (&["php"], "eval(", "the plugin must not run text as code"),
    (
        &["php"],
        "create_function",
        "the plugin must not run text as code",
    ),
    (
        &["php"],
        "base64_decode( '",
        "the code must not contain encoded text",
    ),
    (&["php"], "<<<", "reviewers refuse heredocs"),
    (
        &["php"],
        "error_reporting(",
        "the site decides how errors are handled",
    ),
    (&["php"], "ini_set(", "the site decides PHP's settings"),
    (
        &["php"],
        "display_errors",
        "the site decides how errors are handled",
    ),
    (
        &["php"],
        "wp_remote_",
        "only the provider bridge may contact a server",
    ),
    (
        &["php"],
        "curl_",
        "only the provider bridge may contact a server",
    ),
    (
        &["php"],
        "fsockopen",
        "only the provider bridge may contact a server",
    ),
    (
        &["php"],
        "ALLOW_UNFILTERED_UPLOADS",
        "the site decides which uploads are allowed",
    ),
    (&["php"], "update_plugins", "only WordPress updates plugins"),
    (
        &["php"],
        "load_plugin_textdomain",
        "WordPress loads translations by itself",
    ),
    (
        &["php", "js", "css"],
        "://localhost",
        "it is an address of a developer's machine",
    ),
    (
        &["php", "js", "css"],
        "127.0.0.1",
        "it is an address of a developer's machine",
    ),
    (
        &["js", "css"],
        "https://",
        "scripts and styles must not load from other hosts",
    ),
    (
        &["js", "css"],
        "http://",
        "scripts and styles must not load from other hosts",
    ),
    (&["js"], "eval(", "the plugin must not run text as code"),
    (
        &["js"],
        "new Function",
        "the plugin must not run text as code",
    ),
    (
        &["js"],
        "innerHTML",
        "scripts must not turn text into markup",
    ),
];
/// Exceptions to [`FORBIDDEN`]: a file, and the forbidden text that it needs for its purpose.
const EXCEPTED: &[(&str, &str)] = &[
    ("includes/Connector/ProviderBridge.php", "wp_remote_"),
    // A template: the text to decode is the configuration that RunnerSource puts in.
    ("assets/browser-runner.php", "base64_decode( '"),
];
/// WordPress functions that translate a text and take the text domain as last argument.
const TRANSLATORS: &[&str] = &[
    "__(",
    "_e(",
    "_x(",
    "_n(",
    "_nx(",
    "_ex(",
    "_n_noop(",
    "esc_html__(",
    "esc_html_e(",
    "esc_html_x(",
    "esc_attr__(",
    "esc_attr_e(",
    "esc_attr_x(",
];

/// Applies every rule to the built plugin and returns the findings.
pub fn judge(directory: &Path) -> Result<Vec<String>, TaskError> {
    let mut findings = Vec::new();
    let main = directory.join(format!("{DIRECTORY}.php"));
    let readme = directory.join("readme.txt");
    for required in [&main, &readme] {
        if !required.is_file() {
            findings.push(format!("{} is missing", tree::shown(directory, required)));
        }
    }
    if !findings.is_empty() {
        return Ok(findings);
    }
    let mut seen = BTreeSet::new();
    for path in tree::files(directory)? {
        let shown = tree::shown(directory, &path);
        if !seen.insert(shown.to_lowercase()) {
            findings.push(format!(
                "{shown}: the name of another file differs only in case"
            ));
        }
        findings.extend(file(&shown, &path)?);
    }
    let main = tree::read(&main)?;
    let readme = tree::read(&readme)?;
    findings.extend(headers(&main, &readme));
    findings.extend(readme_text(&main, &readme));
    Ok(findings)
}

/// Returns whether a file belongs to the engine of browser sandboxes, which npm builds.
fn is_engine(shown: &str) -> bool {
    Path::new(shown).starts_with(super::browser::BELOW)
}

/// Checks name, type and code of one file of the plugin.
fn file(shown: &str, path: &Path) -> Result<Vec<String>, TaskError> {
    let mut findings = Vec::new();
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    if shown.split('/').any(|part| part.starts_with('.')) {
        findings.push(format!("{shown}: hidden files may not be in a plugin"));
    } else if !(EXTENSIONS.contains(&extension)
        || is_engine(shown) && ENGINE_EXTENSIONS.contains(&extension))
    {
        findings.push(format!(
            "{shown}: this kind of file may not be in a plugin; allowed are {EXTENSIONS:?}"
        ));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if !shown.bytes().all(plain) {
        findings.push(format!(
            "{shown}: file names are letters, digits, dots, dashes and underscores"
        ));
    }
    // npm builds the scripts of the engine, with code of packages in them. Tests of browser/ show that they load nothing
    // from another host. PHP has no exception.
    if ["php", "js", "css"].contains(&extension) && (extension == "php" || !is_engine(shown)) {
        let text = tree::read(path)?;
        for (kinds, forbidden, why) in FORBIDDEN {
            let excepted = EXCEPTED.contains(&(shown, forbidden));
            if kinds.contains(&extension) && text.contains(forbidden) && !excepted {
                findings.push(format!("{shown}: uses {forbidden}: {why}"));
            }
        }
        if extension == "php" {
            findings.extend(php(shown, &text));
        }
    }
    Ok(findings)
}

fn php(shown: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !text.starts_with("<?php") {
        findings.push(format!("{shown}: must start with <?php"));
    }
    let guards = ["defined( 'ABSPATH' )", "defined( 'WP_UNINSTALL_PLUGIN' )"];
    if !guards.iter().any(|guard| text.contains(guard)) {
        findings.push(format!(
            "{shown}: has no check of a WordPress constant against direct requests"
        ));
    }
    for line in foreign_texts(text) {
        findings.push(format!(
            "{shown}:{line}: the text domain of a translation must be '{SLUG}'"
        ));
    }
    findings
}

/// Returns the numbers of the lines whose translation call lacks this plugin's text domain.
fn foreign_texts(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    for name in TRANSLATORS {
        for (at, _) in text.match_indices(name) {
            let before = text[..at].chars().next_back().unwrap_or(' ');
            if before.is_ascii_alphanumeric() || "_>:".contains(before) {
                continue;
            }
            let last = last_argument(&text[at + name.len()..]);
            if last != Some(&format!("'{SLUG}'")) {
                lines.push(text[..at].lines().count().max(1));
            }
        }
    }
    lines.sort_unstable();
    lines
}

/// Returns the text between the last comma of a call and its closing parenthesis.
fn last_argument(text: &str) -> Option<&str> {
    let (mut depth, mut start, mut quote, mut escaped) = (0_usize, 0, None, false);
    let mut previous = 0;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '(' | '[') => depth += 1,
            (None, ')') if depth == 0 => {
                let last = text[start..at].trim();
                // A trailing comma after the last argument.
                return Some(if last.is_empty() {
                    text[previous..start].trim().trim_end_matches(',')
                } else {
                    last
                });
            }
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => (previous, start) = (start, at + 1),
            (None, _) => {}
        }
    }
    None
}

fn headers(main: &str, readme: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (file, text, names) in [
        ("wp-codebox.php", main, HEADERS),
        ("readme.txt", readme, README_HEADERS),
    ] {
        for name in names {
            if header(text, name).is_none() {
                findings.push(format!("{file}: has no header `{name}`"));
            }
        }
    }
    if header(main, "Text Domain").is_some_and(|domain| domain != SLUG) {
        findings.push(format!(
            "{DIRECTORY}.php: the text domain must be the slug {SLUG}"
        ));
    }
    for (what, name) in [
        (
            "display name",
            header(main, "Plugin Name").unwrap_or_default(),
        ),
        ("slug", SLUG),
    ] {
        if reserved(name) {
            findings.push(format!("the {what} {name:?} begins with wp"));
        }
    }
    if header(main, "Update URI").is_some() {
        findings.push(format!("{DIRECTORY}.php: `Update URI` is not allowed"));
    }
    for (ours, theirs) in SAME {
        if header(main, ours) != header(readme, theirs) {
            findings.push(format!(
                "{DIRECTORY}.php `{ours}` and readme.txt `{theirs}` differ"
            ));
        }
    }
    for (file, text, name) in [
        ("wp-codebox.php", main, "Version"),
        ("wp-codebox.php", main, "Requires at least"),
        ("wp-codebox.php", main, "Requires PHP"),
        ("readme.txt", readme, "Tested up to"),
    ] {
        if header(text, name).is_some_and(|value| !is_version(value)) {
            findings.push(format!("{file}: `{name}` is not a version"));
        }
    }
    findings
}

/// Returns whether the name begins with `wp` in any case. The WordPress plugin directory reserves such
/// names.
fn reserved(name: &str) -> bool {
    name.to_lowercase().starts_with("wp")
}

/// Checks name, short description and tags of readme.txt.
fn readme_text(main: &str, readme: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let title = readme.lines().next().unwrap_or_default();
    let name = title
        .strip_prefix("=== ")
        .and_then(|rest| rest.strip_suffix(" ==="));
    if name.is_none() || name != header(main, "Plugin Name") {
        findings.push("readme.txt: must start with === and the plugin's name ===".to_owned());
    }
    let short = readme
        .lines()
        .skip_while(|line| !line.trim().is_empty())
        .map(str::trim)
        .find(|line| !line.is_empty())
        .filter(|line| !line.starts_with("=="));
    match short.map(|line| line.chars().count()) {
        None => findings.push("readme.txt: has no short description".to_owned()),
        Some(length) if length > SHORT_DESCRIPTION => findings.push(format!(
            "readme.txt: the short description has {length} characters, {SHORT_DESCRIPTION} are shown"
        )),
        Some(_) => {}
    }
    if header(readme, "Tags").is_some_and(|tags| tags.split(',').count() > TAGS) {
        findings.push(format!("readme.txt: more than {TAGS} tags"));
    }
    findings
}

fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    (2..=3).contains(&parts.len())
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the value of a `Name: value` header, with or without the ` * ` of a comment before
/// it.
pub(super) fn header<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().take(60).find_map(|line| {
        let value = line
            .trim_start_matches([' ', '\t', '*', '/', '#'])
            .strip_prefix(name)?
            .strip_prefix(':')?
            .trim();
        (!value.is_empty()).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const MAIN: &str = "<?php\n/**\n * Plugin Name: Codebox\n * Description: x\n * Version: 1.0.2\n * Requires at least: 6.9\n * Requires PHP: 8.2\n * Author: x\n * License: GPL-2.0-or-later\n * License URI: https://x\n * Text Domain: codebox\n */\ndefined( 'ABSPATH' ) || exit;\n";
    const README: &str = "=== Codebox ===\nContributors: x\nTags: a, b\nRequires at least: 6.9\nTested up to: 7.1\nRequires PHP: 8.2\nStable tag: 1.0.2\nLicense: GPL-2.0-or-later\nLicense URI: https://x\n\nShort.\n\n== Description ==\n\nLong.\n";
    const GUARD: &str = "<?php\ndefined( 'ABSPATH' ) || exit;\n";

    fn plugin(main: &str, readme: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("wp-codebox.php"), main).unwrap();
        fs::write(directory.path().join("readme.txt"), readme).unwrap();
        directory
    }

    #[test]
    fn valid_plugin_has_no_findings() {
        assert_eq!(
            judge(plugin(MAIN, README).path()).unwrap(),
            Vec::<String>::new()
        );
    }

    #[test]
    fn each_forbidden_file_in_the_plugin_package_is_reported() {
        for name in [
            "run.sh",
            "module.so",
            "tool",
            "old.zip",
            "old.tar.gz",
            "tool.phar",
            "NOTES.md",
            ".htaccess",
            ".svn/entries",
            ".vscode/x.json",
            "two words.txt",
            "README.TXT",
        ] {
            let directory = plugin(MAIN, README);
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
            assert!(!judge(directory.path()).unwrap().is_empty(), "{name}");
        }
        for name in ["module.json", "a/b.css", "a/b.pot"] {
            let directory = plugin(MAIN, README);
            fs::create_dir_all(directory.path().join("a")).unwrap();
            fs::write(directory.path().join(name), "{}").unwrap();
            assert!(judge(directory.path()).unwrap().is_empty(), "{name}");
        }
    }

    #[test]
    fn each_forbidden_code_pattern_in_the_plugin_package_is_reported() {
        let bad = |name: &str, text: &str| {
            let directory = plugin(MAIN, README);
            fs::write(directory.path().join(name), text).unwrap();
            judge(directory.path()).unwrap().len()
        };
        assert_eq!(bad("open.php", "<?php\necho 1;\n"), 1);
        assert_eq!(bad("late.php", &format!("\n{GUARD}")), 1);
        assert_eq!(bad("good.php", GUARD), 0);
        for (kinds, forbidden, _) in FORBIDDEN {
            for kind in *kinds {
                let text = format!("{GUARD}// {forbidden}\n");
                assert_eq!(bad(&format!("bad.{kind}"), &text), 1, "{kind} {forbidden}");
            }
        }
    }

    #[test]
    fn assets_browser_may_contain_pages_and_built_scripts_but_no_programs_or_archives() {
        let findings = |name: &str, text: &str| {
            let directory = plugin(MAIN, README);
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            judge(directory.path()).unwrap().len()
        };
        let script = "eval('https://example.org').innerHTML";
        assert_eq!(findings("assets/browser/remote.html", "<!doctype html>"), 0);
        assert_eq!(findings("assets/browser/worker.js", script), 0);
        assert_eq!(findings("assets/remote.html", "<!doctype html>"), 1);
        assert!(findings("assets/browserx/worker.js", script) > 0);
        for name in ["php.wasm", "php.wasm.gz", "a.zip", "a.so", "run.sh", ".x"] {
            assert_eq!(
                findings(&format!("assets/browser/{name}"), "x"),
                1,
                "{name}"
            );
        }
        assert!(findings("assets/browser/a.php", "<?php\neval( 'x' );\n") > 0);
    }

    #[test]
    fn translation_calls_without_the_text_domain_are_findings() {
        for (line, found) in [
            ("__( 'a', 'codebox' );", 0),
            (
                "esc_html( sprintf( __( 'a %s, (b)', 'codebox' ), $c ) );",
                0,
            ),
            ("_n( 'a', 'b', count( $c, 1 ), 'codebox' );", 0),
            ("_x(\n\t'a\\'s',\n\t'b',\n\t'codebox',\n);", 0),
            ("$this->__( 'a' );", 0),
            ("__( 'a' );", 1),
            ("__( 'a', 'default' );", 1),
            ("esc_html__( 'a', 'codebox2' );", 1),
            ("_n( 'a', 'b', 2, 'other' );", 1),
        ] {
            assert_eq!(foreign_texts(line).len(), found, "{line}");
        }
    }

    #[test]
    fn plugin_names_with_reserved_prefixes_are_refused() {
        for name in ["WP Codebox", "wpCodebox"] {
            let main = MAIN.replace("Name: Codebox", &format!("Name: {name}"));
            let readme = README.replace("=== Codebox", &format!("=== {name}"));
            let findings = judge(plugin(&main, &readme).path()).unwrap();
            assert_eq!(
                findings,
                [format!("the display name {name:?} begins with wp")]
            );
        }
        assert!(reserved("wp-codebox"));
        assert!(!reserved(SLUG) && !reserved("Codebox for WP"));
    }

    #[test]
    fn each_missing_or_invalid_header_of_the_plugin_package_is_reported() {
        let findings = |main: &str, readme: &str| judge(plugin(main, readme).path()).unwrap();
        for name in HEADERS {
            let main = MAIN.replace(&format!(" * {name}: "), " * Was: ");
            assert!(!findings(&main, README).is_empty(), "{name}");
        }
        for name in README_HEADERS {
            let readme = README.replace(&format!("\n{name}: "), "\nWas: ");
            assert!(!findings(MAIN, &readme).is_empty(), "{name}");
        }
        let long = "x".repeat(SHORT_DESCRIPTION + 1);
        for (from, to) in [
            ("Stable tag: 1.0.2", "Stable tag: 1.0.3"),
            ("Stable tag: 1.0.2", "Stable tag: trunk"),
            ("Tested up to: 7.1", "Tested up to: seven"),
            ("Requires PHP: 8.2", "Requires PHP: 8.1"),
            ("License: GPL-2.0-or-later", "License: MIT"),
            ("=== Codebox ===", "=== Code Box ==="),
            ("Tags: a, b", "Tags: a, b, c, d, e, f"),
            ("Short.", long.as_str()),
            ("Short.\n\n", ""),
        ] {
            assert_eq!(findings(MAIN, &README.replace(from, to)).len(), 1, "{to}");
        }
        for (from, to) in [
            ("Text Domain: codebox", "Text Domain: wp-codebox"),
            ("Version: 1.0.2", "Version: 1.0.2\n * Update URI: https://x"),
        ] {
            assert_eq!(findings(&MAIN.replace(from, to), README).len(), 1, "{to}");
        }
    }
}
