//! Shortfalls: isolation mechanisms that the launcher could not enable on this host.
//!
//! In the guest of a run any such failure ends the launch. In a self-test it is recorded, and the
//! launcher continues where a guest can still be built; the self-test's report lists the missing
//! mechanisms per isolation axis. No step is retried with weaker isolation.

use crate::error::{Failure, Step};
use rustix::io::Errno;
use wp_codebox_contracts::{IsolationAxis, LaunchPurpose};

/// The failed steps recorded so far, and whether the guest belongs to a run or a self-test.
pub(crate) struct Shortfalls {
    purpose: LaunchPurpose,
    noted: Vec<Failure>,
}

impl Shortfalls {
    pub(crate) fn new(purpose: LaunchPurpose) -> Self {
        Self {
            purpose,
            noted: Vec::new(),
        }
    }

    /// Returns whether the guest belongs to a run or a self-test.
    pub(crate) fn purpose(&self) -> LaunchPurpose {
        self.purpose
    }

    /// Unwraps the result of a step. A failure in the guest of a run is returned as error; in a
    /// self-test it is recorded, and `None` is returned.
    pub(crate) fn tolerate<T>(&mut self, result: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match (self.purpose, result) {
            (_, Ok(value)) => Ok(Some(value)),
            (LaunchPurpose::Serve, Err(failure)) => Err(failure),
            (LaunchPurpose::Probe, Err(failure)) => {
                self.noted.push(failure);
                Ok(None)
            }
        }
    }

    /// Returns whether a failure of this step was recorded.
    pub(crate) fn has(&self, step: Step) -> bool {
        self.noted.iter().any(|failure| failure.step == step)
    }

    /// Returns whether no failure was recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.noted.is_empty()
    }

    /// Returns the recorded failures that weaken an isolation axis, each as one clause for the
    /// report.
    pub(crate) fn on(&self, axis: IsolationAxis) -> Vec<String> {
        self.noted
            .iter()
            .filter(|failure| axis_of(failure) == axis)
            .map(sentence)
            .collect()
    }
}

/// Describes a failed step for the isolation report: step, subject and the kernel's error.
pub(crate) fn sentence(failure: &Failure) -> String {
    let Failure {
        step,
        subject,
        errno,
    } = failure;
    let step = step.name();
    if *errno == 0 {
        format!("{step} failed at {subject}")
    } else {
        let text = Errno::from_raw_os_error(*errno);
        format!("{step} failed at {subject}: {text}")
    }
}

/// Returns the isolation axis that a failed step weakens.
fn axis_of(failure: &Failure) -> IsolationAxis {
    match failure.step {
        Step::Unshare if failure.subject == "network namespace" => IsolationAxis::Network,
        Step::Unshare | Step::Hostname | Step::Fork | Step::ParentDeath | Step::Dumpable => {
            IsolationAxis::Processes
        }
        Step::Loopback | Step::Egress => IsolationAxis::Network,
        Step::Limits => match failure.subject.as_str() {
            "processes" | "queued signals" | "inotify" => IsolationAxis::Pids,
            "data" | "locked memory" => IsolationAxis::Memory,
            "file size" => IsolationAxis::Disk,
            _ => IsolationAxis::Privileges,
        },
        Step::Seccomp => IsolationAxis::Syscalls,
        Step::Landlock
        | Step::Propagation
        | Step::RootMount
        | Step::Scratch
        | Step::Target
        | Step::Entry
        | Step::Bind
        | Step::Overlay
        | Step::Proc
        | Step::Dev
        | Step::PivotRoot => IsolationAxis::Files,
        Step::Root
        | Step::GuestIds
        | Step::View
        | Step::GiveUpRoot
        | Step::Descriptors
        | Step::Plan
        | Step::SetGroups
        | Step::UidMap
        | Step::GidMap
        | Step::Capabilities
        | Step::NoNewPrivs
        | Step::Probe
        | Step::Channel => IsolationAxis::Privileges,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(step: Step, subject: &str) -> Result<(), Failure> {
        Err(Failure {
            step,
            subject: subject.to_owned(),
            errno: libc::EPERM,
        })
    }

    #[test]
    fn failed_launch_step_ends_the_guest_of_a_run_and_is_only_recorded_in_a_self_test() {
        let mut serving = Shortfalls::new(LaunchPurpose::Serve);
        assert!(serving.tolerate(failed(Step::Landlock, "x")).is_err());
        assert_eq!(serving.tolerate(Ok(7)), Ok(Some(7)));
        assert!(serving.is_empty());

        let mut probing = Shortfalls::new(LaunchPurpose::Probe);
        assert_eq!(probing.tolerate(failed(Step::Landlock, "abi")), Ok(None));
        assert!(probing.has(Step::Landlock) && !probing.has(Step::Seccomp));
        assert_eq!(
            probing.on(IsolationAxis::Files),
            ["landlock failed at abi: Operation not permitted (os error 1)"]
        );
        assert!(probing.on(IsolationAxis::Syscalls).is_empty());
    }

    #[test]
    fn missing_namespace_is_listed_for_the_isolation_axis_that_it_protects() {
        let mut probing = Shortfalls::new(LaunchPurpose::Probe);
        for name in ["network namespace", "ipc namespace"] {
            probing.tolerate(failed(Step::Unshare, name)).unwrap();
        }
        assert_eq!(probing.on(IsolationAxis::Network).len(), 1);
        assert_eq!(probing.on(IsolationAxis::Processes).len(), 1);
    }
}
