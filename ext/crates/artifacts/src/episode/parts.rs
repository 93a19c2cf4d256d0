//! The parts of an episode as its builder kept them, one by one: what is left of it when whoever
//! held the builder died. They are digested already, so a trace of them is byte for byte the one
//! that was told while it went on.

use super::builder::ClosedEpisode;
use super::{MAX_TRACE_BYTES, validate_episode_trace};
use crate::bundle::lines;
use serde::{Deserialize, Serialize};
use wp_codebox_contracts::{
    EpisodeObservation, EpisodeRecord, EpisodeReset, EpisodeSnapshot, EpisodeStep, EpisodeTrace,
    TRACE_VERSION, schema_id,
};

/// `runtime.status` of a trace whose episode came to no end.
pub const CUT: &str = "interrupted";

/// One part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", content = "value", rename_all = "camelCase")]
#[allow(clippy::large_enum_variant)] // Written one by one, never kept in numbers.
pub enum EpisodePart {
    /// A runtime was made, or made anew: the trace begins here.
    Reset {
        /// RFC 3339: when.
        created_at: String,
        /// It.
        reset: EpisodeReset,
    },
    /// A step was taken.
    Step(EpisodeStep),
    /// A snapshot was made.
    Snapshot(EpisodeSnapshot),
    /// Something was seen beside the steps.
    Observation(EpisodeObservation),
}

/// The episode of these parts, as far as it came; none when there is no trace that holds.
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
