//! Stores which commits on a branch this site made.
//!
//! Invariant: a record with the new commit and the present tip is written before the branch is set.
//! So after a crash at any moment the tip of the branch is a recorded commit.

use super::error::GitBranchError;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::sha256;
use wp_codebox_contracts::Sha256Hex;

/// A commit that this site made, and the approved patch that it contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    /// Hash of the commit.
    pub commit: String,
    /// SHA-256 of the bundle's manifest.
    pub manifest_sha256: Sha256Hex,
    /// SHA-256 of the approved patch.
    pub patch_sha256: Sha256Hex,
    /// Approved paths that the commit contains: all except directories.
    pub files: Vec<String>,
}

/// Result of a call: the commit that the branch has now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    /// Hash of the commit.
    pub commit: String,
    /// Approved paths that the commit contains: all except directories.
    pub files: Vec<String>,
}

/// Contents of a record: the last two commits that this site made on one branch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    repository: String,
    branch: String,
    commits: Vec<Made>,
}

/// The record of one branch of one repository, with its file.
pub(super) struct Record {
    file: PathBuf,
    document: Document,
}

impl Record {
    /// Reads the record; it is empty if this site made no commit on the branch.
    pub(super) fn open(
        directory: &Path,
        repository: &Path,
        branch: &str,
    ) -> Result<Self, GitBranchError> {
        let repository = repository.to_string_lossy().into_owned();
        let name = sha256(format!("{repository}\0{branch}").as_bytes());
        let name = format!("{}.json", name.as_str());
        let file = directory.join(&name);
        let stored = match fs::read(&file) {
            Ok(bytes) => {
                let damaged = |_| GitBranchError::Record { name };
                Some(serde_json::from_slice::<Document>(&bytes).map_err(damaged)?)
            }
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

    /// Returns the entry of a commit if this site made it on the branch.
    pub(super) fn of(&self, commit: &str) -> Option<&Made> {
        let mut made = self.document.commits.iter();
        made.find(|made| made.commit == commit)
    }

    /// Stores the new commit and the commit at the present tip of the branch; drops all older ones.
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
