//! Validates the model of a run: its base URL, name and prices, and the budget of the built-in
//! agent loop.
//!
//! An API key may be sent over TLS, or over plain HTTP to a loopback address. A model in the
//! private network that needs no key may use plain HTTP. The address of a host name is known
//! only after DNS resolution, so callers pass every address to [`ModelBase::check_address`]
//! before they connect.

mod base;

pub use base::{AddressRefusal, BaseUrlError, ModelBase, Reach};

use crate::check_env_name;
use wp_codebox_contracts::{
    AgentBudget, CodedError, ErrorBody, ModelAgent, ModelEndpoint, ModelPrices, PolicyIssue,
};

/// Maximum length of a model or provider name in characters.
const MAX_NAME: usize = 200;
/// Maximum length in bytes of the host's additional instructions to the model.
const MAX_INSTRUCTIONS: usize = 64 * 1024;
/// Valid sizes of a context window in tokens.
const CONTEXT_TOKENS: std::ops::RangeInclusive<u64> = 1_024..=20_000_000;
/// Valid values for the maximum number of tokens in one response.
const ANSWER_TOKENS: std::ops::RangeInclusive<u64> = 16..=1_000_000;
/// Maximum number of model responses of one run.
const MAX_TURNS: u32 = 1_000;
/// Maximum number of input tokens of one run; the output tokens have the same maximum.
const MAX_TOKENS: u64 = 1_000_000_000;
/// Maximum cost of one run in millionths of a US dollar: 10,000 dollars.
const MAX_COST: u64 = 10_000_000_000;
/// Maximum price in millionths of a US dollar per million tokens: 100,000 dollars.
const MAX_PRICE: u64 = 100_000_000_000;

/// Why a model or its budget is refused. Every issue is listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum ModelError {
    /// The run has the built-in agent loop but no model.
    #[error(
        "the built-in agent has no model: name a model and its base URL, or give an agent program"
    )]
    #[code(ModelMissing)]
    Missing,
    /// The model of the run is invalid.
    #[error("the settings of the run's model are not valid; correct these fields: {}", join(.issues))]
    #[code(ModelInvalid)]
    Model {
        /// Every issue of the model.
        issues: Vec<PolicyIssue>,
    },
    /// The budget of the built-in agent loop is invalid.
    #[error("the budget of the built-in agent is not valid; correct these fields: {}", join(.issues))]
    #[code(BudgetInvalid)]
    Budget {
        /// Every issue of the budget.
        issues: Vec<PolicyIssue>,
    },
    /// The host's instructions are too long or contain a NUL byte.
    #[error(
        "the host's instructions to the model may have at most 64 KiB and no NUL byte; shorten or correct them"
    )]
    #[code(InputInvalid)]
    Instructions,
}

fn join(issues: &[PolicyIssue]) -> String {
    let texts = issues.iter().map(|i| format!("{}: {}", i.field, i.message));
    texts.collect::<Vec<_>>().join("; ")
}

impl ModelError {
    /// `data.issues` lists every issue.
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Model { issues } | Self::Budget { issues } => {
                body.with("issues", serde_json::to_value(issues).unwrap_or_default())
            }
            Self::Missing | Self::Instructions => body,
        }
    }
}

/// Collects issues that share one code.
struct Issues {
    code: &'static str,
    found: Vec<PolicyIssue>,
}

impl Issues {
    fn add(&mut self, field: &str, message: impl Into<String>) {
        self.found.push(PolicyIssue {
            code: self.code.to_owned(),
            field: field.to_owned(),
            message: message.into(),
        });
    }

    fn range<T: PartialOrd + std::fmt::Display>(&mut self, field: &str, value: T, from: T, to: T) {
        if value < from || value > to {
            self.add(field, format!("must be from {from} to {to}"));
        }
    }
}

