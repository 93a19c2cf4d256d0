//! Remembers the commits that this site made on a branch.
//!
//! Invariants: the new commit is recorded before the branch gets it, together with the one before.
//! So after a crash at any moment the tip of the branch is a recorded commit.

use super::error::GitBranchError;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::sha256;
use wp_codebox_contracts::Sha256Hex;

/// A commit, and what was approved for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    /// Hash of the commit.
    pub commit: String,
    /// SHA-256 of the bundle's manifest.
    pub manifest_sha256: Sha256Hex,
    /// SHA-256 of the approved patch.
    pub patch_sha256: Sha256Hex,
    /// Approved paths that the commit has.
    pub files: Vec<String>,
}

/// A commit on the branch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    /// Hash of the commit.
    pub commit: String,
    /// Approved paths that it has: all but directories.
    pub files: Vec<String>,
}

/// The commits of one branch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    repository: String,
    branch: String,
    commits: Vec<Made>,
}

/// The record of one branch of one repository.
pub(super) struct Record {
    file: PathBuf,
    document: Document,
}

impl Record {
    /// Reads the record, which is empty for a new branch.
    pub(super) fn open(
        directory: &Path,
        repository: &Path,
        branch: &str,
    ) -> Result<Self, GitBranchError> {
        let repository = repository.to_string_lossy().into_owned();
        let name = sha256(format!("{repository}\0{branch}").as_bytes());
        let file = directory.join(format!("{}.json", name.as_str()));
        let stored = match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice::<Document>(&bytes).ok(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            file,
            document: stored.unwrap_or(Document {
                repository,
                branch: branch.to_owned(),
                commits: Vec::new(),
            }),
        })
    }

    /// Returns a commit that this site made on the branch.
    pub(super) fn of(&self, commit: &str) -> Option<&Made> {
        let mut made = self.document.commits.iter();
        made.find(|made| made.commit == commit)
    }

    /// Stores a new commit and the one that is the tip of the branch now.
    pub(super) fn add(&mut self, tip: Option<&str>, new: Made) -> Result<(), GitBranchError> {
        let old = tip.and_then(|tip| self.of(tip)).cloned();
        self.document.commits = old.into_iter().chain([new]).collect();
        let bytes = serde_json::to_vec(&self.document).map_err(std::io::Error::from)?;
        let next = self.file.with_extension("new");
        let mut file = File::create(&next)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&next, &self.file)?;
        if let Some(directory) = self.file.parent() {
            File::open(directory)?.sync_all()?;
        }
        Ok(())
    }
}
