//! Path rules of a workspace and their violations.

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wp_codebox_contracts::hex;

/// Schema id of the result document.
pub const WORKSPACE_POLICY_RESULT: &str = "wp-codebox/workspace-policy-result/v1";

/// Which rule a path violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The policy contains an invalid path.
    InvalidPolicyPath,
    /// A changed path lies outside of every workspace.
    PathOutsideWorkspace,
    /// The path is below no writable root.
    PathOutsideWritableRoots,
    /// The path lies in a part of the workspace that the policy hides.
    HiddenPath,
    /// The path is a symbolic link.
    Symlink,
    /// The file has several hard links.
    Hardlink,
    /// The path is a submodule.
    Gitlink,
    /// The path is a `.git` directory or file. The `.git` at the workspace's root is allowed if git
    /// reports the changes.
    NestedGitMetadata,
    /// git ignores the path, so it would not report a change of the path.
    IgnoredPath,
    /// The path is a device, socket or FIFO, or its name is not UTF-8.
    SpecialFile,
    /// The git index contains conflicts.
    UnmergedIndex,
}

impl Code {
    /// Returns the code as documents contain it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::InvalidPolicyPath => "invalid-policy-path",
            Code::PathOutsideWorkspace => "path-outside-workspace",
            Code::PathOutsideWritableRoots => "path-outside-writable-roots",
            Code::HiddenPath => "hidden-path",
            Code::Symlink => "symlink",
            Code::Hardlink => "hardlink",
            Code::Gitlink => "gitlink",
            Code::NestedGitMetadata => "nested-git-metadata",
            Code::IgnoredPath => "ignored-path",
            Code::SpecialFile => "special-file",
            Code::UnmergedIndex => "unmerged-index",
        }
    }
}

/// One path that violates a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which rule the path violates.
    pub code: Code,
    /// The violating path: relative to the workspace, or a guest path in the result of a recipe.
    pub path: String,
    /// Description of the violation for people.
    pub message: String,
}

impl Violation {
    /// Creates a violation at a path.
    pub fn new(code: Code, path: &str, message: &str) -> Self {
        Self {
            code,
            path: path.to_owned(),
            message: message.to_owned(),
        }
    }
}

/// Where the information about changes comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitBacking {
    /// The directory tree only.
    None,
    /// The directory tree and git, which reports changed and ignored paths.
    Git,
}

/// The rules of one workspace: which paths may be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Writable roots in the form that [`Self::sha256`] hashes: without `./`, sorted.
    writable: Vec<String>,
    hidden: Vec<String>,
    /// Violations for invalid paths in the policy itself.
    pub invalid: Vec<Violation>,
}

/// Normalizes a path relative to the workspace, to the form that [`Rules::sha256`] hashes; `None`
/// if the path is invalid or leads out of the workspace.
fn plain(path: &str) -> Option<String> {
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    let path = if path.is_empty() { "." } else { path };
    if path == "." {
        return Some(path.to_owned());
    }
    let bare = path.strip_suffix('/').unwrap_or(path);
    let good = !bare.contains('\0')
        && !bare.starts_with('/')
        && bare.split('/').all(|s| !matches!(s, "" | "." | ".."));
    good.then(|| path.to_owned())
}

/// Returns whether `root` is the path or a directory above it.
fn holds(root: &str, path: &str) -> bool {
    let root = root.strip_suffix('/').unwrap_or(root);
    root == "."
        || path == root
        || path
            .strip_prefix(root)
            .is_some_and(|rest| rest.starts_with('/'))
}

impl Rules {
    /// Builds the rules from the paths that the caller lists as writable and as hidden.
    pub fn new(writable: &[String], hidden: &[String]) -> Self {
        let mut invalid = Vec::new();
        let mut read = |given: &[String], what: &str| -> Vec<String> {
            let mut list: Vec<String> = given
                .iter()
                .filter_map(|path| {
                    let found = plain(path);
                    if found.is_none() {
                        let message =
                            format!("a {what} must be a path below the workspace, without `..`");
                        invalid.push(Violation::new(Code::InvalidPolicyPath, path, &message));
                    }
                    found
                })
                .collect();
            list.sort();
            list
        };
        Self {
            writable: read(writable, "writable root"),
            hidden: read(hidden, "hidden path"),
            invalid,
        }
    }

