//! Checks the parts of an episode trace, recomputes every digest, and collects all violations.

use super::payload;
use crate::canonical::OverLimit;
use crate::json::Json;
use crate::verify::shape::{digest, full_text, text};
use serde::Serialize;
use wp_codebox_contracts::{ActionKind, schema_id};

/// Maximum number of issues listed one by one. If there are more, one further issue states the
/// number of those not listed.
pub const MAX_TRACE_ISSUES: usize = 1000;

/// Keys that belong to benchmarks and products. A trace must not contain them outside the caller's
/// data, so that traces do not depend on any benchmark or product.
const FORBIDDEN: [&str; 11] = [
    "reward",
    "success",
    "grader",
    "scenario",
    "task-set",
    "task_set",
    "taskSet",
    "benchmark",
    "model-eval",
    "model_eval",
    "modelEval",
];

/// One violation of the rules for episode traces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceIssue {
    /// JSON path of the violation, e.g. `$.steps[0].action.digest`.
    pub path: String,
    /// What is wrong at the path.
    pub message: String,
}

impl std::fmt::Display for TraceIssue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// Violations found so far in one trace, or in one part that the builder adds.
#[derive(Debug)]
pub(super) struct Issues {
    over: OverLimit,
    found: Vec<TraceIssue>,
    unlisted: usize,
}

impl Issues {
    pub(super) const fn new(over: OverLimit) -> Self {
        Self {
            over,
            found: Vec::new(),
            unlisted: 0,
        }
    }

    pub(super) fn finish(mut self) -> Vec<TraceIssue> {
        if self.unlisted > 0 {
            self.found.push(TraceIssue {
                path: "$".to_owned(),
                message: format!("{} further issues are not listed", self.unlisted),
            });
        }
        self.found
    }

    pub(super) fn add(&mut self, path: &str, message: &str) {
        if self.found.len() >= MAX_TRACE_ISSUES {
            self.unlisted += 1;
            return;
        }
        self.found.push(TraceIssue {
            path: path.to_owned(),
            message: message.to_owned(),
        });
    }

    /// Adds a violation for each of the members `keys` that is not a non-empty string.
    pub(super) fn full(&mut self, value: &Json, keys: &[&str], at: &str) {
        for key in keys {
            if full_text(value, key).is_none() {
                self.add(&format!("{at}.{key}"), "must be a string that is not empty");
            }
        }
    }

    pub(super) fn schema(&mut self, value: &Json, id: &str, at: &str) {
        if text(value, "schema") != Some(id) {
            self.add(&format!("{at}.schema"), &format!("must be {id}"));
        }
    }

    pub(super) fn step(&mut self, step: &Json, index: usize, at: &str) {
        self.full(step, &["id"], at);
        if step.get("index").and_then(Json::as_f64) != Some(index as f64) {
            self.add(&format!("{at}.index"), "must be the position of the step");
        }
        let null = Json::Null;
        let action = step.get("action").unwrap_or(&null);
        self.action(action, &format!("{at}.action"));
        let stated = digest(action.get("digest"));
        self.refers(step.get("actionRef"), "action", action, stated, at);

        let execution = step.get("execution").unwrap_or(&null);
        self.full(execution, &["id"], &format!("{at}.execution"));
        let computed = payload::digest(execution, self.over);
        if let Err(error) = &computed {
            self.add(&format!("{at}.execution"), &error.to_string());
        }
        let computed = computed.ok();
        let stated = computed.as_ref().map(|hash| hash.as_str());
        self.refers(step.get("executionRef"), "execution", execution, stated, at);

        let present = |key| step.get(key).filter(|value| **value != Json::Null);
        match (present("observation"), present("observationRef")) {
            (None, None) => {}
            (None, Some(_)) => self.add(
                &format!("{at}.observationRef"),
                "does not refer to an observation of this step",
            ),
            (Some(observation), reference) => {
                self.observation(observation, &format!("{at}.observation"));
                let stated = digest(observation.get("digest"));
                self.refers(reference, "observation", observation, stated, at);
            }
        }
    }

    fn action(&mut self, action: &Json, at: &str) {
        self.full(action, &["id", "command"], at);
        self.schema(action, schema_id::RUNTIME_EPISODE_ACTION, at);
        let kind = text(action, "kind");
        if !ActionKind::ALL.iter().any(|k| Some(k.as_str()) == kind) {
            let known: Vec<&str> = ActionKind::ALL.iter().map(|k| k.as_str()).collect();
            let message = format!("must be one of {}", known.join(", "));
            self.add(&format!("{at}.kind"), &message);
        }
        let args = action.get("args").and_then(Json::as_array);
        if !args.is_some_and(|a| a.iter().all(|v| matches!(v, Json::String(_)))) {
            self.add(&format!("{at}.args"), "must be a list of strings");
        }
        for key in payload::ACTION_TEXTS {
            match action.get(key) {
                None => {}
                Some(Json::String(value)) if key != "cwd" && *value == "".into() => {
                    self.add(&format!("{at}.{key}"), "must not be empty");
                }
                Some(Json::String(_)) => {}
                Some(_) => self.add(&format!("{at}.{key}"), "must be a string"),
            }
        }
        if let Some(value) = action.get("timeoutMs")
            && !value.as_f64().is_some_and(|n| n >= 0.0)
        {
            self.add(&format!("{at}.timeoutMs"), "must be a number, at least 0");
        }
        if let Some(value) = action.get("metadata")
            && value.as_object().is_none()
        {
            self.add(&format!("{at}.metadata"), "must be an object");
        }
        self.own_digest(action, &payload::action(action), at);
    }

