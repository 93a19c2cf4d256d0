//! Causes of weaker isolation on this host, each with an instruction for the operator.
//!
//! Pure functions: they take a self-test and return causes, the most likely first. A host setting
//! is reported as a cause only when a mechanism that depends on it failed.

use crate::host_facts::{CgroupState, HostFacts, SettingValue, Surroundings};
use crate::launch_error::hints;
use crate::self_test::{SelfTest, Trial};
use wp_codebox_contracts::{Enforcement, IsolationAxis, IsolationReport};
use wp_codebox_contracts::{MINIMUM_KERNEL, TMPFS_USER_XATTRS};

/// AppArmor profile for hosts that restrict user namespaces.
const APPARMOR_PROFILE: &str = "packaging/apparmor/wp-codebox-launch";
/// Seccomp profile for containers.
const CONTAINER_PROFILE: &str = "packaging/container/seccomp.json";

/// Part of the isolation that a cause weakens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// No guest can be built at all.
    Guest,
    /// One isolation axis (files, network, …) is weaker.
    Axis(IsolationAxis),
}

/// A cause of weaker isolation on this host, with its fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What the cause affects: the whole guest or one isolation axis.
    pub concern: Concern,
    /// Description of the cause for the operator, one sentence.
    pub message: String,
    /// Instruction with which the operator removes the cause.
    pub fix: String,
}

impl Cause {
    /// Returns true if the cause weakens this axis: it affects exactly this axis, or no guest can
    /// be built at all.
    #[must_use]
    pub fn concerns(&self, axis: IsolationAxis) -> bool {
        self.concern == Concern::Guest || self.concern == Concern::Axis(axis)
    }
}

/// Returns the causes for each mechanism that was missing when the self-test tried level `full`.
#[must_use]
pub fn causes(test: &SelfTest) -> Vec<Cause> {
    let Some(trial) = test.trials.first() else {
        return Vec::new();
    };
    if trial.failure.is_none() {
        return weaknesses(&test.facts, &trial.report);
    }
    let mut found = Vec::new();
    // A failure that names no step says nothing about the host: for example, the launcher program
    // is missing.
    if let Some(failed) = failed_step(trial) {
        guest(&test.facts, &failed, &mut found);
    }
    found
}

struct FailedStep {
    step: String,
    errno: i32,
}

fn failed_step(trial: &Trial) -> Option<FailedStep> {
    let data = trial.failure.as_ref()?.data.as_ref()?;
    Some(FailedStep {
        step: data.get("step")?.as_str()?.to_owned(),
        errno: i32::try_from(data.get("errno")?.as_i64()?).ok()?,
    })
}

fn cause(concern: Concern, message: impl Into<String>, fix: impl Into<String>) -> Cause {
    Cause {
        concern,
        message: message.into(),
        fix: fix.into(),
    }
}

