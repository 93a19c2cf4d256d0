//! Runs a WASI tool in a guest of its own, which the launcher builds at level `full`.
//!
//! The guest has no network, sees the system directories, the tool's files and the directory of the
//! call, and ends with the call. Its limits follow those of the tool's definition, so a runner that
//! ignores them ends, too.

use super::ended::{Ended, Ran};
use super::scratch::{Scratch, captured, text};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{
    ExecCall, ExecEnd, Execution, Guest, GuestIdentity, GuestKind, HostLayout, KillCause,
    LaunchError, LaunchOptions, NoSandbox, ScratchStorage, TOOL_LAYER, ToolPlan, ToolWork,
    guest_audit, tool_plan,
};
use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, ExecLimits, ExecRequest, ExecTerminal, ExecutionId,
    GuestPath, LaunchMount, LaunchPlan, Limits, OutputStream, RunMode, WasiTool,
};
use wp_codebox_control::new_run_id;
use wp_codebox_process_wrapper::{MountAccess, TOOL_FILES};
use wp_codebox_runtime::StateDir;
use wp_codebox_settings::Settings;
use wp_codebox_supervisor::{group, identity};

const MIB: u64 = 1 << 20;
/// Name of the runner among the tool's files in the guest.
const RUNNER: &str = "wp-codebox-wasi";
/// Memory that the runner needs beside that of the module and its compiled code.
const RUNNER_MEMORY: u64 = 64 * MIB;
/// Maximum number of bytes that a tool may write to its directory: as many as are read back as
/// its changes.
const DISK: u64 = 256 * MIB;
/// Maximum number of processes and threads in the guest. Needed are its first process and the
/// runner with a thread for the deadline.
const PROCESSES: u64 = 16;
/// Bytes of standard error, in addition to the tool's, for the last line, which the runner prints.
const LAST_LINE: u64 = 64 * 1024;
/// Time in milliseconds that the runner has to end after the deadline of the tool.
const GRACE_MS: u64 = 10_000;
/// Maximum wait until the guest is ready.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs `tool` with the files of `scratch` and the program `runner`.
pub(super) fn run(
    state: &StateDir,
    settings: &Settings,
    tool: &WasiTool,
    scratch: &Scratch,
    runner: &Path,
    input: &str,
) -> Result<Ran, ErrorBody> {
    let launcher = &settings.launcher;
    if let Err(source) = launcher.metadata() {
        let path = launcher.clone();
        return Err(LaunchError::Launcher { path, source }.body());
    }
    scratch.add(runner, RUNNER)?;
    let limits = limits(tool, scratch);
    let group = group::make(
        state,
        settings.cgroup.as_deref(),
        (&new_run_id()?, RunMode::Attached),
        &limits,
    );
    let wanted = identity::Wanted {
        choice: settings.identity()?,
        ids: settings.guest_ids()?.unwrap_or_default(),
        launcher,
        share_dir: &settings.share_dir,
        disk_bytes: limits.disk_bytes,
    };
    let identity = identity::make_without_views(state, &wanted)?;
    own_files(scratch, &identity)?;
    let files = text(&scratch.files())?;
    let work = match scratch.work() {
        None => None,
        Some((path, access)) => Some((text(&path)?, access)),
    };
    let plan = tool_plan(&ToolPlan {
        host: &HostLayout::probe(),
        files: &files,
        work: match &work {
            None => ToolWork::None,
            Some((path, MountAccess::Read)) => ToolWork::Read(path),
            Some((path, MountAccess::Write)) => ToolWork::Write(path),
        },
        limits,
    })?;
    let cgroup = group.cgroup();
    let used = std::sync::Arc::default();
    let options = LaunchOptions {
        launcher,
        sandbox: &NoSandbox,
        ready_timeout: READY_TIMEOUT,
        cgroup: &cgroup,
        identity: &identity,
        scratch: &ScratchStorage::of_kernel(state.path()),
        used: &used,
    };
    let mut guest = Guest::launch(&plan, &options)?;
    let request = request(scratch.call(runner)?.guest_arguments())?;
    let ended = execute(&mut guest, &request, tool, input);
    // Kill the tool's processes first, so that none changes a file while the changes are read.
    guest.kill(KillCause::Finished);
    let launcher = launcher.to_string_lossy();
    let kind = GuestKind::Own {
        launcher: &launcher,
        mounts: mounts(&plan),
    };
    Ok(Ran {
        ended: ended?,
        audit: guest_audit(kind, RUNNER, request.argv.get(1..).unwrap_or_default()),
        changes: scratch.changes_by(|shadow| {
            let layer = guest.layer(TOOL_LAYER).ok_or_else(|| {
                let message =
                    "the changes of the tool are missing: its sandbox has no writable layer";
                ErrorBody::new(ErrorCode::SandboxStartFailed, message)
            })?;
            shadow.changes_in_layer(layer).map_err(captured)
        }),
    })
}

