//! Finds the run that the arguments of a command name.

use super::args::PlaceArgs;
use wp_codebox_contracts::{ErrorBody, ErrorCode, SiteId};
use wp_codebox_runtime::{FoundRun, StateDir, find, sites};
use wp_codebox_settings::Settings;

impl PlaceArgs {
    /// Returns the partitions of the state directory to search: the one of `--site`, else all.
    pub(crate) fn sites(&self, state: &StateDir) -> Result<Vec<SiteId>, ErrorBody> {
        match &self.site {
            Some(site) => SiteId::new(site.clone())
                .map(|site| vec![site])
                .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, format!("--site: {e}"))),
            None => sites(state).map_err(ErrorBody::from),
        }
    }
}

/// Opens the state directory, switches from root to the user who owns it, and returns the
/// partitions to search.
pub(super) fn open(place: &PlaceArgs) -> Result<(StateDir, Vec<SiteId>), ErrorBody> {
    let settings = Settings::resolve(&place.paths)?;
    let state = StateDir::open(&settings.state_dir)?;
    state.become_owner()?;
    let wanted = place.sites(&state)?;
    Ok((state, wanted))
}

/// Opens the state directory and finds the run with this id or unique prefix of an id.
pub(crate) fn found(place: &PlaceArgs, reference: &str) -> Result<(StateDir, FoundRun), ErrorBody> {
    let (state, sites) = open(place)?;
    let run = find(&state, &sites, reference)?;
    Ok((state, run))
}
