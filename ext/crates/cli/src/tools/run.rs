//! `wp-codebox tools run`: runs a WASI tool on this host, on a copy of the directory.

use super::args::{RunArgs, Wrapper, id};
use crate::Settings;
use crate::output::Output;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use wp_codebox_artifacts::{ExcludeRules, Shadow, render_mount_patch};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, MAX_WASI_EXIT_STATUS, OuterSandboxKind, SandboxAudit, WasiFiles,
};
use wp_codebox_process_wrapper::{
    Bubblewrap, GvisorRoot, HostCommand, MountAccess, NoSandbox, ProcessSandbox, ToolCall,
    ToolDirectory, WrappedCommand, find_program, prepare_root,
};
use wp_codebox_runtime::{RegisteredTool, StateDir, WasiRunner, WasiTools};

/// Path of the copy below the root that gVisor shows.
const WORK: &str = "work";

pub(super) fn run(output: &Output, args: &RunArgs) -> Result<ExitCode, ErrorBody> {
    let id = id(&args.id)?;
    let input = arguments(args.arguments.as_deref())?;
    let settings = Settings::resolve(&args.paths)?;
    let state = StateDir::open(&settings.state_dir).map_err(|e| e.body())?;
    let tool = WasiTools::of(state.path()).get(&id).map_err(|e| e.body())?;
    // The runner compares the module with the definition again.
    tool.module().map_err(|e| e.body())?;
    let runner = WasiRunner::beside(&settings.launcher).map_err(|e| e.body())?;
    let compiled = state.as_owner(|| tool.compiled(&runner));
    let compiled = compiled.map_err(|e| e.body())?.map_err(|e| e.body())?;
    // The directory is removed with everything in it when the value is dropped.
    let scratch = tempfile::tempdir().map_err(|e| failed("temporary directory", &e))?;
    let work = scratch.path().join("root").join(WORK);
    std::fs::create_dir_all(&work).map_err(|e| failed("temporary directory", &e))?;
    let shadow = args.dir.as_deref().map(|dir| shadow(dir, &work));
    let shadow = shadow.transpose()?;
    // Copies: inside a wrapper's user namespace, root may not read the files of the state
    // directory's owner.
    let copy = |from: &Path, name: &str| {
        let to = scratch.path().join(name);
        std::fs::copy(from, &to).map_err(|e| failed("copy of the tool", &e))?;
        text(&to)
    };
    let call = ToolCall {
        runner: text(runner.program())?,
        definition: copy(&tool.definition_path(), "definition.json")?,
        module: copy(&tool.module_path(), "module.wasm")?,
        compiled: Some(copy(&compiled, "module.cwasm")?),
        directory: match shadow {
            None => None,
            Some(_) => Some(ToolDirectory {
                host: text(&work)?,
                access: match tool.tool.files {
                    WasiFiles::None | WasiFiles::Read => MountAccess::Read,
                    WasiFiles::Write => MountAccess::Write,
                },
            }),
        },
        args: Vec::new(),
    };
    let wrapped = wrap(args.wrapper, &call, scratch.path())?;
    let ended = start(&wrapped, input)?.confirmed(args.wrapper)?;
    let changes = match &shadow {
        Some(shadow) => Some(
            shadow
                .changes()
                .map_err(|e| ErrorBody::new(e.code(), e.to_string()))?,
        ),
        None => None,
    };
    let patch = changes.as_ref().map_or_else(Vec::new, |changes| {
        render_mount_patch(changes, "", &[]).bytes
    });
    // A tool or a wrapper that failed may have left half of its changes.
    let is_written = args.write && ended.status == 0;
    if is_written && let (Some(shadow), Some(changes)) = (&shadow, &changes) {
        shadow.merge(changes).map_err(|e| e.body())?;
    }
    show(
        output,
        &tool,
        &Shown {
            ended: &ended,
            patch: &patch,
            audit: &wrapped.audit,
            is_written,
        },
    );
    Ok(ExitCode::from(ended.status))
}

