//! WASI tools of a run: loads them from the registry of the state directory and copies those that
//! the agent may use to the run's scratch directory, from which the work guest sees them.
//!
//! The copies pin the tools: definitions are read once, before the run starts, each module is
//! compared with the digest in its definition, and a later change of the registry does not reach
//! the run.

use super::pinned::{open_dir, pinned};
use crate::host::wasi_registry::{RegisteredTool, WasiRegistryError, WasiRunner, WasiTools};
use crate::journal::wasi_facts::WasiToolFacts;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wp_codebox_agent::GuestWasiTool;
use wp_codebox_backend_native::{GuestKind, ProgramDirectory, WASI_TOOLS, guest_audit};
use wp_codebox_contracts::{
    Agent, ErrorBody, ErrorCode, GuestPath, RunRequest, SandboxAudit, WasiTool,
};
use wp_codebox_policy::{ToolKind, ToolSet};
use wp_codebox_runtime::{GuestMount, RunDir};

/// Name of the scratch directory with the copies.
const SCRATCH: &str = "wasi-tools";
/// Name of the runner in that directory.
const RUNNER: &str = "wp-codebox-wasi";

/// The registered tools at the start of a run. Only the built-in agent calls WASI tools, so other
/// runs have none.
#[derive(Debug, Default)]
pub(crate) struct RunWasiTools {
    registered: Vec<RegisteredTool>,
    tools: Vec<WasiTool>,
}

/// The tools that a work guest has.
#[derive(Debug, Default)]
pub(crate) struct MountedWasiTools {
    /// Directory with the runner and the tools; `None` without tools.
    pub programs: Option<ProgramDirectory>,
    pub tools: Vec<GuestWasiTool>,
    pub facts: Vec<WasiToolFacts>,
}

impl RunWasiTools {
    /// Loads the tools from the state directory that the request names.
    pub(crate) fn load(request: &RunRequest) -> Result<Self, ErrorBody> {
        let Some(Agent::Model(_)) = &request.agent else {
            return Ok(Self::default());
        };
        let registered = match WasiTools::of(Path::new(&request.paths.state_dir)).list() {
            // The caller may lack permission to read the state directory. The run is then refused
            // with a clearer reason when the state directory is opened.
            Err(WasiRegistryError::Read {
                source: rustix::io::Errno::ACCESS,
                ..
            }) => Vec::new(),
            listed => listed?,
        };
        let tools = registered.iter().map(|row| row.tool.clone()).collect();
        Ok(Self { registered, tools })
    }

    /// Returns the definitions, ordered by id.
    pub(crate) fn tools(&self) -> &[WasiTool] {
        &self.tools
    }

    /// Describes the offered tools for the record of the run's request.
    pub(crate) fn pins(&self, set: &ToolSet) -> Vec<Value> {
        self.offered(set)
            .map(|row| {
                json!({
                    "id": row.tool.id,
                    "version": row.tool.version,
                    "definitionSha256": row.definition_sha256,
                    "moduleSha256": row.tool.module.sha256,
                })
            })
            .collect()
    }

    fn offered<'a>(&'a self, set: &'a ToolSet) -> impl Iterator<Item = &'a RegisteredTool> {
        self.registered.iter().filter(|row| {
            let is = |kind: &ToolKind| matches!(kind, ToolKind::Wasi(id) if *id == row.tool.id);
            set.offered().iter().any(|tool| is(&tool.kind))
        })
    }

    /// Copies the tools of `set` and the runner to the run's scratch directory.
    pub(crate) fn mount(
        &self,
        set: &ToolSet,
        launcher: &Path,
        run_dir: &RunDir,
        mounts: &[GuestMount],
    ) -> Result<MountedWasiTools, ErrorBody> {
        if self.offered(set).next().is_none() {
            return Ok(MountedWasiTools::default());
        }
        let runner = WasiRunner::beside(launcher)?;
        let scratch = run_dir.scratch(SCRATCH)?;
        readable(&scratch, 0o755)?;
        let program = scratch.join(RUNNER);
        copy(runner.program(), &program, 0o755)?;
        let mut mounted = MountedWasiTools::default();
        for row in self.offered(set) {
            let id = &row.tool.id;
            let directory = scratch.join(id.as_str());
            std::fs::create_dir(&directory).map_err(|e| failed(&directory, &e))?;
            readable(&directory, 0o755)?;
            let compiled = row.compiled(&runner)?;
            write(&directory.join("definition.json"), &row.definition)?;
            write(&directory.join("module.wasm"), &row.module()?)?;
            copy(&compiled, &directory.join("module.cwasm"), 0o444)?;
            let tool = GuestWasiTool {
                id: id.clone(),
                runner: format!("{WASI_TOOLS}/{RUNNER}"),
                directory: guest_path(&format!("{WASI_TOOLS}/{id}"))?,
                files: row.tool.files,
                limit: Duration::from_millis(row.tool.limits.wall_ms),
            };
            mounted.facts.push(WasiToolFacts {
                id: id.clone(),
                version: row.tool.version.clone(),
                definition_sha256: row.definition_sha256.clone(),
                module_sha256: row.tool.module.sha256.clone(),
                audit: audit(&tool, mounts),
            });
            mounted.tools.push(tool);
        }
        let open = open_dir(&scratch).map_err(|e| failed(&scratch, &e))?;
        mounted.programs = Some(ProgramDirectory {
            source: pinned(&scratch, &open).map_err(|e| failed(&scratch, &e))?,
            target: guest_path(WASI_TOOLS)?,
        });
        Ok(mounted)
    }
}

/// Returns the audit record of the tool's process, in the form of a launcher's record. The guest
/// isolates the tool, so the process has no wrapper of its own. All paths are guest paths.
fn audit(tool: &GuestWasiTool, mounts: &[GuestMount]) -> SandboxAudit {
    let argv = tool.argv(mounts);
    let args = argv.get(1..).unwrap_or_default();
    guest_audit(GuestKind::Run, RUNNER, args)
}

fn guest_path(text: &str) -> Result<GuestPath, ErrorBody> {
    GuestPath::new(text).map_err(|e| ErrorBody::new(ErrorCode::Internal, e.to_string()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), ErrorBody> {
    std::fs::write(path, bytes).map_err(|e| failed(path, &e))?;
    readable(path, 0o444)
}

fn copy(from: &Path, to: &PathBuf, mode: u32) -> Result<(), ErrorBody> {
    std::fs::copy(from, to).map_err(|e| failed(from, &e))?;
    readable(to, mode)
}

/// Sets a mode with which the guest's user may read the file or directory.
fn readable(path: &Path, mode: u32) -> Result<(), ErrorBody> {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).map_err(|e| failed(path, &e))
}

fn failed(path: &Path, error: &std::io::Error) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::WasiRegistryFailed,
        format!(
            "a WASI tool cannot be copied for the run: {}: {error}",
            path.display()
        ),
    )
}
