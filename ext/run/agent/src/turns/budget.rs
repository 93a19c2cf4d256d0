//! Budget of the agent loop: limits of turns, tokens and cost, and how much of them is used. Pure
//! functions without I/O.
//!
//! The loop sends no request that would exceed a budget as far as can be predicted: it estimates
//! the input tokens and caps the output tokens at what is left.

use crate::TokenUsage;
use serde::Serialize;
use serde_json::json;
use wp_codebox_contracts::{AgentBudget, ErrorBody, ErrorCode, ModelPrices, ModelUsage};
use wp_codebox_runtime::Stop;

/// Numbers of remaining turns at which the loop warns the model.
const TURNS_TOLD: [u32; 2] = [3, 1];
/// Number of tokens to which each price in [`ModelPrices`] applies.
const PER: u128 = 1_000_000;

/// Budget of a run: its limits, what has been used, and which warnings the model has received.
#[derive(Debug)]
pub(super) struct Budget {
    limit: AgentBudget,
    prices: Option<ModelPrices>,
    used: ModelUsage,
    /// Cost so far in units of 10^-12 dollar; fine enough that only the final conversion rounds.
    cost: u128,
    /// Whether the model was warned that tokens or money run out.
    told: bool,
}

/// Which limit is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Exhausted {
    Turns,
    InputTokens,
    OutputTokens,
    #[serde(rename = "cost_microusd")]
    Cost,
    /// The conversation cannot be shortened enough for the model's context window. This is not a
    /// budget, but it ends the loop in the same way.
    #[serde(rename = "context_tokens")]
    Window,
}

impl Budget {
    pub(super) fn new(limit: AgentBudget, prices: Option<ModelPrices>) -> Self {
        let used = ModelUsage {
            cost_microusd: prices.map(|_| 0),
            ..ModelUsage::default()
        };
        Self {
            limit,
            prices,
            used,
            cost: 0,
            told: false,
        }
    }

    pub(super) fn usage(&self) -> ModelUsage {
        self.used
    }

    /// Fails if a budget does not allow another request with about `input` input tokens.
    pub(super) fn check(&self, input: u64) -> Result<(), Exhausted> {
        let AgentBudget {
            turns,
            input_tokens,
            output_tokens,
            cost_microusd: _,
        } = self.limit;
        if self.used.turns >= turns {
            Err(Exhausted::Turns)
        } else if self.used.input_tokens.saturating_add(input) > input_tokens {
            Err(Exhausted::InputTokens)
        } else if self.used.output_tokens >= output_tokens {
            Err(Exhausted::OutputTokens)
        } else if self.affordable(input) == Some(0) {
            Err(Exhausted::Cost)
        } else {
            Ok(())
        }
    }

    /// Returns the maximum output tokens for the next request: `wanted`, or what the remaining
    /// tokens and money permit if that is less, but at least 1. `input` is the estimated number of
    /// input tokens.
    pub(super) fn allowance(&self, wanted: u64, input: u64) -> u64 {
        let left = self.limit.output_tokens - self.used.output_tokens.min(self.limit.output_tokens);
        wanted
            .min(left)
            .min(self.affordable(input).unwrap_or(u64::MAX))
            .max(1)
    }

    /// Returns how many output tokens the remaining money pays for, after the cost of `input` input
    /// tokens; `None` if the run has no cost limit or the prices are unknown.
    fn affordable(&self, input: u64) -> Option<u64> {
        let (limit, prices) = (self.limit.cost_microusd?, self.prices?);
        let total = u128::from(limit) * PER;
        let sent = u128::from(input) * u128::from(prices.input);
        let left = total.saturating_sub(self.cost + sent);
        if prices.output == 0 {
            return Some(if self.cost + sent > total {
                0
            } else {
                u64::MAX
            });
        }
        Some(u64::try_from(left / u128::from(prices.output)).unwrap_or(u64::MAX))
    }

    /// Adds the token counts of one response to what is used.
    pub(super) fn spend(&mut self, usage: TokenUsage) {
        let cached = usage.cached_input.min(usage.input);
        self.used.turns = self.used.turns.saturating_add(1);
        self.used.input_tokens = self.used.input_tokens.saturating_add(usage.input);
        self.used.cached_input_tokens = self.used.cached_input_tokens.saturating_add(cached);
        self.used.output_tokens = self.used.output_tokens.saturating_add(usage.output);
        if let Some(prices) = self.prices {
            let for_cached = prices.cached_input.unwrap_or(prices.input);
            self.cost += u128::from(usage.input - cached) * u128::from(prices.input)
                + u128::from(cached) * u128::from(for_cached)
                + u128::from(usage.output) * u128::from(prices.output);
            self.used.cost_microusd =
                Some(u64::try_from(self.cost.div_ceil(PER)).unwrap_or(u64::MAX));
        }
    }

