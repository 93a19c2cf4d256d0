//! Collects all faults of a task into one error.

use serde_json::{Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Issues of a task found so far. Messages name the field and never quote its value, because a
/// caller may have put a secret into the wrong field.
#[derive(Debug, Default)]
pub(super) struct Issues(Vec<ErrorBody>);

impl Issues {
    pub(super) fn push(&mut self, issue: ErrorBody) {
        self.0.push(issue);
    }

    /// Adds an issue with the message "`field` must be `rule`".
    pub(super) fn refuse(&mut self, code: ErrorCode, field: &str, rule: &str) {
        let issue = ErrorBody::new(code, format!("{field} must be {rule}"));
        self.push(issue.with("field", field));
    }

    /// Fails with the first issue; if there are several, its `data.issues` lists all of them.
    pub(super) fn into_result(mut self) -> Result<(), ErrorBody> {
        match self.0.len() {
            0 => Ok(()),
            1 => Err(self.0.remove(0)),
            _ => {
                let rows: Vec<Value> = self.0.iter().map(row).collect();
                Err(self.0.remove(0).with("issues", rows))
            }
        }
    }
}

fn row(issue: &ErrorBody) -> Value {
    let field = issue.data.as_ref().and_then(|data| data.get("field"));
    json!({"field": field, "code": issue.code, "message": issue.message})
}
