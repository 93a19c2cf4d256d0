//! Errors of starting a guest, with likely causes and fixes for the operator.
//!
//! The launcher reports the failed step, its subject (a guest path or a mechanism) and an errno.
//! Cause and fix are derived from these three values only.

use std::path::PathBuf;
use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, IsolationLevel, IsolationReport, OuterSandboxKind,
};

/// Reason why a guest did not start.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// This user cannot execute the launcher.
    #[error(
        "launcher {path:?} cannot be started: {source}; set wp_codebox.launcher or --launcher to the installed wp-codebox-launch, readable and executable for this user"
    )]
    Launcher {
        /// Path of the launcher.
        path: PathBuf,
        /// Error of starting the launcher.
        source: std::io::Error,
    },
    /// A system call of the supervisor failed while it prepared the guest.
    #[error("the runner could not prepare the sandbox: its step `{step}` failed: {source}")]
    Host {
        /// What the supervisor did when the system call failed, in one word, for example `pipe` or
        /// `cgroup`.
        step: &'static str,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// The launcher reported that a step of building the guest failed.
    #[error("the launcher could not build the sandbox: step {step} failed at {subject} ({})", errno_text(*.errno))]
    Step {
        /// Name of the step.
        step: String,
        /// Guest path or kernel mechanism that the step worked on.
        subject: String,
        /// Errno of the failed step; 0 when none applies.
        errno: i32,
    },
    /// The guest was not ready before the deadline.
    #[error("the sandbox was not ready after {seconds} s; the host may be overloaded, try again")]
    Timeout {
        /// Length of the deadline in seconds.
        seconds: u64,
    },
    /// The launcher ended without reporting a result.
    #[error(
        "the launcher ended before the sandbox was ready ({status}); it was killed, or it is not from the same build as the runner: install both from one build"
    )]
    Died {
        /// Exit status of the launcher.
        status: String,
    },
    /// The process wrapper around the launcher ended before the launcher reported anything.
    #[error(
        "the outer sandbox around the launcher ended before the launcher reported anything ({why}), so the run was refused"
    )]
    Wrapper {
        /// Kind of wrapper.
        kind: OuterSandboxKind,
        /// How the wrapper ended, for the error message.
        why: String,
    },
    /// A launcher's message breaks the protocol, or the plan for the launcher has no JSON form.
    #[error(
        "the messages between runner and launcher violate their protocol ({detail}); install both from the same build"
    )]
    Protocol {
        /// What is wrong with the message.
        detail: &'static str,
    },
    /// The guest was built, but its probes observed weaker isolation than the run requires.
    #[error(
        "the sandbox started, but its isolation level is `{}`, below the required `{}`; the run was refused",
        .report.level.as_str(), .wanted.as_str()
    )]
    Level {
        /// Isolation level that the run requires.
        wanted: IsolationLevel,
        /// Isolation report of the guest's probes.
        report: Box<IsolationReport>,
    },
}

fn errno_text(errno: i32) -> String {
    if errno == 0 {
        "refused".to_owned()
    } else {
        std::io::Error::from_raw_os_error(errno).to_string()
    }
}

impl LaunchError {
    /// Returns whether this error shows that the host forbids mechanisms that only level `full`
    /// needs: namespaces and mounts. Returns false if the guest was built and a probe failed.
    #[must_use]
    pub fn forbids_full(&self) -> bool {
        match self {
            Self::Step { step, .. } => matches!(
                step.as_str(),
                "unshare"
                    | "setgroups"
                    | "uid_map"
                    | "gid_map"
                    | "propagation"
                    | "root_mount"
                    | "scratch"
                    | "bind"
                    | "overlay"
                    | "proc"
                    | "dev"
                    | "pivot_root"
                    | "loopback"
            ),
            Self::Launcher { .. }
            | Self::Host { .. }
            | Self::Timeout { .. }
            | Self::Died { .. }
            | Self::Wrapper { .. }
            | Self::Protocol { .. }
            | Self::Level { .. } => false,
        }
    }

