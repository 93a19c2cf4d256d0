//! Locks on files in `sites/<site>/slots`, which the end of the request or of the process releases.

use crate::guard::Failure;
use crate::ini::Settings;
use crate::state::State;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use wp_codebox_artifacts::Dir;
use wp_codebox_contracts::{ErrorBody, ErrorCode, SiteId};

const DIRECTORY: &str = "slots";

/// The directory with the locks of a site.
#[derive(Debug)]
pub(crate) struct Slots {
    state: State,
    directory: Dir,
}

impl Slots {
    /// Opens the directory and creates it if missing.
    pub(crate) fn open(settings: &Settings, site: &SiteId) -> Result<Self, Failure> {
        let state = State::open(settings)?;
        let directory = {
            let _owner = state.as_owner();
            state
                .directory
                .private_dir("sites")
                .and_then(|sites| sites.private_dir(site.as_str()))
                .and_then(|site| site.private_dir(DIRECTORY))
                .map_err(unusable)?
        };
        Ok(Self { state, directory })
    }

    /// Locks the first of the `count` files `kind-N` that is not locked; `None` if all are.
    pub(crate) fn first_free(&self, kind: &str, count: u32) -> Result<Option<OwnedFd>, Failure> {
        let _owner = self.state.as_owner();
        let free = self.directory.lock_first_free(kind, count);
        free.map_err(unusable)
    }
}

fn unusable(error: Errno) -> Failure {
    let message = format!(
        "the directory `slots` of the site cannot be used ({error}); check owner and free space of the state directory"
    );
    ErrorBody::new(ErrorCode::StateDirInvalid, message).into()
}
