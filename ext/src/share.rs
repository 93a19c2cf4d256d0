//! Share of a site that the requester of a run may have: concurrent runs, and the limits of a run.
//!
//! The host site chooses the share, the operator's settings bound it, and what neither sets has a
//! default: no requester gets a whole site or machine because nothing is configured.

use crate::ini::Settings;
use serde_json::Value;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, Limits, LimitsRequest, Requester, RequesterShare, TaskSpec,
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
    let fields = fields(&task.share.ceilings, &bounds);
    for field in &fields {
        let asked = (field.member)(&mut task.limits);
        match *asked {
            Some(value) if value > field.ceiling => {
                return Err(field.exceeded_by(&format!("limits.{}", field.name), value));
            }
            Some(_) => {}
            None => *asked = (field.default > field.ceiling).then_some(field.ceiling),
        }
    }
    // A sandbox that stays open occupies its share after the wall clock limit, for this time.
    let [duration, ..] = &fields;
    let held = task.hold.as_ref().map(|hold| hold.max_ttl_ms);
    if let Some(held) = held.filter(|held| *held > duration.ceiling) {
        return Err(duration.exceeded_by("hold.max_ttl_ms", held));
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
struct Field {
    /// Name in `limits`.
    name: &'static str,
    /// Name of its ceiling on the settings page.
    label: &'static str,
    /// Finds the limit.
    member: fn(&mut LimitsRequest) -> &mut Option<u64>,
    /// Value of a run that asks for none.
    default: u64,
    /// Highest value that a run may have.
    ceiling: u64,
    /// Whether the operator's bound, and not the host site, sets the ceiling.
    is_bound: bool,
}

impl Field {
    /// Returns the error for a field of the task with a value above the ceiling.
    fn exceeded_by(&self, field: &str, value: u64) -> ErrorBody {
        let Self {
            name,
            label,
            ceiling,
            ..
        } = self;
        let hint = if self.is_bound {
            format!("the operator can raise {name} in wp_codebox.max_limits in php.ini")
        } else {
            format!("an administrator can raise the ceiling \"{label}\" in the settings of Codebox")
        };
        let message = format!("{field} is {value}, but on this site it may be at most {ceiling}");
        ErrorBody::new(ErrorCode::LimitInvalid, message)
            .with("field", field)
            .with("ceiling", *ceiling)
            .hint(format!("ask for less, or {hint}"))
    }
}

/// Returns every limit with its ceiling: the lower one of the host site's and the operator's.
fn fields(chosen: &LimitsRequest, bounds: &LimitsRequest) -> [Field; 6] {
    let default = Limits::default();
    let row = |name, label, member: fn(&mut LimitsRequest) -> &mut Option<u64>, default| {
        let of = |limits: &LimitsRequest| *member(&mut limits.clone());
        let wanted = of(chosen).or(of(&DEFAULT_CEILINGS)).unwrap_or(u64::MAX);
        let bound = of(bounds).unwrap_or(u64::MAX);
        Field {
            name,
            label,
            member,
            default,
            ceiling: wanted.min(bound),
            is_bound: bound <= wanted,
        }
    };
    [
        row(
            "wall_clock_ms",
            "Duration (seconds)",
            |limits| &mut limits.wall_clock_ms,
            default.wall_clock_ms,
        ),
        row(
            "processes",
            "Processes",
            |limits| &mut limits.processes,
            default.processes,
        ),
        row(
            "memory_bytes",
            "Memory (MiB)",
            |limits| &mut limits.memory_bytes,
            default.memory_bytes,
        ),
        row(
            "disk_bytes",
            "Disk (MiB)",
            |limits| &mut limits.disk_bytes,
            default.disk_bytes,
        ),
        row(
            "output_bytes",
            "Output kept per program (MiB)",
            |limits| &mut limits.output_bytes,
            default.output_bytes,
        ),
        // A run that asks for no CPU limit may use every processor.
        row(
            "cpu_milli",
            "cpu_milli",
            |limits| &mut limits.cpu_milli,
            default.cpu_milli.unwrap_or(u64::MAX),
        ),
    ]
}