    /// Converts the error of a launcher that ran inside a process wrapper. If the launcher sent no
    /// message, the result is [`LaunchError::Wrapper`], because the wrapper may have failed before
    /// it started the launcher. Any other error stays the same.
    #[must_use]
    pub(crate) fn wrapped_in(self, kind: OuterSandboxKind) -> Self {
        let why = match (&self, kind) {
            (_, OuterSandboxKind::None) => return self,
            (Self::Died { status }, _) => status.clone(),
            (Self::Launcher { source, .. }, _) => source.to_string(),
            (
                Self::Host { .. }
                | Self::Step { .. }
                | Self::Timeout { .. }
                | Self::Wrapper { .. }
                | Self::Protocol { .. }
                | Self::Level { .. },
                _,
            ) => return self,
        };
        Self::Wrapper { kind, why }
    }
}

impl CodedError for LaunchError {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Launcher { .. } => ErrorCode::ConfigInvalid,
            Self::Step { step, .. } if is_mechanism(step) => ErrorCode::IsolationUnavailable,
            Self::Step { step, errno, .. } if step == "channel" && *errno == libc::ETOOMANYREFS => {
                ErrorCode::Busy
            }
            Self::Host { .. }
            | Self::Step { .. }
            | Self::Timeout { .. }
            | Self::Died { .. }
            | Self::Wrapper { .. }
            | Self::Protocol { .. } => ErrorCode::SandboxStartFailed,
            Self::Level { .. } => ErrorCode::IsolationUnavailable,
        }
    }

    /// The hints are likely causes and fixes.
    fn body(&self) -> ErrorBody {
        let mut body = ErrorBody::new(self.code(), self.to_string());
        if let Self::Wrapper { kind, .. } = self {
            for hint in wrapper_hints(*kind) {
                body = body.hint(*hint);
            }
        }
        if let Self::Step {
            step,
            subject,
            errno,
        } = self
        {
            for hint in hints(step, *errno) {
                body = body.hint(*hint);
            }
            body = body
                .with("step", step.clone())
                .with("subject", subject.clone())
                .with("errno", *errno);
        }
        if let Self::Level { report, .. } = self {
            let rows = serde_json::to_value(&report.axes).unwrap_or_default();
            body = body.with("axes", rows);
        }
        body
    }
}

/// Returns whether a failed step shows that the host lacks or forbids a mechanism, as opposed to an
/// error in this run's input.
pub(crate) fn is_mechanism(step: &str) -> bool {
    matches!(
        step,
        "unshare"
            | "setgroups"
            | "uid_map"
            | "gid_map"
            | "proc"
            | "pivot_root"
            | "loopback"
            | "limits"
            | "capabilities"
            | "no_new_privs"
            | "dumpable"
            | "landlock"
            | "seccomp"
            | "probe"
    )
}

/// Returns likely causes and fixes for a process wrapper that ended early.
const fn wrapper_hints(kind: OuterSandboxKind) -> &'static [&'static str] {
    match kind {
        OuterSandboxKind::None => &[],
        OuterSandboxKind::Bubblewrap => &[
            "bubblewrap needs user namespaces, and the launcher must be able to create more inside bubblewrap: do not use --disable-userns.",
            "Run the same task without the outer sandbox: the launcher then reports the step that fails.",
        ],
        OuterSandboxKind::Gvisor => &[
            "gVisor (tested: 20221219) lacks Landlock, openat2 and the new mount system calls and does not pass descriptors to its program, so no guest reaches level `full` inside it.",
            "Use bubblewrap as the outer sandbox, or none; for another kernel, run the whole host in a virtual machine.",
        ],
    }
}