    /// Returns the warning for the model before the next turn, if a budget is nearly used up.
    pub(super) fn warning(&mut self) -> Option<String> {
        let left = self.limit.turns.saturating_sub(self.used.turns);
        if TURNS_TOLD.contains(&left) && self.limit.turns > left {
            let turns = if left == 1 {
                "This is your last turn".to_owned()
            } else {
                format!("You have {left} turns left")
            };
            return Some(format!(
                "{turns}: finish what you began and call task.finish, or task.blocked with what is missing."
            ));
        }
        let scarce = |used: u64, limit: u64| used >= limit - limit / 10;
        let what = if scarce(self.used.input_tokens, self.limit.input_tokens)
            || scarce(self.used.output_tokens, self.limit.output_tokens)
        {
            "tokens"
        } else if let (Some(limit), Some(used)) =
            (self.limit.cost_microusd, self.used.cost_microusd)
            && scarce(used, limit)
        {
            "money"
        } else {
            return None;
        };
        (!std::mem::replace(&mut self.told, true)).then(|| {
            format!("Less than a tenth of the {what} of this task is left: finish what you began and call task.finish, or task.blocked with what is missing.")
        })
    }

    /// Returns how the run ends when this limit is used up.
    pub(super) fn stop(&self, which: Exhausted) -> Stop {
        let AgentBudget {
            turns,
            input_tokens,
            output_tokens,
            cost_microusd,
        } = self.limit;
        let sentence = match which {
            Exhausted::Turns => format!("the agent used up its {turns} turns; raise \"turns\" in the budget or give a smaller task"),
            Exhausted::InputTokens => format!("the next request to the model would exceed the budget of {input_tokens} input tokens ({} used); raise \"input_tokens\" in the budget or give a smaller task", self.used.input_tokens),
            Exhausted::OutputTokens => format!("the agent used up its {output_tokens} output tokens; raise \"output_tokens\" in the budget or give a smaller task"),
            Exhausted::Cost => format!("the next response of the model would exceed the budget of {} millionths of a dollar ({} used); raise \"cost_microusd\" in the budget or give a smaller task", cost_microusd.unwrap_or_default(), self.used.cost_microusd.unwrap_or_default()),
            Exhausted::Window => "the task does not fit the model's context window, even when shortened; use a model with a larger window or give a smaller task".to_owned(),
        };
        Stop::Partial(
            ErrorBody::new(ErrorCode::BudgetExhausted, sentence).with("budget", json!(which)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: AgentBudget = AgentBudget {
        turns: 5,
        input_tokens: 1_000,
        output_tokens: 100,
        cost_microusd: Some(50),
    };
    const PRICES: ModelPrices = ModelPrices {
        input: 10_000,
        cached_input: Some(1_000),
        output: 500_000,
    };

    fn used(input: u64, cached_input: u64, output: u64) -> TokenUsage {
        TokenUsage {
            input,
            cached_input,
            output,
        }
    }

    #[test]
    fn request_that_would_exceed_an_agent_budget_is_refused() {
        let fresh = || Budget::new(LIMIT, None);
        assert_eq!(fresh().check(1_000), Ok(()));
        assert_eq!(fresh().check(1_001), Err(Exhausted::InputTokens));
        let mut turns = fresh();
        for _ in 0..4 {
            turns.spend(used(1, 0, 1));
            assert_eq!(turns.check(1), Ok(()));
        }
        turns.spend(used(1, 0, 1));
        assert_eq!(turns.check(1), Err(Exhausted::Turns));
        let mut output = fresh();
        output.spend(used(1, 0, 99));
        assert_eq!((output.check(1), output.allowance(50, 1)), (Ok(()), 1));
        output.spend(used(1, 0, 1));
        assert_eq!(output.check(1), Err(Exhausted::OutputTokens));
    }

    #[test]
    fn model_cost_is_rounded_up_to_microdollars_and_the_cost_limit_bounds_the_output_tokens() {
        let mut budget = Budget::new(LIMIT, Some(PRICES));
        // The 100 input tokens cost 1 microdollar in total; the remaining money pays for 98 output
        // tokens at half a microdollar each.
        assert_eq!(budget.allowance(1_000, 100), 98);
        budget.spend(used(200, 100, 20));
        // 100 * 0.01 + 100 * 0.001 + 20 * 0.5 = 11.1, rounded up.
        assert_eq!(budget.usage().cost_microusd, Some(12));
        assert_eq!(budget.usage().cached_input_tokens, 100);
        assert_eq!(budget.check(100), Ok(()));
        budget.spend(used(10, 0, 77));
        assert_eq!(budget.check(100), Err(Exhausted::Cost));
        let Stop::Partial(error) = budget.stop(Exhausted::Cost) else {
            panic!("not partial")
        };
        assert_eq!(error.code, ErrorCode::BudgetExhausted);
        assert_eq!(error.data.unwrap()["budget"], "cost_microusd");
    }

    #[test]
    fn model_cost_is_unknown_without_prices() {
        let mut budget = Budget::new(LIMIT, None);
        budget.spend(used(100, 0, 10));
        assert_eq!(budget.usage().cost_microusd, None);
    }

    #[test]
    fn budget_warning_is_given_once_per_threshold() {
        let limit = AgentBudget {
            turns: 5,
            ..AgentBudget::default()
        };
        let mut budget = Budget::new(limit, None);
        let mut told = Vec::new();
        for turn in 0..5 {
            told.extend(budget.warning().map(|text| (turn, text)));
            budget.spend(used(1, 0, 1));
        }
        assert_eq!(told.iter().map(|(t, _)| *t).collect::<Vec<_>>(), [2, 4]);
        assert!(told[0].1.starts_with("You have 3 turns left"), "{told:?}");
        let mut tokens = Budget::new(LIMIT, None);
        tokens.spend(used(900, 0, 1));
        assert!(tokens.warning().unwrap().contains("tokens"));
        assert_eq!(tokens.warning(), None);
    }
}
