//! Converts the results of the self-test to checks: four for the host (kernel, Landlock, control
//! groups, sandbox), one for each cause of a problem, and one for each kind of isolation (axis).
//!
//! Pure functions.

use super::check::{Check, Status};
use wp_codebox_backend_native::{
    Cause, CgroupState, Concern, KernelMemory, OverShare, SelfTest, UserBudgets, causes,
};
use wp_codebox_contracts::{
    AxisReport, Enforcement, ErrorBody, IsolationAxis, IsolationLevel, KERNEL_MECHANISMS, Limits,
    MINIMUM_KERNEL,
};

/// Returns all checks that follow from the results of one self-test. A level below `required` is an
/// error.
pub(super) fn checks(test: &SelfTest, required: IsolationLevel) -> Vec<Check> {
    let causes = causes(test);
    let mut checks = vec![
        kernel(test),
        landlock(test),
        groups(test),
        sandbox(test, required),
    ];
    for cause in causes.iter().filter(|c| c.concern == Concern::Guest) {
        checks.push(Check {
            fix: Some(cause.fix.clone()),
            ..Check::new("cause", Status::Warning, &cause.message)
        });
    }
    let report = &test.decisive().report;
    checks.extend(report.axes.iter().map(|row| axis(row, test, &causes)));
    checks
}

/// Checks that one run with the default limits uses at most a quarter of each per-user limit of the
/// kernel.
pub(super) fn user_budgets(test: &SelfTest, budgets: &UserBudgets) -> Check {
    let rows = &test.decisive().report.axes;
    let counted = rows
        .iter()
        .any(|row| row.axis == IsolationAxis::Memory && row.enforced == Enforcement::Enforced);
    let memory = if counted {
        KernelMemory::Counted
    } else {
        KernelMemory::Uncounted
    };
    let over = budgets.over_share(&Limits::default(), memory);
    if over.is_empty() {
        let message = "one run takes at most a quarter of each kernel limit of this user";
        return Check::new("user-budgets", Status::Ok, message);
    }
    let listed =
        |text: fn(&OverShare) -> String| over.iter().map(text).collect::<Vec<_>>().join(", ");
    let message = format!(
        "one run with this user's kernel uid could use {}: more than a quarter of what all processes of this user share",
        listed(|one| format!("{} of {} {}", one.run.min(one.budget), one.budget, one.what))
    );
    Check {
        fix: Some(format!(
            "give runs separate kernel uids: start them as root or through the service's socket (wp_codebox.runner_socket), or install uidmap and give this user ids (usermod --add-subuids FIRST-LAST --add-subgids FIRST-LAST); else raise {}, or lower the memory and process limits of runs",
            listed(|one| one.setting.to_owned())
        )),
        ..Check::new("user-budgets", Status::Warning, message)
    }
}

fn kernel(test: &SelfTest) -> Check {
    let (major, minor) = MINIMUM_KERNEL;
    let message = format!(
        "Linux {}; isolation level full needs {major}.{minor} or newer",
        test.facts.kernel
    );
    if test.facts.kernel_at_least(MINIMUM_KERNEL) {
        let missing = KERNEL_MECHANISMS
            .iter()
            .filter(|one| !test.facts.kernel_at_least(one.since));
        let message = missing.fold(message, |text, one| {
            let (major, minor) = one.since;
            format!(
                "{text}; without {} ({major}.{minor}): {}",
                one.name, one.below
            )
        });
        return Check::new("kernel", Status::Ok, message);
    }
    Check {
        fix: Some(format!("use Linux {major}.{minor} or newer")),
        ..Check::new("kernel", Status::Warning, message)
    }
}

fn landlock(test: &SelfTest) -> Check {
    let abi = test.decisive().report.landlock_abi;
    if abi > 0 {
        return Check::new(
            "landlock",
            Status::Ok,
            format!("ABI {abi} is enforced in a guest"),
        );
    }
    let modules = match test.facts.lsm.as_slice() {
        [] => "the active security modules cannot be read".to_owned(),
        modules => format!("active security modules: {}", modules.join(",")),
    };
    Check::new(
        "landlock",
        Status::Warning,
        format!("not confirmed in a guest; {modules}"),
    )
}