/// Returns likely causes and fixes for a failed step with this errno, the most likely first.
pub(crate) fn hints(step: &str, errno: i32) -> &'static [&'static str] {
    match (step, errno) {
        ("root", _) => &[
            "A guest is never mapped to root: start the run as an unprivileged user, or make one the owner of the state directory.",
        ],
        ("unshare", libc::ENOSPC) | ("unshare", libc::EUSERS) => {
            &["User namespaces are used up or disabled: raise sysctl user.max_user_namespaces."]
        }
        ("unshare" | "uid_map" | "gid_map" | "setgroups", libc::EPERM | libc::EACCES) => &[
            "User namespaces are forbidden here. Debian: sysctl kernel.unprivileged_userns_clone=1.",
            "Ubuntu 24.04 or newer: load the AppArmor profile packaging/apparmor/wp-codebox-launch, which grants `userns` to the launcher alone.",
            "In a container: use the security options seccomp=packaging/container/seccomp.json (of the source code), systempaths=unconfined and apparmor=unconfined.",
            "In a systemd service: remove RestrictNamespaces=.",
        ],
        ("unshare", libc::EINVAL | libc::ENOSYS) => &[
            "The kernel lacks a namespace type: Linux 6.6 or newer with user namespaces is needed.",
        ],
        ("proc", libc::EPERM) => &[
            "Other mounts cover parts of /proc on this host: in a container use systempaths=unconfined, in a systemd service remove ProtectKernelTunables= and ProtectProc=.",
        ],
        ("overlay", libc::EINVAL | libc::ENODEV | libc::EPERM | libc::EOPNOTSUPP) => &[
            "Overlay mounts in user namespaces need Linux 6.1 or newer with CONFIG_OVERLAY_FS.",
            "A source on a network or FUSE file system, or on two overlays already (a container in a container), cannot be the lower layer of another overlay, because overlays stack two deep at most: mount a copy.",
        ],
        ("bind", libc::EFBIG) => &[
            "Single files are copied into the guest's memory, at most 16 MiB each and 256 MiB together: mount their directory instead.",
        ],
        ("overlay", libc::EACCES | libc::ENOENT) | ("bind", libc::EACCES | libc::ENOENT) => {
            &["The source must exist and be readable for the user that owns the state directory."]
        }
        ("landlock", _) => &[
            "Level full needs Landlock ABI 2 (Linux 5.19), level reduced ABI 6 (Linux 6.12). Landlock must be enabled at boot: add `landlock` to the lsm= kernel parameter.",
        ],
        ("seccomp", _) => &["The kernel must be built with CONFIG_SECCOMP_FILTER."],
        ("scratch", libc::ENOMEM | libc::ENOSPC) => {
            &["The host lacks memory for the scratch file system: lower limits.disk_bytes."]
        }
        ("channel", libc::ETOOMANYREFS) => &[
            "Other processes of the state directory's owner hold many descriptors in flight over unix sockets: try again.",
            "If it happens again, raise the open files limit (RLIMIT_NOFILE, LimitNOFILE=) of the process that starts the run; `wp-codebox doctor` reports a limit that is too low.",
        ],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unshare_eperm_error_names_user_namespaces_and_the_fix() {
        let error = LaunchError::Step {
            step: "unshare".to_owned(),
            subject: "user namespace".to_owned(),
            errno: libc::EPERM,
        };
        let body = error.body();
        assert_eq!(body.code, ErrorCode::IsolationUnavailable);
        assert!(body.hints.iter().any(|h| h.contains("unprivileged_userns")));
        assert_eq!(body.data.unwrap()["errno"], libc::EPERM);
    }

    #[test]
    fn only_failed_namespace_or_mount_steps_rule_out_isolation_level_full() {
        let failed = |step: &str| LaunchError::Step {
            step: step.to_owned(),
            subject: "x".to_owned(),
            errno: libc::EPERM,
        };
        for step in ["unshare", "uid_map", "overlay", "proc"] {
            assert!(failed(step).forbids_full(), "{step}");
        }
        for step in ["probe", "landlock", "seccomp", "plan", "root", "limits"] {
            assert!(!failed(step).forbids_full(), "{step}");
        }
    }

    #[test]
    fn launch_failure_is_attributed_to_the_wrapper_only_if_the_launcher_sent_nothing() {
        let died = || LaunchError::Died {
            status: "exit status 125".to_owned(),
        };
        let same = died().wrapped_in(OuterSandboxKind::None);
        assert!(matches!(same, LaunchError::Died { .. }));
        for kind in [OuterSandboxKind::Bubblewrap, OuterSandboxKind::Gvisor] {
            let body = died().wrapped_in(kind).body();
            assert_eq!(body.code.exit_status(), 125);
            assert!(body.message.contains("exit status 125") && !body.hints.is_empty());
            let step = LaunchError::Step {
                step: "unshare".to_owned(),
                subject: "x".to_owned(),
                errno: libc::EPERM,
            };
            assert!(matches!(step.wrapped_in(kind), LaunchError::Step { .. }));
        }
    }

    #[test]
    fn failed_launch_step_without_known_cause_gives_no_hints() {
        let error = LaunchError::Step {
            step: "hostname".to_owned(),
            subject: "x".to_owned(),
            errno: 0,
        };
        assert!(error.body().hints.is_empty());
        assert!(error.to_string().contains("refused"));
    }
}