/// Returns the arguments as JSON text; fails unless they are an object.
fn arguments(given: Option<&str>) -> Result<String, ErrorBody> {
    let given = given.unwrap_or("{}");
    let parsed: Map<String, Value> = serde_json::from_str(given).map_err(|error| {
        let message = format!("the arguments of the tool must be one JSON object: {error}");
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })?;
    Ok(Value::Object(parsed).to_string())
}

fn shadow(directory: &Path, copy: &Path) -> Result<Shadow, ErrorBody> {
    let open = |path: &Path| {
        File::open(path).map_err(|error| {
            let message = format!("the directory {} cannot be read: {error}", path.display());
            ErrorBody::new(ErrorCode::InputInvalid, message)
        })
    };
    let made = Shadow::make(
        open(directory)?.as_fd(),
        open(copy)?.as_fd(),
        ExcludeRules::default(),
    );
    let (shadow, _) = made.map_err(|e| ErrorBody::new(e.code(), e.to_string()))?;
    Ok(shadow)
}

fn wrap(wrapper: Wrapper, call: &ToolCall, scratch: &Path) -> Result<WrappedCommand, ErrorBody> {
    let kind = match wrapper {
        Wrapper::None => OuterSandboxKind::None,
        Wrapper::Bubblewrap => OuterSandboxKind::Bubblewrap,
        Wrapper::Gvisor => OuterSandboxKind::Gvisor,
    };
    let command: HostCommand = call.command(kind);
    let program = find_program(kind, None).map_err(|e| e.body())?;
    let program = program.unwrap_or_default();
    Ok(match kind {
        OuterSandboxKind::None => NoSandbox.wrap(&command),
        OuterSandboxKind::Bubblewrap => Bubblewrap { program }.wrap(&command),
        OuterSandboxKind::Gvisor => {
            let directory = scratch.join("runsc");
            std::fs::create_dir(&directory).map_err(|e| failed("temporary directory", &e))?;
            let root = scratch.join("root");
            prepare_root(&root, &command).map_err(|e| e.body())?;
            GvisorRoot {
                program,
                directory: text(&directory)?,
                root: text(&root)?,
            }
            .wrap(&command)
        }
    })
}

/// How the runner ended, and what it printed.
struct Ended {
    status: u8,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Ended {
    /// Returns how the tool ended, without the line with which the runner confirms its status; fails
    /// if not the tool but the runner or the wrapper ended with this status.
    fn confirmed(mut self, wrapper: Wrapper) -> Result<Self, ErrorBody> {
        let said = self.stderr.trim_ascii_end();
        let at = said.iter().rposition(|byte| *byte == b'\n');
        let last = said.get(at.map_or(0, |at| at + 1)..).unwrap_or_default();
        let shown: String = String::from_utf8_lossy(last).chars().take(500).collect();
        if i32::from(self.status) > MAX_WASI_EXIT_STATUS {
            return Err(serde_json::from_slice(last).unwrap_or_else(|_| self.unknown(&shown)));
        }
        if last == format!("{{\"exit\":{}}}", self.status).as_bytes() {
            let length = self.stderr.len().min(said.len() - last.len());
            self.stderr.truncate(length);
            return Ok(self);
        }
        Err(match wrapper {
            Wrapper::None => self.unknown(&shown),
            Wrapper::Bubblewrap | Wrapper::Gvisor => ErrorBody::new(
                ErrorCode::SandboxStartFailed,
                format!(
                    "the process wrapper ended with status {} and did not run the tool: {shown}",
                    self.status
                ),
            )
            .hint(
                "install the current version of the wrapper, or choose another one with --wrapper",
            ),
        })
    }

    fn unknown(&self, shown: &str) -> ErrorBody {
        let message = format!(
            "the program that runs the tool ended with status {}: {shown}",
            self.status
        );
        ErrorBody::new(ErrorCode::WasiRunnerFailed, message)
    }
}

/// Runs the command with `input` as its standard input. The runner bounds the output.
fn start(wrapped: &WrappedCommand, input: String) -> Result<Ended, ErrorBody> {
    let fail = |error: io::Error| failed("program that runs the tool", &error);
    let mut child = wrapped
        .to_std()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    let stdin = child.stdin.take();
    // In a thread of its own: a tool may print more than a pipe holds before it reads. A tool that
    // does not read its input closes the pipe, which is no error.
    let writer = std::thread::spawn(move || {
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(input.as_bytes());
        }
    });
    let ended = child.wait_with_output().map_err(fail)?;
    let _ = writer.join();
    Ok(Ended {
        // A runner that a signal ended has no status.
        status: ended
            .status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(125),
        stdout: ended.stdout,
        stderr: ended.stderr,
    })
}

