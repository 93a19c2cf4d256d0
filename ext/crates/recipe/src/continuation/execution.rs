//! One execution of a continued step, as its evidence shows it.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use wp_codebox_contracts::hex;

/// Longest JSON that is shown; of what is longer, size and digest remain.
pub(super) const PREVIEW_BYTES: usize = 4096;

/// One execution, as it is remembered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Execution(pub(super) Value);

impl Execution {
    pub(super) fn new(iteration: u32, exit_code: i32, args: &[String], result: &Seen<'_>) -> Self {
        let mut row = Map::new();
        row.insert("iteration".to_owned(), json!(iteration));
        row.insert("exitCode".to_owned(), json!(exit_code));
        let args = serde_json::to_string(args).unwrap_or_default();
        row.insert("argsSha256".to_owned(), json!(sha256(&args)));
        match result {
            Seen::Nothing => {}
            Seen::Json(value) => {
                let text = value.to_string();
                row.insert("resultBytes".to_owned(), json!(text.len()));
                row.insert("resultSha256".to_owned(), json!(sha256(&text)));
                if text.len() <= PREVIEW_BYTES {
                    row.insert("result".to_owned(), (*value).clone());
                } else {
                    row.insert("resultTruncated".to_owned(), json!(true));
                }
            }
        }
        Self(Value::Object(row))
    }
}

/// What an execution printed.
pub(super) enum Seen<'a> {
    Nothing,
    Json(&'a Value),
}

/// Lowercase hex sha256 of a text.
pub(super) fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}