fn guest(facts: &HostFacts, failed: &FailedStep, found: &mut Vec<Cause>) {
    let mut add = |message: String, fix: String| found.push(cause(Concern::Guest, message, fix));
    let denied = matches!(failed.errno, libc::EPERM | libc::EACCES);
    match failed.step.as_str() {
        "unshare" | "uid_map" | "gid_map" | "setgroups" => {
            let zero = |name: &str| facts.sysctl(name) == SettingValue::Zero;
            for name in ["user", "mnt", "pid"] {
                if zero(format!("user/max_{name}_namespaces").as_str()) {
                    add(
                        format!(
                            "user.max_{name}_namespaces is 0: no {name} namespace can be created."
                        ),
                        format!(
                            "Run `sysctl -w user.max_{name}_namespaces=15000` and add the setting to /etc/sysctl.d/."
                        ),
                    );
                }
            }
            if denied && zero("kernel/unprivileged_userns_clone") {
                add(
                    "kernel.unprivileged_userns_clone is 0: only root may create user namespaces."
                        .to_owned(),
                    "Run `sysctl -w kernel.unprivileged_userns_clone=1` and add the setting to /etc/sysctl.d/."
                        .to_owned(),
                );
            }
            let restricted = "kernel/apparmor_restrict_unprivileged_userns";
            if denied && facts.sysctl(restricted) == SettingValue::Positive {
                add(
                    "AppArmor denies capabilities in user namespaces to programs without a profile (kernel.apparmor_restrict_unprivileged_userns).".to_owned(),
                    format!("Load the AppArmor profile {APPARMOR_PROFILE} of the source code, in the Debian package /usr/share/apparmor/extra-profiles/wp-codebox-launch: it grants user namespaces to the launcher alone."),
                );
            }
            if denied {
                filtered(facts, "create namespaces", "RestrictNamespaces=", &mut add);
            }
            if !facts.kernel_at_least(MINIMUM_KERNEL) {
                old_kernel(facts, &mut add);
            }
        }
        "proc" if denied => covered_proc(facts, &mut add),
        "overlay" if !facts.kernel_at_least(MINIMUM_KERNEL) => old_kernel(facts, &mut add),
        "propagation" | "root_mount" | "scratch" | "bind" | "overlay" | "dev" | "pivot_root"
            if denied && facts.surroundings == Surroundings::Container =>
        {
            filtered(facts, "mount", "SystemCallFilter=", &mut add);
        }
        _ => {}
    }
    if denied && facts.surroundings == Surroundings::Container {
        container(facts, failed, &mut add);
    }
    if found.is_empty() {
        for hint in hints(&failed.step, failed.errno) {
            found.push(cause(
                Concern::Guest,
                format!("Step {} failed.", failed.step),
                *hint,
            ));
        }
    }
}

/// Adds the container options that a later step of building the guest needs: the guest stopped at
/// the first one, and the operator should not have to start the container once for each option.
fn container(facts: &HostFacts, failed: &FailedStep, add: &mut impl FnMut(String, String)) {
    if failed.step != "proc" && !facts.covered_proc.is_empty() {
        covered_proc(facts, add);
    }
    let profile = facts.apparmor.split(' ').next().unwrap_or_default();
    if !matches!(profile, "" | "unconfined") {
        add(
            format!("The AppArmor profile {profile} confines the container and may deny mounts."),
            "Start the container with the security option apparmor=unconfined, or with a profile that has `userns,` and `mount,`.".to_owned(),
        );
    }
}

fn covered_proc(facts: &HostFacts, add: &mut impl FnMut(String, String)) {
    let covered = facts.covered_proc.join(", ");
    let message = format!(
        "Other mounts cover parts of /proc ({covered}), so the kernel refuses a new /proc."
    );
    let fix = match facts.surroundings {
        Surroundings::Container => {
            "Start the container with the security option systempaths=unconfined (Podman: unmask=ALL)."
        }
        Surroundings::Service => {
            "Remove ProtectKernelTunables=, ProtectKernelLogs=, ProtectProc= and ProcSubset= from the service, or run guests outside of it."
        }
        Surroundings::Plain => {
            "Unmount what covers parts of /proc; in a container use systempaths=unconfined, in a systemd service remove ProtectKernelTunables=."
        }
    };
    add(message, fix.to_owned());
}

fn old_kernel(facts: &HostFacts, add: &mut impl FnMut(String, String)) {
    let (major, minor) = MINIMUM_KERNEL;
    add(
        format!("Linux {} is older than {major}.{minor}.", facts.kernel),
        format!(
            "Use Linux {major}.{minor} or newer: Debian 12 or newer has it, Ubuntu 22.04 with `apt-get install linux-generic-hwe-22.04`."
        ),
    );
}

/// Adds the cause "a seccomp filter was active before the launcher started", if one was.
fn filtered(facts: &HostFacts, does: &str, directive: &str, add: &mut impl FnMut(String, String)) {
    if facts.seccomp != "2" {
        return;
    }
    let message = format!("An inherited seccomp filter may deny the system calls that {does}.");
    let container =
        format!("use the security option seccomp=FILE with {CONTAINER_PROFILE} of the source code");
    let service = format!("remove {directive} from the unit");
    let fix = match facts.surroundings {
        Surroundings::Container => format!("For the container {container}."),
        Surroundings::Service => format!("In the systemd service {service}."),
        Surroundings::Plain => {
            format!("In a container {container}; in a systemd service {service}.")
        }
    };
    add(message, fix);
}

