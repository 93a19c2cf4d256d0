//! Selects the isolation level of a run, and checks the isolation that the run's guests report
//! against the run's policy.
//!
//! A self-test selects the level only if the policy allows several. In every case the guest's own
//! report is checked: a guest below the policy's demands is rejected before untrusted code runs;
//! the error names the isolation axis (the isolated resource, such as the file system) that failed.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use wp_codebox_backend_native::{
    Cgroup, GuestIdentity, HostFacts, HostLayout, ProcessSandbox, SelfTest, SelfTestRequest,
    causes, run_self_test, self_test, weaknesses,
};
use wp_codebox_contracts::{
    AxisReport, Enforcement, ErrorBody, ErrorCode, IsolationAxis, IsolationLevel, IsolationReport,
    NetworkPolicy, NetworkPosture, RunRequest, RuntimePolicy,
};

/// Returns the level to request: `full`, unless the policy accepts a lower level and this host
/// supports only a lower level.
pub(crate) fn choose_level(
    policy: &RuntimePolicy,
    tested: impl FnOnce() -> SelfTest,
) -> Result<IsolationLevel, ErrorBody> {
    #[cfg(test)]
    if let Some(level) = FORCED.get() {
        return Ok(level);
    }
    match policy.minimum_isolation {
        // Without an alternative to level full, no self-test is needed: the guest's own report
        // shows later whether the level holds.
        IsolationLevel::Full | IsolationLevel::None => return Ok(IsolationLevel::Full),
        IsolationLevel::Reduced => {}
    }
    let test = tested();
    match test.level() {
        IsolationLevel::Full => Ok(IsolationLevel::Full),
        // A guest at level `reduced` can create no socket, so only a policy without network fits.
        IsolationLevel::Reduced
            if policy.network != NetworkPolicy::Posture(NetworkPosture::Deny) =>
        {
            let message = "this host supports only the isolation level \"reduced\", at which a sandbox has no network, but the policy allows network access; set \"network\" to \"deny\", or make the level \"full\" possible";
            Err(explained(
                ErrorBody::new(ErrorCode::IsolationUnavailable, message),
                &test,
            ))
        }
        IsolationLevel::Reduced => Ok(IsolationLevel::Reduced),
        IsolationLevel::None => Err(below(&test)),
    }
}

#[cfg(test)]
thread_local! {
    static FORCED: std::cell::Cell<Option<IsolationLevel>> = const { std::cell::Cell::new(None) };
}

/// Makes runs in this test thread use the isolation level `level`, whatever the host supports.
#[cfg(test)]
pub fn force_for_test(level: IsolationLevel) {
    FORCED.set(Some(level));
}

/// Returns the result of a self-test with the launcher of the request: a stored result, otherwise a
/// new one.
pub(crate) fn tested(request: &RunRequest, sandbox: &Arc<dyn ProcessSandbox>) -> SelfTest {
    with_request(request, sandbox, self_test)
}