fn groups(test: &SelfTest) -> Check {
    let rows = &test.decisive().report.axes;
    let memory = rows.iter().find(|row| row.axis == IsolationAxis::Memory);
    if memory.is_some_and(|row| row.enforced == Enforcement::Enforced) {
        return Check::new(
            "cgroups",
            Status::Ok,
            "a guest was placed in its own cgroup",
        );
    }
    let word = |state| match state {
        CgroupState::Writable => "writable",
        CgroupState::ReadOnly => "mounted read-only",
        CgroupState::NotDelegated => "not delegated to this user",
    };
    let relevant: Vec<_> = test
        .facts
        .cgroups
        .iter()
        .filter(|group| {
            let parts = ["v2", "memory", "pids", "cpu"];
            group.name.split(',').any(|name| parts.contains(&name))
        })
        .collect();
    let message = if relevant.is_empty() {
        "no control groups are mounted".to_owned()
    } else {
        relevant
            .iter()
            .map(|group| format!("{} {}", group.name, word(group.state)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if relevant
        .iter()
        .any(|group| group.state == CgroupState::Writable)
    {
        return Check::new("cgroups", Status::Ok, message);
    }
    Check {
        fix: Some(
            "delegate a control group with the memory and pids controllers to the user that runs guests"
                .to_owned(),
        ),
        ..Check::new("cgroups", Status::Warning, message)
    }
}

fn sandbox(test: &SelfTest, required: IsolationLevel) -> Check {
    let first = test.trials.first();
    let failure = first.and_then(|trial| trial.failure.as_ref());
    let why = |error: Option<&ErrorBody>| {
        error.map_or_else(
            || "a guest started, but not every part of the isolation is enforced".to_owned(),
            |error| error.message.clone(),
        )
    };
    match test.level() {
        IsolationLevel::Full => Check::new(
            "sandbox",
            Status::Ok,
            "a guest started and passed every probe: isolation level full",
        ),
        IsolationLevel::Reduced => Check {
            fix: Some("fix the causes below, or accept this level: \"minimum_isolation\": \"reduced\" in the policy of runs and `--require reduced` here".to_owned()),
            ..Check::new(
                "sandbox",
                if required > IsolationLevel::Reduced { Status::Error } else { Status::Warning },
                format!("isolation level reduced only; {}", why(failure)),
            )
        },
        IsolationLevel::None => Check {
            fix: failure.and_then(|error| error.hints.first().cloned()),
            ..Check::new("sandbox", Status::Error, format!("isolation level none; {}", why(failure)))
        },
    }
}

fn axis(row: &AxisReport, test: &SelfTest, causes: &[Cause]) -> Check {
    let status = if row.enforced >= row.requested {
        Status::Ok
    } else if row.enforced >= test.decisive().level.least(row.axis) {
        Status::Warning
    } else {
        Status::Error
    };
    let fixes: Vec<String> = causes
        .iter()
        .filter(|cause| cause.concern == Concern::Axis(row.axis))
        .map(|cause| format!("{} {}", cause.message, cause.fix))
        .collect();
    Check {
        fix: (status != Status::Ok && !fixes.is_empty()).then(|| fixes.join(" ")),
        ..Check::new(
            id(row.axis),
            status,
            format!("{} by {}: {}", row.enforced.as_str(), row.by, row.evidence),
        )
    }
}

const fn id(axis: IsolationAxis) -> &'static str {
    match axis {
        IsolationAxis::Files => "axis-files",
        IsolationAxis::Processes => "axis-processes",
        IsolationAxis::Network => "axis-network",
        IsolationAxis::Syscalls => "axis-syscalls",
        IsolationAxis::Privileges => "axis-privileges",
        IsolationAxis::Memory => "axis-memory",
        IsolationAxis::Cpu => "axis-cpu",
        IsolationAxis::Pids => "axis-pids",
        IsolationAxis::Disk => "axis-disk",
        IsolationAxis::Identity => "axis-identity",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_backend_native::{HostFacts, LauncherIdentity, Trial};
    use wp_codebox_contracts::{
        Enforcement, ErrorCode, IsolationReport, OuterSandboxKind, schema_id,
    };

    fn test(level: IsolationLevel, wrong: Option<IsolationAxis>) -> SelfTest {
        let axes = IsolationAxis::ALL.iter().map(|&axis| AxisReport {
            axis,
            requested: IsolationLevel::Full.requested(axis),
            enforced: if wrong == Some(axis) || level == IsolationLevel::None && wrong.is_none() {
                Enforcement::NotEnforced
            } else if axis == IsolationAxis::Memory {
                Enforcement::BestEffort
            } else {
                IsolationLevel::Full.requested(axis)
            },
            by: "x".to_owned(),
            evidence: "y".to_owned(),
        });
        SelfTest {
            schema: schema_id::SELF_TEST.to_owned(),
            facts: HostFacts {
                kernel: "6.18.0".to_owned(),
                ..HostFacts::default()
            },
            launcher: LauncherIdentity::default(),
            outer: OuterSandboxKind::None,
            trials: vec![Trial {
                level: IsolationLevel::Full,
                report: IsolationReport {
                    schema: schema_id::ISOLATION_REPORT.to_owned(),
                    level,
                    kernel: "6.18.0".to_owned(),
                    landlock_abi: 7,
                    axes: axes.collect(),
                },
                failure: None,
            }],
        }
    }

    fn of(checks: &[Check], id: &str) -> (Status, String) {
        let found = checks.iter().find(|check| check.id == id).unwrap();
        (found.status, found.fix.clone().unwrap_or_default())
    }

    /// Without a control group, the supervisor only polls the memory use of a guest.
    #[test]
    fn doctor_lists_every_isolation_axis_and_warns_only_about_memory_without_a_control_group() {
        let checks = checks(&test(IsolationLevel::Full, None), IsolationLevel::Full);
        for &axis in IsolationAxis::ALL {
            let (status, fix) = of(&checks, id(axis));
            let polled = axis == IsolationAxis::Memory;
            assert_eq!(status == Status::Warning, polled, "{axis:?}");
            assert_eq!(fix.contains("control group"), polled, "{axis:?}");
        }
        assert_eq!(of(&checks, "sandbox").0, Status::Ok);
        assert!(checks.iter().all(|check| check.status != Status::Error));
    }

    /// With the default limits, one run may open more than 256 files, a quarter of 1024.
    #[test]
    fn doctor_warns_if_one_run_may_use_over_a_quarter_of_a_user_limit() {
        let whole = test(IsolationLevel::Full, None);
        let mut budgets = UserBudgets {
            open_files: Some(524_288),
            epoll_watches: Some(200_000_000),
            inotify_instances: Some(128),
            pipe_pages: None,
        };
        assert_eq!(user_budgets(&whole, &budgets).status, Status::Ok);
        budgets.open_files = Some(1024);
        let check = user_budgets(&whole, &budgets);
        assert_eq!(check.status, Status::Warning);
        assert!(check.fix.unwrap().contains("LimitNOFILE="));
    }

    #[test]
    fn doctor_reports_a_failed_isolation_axis_as_error_and_other_axes_as_ok() {
        let checks = checks(
            &test(IsolationLevel::None, Some(IsolationAxis::Network)),
            IsolationLevel::Reduced,
        );
        assert_eq!(of(&checks, "axis-network").0, Status::Error);
        assert_eq!(of(&checks, "axis-files").0, Status::Ok);
        assert_eq!(of(&checks, "sandbox").0, Status::Error);
    }

    #[test]
    fn level_reduced_is_an_error_where_full_is_required_and_level_none_always() {
        let status = |level, required| of(&checks(&test(level, None), required), "sandbox").0;
        use IsolationLevel::{Full, None as Nothing, Reduced};
        assert_eq!(status(Full, Full), Status::Ok);
        assert_eq!(status(Reduced, Full), Status::Error);
        assert_eq!(status(Reduced, Reduced), Status::Warning);
        assert_eq!(status(Nothing, Reduced), Status::Error);
    }

    #[test]
    fn doctor_reports_one_cause_on_a_host_that_cannot_start_guests() {
        let mut none = test(IsolationLevel::None, None);
        none.facts
            .sysctls
            .insert("user/max_user_namespaces".to_owned(), "0".to_owned());
        let error = ErrorBody::new(ErrorCode::IsolationUnavailable, "no guest");
        none.trials[0].failure = Some(error.with("step", "unshare").with("errno", 28));
        let checks = checks(&none, IsolationLevel::Full);
        let causes: Vec<_> = checks.iter().filter(|check| check.id == "cause").collect();
        assert_eq!(causes.len(), 1);
        assert!(
            causes[0]
                .fix
                .clone()
                .unwrap()
                .contains("max_user_namespaces")
        );
        assert_eq!(of(&checks, "axis-disk"), (Status::Error, String::new()));
    }
}
