//! The extension under test.

use crate::actor::Actor;
use crate::extension::{Extension, Provision, SandboxId, SetupMetadata};
use crate::profile::ProfileDocument;
use serde_json::Map;
use std::sync::Arc;
use std::time::Duration;

/// What the suite needs to know about the extension under test.
#[derive(Clone)]
pub struct Subject {
    /// The extension.
    pub extension: Arc<dyn Extension>,
    /// Profile of the sandboxes.
    pub profile: ProfileDocument,
    /// Host directory for the workspace, if the profile needs one.
    pub source: Option<String>,
    /// Absolute guest path of a writable directory.
    pub workspace: String,
    /// Time limit of each wait of the suite.
    pub patience: Duration,
}

impl Subject {
    /// Returns the parameters of a sandbox.
    #[must_use]
    pub fn request(&self, sandbox: &SandboxId, actor: &Actor) -> Provision {
        Provision {
            sandbox: sandbox.clone(),
            profile_id: self.profile.id.clone(),
            profile_version: self.profile.version.clone(),
            profile_sha256: self.profile.sha256.clone(),
            profile: self.profile.text.clone(),
            host: None,
            source: self.source.clone(),
            snapshot: None,
            services: Vec::new(),
            ttl_ms: self.profile.ttl_default_ms,
            scope: self.profile.scope_default,
            actor: actor.clone(),
            instead_of: None,
            inputs: Map::new(),
            setup_metadata: SetupMetadata::default(),
        }
    }
}
