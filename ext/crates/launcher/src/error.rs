//! One variant per step of building a guest.
//!
//! A failure names its step, a subject that is a guest path or a mechanism (never a
//! host path) and the errno. Every one of them ends the launcher: nothing is retried
//! with less.

use rustix::io::Errno;
use wp_codebox_contracts::GuestReply;

/// Exit status of a sandbox that could not start.
pub(crate) const NOT_STARTED: u8 = 125;

macro_rules! steps {
    ($($(#[$doc:meta])* $variant:ident = $step:literal;)+) => {
        /// The steps, in the order in which they run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Step { $($(#[$doc])* $variant,)+ }
        impl Step {
            /// The stable name.
            pub(crate) const fn name(self) -> &'static str { match self { $(Step::$variant => $step,)+ } }
            /// Every step.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Step] = &[$(Step::$variant,)+];
        }
    };
}

steps! {
    /// No guest id is free, or their locks cannot be kept.
    GuestIds = "guest_ids";
    /// A view of a host directory for guests with a kernel uid of their own.
    View = "view";
    /// Root could not be given up for good.
    GiveUpRoot = "give_up_root";
    /// Started as root: a guest is never mapped to host uid 0.
    Root = "root";
    /// Descriptors beyond the three given could not be closed.
    Descriptors = "descriptors";
    /// The plan is unreadable or breaks a rule.
    Plan = "plan";
    /// A namespace could not be created.
    Unshare = "unshare";
    /// `setgroups` could not be denied.
    SetGroups = "setgroups";
    /// The uid map could not be written.
    UidMap = "uid_map";
    /// The gid map could not be written.
    GidMap = "gid_map";
    /// Pid 1 could not be made.
    Fork = "fork";
    /// The parent-death signal could not be set, or the parent is already dead.
    ParentDeath = "parent_death";
    /// The UTS name.
    Hostname = "hostname";
    /// Mounts could not be made private.
    Propagation = "propagation";
    /// The root file system.
    RootMount = "root_mount";
    /// The scratch file system.
    Scratch = "scratch";
    /// A mount point could not be made.
    Target = "target";
    /// A directory, file or link of the root.
    Entry = "entry";
    /// A bind mount.
    Bind = "bind";
    /// An overlay.
    Overlay = "overlay";
    /// `/proc`.
    Proc = "proc";
    /// `/dev`.
    Dev = "dev";
    /// The listening sockets for the egress bridge and for mail.
    Egress = "egress";
    /// `pivot_root` and what belongs to it.
    PivotRoot = "pivot_root";
    /// The loopback interface.
    Loopback = "loopback";
    /// A resource limit.
    Limits = "limits";
    /// Capabilities or securebits.
    Capabilities = "capabilities";
    /// `no_new_privs`.
    NoNewPrivs = "no_new_privs";
    /// The dumpable flag.
    Dumpable = "dumpable";
    /// Landlock.
    Landlock = "landlock";
    /// A seccomp filter.
    Seccomp = "seccomp";
    /// A probe saw something that must not be.
    Probe = "probe";
    /// The channel broke or a descriptor could not be sent.
    Channel = "channel";
}

/// A failed step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} failed at {subject} (errno {errno})", step.name())]
pub(crate) struct Failure {
    pub(crate) step: Step,
    pub(crate) subject: String,
    pub(crate) errno: i32,
}

impl Failure {
    /// A failure without errno: a rule was broken.
    pub(crate) fn rule(step: Step, subject: impl Into<String>) -> Self {
        Self {
            step,
            subject: subject.into(),
            errno: 0,
        }
    }

    /// As the runner hears it.
    pub(crate) fn reply(&self) -> GuestReply {
        GuestReply::Failed {
            step: self.step.name().to_owned(),
            subject: self.subject.clone(),
            errno: self.errno,
        }
    }
}

/// Attaches step and subject to a system call's error.
pub(crate) trait At<T> {
    /// The same result with its place.
    fn at(self, step: Step, subject: &str) -> Result<T, Failure>;
}

impl<T> At<T> for Result<T, Errno> {
    fn at(self, step: Step, subject: &str) -> Result<T, Failure> {
        self.map_err(|errno| Failure {
            step,
            subject: subject.to_owned(),
            errno: errno.raw_os_error(),
        })
    }
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, step: Step, subject: &str) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            step,
            subject: subject.to_owned(),
            errno: error.raw_os_error().unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn step_names_are_unique() {
        let names: BTreeSet<_> = Step::ALL.iter().map(|step| step.name()).collect();
        assert_eq!(names.len(), Step::ALL.len());
    }
}
