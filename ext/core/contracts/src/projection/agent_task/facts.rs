//! Facts about an ended task, read from the result of its run.

use crate::{CodedError, ErrorBody, ErrorCode, Outcome};
use serde_json::{Map, Value};

/// Data from which the documents about an ended task are built.
#[derive(Debug, Clone, Copy)]
pub struct AgentTaskFacts<'a> {
    /// Input of the task, which may contain the caller's own ids.
    pub input: &'a Map<String, Value>,
    /// The task as the agent read it, `task-input/v1`.
    pub task: &'a Map<String, Value>,
    /// Result of the run, `run-result/v1`.
    pub result: &'a Map<String, Value>,
    /// `provider`, `model` and `credential` of the run's model, without secret values; empty
    /// without a model.
    pub model: &'a Map<String, Value>,
    /// The preview that the run had, as the last event about it says; empty without a preview.
    pub preview: &'a Map<String, Value>,
    /// WordPress version of the guest.
    pub wordpress: &'a str,
}

/// Reason why no document about a task can be built.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(InputInvalid, detail = Self::detail)]
pub enum AgentTaskError {
    /// The run result has no outcome, or one that this version does not know.
    #[error(
        "the \"outcome\" of the run's result is missing or unknown; pass the result that the run returned"
    )]
    OutcomeUnknown,
    /// The run result has no run id.
    #[error("the result of the run has no \"run_id\"; pass the result that the run returned")]
    RunIdMissing,
}

impl AgentTaskError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::OutcomeUnknown => body.with("field", "outcome"),
            Self::RunIdMissing => body.with("field", "run_id"),
        }
    }
}

/// [`AgentTaskFacts`] with the members of the result that several documents use.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub input: &'a Map<String, Value>,
    pub task: &'a Map<String, Value>,
    pub result: &'a Map<String, Value>,
    pub model: &'a Map<String, Value>,
    pub preview: &'a Map<String, Value>,
    pub wordpress: &'a str,
    pub outcome: Outcome,
    pub run_id: &'a str,
    pub summary: &'a str,
    /// Host path of the bundle directory; absent without a bundle.
    pub directory: Option<&'a str>,
    pub bundle_id: Option<&'a str>,
    pub manifest_sha256: Option<&'a str>,
    /// Completion outcome, with the bundle's directory instead of `.`.
    pub completion: Value,
    /// Result of the agent, with the bundle's directory instead of `.`; absent without an agent.
    pub agent: Option<Value>,
}

impl<'a> Facts<'a> {
    pub(super) fn read(given: &AgentTaskFacts<'a>) -> Result<Self, AgentTaskError> {
        let result = given.result;
        let outcome = result.get("outcome").cloned().unwrap_or_default();
        let outcome =
            serde_json::from_value(outcome).map_err(|_| AgentTaskError::OutcomeUnknown)?;
        let text = |name: &str| result.get(name).and_then(Value::as_str);
        let bundle = |name: &str| result.get("artifacts")?.get(name)?.as_str();
        let directory = bundle("path").filter(|path| !path.is_empty());
        let document = |name: &str| {
            let document = result.get(name).filter(|value| value.is_object())?;
            Some(located(document.clone(), directory))
        };
        Ok(Self {
            input: given.input,
            task: given.task,
            result,
            model: given.model,
            preview: given.preview,
            wordpress: given.wordpress,
            outcome,
            run_id: text("run_id").ok_or(AgentTaskError::RunIdMissing)?,
            summary: text("summary").unwrap_or_default(),
            directory,
            bundle_id: bundle("bundle_id"),
            manifest_sha256: bundle("manifest_sha256"),
            completion: document("completion_outcome").unwrap_or_else(|| Value::Object(Map::new())),
            agent: document("agent_result"),
        })
    }

    /// Returns the list `name` of the run result; empty if the result lacks it.
    pub(super) fn list(&self, name: &str) -> &[Value] {
        let list = self.result.get(name).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    /// Returns the status of the completion outcome; `failed` if the result has no such document.
    pub(super) fn completion_status(&self) -> &str {
        self.completion["status"].as_str().unwrap_or("failed")
    }

    pub(super) fn is_retryable(&self) -> bool {
        self.completion["nextAction"] == "retry"
    }

    pub(super) fn is_actionable(&self) -> bool {
        let agent = self.agent.as_ref();
        agent.is_some_and(|agent| agent["actionable"] == true)
    }

    pub(super) fn no_op_reason(&self) -> Option<&str> {
        self.agent.as_ref()?["noOpReason"].as_str()
    }

    /// Returns a member of the object `patch` of the completion outcome, or else of the agent's
    /// result.
    pub(super) fn patch(&self, name: &str) -> Option<&Value> {
        let documents = [Some(&self.completion), self.agent.as_ref()];
        let mut values = documents.into_iter().flatten().map(|document| {
            let patch = document.get("patch");
            patch.and_then(|patch| patch.get(name))
        });
        values.find_map(|value| value.filter(|value| !value.is_null()))
    }

    /// Returns the address of the preview; absent without a preview.
    pub(super) fn preview_url(&self) -> Option<&'a Value> {
        self.preview.get("url")
    }

    pub(super) fn error(&self) -> Option<&'a Map<String, Value>> {
        let error = self.result.get("error")?.as_object()?;
        (!error.is_empty()).then_some(error)
    }

    pub(super) fn error_code(&self) -> Option<&'a str> {
        self.error()?.get("code")?.as_str()
    }

    /// Returns whether the run failed because the model's provider was unavailable or refused.
    pub(super) fn is_provider_error(&self) -> bool {
        let codes = [ErrorCode::ProviderUnavailable, ErrorCode::ProviderRejected];
        let code = self.error_code();
        codes.iter().any(|known| Some(known.as_str()) == code)
    }

    /// Returns the path of a bundle member on the host.
    pub(super) fn at(&self, name: &str) -> Option<String> {
        Some(format!("{}/{name}", self.directory?))
    }
}

/// Replaces `.`, which stands for the bundle's directory inside the bundle, by its path on the
/// host.
fn located(mut document: Value, directory: Option<&str>) -> Value {
    if let Some(directory) = directory {
        for pointer in ["/provenance/artifactDirectory", "/artifacts/directory"] {
            if let Some(place) = document.pointer_mut(pointer)
                && *place == "."
            {
                *place = directory.into();
            }
        }
    }
    document
}

/// Returns the members of an object; any other value has none.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
