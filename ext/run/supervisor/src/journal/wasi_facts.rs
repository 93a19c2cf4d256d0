//! Facts about the WASI tools of a run, as transcript and bundle state them.

use serde_json::{Value, json};
use wp_codebox_contracts::{SandboxAudit, Sha256Hex, WasiToolId};

/// Facts about a tool for transcript and bundle.
#[derive(Debug, Clone)]
pub(crate) struct WasiToolFacts {
    pub id: WasiToolId,
    pub version: String,
    pub definition_sha256: Sha256Hex,
    pub module_sha256: Sha256Hex,
    /// How the tool's process is started in the guest.
    pub audit: SandboxAudit,
}

impl WasiToolFacts {
    /// Returns the digests that the transcript states for each call.
    pub(crate) fn digests(&self) -> Value {
        json!({
            "definitionSha256": self.definition_sha256,
            "moduleSha256": self.module_sha256,
        })
    }

    /// Returns the tool's row in `wasi-tools.json`.
    pub(crate) fn row(&self, executions: &[String]) -> Value {
        json!({
            "id": self.id,
            "version": self.version,
            "definitionSha256": self.definition_sha256,
            "moduleSha256": self.module_sha256,
            "executions": executions,
            "sandboxAudits": [self.audit],
        })
    }
}
