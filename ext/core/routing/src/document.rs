//! A decision as a document for answers and events, and as an error when no host was chosen.

use crate::decision::Decision;
use crate::why::ReasonCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wp_codebox_contracts::{ErrorBody, ErrorCode, schema_id};

/// Schema id of the document of a decision.
pub const ROUTE_DECISION: &str = schema_id::ROUTE_DECISION;
/// Number of reasons in the document of an error.
const ERROR_REASONS: usize = 20;

impl Decision {
    /// Returns the number of reasons with each code. A host can have several reasons.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<ReasonCode, usize> {
        let mut counts = BTreeMap::new();
        for reason in &self.reasons {
            *counts.entry(reason.why.code()).or_default() += 1;
        }
        counts
    }

    /// Returns the document `wp-codebox/route-decision/v1` with at most `most` reasons. The counts
    /// cover all reasons.
    #[must_use]
    pub fn document(&self, most: usize) -> Value {
        let counts: Vec<Value> = self
            .counts()
            .into_iter()
            .map(|(code, count)| json!({"code": code, "count": count}))
            .collect();
        let shown = self.reasons.len().min(most);
        json!({
            "schema": ROUTE_DECISION,
            "strategy": self.strategy,
            "chosen": self.chosen,
            "hosts": self.hosts,
            "accepted": self.accepted,
            "waiting": self.waiting,
            "counts": counts,
            "reasons": self.reasons.get(..shown).unwrap_or_default(),
            "reasons_omitted": self.reasons.len() - shown,
        })
    }

    /// Returns an error when no host was chosen, with the document of the decision in
    /// `data.decision`.
    #[must_use]
    pub fn error(&self) -> Option<ErrorBody> {
        if self.chosen.is_some() {
            return None;
        }
        let body = if self.waiting > 0 {
            let message = format!(
                "{} hosts can run this sandbox, but each is full, draining or down; try again later or register a host",
                self.waiting
            );
            ErrorBody::new(ErrorCode::RouteNoCapacity, message)
        } else if self.hosts == 0 {
            let message = "no host is registered that could run this sandbox; register a host";
            ErrorBody::new(ErrorCode::RouteUnsatisfied, message)
        } else {
            let message = format!(
                "none of {} hosts can run this sandbox: {}; change the profile, or register a host that meets it",
                self.hosts,
                self.summary()
            );
            ErrorBody::new(ErrorCode::RouteUnsatisfied, message)
        };
        Some(body.with("decision", self.document(ERROR_REASONS)))
    }

    /// Returns the codes against hosts with their counts, as text.
    fn summary(&self) -> String {
        let counts = self.counts();
        let rows: Vec<String> = counts
            .iter()
            .filter(|(code, _)| **code != ReasonCode::NoneAccepted)
            .map(|(code, count)| format!("{} ({count})", code.as_str()))
            .collect();
        rows.join(", ")
    }
}
