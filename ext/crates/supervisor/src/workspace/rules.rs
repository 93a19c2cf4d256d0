//! Rules on paths, and breaches of them.

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wp_codebox_contracts::hex;

/// Schema of the answer.
pub const WORKSPACE_POLICY_RESULT: &str = "wp-codebox/workspace-policy-result/v1";

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A path of the policy is none.
    InvalidPolicyPath,
    /// A changed path leads out of the workspace.
    PathOutsideWorkspace,
    /// A changed path is below no writable root.
    PathOutsideWritableRoots,
    /// A changed path is hidden by the policy.
    HiddenPath,
    /// A symbolic link.
    Symlink,
    /// A file with several names.
    Hardlink,
    /// A submodule.
    Gitlink,
    /// Metadata of git below the root.
    NestedGitMetadata,
    /// A changed path that git ignores.
    IgnoredPath,
    /// A device, socket or FIFO.
    SpecialFile,
    /// An index with conflicts.
    UnmergedIndex,
}

impl Code {
    /// Name in documents.
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

/// One breach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which rule.
    pub code: Code,
    /// Path below the workspace.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

impl Violation {
    /// A breach of a rule at a path.
    pub fn new(code: Code, path: &str, message: &str) -> Self {
        Self {
            code,
            path: path.to_owned(),
            message: message.to_owned(),
        }
    }
}

/// Whether git is asked too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitBacking {
    /// Only the tree is judged.
    None,
    /// Git says what changed and what is ignored.
    Git,
}

/// Rules on the paths of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// As the digest has them: without `./`, in order.
    writable: Vec<String>,
    hidden: Vec<String>,
    /// Paths of the policy that are none.
    pub invalid: Vec<Violation>,
}

/// A path below a workspace as the digest has it; none when it leads out or is no path.
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

/// Whether a root is or holds a path.
fn holds(root: &str, path: &str) -> bool {
    let root = root.strip_suffix('/').unwrap_or(root);
    root == "."
        || path == root
        || path
            .strip_prefix(root)
            .is_some_and(|rest| rest.starts_with('/'))
}

impl Rules {
    /// Rules of what a caller gave.
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

    /// What a changed or present file breaks by its path.
    pub fn judge(&self, path: &str) -> Option<Violation> {
        if self.hidden.iter().any(|root| holds(root, path)) {
            let message = "the path is hidden by the workspace policy";
            return Some(Violation::new(Code::HiddenPath, path, message));
        }
        if !self.writable.iter().any(|root| holds(root, path)) {
            let message = "the path lies outside of every writable root";
            return Some(Violation::new(
                Code::PathOutsideWritableRoots,
                path,
                message,
            ));
        }
        None
    }

    /// Whether a writable root lies below a directory.
    pub fn leads_to_a_root(&self, directory: &str) -> bool {
        self.writable.iter().any(|root| {
            root.strip_prefix(directory)
                .is_some_and(|r| r.starts_with('/'))
        })
    }

    /// sha256 of the policy in its one spelling.
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

/// The answer: violations once each, by path, then code.
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
    fn the_digest_is_that_of_the_public_system() {
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
    fn a_root_with_a_slash_is_its_directory() {
        let rules = rules(&["src", "./docs/"], &["docs/private"]);
        for good in ["src", "src/a.php", "docs/a.md", "docs"] {
            assert_eq!(rules.judge(good), None, "{good}");
        }
        for (bad, code) in [
            ("srcs/a.php", Code::PathOutsideWritableRoots),
            ("a.php", Code::PathOutsideWritableRoots),
            ("docs/private/a.md", Code::HiddenPath),
            ("docs/private", Code::HiddenPath),
        ] {
            assert_eq!(rules.judge(bad).unwrap().code, code, "{bad}");
        }
    }

    #[test]
    fn paths_that_lead_out_are_named() {
        let rules = rules(&[".", "../x", "/etc", "a/../b"], &["a//b"]);
        assert_eq!(rules.invalid.len(), 4);
        assert_eq!(rules.judge("anything"), None);
    }
}
