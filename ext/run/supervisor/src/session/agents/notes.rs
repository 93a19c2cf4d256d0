//! Reads a project's instructions for agents, the file `AGENTS.md`. The author of the file is
//! unknown, so its content is treated as untrusted data.

use crate::session::ending::stop_of;
use crate::session::guest::GuestContext;
use std::collections::BTreeMap;
use wp_codebox_contracts::{ErrorBody, MountAccess};
use wp_codebox_policy::ToolSet;
use wp_codebox_runtime::{Call, ExecutionEnd, GuestMount, Stop};

/// Maximum number of bytes that are read from `AGENTS.md`.
const NOTES: &str = "16384";
/// Id of the tool without which `AGENTS.md` is not read: a run that denies the tool also denies
/// this read.
const READ: &str = "workspace.read";

/// Reads `AGENTS.md` of the agent's working directory with a program inside the guest, so that a
/// symbolic link in the path resolves inside the guest. Returns `None` if there is no such file, no
/// writable mount, or [`READ`] is not allowed. An inner `Err` contains the reason to stop the run.
pub(super) fn project_notes(
    guest: &mut GuestContext<'_, '_>,
    set: &ToolSet,
) -> Result<Result<Option<String>, Stop>, ErrorBody> {
    let writable = |mount: &&GuestMount| mount.access == MountAccess::Readwrite;
    let run = guest.run;
    let here = run.guest_mounts.iter().find(writable);
    let may_read = set.offered().iter().any(|tool| tool.id == READ);
    let (Some(_), true) = (here, may_read) else {
        return Ok(Ok(None));
    };
    let path = format!("{}/AGENTS.md", run.cwd);
    let words = [
        "sh",
        "-c",
        "if test -f \"$2\"; then exec head -c \"$1\" \"$2\"; fi",
        "sh",
        NOTES,
        &path,
    ];
    let call = Call {
        command: "agent.project-notes".to_owned(),
        args: vec![path.clone()],
        phase: "tool",
        argv: words.map(str::to_owned).to_vec(),
        env: BTreeMap::new(),
        cwd: run.cwd.clone(),
        stdin: None,
    };
    let step = guest.execute(&call)?;
    match &step.result.end {
        ExecutionEnd::Exited { .. } | ExecutionEnd::Signalled { .. } => {
            Ok(Ok(Some(step.stdout).filter(|text| !text.trim().is_empty())))
        }
        ExecutionEnd::NotStarted { .. }
        | ExecutionEnd::TimedOut
        | ExecutionEnd::Cancelled
        | ExecutionEnd::LimitReached { .. }
        | ExecutionEnd::GuestDied { .. } => Ok(stop_of(&call, &step, &[0])?.map_or(Ok(None), Err)),
    }
}
