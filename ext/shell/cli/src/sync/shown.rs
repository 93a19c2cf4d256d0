//! Formats the result of a sync as human-readable lines or JSON.

use super::compare::{Sides, Verdict};
use crate::output::{Output, name as listed};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPath, schema_id};

/// Maximum number of rows in human-readable output.
const SHOWN: usize = 200;

/// What a sync did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    Written,
    Deleted,
}

impl Carried {
    const fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Deleted => "deleted",
        }
    }
}

/// Result of one sync for the output.
#[derive(Debug)]
pub(super) struct Report {
    direction: &'static str,
    run: String,
    top: GuestPath,
    carried: Vec<(String, Carried)>,
    pending: BTreeMap<String, Verdict>,
    conflicts: Vec<Value>,
    left_out: Vec<(String, String)>,
}

impl Report {
    pub(super) fn new(
        way: Option<Verdict>,
        run: &str,
        top: &GuestPath,
        left_out: Vec<(String, String)>,
    ) -> Self {
        Self {
            direction: match way {
                Some(Verdict::Push) => "push",
                Some(Verdict::Pull | Verdict::Conflict) => "pull",
                None => "status",
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
            .map(listed)
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

    pub(super) fn show(&self, output: &Output) -> ExitCode {
        if output.is_json() {
            output.document(&self.document());
        } else {
            self.table(output);
        }
        let conflicts = self
            .pending
            .values()
            .any(|verdict| *verdict == Verdict::Conflict);
        let differ = self.direction == "status" && !self.pending.is_empty();
        ExitCode::from(match (conflicts, differ || !self.left_out.is_empty()) {
            (true, _) => 1,
            (false, true) => 3,
            (false, false) => 0,
        })
    }

    fn document(&self) -> Value {
        let carried: Vec<Value> = self
            .carried
            .iter()
            .map(|(path, carried)| json!({"path": path, "action": carried.name()}))
            .collect();
        let pending: Vec<Value> = self
            .pending
            .iter()
            .map(|(path, verdict)| json!({"path": path, "verdict": verdict}))
            .collect();
        let left_out: Vec<Value> = self
            .left_out
            .iter()
            .map(|(path, why)| json!({"path": path, "reason": why}))
            .collect();
        json!({
            "success": true, "schema": schema_id::SANDBOX_SYNC, "direction": self.direction,
            "run_id": self.run, "path": self.top, "carried": carried, "pending": pending,
            "leftOut": left_out,
        })
    }

    fn table(&self, output: &Output) {
        let rows = self
            .carried
            .iter()
            .map(|(path, carried)| (carried.name(), path.as_str(), ""));
        let pending = self.pending.iter().map(|(path, verdict)| {
            let name = match verdict {
                Verdict::Push => "to push",
                Verdict::Pull => "to pull",
                Verdict::Conflict => "conflict",
            };
            (name, path.as_str(), "")
        });
        let left_out = self
            .left_out
            .iter()
            .map(|(path, why)| ("left out", path.as_str(), why.as_str()));
        let rows: Vec<_> = rows.chain(pending).chain(left_out).collect();
        for (name, path, why) in rows.iter().take(SHOWN) {
            let path = listed(path);
            let why = if why.is_empty() {
                String::new()
            } else {
                format!("  ({why})")
            };
            output.line(&format!("{name:<9} {path}{why}"));
        }
        if rows.len() > SHOWN {
            output.line(&format!("… and {} more", rows.len() - SHOWN));
        }
        output.note(&format!(
            "{} copied, {} pending, {} left out; in the sandbox {}",
            self.carried.len(),
            self.pending.len(),
            self.left_out.len(),
            self.top
        ));
    }
}