struct Shown<'a> {
    ended: &'a Ended,
    patch: &'a [u8],
    audit: &'a SandboxAudit,
    is_written: bool,
}

fn show(output: &Output, tool: &RegisteredTool, shown: &Shown<'_>) {
    let Shown {
        ended,
        patch,
        audit,
        ..
    } = shown;
    if !output.is_json() {
        output.data(&ended.stdout);
        if !ended.stdout.is_empty() && !ended.stdout.ends_with(b"\n") {
            output.data(b"\n");
        }
        output.data(patch);
        let said = String::from_utf8_lossy(&ended.stderr);
        if !said.is_empty() {
            output.note(said.trim_end());
        }
        return;
    }
    output.document(&json!({
        "success": ended.status == 0,
        "id": tool.tool.id,
        "definitionSha256": tool.definition_sha256,
        "moduleSha256": tool.tool.module.sha256,
        "exitCode": ended.status,
        "stdout": String::from_utf8_lossy(&ended.stdout),
        "stderr": String::from_utf8_lossy(&ended.stderr),
        "patch": String::from_utf8_lossy(patch),
        "written": shown.is_written,
        "sandboxAudits": [audit],
    }));
}

fn text(path: &Path) -> Result<String, ErrorBody> {
    let absolute: PathBuf = std::path::absolute(path).map_err(|e| failed("path", &e))?;
    absolute.into_os_string().into_string().map_err(|_| {
        ErrorBody::new(
            ErrorCode::InputInvalid,
            "a path with bytes that are not UTF-8 cannot be given to the tool",
        )
    })
}

fn failed(what: &str, error: &io::Error) -> ErrorBody {
    let message = format!("the {what} cannot be used: {error}");
    ErrorBody::new(ErrorCode::WasiRunnerFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: u8, stderr: &str) -> Ended {
        let stderr = stderr.as_bytes().to_vec();
        Ended {
            status,
            stdout: Vec::new(),
            stderr,
        }
    }

    #[test]
    fn status_that_the_runner_confirms_is_that_of_the_tool() {
        for (stderr, left) in [("{\"exit\":3}\n", ""), ("a\nb\n{\"exit\":3}\n", "a\nb\n")] {
            let tool = ended(3, stderr)
                .confirmed(Wrapper::Bubblewrap)
                .ok()
                .unwrap();
            assert_eq!((tool.status, tool.stderr.as_slice()), (3, left.as_bytes()));
        }
    }

    #[test]
    fn status_of_a_wrapper_that_fails_is_not_taken_for_that_of_the_tool() {
        for stderr in [
            "flag provided but not defined: -root\n",
            "",
            "{\"exit\":0}\n",
        ] {
            let error = ended(1, stderr).confirmed(Wrapper::Gvisor).err().unwrap();
            assert_eq!(error.code, ErrorCode::SandboxStartFailed, "{stderr}");
        }
        let error = ended(1, "").confirmed(Wrapper::None).err().unwrap();
        assert_eq!(error.code, ErrorCode::WasiRunnerFailed);
    }

    #[test]
    fn error_of_the_runner_is_returned_as_it_is() {
        let line = serde_json::to_string(&ErrorBody::new(ErrorCode::WasiTrap, "t")).unwrap();
        let error = ended(125, &line).confirmed(Wrapper::None).err().unwrap();
        assert_eq!(error.code, ErrorCode::WasiTrap);
        let error = ended(125, "no JSON")
            .confirmed(Wrapper::None)
            .err()
            .unwrap();
        assert_eq!(error.code, ErrorCode::WasiRunnerFailed);
    }
}
