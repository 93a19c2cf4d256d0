//! The bundles of a site, found by bundle id, run id or a prefix of either.
//!
//! Invariants: a broken bundle is listed, can be opened and discarded, and hides no other bundle.
//! Nothing outside the artifacts directory is opened or removed. An id that matches several
//! bundles is an error, because all runs without changes have the same bundle id.

use crate::attestation::MANIFEST_PATH;
use crate::bundle::{TEMPORARY_PREFIX, staging_prefix};
use crate::digest::MAX_DOCUMENT;
use crate::dirfd::{Dir, ReadOutcome};
use crate::json::Json;
use crate::removal::{RemovalError, remove_tree_in};
use rustix::fd::AsFd;
use rustix::fs::{self, FileType, RenameFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::Value;
use wp_codebox_contracts::{CodedError, RunId, RunSummary, SiteId};

const DISCARDING_PREFIX: &str = ".discarding-";
const ID_PREFIX: &str = "artifact-bundle-sha256-";

/// Reason why a bundle cannot be found or removed.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum StoreError {
    /// The caller gave no bundle id or run id.
    #[error("the request names no bundle; give the id of a bundle or of its run")]
    #[code(ArtifactIdMissing)]
    Missing,
    /// No bundle has this id, or an id that starts with it.
    #[error("no bundle matches {reference:?}; list the bundles to see their ids")]
    #[code(ArtifactNotFound)]
    NotFound {
        /// The id or prefix that the caller gave.
        reference: String,
    },
    /// Several bundles have this id, or an id that starts with it.
    #[error(
        "the id {reference:?} matches {count} bundles; give the whole run id of one, for example {examples}"
    )]
    #[code(ArtifactAmbiguous)]
    Ambiguous {
        /// The id or prefix that the caller gave.
        reference: String,
        /// Number of matching bundles.
        count: usize,
        /// Run ids of up to five of the matching bundles, as text.
        examples: String,
    },
    /// The name of a bundle refers to a link or to a directory of another file system.
    #[error(
        "the entry {run_id} of the artifacts directory is a link or is on another file system, so it is not used as a bundle; remove the link or unmount the directory"
    )]
    #[code(ArtifactOutsideRoot)]
    Outside {
        /// Run id of the bundle, which is also its directory name.
        run_id: RunId,
    },
    /// Files of a discarded bundle, or of an interrupted writer or discard, could not be removed.
    #[error(transparent)]
    #[code(source)]
    Removal(#[from] RemovalError),
    /// A system call on the artifacts directory failed.
    #[error(
        "the artifacts directory could not be {step}: {source}; check owner and mode of the state directory"
    )]
    #[code(StateDirInvalid)]
    Io {
        /// Failed operation: `opened`, `read` or `removed`.
        step: &'static str,
        /// Error number of the system call that failed.
        #[source]
        source: Errno,
    },
}

const fn io(step: &'static str, source: Errno) -> StoreError {
    StoreError::Io { step, source }
}

/// One stored bundle in the list of a site's bundles. Members that cannot be read are empty.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BundleRow {
    /// Bundle id, if the manifest can be read.
    pub artifact_id: Option<String>,
    /// Id of the run that made the bundle; also the name of the bundle's directory.
    pub run_id: RunId,
    /// Creation time from the manifest, in RFC 3339.
    pub created_at: String,
    /// Outcome of the run from the bundle's review, e.g. `succeeded`.
    pub outcome: String,
    /// Summary of the run from the bundle's review, in one sentence.
    pub summary: String,
    /// Summary as a code with parameters, from the bundle's review, if this version knows the
    /// code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_detail: Option<RunSummary>,
    /// Number of changed paths from the bundle's review.
    pub changed_files: u64,
    /// Whether the manifest could be read. Only a verification checks the other files.
    pub valid_manifest: bool,
}

/// A bundle that was found by its id or run id.
#[derive(Debug)]
pub struct StoredBundle {
    /// The bundle's row in the list of bundles.
    pub row: BundleRow,
    /// Open directory of the bundle.
    pub directory: Dir,
}

