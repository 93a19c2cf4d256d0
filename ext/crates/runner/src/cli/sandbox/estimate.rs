//! What a sandbox may use, from what this host's finished runs used; else from its limits.

use super::args::EstimateArgs;
use super::{duration, open};
use crate::cli::{Settings, profile};
use serde_json::{Value, json};
use wp_codebox_contracts::{Cost, ErrorBody, ErrorCode, RunResult, schema_id};
use wp_codebox_runtime::{ListFilter, StatusFilter, list, view};

/// Finished runs that are looked at, newest first.
const MOST: usize = 100;
/// Fewer say nothing.
const FEWEST: usize = 3;

pub(super) fn estimate(args: &EstimateArgs) -> Result<Value, ErrorBody> {
    let settings = Settings::resolve(&args.place.paths);
    let profile = profile::load(&args.profile, &settings.state_dir)?.profile;
    let wall_ms = match &args.duration {
        None => profile.ttl.default_ms,
        Some(text) => duration("--duration", text)?,
    };
    if wall_ms > profile.ttl.max_ms {
        let message = "--duration is longer than the profile's ttl.max";
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    let (state, site) = open(&args.place)?;
    let filter = ListFilter {
        status: StatusFilter::Any,
        limit: MOST,
        offset: 0,
    };
    let (_, runs) = list(&state, &[site], filter).map_err(|e| e.body())?;
    let costs: Vec<Cost> = runs
        .iter()
        .filter_map(|(run, _)| view(&state, run).ok()?.result)
        .filter_map(|result| serde_json::from_value::<RunResult>(result).ok())
        .map(|result| result.cost)
        .collect();
    let limits = profile
        .resources
        .resolve()
        .map_err(|e| ErrorBody::new(ErrorCode::LimitInvalid, e.to_string()))?;
    let measured = measured(&costs, wall_ms);
    Ok(json!({
        "schema": schema_id::SANDBOX_ESTIMATE,
        "success": true,
        "profile": profile.id,
        "version": profile.version,
        "durationMs": wall_ms,
        "basis": if measured.is_null() { "limits" } else { "measured" },
        "samples": costs.len(),
        "measured": measured,
        "atMost": {
            "memoryBytes": limits.memory_bytes,
            "diskBytes": limits.disk_bytes,
            "processes": limits.processes,
        },
        "costClass": profile.metadata.cost_class,
        "note": "medians of this host's finished runs of this site, scaled by time; no share of the processor is limited, so its time has no bound but the number of processors",
    }))
}

/// Medians; null when too few runs are known.
fn measured(costs: &[Cost], wall_ms: u64) -> Value {
    if costs.len() < FEWEST {
        return Value::Null;
    }
    let share = median(costs, |cost| {
        cost.cpu_ms.saturating_mul(1000) / cost.wall_ms.max(1)
    });
    json!({
        "cpuMs": wall_ms.saturating_mul(share) / 1000,
        "cpuPerThousand": share,
        "peakMemoryBytes": median(costs, |cost| cost.peak_memory_bytes),
    })
}

fn median(costs: &[Cost], of: impl Fn(&Cost) -> u64) -> u64 {
    let mut all: Vec<u64> = costs.iter().map(of).collect();
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_scaled_by_time_and_few_runs_say_nothing() {
        let cost = |wall_ms, cpu_ms, peak_memory_bytes| Cost {
            wall_ms,
            cpu_ms,
            peak_memory_bytes,
            model: None,
        };
        let costs = [cost(1000, 500, 10), cost(1000, 100, 30), cost(0, 0, 20)];
        let told = measured(&costs, 60_000);
        assert_eq!(told["cpuPerThousand"], 100);
        assert_eq!(told["cpuMs"], 6000);
        assert_eq!(told["peakMemoryBytes"], 20);
        assert!(measured(&costs[..2], 60_000).is_null());
    }
}
