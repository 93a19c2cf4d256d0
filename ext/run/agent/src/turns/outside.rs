//! Tools that the parent process executes, i.e. the process that started the run: the run sends it
//! one request per call and waits for one response.
//!
//! The run can request only tools that the host listed, and the parent checks each call again. The
//! response is cut to a maximum size; an invalid response fails only this call. If the parent has
//! disconnected or has detached from the run, the call fails at once.

use super::window::head;
use crate::{ToolAnswer, ToolCall, ToolStatus};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorCode, ParentToolStatus, RunId, schema_id};
use wp_codebox_policy::Redactor;

/// Maximum number of tool calls to the parent process in one run.
const CALLS: u32 = 100;
/// Default time to wait for the parent's response.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of bytes of a tool's output that the model gets.
const OUTPUT: usize = 64 * 1024;
/// Maximum length of an error message from the parent, in bytes.
const MESSAGE: usize = 1024;

/// The parent's response to a tool request, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum ParentAnswer {
    /// Response to this request, a `parent-tool-result/v1` document that is not validated yet.
    Result(Value),
    /// The parent cannot respond, e.g. because it has disconnected; the text says why.
    Unavailable(&'static str),
    /// No response arrived in time.
    Timeout,
}

/// Connection to the parent process of a run.
pub trait Parent {
    /// Sends a request and waits for its response until `until`.
    fn ask(&self, request_id: &str, request: Value, until: Instant) -> ParentAnswer;
}

/// The tools of one run that the parent process executes.
pub struct ParentTools<'a> {
    parent: &'a dyn Parent,
    run_id: &'a RunId,
    redactor: &'a Redactor,
    /// Ids of the tools that the run may request from the parent.
    allowed: Vec<String>,
    timeout: Duration,
    deadline: Instant,
    asked: u32,
}

impl<'a> ParentTools<'a> {
    /// Creates the tools; `allowed` are the ids of the tools that the run may request.
    pub fn new(
        parent: &'a dyn Parent,
        run_id: &'a RunId,
        redactor: &'a Redactor,
        allowed: Vec<String>,
        timeout_ms: Option<u64>,
        deadline: Instant,
    ) -> Self {
        Self {
            parent,
            run_id,
            redactor,
            allowed,
            timeout: timeout_ms.map_or(TIMEOUT, Duration::from_millis),
            deadline,
            asked: 0,
        }
    }

    /// Requests a call of the tool with this id from the parent.
    pub fn call(&mut self, tool: &str, call: &ToolCall) -> ToolAnswer {
        let began = Instant::now();
        let (status, text) = self.ask(tool, call);
        ToolAnswer {
            text,
            status,
            end: None,
            executions: Vec::new(),
            duration: began.elapsed(),
        }
    }

    fn ask(&mut self, tool: &str, call: &ToolCall) -> (ToolStatus, String) {
        if !self.allowed.iter().any(|id| id == tool) {
            let text = format!(
                "{tool}: the host did not list this tool [{}]",
                ErrorCode::ToolNotAllowed
            );
            return (ToolStatus::Denied, text);
        }
        if self.asked >= CALLS {
            let text = format!(
                "{tool}: the host executes at most {CALLS} calls per run [{}]",
                ErrorCode::ToolNotAllowed
            );
            return (ToolStatus::Denied, text);
        }
        self.asked += 1;
        let request_id = format!("{}-parent-{}", self.run_id, self.asked);
        let request = self.request(&request_id, tool, call);
        let until = self.deadline.min(Instant::now() + self.timeout);
        match self.parent.ask(&request_id, request, until) {
            ParentAnswer::Result(result) => read(tool, &result),
            ParentAnswer::Unavailable(why) => {
                (ToolStatus::Failed, format!("{tool}: unavailable: {why}"))
            }
            ParentAnswer::Timeout => (
                ToolStatus::Failed,
                format!("{tool}: timeout: the host did not answer in time"),
            ),
        }
    }