impl StoredBundle {
    /// Reads a JSON document of the bundle, e.g. `manifest.json`; returns null if it cannot be
    /// read.
    #[must_use]
    pub fn document(&self, member: &str) -> Value {
        document(&self.directory, member).map_or(Value::Null, |d| d.to_value())
    }

    /// Reads a file of the bundle, e.g. `files/patch.diff`; returns `None` if it cannot be read.
    #[must_use]
    pub fn bytes(&self, member: &str) -> Option<Vec<u8>> {
        bytes(&self.directory, member)
    }
}

fn bytes(dir: &Dir, member: &str) -> Option<Vec<u8>> {
    match dir.read(member.as_bytes(), MAX_DOCUMENT) {
        Ok((ReadOutcome::Bytes(bytes), _)) => Some(bytes),
        Ok((ReadOutcome::TooLarge, _)) | Err(_) => None,
    }
}

fn document(dir: &Dir, member: &str) -> Option<Json> {
    Json::parse(&bytes(dir, member)?).ok()
}

/// Ids of a bundle that was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Discarded {
    /// Id of the deleted bundle, if its manifest could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_id: Option<String>,
    /// Id of the run that made the deleted bundle.
    pub run_id: RunId,
    /// Always true; a failure is an error.
    pub discarded: bool,
}

/// The bundles of one site.
#[derive(Debug)]
pub struct Store {
    artifacts: Dir,
}

impl Store {
    /// Opens `<state>/sites/<site>/artifacts` and creates it with mode 0700 if it is missing.
    pub fn open(state_dir: &Dir, site: &SiteId) -> Result<Self, StoreError> {
        let artifacts = super::site_dir(state_dir, site)
            .and_then(|dir| dir.private_dir("artifacts"))
            .map_err(|source| io("opened", source))?;
        Ok(Self { artifacts })
    }

    /// Returns the artifacts directory of the site, which contains one directory per bundle.
    #[must_use]
    pub const fn directory(&self) -> &Dir {
        &self.artifacts
    }

    /// Returns all bundles of the site, newest first, and those with an unreadable manifest last.
    pub fn list(&self) -> Result<Vec<BundleRow>, StoreError> {
        let names = self.artifacts.names().map_err(|e| io("read", e))?;
        let mut rows: Vec<BundleRow> = names
            .into_iter()
            .filter_map(|name| RunId::new(String::from_utf8(name).ok()?).ok())
            .map(|run_id| self.row(run_id))
            .collect();
        rows.sort_by(|a, b| {
            let key = |row: &BundleRow| (row.valid_manifest, row.created_at.clone());
            key(b).cmp(&key(a)).then_with(|| a.run_id.cmp(&b.run_id))
        });
        Ok(rows)
    }

    fn row(&self, run_id: RunId) -> BundleRow {
        let dir = self.artifacts.dir(run_id.as_str().as_bytes()).ok();
        let read = |member| dir.as_ref().and_then(|d| document(d, member));
        let (manifest, review) = (read(MANIFEST_PATH), read("files/review.json"));
        let text = |document: &Option<Json>, key: &str| {
            let value = document.as_ref().and_then(|d| d.get(key));
            value.and_then(Json::as_str).map(str::to_owned)
        };
        let artifact_id = text(&manifest, "id");
        let total = review
            .as_ref()
            .and_then(|r| r.get("stats")?.get("total")?.as_f64());
        BundleRow {
            run_id,
            created_at: text(&manifest, "createdAt").unwrap_or_default(),
            outcome: text(&review, "outcome").unwrap_or_default(),
            summary: text(&review, "summary").unwrap_or_default(),
            summary_detail: review
                .as_ref()
                .and_then(|r| serde_json::from_value(r.get("summaryDetail")?.to_value()).ok()),
            // The cast saturates, so a number outside the range of `u64` in a tampered document
            // does no harm.
            changed_files: total.unwrap_or_default() as u64,
            valid_manifest: artifact_id.is_some(),
            artifact_id,
        }
    }