/// Returns the causes for every axis of the report that is weaker than the run requested.
#[must_use]
pub fn weaknesses(facts: &HostFacts, report: &IsolationReport) -> Vec<Cause> {
    let mut found = Vec::new();
    for row in &report.axes {
        if row.enforced >= row.requested {
            continue;
        }
        let mut add = |message: String, fix: String| {
            found.push(cause(Concern::Axis(row.axis), message, fix));
        };
        match row.axis {
            IsolationAxis::Files if report.landlock_abi == 0 => landlock(facts, &mut add),
            IsolationAxis::Syscalls => {
                filtered(
                    facts,
                    "install seccomp filters",
                    "RestrictRealtime= and similar directives",
                    &mut add,
                );
                add(
                    "No seccomp filter could be installed, or system calls under the filter did not give the expected results.".to_owned(),
                    "The kernel must be built with CONFIG_SECCOMP_FILTER; a filter installed earlier must permit seccomp(2).".to_owned(),
                );
            }
            IsolationAxis::Network | IsolationAxis::Processes => {
                for name in ["net", "ipc", "uts", "cgroup"] {
                    let setting = format!("user/max_{name}_namespaces");
                    let belongs = (name == "net") == (row.axis == IsolationAxis::Network);
                    if belongs && facts.sysctl(&setting) == SettingValue::Zero {
                        add(
                            format!(
                                "user.max_{name}_namespaces is 0: no {name} namespace can be created."
                            ),
                            format!(
                                "Run `sysctl -w user.max_{name}_namespaces=15000` and add the setting to /etc/sysctl.d/."
                            ),
                        );
                    }
                }
            }
            IsolationAxis::Memory if row.enforced == Enforcement::BestEffort => {
                memory(facts, &mut add);
            }
            IsolationAxis::Disk if !facts.kernel_at_least(TMPFS_USER_XATTRS) => {
                let (major, minor) = TMPFS_USER_XATTRS;
                add(
                    format!(
                        "A tmpfs of Linux {} cannot hold the files of a sandbox, and nothing limits their size on disk; the runner polls it.",
                        facts.kernel
                    ),
                    format!(
                        "Start runs as root or through wp-codebox.socket, with the package e2fsprogs and a loop device, or use Linux {major}.{minor} or newer (Debian 12: `apt-get install -t bookworm-backports linux-image-amd64`)."
                    ),
                );
            }
            IsolationAxis::Files
            | IsolationAxis::Privileges
            | IsolationAxis::Memory
            | IsolationAxis::Cpu
            | IsolationAxis::Pids
            | IsolationAxis::Disk
            | IsolationAxis::Identity => {}
        }
    }
    found
}

fn landlock(facts: &HostFacts, mut add: &mut impl FnMut(String, String)) {
    if !facts.kernel_at_least(MINIMUM_KERNEL) {
        return old_kernel(facts, &mut add);
    }
    if !facts.lsm.is_empty() && !facts.lsm.iter().any(|name| name == "landlock") {
        return add(
            format!(
                "Landlock is off: the active security modules are {}.",
                facts.lsm.join(",")
            ),
            "Add `landlock` to the lsm= kernel parameter and reboot.".to_owned(),
        );
    }
    filtered(facts, "set up Landlock", "SystemCallFilter=", add);
    add(
        "Landlock is not available to the launcher.".to_owned(),
        "The kernel must be built with CONFIG_SECURITY_LANDLOCK and have `landlock` among lsm=."
            .to_owned(),
    );
}