    fn request(&self, request_id: &str, tool: &str, call: &ToolCall) -> Value {
        let input = call.arguments.clone().unwrap_or_default();
        json!({
            "schema": schema_id::PARENT_TOOL_REQUEST,
            "version": 1,
            "request_id": request_id,
            "tool": tool,
            "operation": "call",
            "input": self.redactor.redact_value(Value::Object(input)),
            "sandbox_session": {"task_id": self.run_id},
            "authorization": {"allowed_tools": self.allowed},
        })
    }
}

/// Returns status and text for the model from the parent's response.
fn read(tool: &str, result: &Value) -> (ToolStatus, String) {
    let status = result["status"].as_str().unwrap_or("");
    let output = || match &result["output"] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let error = || {
        let message = result["error"]["message"].as_str().unwrap_or("");
        let code = result["error"]["code"].as_str().unwrap_or("");
        let code = if code.is_empty() {
            String::new()
        } else {
            format!(" [{}]", head(code, 64))
        };
        format!("{}{code}", head(message, MESSAGE))
    };
    let known = serde_json::from_value::<ParentToolStatus>(result["status"].clone());
    match known {
        Ok(ParentToolStatus::Succeeded) => {
            let output = output();
            let kept = head(&output, OUTPUT);
            let cut = output.len() - kept.len();
            let rest = if cut > 0 {
                format!("\n[{cut} more bytes were left out]")
            } else {
                String::new()
            };
            (ToolStatus::Ok, format!("{kept}{rest}"))
        }
        Ok(ParentToolStatus::Denied) => (
            ToolStatus::Denied,
            format!("{tool}: denied by the host: {}", error()),
        ),
        Ok(
            ParentToolStatus::Failed | ParentToolStatus::Unavailable | ParentToolStatus::Timeout,
        ) => (ToolStatus::Failed, format!("{tool}: {status}: {}", error())),
        Err(_) => (
            ToolStatus::Failed,
            format!("{tool}: failed: the host's answer has no known status"),
        ),
    }
}

