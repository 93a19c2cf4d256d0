//! Stores the parameters from which a sandbox was created (its seed) in
//! `sites/<site>/sandboxes/<run_id>.json`. The file contains host paths and no secret; only
//! `recreate` reads it.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunId, SandboxScope, Service, SiteId};
use wp_codebox_runtime::{SEEDS, StateDir};

/// Maximum size of a seed file in bytes.
const LARGEST: u64 = 256 * 1024;

/// Parameters from which a sandbox is created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// Text of the profile, as it was when the sandbox was created.
    pub profile: String,
    /// Host directory that becomes the workspace, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Reference to the snapshot with which the sandbox starts, as the caller gave it; absent if
    /// the sandbox starts with a new WordPress site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Servers in the guest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Time to live in milliseconds.
    pub ttl_ms: u64,
    /// Owner of the sandbox, such as a session.
    pub scope: SandboxScope,
    /// Name of the user or program that created the sandbox.
    pub actor: String,
    /// Id of the sandbox that this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<RunId>,
    /// Reference to instructions for the agent, as its caller gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_ref: Option<String>,
    /// Names of the profile's secrets that the sandbox gets; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_refs: Option<Vec<String>>,
}

impl Seed {
    /// Returns the parameters for a sandbox that replaces the sandbox `of`.
    pub fn again(self, of: &RunId, actor: &str) -> Self {
        Self {
            actor: actor.to_owned(),
            instead_of: Some(of.clone()),
            ..self
        }
    }

    /// Writes the seed file. The caller must already have switched from root to the owner of the
    /// state directory, so that the file belongs to that user.
    pub fn write(&self, state: &StateDir, site: &SiteId, run_id: &RunId) -> Result<(), ErrorBody> {
        let failed = |e: std::io::Error| {
            let message = format!("the parameters of the sandbox cannot be stored: {e}");
            ErrorBody::new(ErrorCode::StateDirInvalid, message)
        };
        let directory = state.ensure(&["sites", site.as_str(), SEEDS])?;
        let text = serde_json::to_vec_pretty(self).map_err(|e| failed(e.into()))?;
        let unfinished = directory.join(format!(".{run_id}.new"));
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&unfinished).map_err(failed)?;
        file.write_all(&text)
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
        fs::rename(unfinished, directory.join(format!("{run_id}.json"))).map_err(failed)?;
        fs::File::open(&directory)
            .and_then(|directory| directory.sync_all())
            .map_err(failed)
    }

    /// Reads the parameters of a sandbox; fails if none are stored.
    pub fn read(state: &StateDir, site: &SiteId, run_id: &RunId) -> Result<Self, ErrorBody> {
        Self::find(state, site, run_id)?.ok_or_else(|| {
            let message = format!("the stored parameters of sandbox {run_id} are missing");
            ErrorBody::new(ErrorCode::SandboxNotFound, message)
                .hint("create a new sandbox with `wp-codebox sandbox create`")
        })
    }

    /// Reads the parameters of a sandbox; `None` only if the file does not exist.
    pub fn find(
        state: &StateDir,
        site: &SiteId,
        run_id: &RunId,
    ) -> Result<Option<Self>, ErrorBody> {
        use std::io::{ErrorKind, Read};
        let path = state.path().join("sites").join(site.as_str());
        let path = path.join(SEEDS).join(format!("{run_id}.json"));
        let unreadable = |e: std::io::Error| {
            let message = format!("the stored parameters of sandbox {run_id} cannot be read: {e}");
            ErrorBody::new(ErrorCode::StateDirInvalid, message).hint(
                "restore the file from a backup, or create a new sandbox with `wp-codebox sandbox create`",
            )
        };
        let file = match fs::File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(unreadable)?,
        };
        let mut bytes = Vec::new();
        let read = file.take(LARGEST).read_to_end(&mut bytes);
        read.map_err(unreadable)?;
        let seed = serde_json::from_slice(&bytes).map_err(|e| unreadable(e.into()))?;
        Ok(Some(seed))
    }
}
