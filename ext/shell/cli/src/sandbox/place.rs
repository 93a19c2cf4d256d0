//! The state directory and site that the arguments of a command name.

use super::args::PlaceArgs;
use wp_codebox_contracts::{ErrorBody, ErrorCode, SiteId};
use wp_codebox_runtime::StateDir;
use wp_codebox_sandboxes::Sandboxes;
use wp_codebox_settings::Settings;

/// State directory and site of a command.
#[derive(Debug)]
pub(super) struct Place {
    pub state: StateDir,
    pub site: SiteId,
}

impl Place {
    /// Opens the state directory and switches from root to the user who owns it.
    pub(super) fn open(place: &PlaceArgs) -> Result<Self, ErrorBody> {
        let settings = Settings::resolve(&place.paths)?;
        let state = StateDir::open(&settings.state_dir)?;
        state.become_owner()?;
        let site = site(place)?;
        Ok(Self { state, site })
    }

    pub(super) fn sandboxes(&self) -> Sandboxes<'_> {
        Sandboxes {
            state: &self.state,
            site: &self.site,
        }
    }
}

/// Returns the site that `--site` names.
pub(super) fn site(place: &PlaceArgs) -> Result<SiteId, ErrorBody> {
    SiteId::new(place.site.clone())
        .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, format!("--site: {e}")))
}
