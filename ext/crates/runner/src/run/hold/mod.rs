//! A sandbox that stays: requests of whoever may reach its control socket, until it is closed,
//! idle, or its time is up.

mod desk;

pub(crate) use desk::Desk;

use super::session::Session;
use super::work::Stop;
use wp_codebox_contracts::{ErrorBody, ErrorCode, Hold};

/// Serves requests until the end. A sandbox that was closed or came to its time ended well.
pub(super) fn serve(
    _session: &mut Session<'_, '_>,
    _hold: &Hold,
    _desk: &Desk,
) -> Result<Option<Stop>, ErrorBody> {
    Err(ErrorBody::new(
        ErrorCode::Internal,
        "sandboxes cannot be held yet",
    ))
}
