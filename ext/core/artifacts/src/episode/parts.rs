//! Stored parts of an episode, from which the trace is rebuilt if the process with the builder
//! died. The parts contain their digests and are used unchanged. `runtime.status` of the rebuilt
//! trace states that the episode was interrupted.

use super::builder::ClosedEpisode;
use super::{MAX_TRACE_BYTES, validate_episode_trace};
use crate::bundle::lines;
use serde::{Deserialize, Serialize};
use wp_codebox_contracts::{
    EpisodeObservation, EpisodeRecord, EpisodeReset, EpisodeSnapshot, EpisodeStep, EpisodeTrace,
    TRACE_VERSION, schema_id,
};

/// Value of `runtime.status` in a trace whose recording process died before it closed the episode.
pub const CUT: &str = "interrupted";

/// One part of an episode, as stored on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", content = "value", rename_all = "camelCase")]
#[allow(clippy::large_enum_variant)] // One value at a time exists, so its size does not matter.
pub enum EpisodePart {
    /// A runtime was created: the first one, or one that replaces the earlier runtime. A new trace
    /// starts here.
    Reset {
        /// Time at which the new runtime was created, in RFC 3339.
        created_at: String,
        /// The reset, with backend and environment of the new runtime.
        reset: EpisodeReset,
    },
    /// A step was completed.
    Step(EpisodeStep),
    /// A snapshot was created.
    Snapshot(EpisodeSnapshot),
    /// An observation was made outside the steps.
    Observation(EpisodeObservation),
}

/// Rebuilds the episode from its parts; returns `None` if they give no valid trace.
pub fn cut_episode(parts: impl IntoIterator<Item = EpisodePart>) -> Option<ClosedEpisode> {
    let mut trace: Option<EpisodeTrace> = None;
    let (mut records, mut observations) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            EpisodePart::Reset { created_at, reset } => {
                records.push(EpisodeRecord::from(&reset));
                trace = Some(EpisodeTrace {
                    schema: schema_id::RUNTIME_EPISODE_TRACE.to_owned(),
                    version: TRACE_VERSION,
                    id: format!("trace-{}", reset.runtime.id),
                    created_at,
                    runtime: reset.runtime.clone(),
                    reset,
                    steps: Vec::new(),
                    snapshots: Vec::new(),
                    artifacts: None,
                    artifact_ref: None,
                });
            }
            EpisodePart::Step(step) => {
                records.push(EpisodeRecord::from(&step));
                trace.as_mut()?.steps.push(step);
            }
            EpisodePart::Snapshot(snapshot) => {
                records.push(EpisodeRecord::from(&snapshot));
                trace.as_mut()?.snapshots.push(snapshot);
            }
            EpisodePart::Observation(seen) => observations.push(seen),
        }
    }
    let mut trace = trace?;
    CUT.clone_into(&mut trace.runtime.status);
    let mut trace_file = serde_json::to_vec(&trace).ok()?;
    trace_file.push(b'\n');
    let holds = trace_file.len() as u64 <= MAX_TRACE_BYTES
        && validate_episode_trace(&trace_file).issues.is_empty();
    holds.then(|| ClosedEpisode {
        trace_file,
        records_file: lines(&records),
        observations,
        trace,
    })
}
