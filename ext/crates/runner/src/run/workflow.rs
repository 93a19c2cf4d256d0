//! The steps of a recipe, one after the other, in the session of their run.

use super::session::Session;
use super::work::Stop;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Workflow};

/// Runs every step. What stops the run is answered; what failed and was allowed to is in the
/// evidence only.
pub(super) fn run(
    _session: &mut Session<'_, '_>,
    _workflow: &Workflow,
) -> Result<Option<Stop>, ErrorBody> {
    Err(ErrorBody::new(
        ErrorCode::Internal,
        "recipes cannot be run yet",
    ))
}
