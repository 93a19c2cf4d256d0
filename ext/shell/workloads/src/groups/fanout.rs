//! `agent-fanout`: workers with dependencies, and their aggregated result.

use super::drive::{Answered, Finished, Group, Host, drive, timings};
use super::layout;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_policy::{
    Fanout, GroupStatus, MAX_FANOUT_CONCURRENCY, TouchedFiles, invalid_task, touched_files,
};

impl Group for Fanout {
    fn size(&self) -> usize {
        Fanout::size(self)
    }

    fn name(&self, at: usize) -> String {
        self.id(at).to_owned()
    }

    fn head(&self, at: usize) -> Map<String, Value> {
        Fanout::head(self, at)
    }

    fn input(&self, at: usize) -> Result<Map<String, Value>, ErrorBody> {
        self.task(at)
    }

    fn ready(&self) -> Vec<usize> {
        // Pass no started workers: the scheduler itself skips those that have started.
        Fanout::ready(self, &BTreeSet::new())
    }

    fn blocked(&self) -> Vec<(usize, Map<String, Value>)> {
        Fanout::blocked(self)
    }

    fn settled(
        &mut self,
        at: usize,
        row: &mut Map<String, Value>,
        finished: Option<&Finished>,
        _status: GroupStatus,
    ) {
        let touched = finished.map_or_else(TouchedFiles::new, |finished| {
            touched_files(&finished.result.changed_files, |target| {
                source(finished, target)
            })
        });
        row.entry("task_input")
            .or_insert_with(|| self.task_input(at));
        self.settle(at, row, touched, &wp_codebox_runtime::now_rfc3339());
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn directory(&self, at: usize) -> PathBuf {
        layout::worker(self.id(at)).join("artifacts")
    }
}

/// Returns the host directory that a run has mounted at a target.
fn source(finished: &Finished, target: &str) -> Option<String> {
    let mount = finished
        .request
        .mounts
        .iter()
        .find(|mount| mount.target == target)?;
    let real = std::fs::canonicalize(&mount.source).ok();
    let real = real.and_then(|path| path.to_str().map(str::to_owned));
    Some(real.unwrap_or_else(|| mount.source.clone()))
}

/// Runs the workers of a fan-out. Returns the members of the output without its rows, the exit
/// status, and the rows.
pub fn run(
    host: &Host<'_>,
    input: &Map<String, Value>,
    session: &str,
) -> Result<Answered, ErrorBody> {
    let mut fanout = Fanout::read(input, MAX_FANOUT_CONCURRENCY, session)?;
    // No worker starts if any part of the plan is invalid.
    for at in 0..Fanout::size(&fanout) {
        let input = fanout.task(at)?;
        (host.request)(&input).map_err(|error| invalid_task(fanout.id(at), &error))?;
    }
    let (began, started) = (Instant::now(), wp_codebox_runtime::now_rfc3339());
    let concurrency = usize::try_from(fanout.concurrency()).unwrap_or(1);
    let mut rows = drive(host, &mut fanout, concurrency)?;
    let timings = match timings(began, &started) {
        Value::Object(timings) => timings,
        _ => Map::new(),
    };
    let (mut answer, exit) = fanout.answer(&timings);
    answer.insert("wp".to_owned(), host.wordpress.as_str().into());
    if let Some(root) = host.artifacts {
        let ids: Vec<&str> = (0..Fanout::size(&fanout)).map(|at| fanout.id(at)).collect();
        if let Err(e) = layout::write(root, &mut answer, &ids, &mut rows) {
            // Do not fail: the output still has every row, and the bundles are in the state
            // directory.
            layout::note_failure(&mut answer, root, &e);
        }
    }
    Ok((answer, exit, rows))
}
