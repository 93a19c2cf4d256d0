//! Caps of model cost in a month: reserves money for a run before it starts, and records afterwards
//! what its model cost.
//!
//! Only the built-in agent loop reports tokens, and only prices make a cost of them. With a cap, a
//! run whose model costs money that nothing counts is refused.

use super::job::Job;
use wp_codebox_contracts::{Agent, ErrorBody, ErrorCode, ModelEndpoint, ModelUsage, SpendCaps};
use wp_codebox_runtime::SpendReservation;

/// Reserves money for the model of a run, and lowers the agent's budget to it. Returns `None` if
/// the run has no cap, or no model that costs money.
pub(crate) fn reserve(job: &mut Job) -> Result<Option<SpendReservation>, ErrorBody> {
    let request = job.request();
    let Some(share) = request.share else {
        return Ok(None);
    };
    // A provider that needs no key sends no bill.
    let billed = |model: &&ModelEndpoint| model.secret.is_some();
    let Some(model) = request.model.as_ref().filter(billed) else {
        return Ok(None);
    };
    if share.spend == SpendCaps::default() {
        return Ok(None);
    }
    let wanted = match &request.agent {
        Some(Agent::Model(agent)) if model.prices.is_some() => agent.budget.cost_microusd,
        Some(Agent::Model(_)) => {
            return Err(uncounted(
                model,
                "the settings have no prices for it",
                "set the prices of the provider",
            ));
        }
        // A task can name a model that its agent has no route to.
        _ if !job.guest_uses_model() => return Ok(None),
        _ => {
            return Err(uncounted(
                model,
                "a program in the sandbox would call it",
                "use the built-in agent",
            ));
        }
    };
    let made = SpendReservation::make(job.state(), &request.site, &request.run_id, &share, wanted);
    let made = made?;
    if let (Some(made), Some(Agent::Model(agent))) = (&made, &mut job.request_mut().agent) {
        agent.budget.cost_microusd = Some(made.microusd());
    }
    Ok(made)
}

/// Records what the model of a run cost. If that fails, the whole reservation counts as used.
pub(crate) fn settle(reservation: Option<SpendReservation>, usage: Option<ModelUsage>) {
    if let Some(reservation) = reservation {
        let used = usage.and_then(|usage| usage.cost_microusd);
        let _ = reservation.settle(used.unwrap_or_default());
    }
}

fn uncounted(model: &ModelEndpoint, why: &str, instead: &str) -> ErrorBody {
    let message = format!(
        "this site has a cap of model cost, and the cost of {}/{} cannot be counted: {why}",
        model.provider, model.model
    );
    ErrorBody::new(ErrorCode::BudgetInvalid, message).hint(format!(
        "{instead}, or ask an administrator to remove the cap \"Model cost in a month\" in the settings of Codebox"
    ))
}
