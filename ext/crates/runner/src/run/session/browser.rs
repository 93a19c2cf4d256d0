//! Browser commands: a browser in a guest of its own looks at the working guest's site.

use super::{Commanded, Session};
use crate::run::recorder::Bounds;
use wp_codebox_contracts::{CommandCall, ErrorBody, ErrorCode};

impl Session<'_, '_> {
    pub(super) fn browser_command(
        &mut self,
        call: &CommandCall,
        _bounds: Bounds,
    ) -> Result<Commanded, ErrorBody> {
        let message = format!("{}: there is no browser here yet", call.command);
        Err(ErrorBody::new(ErrorCode::BrowserUnavailable, message))
    }
}
