//! The built-in loop.

use super::super::work::ProgramsEnd;
use super::Bench;
use wp_codebox_contracts::{ErrorBody, ErrorCode, ModelAgent};

pub(super) fn run(_agent: &ModelAgent, _bench: Bench<'_, '_>) -> Result<ProgramsEnd, ErrorBody> {
    Err(ErrorBody::new(ErrorCode::AgentMissing, "not built yet"))
}
