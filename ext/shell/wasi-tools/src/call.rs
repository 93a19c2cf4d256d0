//! Runs a registered tool on a copy of a directory.

use super::ended::{Ended, Wrapper};
use super::scratch::Scratch;
use super::{guest, wrapped};
use serde_json::{Value, json};
use std::path::Path;
use wp_codebox_artifacts::render_mount_patch;
use wp_codebox_contracts::{ErrorBody, OuterSandboxKind, SandboxAudit, WasiToolId};
use wp_codebox_runtime::StateDir;
use wp_codebox_settings::Settings;
use wp_codebox_supervisor::{RegisteredTool, WasiRunner, WasiTools};

/// What happens to the changes of the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeHandling {
    /// They are only returned as a patch.
    Shown,
    /// They are also written to the directory, if the tool succeeds.
    Written,
}

/// A call of a registered tool.
#[derive(Debug)]
pub struct Call<'a> {
    /// Id of the tool.
    pub id: &'a WasiToolId,
    /// Arguments of the tool as the text of a JSON object.
    pub input: String,
    /// Directory that the tool reads or changes.
    pub directory: Option<&'a Path>,
    /// Sandbox around the program that runs the tool.
    pub wrapper: Wrapper,
    /// What happens to the changes.
    pub changes: ChangeHandling,
}

/// What a tool answered.
#[derive(Debug)]
pub struct Answer {
    /// Exit status of the tool.
    pub status: u8,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// Changes of the directory.
    pub patch: Vec<u8>,
    audit: SandboxAudit,
    is_written: bool,
    tool: RegisteredTool,
}

/// Runs a tool on this host.
///
/// # Errors
/// If the call cannot start, a limit of the tool is reached, or its changes cannot be written.
pub fn run(settings: &Settings, call: Call<'_>) -> Result<Answer, ErrorBody> {
    let state = StateDir::open(&settings.state_dir)?;
    let tools = WasiTools::of(state.path());
    let tool = tools.get(call.id)?;
    // Check that the module still matches the definition; the runner checks this again.
    tool.module()?;
    let runner = WasiRunner::beside(&settings.launcher)?;
    let compiled = state.as_owner(|| tool.compiled(&runner));
    let compiled = compiled??;
    let scratch = Scratch::make(&tool, &compiled, call.directory)?;
    let program = runner.program();
    let input = call.input;
    let in_wrapper = |kind, input| wrapped::run(kind, &scratch, program, input);
    let ran = match call.wrapper {
        Wrapper::None => in_wrapper(OuterSandboxKind::None, input),
        Wrapper::Bubblewrap => in_wrapper(OuterSandboxKind::Bubblewrap, input),
        Wrapper::Gvisor => in_wrapper(OuterSandboxKind::Gvisor, input),
        Wrapper::Launcher => guest::run(&state, settings, &tool.tool, &scratch, program, &input),
    }?;
    let ended = ran.ended.confirmed(call.wrapper)?;
    let changes = ran.changes?;
    let patch = changes.as_ref().map_or_else(Vec::new, |changes| {
        render_mount_patch(changes, "", &[]).bytes
    });
    // Do not write the changes of a failed tool: they may be incomplete.
    let is_written = call.changes == ChangeHandling::Written && ended.status == 0;
    if is_written && let Some(changes) = &changes {
        scratch.merge(changes)?;
    }
    let Ended {
        status,
        stdout,
        stderr,
    } = ended;
    Ok(Answer {
        status,
        stdout,
        stderr,
        patch,
        audit: ran.audit,
        is_written,
        tool,
    })
}

impl Answer {
    /// Returns the document of the answer.
    #[must_use]
    pub fn document(&self) -> Value {
        let tool = &self.tool;
        json!({
            "success": self.status == 0,
            "id": tool.tool.id,
            "definitionSha256": tool.definition_sha256,
            "moduleSha256": tool.tool.module.sha256,
            "exitCode": self.status,
            "stdout": String::from_utf8_lossy(&self.stdout),
            "stderr": String::from_utf8_lossy(&self.stderr),
            "patch": String::from_utf8_lossy(&self.patch),
            "written": self.is_written,
            "sandboxAudits": [&self.audit],
        })
    }
}
