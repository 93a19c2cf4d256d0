//! Definition and module of a tool, read and compared.

use crate::error::RunnerError;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wp_codebox_contracts::{MAX_WASI_DEFINITION_BYTES, WasiTool, hex};

/// A definition with the module that it names.
#[derive(Debug)]
pub struct Tool {
    /// The checked definition.
    pub definition: WasiTool,
    /// The module; its digest and size are those of the definition.
    pub module: Vec<u8>,
    /// Which of the two binary formats the module has.
    pub kind: Kind,
}

/// Binary format of a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A core module, which uses WASI preview 1.
    Module,
    /// A component, which uses WASI 0.2.
    Component,
}

impl Kind {
    /// Returns the name in the header of compiled code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Module => "module",
            Self::Component => "component",
        }
    }

    /// Reads the format from the first eight bytes: a magic number, version and layer.
    fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.get(..8)? {
            b"\0asm\x01\0\0\0" => Some(Self::Module),
            b"\0asm\x0d\0\x01\0" => Some(Self::Component),
            _ => None,
        }
    }
}

/// Reads a tool, and checks that the module is the one of the definition.
pub fn read(definition: &Path, module: &Path) -> Result<Tool, RunnerError> {
    let limit = MAX_WASI_DEFINITION_BYTES as u64;
    let document = read_file(definition, limit, "reading the definition")?;
    let definition =
        WasiTool::parse(&document).map_err(|source| RunnerError::Definition { source })?;
    let module = read_file(module, definition.module.bytes, "reading the module")?;
    let expected = definition.module.bytes;
    if module.len() as u64 != expected {
        let more = if module.len() as u64 > expected {
            "more"
        } else {
            "fewer"
        };
        return Err(RunnerError::Digest {
            expected: format!("{expected} bytes"),
            found: format!("{more} bytes"),
        });
    }
    let found = digest(&module);
    if found != definition.module.sha256.as_str() {
        return Err(RunnerError::Digest {
            expected: format!("sha256 {}", definition.module.sha256),
            found: format!("sha256 {found}"),
        });
    }
    let kind = Kind::of(&module).ok_or_else(|| RunnerError::Module {
        reason: "it does not begin with the magic number of WebAssembly".to_owned(),
    })?;
    Ok(Tool {
        definition,
        module,
        kind,
    })
}

/// Returns the SHA-256 of `bytes` as lower-case hex digits.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Reads at most `limit` + 1 bytes of a file: one more shows the caller that the file is larger.
fn read_file(path: &Path, limit: u64, what: &'static str) -> Result<Vec<u8>, RunnerError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(RunnerError::while_doing(what))?;
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(RunnerError::while_doing(what))?;
    Ok(bytes)
}