    pub(super) fn observation(&mut self, observation: &Json, at: &str) {
        self.schema(observation, schema_id::RUNTIME_EPISODE_OBSERVATION, at);
        self.full(observation, &["id", "type", "observedAt"], at);
        if observation.get("data").is_none() {
            self.add(&format!("{at}.data"), "is missing");
        }
        self.artifact_references(observation, at);
        self.own_digest(observation, &payload::observation(observation), at);
    }

    pub(super) fn snapshot(&mut self, snapshot: &Json, at: &str) {
        self.schema(snapshot, schema_id::RUNTIME_EPISODE_SNAPSHOT, at);
        self.full(snapshot, &["id", "createdAt", "semantics"], at);
        self.object(snapshot, "metadata", at);
        self.artifact_references(snapshot, at);
        self.own_digest(snapshot, &payload::snapshot(snapshot), at);
    }

    pub(super) fn object(&mut self, value: &Json, key: &str, at: &str) {
        if value.get(key).and_then(Json::as_object).is_none() {
            self.add(&format!("{at}.{key}"), "must be an object");
        }
    }

    fn artifact_references(&mut self, value: &Json, at: &str) {
        let Some(references) = value.get("artifactRefs") else {
            return;
        };
        let Some(rows) = references.as_array() else {
            return self.add(&format!("{at}.artifactRefs"), "must be a list");
        };
        for (index, row) in rows.iter().enumerate() {
            let at = format!("{at}.artifactRefs[{index}]");
            self.full(row, &["kind"], &at);
            self.reference(row, &at);
        }
    }

    fn own_digest(&mut self, value: &Json, payload: &Json, at: &str) {
        let at = format!("{at}.digest");
        match payload::digest(payload, self.over) {
            Err(error) => self.add(&at, &error.to_string()),
            Ok(computed) if digest(value.get("digest")) == Some(computed.as_str()) => {}
            Ok(_) => self.add(&at, "does not match the data that it covers"),
        }
    }

    /// Checks that the member `<kind>Ref` of a step refers to the step's `target` by id and digest.
    fn refers(
        &mut self,
        reference: Option<&Json>,
        kind: &str,
        target: &Json,
        stated: Option<&str>,
        at: &str,
    ) {
        let at = format!("{at}.{kind}Ref");
        match reference {
            None => self.add(&at, "is missing"),
            Some(reference) => self.names(reference, kind, target, stated, &at),
        }
    }

    /// Checks that `reference` has this kind and the id and digest of `target`. Violations in the
    /// target itself are not reported here.
    pub(super) fn names(
        &mut self,
        reference: &Json,
        kind: &str,
        target: &Json,
        stated: Option<&str>,
        at: &str,
    ) {
        if text(reference, "kind") != Some(kind) {
            self.add(&format!("{at}.kind"), &format!("must be {kind}"));
        }
        self.reference(reference, at);
        if let (Some(named), Some(id)) = (full_text(reference, "id"), full_text(target, "id"))
            && named != id
        {
            self.add(&format!("{at}.id"), "does not match the referenced target");
        }
        if let (Some(named), Some(stated)) = (digest(reference.get("digest")), stated)
            && named != stated
        {
            self.add(
                &format!("{at}.digest"),
                "does not match the referenced target",
            );
        }
    }

    /// Checks the members that every reference must have: an id and a SHA-256 digest.
    pub(super) fn reference(&mut self, reference: &Json, at: &str) {
        self.full(reference, &["id"], at);
        if digest(reference.get("digest")).is_none() {
            self.add(&format!("{at}.digest"), "must be a sha256 digest");
        }
    }

    /// Adds a violation for each key in [`FORBIDDEN`]. The caller's data (`data`, `metadata` and
    /// `$.artifacts`) may contain such keys.
    pub(super) fn forbidden(&mut self, value: &Json, at: &str) {
        let mut path = at.to_owned();
        self.search(value, &mut path);
    }

    fn search(&mut self, value: &Json, path: &mut String) {
        let length = path.len();
        for (index, item) in value.as_array().unwrap_or_default().iter().enumerate() {
            if matches!(item, Json::Array(_) | Json::Object(_)) {
                path.push_str(&format!("[{index}]"));
                self.search(item, path);
                path.truncate(length);
            }
        }
        for (key, item) in value.as_object().unwrap_or_default() {
            let key = key.as_str().unwrap_or("?");
            let banned = FORBIDDEN.contains(&key);
            if !banned && !matches!(item, Json::Array(_) | Json::Object(_)) {
                continue;
            }
            let free = matches!(key, "data" | "metadata") || (path == "$" && key == "artifacts");
            path.push('.');
            path.push_str(key);
            if banned {
                self.add(path, "is not allowed in a trace");
            }
            if !free {
                self.search(item, path);
            }
            path.truncate(length);
        }
    }
}
