//! Redaction of secrets in the parts of a trace before their digests are computed.

use super::inputs::{ObservationInput, SnapshotInput, StepInput, StepObservation};
use serde_json::{Map, Value};
use std::borrow::Cow;
use wp_codebox_contracts::{ActionRequest, EpisodeExecution};
use wp_codebox_policy::Redactor;

pub(super) fn step(redactor: &Redactor, input: &mut StepInput) {
    action(redactor, &mut input.action);
    execution(redactor, &mut input.execution);
    match &mut input.observation {
        StepObservation::None => {}
        StepObservation::Seen(seen) => observation(redactor, seen),
    }
}

pub(super) fn observation(redactor: &Redactor, input: &mut ObservationInput) {
    value(redactor, &mut input.data);
}

pub(super) fn snapshot(redactor: &Redactor, input: &mut SnapshotInput) {
    map(redactor, &mut input.metadata);
}

fn action(redactor: &Redactor, action: &mut ActionRequest) {
    let ActionRequest {
        kind: _,
        command,
        args,
        cwd,
        timeout_ms: _,
        method,
        url,
        path,
        operation,
        selector,
        description,
        metadata,
    } = action;
    text(redactor, command);
    args.iter_mut().for_each(|arg| text(redactor, arg));
    for member in [cwd, method, url, path, operation, selector, description] {
        member.iter_mut().for_each(|member| text(redactor, member));
    }
    metadata.iter_mut().for_each(|data| map(redactor, data));
}

fn execution(redactor: &Redactor, execution: &mut EpisodeExecution) {
    let EpisodeExecution {
        id: _,
        command,
        args,
        exit_code: _,
        stdout,
        stderr,
        result,
        diagnostics,
        artifact_refs: _,
        started_at: _,
        finished_at: _,
    } = execution;
    args.iter_mut()
        .chain([command, stdout, stderr])
        .for_each(|member| text(redactor, member));
    for member in [result, diagnostics] {
        member.iter_mut().for_each(|data| value(redactor, data));
    }
}

fn text(redactor: &Redactor, text: &mut String) {
    let clean = match redactor.redact(text) {
        Cow::Borrowed(_) => return,
        Cow::Owned(clean) => clean,
    };
    *text = clean;
}

fn value(redactor: &Redactor, value: &mut Value) {
    *value = redactor.redact_value(std::mem::take(value));
}

fn map(redactor: &Redactor, members: &mut Map<String, Value>) {
    // The redactor returns an object for an object, so this condition is always true.
    if let Value::Object(clean) = redactor.redact_value(Value::Object(std::mem::take(members))) {
        *members = clean;
    }
}
