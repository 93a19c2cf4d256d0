//! Records an episode (a sequence of actions on a runtime and their observations) as a trace.
//!
//! The builder redacts and digests each part, checks it with the rules of the validator, and only
//! then stores it. A failed call therefore leaves the episode unchanged, and the stored trace
//! always verifies. A reset starts a new trace because it starts a new runtime; the records file
//! retains the parts before the reset.

use super::error::EpisodeError;
use super::inputs::{
    EpisodeArtifacts, EpisodeStart, ObservationInput, SnapshotInput, StepInput, StepObservation,
};
use super::issues::Issues;
use super::{MAX_TRACE_BYTES, payload, redact, validate};
use crate::bundle::lines;
use crate::canonical::OverLimit;
use crate::json::Json;
use serde::Serialize;
use wp_codebox_contracts::{
    ActionRequest, EpisodeAction, EpisodeObservation, EpisodeRecord, EpisodeReset, EpisodeSnapshot,
    EpisodeStep, EpisodeTrace, FileDigest, Sha256Hex, TRACE_VERSION, TraceRef, TraceRefKind,
    schema_id,
};
use wp_codebox_policy::Redactor;

/// Bytes that the check of a trace's size reserves for all members of the trace except the reset,
/// the steps and the snapshots.
const HEAD: u64 = 64 * 1024;

/// Trace and files of an episode that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ClosedEpisode {
    /// The trace since the last reset.
    pub trace: EpisodeTrace,
    /// Content of `files/runtime-episode-trace.json`.
    pub trace_file: Vec<u8>,
    /// Content of `files/runtime-episode.jsonl`: every reset with the parts that follow it.
    pub records_file: Vec<u8>,
    /// Observations made outside resets and steps, in order.
    pub observations: Vec<EpisodeObservation>,
}

/// An episode that is being recorded.
#[derive(Debug)]
pub struct EpisodeBuilder<'r> {
    redactor: &'r Redactor,
    trace: Option<EpisodeTrace>,
    resets: u64,
    observations: Vec<EpisodeObservation>,
    records: Vec<EpisodeRecord>,
    bytes: u64,
}

impl<'r> EpisodeBuilder<'r> {
    /// Creates an empty episode. It has no runtime until [`Self::reset`] is called.
    #[must_use]
    pub const fn new(redactor: &'r Redactor) -> Self {
        Self {
            redactor,
            trace: None,
            resets: 0,
            observations: Vec::new(),
            records: Vec::new(),
            bytes: HEAD,
        }
    }

    /// Records that a new runtime was created: starts the trace, or replaces it by a new one.
    pub fn reset(&mut self, start: EpisodeStart) -> Result<&EpisodeReset, EpisodeError> {
        let id = format!("{}:reset:{}", start.runtime.id, self.resets);
        let mut observations = Vec::new();
        for (index, mut seen) in start.observations.into_iter().enumerate() {
            redact::observation(self.redactor, &mut seen);
            observations.push(observation(format!("{id}:observation:{index}"), seen)?);
        }
        let observation_refs: Vec<TraceRef> = observations.iter().map(observation_ref).collect();
        let reset = EpisodeReset {
            id,
            runtime: start.runtime.clone(),
            observations,
            observation_refs,
        };
        let bytes = self.grown(HEAD, "reset", &reset)?;
        let trace = EpisodeTrace {
            schema: schema_id::RUNTIME_EPISODE_TRACE.to_owned(),
            version: TRACE_VERSION,
            id: format!("trace-{}", start.runtime.id),
            created_at: start.created_at,
            runtime: start.runtime,
            reset,
            steps: Vec::new(),
            snapshots: Vec::new(),
            artifacts: None,
            artifact_ref: None,
        };
        judge("reset", &trace, validate::judge)?;
        self.bytes = bytes;
        self.resets += 1;
        self.records.push(EpisodeRecord::from(&trace.reset));
        Ok(&self.trace.insert(trace).reset)
    }

