//! From the place and the reference of a command to the sandbox that is meant.

use super::args::PlaceArgs;
use crate::Settings;
use std::time::Duration;
use wp_codebox_contracts::{ErrorBody, ErrorCode, SiteId};
use wp_codebox_runtime::{FoundRun, RegistryError, StateDir, find, view};

/// Member of a run's provenance that makes it a sandbox.
pub(super) const PROVENANCE: &str = "sandbox";
/// Pause between two looks at a run that ends.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A state directory, root given up, and the site that is meant.
pub(super) fn open(place: &PlaceArgs) -> Result<(StateDir, SiteId), ErrorBody> {
    let settings = Settings::resolve(&place.paths);
    let state = StateDir::open(&settings.state_dir).map_err(|e| e.body())?;
    state.become_owner().map_err(|e| e.body())?;
    Ok((state, site(place)?))
}

/// The site that is meant.
pub(super) fn site(place: &PlaceArgs) -> Result<SiteId, ErrorBody> {
    SiteId::new(place.site.clone())
        .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, format!("--site: {e}")))
}

/// A sandbox by its id or the beginning of it.
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