/// Returns the limits of the guest. It has a disk limit even if the tool has no writable directory,
/// because the disk also contains the guest's own files.
fn limits(tool: &WasiTool, scratch: &Scratch) -> Limits {
    let code = scratch.size("module.wasm") + scratch.size("module.cwasm");
    Limits {
        wall_clock_ms: tool.limits.wall_ms + 2 * GRACE_MS,
        processes: PROCESSES,
        // Twice the code: the runner reads both files into memory before it maps them.
        memory_bytes: tool.limits.memory_bytes + RUNNER_MEMORY + 2 * code,
        disk_bytes: DISK,
        output_bytes: 2 * tool.limits.output_bytes + LAST_LINE,
        cpu_milli: None,
    }
}

/// Returns the guest paths that the plan mounts.
fn mounts(plan: &LaunchPlan) -> Vec<String> {
    let path = |mount: &LaunchMount| match mount {
        LaunchMount::Bind { target, .. }
        | LaunchMount::Scratch { target, .. }
        | LaunchMount::Overlay { target, .. }
        | LaunchMount::Merged { target, .. } => Some(target.to_string()),
        LaunchMount::Proc => Some("/proc".to_owned()),
        LaunchMount::Dev => Some("/dev".to_owned()),
        LaunchMount::Directory { .. } | LaunchMount::File(_) | LaunchMount::Symlink { .. } => None,
    };
    plan.mounts.iter().filter_map(path).collect()
}

/// Makes the guest's user the owner of the files. Not necessary if the guest has the uid of this
/// process, or if a spawner without root starts the guest: such a spawner copies the files.
fn own_files(scratch: &Scratch, identity: &GuestIdentity) -> Result<(), ErrorBody> {
    match identity.spawner() {
        Some(spawner) if identity.store().is_none() => scratch.give_to(spawner.id()),
        Some(_) | None => Ok(()),
    }
}

fn request(args: Vec<String>) -> Result<ExecRequest, ErrorBody> {
    let internal = |e: &dyn std::fmt::Display| ErrorBody::new(ErrorCode::Internal, e.to_string());
    let mut argv = vec![format!("{TOOL_FILES}/{RUNNER}")];
    argv.extend(args);
    Ok(ExecRequest {
        id: ExecutionId::new("tool").map_err(|e| internal(&e))?,
        argv,
        env: BTreeMap::new(),
        cwd: GuestPath::new("/tmp").map_err(|e| internal(&e))?,
        limits: ExecLimits::default(),
        terminal: ExecTerminal::None,
    })
}

fn execute(
    guest: &mut Guest,
    request: &ExecRequest,
    tool: &WasiTool,
    input: &str,
) -> Result<Ended, ErrorBody> {
    let limits = &tool.limits;
    let call = ExecCall {
        request,
        stdin: input.as_bytes(),
        deadline: Instant::now() + Duration::from_millis(limits.wall_ms + GRACE_MS),
        output_limit: 2 * limits.output_bytes + LAST_LINE,
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let execution = guest.exec(&call, &mut |stream, bytes| match stream {
        OutputStream::Stdout => stdout.extend_from_slice(bytes),
        OutputStream::Stderr => stderr.extend_from_slice(bytes),
    })?;
    Ok(Ended {
        status: status(&execution, tool)?,
        stdout,
        stderr,
    })
}

/// Returns the exit status of the runner, or why it has none.
fn status(execution: &Execution, tool: &WasiTool) -> Result<u8, ErrorBody> {
    let (code, message, limit) = match execution.end {
        ExecEnd::Exited(code) => return Ok(u8::try_from(code).unwrap_or(125)),
        ExecEnd::TimedOut => {
            let wall_ms = tool.limits.wall_ms;
            let message = format!("the tool did not end within {wall_ms} milliseconds");
            (ErrorCode::WasiDeadline, message, Some(wall_ms))
        }
        ExecEnd::DiskLimit => {
            let message = format!("the tool wrote more than {DISK} bytes to its directory");
            (ErrorCode::DiskLimit, message, Some(DISK))
        }
        ExecEnd::Signaled(_) | ExecEnd::MemoryLimit | ExecEnd::GuestDied
            if execution.memory_pressure || execution.end == ExecEnd::MemoryLimit =>
        {
            let limit = tool.limits.memory_bytes;
            let message = format!(
                "the tool and the program that runs it used more memory than the {limit} bytes of the tool plus the allowance of that program"
            );
            (ErrorCode::WasiMemoryExceeded, message, Some(limit))
        }
        ExecEnd::Signaled(signal) => {
            let message = format!("signal {signal} ended the program that runs the tool");
            (ErrorCode::WasiRunnerFailed, message, None)
        }
        ExecEnd::MemoryLimit
        | ExecEnd::KernelObjects
        | ExecEnd::GuestDied
        | ExecEnd::Stopped
        | ExecEnd::Cancelled => {
            let message = "the sandbox of the tool ended before the tool".to_owned();
            (ErrorCode::WasiRunnerFailed, message, None)
        }
    };
    let body = ErrorBody::new(code, message);
    Err(match limit {
        Some(limit) => body.with("limit", limit),
        None => body,
    })
}
