//! From the place and the reference of a command to the run that is meant.

use super::args::PlaceArgs;
use crate::Settings;
use wp_codebox_contracts::{ErrorBody, ErrorCode, SiteId};
use wp_codebox_runtime::{FoundRun, StateDir, find, sites};

impl PlaceArgs {
    /// The partitions that are meant.
    pub(crate) fn sites(&self, state: &StateDir) -> Result<Vec<SiteId>, ErrorBody> {
        match &self.site {
            Some(site) => SiteId::new(site.clone())
                .map(|site| vec![site])
                .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, format!("--site: {e}"))),
            None => sites(state).map_err(|e| e.body()),
        }
    }
}

/// The state directory, root given up, and the sites that are meant.
pub(super) fn open(place: &PlaceArgs) -> Result<(StateDir, Vec<SiteId>), ErrorBody> {
    let settings = Settings::resolve(&place.paths);
    let state = StateDir::open(&settings.state_dir).map_err(|e| e.body())?;
    state.become_owner().map_err(|e| e.body())?;
    let wanted = place.sites(&state)?;
    Ok((state, wanted))
}

/// The state directory and the one run that a reference names.
pub(crate) fn found(place: &PlaceArgs, reference: &str) -> Result<(StateDir, FoundRun), ErrorBody> {
    let (state, sites) = open(place)?;
    let run = find(&state, &sites, reference).map_err(|e| e.body())?;
    Ok((state, run))
}
