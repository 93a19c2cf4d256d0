//! Reads records: strict JSON, then the rules that the shape cannot express.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wp_codebox_contracts::{CodedError, ErrorBody};

/// A rule that a record violates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordIssue {
    /// Member of the record, e.g. `capacity`.
    pub field: &'static str,
    /// Sentence that states the problem and what is accepted.
    pub message: String,
}

impl RecordIssue {
    pub(crate) fn new(field: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { field, message }
    }
}

/// Error of a record that cannot be used.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(InputInvalid, detail = Self::detail)]
pub enum RecordError {
    /// The value does not have the shape of the record.
    #[error("the {record} is malformed ({source}); correct it")]
    Shape {
        /// Kind of record.
        record: &'static str,
        /// First problem of the shape.
        #[source]
        source: serde_json::Error,
    },
    /// The record violates rules.
    #[error("the {record} is not valid: {}", listed(.issues))]
    Rules {
        /// Kind of record.
        record: &'static str,
        /// Every violated rule.
        issues: Vec<RecordIssue>,
    },
}

impl RecordError {
    /// `data.issues` lists every issue.
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Rules { issues, .. } => body.with("issues", serde_json::json!(issues)),
            _ => body,
        }
    }
}

fn listed(issues: &[RecordIssue]) -> String {
    let rows: Vec<String> = issues
        .iter()
        .map(|issue| format!("{}: {}", issue.field, issue.message))
        .collect();
    rows.join("; ")
}

/// A record that has rules beyond its shape.
pub(crate) trait Record: DeserializeOwned {
    /// Kind of record, for messages.
    const KIND: &'static str;

    /// Returns every violated rule.
    fn issues(&self) -> Vec<RecordIssue>;

    /// Reads a record and checks its rules.
    fn read(value: &Value) -> Result<Self, RecordError> {
        let record = Self::deserialize(value).map_err(|source| RecordError::Shape {
            record: Self::KIND,
            source,
        })?;
        record.check()?;
        Ok(record)
    }

    /// Checks the rules of a record.
    fn check(&self) -> Result<(), RecordError> {
        let issues = self.issues();
        if issues.is_empty() {
            return Ok(());
        }
        Err(RecordError::Rules {
            record: Self::KIND,
            issues,
        })
    }
}