fn with_request(
    request: &RunRequest,
    sandbox: &Arc<dyn ProcessSandbox>,
    ask: impl Fn(&SelfTestRequest<'_>) -> SelfTest,
) -> SelfTest {
    ask(&SelfTestRequest {
        launcher: Path::new(&request.paths.launcher),
        sandbox: sandbox.as_ref(),
        // The choice of the level does not depend on the cgroup.
        cgroup: &Cgroup::none("this self-test only chooses a level"),
        identity: &GuestIdentity::shared("this self-test only chooses a level"),
        host: &HostLayout::probe(),
        state_dir: Path::new(&request.paths.state_dir),
    })
}

/// Returns the error for a host that supports neither `full` nor `reduced`.
fn below(test: &SelfTest) -> ErrorBody {
    let why = test
        .trials
        .iter()
        .map(|trial| format!("{}: {}", trial.level.as_str(), reason(&trial.report)))
        .collect::<Vec<_>>()
        .join("; ");
    let message =
        format!("this host supports none of the isolation levels that the policy allows ({why})");
    let error = ErrorBody::new(ErrorCode::IsolationUnavailable, message);
    explained(error, test)
}

/// Returns why a self-test did not reach its level: the first isolation axis that failed, with its
/// evidence.
fn reason(report: &IsolationReport) -> String {
    report
        .axes
        .iter()
        .find(|row| row.enforced < row.requested)
        .map_or_else(
            || "the self-test reported no axis that is weaker than requested".to_owned(),
            |row| {
                let (axis, seen) = (row.axis.as_str(), row.enforced.as_str());
                format!("{axis} is {seen}, {}", row.evidence)
            },
        )
}

/// If a guest could not start because the kernel lacks a mechanism, adds the self-test's
/// explanation to the error.
pub(crate) fn explain(
    error: ErrorBody,
    request: &RunRequest,
    sandbox: &Arc<dyn ProcessSandbox>,
) -> ErrorBody {
    let told = error
        .data
        .as_ref()
        .is_some_and(|data| data.contains_key("axes"));
    if error.code != ErrorCode::IsolationUnavailable || told {
        return error;
    }
    explained(error, &with_request(request, sandbox, run_self_test))
}

fn explained(mut error: ErrorBody, test: &SelfTest) -> ErrorBody {
    let named: Vec<String> = causes(test)
        .into_iter()
        .map(|cause| format!("{} {}", cause.message, cause.fix))
        .collect();
    if !named.is_empty() {
        error.hints = named;
    }
    let rows = test.trials.first().map(|trial| &trial.report.axes);
    error.with("axes", json!(rows))
}

/// Fails if a guest reports less isolation than the policy demands, overall or for one axis (an
/// isolated resource, such as the file system), or if it has no CPU limit although the run has one.
pub(crate) fn check(
    policy: &RuntimePolicy,
    cpu_milli: Option<u64>,
    report: &IsolationReport,
) -> Result<(), ErrorBody> {
    let missed: Vec<Missed<'_>> = demands(policy, cpu_milli)
        .filter_map(|(axis, demanded)| {
            let row = report.axes.iter().find(|row| row.axis == axis);
            let observed = row.map_or(Enforcement::NotEnforced, |row| row.enforced);
            (observed < demanded).then_some(Missed {
                axis,
                demanded,
                observed,
                row,
            })
        })
        .collect();
    if report.level >= policy.minimum_isolation && missed.is_empty() {
        return Ok(());
    }
    let mut what: Vec<String> = missed.iter().map(Missed::sentence).collect();
    if report.level < policy.minimum_isolation {
        let (is, wanted) = (report.level.as_str(), policy.minimum_isolation.as_str());
        what.insert(
            0,
            format!("the isolation level is {is}, but the policy requires at least {wanted}"),
        );
    }
    let message = format!(
        "the sandbox isolates less than the policy requires: {}",
        what.join("; ")
    );
    let mut error = ErrorBody::new(ErrorCode::IsolationUnavailable, message);
    for cause in weaknesses(&HostFacts::read(), report) {
        // What takes the cgroup away weakens both axes.
        let concerns = |missed: &Missed<'_>| {
            cause.concerns(missed.axis)
                || missed.axis == IsolationAxis::Cpu && cause.concerns(IsolationAxis::Memory)
        };
        if missed.iter().any(concerns) {
            error = error.hint(format!("{} {}", cause.message, cause.fix));
        }
    }
    for missed in &missed {
        let axis = missed.axis.as_str();
        error = error.hint(match missed.axis {
            IsolationAxis::Cpu if cpu_milli.is_some() => {
                "Or run without a CPU limit: omit limits.cpu_milli (--cpus).".to_owned()
            }
            _ => format!(
                "Or accept less: set isolation_floors.{axis} to {:?} in the policy.",
                missed.observed.as_str()
            ),
        });
    }
    let rows: Vec<Value> = missed.iter().map(Missed::document).collect();
    Err(error
        .with("level", report.level.as_str())
        .with("minimumIsolation", policy.minimum_isolation.as_str())
        .with("missed", rows)
        .with("axes", json!(report.axes)))
}

/// Returns the floors of the policy, and that of a CPU limit: nothing but the kernel can keep it.
fn demands(
    policy: &RuntimePolicy,
    cpu_milli: Option<u64>,
) -> impl Iterator<Item = (IsolationAxis, Enforcement)> + '_ {
    let limited = cpu_milli.map(|_| (IsolationAxis::Cpu, Enforcement::Enforced));
    policy
        .isolation_floors
        .iter()
        .map(|(axis, floor)| (*axis, *floor))
        .filter(move |(axis, _)| limited.is_none() || *axis != IsolationAxis::Cpu)
        .chain(limited)
}

/// An isolation axis (an isolated resource) for which the guest reports less than the policy
/// demands.
struct Missed<'a> {
    axis: IsolationAxis,
    demanded: Enforcement,
    observed: Enforcement,
    row: Option<&'a AxisReport>,
}

