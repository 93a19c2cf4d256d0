//! Records of the loop's turns and tool calls for the bundle (the run's result directory). Their
//! texts are redacted and cut to a maximum length when the record is created.

use super::window::{bounded, head};
use crate::{Reply, StopReason, TokenUsage, ToolAnswer, ToolCall, ToolStatus};
use serde::Serialize;
use serde_json::{Map, Value, json};
use wp_codebox_artifacts::sha256;
use wp_codebox_policy::Redactor;

/// Maximum number of bytes of a turn's text in its record.
const TEXT: usize = 16 * 1024;
/// Maximum number of bytes of one text among a tool call's arguments in its record.
const ARGUMENT: usize = 1024;
/// Maximum number of bytes of file content in a recorded argument; larger content is replaced by
/// its size and hash.
const CONTENT: usize = 256;
/// Maximum size of all arguments of one tool call in its record, in bytes.
const ARGUMENTS: usize = 8 * 1024;
/// Maximum number of bytes of a tool call's result in its record.
const ANSWER: usize = 8 * 1024;
/// Maximum number of recorded items of one list or object among the arguments.
const ITEMS: usize = 64;
/// Maximum nesting depth of the arguments in a record.
const DEPTH: usize = 8;
/// Names of tool arguments that contain file content.
const CONTENTS: [&str; 10] = [
    "content",
    "content_base64",
    "contents",
    "text",
    "old",
    "new",
    "old_text",
    "new_text",
    "patch",
    "code",
];

/// Record of one turn: a request to the model and its response.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRecord {
    /// Number of the turn, from 1.
    pub turn: u32,
    /// Text of the response, redacted.
    pub text: String,
    /// Name of the tool in each tool call of the response, as the model sent it; redacted.
    pub calls: Vec<String>,
    /// Reason why the model stopped generating.
    pub stop: &'static str,
    /// Name of the responding model, as the provider reports it.
    pub model: String,
    /// Token counts of the turn.
    pub usage: TokenUsage,
    /// Whether the provider counted the tokens or the loop estimated them.
    pub counted: Counted,
}

/// Where token counts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Counted {
    /// Counted by the provider.
    Provider,
    /// Estimated from the size of the texts, because the provider sent no counts.
    Estimate,
}

impl TurnRecord {
    pub(super) fn new(turn: u32, reply: &Reply, usage: TokenUsage, redactor: &Redactor) -> Self {
        Self {
            turn,
            text: bounded(&redactor.redact(&reply.text), TEXT),
            calls: reply
                .calls
                .iter()
                .take(ITEMS)
                .map(|call| head(&redactor.redact(&call.name), 64).to_owned())
                .collect(),
            stop: match reply.stop {
                StopReason::End => "end",
                StopReason::Tools => "tools",
                StopReason::Length => "length",
                StopReason::Filtered => "filtered",
            },
            model: head(&redactor.redact(&reply.model), 200).to_owned(),
            usage,
            counted: match reply.usage {
                Some(_) => Counted::Provider,
                None => Counted::Estimate,
            },
        }
    }

    /// Returns the token counts for journal and transcript.
    pub fn usage(&self) -> Value {
        json!({
            "inputTokens": self.usage.input,
            "cachedInputTokens": self.usage.cached_input,
            "outputTokens": self.usage.output,
            "counted": self.counted,
        })
    }
}

/// Outcome of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// The call succeeded.
    Ok,
    /// The call failed, or the loop did not execute it because its arguments are invalid or the
    /// response has too many calls.
    Failed,
    /// The policy or the parent process does not allow the call, so it was not executed.
    Denied,
    /// The call was not executed, because the task or the run had ended before.
    Skipped,
}

impl CallStatus {
    /// Returns the name of this status in JSON documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::Skipped => "skipped",
        }
    }
}

impl From<ToolStatus> for CallStatus {
    fn from(status: ToolStatus) -> Self {
        match status {
            ToolStatus::Ok => Self::Ok,
            ToolStatus::Failed => Self::Failed,
            ToolStatus::Denied => Self::Denied,
        }
    }
}

/// Record of one tool call; its texts are redacted and cut to a maximum length.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecord {
    /// Number of the turn that contains the call, from 1.
    pub turn: u32,
    /// Id of the call from the model's response.
    pub call_id: String,
    /// Id of the tool, or the called name when no such tool exists.
    pub tool: String,
    /// Outcome of the call.
    pub status: CallStatus,
    /// Arguments of the call, redacted.
    pub arguments: Value,
    /// Result of the call, redacted.
    pub answer: String,
    /// Ids of the guest programs that the call ran.
    pub executions: Vec<String>,
    /// Duration of the call in milliseconds.
    pub duration_ms: u64,
}

