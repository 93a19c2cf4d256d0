//! Parameters of a sandbox's creation: `sites/<site>/sandboxes/<run_id>.json`. The file contains
//! host paths and no secret; only `recreate` reads it.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunId, SandboxScope, SiteId};
use wp_codebox_runtime::{SEEDS, StateDir};

/// Maximum size of a seed file in bytes.
const LARGEST: u64 = 256 * 1024;

/// Parameters of a sandbox's creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Seed {
    /// Text of the profile.
    pub profile: String,
    /// Host directory of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Snapshot to start from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Time to live in milliseconds.
    pub ttl_ms: u64,
    /// Owner of the sandbox.
    pub scope: SandboxScope,
    /// Actor that created the sandbox.
    pub actor: String,
    /// Id of the sandbox that this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<RunId>,
}

impl Seed {
    /// Returns the seed for a replacement sandbox.
    pub(super) fn again(self, of: &RunId, actor: &str) -> Self {
        Self {
            actor: actor.to_owned(),
            instead_of: Some(of.clone()),
            ..self
        }
    }

    /// Writes the seed to the site's directory. Root must have been given up.
    pub(super) fn write(
        &self,
        state: &StateDir,
        site: &SiteId,
        run_id: &RunId,
    ) -> Result<(), ErrorBody> {
        let failed = |e: std::io::Error| {
            let message = format!("the parameters of the sandbox cannot be stored: {e}");
            ErrorBody::new(ErrorCode::StateDirInvalid, message)
        };
        let directory = state
            .ensure(&["sites", site.as_str(), SEEDS])
            .map_err(|e| e.body())?;
        let text = serde_json::to_vec_pretty(self).map_err(|e| failed(e.into()))?;
        let unfinished = directory.join(format!(".{run_id}.new"));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&unfinished).map_err(failed)?;
        file.write_all(&text).map_err(failed)?;
        fs::rename(unfinished, directory.join(format!("{run_id}.json"))).map_err(failed)
    }

    /// Reads the seed of a sandbox.
    pub(super) fn read(state: &StateDir, site: &SiteId, run_id: &RunId) -> Result<Self, ErrorBody> {
        use std::io::Read;
        let path = state
            .path()
            .join("sites")
            .join(site.as_str())
            .join(SEEDS)
            .join(format!("{run_id}.json"));
        let mut bytes = Vec::new();
        let read = fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_end(&mut bytes));
        let seed = read.ok().and_then(|_| serde_json::from_slice(&bytes).ok());
        seed.ok_or_else(|| {
            let message =
                format!("the stored parameters of sandbox {run_id} are missing or invalid");
            ErrorBody::new(ErrorCode::SandboxNotFound, message)
                .hint("make one with `wp-codebox sandbox create`")
        })
    }
}
