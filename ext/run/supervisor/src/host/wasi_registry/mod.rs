//! Registry of WASI tools: the directory `tools` of the state directory, one directory per tool.
//!
//! Layout: `tools/<id>/definition.json`, `tools/<id>/module.wasm`, and compiled code in
//! `tools/<id>/<sha256 of the module>-<key of the engine>.cwasm`. A tool appears and disappears by
//! one rename. A registration also removes what killed processes have left. Every use checks that
//! no other user could have changed the files and that the module has the digest of the definition.
//! Guests see copies, so no guest can write here.

mod bounded_process;
mod error;
mod files;
mod leftovers;
mod runner;

pub use error::WasiRegistryError;
pub use runner::WasiRunner;

use files::{open_directory, read, sync_directory, write};
use leftovers::{COMPILED, NEW, OLD, lock, sweep};
use rustix::fs::Mode;
use rustix::process::Uid;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::sha256;
use wp_codebox_contracts::{MAX_WASI_DEFINITION_BYTES, Sha256Hex, WasiTool, WasiToolId};
use wp_codebox_policy::check_wasi_tools;

/// Name of the directory in the state directory.
const DIRECTORY: &str = "tools";
/// File names of a tool's directory.
const DEFINITION: &str = "definition.json";
const MODULE: &str = "module.wasm";
/// Largest size of a module, as in its definition's schema.
const MODULE_BYTES: u64 = 64 << 20;
/// Maximum number of registered tools: each is a part of every request to a model.
const MAX_TOOLS: usize = 64;

/// A tool of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct RegisteredTool {
    /// The parsed definition.
    pub tool: WasiTool,
    /// The definition as registered.
    pub definition: Vec<u8>,
    /// SHA-256 of `definition`.
    pub definition_sha256: Sha256Hex,
    directory: PathBuf,
    owner: Uid,
}

impl RegisteredTool {
    /// Returns the module; fails if it is not the one that the definition names.
    pub fn module(&self) -> Result<Vec<u8>, WasiRegistryError> {
        let directory = open_directory(&self.directory, self.owner)?;
        let bytes = read(
            &directory,
            MODULE,
            &self.directory,
            MODULE_BYTES,
            self.owner,
        )?;
        check_module(&self.tool, &bytes)?;
        Ok(bytes)
    }

    /// Returns the path of the definition.
    #[must_use]
    pub fn definition_path(&self) -> PathBuf {
        self.directory.join(DEFINITION)
    }

    /// Returns the path of the module.
    #[must_use]
    pub fn module_path(&self) -> PathBuf {
        self.directory.join(MODULE)
    }

    /// Returns the path of the code that `runner` compiled from the module, after compiling it if
    /// there is none for the runner's engine.
    pub fn compiled(&self, runner: &WasiRunner) -> Result<PathBuf, WasiRegistryError> {
        let key = runner.engine()?;
        let path = self.code_path(&key);
        if !path.exists() {
            let registry = self.directory.parent().unwrap_or(&self.directory);
            let _lock = lock(registry, self.owner)?;
            if !path.exists() {
                self.compile(runner, &path)?;
            }
        }
        Ok(path)
    }

    fn code_path(&self, key: &str) -> PathBuf {
        let name = format!("{}-{key}{COMPILED}", self.tool.module.sha256);
        self.directory.join(name)
    }

    /// Compiles the module. The runner renames a finished file to `path`.
    fn compile(&self, runner: &WasiRunner, path: &Path) -> Result<(), WasiRegistryError> {
        runner.compile(&self.definition_path(), &self.module_path(), path)
    }
}

/// Checks a definition and its module before they are registered.
pub fn parse_wasi_tool(definition: &[u8], module: &[u8]) -> Result<WasiTool, WasiRegistryError> {
    let tool =
        WasiTool::parse(definition).map_err(|source| WasiRegistryError::Definition { source })?;
    check_module(&tool, module)?;
    Ok(tool)
}

/// Fails if the module is not the one that the definition names.
fn check_module(tool: &WasiTool, module: &[u8]) -> Result<(), WasiRegistryError> {
    let expected = &tool.module;
    if module.len() as u64 == expected.bytes && sha256(module) == expected.sha256 {
        return Ok(());
    }
    Err(WasiRegistryError::Digest {
        id: tool.id.clone(),
    })
}

/// The registry of one state directory. Only the owner of the state directory may change it.
#[derive(Debug)]
pub struct WasiTools {
    directory: PathBuf,
    /// Owner of the state directory.
    owner: Uid,
}

impl WasiTools {
    /// Returns the registry of the state directory at `state`.
    #[must_use]
    pub fn of(state: &Path) -> Self {
        let owner = rustix::fs::stat(state).map(|stat| Uid::from_raw(stat.st_uid));
        Self {
            directory: state.join(DIRECTORY),
            // Without a state directory there is no tool to check.
            owner: owner.unwrap_or(Uid::ROOT),
        }
    }

    /// Returns all tools, ordered by id; none if nothing was registered yet.
    pub fn list(&self) -> Result<Vec<RegisteredTool>, WasiRegistryError> {
        let directory = match open_directory(&self.directory, self.owner) {
            Err(WasiRegistryError::Read {
                source: rustix::io::Errno::NOENT,
                ..
            }) => return Ok(Vec::new()),
            opened => opened?,
        };
        let failed = |source| WasiRegistryError::Read {
            path: self.directory.clone(),
            source,
        };
        let mut ids = Vec::new();
        for entry in rustix::fs::Dir::read_from(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            // `.new-…` and `.old-…` belong to a registration or removal that is not finished.
            if name.starts_with(b".") {
                continue;
            }
            let id = std::str::from_utf8(name)
                .ok()
                .and_then(|n| WasiToolId::new(n).ok());
            ids.push(id.ok_or_else(|| WasiRegistryError::Untrusted {
                path: self.directory.join(OsStr::from_bytes(name)),
                reason: "its name is not the id of a tool",
            })?);
        }
        ids.sort();
        if ids.len() > MAX_TOOLS {
            return Err(WasiRegistryError::TooMany { most: MAX_TOOLS });
        }
        ids.iter().map(|id| self.load(id)).collect()
    }

