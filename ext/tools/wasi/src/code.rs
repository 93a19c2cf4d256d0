//! Compiles a module, and writes and loads compiled code.
//!
//! Compiled code is machine code: loading it is trusting it like a program. So the runner loads it
//! only from a file that no other user could have written, and only if its header names this engine
//! and this module. The header protects from mistakes (another module, another runner, a truncated
//! file); the owner and mode of the file protect from attackers.

use crate::engine;
use crate::error::RunnerError;
use crate::imports;
use crate::tool::{Kind, Tool, digest};
use rustix::fs::{FileType, Mode, OFlags, StatVfsMountFlags};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

/// First line of a file of compiled code.
const FORMAT: &str = "wp-codebox-wasi-code/1";
/// Largest file of compiled code; the code is a few times as large as its module.
const MAX_BYTES: u64 = 1 << 30;

/// A module that can be run.
pub enum Code {
    /// A preview 1 command.
    Module(Module),
    /// A component of the world `wasi:cli/command`.
    Component(Component),
}

/// Compiles a module and checks its imports.
pub fn compile(engine: &Engine, tool: &Tool) -> Result<Code, RunnerError> {
    let malformed = |error: wasmtime::Error| RunnerError::Module {
        reason: format!("{error:#}"),
    };
    let code = match tool.kind {
        Kind::Module => Code::Module(Module::from_binary(engine, &tool.module).map_err(malformed)?),
        Kind::Component => {
            Code::Component(Component::from_binary(engine, &tool.module).map_err(malformed)?)
        }
    };
    check(engine, &code)?;
    Ok(code)
}

fn check(engine: &Engine, code: &Code) -> Result<(), RunnerError> {
    match code {
        Code::Module(module) => imports::check_module(module),
        Code::Component(component) => imports::check_component(engine, component),
    }
}

/// Writes compiled code to `out`: to a temporary file beside it first, so that a reader finds all
/// of it or nothing. Every user may read the file, its owner alone may change it.
pub fn write(engine: &Engine, tool: &Tool, code: &Code, out: &Path) -> Result<(), RunnerError> {
    let bytes = match code {
        Code::Module(module) => module.serialize(),
        Code::Component(component) => component.serialize(),
    }
    .map_err(RunnerError::while_doing("serialising the compiled code"))?;
    let directory = match out.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let what = "writing the compiled code";
    let mut file =
        tempfile::NamedTempFile::new_in(directory).map_err(RunnerError::while_doing(what))?;
    file.write_all(header(engine, tool, &bytes).as_bytes())
        .and_then(|()| file.write_all(&bytes))
        .and_then(|()| {
            let mode = std::fs::Permissions::from_mode(0o644);
            file.as_file().set_permissions(mode)
        })
        .and_then(|()| file.as_file().sync_all())
        .map_err(RunnerError::while_doing(what))?;
    file.persist(out)
        .map_err(|error| RunnerError::while_doing(what)(error.error))?;
    Ok(())
}

/// Returns the lines before the code: format, engine, kind and digest of the module, digest of the
/// code, and an empty line.
fn header(engine: &Engine, tool: &Tool, code: &[u8]) -> String {
    format!(
        "{FORMAT}\n{}\n{} {}\n{}\n\n",
        engine::key(engine),
        tool.kind.as_str(),
        tool.definition.module.sha256,
        digest(code),
    )
}

/// Loads compiled code of `tool` from a file that only root or this process's user can have
/// written.
pub fn load(engine: &Engine, tool: &Tool, path: &Path) -> Result<Code, RunnerError> {
    let bytes = read_trusted(path)?;
    let refused = |reason| RunnerError::Compiled { reason };
    let end = bytes
        .windows(2)
        .take(1024)
        .position(|two| two == b"\n\n")
        .ok_or(refused("its header is missing"))?;
    let (head, code) = bytes.split_at(end + 2);
    if head != header(engine, tool, code).as_bytes() {
        return Err(refused(
            "it belongs to another module or another build of the runner, or is damaged",
        ));
    }
    let loaded = deserialize(engine, tool.kind, code)
        .map_err(|_| refused("the runtime does not accept it"))?;
    check(engine, &loaded)?;
    Ok(loaded)
}

/// Reads a file that no user but root and this process's user can have written: it is a regular
/// file, belongs to one of them, and group and others may not write it. In a guest, root's files
/// belong to the overflow user; there the file must lie on a read-only mount instead.
fn read_trusted(path: &Path) -> Result<Vec<u8>, RunnerError> {
    let what = "reading the compiled code";
    // NONBLOCK: opening a FIFO would wait for its writer.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::LOOP) => {
            return Err(RunnerError::Compiled {
                reason: "it is a symbolic link",
            });
        }
        Err(error) => return Err(RunnerError::while_doing(what)(error)),
    };
    let stat = rustix::fs::fstat(&file).map_err(RunnerError::while_doing(what))?;
    let mount = rustix::fs::fstatvfs(&file).map_err(RunnerError::while_doing(what))?;
    let owner_is_trusted = stat.st_uid == 0
        || stat.st_uid == rustix::process::geteuid().as_raw()
        || mount.f_flag.contains(StatVfsMountFlags::RDONLY);
    let reason = if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        "it is not a regular file"
    } else if stat.st_mode & 0o022 != 0 {
        "its group or every user may write it"
    } else if !owner_is_trusted {
        "it belongs to another user"
    } else {
        let mut bytes = Vec::new();
        File::from(file)
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(RunnerError::while_doing(what))?;
        if bytes.len() as u64 <= MAX_BYTES {
            return Ok(bytes);
        }
        "it is too large"
    };
    Err(RunnerError::Compiled { reason })
}

#[allow(unsafe_code)] // The runtime offers no safe way to load compiled code.
fn deserialize(engine: &Engine, kind: Kind, code: &[u8]) -> wasmtime::Result<Code> {
    match kind {
        // SAFETY: `read_trusted` made sure that only root or this user wrote the code, and the
        // header with its digest that `write` wrote it with this engine's settings.
        Kind::Module => unsafe { Module::deserialize(engine, code) }.map(Code::Module),
        // SAFETY: as above.
        Kind::Component => unsafe { Component::deserialize(engine, code) }.map(Code::Component),
    }
}
