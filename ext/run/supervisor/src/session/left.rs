//! Files that a guest program produced for the bundle. The program's result document lists them;
//! they are read from the guest up to a maximum size and stored below
//! `files/commands/<execution>/`.

use super::Session;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use wp_codebox_artifacts::{ArtifactContent, ArtifactFile};
use wp_codebox_contracts::{CommandResult, ErrorBody, ErrorCode};
use wp_codebox_policy::{CommandDescriptor, GuestProgram, Handler};
use wp_codebox_runtime::{Bounds, Call, DIAGNOSTICS};

/// Guest directory in which programs leave files for the bundle.
const DIRECTORY: &str = "/tmp/codebox-artifacts/";
/// Maximum number of files that one command may leave for the bundle.
const MOST_FILES: usize = 16;
/// Maximum size of a file, in bytes; a larger file is not stored.
const FILE_BYTES: u64 = 4 * 1024 * 1024;
/// Maximum number of names in a path below [`DIRECTORY`].
const DEPTH: usize = 16;
/// Time limit for reading one file.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

/// Media types that a stored file may have; any other becomes `application/octet-stream`.
const MEDIA: [&str; 6] = [
    "application/json",
    "application/zip",
    "text/plain",
    "text/html",
    "text/xml",
    "image/png",
];

impl Session<'_, '_> {
    /// Stores the files that the result document lists and adds their references to the result. If
    /// a file cannot be stored, adds a note instead of failing the command, which has succeeded.
    pub(super) fn keep_left(
        &mut self,
        found: &CommandDescriptor,
        call: &Call,
        result: &mut CommandResult,
    ) -> Result<(), ErrorBody> {
        let rows = match found.handler {
            Handler::Program(GuestProgram::File(_)) => {
                let files = result.json.as_ref().and_then(|d| d.get("artifacts"));
                // In some documents `artifacts` is an object with a list of files.
                let rows = files.and_then(|found| found.get("files").or(Some(found)));
                rows.and_then(Value::as_array).cloned().unwrap_or_default()
            }
            // The standard output of such a program is what the caller's PHP code prints, so its
            // diagnostics are in a file.
            Handler::Program(GuestProgram::Direct)
                if call.env.contains_key("CODEBOX_DIAGNOSTICS") =>
            {
                vec![json!({
                    "path": DIAGNOSTICS,
                    "kind": "wpdb-queries",
                    "contentType": "application/json",
                })]
            }
            _ => return Ok(()),
        };
        let execution = self
            .recorder
            .evidence
            .executions
            .last()
            .map(|e| e.id.clone());
        let execution = execution.unwrap_or_default();
        let mut notes = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let path = row.get("path").and_then(Value::as_str).unwrap_or_default();
            let shown: String = path.chars().take(200).collect();
            if index >= MOST_FILES {
                notes.push(format!(
                    "{shown}: a command can add at most {MOST_FILES} files"
                ));
                continue;
            }
            match self.keep_one(&execution, row, path)? {
                Ok(reference) => result.artifact_refs.push(reference),
                Err(why) => notes.push(format!("{shown}: {why}")),
            }
        }
        if !notes.is_empty() {
            result.diagnostics["artifacts"] = json!({"notKept": notes});
        }
        Ok(())
    }

    fn keep_one(
        &mut self,
        execution: &str,
        row: &Value,
        path: &str,
    ) -> Result<Result<Value, String>, ErrorBody> {
        let Some(name) = path.strip_prefix(DIRECTORY).filter(|n| is_plain(n)) else {
            return Ok(Err(format!(
                "the path is not a plain file name below {DIRECTORY}"
            )));
        };
        let Some(bytes) = self.read_left(path)? else {
            return Ok(Err("the file cannot be read".to_owned()));
        };
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_BYTES {
            return Ok(Err(format!("the file is larger than {FILE_BYTES} bytes")));
        }
        let asked = row.get("contentType").and_then(Value::as_str);
        let media = MEDIA
            .into_iter()
            .find(|m| Some(*m) == asked)
            .unwrap_or("application/octet-stream");
        // Text is redacted when the bundle is written.
        let content = match String::from_utf8(bytes) {
            Ok(text) => ArtifactContent::Text(text),
            Err(error) => ArtifactContent::Bytes(error.into_bytes()),
        };
        let file = ArtifactFile {
            path: format!("files/commands/{execution}/{name}"),
            kind: "command-artifact",
            media,
            content,
        };
        match self.recorder.keep(file) {
            Ok(mut reference) => {
                let kind = row.get("kind").and_then(Value::as_str).unwrap_or_default();
                reference["role"] = json!(kind.chars().take(64).collect::<String>());
                Ok(Ok(reference))
            }
            Err(error) if error.code == ErrorCode::OutputLimit => Ok(Err(error.message)),
            Err(error) => Err(error),
        }
    }

    /// Returns the content of a file in the guest, up to one byte more than the limit, so that the
    /// caller notices a larger file.
    fn read_left(&mut self, path: &str) -> Result<Option<Vec<u8>>, ErrorBody> {
        let most = FILE_BYTES + 1;
        let argv = ["head", "-c", &most.to_string(), "--", path];
        let call = Call {
            command: "artifact.collect".to_owned(),
            args: vec![format!("path={path}")],
            phase: "workflow",
            argv: argv.map(str::to_owned).to_vec(),
            env: BTreeMap::new(),
            cwd: self.context.cwd.clone(),
            stdin: None,
        };
        let call = self.context.work_call(call);
        let bounds = Bounds {
            deadline: self.deadline(),
            timeout: READ_TIMEOUT,
        };
        let runtime = self.guest.runtime.as_mut();
        let (step, bytes) = self.recorder.take(runtime, &call, bounds, most)?;
        Ok((step.exit_code() == Some(0)).then_some(bytes))
    }
}

/// Returns whether the relative path consists of at most [`DEPTH`] plain file names.
fn is_plain(path: &str) -> bool {
    path.split('/').count() <= DEPTH && path.split('/').all(is_name)
}

/// Returns whether the text is a plain file name.
fn is_name(name: &str) -> bool {
    let first = name.as_bytes().first();
    name.len() <= 100
        && first.is_some_and(u8::is_ascii_alphanumeric)
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_a_command_leaves_for_the_bundle_must_have_a_plain_relative_path() {
        for good in ["a.json", "auth/run-1/a.json", "a/b/c/d/e/f/g/h/i.txt"] {
            assert!(is_plain(good), "{good}");
        }
        for bad in [
            "", "/a", "a/", "a//b", "../a", "a/../b", ".a", "a b", "a\u{1b}",
        ] {
            assert!(!is_plain(bad), "{bad}");
        }
        assert!(!is_plain(&"a/".repeat(DEPTH + 1)));
    }
}