    /// Returns one tool.
    pub fn get(&self, id: &WasiToolId) -> Result<RegisteredTool, WasiRegistryError> {
        match self.load(id) {
            Err(WasiRegistryError::Read {
                source: rustix::io::Errno::NOENT,
                ..
            }) => Err(WasiRegistryError::Unknown { id: id.clone() }),
            loaded => loaded,
        }
    }

    fn load(&self, id: &WasiToolId) -> Result<RegisteredTool, WasiRegistryError> {
        let path = self.directory.join(id.as_str());
        let directory = open_directory(&path, self.owner)?;
        let definition = read(
            &directory,
            DEFINITION,
            &path,
            MAX_WASI_DEFINITION_BYTES as u64,
            self.owner,
        )?;
        let tool = WasiTool::parse(&definition)
            .map_err(|source| WasiRegistryError::Definition { source })?;
        if tool.id != *id {
            return Err(WasiRegistryError::Untrusted {
                path,
                reason: "its definition is that of another tool",
            });
        }
        Ok(RegisteredTool {
            tool,
            definition_sha256: sha256(&definition),
            definition,
            directory: path,
            owner: self.owner,
        })
    }

    /// Registers a tool and compiles its module.
    pub fn add(
        &self,
        definition: &[u8],
        module: &[u8],
        runner: &WasiRunner,
    ) -> Result<RegisteredTool, WasiRegistryError> {
        let tool = parse_wasi_tool(definition, module)?;
        let key = runner.engine()?;
        self.make_directory()?;
        let _lock = lock(&self.directory, self.owner)?;
        sweep(&self.directory, &key)?;
        let mut tools: Vec<WasiTool> = self.list()?.into_iter().map(|row| row.tool).collect();
        if tools.len() >= MAX_TOOLS {
            return Err(WasiRegistryError::TooMany { most: MAX_TOOLS });
        }
        tools.push(tool.clone());
        if let Some(issue) = check_wasi_tools(&tools).into_iter().next() {
            return Err(WasiRegistryError::Taken {
                id: tool.id,
                reason: issue.message,
            });
        }
        let temporary = self.temporary(NEW)?;
        let registered = self.fill(&temporary, &tool.id, definition, module, (runner, &key));
        if registered.is_err() {
            // The error of the registration is the one to report.
            let _ = std::fs::remove_dir_all(&temporary);
        }
        registered
    }

    fn fill(
        &self,
        temporary: &Path,
        id: &WasiToolId,
        definition: &[u8],
        module: &[u8],
        (runner, key): (&WasiRunner, &str),
    ) -> Result<RegisteredTool, WasiRegistryError> {
        write(temporary, DEFINITION, definition)?;
        write(temporary, MODULE, module)?;
        let mut found = RegisteredTool {
            tool: WasiTool::parse(definition)
                .map_err(|source| WasiRegistryError::Definition { source })?,
            definition: definition.to_owned(),
            definition_sha256: sha256(definition),
            directory: temporary.to_owned(),
            owner: self.owner,
        };
        // A module that cannot be compiled, or imports what it is not granted, is refused here.
        found.compile(runner, &found.code_path(key))?;
        sync_directory(temporary)?;
        let path = self.directory.join(id.as_str());
        // Fails with ENOTEMPTY if a program without the lock registered the same id meanwhile.
        std::fs::rename(temporary, &path).map_err(WasiRegistryError::io(&path))?;
        sync_directory(&self.directory)?;
        found.directory = path;
        Ok(found)
    }

    /// Removes a tool. Runs that use it go on with their copies.
    pub fn remove(&self, id: &WasiToolId) -> Result<(), WasiRegistryError> {
        let path = self.directory.join(id.as_str());
        if path.symlink_metadata().is_err() {
            return Err(WasiRegistryError::Unknown { id: id.clone() });
        }
        let _lock = lock(&self.directory, self.owner)?;
        let gone = match path.symlink_metadata() {
            Err(_) => return Err(WasiRegistryError::Unknown { id: id.clone() }),
            Ok(_) => self.temporary(OLD)?,
        };
        std::fs::rename(&path, &gone).map_err(WasiRegistryError::io(&path))?;
        sync_directory(&self.directory)?;
        std::fs::remove_dir_all(&gone).map_err(WasiRegistryError::io(&gone))
    }

    fn make_directory(&self) -> Result<(), WasiRegistryError> {
        make(&self.directory).map(drop)
    }

    /// Makes an empty directory whose name begins with `start`. The list of tools leaves out such
    /// names.
    fn temporary(&self, start: &str) -> Result<PathBuf, WasiRegistryError> {
        for number in 0..1000 {
            let pid = rustix::process::getpid().as_raw_nonzero();
            let path = self.directory.join(format!("{start}{pid}-{number}"));
            if make(&path)? {
                return Ok(path);
            }
        }
        Err(WasiRegistryError::io(&self.directory)(
            rustix::io::Errno::EXIST.into(),
        ))
    }
}

/// Makes a directory; returns false if the path exists.
fn make(path: &Path) -> Result<bool, WasiRegistryError> {
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o700)) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::EXIST) => Ok(false),
        Err(source) => Err(WasiRegistryError::io(path)(source.into())),
    }
}