    /// Finds a bundle by bundle id, run id, or a unique prefix of either. `reference` may omit the
    /// constant beginning of the id, `artifact-bundle-sha256-` or `run_`.
    pub fn resolve(&self, reference: &str) -> Result<StoredBundle, StoreError> {
        let row = self.find(reference)?;
        match self.artifacts.dir(row.run_id.as_str().as_bytes()) {
            Ok(directory) => Ok(StoredBundle { row, directory }),
            Err(Errno::LOOP | Errno::NOTDIR | Errno::XDEV) => {
                Err(StoreError::Outside { run_id: row.run_id })
            }
            Err(source) => Err(io("read", source)),
        }
    }

    fn find(&self, reference: &str) -> Result<BundleRow, StoreError> {
        let wanted = reference.trim();
        if wanted.is_empty() {
            return Err(StoreError::Missing);
        }
        let rows = self.list()?;
        let id = |row: &BundleRow| row.artifact_id.clone().unwrap_or_default();
        if let Some(row) = rows.iter().find(|r| r.run_id.as_str() == wanted) {
            return Ok(row.clone());
        }
        let mut matching: Vec<&BundleRow> = rows.iter().filter(|r| id(r) == wanted).collect();
        if matching.is_empty() {
            matching = rows
                .iter()
                .filter(|row| {
                    let id = id(row);
                    let run = row.run_id.as_str();
                    [run, run.trim_start_matches("run_"), &id]
                        .iter()
                        .any(|name| name.starts_with(wanted))
                        || id
                            .strip_prefix(ID_PREFIX)
                            .is_some_and(|d| d.starts_with(wanted))
                })
                .collect();
        }
        match matching.as_slice() {
            [] => Err(StoreError::NotFound {
                reference: wanted.to_owned(),
            }),
            [row] => Ok((*row).clone()),
            several => Err(StoreError::Ambiguous {
                reference: wanted.to_owned(),
                count: several.len(),
                examples: several
                    .iter()
                    .take(5)
                    .map(|row| row.run_id.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            }),
        }
    }

    /// Deletes a bundle, even a broken one. The bundle is first renamed to a hidden name, so that
    /// it is no longer listed even if the removal of its files fails.
    pub fn discard(&self, reference: &str) -> Result<Discarded, StoreError> {
        let row = self.find(reference)?;
        let fail = |source| io("removed", source);
        let name = row.run_id.as_str();
        let hidden = format!("{DISCARDING_PREFIX}{name}");
        // An interrupted discard of the same run may have left files under this name.
        remove_tree_in(self.artifacts.as_fd(), hidden.as_bytes())?;
        let (dir, flags) = (&self.artifacts, RenameFlags::NOREPLACE);
        fs::renameat_with(dir, name, dir, hidden.as_str(), flags).map_err(fail)?;
        remove_tree_in(self.artifacts.as_fd(), hidden.as_bytes())?;
        fs::fsync(&self.artifacts).map_err(fail)?;
        Ok(Discarded {
            artifact_id: row.artifact_id,
            run_id: row.run_id,
            discarded: true,
        })
    }

    /// Removes unfinished bundles that a dead supervisor of this run left, and returns their
    /// number. No process of the run may be alive.
    pub fn remove_staging(&self, run_id: &RunId) -> Result<usize, StoreError> {
        let prefix = staging_prefix(run_id);
        let mut removed = 0;
        for name in self.artifacts.names().map_err(|e| io("read", e))? {
            if name.starts_with(prefix.as_bytes()) {
                remove_tree_in(self.artifacts.as_fd(), &name)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Removes the directories that interrupted writers and discards left, if they were last
    /// modified before `before` (seconds since 1970). Returns the number of removed directories.
    pub fn sweep(&self, before: i64) -> Result<usize, StoreError> {
        let mut removed = 0;
        for name in self.artifacts.names().map_err(|e| io("read", e))? {
            let ours = [TEMPORARY_PREFIX, DISCARDING_PREFIX]
                .iter()
                .any(|prefix| name.starts_with(prefix.as_bytes()));
            let old = self
                .artifacts
                .stat(&name)
                .ok()
                .flatten()
                .is_some_and(|stat| {
                    stat.st_mtime < before
                        && FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                });
            if ours && old {
                remove_tree_in(self.artifacts.as_fd(), &name)?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}