    /// Appends a completed step to the trace.
    pub fn step(&mut self, mut input: StepInput) -> Result<&EpisodeStep, EpisodeError> {
        let index = self.trace()?.steps.len();
        redact::step(self.redactor, &mut input);
        let id = format!("{}:step:{index}", input.execution.id);
        let action = action(format!("{id}:action"), input.action)?;
        let execution = input.execution;
        let executed = hash("execution", &json("execution", &execution)?)?;
        let observation = match input.observation {
            StepObservation::None => None,
            StepObservation::Seen(seen) => Some(observation(format!("{id}:observation"), seen)?),
        };
        let step = EpisodeStep {
            index,
            action_ref: TraceRef::new(TraceRefKind::Action, &action.id, action.digest.clone()),
            execution_ref: TraceRef::new(TraceRefKind::Execution, &execution.id, executed),
            observation_ref: observation.as_ref().map(observation_ref),
            id,
            action,
            execution,
            observation,
        };
        judge("step", &step, |issues, step| {
            issues.step(step, index, "$");
            issues.forbidden(step, "$.steps");
        })?;
        let bytes = self.grown(self.bytes, "step", &step)?;
        let record = EpisodeRecord::from(&step);
        let trace = self.trace.as_mut().ok_or(EpisodeError::NotReset)?;
        trace.steps.push(step);
        self.records.push(record);
        self.bytes = bytes;
        trace.steps.last().ok_or(EpisodeError::NotReset)
    }

    /// Records an observation made outside a step. It is not part of the trace; the bundle stores
    /// it together with the other observations of the run.
    pub fn observe(
        &mut self,
        mut seen: ObservationInput,
    ) -> Result<&EpisodeObservation, EpisodeError> {
        let runtime = &self.trace()?.runtime.id;
        let id = format!("{runtime}:observation:{}", self.observations.len());
        redact::observation(self.redactor, &mut seen);
        self.observations.push(observation(id, seen)?);
        self.observations.last().ok_or(EpisodeError::NotReset)
    }

    /// Appends a snapshot to the trace.
    pub fn snapshot(&mut self, mut input: SnapshotInput) -> Result<&EpisodeSnapshot, EpisodeError> {
        let known = |snapshot: &EpisodeSnapshot| snapshot.id == input.id;
        if self.trace()?.snapshots.iter().any(known) {
            return Err(EpisodeError::SnapshotKnown { id: input.id });
        }
        redact::snapshot(self.redactor, &mut input);
        let mut snapshot = EpisodeSnapshot {
            schema: schema_id::RUNTIME_EPISODE_SNAPSHOT.to_owned(),
            id: input.id,
            created_at: input.created_at,
            semantics: input.semantics,
            metadata: input.metadata,
            artifact_refs: input.artifact_refs,
            digest: FileDigest::sha256(Sha256Hex::zero()),
        };
        let covered = payload::snapshot(&json("snapshot", &snapshot)?);
        snapshot.digest = hash("snapshot", &covered)?;
        judge("snapshot", &snapshot, |issues, snapshot| {
            issues.snapshot(snapshot, "$");
            issues.forbidden(snapshot, "$.snapshots");
        })?;
        let bytes = self.grown(self.bytes, "snapshot", &snapshot)?;
        let record = EpisodeRecord::from(&snapshot);
        let trace = self.trace.as_mut().ok_or(EpisodeError::NotReset)?;
        trace.snapshots.push(snapshot);
        self.records.push(record);
        self.bytes = bytes;
        trace.snapshots.last().ok_or(EpisodeError::NotReset)
    }

    /// Sets the trace's reference to the bundle that contains the files of the episode. A later
    /// call replaces the reference.
    pub fn artifacts(&mut self, bundle: EpisodeArtifacts) -> Result<&TraceRef, EpisodeError> {
        let trace = self.trace.as_mut().ok_or(EpisodeError::NotReset)?;
        let reference = TraceRef::new(
            TraceRefKind::ArtifactBundle,
            bundle.id.as_str(),
            FileDigest::sha256(bundle.content.clone()),
        );
        trace.artifacts = Some(serde_json::json!({
            "id": bundle.id,
            "contentDigest": bundle.content,
            "createdAt": bundle.created_at,
        }));
        self.records.push(EpisodeRecord::Artifacts {
            id: bundle.id.as_str().to_owned(),
            artifact_ref: reference.clone(),
        });
        Ok(trace.artifact_ref.insert(reference))
    }