/// Checks the model of a run; returns its base URL.
pub fn check_model(model: &ModelEndpoint) -> Result<ModelBase, ModelError> {
    let mut issues = Issues {
        code: "invalid-model",
        found: Vec::new(),
    };
    for (field, value) in [("provider", &model.provider), ("model", &model.model)] {
        let fits = !value.trim().is_empty() && value.chars().count() <= MAX_NAME;
        if !fits || value.chars().any(char::is_control) {
            let rule = format!("must be 1 to {MAX_NAME} characters in one line");
            issues.add(field, rule);
        }
    }
    if let Some(name) = &model.secret
        && let Err(why) = check_env_name(name)
    {
        issues.add(
            "secret",
            format!(
                "must be the name of one of the run's secrets, never the API key itself: {why}"
            ),
        );
    }
    if let Some(tokens) = model.context_tokens {
        let (from, to) = (*CONTEXT_TOKENS.start(), *CONTEXT_TOKENS.end());
        issues.range("context_tokens", tokens, from, to);
    }
    if let Some(tokens) = model.max_output_tokens {
        let (from, to) = (*ANSWER_TOKENS.start(), *ANSWER_TOKENS.end());
        issues.range("max_output_tokens", tokens, from, to);
        if model.context_tokens.is_some_and(|window| tokens >= window) {
            issues.add("max_output_tokens", "must be less than context_tokens");
        }
    }
    if let Some(prices) = model.prices {
        check_prices(prices, &mut issues);
    }
    let base = ModelBase::parse(&model.base_url);
    let base = if model.private {
        base
    } else {
        base.and_then(ModelBase::public_only)
    };
    match &base {
        Ok(base) => {
            if let (Some(_), Err(why)) = (&model.secret, base.takes_key()) {
                issues.add("base_url", why);
            }
        }
        Err(why) => issues.add("base_url", why.to_string()),
    }
    match base {
        Ok(base) if issues.found.is_empty() => Ok(base),
        Ok(_) | Err(_) => Err(ModelError::Model {
            issues: issues.found,
        }),
    }
}

fn check_prices(prices: ModelPrices, issues: &mut Issues) {
    issues.range("prices.input", prices.input, 0, MAX_PRICE);
    issues.range("prices.output", prices.output, 0, MAX_PRICE);
    if let Some(cached) = prices.cached_input {
        issues.range("prices.cached_input", cached, 0, MAX_PRICE);
    }
}

/// Checks the budget of the built-in agent loop.
pub fn check_budget(budget: &AgentBudget) -> Result<(), ModelError> {
    let mut issues = Issues {
        code: "invalid-budget",
        found: Vec::new(),
    };
    issues.range("turns", budget.turns, 1, MAX_TURNS);
    issues.range("input_tokens", budget.input_tokens, 1, MAX_TOKENS);
    issues.range("output_tokens", budget.output_tokens, 1, MAX_TOKENS);
    if let Some(cost) = budget.cost_microusd {
        issues.range("cost_microusd", cost, 1, MAX_COST);
    }
    if issues.found.is_empty() {
        Ok(())
    } else {
        Err(ModelError::Budget {
            issues: issues.found,
        })
    }
}

/// Checks the built-in agent loop of a run and its model; returns the model's base URL.
pub fn check_model_agent(
    agent: &ModelAgent,
    model: Option<&ModelEndpoint>,
) -> Result<ModelBase, ModelError> {
    let model = model.ok_or(ModelError::Missing)?;
    let base = check_model(model)?;
    check_budget(&agent.budget)?;
    if agent.budget.cost_microusd.is_some() && model.prices.is_none() {
        let mut issues = Issues {
            code: "invalid-budget",
            found: Vec::new(),
        };
        issues.add(
            "cost_microusd",
            "this limit cannot be enforced without the model's prices; give them, or leave the limit out",
        );
        return Err(ModelError::Budget {
            issues: issues.found,
        });
    }
    let instructions = agent.instructions.as_deref().unwrap_or_default();
    if instructions.len() > MAX_INSTRUCTIONS || instructions.contains('\0') {
        return Err(ModelError::Instructions);
    }
    Ok(base)
}

#[cfg(test)]
mod tests;
