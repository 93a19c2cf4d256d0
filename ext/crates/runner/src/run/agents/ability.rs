//! An ability that a component registers in the guest's WordPress.

use super::super::work::ProgramsEnd;
use super::Bench;
use wp_codebox_contracts::{ErrorBody, ErrorCode, RuntimeTask};

pub(super) fn run(_agent: &RuntimeTask, _bench: Bench<'_, '_>) -> Result<ProgramsEnd, ErrorBody> {
    Err(ErrorBody::new(ErrorCode::AgentMissing, "not built yet"))
}
