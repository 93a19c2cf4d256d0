//! Checks that relative links between the Markdown files of the repository resolve.
//!
//! A link is `[text](target)` outside of code. Its target must be a file or directory of the
//! checkout, relative to the page; a fragment must be the anchor of a heading of the target page,
//! formed as GitHub forms it. Links with a scheme, such as `https:`, are not followed.

use crate::findings::TaskError;
use crate::tree;
use std::collections::BTreeSet;
use std::path::Path;

/// Directories whose Markdown files are not checked, because they are build output.
const SKIPPED: &[&str] = &["dist/"];

/// Returns one finding for each link whose target does not exist.
pub fn check(root: &Path) -> Result<Vec<String>, TaskError> {
    let mut findings = Vec::new();
    for path in tree::files(root)? {
        let page = tree::shown(root, &path);
        if !tree::has_extension(&path, "md") || SKIPPED.iter().any(|one| page.starts_with(one)) {
            continue;
        }
        let text = tree::read(&path)?;
        let directory = path.parent().unwrap_or(root);
        for (line, target) in links(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target.as_str(), ""));
            let to = match file {
                "" => path.clone(),
                _ => directory.join(file),
            };
            if !to.exists() {
                findings.push(format!("{page}:{line}: the link {target} leads to no file"));
            } else if !anchor.is_empty()
                && tree::has_extension(&to, "md")
                && !anchors(&tree::read(&to)?).contains(anchor)
            {
                findings.push(format!(
                    "{page}:{line}: {target} names no heading of that page"
                ));
            }
        }
    }
    Ok(findings)
}

/// Returns line number and target of every relative link outside of code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced || line.starts_with("    ") {
            continue;
        }
        // Odd parts lie between backticks.
        for prose in line.split('`').step_by(2) {
            found.extend(
                prose
                    .split("](")
                    .skip(1)
                    .filter_map(|rest| Some(rest.split_once(')')?.0))
                    .filter(|target| !target.contains(':') && !target.is_empty())
                    .map(|target| (index + 1, target.to_owned())),
            );
        }
    }
    found
}

/// Returns the anchors of the page's headings: lower case, spaces as hyphens, other punctuation
/// dropped.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim();
            title
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| {
                    if c == ' ' {
                        '-'
                    } else {
                        c.to_ascii_lowercase()
                    }
                })
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_links_in_code_or_with_a_url_scheme_are_not_checked() {
        let text = "see [a](b.md) and [c](d/e.md#f)\n`[x](y.md)` [w](https://example.org)\n```\n[n](o.md)\n```\n";
        assert_eq!(
            links(text),
            [(1, "b.md".to_owned()), (1, "d/e.md#f".to_owned())]
        );
    }

    #[test]
    fn markdown_link_to_a_missing_file_or_heading_is_reported() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("docs")).unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        write("README.md", "[good](docs/a.md#one-two) [bad](docs/b.md)\n");
        write(
            "docs/a.md",
            "# One `two`\n[up](../README.md)\n[x](#three)\n",
        );
        assert_eq!(
            check(root.path()).unwrap(),
            [
                "README.md:1: the link docs/b.md leads to no file",
                "docs/a.md:3: #three names no heading of that page",
            ]
        );
    }
}
