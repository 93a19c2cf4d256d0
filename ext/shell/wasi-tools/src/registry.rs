//! The registry of WASI tools in the state directory.

use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wp_codebox_contracts::{ErrorBody, ErrorCode, MAX_WASI_DEFINITION_BYTES};
use wp_codebox_runtime::StateDir;
use wp_codebox_settings::Settings;
use wp_codebox_supervisor::{RegisteredTool, WasiRunner, WasiTools};

/// Largest module, as in the schema of definitions.
const MODULE_BYTES: u64 = 64 << 20;

/// Opens the registry. A process of root first switches to the owner of the state directory, so
/// that new files belong to this owner.
///
/// # Errors
/// If the state directory cannot be used.
pub fn open(settings: &Settings) -> Result<WasiTools, ErrorBody> {
    let state = StateDir::open(&settings.state_dir)?;
    state.become_owner()?;
    Ok(WasiTools::of(state.path()))
}

/// The files of a tool that is not registered yet.
#[derive(Debug)]
pub struct NewTool {
    definition: Vec<u8>,
    module: Vec<u8>,
}

impl NewTool {
    /// Reads the files with the rights of the caller, before root is given up.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn read(definition: &Path, module: &Path) -> Result<Self, ErrorBody> {
        Ok(Self {
            definition: read(definition, MAX_WASI_DEFINITION_BYTES as u64)?,
            module: read(module, MODULE_BYTES)?,
        })
    }

    /// Adds the tool to the registry, and compiles it.
    ///
    /// # Errors
    /// If the registry or the runner cannot be used, or the tool is not valid.
    pub fn register(&self, settings: &Settings) -> Result<RegisteredTool, ErrorBody> {
        let tools = open(settings)?;
        let runner = WasiRunner::beside(&settings.launcher)?;
        tools
            .add(&self.definition, &self.module, &runner)
            .map_err(ErrorBody::from)
    }
}

/// Reads a file of the caller; one byte more than `most` is enough for the check of its size.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, ErrorBody> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most + 1).read_to_end(&mut bytes))
        .map_err(|error| {
            let message = format!("{} cannot be read: {error}", path.display());
            ErrorBody::new(ErrorCode::InputInvalid, message)
        })?;
    Ok(bytes)
}

/// Returns the members of a tool in documents.
#[must_use]
pub fn tool_document(row: &RegisteredTool) -> Value {
    let tool = &row.tool;
    json!({
        "id": tool.id,
        "version": tool.version,
        "description": tool.description,
        "files": tool.files,
        "grants": tool.grants,
        "limits": tool.limits,
        "definitionSha256": row.definition_sha256,
        "moduleSha256": tool.module.sha256,
    })
}
