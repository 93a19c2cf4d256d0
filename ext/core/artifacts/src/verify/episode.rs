//! Checks the episode traces of a bundle with the trace validator.

use super::files::Session;
use crate::episode::{TraceIssue, validate_episode_trace};
use serde_json::Map;
use wp_codebox_contracts::{Violation, ViolationCode};

/// Maximum number of issues in the message of a violation; its `details` contain all issues.
const SHOWN: usize = 20;

pub(super) fn check(session: &mut Session<'_>) {
    for path in session.of_kind("runtime-episode-trace") {
        let issues = match session.document(&path) {
            Some(bytes) => validate_episode_trace(&bytes).issues,
            None => vec![TraceIssue {
                path: "$".to_owned(),
                message: "cannot be read".to_owned(),
            }],
        };
        if !issues.is_empty() {
            session.violations.push(violation(path, &issues));
        }
    }
}

fn violation(path: String, issues: &[TraceIssue]) -> Violation {
    let mut shown: Vec<String> = issues.iter().take(SHOWN).map(ToString::to_string).collect();
    if issues.len() > SHOWN {
        shown.push(format!("and {} more", issues.len() - SHOWN));
    }
    Violation {
        code: ViolationCode::MalformedReference,
        message: format!("the episode trace is invalid: {}", shown.join("; ")),
        file: Some(path.clone()),
        path,
        details: serde_json::to_value(issues)
            .ok()
            .map(|all| Map::from_iter([("issues".to_owned(), all)])),
    }
}