    /// Returns the trace since the last reset.
    pub fn trace(&self) -> Result<&EpisodeTrace, EpisodeError> {
        self.trace.as_ref().ok_or(EpisodeError::NotReset)
    }

    /// Ends the episode and returns its trace and files. The trace's `runtime.status` becomes
    /// `destroyed`.
    pub fn close(self) -> Result<ClosedEpisode, EpisodeError> {
        let mut trace = self.trace.ok_or(EpisodeError::NotReset)?;
        "destroyed".clone_into(&mut trace.runtime.status);
        // Compact, not pretty, because the size limit was computed for the compact form.
        let mut trace_file =
            serde_json::to_vec(&trace).map_err(|_| EpisodeError::Unwritable { part: "trace" })?;
        trace_file.push(b'\n');
        Ok(ClosedEpisode {
            trace_file,
            records_file: lines(&self.records),
            observations: self.observations,
            trace,
        })
    }

    /// Returns the size of a trace of `bytes` bytes after the part `value` is added. Fails if that
    /// exceeds the maximum size of a trace.
    fn grown(
        &self,
        bytes: u64,
        part: &'static str,
        value: &impl Serialize,
    ) -> Result<u64, EpisodeError> {
        let text = serde_json::to_vec(value).map_err(|_| EpisodeError::Unwritable { part })?;
        let grown = bytes.saturating_add(text.len() as u64 + 1);
        if grown > MAX_TRACE_BYTES {
            return Err(EpisodeError::TooLarge {
                most: MAX_TRACE_BYTES,
            });
        }
        Ok(grown)
    }
}

fn action(id: String, request: ActionRequest) -> Result<EpisodeAction, EpisodeError> {
    let covered = payload::action(&json("action", &request)?);
    Ok(EpisodeAction {
        schema: schema_id::RUNTIME_EPISODE_ACTION.to_owned(),
        id,
        digest: hash("action", &covered)?,
        request,
    })
}

fn observation(id: String, seen: ObservationInput) -> Result<EpisodeObservation, EpisodeError> {
    let mut observation = EpisodeObservation {
        schema: schema_id::RUNTIME_EPISODE_OBSERVATION.to_owned(),
        id,
        kind: seen.kind,
        data: seen.data,
        observed_at: seen.observed_at,
        artifact_refs: seen.artifact_refs,
        digest: FileDigest::sha256(Sha256Hex::zero()),
    };
    let covered = payload::observation(&json("observation", &observation)?);
    observation.digest = hash("observation", &covered)?;
    judge("observation", &observation, |issues, observation| {
        issues.observation(observation, "$");
        issues.forbidden(observation, "$.observation");
    })?;
    Ok(observation)
}

fn observation_ref(observation: &EpisodeObservation) -> TraceRef {
    let kind = TraceRefKind::Observation;
    TraceRef::new(kind, &observation.id, observation.digest.clone())
}

fn json(part: &'static str, value: &impl Serialize) -> Result<Json, EpisodeError> {
    serde_json::to_value(value)
        .map(|value| Json::from(&value))
        .map_err(|_| EpisodeError::Unwritable { part })
}

/// Returns the digest of a part. Refuses a part that exceeds the limits of canonical JSON, because
/// the digest would not cover the excess.
fn hash(part: &'static str, covered: &Json) -> Result<FileDigest, EpisodeError> {
    match payload::digest(covered, OverLimit::Refuse) {
        Ok(value) => Ok(FileDigest::sha256(value)),
        Err(error) => {
            let mut issues = Issues::new(OverLimit::Refuse);
            issues.add("$", &error.to_string());
            let issues = issues.finish();
            Err(EpisodeError::Invalid { part, issues })
        }
    }
}

fn judge(
    part: &'static str,
    value: &impl Serialize,
    rules: impl FnOnce(&mut Issues, &Json),
) -> Result<(), EpisodeError> {
    let mut issues = Issues::new(OverLimit::Refuse);
    rules(&mut issues, &json(part, value)?);
    let issues = issues.finish();
    if issues.is_empty() {
        Ok(())
    } else {
        Err(EpisodeError::Invalid { part, issues })
    }
}

#[cfg(test)]
mod tests;