/// Returns the response of a parent that offers no tools, such as the command line client.
pub fn unavailable(request: &Value) -> Value {
    let mut result = Map::new();
    for key in ["request_id", "tool", "operation"] {
        result.insert(key.to_owned(), request[key].clone());
    }
    result.insert("schema".to_owned(), json!(schema_id::PARENT_TOOL_RESULT));
    result.insert("version".to_owned(), json!(1));
    result.insert("status".to_owned(), json!("unavailable"));
    result.insert(
        "error".to_owned(),
        json!({"code": ErrorCode::ToolNotAllowed, "message": "the command line cannot execute tools of a parent process", "retryable": false}),
    );
    Value::Object(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    struct Answers {
        answer: ParentAnswer,
        asked: RefCell<Vec<Value>>,
    }

    impl Parent for Answers {
        fn ask(&self, request_id: &str, request: Value, _until: Instant) -> ParentAnswer {
            assert_eq!(request["request_id"], request_id);
            self.asked.borrow_mut().push(request);
            self.answer.clone()
        }
    }

    fn answers(answer: ParentAnswer) -> Answers {
        Answers {
            answer,
            asked: RefCell::default(),
        }
    }

    fn with<T>(parent: &Answers, ids: &[&str], work: impl FnOnce(&mut ParentTools<'_>) -> T) -> T {
        let run_id = RunId::new(format!("run_{:032x}", 7)).unwrap();
        let redactor = Redactor::with_secrets(&[], ["correct-horse-battery"]);
        let allowed = ids.iter().map(|id| (*id).to_owned()).collect();
        let deadline = Instant::now() + Duration::from_secs(60);
        work(&mut ParentTools::new(
            parent, &run_id, &redactor, allowed, None, deadline,
        ))
    }

    fn call(name: &str, input: Value) -> ToolCall {
        ToolCall {
            id: "c".to_owned(),
            name: name.to_owned(),
            arguments: Ok(input.as_object().cloned().unwrap()),
        }
    }

    #[test]
    fn parent_tool_request_contains_the_tool_the_allowed_tools_and_the_redacted_input() {
        let parent = answers(ParentAnswer::Result(
            json!({"status": "succeeded", "output": {"title": "Broken"}}),
        ));
        let answer = with(&parent, &["host.read-ticket", "host.list"], |tools| {
            let other = tools.call("host.write-ticket", &call("x", json!({})));
            assert_eq!(other.status, ToolStatus::Denied);
            assert!(other.text.contains("wp_codebox_tool_not_allowed"));
            let input = json!({"id": 4, "note": "correct-horse-battery"});
            tools.call("host.read-ticket", &call("host_read_ticket", input))
        });
        assert_eq!(answer.status, ToolStatus::Ok);
        assert_eq!(answer.text, r#"{"title":"Broken"}"#);
        let asked = parent.asked.borrow();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0]["tool"], "host.read-ticket");
        assert_eq!(asked[0]["input"]["id"], 4);
        assert_eq!(asked[0]["version"], 1);
        assert_eq!(
            asked[0]["authorization"]["allowed_tools"],
            json!(["host.read-ticket", "host.list"])
        );
        assert!(!asked[0].to_string().contains("horse"));
    }

    #[test]
    fn each_parent_tool_response_maps_to_a_tool_status() {
        let error = json!({"code": "c", "message": "m"});
        let rows = [
            (
                json!({"status": "denied", "error": error}),
                ToolStatus::Denied,
                "denied by the host: m [c]",
            ),
            (
                json!({"status": "failed", "error": error}),
                ToolStatus::Failed,
                "failed: m [c]",
            ),
            (
                json!({"status": "unavailable"}),
                ToolStatus::Failed,
                "unavailable",
            ),
            (json!({"status": "timeout"}), ToolStatus::Failed, "timeout"),
            (
                json!({"status": "great"}),
                ToolStatus::Failed,
                "no known status",
            ),
            (json!("nonsense"), ToolStatus::Failed, "no known status"),
        ];
        for (result, status, text) in rows {
            let parent = answers(ParentAnswer::Result(result.clone()));
            let answer = with(&parent, &["a"], |tools| {
                tools.call("a", &call("a", json!({})))
            });
            assert_eq!(answer.status, status, "{result}");
            assert!(answer.text.contains(text), "{result}: {}", answer.text);
        }
        for (parent, text) in [
            (answers(ParentAnswer::Timeout), "timeout"),
            (
                answers(ParentAnswer::Unavailable("gone")),
                "unavailable: gone",
            ),
        ] {
            let answer = with(&parent, &["a"], |tools| {
                tools.call("a", &call("a", json!({})))
            });
            assert_eq!(answer.status, ToolStatus::Failed);
            assert!(answer.text.contains(text), "{}", answer.text);
        }
    }

    #[test]
    fn long_parent_tool_output_is_truncated_and_calls_above_the_limit_are_denied() {
        let long = "é".repeat(OUTPUT);
        let parent = answers(ParentAnswer::Result(
            json!({"status": "succeeded", "output": long}),
        ));
        with(&parent, &["a"], |tools| {
            let ask = |tools: &mut ParentTools<'_>| tools.call("a", &call("a", json!({})));
            let first = ask(tools);
            assert!(
                first.text.len() < OUTPUT + 64 && first.text.ends_with("more bytes were left out]")
            );
            for _ in 1..CALLS {
                assert_eq!(ask(tools).status, ToolStatus::Ok);
            }
            let beyond = ask(tools);
            assert_eq!(beyond.status, ToolStatus::Denied);
            assert!(beyond.text.contains("wp_codebox_tool_not_allowed"));
        });
        assert_eq!(parent.asked.borrow().len() as u32, CALLS);
    }
}
