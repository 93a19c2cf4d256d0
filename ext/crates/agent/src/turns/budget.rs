//! What the loop has used up and what is left. Pure.
//!
//! Nothing is asked of the model that would pass a budget as far as that can be told before:
//! what is sent is estimated, what comes back is capped by what is left.

use crate::TokenUsage;
use serde::Serialize;
use serde_json::json;
use wp_codebox_contracts::{AgentBudget, ErrorBody, ErrorCode, ModelPrices, ModelUsage};
use wp_codebox_runtime::Stop;

/// Turns left at which the model is told.
const TURNS_TOLD: [u32; 2] = [3, 1];
/// Prices are per so many tokens.
const PER: u128 = 1_000_000;

/// Used up, and told.
#[derive(Debug)]
pub(super) struct Budget {
    limit: AgentBudget,
    prices: Option<ModelPrices>,
    used: ModelUsage,
    /// Millionths of a millionth of a dollar, so that rounding happens once.
    cost: u128,
    /// The model was told that tokens or money run out.
    told: bool,
}

/// Which budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Exhausted {
    Turns,
    InputTokens,
    OutputTokens,
    #[serde(rename = "cost_microusd")]
    Cost,
    /// Not one of the budget's: the model's window, which nothing could make large enough.
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

    /// Whether one more turn that sends about so many tokens may be asked for.
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

    /// Longest answer that may be asked for, tokens.
    pub(super) fn allowance(&self, wanted: u64, input: u64) -> u64 {
        let left = self.limit.output_tokens - self.used.output_tokens.min(self.limit.output_tokens);
        wanted
            .min(left)
            .min(self.affordable(input).unwrap_or(u64::MAX))
            .max(1)
    }

    /// Tokens of an answer that the money left pays for, after what is sent for it.
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

    /// One answer.
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

    /// What the model should know before the next turn, when something runs out.
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

    /// What the run comes to.
    pub(super) fn stop(&self, which: Exhausted) -> Stop {
        let AgentBudget {
            turns,
            input_tokens,
            output_tokens,
            cost_microusd,
        } = self.limit;
        let sentence = match which {
            Exhausted::Turns => format!("the agent used up its {turns} turns; raise the budget's turns or ask for less"),
            Exhausted::InputTokens => format!("the next question to the model would pass the budget of {input_tokens} input tokens ({} used); raise the budget's input_tokens or ask for less", self.used.input_tokens),
            Exhausted::OutputTokens => format!("the agent used up its {output_tokens} output tokens; raise the budget's output_tokens or ask for less"),
            Exhausted::Cost => format!("the next answer of the model would pass the budget of {} millionths of a dollar ({} used); raise the budget's cost_microusd or ask for less", cost_microusd.unwrap_or_default(), self.used.cost_microusd.unwrap_or_default()),
            Exhausted::Window => "the task does not fit the model's window, however it is shortened; use a model with a larger one or ask for less".to_owned(),
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
    fn each_budget_is_judged_before_it_is_passed() {
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
    fn money_is_counted_exactly_and_caps_the_answer() {
        let mut budget = Budget::new(LIMIT, Some(PRICES));
        // 100 tokens sent cost 1 millionth, 98 are left for answers at half of one each.
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
    fn without_prices_nothing_costs() {
        let mut budget = Budget::new(LIMIT, None);
        budget.spend(used(100, 0, 10));
        assert_eq!(budget.usage().cost_microusd, None);
    }

    #[test]
    fn the_end_is_told_once_per_step() {
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
