//! Checks that every claim of the documents cites a test that exists.
//!
//! Under a heading that contains "(tested)", every bullet and every table row names the tests that
//! show it, as "Test: `name`." or "Tests: `one`, `two`.". Each name must be a Rust test, a case of
//! a Python, shell, PHP or browser suite, a test of the extension, or an id of the attack table.
//! The check proves that the cited test exists; only a reader can tell whether the test shows what
//! the sentence says.

use crate::findings::TaskError;
use crate::tree;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Pages that must exist and contain claims, so that the check notices when a page or its headings
/// are deleted. Other pages of [`PAGES`] are checked as soon as they have a heading marked
/// [`CLAIMS`].
const REQUIRED: &[&str] = &[
    "SECURITY.md",
    "docs/apply-adapter.md",
    "docs/connector-requests.md",
    "docs/sandbox-session.md",
    "docs/security/agents-and-models.md",
    "docs/security/bundles-and-apply.md",
    "docs/security/files-and-capture.md",
    "docs/security/held-sandboxes.md",
    "docs/security/isolation-levels.md",
    "docs/security/kernel-identity.md",
    "docs/security/network-and-mail.md",
    "docs/security/runs-and-callers.md",
    "docs/security/secrets.md",
    "docs/transfer-readiness.md",
];
/// Directory whose Markdown pages are searched for claims, subdirectories included.
const PAGES: &str = "docs";
/// Text of a heading, at any level, that makes each item below it a claim.
const CLAIMS: &str = "(tested)";
/// Directories that are searched for tests.
const PLACES: [&str; 2] = ["ext", "tests"];

/// Returns a finding for each missing page, for each claim without a test, and for each cited test
/// that does not exist.
pub fn check(root: &Path) -> Result<Vec<String>, TaskError> {
    let (documents, mut findings) = documents(root)?;
    let known = names(root)?;
    for path in documents {
        let document = tree::shown(root, &path);
        let (items, unmarked) = claims(&tree::read(&path)?);
        findings.extend(unmarked.iter().map(|what| format!("{document} {what}")));
        for item in items {
            let line = item.line;
            if item.tests.is_empty() {
                findings.push(format!(
                    "{document}:{line}: a claim without a test; end it with \"Test: `name`.\""
                ));
            }
            for test in item.tests {
                if !known.contains(test.as_str()) {
                    findings.push(format!("{document}:{line}: there is no test named {test}"));
                }
            }
        }
    }
    Ok(findings)
}

/// Returns the required documents and every other page with a marked heading, and a finding for
/// each required document that does not exist.
fn documents(root: &Path) -> Result<(BTreeSet<PathBuf>, Vec<String>), TaskError> {
    let mut documents = BTreeSet::new();
    let mut findings = Vec::new();
    for required in REQUIRED {
        let path = root.join(required);
        if path.is_file() {
            documents.insert(path);
        } else {
            findings.push(format!(
                "{required} is missing; its claims are required, see REQUIRED in claims.rs"
            ));
        }
    }
    for path in tree::files(&root.join(PAGES))? {
        if tree::has_extension(&path, "md") && tree::read(&path)?.lines().any(is_marked) {
            documents.insert(path);
        }
    }
    Ok((documents, findings))
}

fn is_marked(line: &str) -> bool {
    line.starts_with('#') && line.contains(CLAIMS)
}

struct Claim {
    line: usize,
    tests: Vec<String>,
}

/// Returns the claims: bullets and table rows below the marked headings. Also returns a finding
/// when no heading is marked.
fn claims(text: &str) -> (Vec<Claim>, Vec<String>) {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut marked = false;
    let mut sections = 0;
    let mut open = false;
    let mut row = 0;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            marked = is_marked(line);
            sections += usize::from(marked);
            open = false;
        } else if !marked || line.trim().is_empty() {
            open = false;
            row = 0;
        } else if line.starts_with('|') {
            row += 1;
            // The first two rows are the table header and its separator.
            if row > 2 {
                found.push((index + 1, line.to_owned()));
            }
        } else if line.starts_with("- ") {
            found.push((index + 1, line.to_owned()));
            open = true;
        } else if open && let Some((_, item)) = found.last_mut() {
            item.push(' ');
            item.push_str(line.trim());
        }
    }
    let mut findings = Vec::new();
    if sections == 0 {
        findings.push(format!("has no heading marked {CLAIMS}"));
    }
    let items = found
        .into_iter()
        .map(|(line, item)| Claim {
            line,
            tests: cited(&item),
        })
        .collect();
    (items, findings)
}

