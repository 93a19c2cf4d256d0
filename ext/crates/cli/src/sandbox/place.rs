//! Finds the sandbox that the arguments of a command name.

use super::args::PlaceArgs;
use crate::Settings;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, ErrorCode, SiteId};
use wp_codebox_runtime::{FoundRun, RegistryError, StateDir, find, view};

/// Key in the provenance of a run (facts that its creator stores with it) that marks a sandbox.
pub(super) const PROVENANCE: &str = "sandbox";
/// Poll interval while a command waits for the end of a run.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Opens the state directory, switches from root to the user who owns it, and returns the site.
pub(super) fn open(place: &PlaceArgs) -> Result<(StateDir, SiteId), ErrorBody> {
    let settings = Settings::resolve(&place.paths)?;
    let state = StateDir::open(&settings.state_dir).map_err(|e| e.body())?;
    state.become_owner().map_err(|e| e.body())?;
    Ok((state, site(place)?))
}

/// Returns the site that `--site` names.
pub(super) fn site(place: &PlaceArgs) -> Result<SiteId, ErrorBody> {
    SiteId::new(place.site.clone())
        .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, format!("--site: {e}")))
}

/// Finds a sandbox of the site by its id or a unique prefix of the id.
pub(super) fn found(
    state: &StateDir,
    site: &SiteId,
    reference: &str,
) -> Result<FoundRun, ErrorBody> {
    let sites = std::slice::from_ref(site);
    let run = find(state, sites, reference).map_err(|error| match error {
        RegistryError::NotFound { .. } => missing(reference),
        other => other.body(),
    })?;
    let view = view(state, &run).map_err(|e| e.body())?;
    if view.provenance.contains_key(PROVENANCE) {
        return Ok(run);
    }
    Err(missing(reference))
}

fn missing(reference: &str) -> ErrorBody {
    let message =
        format!("there is no sandbox {reference:?}; `wp-codebox sandbox list` shows all of them");
    ErrorBody::new(ErrorCode::SandboxNotFound, message)
}