impl CallRecord {
    pub(super) fn new(
        turn: u32,
        call: &ToolCall,
        tool: String,
        answer: &ToolAnswer,
        redactor: &Redactor,
    ) -> Self {
        Self {
            turn,
            call_id: call_id(call, redactor),
            tool,
            status: answer.status.into(),
            arguments: arguments(call, redactor),
            answer: bounded(&redactor.redact(&answer.text), ANSWER),
            executions: answer.executions.clone(),
            duration_ms: u64::try_from(answer.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }

    pub(super) fn skipped(turn: u32, call: &ToolCall, tool: String, redactor: &Redactor) -> Self {
        Self {
            turn,
            call_id: call_id(call, redactor),
            tool,
            status: CallStatus::Skipped,
            arguments: arguments(call, redactor),
            answer: String::new(),
            executions: Vec::new(),
            duration_ms: 0,
        }
    }
}

fn call_id(call: &ToolCall, redactor: &Redactor) -> String {
    let id = redactor.redact(&call.id);
    match head(&id, 128) {
        "" => "unnamed".to_owned(),
        id => id.to_owned(),
    }
}

/// Returns the arguments as the bundle shows them: first redacted, then long texts, large file
/// contents and deep nesting replaced by size and hash.
fn arguments(call: &ToolCall, redactor: &Redactor) -> Value {
    let map = match &call.arguments {
        Ok(map) => map,
        Err(why) => return json!({"unreadable": bounded(&redactor.redact(why), ARGUMENT)}),
    };
    let clean = redactor.redact_value(Value::Object(map.clone()));
    let Value::Object(members) = &clean else {
        return Value::Null;
    };
    let shown: Map<String, Value> = members
        .iter()
        .take(ITEMS)
        .map(|(name, value)| (head(name, 128).to_owned(), shown(name, value, DEPTH)))
        .collect();
    let text = Value::Object(shown.clone()).to_string();
    if text.len() <= ARGUMENTS {
        return Value::Object(shown);
    }
    let whole = clean.to_string();
    digest(&whole)
}

fn shown(name: &str, value: &Value, depth: usize) -> Value {
    match value {
        Value::String(text) if CONTENTS.contains(&name) && text.len() > CONTENT => digest(text),
        Value::String(text) if text.len() > ARGUMENT => {
            let mut row = digest(text);
            row["head"] = json!(head(text, CONTENT));
            row
        }
        Value::Array(_) | Value::Object(_) if depth == 0 => digest(&value.to_string()),
        Value::Array(items) => {
            let rows = items.iter().take(ITEMS);
            rows.map(|item| shown(name, item, depth - 1)).collect()
        }
        Value::Object(members) => {
            let rows = members.iter().take(ITEMS);
            rows.map(|(name, value)| (head(name, 128).to_owned(), shown(name, value, depth - 1)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn digest(text: &str) -> Value {
    json!({"bytes": text.len(), "sha256": sha256(text.as_bytes()).as_str()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn call(arguments: Value) -> ToolCall {
        ToolCall {
            id: "c1".to_owned(),
            name: "t".to_owned(),
            arguments: Ok(arguments.as_object().cloned().unwrap()),
        }
    }

    #[test]
    fn file_contents_in_tool_calls_are_recorded_as_size_and_hash() {
        let content = "x".repeat(5_000);
        let row = arguments(
            &call(
                json!({"path": "a.php", "content": content, "note": "y".repeat(3_000), "edits": [{"old_text": content}]}),
            ),
            &Redactor::default(),
        );
        assert_eq!(row["path"], "a.php");
        assert_eq!(
            row["content"],
            json!({"bytes": 5000, "sha256": sha256(content.as_bytes()).as_str()})
        );
        assert_eq!(row["note"]["bytes"], 3000);
        assert_eq!(row["note"]["head"].as_str().unwrap().len(), CONTENT);
        assert_eq!(row["edits"][0]["old_text"]["bytes"], 5000);
    }

    #[test]
    fn size_of_a_tool_call_record_is_bounded() {
        let many: Map<String, Value> = (0..5_000)
            .map(|n| (format!("{n}{}", "k".repeat(500)), json!("v".repeat(1_000))))
            .collect();
        let mut deep = json!("x");
        for _ in 0..100 {
            deep = json!([deep]);
        }
        for arguments_given in [json!(many), json!({"deep": deep})] {
            let answer = ToolAnswer {
                text: "é".repeat(100_000),
                status: ToolStatus::Ok,
                end: None,
                executions: vec![],
                duration: Duration::ZERO,
            };
            let record = CallRecord::new(
                1,
                &call(arguments_given),
                "t".to_owned(),
                &answer,
                &Redactor::default(),
            );
            assert!(record.arguments.to_string().len() <= ARGUMENTS);
            assert!(record.answer.len() < ANSWER + 64);
        }
    }

    #[test]
    fn secrets_in_tool_call_records_are_redacted_before_truncation_and_hashing() {
        let secret = "correct-horse-battery";
        let redactor = Redactor::with_secrets(&[], [secret]);
        let near_the_cut = format!("{}{secret}", "a".repeat(ANSWER - 10));
        let answer = ToolAnswer {
            text: near_the_cut,
            status: ToolStatus::Ok,
            end: None,
            executions: vec![],
            duration: Duration::ZERO,
        };
        let content = format!("{}{secret}", "b".repeat(400));
        let given = call(json!({"path": secret, "content": content, secret: 1}));
        let record = CallRecord::new(1, &given, "t".to_owned(), &answer, &redactor);
        let said = format!("{record:?}");
        assert!(!said.contains("correct-ho"), "{said}");
        let hashed = record.arguments["content"]["sha256"].as_str().unwrap();
        assert_ne!(hashed, sha256(content.as_bytes()).as_str());
    }
}
