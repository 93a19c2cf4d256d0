//! Files that the arguments of a browser command name: in the work guest, or stored by an earlier
//! command of the run.

use crate::session::Session;
use std::collections::BTreeMap;
use wp_codebox_artifacts::ArtifactContent;
use wp_codebox_browser::{StoredFiles, Task};
use wp_codebox_contracts::{CommandCall, ErrorBody, ErrorCode};
use wp_codebox_policy::{arg_value, named_file};
use wp_codebox_runtime::{Bounds, Call};

/// Maximum size of an argument that is in a file, in bytes.
const ARGUMENT: u64 = 1024 * 1024;
/// Maximum size of a stored picture or snapshot, in bytes.
const STORED: u64 = 16 * 1024 * 1024;
/// Directory of the run's result in which commands store files.
const RUN_FILES: &str = "files/";
/// Arguments whose value can be `@` and the path of a file.
const IN_FILES: &[&str] = &[
    "steps-json",
    "browser-environment-json",
    "transport-faults-json",
    "selector-groups-json",
    "storage-state",
];

impl Session<'_, '_> {
    /// Returns the call with the content of each file that an argument names in place of its path.
    pub(super) fn with_contents(
        &mut self,
        call: &CommandCall,
        bounds: Bounds,
    ) -> Result<CommandCall, ErrorBody> {
        let mut filled = call.clone();
        for arg in &mut filled.args {
            let Some((name, value)) = arg.split_once('=') else {
                continue;
            };
            let (name, path) = match named_file(value) {
                _ if name == "content-file" && !value.is_empty() => ("content", value),
                Some(path) if IN_FILES.contains(&name) => (name, path),
                Some(_) | None => continue,
            };
            if name == "content" && arg_value(call, "content").is_some() {
                return Err(invalid(
                    call,
                    "give content or content-file, not both".to_owned(),
                ));
            }
            let bytes = self.guest_file(call, path, ARGUMENT, bounds)?;
            let text = String::from_utf8(bytes)
                .map_err(|_| invalid(call, format!("the file {} is not UTF-8", shown(path))))?;
            *arg = format!("{name}={text}");
        }
        Ok(filled)
    }

    /// Returns the stored files that a task reads. A path that begins with `files/` names a file
    /// that an earlier command of the run stored, any other a file in the guest.
    pub(super) fn stored_files(
        &mut self,
        call: &CommandCall,
        task: &Task,
        bounds: Bounds,
    ) -> Result<StoredFiles, ErrorBody> {
        let mut found = StoredFiles::new();
        for path in task.stored_files() {
            let bytes = if path.starts_with(RUN_FILES) {
                let kept = &self.recorder.evidence.files;
                let file = kept.iter().find(|file| file.path == path);
                let file = file.ok_or_else(|| {
                    let why = format!("no command of this run has stored {}", shown(path));
                    invalid(call, why)
                })?;
                match &file.content {
                    ArtifactContent::Bytes(bytes) => bytes.clone(),
                    ArtifactContent::Text(text) => text.clone().into_bytes(),
                    ArtifactContent::Document(document) => document.to_string().into_bytes(),
                }
            } else {
                self.guest_file(call, path, STORED, bounds)?
            };
            found.insert(path.to_owned(), bytes);
        }
        Ok(found)
    }

    /// Reads a file of the guest. A program in the guest opens it, so a symbolic link leads to no
    /// file of the host.
    fn guest_file(
        &mut self,
        call: &CommandCall,
        path: &str,
        most: u64,
        bounds: Bounds,
    ) -> Result<Vec<u8>, ErrorBody> {
        let reading = Call {
            command: "browser-file".to_owned(),
            args: Vec::new(),
            phase: "workflow",
            argv: ["head", "-c", &(most + 1).to_string(), "--", path]
                .map(str::to_owned)
                .to_vec(),
            env: BTreeMap::new(),
            cwd: self.context.cwd.clone(),
            stdin: None,
        };
        let runtime = self.guest.runtime.as_mut();
        let (step, bytes) = self.recorder.take(runtime, &reading, bounds, most + 1)?;
        if step.exit_code() != Some(0) {
            let why = format!("the guest has no readable file {}", shown(path));
            return Err(invalid(call, why));
        }
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
            let why = format!("the file {} is larger than {most} bytes", shown(path));
            return Err(invalid(call, why));
        }
        Ok(bytes)
    }
}

fn shown(path: &str) -> String {
    format!("{:?}", path.chars().take(200).collect::<String>())
}

fn invalid(call: &CommandCall, why: String) -> ErrorBody {
    let message = format!("{}: {why}", call.command);
    ErrorBody::new(ErrorCode::InputInvalid, message).with("command", call.command.clone())
}
