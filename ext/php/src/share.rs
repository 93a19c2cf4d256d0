//! Share of a site that the requester of a run may have: concurrent runs, and the limits of a run.
//!
//! The host site chooses the share, the operator's settings bound it, and what neither sets has a
//! default: no requester gets a whole site or machine because nothing is configured.

use crate::ini::Settings;
use serde_json::Value;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, LIMIT_FIELDS, LimitField, LimitsRequest, Requester, RequesterShare,
    TaskSpec,
};

const GIB: u64 = 1 << 30;

/// Ceilings of the limits of a run for which the host site sets none.
pub(crate) const DEFAULT_CEILINGS: LimitsRequest = LimitsRequest {
    wall_clock_ms: Some(3600 * 1000),
    processes: None,
    memory_bytes: Some(2 * GIB),
    disk_bytes: Some(2 * GIB),
    output_bytes: None,
    cpu_milli: None,
};

/// Returns the share of the requester of a task. Refuses limits above their ceilings, and lowers the
/// default limits to them. `site_runs` is the limit of concurrent runs of the site.
pub(crate) fn apply(
    task: &mut TaskSpec,
    site_runs: u64,
    settings: &Settings,
) -> Result<RequesterShare, ErrorBody> {
    let bounds = settings.max_limits()?;
    for limit in &LIMIT_FIELDS {
        let ceiling = Ceiling::of(limit, &task.share.ceilings, &bounds);
        let asked = (limit.member)(&mut task.limits);
        match *asked {
            Some(value) if value > ceiling.value => {
                return Err(ceiling.exceeded_by(&format!("limits.{}", limit.name), value));
            }
            Some(_) => {}
            None => {
                *asked = limit
                    .exceeds_by_default(ceiling.value)
                    .then_some(ceiling.value)
            }
        }
        // A sandbox that stays open occupies its share after the wall clock limit, for this time.
        if limit.name == "wall_clock_ms"
            && let Some(hold) = &task.hold
            && hold.max_ttl_ms > ceiling.value
        {
            return Err(ceiling.exceeded_by("hold.max_ttl_ms", hold.max_ttl_ms));
        }
    }
    let runs = match task.share.runs {
        Some(0) => {
            let message = "share.runs must be a whole number from 1";
            let error = ErrorBody::new(ErrorCode::InputInvalid, message);
            return Err(error.with("field", "share.runs"));
        }
        Some(runs) => runs.min(site_runs),
        None => (site_runs / 2).max(1),
    };
    Ok(RequesterShare {
        requester: requester(task),
        max_runs: u32::try_from(runs).unwrap_or(u32::MAX),
        spend: task.share.spend,
    })
}

/// Returns who asked for a task, as the host site recorded it in `provenance.requester`.
fn requester(task: &TaskSpec) -> Requester {
    let recorded = task.provenance.get("requester");
    let member = |name| recorded.and_then(|recorded| recorded.get(name));
    let id = member("id").and_then(Value::as_u64).filter(|id| *id > 0);
    match (member("kind").and_then(Value::as_str), id) {
        (Some("user"), Some(id)) => Requester::User(id),
        (Some("operator"), _) => Requester::Operator,
        _ => Requester::Nobody,
    }
}

/// One limit of a run and its ceiling.
struct Ceiling {
    limit: &'static LimitField,
    /// Highest value that a run may have.
    value: u64,
    /// Whether the operator's bound, and not the host site, sets the ceiling.
    is_bound: bool,
}

impl Ceiling {
    /// Returns the ceiling of a limit: the lower one of the host site's and the operator's.
    fn of(limit: &'static LimitField, chosen: &LimitsRequest, bounds: &LimitsRequest) -> Self {
        let wanted = limit.of(chosen).or(limit.of(&DEFAULT_CEILINGS));
        let wanted = wanted.unwrap_or(u64::MAX);
        let bound = limit.of(bounds).unwrap_or(u64::MAX);
        Self {
            limit,
            value: wanted.min(bound),
            is_bound: bound <= wanted,
        }
    }

    /// Returns the error for a field of the task with a value above the ceiling.
    fn exceeded_by(&self, field: &str, value: u64) -> ErrorBody {
        let ceiling = self.value;
        let hint = if self.is_bound {
            let name = self.limit.name;
            format!("the operator can raise {name} in wp_codebox.max_limits in php.ini")
        } else {
            let label = label(self.limit.name);
            format!("an administrator can raise the ceiling \"{label}\" in the settings of Codebox")
        };
        let message = format!("{field} is {value}, but on this site it may be at most {ceiling}");
        ErrorBody::new(ErrorCode::LimitInvalid, message)
            .with("field", field)
            .with("ceiling", ceiling)
            .hint(format!("ask for less, or {hint}"))
    }
}

/// Returns the name of a limit's ceiling on the settings page.
fn label(limit: &str) -> &str {
    match limit {
        "wall_clock_ms" => "Duration (seconds)",
        "processes" => "Processes",
        "memory_bytes" => "Memory (MiB)",
        "disk_bytes" => "Disk (MiB)",
        "output_bytes" => "Output kept per program (MiB)",
        other => other,
    }
}
