//! Budgets that apply to a whole chain of follow-up runs. The functions have no side effects.

use super::error::FollowUpError;
use wp_codebox_contracts::{AgentBudget, ModelUsage, TaskBudget};

/// Returns the budget of a run after the earlier runs of its chain used `used`. A limit that the
/// task (`asked`) or the host set applies to the whole chain, so the usage is subtracted. A default
/// limit applies to each run alone and is returned unchanged. Fails if nothing is left of a limit.
pub(super) fn remaining(
    budget: AgentBudget,
    asked: &TaskBudget,
    used: ModelUsage,
) -> Result<AgentBudget, FollowUpError> {
    let default = AgentBudget::default();
    let turns = left(Limit {
        name: "turns",
        value: budget.turns.into(),
        is_set: asked.turns.is_some() || budget.turns != default.turns,
        used: used.turns.into(),
    })?;
    Ok(AgentBudget {
        turns: u32::try_from(turns).unwrap_or(budget.turns),
        input_tokens: left(Limit {
            name: "input_tokens",
            value: budget.input_tokens,
            is_set: asked.input_tokens.is_some() || budget.input_tokens != default.input_tokens,
            used: used.input_tokens,
        })?,
        output_tokens: left(Limit {
            name: "output_tokens",
            value: budget.output_tokens,
            is_set: asked.output_tokens.is_some() || budget.output_tokens != default.output_tokens,
            used: used.output_tokens,
        })?,
        cost_microusd: budget
            .cost_microusd
            .map(|value| {
                left(Limit {
                    name: "cost_microusd",
                    value,
                    is_set: true,
                    used: used.cost_microusd.unwrap_or_default(),
                })
            })
            .transpose()?,
    })
}

/// One limit of a budget, whether the task or the host set it, and what the earlier runs used of
/// it.
struct Limit {
    name: &'static str,
    value: u64,
    is_set: bool,
    used: u64,
}

fn left(limit: Limit) -> Result<u64, FollowUpError> {
    if !limit.is_set {
        return Ok(limit.value);
    }
    match limit.value.checked_sub(limit.used) {
        None | Some(0) => Err(FollowUpError::Budget {
            name: limit.name,
            limit: limit.value,
            used: limit.used,
        }),
        Some(left) => Ok(left),
    }
}

/// Adds the model usage of two parts of a chain. A run without model prices has no cost, so the sum
/// contains only the cost of the other runs.
pub(super) fn sum(one: ModelUsage, other: ModelUsage) -> ModelUsage {
    ModelUsage {
        turns: one.turns.saturating_add(other.turns),
        input_tokens: one.input_tokens.saturating_add(other.input_tokens),
        cached_input_tokens: one
            .cached_input_tokens
            .saturating_add(other.cached_input_tokens),
        output_tokens: one.output_tokens.saturating_add(other.output_tokens),
        cost_microusd: match (one.cost_microusd, other.cost_microusd) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::{CodedError, ErrorCode};

    const USED: ModelUsage = ModelUsage {
        turns: 10,
        input_tokens: 1_000,
        cached_input_tokens: 500,
        output_tokens: 100,
        cost_microusd: Some(50),
    };

    /// A chain is a run with its follow-up runs; the earlier runs of this one used `USED`.
    #[test]
    fn explicit_budget_limits_cover_the_whole_chain_and_default_limits_only_one_run() {
        let default = AgentBudget::default();
        let none = TaskBudget::default();
        assert_eq!(remaining(default, &none, USED).unwrap(), default);
        let asked = TaskBudget {
            turns: Some(default.turns),
            ..none
        };
        let left = remaining(default, &asked, USED).unwrap();
        assert_eq!((left.turns, left.input_tokens), (50, default.input_tokens));
        // The host set these limits, not the task: they differ from the defaults.
        let budget = AgentBudget {
            turns: 12,
            input_tokens: 1_500,
            output_tokens: 101,
            cost_microusd: Some(51),
        };
        let expected = AgentBudget {
            turns: 2,
            input_tokens: 500,
            output_tokens: 1,
            cost_microusd: Some(1),
        };
        assert_eq!(remaining(budget, &none, USED).unwrap(), expected);
    }

    #[test]
    fn error_for_an_exhausted_chain_budget_names_the_exhausted_limit() {
        let default = AgentBudget::default();
        let budgets = [
            (
                "turns",
                AgentBudget {
                    turns: 10,
                    ..default
                },
            ),
            (
                "input_tokens",
                AgentBudget {
                    input_tokens: 999,
                    ..default
                },
            ),
            (
                "output_tokens",
                AgentBudget {
                    output_tokens: 100,
                    ..default
                },
            ),
            (
                "cost_microusd",
                AgentBudget {
                    cost_microusd: Some(50),
                    ..default
                },
            ),
        ];
        for (name, budget) in budgets {
            let error = remaining(budget, &TaskBudget::default(), USED)
                .unwrap_err()
                .body();
            assert_eq!(error.code, ErrorCode::BudgetExhausted);
            assert_eq!(error.data.unwrap()["budget"], name);
        }
    }

    #[test]
    fn usage_of_a_chain_of_runs_is_a_sum_whose_cost_omits_runs_without_prices() {
        let without_prices = ModelUsage {
            cost_microusd: None,
            ..USED
        };
        let both = sum(USED, without_prices);
        assert_eq!((both.turns, both.cached_input_tokens), (20, 1_000));
        assert_eq!(both.cost_microusd, Some(50));
        assert_eq!(sum(USED, USED).cost_microusd, Some(100));
        assert_eq!(sum(USED, ModelUsage::default()), USED);
        let most = ModelUsage {
            turns: u32::MAX,
            input_tokens: u64::MAX,
            ..USED
        };
        let saturated = sum(most, USED);
        assert_eq!(
            (saturated.turns, saturated.input_tokens),
            (u32::MAX, u64::MAX)
        );
    }
}
