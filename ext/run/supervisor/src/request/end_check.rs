//! Checks before the agent starts what the end of a run needs: the signing key, and rights and space
//! for the bundle. Otherwise the agent would work, and its work would end in no bundle.

use wp_codebox_artifacts::{BundleError, Dir, HostKey, check_room};
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunRequest};
use wp_codebox_runtime::StateDir;

/// What a bundle means that the run has already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlierBundle {
    /// The id of the run is in use.
    Refuse,
    /// The run was sent to a cluster before, and is asked for again.
    Accept,
}

pub(crate) fn check(
    state: &StateDir,
    request: &RunRequest,
    earlier: EarlierBundle,
) -> Result<(), ErrorBody> {
    let open = |path: &std::path::Path| {
        Dir::open(path)
            .map_err(|error| ErrorBody::new(ErrorCode::BundleWriteFailed, error.to_string()))
    };
    let key = || HostKey::load_or_create(&open(state.path())?).map_err(ErrorBody::from);
    let room = || {
        let artifacts = state.ensure(&["sites", request.site.as_str(), "artifacts"])?;
        match check_room(&open(&artifacts)?, &request.run_id) {
            Err(BundleError::Exists) if earlier == EarlierBundle::Accept => Ok(()),
            checked => checked.map_err(ErrorBody::from),
        }
    };
    // The key is dropped, and thereby erased, before the first guest starts. No untrusted code may
    // run while this process has it.
    key().map(drop).and_then(|()| room()).map_err(|mut error| {
        error.message = format!(
            "the run was not started, because its bundle could not be written at its end: {}",
            error.message
        );
        error
    })
}