    /// Returns which rule a file violates by its path, if any.
    pub fn check_path(&self, path: &str) -> Option<Violation> {
        if self.hidden.iter().any(|root| holds(root, path)) {
            let message = "the path is hidden by the workspace policy";
            return Some(Violation::new(Code::HiddenPath, path, message));
        }
        if !self.writable.iter().any(|root| holds(root, path)) {
            let message = "the path lies outside of every writable root of the workspace policy";
            return Some(Violation::new(
                Code::PathOutsideWritableRoots,
                path,
                message,
            ));
        }
        None
    }

    /// Returns whether a writable root lies below a directory.
    pub fn leads_to_a_root(&self, directory: &str) -> bool {
        self.writable.iter().any(|root| {
            root.strip_prefix(directory)
                .is_some_and(|r| r.starts_with('/'))
        })
    }

    /// Returns the SHA-256 of the rules and the workspace's path, in canonical JSON.
    pub fn sha256(&self, workspace_root: &str, git: GitBacking) -> String {
        let text = json!({
            "workspaceRoot": workspace_root,
            "writableRoots": self.writable,
            "hiddenPaths": self.hidden,
            "gitBacked": git == GitBacking::Git,
        })
        .to_string();
        hex(&Sha256::digest(text.as_bytes()))
    }
}

/// Builds the result document: violations without duplicates, ordered by path and code.
pub fn document(policy_sha256: &str, mut violations: Vec<Violation>) -> Value {
    violations.sort_by(|a, b| {
        (&a.path, a.code.as_str(), &a.message).cmp(&(&b.path, b.code.as_str(), &b.message))
    });
    violations.dedup();
    json!({
        "schema": WORKSPACE_POLICY_RESULT,
        "passed": violations.is_empty(),
        "policy_sha256": policy_sha256,
        "violations": violations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(writable: &[&str], hidden: &[&str]) -> Rules {
        let list = |rows: &[&str]| rows.iter().map(|r| (*r).to_owned()).collect::<Vec<_>>();
        Rules::new(&list(writable), &list(hidden))
    }

    #[test]
    fn workspace_policy_digest_equals_the_recorded_value() {
        let rules = rules(&["src", "./docs/"], &["secrets"]);
        assert_eq!(
            rules.sha256("/workspace/demo", GitBacking::Git),
            "addde1fe46bcddce9c76e89e63981a933678dfd6a56ff189f41c3f055bc20b49"
        );
        assert_ne!(
            rules.sha256("/workspace/demo", GitBacking::None),
            rules.sha256("/workspace/demo", GitBacking::Git)
        );
    }

    #[test]
    fn path_outside_the_writable_roots_or_below_a_hidden_path_is_a_violation() {
        let rules = rules(&["src", "./docs/"], &["docs/private"]);
        for good in ["src", "src/a.php", "docs/a.md", "docs"] {
            assert_eq!(rules.check_path(good), None, "{good}");
        }
        for (bad, code) in [
            ("srcs/a.php", Code::PathOutsideWritableRoots),
            ("a.php", Code::PathOutsideWritableRoots),
            ("docs/private/a.md", Code::HiddenPath),
            ("docs/private", Code::HiddenPath),
        ] {
            assert_eq!(rules.check_path(bad).unwrap().code, code, "{bad}");
        }
    }

    #[test]
    fn invalid_writable_and_hidden_paths_of_a_workspace_policy_are_reported() {
        let rules = rules(&[".", "../x", "/etc", "a/../b"], &["a//b"]);
        assert_eq!(rules.invalid.len(), 4);
        assert_eq!(rules.check_path("anything"), None);
    }
}
