//! Result of a sync, and the error that lists its conflicts.

use super::compare::{Sides, Verdict};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wp_codebox_artifacts::terminal_name;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPath};

/// Direction in which a sync copies files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the local directory into the sandbox.
    Push,
    /// From the sandbox into the local directory.
    Pull,
    /// None: the sync only compares.
    Status,
}

/// What a sync did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// It was copied.
    Written,
    /// It was deleted.
    Deleted,
}

/// Result of one sync.
#[derive(Debug)]
pub struct SyncReport {
    /// Direction in which files were copied.
    pub direction: Direction,
    /// Id of the run of the sandbox.
    pub run: String,
    /// Directory in the sandbox.
    pub top: GuestPath,
    /// Paths of copied and deleted files.
    pub carried: Vec<(String, Carried)>,
    /// Paths of files that differ and were not copied.
    pub pending: BTreeMap<String, Verdict>,
    conflicts: Vec<Value>,
    /// Paths that are not synced, each with the reason.
    pub left_out: Vec<(String, String)>,
}

impl SyncReport {
    pub(super) fn new(
        way: Option<Verdict>,
        run: &str,
        top: &GuestPath,
        left_out: Vec<(String, String)>,
    ) -> Self {
        Self {
            direction: match way {
                Some(Verdict::Push) => Direction::Push,
                Some(Verdict::Pull | Verdict::Conflict) => Direction::Pull,
                None => Direction::Status,
            },
            run: run.to_owned(),
            top: top.clone(),
            carried: Vec::new(),
            pending: BTreeMap::new(),
            conflicts: Vec::new(),
            left_out,
        }
    }

    pub(super) fn pending(&mut self, path: &str, verdict: Verdict) {
        self.pending.insert(path.to_owned(), verdict);
    }

    pub(super) fn take_pending(&mut self) -> Vec<String> {
        std::mem::take(&mut self.pending).into_keys().collect()
    }

    pub(super) fn carried(&mut self, path: &str, carried: Carried) {
        self.carried.push((path.to_owned(), carried));
    }

    pub(super) fn left_out(&mut self, path: &str, why: &str) {
        self.left_out.push((path.to_owned(), why.to_owned()));
    }

    pub(super) fn conflict(&mut self, path: &str, sides: &Sides) {
        let digest =
            |files: &super::compare::Files| files.get(path).map(|file| file.sha256.clone());
        self.conflicts.push(json!({
            "path": path, "here": digest(&sides.local), "sandbox": digest(&sides.guest),
            "last": digest(&sides.base),
        }));
    }

    /// Returns an error that lists all conflicts, if there are any.
    pub(super) fn assert_no_conflict(&self) -> Result<(), ErrorBody> {
        if self.conflicts.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = self
            .conflicts
            .iter()
            .filter_map(|row| row["path"].as_str())
            .map(terminal_name)
            .take(10)
            .collect();
        let more = match self.conflicts.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!(
            "both sides changed these files since the last sync: {}{more}",
            names.join(", ")
        );
        Err(ErrorBody::new(ErrorCode::SyncConflict, message)
            .hint("choose a side: --on-conflict ours keeps the local files, theirs those of the sandbox")
            .with("conflicts", json!(self.conflicts))
            .with("carried", json!(self.carried.len())))
    }
}