/// Returns the test names after "Test:" or "Tests:".
fn cited(item: &str) -> Vec<String> {
    let Some(at) = item.find("Test: ").or_else(|| item.find("Tests: ")) else {
        return Vec::new();
    };
    item[at..]
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// Returns every name that a document may cite: names of functions in Rust, Python and shell, names
/// of PHP and browser cases, which are sentences, titles of tests of the extension, and ids of the
/// attack table.
fn names(root: &Path) -> Result<BTreeSet<String>, TaskError> {
    let mut names = BTreeSet::new();
    for place in PLACES {
        for path in tree::files(&root.join(place))? {
            let python = tree::has_extension(&path, "py");
            let shell = path.extension().is_none() && place == "tests";
            let php = tree::has_extension(&path, "php") && place == "tests";
            let titled = tree::has_extension(&path, "phpt") || tree::has_extension(&path, "mjs");
            let vectors = path.file_stem().is_some_and(|name| name == "vectors");
            if !(tree::has_extension(&path, "rs") || python || shell || php || titled || vectors) {
                continue;
            }
            let Ok(text) = std::fs::read_to_string(&path) else {
                // A fixture without an extension may hold bytes that are not UTF-8.
                continue;
            };
            names.extend(text.lines().filter_map(|line| named(line, vectors)));
            names.extend(titles(&text));
        }
    }
    Ok(names)
}

fn named(line: &str, vectors: bool) -> Option<String> {
    let line = line.trim_start();
    let rest = ["fn ", "async fn ", "def ", "function "]
        .iter()
        .find_map(|word| line.strip_prefix(word));
    let text = match rest {
        Some(rest) => rest,
        None if vectors => line.split_once("\"id\": \"")?.1,
        None => line.strip_suffix("() {").filter(|name| is_name(name))?,
    };
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'));
    let name = &text[..end.unwrap_or(text.len())];
    (!name.is_empty()).then(|| name.to_owned())
}

/// Test names that are sentences: the line after `$t->test(` in the WordPress suite, the line
/// after `--TEST--` in a test of the extension, and `await test( '…',` in the browser suite.
fn titles(text: &str) -> Vec<String> {
    let browser = text.lines().filter_map(|line| {
        let rest = line.trim().strip_prefix("await test( '")?;
        Some(rest.split_once("',")?.0.replace("\\'", "'"))
    });
    text.lines()
        .zip(text.lines().skip(1))
        .filter_map(|(opening, line)| match opening.trim() {
            "$t->test(" => {
                let title = line.trim().strip_prefix('\'')?.strip_suffix("',")?;
                Some(title.replace("\\'", "'"))
            }
            "--TEST--" => Some(line.trim().to_owned()),
            _ => None,
        })
        .chain(browser)
        .collect()
}

fn is_name(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# A\n- no claim\n## Stops (tested)\n- one. Test: `a`.\n- two\n  lines. Tests: `b`,\n  `c`.\n- none\n\n| x | y |\n|---|---|\n| r | Test: `d` |\n## B\n- free\n";

    #[test]
    fn bullets_and_table_rows_below_headings_marked_tested_are_claims_that_cite_tests() {
        let (items, findings) = claims(TEXT);
        let tests: Vec<Vec<&str>> = items
            .iter()
            .map(|i| i.tests.iter().map(String::as_str).collect())
            .collect();
        assert_eq!(tests, [vec!["a"], vec!["b", "c"], vec![], vec!["d"]]);
        assert!(findings.is_empty());
        assert_eq!(claims("# A\n- x\n").1.len(), 1);
    }

    #[test]
    fn names_of_tests_are_recognised_in_rust_python_shell_and_json_lines() {
        for (line, name) in [
            ("    fn a_test() {", "a_test"),
            ("    async fn another() {", "another"),
            ("def case_one(bench):", "case_one"),
            ("leak_of_a_mount() {", "leak_of_a_mount"),
        ] {
            assert_eq!(named(line, false).as_deref(), Some(name));
        }
        assert_eq!(
            named("{\"id\": \"io-uring\", \"axis\": \"syscalls\"}", true).as_deref(),
            Some("io-uring")
        );
        assert_eq!(named("let x = 1;", false), None);
    }

    #[test]
    fn titles_of_php_phpt_and_javascript_tests_are_recognised() {
        let php =
            "\t$t->test(\n\t\t'the caller\\'s codes: all',\n\t\tstatic function () {}\n\t);\n";
        assert_eq!(titles(php), ["the caller's codes: all"]);
        assert_eq!(titles("--TEST--\nRun: input\n--FILE--\n"), ["Run: input"]);
        let browser = "\tawait test( 'keys: all of it', async () => {\n";
        assert_eq!(titles(browser), ["keys: all of it"]);
        assert!(titles("'a sentence',\n").is_empty());
    }

    #[test]
    fn pages_with_claims_are_discovered_and_a_missing_required_page_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("SECURITY.md", "# No marked heading\n");
        write("docs/security/deep/new.md", "## New (tested)\n- x\n");
        write("docs/plain.md", "# Plain\nHow the (tested) mark works.\n");
        let (documents, findings) = documents(root.path()).unwrap();
        let shown: Vec<String> = documents
            .iter()
            .map(|path| tree::shown(root.path(), path))
            .collect();
        assert_eq!(shown, ["SECURITY.md", "docs/security/deep/new.md"]);
        assert_eq!(findings.len(), REQUIRED.len() - 1);
        let findings = check(root.path()).unwrap();
        for wanted in [
            "docs/security/secrets.md is missing",
            "SECURITY.md has no heading marked (tested)",
            "docs/security/deep/new.md:2: a claim without a test",
        ] {
            assert!(
                findings.iter().any(|one| one.starts_with(wanted)),
                "{wanted}"
            );
        }
    }

    #[test]
    fn claim_can_cite_a_test_title_that_is_a_sentence() {
        let (items, _) = claims("# A (tested)\n- one. Tests: `it is, so`,\n  `b_c`.\n");
        assert_eq!(items[0].tests, ["it is, so", "b_c"]);
    }
}
