//! Share of a site that one requester may have: concurrent runs, limits of a run, and model cost in
//! a month.

use crate::LimitsRequest;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Who asked for a run of a site. Runs with the same requester count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Requester {
    /// A user of the site, by id.
    User(u64),
    /// The person at the shell: WP-CLI without `--user`.
    Operator,
    /// Code that runs without a user, for example WordPress's cron.
    Nobody,
}

/// Error for text that is not a [`Requester`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a requester is user-ID, operator or none")]
pub struct InvalidRequester;

impl fmt::Display for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(id) => write!(f, "user-{id}"),
            Self::Operator => f.write_str("operator"),
            Self::Nobody => f.write_str("none"),
        }
    }
}

impl FromStr for Requester {
    type Err = InvalidRequester;

    fn from_str(text: &str) -> Result<Self, InvalidRequester> {
        match text {
            "operator" => Ok(Self::Operator),
            "none" => Ok(Self::Nobody),
            _ => {
                let id = text.strip_prefix("user-").ok_or(InvalidRequester)?;
                id.parse().map(Self::User).map_err(|_| InvalidRequester)
            }
        }
    }
}

impl TryFrom<String> for Requester {
    type Error = InvalidRequester;

    fn try_from(text: String) -> Result<Self, InvalidRequester> {
        text.parse()
    }
}

impl From<Requester> for String {
    fn from(requester: Requester) -> Self {
        requester.to_string()
    }
}

/// Most model cost in a calendar month (UTC), in millionths of a US dollar; an absent member sets
/// no cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpendCaps {
    /// Cap of all requesters of the site together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site_microusd: Option<u64>,
    /// Cap of one requester.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requester_microusd: Option<u64>,
}

/// Share of a requester as the host site chooses it. The operator's settings bound every member.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShareChoice {
    /// Maximum number of concurrent runs of the requester; absent: half of the site's.
    pub runs: Option<u64>,
    /// Highest limits that a run may have; an absent one has its default ceiling.
    pub ceilings: LimitsRequest,
    /// Caps of the model cost in a month.
    pub spend: SpendCaps,
}

/// Share of a site that the requester of a run may have. The supervisor checks it when the run
/// starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequesterShare {
    /// Who asked for the run.
    pub requester: Requester,
    /// Maximum number of concurrent runs of this requester.
    pub max_runs: u32,
    /// Caps of the model cost in a month.
    #[serde(default)]
    pub spend: SpendCaps,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requester_is_read_back_from_its_text_and_other_text_is_refused() {
        for requester in [Requester::User(7), Requester::Operator, Requester::Nobody] {
            assert_eq!(requester.to_string().parse(), Ok(requester));
        }
        for text in ["", "user-", "user--1", "user-1x", "7", "Operator"] {
            assert_eq!(text.parse::<Requester>(), Err(InvalidRequester), "{text}");
        }
    }
}