impl Missed<'_> {
    fn sentence(&self) -> String {
        let evidence = self
            .row
            .map_or("the report does not contain this axis", |row| {
                row.evidence.as_str()
            });
        let (axis, demanded) = (self.axis.as_str(), self.demanded.as_str());
        let observed = self.observed.as_str();
        format!("the isolation axis {axis} must be {demanded} but is {observed} ({evidence})")
    }

    fn document(&self) -> Value {
        json!({"axis": self.axis, "demanded": self.demanded, "observed": self.observed})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use wp_codebox_backend_native::{LauncherIdentity, Trial};
    use wp_codebox_contracts::{OuterSandboxKind, schema_id};
    use wp_codebox_policy::defaults;

    fn report(level: IsolationLevel, memory: Enforcement) -> IsolationReport {
        let axes = IsolationAxis::ALL.iter().map(|&axis| AxisReport {
            axis,
            requested: IsolationLevel::Full.requested(axis),
            enforced: if axis == IsolationAxis::Memory {
                memory
            } else {
                level.requested(axis)
            },
            by: "x".to_owned(),
            evidence: "seen so".to_owned(),
        });
        IsolationReport {
            schema: schema_id::ISOLATION_REPORT.to_owned(),
            level,
            kernel: "6.18".to_owned(),
            landlock_abi: 7,
            axes: axes.collect(),
        }
    }

    fn tested(full: IsolationLevel, reduced: IsolationLevel) -> SelfTest {
        let trial = |asked, seen| Trial {
            level: asked,
            report: report(seen, Enforcement::BestEffort),
            failure: None,
        };
        SelfTest {
            schema: schema_id::SELF_TEST.to_owned(),
            facts: HostFacts::default(),
            launcher: LauncherIdentity::default(),
            outer: OuterSandboxKind::None,
            trials: vec![
                trial(IsolationLevel::Full, full),
                trial(IsolationLevel::Reduced, reduced),
            ],
        }
    }

    fn policy(minimum: IsolationLevel) -> RuntimePolicy {
        RuntimePolicy {
            minimum_isolation: minimum,
            ..defaults(Vec::new())
        }
    }

    #[test]
    fn level_reduced_is_chosen_only_if_the_host_lacks_full_and_the_policy_accepts_reduced() {
        use IsolationLevel::{Full, None, Reduced};
        let never = || -> SelfTest { unreachable!("a policy without a choice needs no self-test") };
        assert_eq!(choose_level(&policy(Full), never), Ok(Full));
        for (full, reduced, level) in [
            (Full, None, Full),
            (Full, Reduced, Full),
            (None, Reduced, Reduced),
        ] {
            let chosen = choose_level(&policy(Reduced), || tested(full, reduced));
            assert_eq!(chosen, Ok(level));
        }
        let error = choose_level(&policy(Reduced), || tested(None, None)).unwrap_err();
        assert_eq!(error.code, ErrorCode::IsolationUnavailable);
        assert_eq!(error.code.exit_status(), 125);
        assert!(error.message.contains("files is not-enforced"), "{error}");
        let data = error.data.unwrap();
        assert_eq!(
            data["axes"].as_array().unwrap().len(),
            IsolationAxis::ALL.len()
        );
    }

    #[test]
    fn guest_with_weaker_isolation_than_the_policy_requires_is_rejected() {
        let whole = report(IsolationLevel::Full, Enforcement::BestEffort);
        let mut rules = policy(IsolationLevel::Full);
        assert_eq!(check(&rules, None, &whole), Ok(()));

        let memory = |floor| BTreeMap::from([(IsolationAxis::Memory, floor)]);
        rules.isolation_floors = memory(Enforcement::BestEffort);
        assert_eq!(check(&rules, None, &whole), Ok(()));
        rules.isolation_floors = memory(Enforcement::Enforced);
        let error = check(&rules, None, &whole).unwrap_err();
        assert_eq!(error.code, ErrorCode::IsolationUnavailable);
        let told = "axis memory must be enforced but is best-effort (seen so)";
        assert!(error.message.contains(told), "{error}");
        assert!(
            error
                .hints
                .iter()
                .any(|hint| hint.contains("control group")),
            "{error:?}"
        );
        assert!(
            error
                .hints
                .iter()
                .any(|hint| hint.contains("isolation_floors.memory"))
        );
        let data = error.data.unwrap();
        assert_eq!(data["missed"][0]["axis"], "memory");
        // A guest whose cgroup enforces the memory limit meets this policy.
        let limited = report(IsolationLevel::Full, Enforcement::Enforced);
        assert_eq!(check(&rules, None, &limited), Ok(()));

        // The kernel must keep a CPU limit, whatever the policy says of the axis.
        rules.isolation_floors = BTreeMap::from([(IsolationAxis::Cpu, Enforcement::BestEffort)]);
        assert_eq!(check(&rules, None, &whole), Ok(()));
        let error = check(&rules, Some(500), &whole).unwrap_err();
        assert_eq!(error.data.as_ref().unwrap()["missed"][0]["axis"], "cpu");
        for part in ["control group", "--cpus"] {
            assert!(error.hints.iter().any(|hint| hint.contains(part)), "{part}");
        }
        let mut kept = whole.clone();
        for row in &mut kept.axes {
            row.enforced = Enforcement::Enforced;
        }
        assert_eq!(check(&rules, Some(500), &kept), Ok(()));

        let less = report(IsolationLevel::Reduced, Enforcement::BestEffort);
        let error = check(&policy(IsolationLevel::Full), None, &less).unwrap_err();
        assert!(error.message.contains("reduced") && error.message.contains("full"));
        assert_eq!(check(&policy(IsolationLevel::Reduced), None, &less), Ok(()));
    }

    #[test]
    fn isolation_axis_missing_from_the_report_counts_as_not_enforced() {
        let mut silent = report(IsolationLevel::Full, Enforcement::Enforced);
        silent.axes.retain(|row| row.axis != IsolationAxis::Disk);
        let mut rules = policy(IsolationLevel::Full);
        rules.isolation_floors = BTreeMap::from([(IsolationAxis::Disk, Enforcement::BestEffort)]);
        let error = check(&rules, None, &silent).unwrap_err();
        assert!(
            error.message.contains("does not contain this axis"),
            "{error}"
        );
    }
}
