//! Runs a WASI tool in a process wrapper, or without one.

use super::ended::{Ended, Ran};
use super::scratch::{Scratch, failed, text};
use std::io::{self, Write};
use std::path::Path;
use std::process::Stdio;
use wp_codebox_contracts::{ErrorBody, OuterSandboxKind};
use wp_codebox_process_wrapper::{
    Bubblewrap, GvisorRoot, HostCommand, NoSandbox, ProcessSandbox, WrappedCommand, find_program,
    prepare_root,
};

/// Runs the tool of `scratch` with `runner` in a wrapper of this kind.
pub(super) fn run(
    kind: OuterSandboxKind,
    scratch: &Scratch,
    runner: &Path,
    input: String,
) -> Result<Ran, ErrorBody> {
    scratch.copy_base()?;
    let wrapped = wrap(kind, &scratch.call(runner)?.command(kind), scratch)?;
    let ended = start(&wrapped, input)?;
    Ok(Ran {
        ended,
        audit: wrapped.audit,
        changes: scratch.changes(),
    })
}

fn wrap(
    kind: OuterSandboxKind,
    command: &HostCommand,
    scratch: &Scratch,
) -> Result<WrappedCommand, ErrorBody> {
    let program = find_program(kind, None)?;
    let program = program.unwrap_or_default();
    Ok(match kind {
        OuterSandboxKind::None => NoSandbox.wrap(command),
        OuterSandboxKind::Bubblewrap => Bubblewrap { program }.wrap(command),
        OuterSandboxKind::Gvisor => {
            let directory = scratch.path().join("runsc");
            std::fs::create_dir(&directory).map_err(|e| failed("temporary directory", &e))?;
            let root = scratch.root();
            prepare_root(&root, command)?;
            GvisorRoot {
                program,
                directory: text(&directory)?,
                root: text(&root)?,
            }
            .wrap(command)
        }
    })
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
    // Write in a separate thread: a tool may print more than a pipe can buffer before it reads its
    // input. A tool that does not read its input closes the pipe, which is no error.
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