fn memory(facts: &HostFacts, add: &mut impl FnMut(String, String)) {
    let fix = "With systemd, start the command as root, in a login session of its user, or through wp-codebox.socket: a run then asks for a control group of its own. Elsewhere delegate a control group with the memory and pids controllers to the user that runs guests.";
    let relevant = |name: &str| name == "v2" || name.split(',').any(|part| part == "memory");
    let state = facts
        .cgroups
        .iter()
        .filter(|group| relevant(&group.name))
        .map(|group| match group.state {
            CgroupState::Writable => format!("{} writable", group.name),
            CgroupState::ReadOnly => format!("{} mounted read-only", group.name),
            CgroupState::NotDelegated => format!("{} not delegated to this user", group.name),
        })
        .collect::<Vec<_>>();
    let state = if state.is_empty() {
        "none mounted".to_owned()
    } else {
        state.join(", ")
    };
    add(
        format!(
            "The kernel does not limit the memory of all processes together; the runner only polls it (control groups: {state})."
        ),
        fix.to_owned(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::self_test::LauncherIdentity;
    use wp_codebox_contracts::{
        AxisReport, ErrorBody, ErrorCode, IsolationLevel, OuterSandboxKind, schema_id,
    };

    fn test(facts: HostFacts, rows: &[(IsolationAxis, Enforcement)], abi: u32) -> SelfTest {
        let axes = rows
            .iter()
            .map(|&(axis, enforced)| AxisReport {
                axis,
                requested: IsolationLevel::Full.requested(axis),
                enforced,
                by: String::new(),
                evidence: String::new(),
            })
            .collect();
        SelfTest {
            schema: schema_id::SELF_TEST.to_owned(),
            launcher: LauncherIdentity::default(),
            outer: OuterSandboxKind::None,
            trials: vec![Trial {
                level: IsolationLevel::Full,
                report: IsolationReport {
                    schema: schema_id::ISOLATION_REPORT.to_owned(),
                    level: IsolationLevel::None,
                    kernel: facts.kernel.clone(),
                    landlock_abi: abi,
                    axes,
                },
                failure: None,
            }],
            facts,
        }
    }

    fn unbuilt(facts: HostFacts, step: &str, errno: i32) -> SelfTest {
        let mut test = test(facts, &[], 0);
        let body = ErrorBody::new(ErrorCode::IsolationUnavailable, "x");
        test.trials[0].failure = Some(body.with("step", step).with("errno", errno));
        test
    }

    fn facts(settings: &[(&str, &str)]) -> HostFacts {
        HostFacts {
            kernel: "6.18.0".to_owned(),
            sysctls: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            ..HostFacts::default()
        }
    }

    fn fixes(test: &SelfTest) -> String {
        causes(test)
            .into_iter()
            .map(|cause| format!("{} → {}\n", cause.message, cause.fix))
            .collect()
    }

    #[test]
    fn each_setting_that_forbids_user_namespaces_gets_its_own_fix() {
        let apparmor = "kernel/apparmor_restrict_unprivileged_userns";
        let cases = [
            (
                "user/max_user_namespaces",
                "0",
                libc::ENOSPC,
                "max_user_namespaces=15000",
            ),
            (
                "kernel/unprivileged_userns_clone",
                "0",
                libc::EPERM,
                "unprivileged_userns_clone=1",
            ),
            (apparmor, "1", libc::EACCES, APPARMOR_PROFILE),
        ];
        for (name, value, errno, fix) in cases {
            let one = fixes(&unbuilt(facts(&[(name, value)]), "unshare", errno));
            assert!(one.contains(fix) && one.lines().count() == 1, "{one}");
            // On a host without that setting, the same failure has a different cause.
            let other = fixes(&unbuilt(facts(&[]), "unshare", errno));
            assert_ne!(one, other);
            // On a host that can build guests, the same setting is not a cause.
            assert_eq!(fixes(&test(facts(&[(name, value)]), &[], 7)), "");
        }
    }

    #[test]
    fn suggested_fix_differs_between_a_container_and_a_systemd_service() {
        for (surroundings, filter, proc) in [
            (
                Surroundings::Container,
                CONTAINER_PROFILE,
                "systempaths=unconfined",
            ),
            (
                Surroundings::Service,
                "RestrictNamespaces=",
                "ProtectKernelTunables=",
            ),
        ] {
            let facts = HostFacts {
                seccomp: "2".to_owned(),
                covered_proc: vec!["/proc/kcore".to_owned()],
                surroundings,
                ..facts(&[])
            };
            let denied = fixes(&unbuilt(facts.clone(), "unshare", libc::EPERM));
            assert!(denied.contains(filter), "{denied}");
            let covered = fixes(&unbuilt(facts, "proc", libc::EPERM));
            assert!(
                covered.contains(proc) && covered.contains("/proc/kcore"),
                "{covered}"
            );
        }
    }

    #[test]
    fn all_missing_options_of_a_container_are_named_at_once() {
        let options = [
            "seccomp=FILE",
            "systempaths=unconfined",
            "apparmor=unconfined",
        ];
        let confined = HostFacts {
            seccomp: "2".to_owned(),
            apparmor: "docker-default (enforce)".to_owned(),
            covered_proc: vec!["/proc/kcore".to_owned()],
            surroundings: Surroundings::Container,
            ..facts(&[])
        };
        let named = |facts: &HostFacts, step: &str| {
            let text = fixes(&unbuilt(facts.clone(), step, libc::EPERM));
            options.map(|option| text.matches(option).count())
        };
        assert_eq!(named(&confined, "unshare"), [1, 1, 1]);
        assert_eq!(named(&confined, "propagation"), [1, 1, 1]);
        // The guest reached `/proc`, so the filter allowed the calls before it.
        assert_eq!(named(&confined, "proc"), [0, 1, 1]);
        let set = HostFacts {
            apparmor: "unconfined".to_owned(),
            covered_proc: Vec::new(),
            ..confined.clone()
        };
        assert_eq!(named(&set, "unshare"), [1, 0, 0]);
        // A failure that the kernel did not refuse says nothing about the options.
        let plan = fixes(&unbuilt(confined.clone(), "plan", 0));
        assert!(
            !options.iter().any(|option| plan.contains(option)),
            "{plan}"
        );
        // Outside of a container, only the step that failed is reported.
        let plain = HostFacts {
            surroundings: Surroundings::Plain,
            ..confined
        };
        assert_eq!(named(&plain, "unshare"), [1, 0, 0]);
    }

    #[test]
    fn fix_for_an_old_kernel_or_missing_landlock_names_the_required_version_or_lsm_option() {
        let old = HostFacts {
            kernel: "5.15.0".to_owned(),
            ..facts(&[])
        };
        let files = [(IsolationAxis::Files, Enforcement::BestEffort)];
        assert!(fixes(&unbuilt(old.clone(), "overlay", libc::EINVAL)).contains("6.1"));
        assert!(fixes(&test(old, &files, 0)).contains("older than 6.1"));
        let off = HostFacts {
            lsm: vec!["capability".to_owned(), "apparmor".to_owned()],
            ..facts(&[])
        };
        assert!(fixes(&test(off.clone(), &files, 0)).contains("lsm="));
        assert_eq!(fixes(&test(off, &files, 7)), "", "Landlock works: no cause");
    }

    #[test]
    fn cause_of_a_best_effort_memory_limit_names_the_state_of_the_cgroup_hierarchies() {
        let rows = [(IsolationAxis::Memory, Enforcement::BestEffort)];
        let mut facts = facts(&[]);
        assert!(fixes(&test(facts.clone(), &rows, 7)).contains("none mounted"));
        facts.cgroups.push(crate::host_facts::CgroupHierarchy {
            name: "memory".to_owned(),
            state: CgroupState::ReadOnly,
        });
        assert!(fixes(&test(facts, &rows, 7)).contains("memory mounted read-only"));
    }

    #[test]
    fn self_test_failure_without_a_launch_step_suggests_no_fix() {
        let rows = [(IsolationAxis::Files, Enforcement::NotEnforced)];
        let mut missing = test(facts(&[]), &rows, 0);
        assert_ne!(fixes(&missing), "");
        missing.trials[0].failure = Some(ErrorBody::new(ErrorCode::ConfigInvalid, "x"));
        assert_eq!(fixes(&missing), "");
    }

    #[test]
    fn failed_scratch_step_without_a_known_host_cause_gives_the_disk_limit_hint() {
        let one = fixes(&unbuilt(facts(&[]), "scratch", libc::ENOMEM));
        assert!(one.contains("disk_bytes"), "{one}");
    }
}
