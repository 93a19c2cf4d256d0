//! Estimates the resource usage of a sandbox from finished runs of this host, else from its limits.

use crate::document::PROVENANCE;
use crate::operations::Sandboxes;
use serde::Serialize;
use serde_json::{Value, json};
use wp_codebox_contracts::{Cost, ErrorBody, ErrorCode, RunStatus, RunView, schema_id};
use wp_codebox_recipe::Profile;
use wp_codebox_runtime::{FoundRun, ListFilter, StatusFilter, cost, list};

/// Maximum number of records of finished runs that are searched, newest first.
const RECORDS: usize = 1000;
/// Maximum number of results of finished runs that are read for an estimate.
const MOST: usize = 100;
/// Maximum size of a run's result that is read, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;
/// Minimum number of measured runs for an estimate from measurements.
const FEWEST: usize = 3;

/// Fails if the time is longer than the profile allows.
pub fn check_duration(profile: &Profile, wall_ms: u64) -> Result<(), ErrorBody> {
    if wall_ms > profile.ttl.max_ms {
        let message =
            "--duration is longer than \"ttl.max\" of the profile; choose a shorter duration";
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    Ok(())
}

/// Returns `sandbox-estimate/v1` of a sandbox that exists for `wall_ms` milliseconds.
///
/// # Errors
/// When the time is longer than the profile allows, or the runs of the site cannot be listed.
pub fn estimate(
    sandboxes: Sandboxes<'_>,
    profile: &Profile,
    wall_ms: u64,
) -> Result<Value, ErrorBody> {
    check_duration(profile, wall_ms)?;
    let filter = ListFilter {
        status: StatusFilter::Only(RunStatus::Ended),
        limit: RECORDS,
        offset: 0,
    };
    let page = list(
        sandboxes.state,
        std::slice::from_ref(sandboxes.site),
        filter,
    )?;
    let (basis, costs) = basis(profile, page.rows);
    let limits = profile
        .resources
        .resolve()
        .map_err(|e| ErrorBody::new(ErrorCode::LimitInvalid, e.to_string()))?;
    Ok(json!({
        "schema": schema_id::SANDBOX_ESTIMATE,
        "success": true,
        "profile": profile.id,
        "version": profile.version,
        "durationMs": wall_ms,
        "basis": basis,
        "samples": costs.len(),
        "measured": measured(&costs, wall_ms),
        "atMost": {
            "memoryBytes": limits.memory_bytes,
            "diskBytes": limits.disk_bytes,
            "processes": limits.processes,
        },
        "costClass": profile.metadata.cost_class,
        "note": "medians of finished runs on this host, scaled by time: of sandboxes of this profile and version if there are enough (basis profile), else of all runs of this site (basis site), else none (basis limits); CPU time is not limited except by the number of processors",
    }))
}

/// Runs whose measurements an estimate uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Basis {
    /// Finished sandboxes of the same profile and version.
    Profile,
    /// All finished runs of the site, whatever their profile.
    Site,
    /// No runs: the estimate consists only of the limits of the sandbox.
    Limits,
}

/// Returns the costs of finished runs: those of the same profile and version if there are at least
/// [`FEWEST`], else those of the whole site, else none.
fn basis(profile: &Profile, runs: Vec<(FoundRun, RunView)>) -> (Basis, Vec<Cost>) {
    // An estimate needs no single run, so it leaves out one whose result cannot be read.
    let read = |run: &(FoundRun, RunView)| cost(&run.0, LARGEST).ok().flatten();
    let (same, others): (Vec<_>, Vec<_>) = runs.into_iter().partition(|(_, view)| {
        let told = view.facts.provenance.get(PROVENANCE);
        let says =
            |name: &str, value: &str| told.and_then(|told| told[name].as_str()) == Some(value);
        says("profile", &profile.id) && says("version", &profile.version)
    });
    let of_profile: Vec<Cost> = same.iter().take(MOST).filter_map(read).collect();
    if of_profile.len() >= FEWEST {
        return (Basis::Profile, of_profile);
    }
    let known = of_profile.len();
    let others = others.iter().take(MOST).filter_map(read);
    let of_site: Vec<Cost> = of_profile
        .into_iter()
        .chain(others.take(MOST - known))
        .collect();
    if of_site.len() >= FEWEST {
        return (Basis::Site, of_site);
    }
    (Basis::Limits, Vec::new())
}

/// Returns the medians of the measured costs, with the CPU time scaled to `wall_ms`; null when
/// there are too few runs.
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
    fn sandbox_cost_estimate_scales_medians_by_time_and_needs_three_runs() {
        let cost = |wall_ms, cpu_ms, peak_memory_bytes| Cost {
            wall_ms,
            cpu_ms,
            peak_memory_bytes,
            group: None,
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
