//! Checkpoints: the state of the working guest, kept and brought back.

use super::{Commanded, Session};
use crate::run::recorder::Bounds;
use wp_codebox_contracts::{CommandCall, ErrorBody, ErrorCode};

impl Session<'_, '_> {
    pub(super) fn checkpoint_command(
        &mut self,
        call: &CommandCall,
        _bounds: Bounds,
    ) -> Result<Commanded, ErrorBody> {
        let message = format!("{}: there are no checkpoints here yet", call.command);
        Err(ErrorBody::new(ErrorCode::CommandUnsupported, message))
    }
}
