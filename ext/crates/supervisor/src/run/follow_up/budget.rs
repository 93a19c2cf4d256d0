//! Budgets over a chain of follow-up runs. Pure.

use super::error::FollowUpError;
use wp_codebox_contracts::{AgentBudget, ModelUsage, TaskBudget};

/// Returns the budget that a run has left after the earlier runs of its chain used `used`. `asked`
/// has the limits that the task sets. A limit that nobody set has its default, which is meant for
/// one run and stays as it is. Fails if nothing is left of a limit.
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

/// One limit of a budget, and what the earlier runs used of it.
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

/// Returns the usage of two parts of a chain together. The cost is that of the runs that had prices.
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
    use wp_codebox_contracts::ErrorCode;

    const USED: ModelUsage = ModelUsage {
        turns: 10,
        input_tokens: 1_000,
        cached_input_tokens: 500,
        output_tokens: 100,
        cost_microusd: Some(50),
    };

    #[test]
    fn limits_that_are_set_count_over_the_chain_and_defaults_do_not() {
        let default = AgentBudget::default();
        let none = TaskBudget::default();
        assert_eq!(remaining(default, &none, USED).unwrap(), default);
        let asked = TaskBudget {
            turns: Some(default.turns),
            ..none
        };
        let left = remaining(default, &asked, USED).unwrap();
        assert_eq!((left.turns, left.input_tokens), (50, default.input_tokens));
        // The host set these limits: the task does not know them.
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
    fn limit_that_the_earlier_runs_used_up_is_refused_by_name() {
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
    fn usage_of_a_chain_is_the_sum_and_its_cost_that_of_the_runs_with_prices() {
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
