//! Types of the JSON documents that the journal of an apply or undo consists of.

use crate::metadata::Metadata;
use crate::path::text;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use wp_codebox_contracts::{BundleOrigin, RunId, Sha256Hex, checked_text};

/// Id of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApplyId(String);

impl ApplyId {
    /// Accepts `apply_` or `undo_`, followed by 32 hexadecimal digits.
    pub fn new(text: impl Into<String>) -> Result<Self, &'static str> {
        let text = text.into();
        let digits = text
            .strip_prefix("apply_")
            .or_else(|| text.strip_prefix("undo_"));
        let valid = digits.is_some_and(|d| {
            d.len() == 32
                && d.bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        });
        match valid {
            true => Ok(Self(text)),
            false => Err("an id is apply_ or undo_ with 32 hexadecimal digits"),
        }
    }

    /// Returns the id of an undo with the same digits.
    pub(crate) fn of_undo(&self) -> Self {
        let digits = self.0.trim_start_matches("apply_");
        Self(format!("undo_{}", digits.trim_start_matches("undo_")))
    }
}

checked_text!(ApplyId, &'static str);

/// The bundle from which a change was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleReference {
    /// Id of the bundle.
    pub artifact_id: String,
    /// SHA-256 of the bundle's manifest.
    pub manifest_sha256: Sha256Hex,
    /// Run that wrote the bundle, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Origin of the bundle's contents that the approver confirmed; absent for the changes of a
    /// sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_origin: Option<BundleOrigin>,
}

/// Document of a transaction: its targets and steps, and the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    pub schema: String,
    pub id: ApplyId,
    /// Time at which the transaction began, in RFC 3339.
    pub created_at: String,
    pub bundle: BundleReference,
    /// The apply that this transaction undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<ApplyId>,
    pub targets: Vec<Target>,
    /// Steps in the order of their execution; empty until everything is staged.
    #[serde(default)]
    pub steps: Vec<Step>,
}

impl Record {
    /// Indexes of all targets.
    pub(crate) fn all_targets(&self) -> BTreeSet<usize> {
        (0..self.targets.len()).collect()
    }

    /// Indexes of the steps that callers see: those of files and links, and of directories that are
    /// empty before or after the change. Other directories follow from the files in them.
    pub(crate) fn named(&self) -> BTreeSet<usize> {
        let mut paths = BTreeSet::new();
        let mut files = BTreeSet::new();
        for step in &self.steps {
            paths.insert((step.target, step.path.clone()));
            if is_file(step) {
                files.insert((step.target, &step.path));
            }
        }
        let is_empty = |step: &Step| {
            let below = (step.target, [&step.path[..], b"/"].concat());
            let next = paths.range(&below..).next();
            !next.is_some_and(|(target, path)| *target == below.0 && path.starts_with(&below.1))
        };
        let is_named = |step: &Step| {
            is_file(step) || (!files.contains(&(step.target, &step.path)) && is_empty(step))
        };
        let steps = self.steps.iter().enumerate();
        steps
            .filter(|(_, step)| is_named(step))
            .map(|(index, _)| index)
            .collect()
    }
}

/// Schema id of [`Record`].
pub(crate) const SCHEMA: &str = "wp-codebox/apply-journal/v1";

/// A directory of the host that the transaction changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    /// Guest path of the mount.
    pub mount: String,
    /// Real path of the directory on the host.
    pub path: String,
    /// Inode number of the directory when the transaction began; absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
}

/// One step of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    /// Index of the target in [`Record::targets`].
    pub target: usize,
    /// Path relative to the target.
    #[serde(with = "text")]
    pub path: Vec<u8>,
    #[serde(flatten)]
    pub action: Action,
}

/// Returns whether the step changes a file or link, not a directory.
fn is_file(step: &Step) -> bool {
    match step.action {
        Action::Replace { .. } | Action::Place { .. } | Action::Remove { .. } => true,
        Action::MakeDirectory { .. } | Action::RemoveDirectory { .. } => false,
    }
}

/// Change that a step makes at its path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub(crate) enum Action {
    /// Replaces the file or link `from` by `to`.
    Replace { from: Stored, to: Stored },
    /// Creates a file or link where nothing exists.
    Place { to: Stored },
    /// Removes a file or link.
    Remove { from: Stored },
    /// Creates a directory.
    MakeDirectory { metadata: Metadata },
    /// Removes an empty directory.
    RemoveDirectory { metadata: Metadata, need: Need },
}

/// What an apply does if a directory that it should remove is not empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Need {
    /// It fails, because the change creates a file at the path of the directory.
    Required,
    /// It keeps the directory and goes on.
    IfEmpty,
}

/// A file or link, as a journal describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    pub kind: Kind,
    /// SHA-256 of the contents of the file or of the target of the link.
    pub sha256: Sha256Hex,
    pub metadata: Metadata,
}

/// Kind of a stored entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    File,
    Link,
}

impl Stored {
    /// Returns true if both have the same kind, contents and execute permission. Owner, other
    /// permissions and attributes are not compared: an administrator can change them at any time.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let executable = |one: &Self| one.kind == Kind::File && one.metadata.mode & 0o111 != 0;
        self.kind == other.kind
            && self.sha256 == other.sha256
            && executable(self) == executable(other)
    }
}
