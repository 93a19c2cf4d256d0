//! `agent-sandbox-batch`: independent tasks, each with its own sandbox and result row.

use super::drive::{Answered, Finished, Group, Host, drive};
use serde_json::{Map, Value};
use std::path::PathBuf;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_policy::{Batch, GroupStatus};

impl Group for Batch {
    fn size(&self) -> usize {
        Batch::size(self)
    }

    fn name(&self, at: usize) -> String {
        format!("task {at}")
    }

    fn head(&self, at: usize) -> Map<String, Value> {
        Batch::head(self, at)
    }

    fn input(&self, at: usize) -> Result<Map<String, Value>, ErrorBody> {
        self.task(at)
    }

    fn ready(&self) -> Vec<usize> {
        (0..Batch::size(self)).collect()
    }

    fn blocked(&self) -> Vec<(usize, Map<String, Value>)> {
        let Some(row) = self.stopped() else {
            return Vec::new();
        };
        let rows = (0..Batch::size(self)).map(|at| (at, row.clone()));
        rows.collect()
    }

    fn settled(
        &mut self,
        at: usize,
        row: &mut Map<String, Value>,
        _finished: Option<&Finished>,
        status: GroupStatus,
    ) {
        row.entry("task_input")
            .or_insert_with(|| self.task_input(at));
        self.settle(status, row);
    }

    fn is_timed(&self) -> bool {
        false
    }

    fn directory(&self, _at: usize) -> PathBuf {
        PathBuf::new()
    }
}

/// Runs the tasks of a batch. Returns the members of the output without its rows, the exit status,
/// and the rows.
pub fn run(
    host: &Host<'_>,
    input: &Map<String, Value>,
    concurrency: u16,
    session: &str,
) -> Result<Answered, ErrorBody> {
    let mut batch = Batch::read(input, session)?;
    let rows = drive(host, &mut batch, usize::from(concurrency))?;
    let (mut answer, exit) = batch.answer(u64::from(concurrency));
    answer.insert("wp".to_owned(), host.wordpress.as_str().into());
    Ok((answer, exit, rows))
}
