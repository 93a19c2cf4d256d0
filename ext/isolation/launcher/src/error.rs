//! Errors of the launcher: one [`Step`] per step of building a guest.
//!
//! A failure names its step, a subject (a guest path, mechanism or input, never a host path) and
//! the errno. In the guest of a run, every failure ends the launcher; a self-test continues after
//! some failures (see `shortfall`). No step is retried with weaker isolation.

use rustix::io::Errno;
use wp_codebox_contracts::GuestReply;

/// Exit status of the launcher when the guest could not be built.
pub(crate) const NOT_STARTED: u8 = 125;

macro_rules! steps {
    ($($(#[$doc:meta])* $variant:ident = $step:literal;)+) => {
        /// The steps of building a guest, roughly in the order in which they run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Step { $($(#[$doc])* $variant,)+ }
        impl Step {
            /// Returns the step's name in messages to the supervisor, which stays the same across
            /// releases.
            pub(crate) const fn name(self) -> &'static str { match self { $(Step::$variant => $step,)+ } }
            /// Every step, in the order of the variants.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Step] = &[$(Step::$variant,)+];
        }
    };
}

steps! {
    /// No guest id is free, or the lock file of the guest ids is unusable.
    GuestIds = "guest_ids";
    /// A host directory could not be mounted for guests that have their own kernel uid.
    View = "view";
    /// The process could not drop root permanently.
    GiveUpRoot = "give_up_root";
    /// The launcher was started as root; a guest is never mapped to host uid 0.
    Root = "root";
    /// One of the three inherited file descriptors is missing, the descriptors above them could not
    /// be closed, or the spawner could not open its own program.
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
    /// Pid 1 could not be forked.
    Fork = "fork";
    /// The parent-death signal, the session or the subreaper flag could not be set, or the parent
    /// is already dead.
    ParentDeath = "parent_death";
    /// The hostname could not be set.
    Hostname = "hostname";
    /// Mounts could not be made private.
    Propagation = "propagation";
    /// The root file system could not be mounted.
    RootMount = "root_mount";
    /// The scratch file system could not be mounted.
    Scratch = "scratch";
    /// A mount point could not be created.
    Target = "target";
    /// A directory, file or symbolic link of the guest's root could not be created.
    Entry = "entry";
    /// A bind mount failed.
    Bind = "bind";
    /// An overlay mount failed.
    Overlay = "overlay";
    /// `/proc` could not be mounted.
    Proc = "proc";
    /// `/dev` could not be built.
    Dev = "dev";
    /// The listening sockets for the egress bridge or for mail could not be created.
    Egress = "egress";
    /// `pivot_root`, or a mount operation around it, failed.
    PivotRoot = "pivot_root";
    /// The loopback interface could not be brought up.
    Loopback = "loopback";
    /// A resource limit could not be set.
    Limits = "limits";
    /// Capabilities or securebits could not be dropped.
    Capabilities = "capabilities";
    /// `no_new_privs` could not be set.
    NoNewPrivs = "no_new_privs";
    /// The dumpable flag could not be cleared.
    Dumpable = "dumpable";
    /// The Landlock rules could not be enforced.
    Landlock = "landlock";
    /// A seccomp filter could not be installed.
    Seccomp = "seccomp";
    /// A probe observed a state that the isolation level forbids.
    Probe = "probe";
    /// The channel to the supervisor broke, or a file descriptor could not be sent.
    Channel = "channel";
}

/// A failed step of building a guest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the guest could not be built: step {} failed at {subject}{}", step.name(), cause(*errno))]
pub(crate) struct Failure {
    pub(crate) step: Step,
    /// Object that the step failed at: a noun phrase that completes "step plan failed at …". If
    /// `errno` is 0, the phrase also says what is wrong with it.
    pub(crate) subject: String,
    /// Errno of the failed system call; 0 if no system call failed.
    pub(crate) errno: i32,
}

/// Returns the text of an errno for an error message; empty when the errno is 0.
fn cause(errno: i32) -> String {
    match errno {
        0 => String::new(),
        errno => format!(": {}", std::io::Error::from_raw_os_error(errno)),
    }
}

impl Failure {
    /// Creates a failure without errno, for input or state that breaks a rule. `subject` is a noun
    /// phrase for the input or state that also says what is wrong with it.
    pub(crate) fn rule(step: Step, subject: impl Into<String>) -> Self {
        Self {
            step,
            subject: subject.into(),
            errno: 0,
        }
    }

    /// Returns the message that tells the supervisor about this failure.
    pub(crate) fn reply(&self) -> GuestReply {
        GuestReply::Failed {
            step: self.step.name().to_owned(),
            subject: self.subject.clone(),
            errno: self.errno,
        }
    }
}

/// Adds step and subject to the error of a system call.
pub(crate) trait At<T> {
    /// Returns the same result with `step` and `subject` added to the error.
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
    fn launch_step_names_are_unique() {
        let names: BTreeSet<_> = Step::ALL.iter().map(|step| step.name()).collect();
        assert_eq!(names.len(), Step::ALL.len());
    }
}
