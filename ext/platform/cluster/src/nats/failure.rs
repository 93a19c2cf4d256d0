//! Failures of requests and of the server's interface for streams.

use crate::bus::BusError;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Error of the server's interface for streams.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, thiserror::Error)]
#[error("{description} ({err_code})")]
pub(super) struct ApiError {
    /// Number of the error; it stays the same across versions of the server.
    #[serde(default)]
    pub err_code: u32,
    /// Text for people.
    #[serde(default)]
    pub description: String,
}

/// Numbers of errors, from `errors.json` of the server.
pub(super) mod number {
    pub const CONSUMER_NOT_FOUND: u32 = 10014;
    pub const INVALID_JSON: u32 = 10025;
    pub const NO_MESSAGE: u32 = 10037;
    pub const NOT_ENABLED_FOR_ACCOUNT: u32 = 10039;
    /// A stream with this name and other settings exists.
    pub const STREAM_NAME_IN_USE: u32 = 10058;
    pub const STREAM_NOT_FOUND: u32 = 10059;
    pub const WRONG_LAST_SEQUENCE: u32 = 10071;
    pub const NOT_ENABLED: u32 = 10076;
    pub const STORE_FAILED: u32 = 10077;
    pub const WRONG_LAST_SEQUENCE_IN_FLIGHT: u32 = 10164;
    /// A limit of the account or the server is reached.
    pub const NO_ROOM: [u32; 4] = [10002, 10023, 10028, 10047];
    /// Too few servers have room for the replicas, or the leader does not know yet which have.
    pub const NO_PEERS: u32 = 10005;
    /// No leader, too many requests, an earlier request still in progress.
    pub const TEMPORARY: [u32; 7] = [NO_PEERS, 10008, 10009, 10118, 10158, 10163, 10167];
}

impl ApiError {
    /// Returns whether the same request may succeed a moment later.
    pub(super) fn is_temporary(&self) -> bool {
        number::TEMPORARY.contains(&self.err_code)
    }

    /// Returns the error for callers. `what` names the stream or consumer.
    pub(super) fn into_bus(self, what: &str) -> BusError {
        let detail = format!("{what}: {self}");
        match self.err_code {
            number::STREAM_NOT_FOUND
            | number::CONSUMER_NOT_FOUND
            | number::NOT_ENABLED
            | number::NOT_ENABLED_FOR_ACCOUNT => BusError::NotSetUp { detail },
            number::WRONG_LAST_SEQUENCE
            | number::WRONG_LAST_SEQUENCE_IN_FLIGHT
            | number::STREAM_NAME_IN_USE => BusError::Changed,
            number::STORE_FAILED => BusError::Full { detail },
            code if number::NO_ROOM.contains(&code) => BusError::Full { detail },
            _ => BusError::Unreachable { detail },
        }
    }
}

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestError {
    /// No program has subscribed to the subject.
    #[error("no program answers")]
    NoResponder,
    /// No answer came in time; the request may have had its effect.
    #[error("{detail}")]
    Silent {
        /// What happened.
        detail: String,
    },
    /// The account may not do what the request asks for.
    #[error("the account may not {action}")]
    Denied {
        /// What was refused.
        action: String,
    },
    /// The message is larger than the server accepts.
    #[error("a message has at most {limit} bytes")]
    TooLarge {
        /// Limit in bytes.
        limit: u64,
    },
    /// An error that [`Self::into_bus`] returns unchanged.
    #[error("{error}")]
    Bus {
        /// The error.
        error: BusError,
    },
}

impl RequestError {
    /// Returns the error for callers. `what` names the request.
    pub(super) fn into_bus(self, what: &str) -> BusError {
        match self {
            Self::NoResponder => BusError::Unreachable {
                detail: format!("{what}: no program answers"),
            },
            Self::Silent { detail } => BusError::Unreachable {
                detail: format!("{what}: {detail}"),
            },
            Self::Denied { action } => BusError::Denied { action },
            Self::TooLarge { limit } => BusError::TooLarge {
                name: what.to_owned(),
                limit,
            },
            Self::Bus { error } => error,
        }
    }
}

/// Why a call of the server's interface for streams failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CallError {
    /// There is no answer.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The server answered with an error.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The answer does not have the expected form.
    #[error("the answer of the message server cannot be read: {detail}")]
    Form {
        /// What is wrong with it.
        detail: String,
    },
}

impl From<BusError> for CallError {
    fn from(error: BusError) -> Self {
        Self::Request(RequestError::Bus { error })
    }
}

/// The member of an answer that says whether a request failed.
#[derive(Deserialize)]
pub(super) struct Outcome {
    pub error: Option<ApiError>,
}

impl Outcome {
    pub(super) fn read(answer: &[u8]) -> Result<Self, CallError> {
        read(answer)
    }
}

/// Reads an answer of the server's interface for streams.
pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, CallError> {
    serde_json::from_slice(answer).map_err(|error| CallError::Form {
        detail: error.to_string(),
    })
}

impl CallError {
    /// Returns the error for callers. `what` names the stream or consumer.
    pub(super) fn into_bus(self, what: &str) -> BusError {
        match self {
            Self::Request(error) => error.into_bus(what),
            Self::Api(error) => error.into_bus(what),
            Self::Form { detail } => BusError::Unreadable {
                what: format!("the answer of the message server for {what}"),
                detail,
            },
        }
    }

    /// Returns the number of the server's error.
    pub(super) const fn number(&self) -> Option<u32> {
        match self {
            Self::Api(error) => Some(error.err_code),
            Self::Request(_) | Self::Form { .. } => None,
        }
    }

    /// Returns whether the same request may succeed a moment later.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::Request(RequestError::NoResponder | RequestError::Silent { .. }) => true,
            Self::Api(error) => error.is_temporary(),
            Self::Request(
                RequestError::Denied { .. }
                | RequestError::TooLarge { .. }
                | RequestError::Bus { .. },
            )
            | Self::Form { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::CodedError;

    #[test]
    fn error_code_follows_the_number_of_the_server_error_and_not_its_description() {
        let of = |err_code| {
            let description = "wrong last sequence".to_owned();
            ApiError {
                err_code,
                description,
            }
            .into_bus("x")
            .code()
            .as_str()
        };
        assert_eq!(of(10059), "wp_codebox_cluster_not_set_up");
        assert_eq!(of(10014), "wp_codebox_cluster_not_set_up");
        assert_eq!(of(10071), "wp_codebox_cluster_conflict");
        assert_eq!(of(10164), "wp_codebox_cluster_conflict");
        assert_eq!(of(10058), "wp_codebox_cluster_conflict");
        assert_eq!(of(10077), "wp_codebox_cluster_full");
        assert_eq!(of(10047), "wp_codebox_cluster_full");
        assert_eq!(of(1), "wp_codebox_cluster_unreachable");
    }
}
