//! The journal of a run: `events.jsonl`, one event per line, in order.

use crate::now_rfc3339;
use crate::run_dir::free_reserve;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{CodedError, ErrorBody, EventType, ExecutionId, LifecycleEvent};

/// The journal of a run could not be written or read.
#[derive(Debug, thiserror::Error, CodedError)]
#[error("the journal of the run (events.jsonl) could not be written or read")]
#[code(RunFailed, hint = "check free space and permissions of the state directory", detail = Self::detail)]
pub struct JournalError {
    #[from]
    source: std::io::Error,
}

impl JournalError {
    fn detail(&self, mut body: ErrorBody) -> ErrorBody {
        body.message = format!("{self}: {}", self.source);
        body
    }
}

/// The open journal of a run, to which events are appended.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    seq: u64,
    length: u64,
}

impl Journal {
    /// Creates `events.jsonl` in a run directory. Fails if the file exists.
    pub fn create(run_dir: &Path) -> Result<Self, JournalError> {
        let path = run_dir.join("events.jsonl");
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self {
            file,
            path,
            seq: 0,
            length: 0,
        })
    }

    /// Appends one event in a single write and returns it.
    pub fn append(
        &mut self,
        kind: EventType,
        execution_id: Option<ExecutionId>,
        data: Map<String, Value>,
    ) -> Result<LifecycleEvent, JournalError> {
        let seq = self.seq + 1;
        let event = LifecycleEvent {
            id: format!("evt-{seq}"),
            seq,
            kind,
            timestamp: now_rfc3339(),
            execution_id,
            data,
        };
        let mut line = serde_json::to_vec(&event).map_err(std::io::Error::from)?;
        line.push(b'\n');
        let written = self.write(&line);
        let is_full = |error: &Error| {
            matches!(
                error.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            )
        };
        match written {
            Err(error) if is_full(&error) && self.path.parent().is_some_and(free_reserve) => {
                self.write(&line)?;
            }
            written => written?,
        }
        self.seq = seq;
        self.length += line.len() as u64;
        Ok(event)
    }

    fn write(&mut self, line: &[u8]) -> Result<(), Error> {
        self.file.write_all(line).inspect_err(|_| {
            // Removes a partly written line: otherwise the next event would be appended to it and
            // be unreadable too.
            let _ = self.file.set_len(self.length);
        })
    }

    /// Reads all events.
    pub fn events(&self) -> Result<Vec<LifecycleEvent>, JournalError> {
        let text = std::fs::read_to_string(&self.path)?;
        text.lines()
            .map(|line| serde_json::from_str(line).map_err(|e| std::io::Error::from(e).into()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_journal_events_are_read_back_in_order() {
        let temp = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(temp.path()).unwrap();
        let id = ExecutionId::new("exec-1").unwrap();
        let mut data = Map::new();
        data.insert("text".to_owned(), Value::from("line\nbreak"));
        journal
            .append(EventType::Created, None, Map::new())
            .unwrap();
        journal
            .append(EventType::CommandOutput, Some(id.clone()), data)
            .unwrap();
        let events = journal.events().unwrap();
        assert_eq!(events.iter().map(|e| e.seq).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(events[1].execution_id, Some(id));
        assert!(Journal::create(temp.path()).is_err());
    }
}
