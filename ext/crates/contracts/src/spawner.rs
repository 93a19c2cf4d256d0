//! The launcher's second role: a process that starts launchers under a kernel uid of their own.
//!
//! What the kernel counts per uid (epoll watches, inotify instances, descriptors in flight) is
//! shared by everything that runs as that uid. A spawner takes a free uid of the operator's range
//! while it is root, prepares idmapped mounts of what guests will see, gives root up, and then
//! serves one runner over a SEQPACKET channel: one JSON message per packet. Started by a user whom
//! the administrator gave subordinate ids, it takes one of those, and what guests will see is
//! copied into a file system of its own, or shown as it is. It is started as
//! `wp-codebox-launch spawner` with the descriptors of [`crate::LauncherFd`]; its plan is a
//! [`SpawnerPlan`].

use crate::words;
use serde::{Deserialize, Serialize};

/// The launcher's only argument in this role.
pub const SPAWNER_ROLE: &str = "spawner";

/// Maps subordinate user ids for a user; set-uid root, or with CAP_SETUID.
pub const NEWUIDMAP: &str = "/usr/bin/newuidmap";
/// Maps subordinate group ids.
pub const NEWGIDMAP: &str = "/usr/bin/newgidmap";

/// Name of the file system of a user's spawner, below [`SpawnerPlan::place`].
pub const STORE: &str = "store";

/// User and group ids of guests that the operator set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestIds {
    /// First id; each is used as uid and as gid.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl Default for GuestIds {
    /// A part of the range that no distribution assigns (systemd's UIDS-GIDS document).
    fn default() -> Self {
        Self {
            first: 1_900_000_000,
            count: 4096,
        }
    }
}

/// A range of ids that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "guest ids {given:?} must be FIRST:COUNT with FIRST at least 1000, COUNT from 1 to 65536, and no id above 2147483646"
)]
pub struct InvalidGuestIds {
    /// As given.
    pub given: String,
}

impl GuestIds {
    /// Reads `FIRST:COUNT`.
    pub fn parse(text: &str) -> Result<Self, InvalidGuestIds> {
        let invalid = || InvalidGuestIds {
            given: text.to_owned(),
        };
        let (first, count) = text.split_once(':').ok_or_else(invalid)?;
        let ids = Self {
            first: first.parse().map_err(|_| invalid())?,
            count: count.parse().map_err(|_| invalid())?,
        };
        if ids.is_valid() {
            Ok(ids)
        } else {
            Err(invalid())
        }
    }

    /// Whether every id can be one of a guest: no system user, and not above what a signed
    /// 32-bit number holds.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.first >= 1000
            && self.count >= 1
            && self.count <= 65_536
            && self.first.saturating_add(self.count) <= i32::MAX as u32
    }

    /// The ids that both ranges have.
    #[must_use]
    pub fn common(self, other: Self) -> Option<Self> {
        let first = self.first.max(other.first);
        let end = |ids: Self| ids.first.saturating_add(ids.count);
        let count = end(self).min(end(other)).checked_sub(first)?;
        (count > 0).then_some(Self { first, count })
    }

    /// Whether an id is one of them.
    #[must_use]
    pub const fn contains(self, id: u32) -> bool {
        id >= self.first && id - self.first < self.count
    }
}

words! {
    /// What guests run as.
    #[derive(Default)]
    pub enum IdentityChoice {
        /// A kernel uid of their own where this host can give one.
        #[default]
        Auto = "auto",
        /// A kernel uid of their own, or the run is refused.
        Own = "own",
        /// The kernel uid of the state directory's owner.
        Shared = "shared",
    }
}

/// A user and a group of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelIds {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// What becomes of changes through a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewAccess {
    /// Read only.
    Read,
    /// As the directory's owner: the state directory, in which templates are built.
    Write,
}

/// One host directory that launchers will open below [`SpawnerPlan::place`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnerView {
    /// Its name there.
    pub name: String,
    /// Owner on disk, who appears as the guest's user.
    pub owner: KernelIds,
    /// What may be changed through it.
    pub access: ViewAccess,
    /// Directories directly below it that are covered by an empty one.
    #[serde(default)]
    pub covered: Vec<String>,
}

/// Everything a spawner needs. One `Source` packet per view follows on the channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnerPlan {
    /// [`crate::PLAN_VERSION`].
    pub version: u32,
    /// Owner of the state directory, who reads what guests leave.
    pub owner: KernelIds,
    /// uid and gid inside guests.
    pub guest_id: u32,
    /// The ids to choose from.
    pub ids: GuestIds,
    /// File in which the byte of each id in use is locked: root's, or the user's own.
    pub locks: String,
    /// Directory that is covered by the views, in the spawner's mount namespace only.
    pub place: String,
    /// What launchers will see below `place`. A user's spawner has none at its start.
    pub views: Vec<SpawnerView>,
}

/// Runner to spawner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SpawnerRequest {
    /// The directory of a view; packet carries it. Only before `Ready`.
    Source {
        /// Position in the plan.
        index: usize,
    },
    /// Start a launcher as the guest's kernel user. Packet carries its three descriptors; after
    /// them the open member files of control groups that it enters while it is still the owner's.
    Launch {
        /// What wraps the launcher, with all arguments; empty: the launcher itself.
        wrapper: Vec<String>,
    },
    /// Kill a launcher.
    Kill {
        /// As `Launched` told.
        pid: i32,
    },
    /// Show a host directory below the place, with its owners and modes as they are. Only a user's
    /// spawner does, which can open what its runner can.
    Show {
        /// Its name there; letters, digits and hyphens.
        name: String,
        /// Absolute path.
        path: String,
    },
    /// Make the files of a guest's scratch appear as the state owner's. Packet carries a detached
    /// mount of it, which the caller keeps.
    Expose,
}

/// Spawner to runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SpawnerReply {
    /// What came of a view. When `errno` is 0, the packet carries a detached mount of the
    /// directory in which its owner on disk appears as the state's owner.
    View {
        /// Position in the plan.
        index: usize,
        /// Why there is none: EINVAL, the file system has no idmapped mounts.
        errno: i32,
    },
    /// Root is given up. A user's spawner has [`STORE`] below the place, and the packet carries a
    /// detached mount of it in which the guest's files are the state owner's.
    Ready {
        /// Kernel uid and gid of all guests of this spawner.
        id: u32,
    },
    /// A launcher runs; packet carries its pidfd.
    Launched {
        /// Its pid.
        pid: i32,
    },
    /// No launcher could be started.
    NotLaunched {
        /// errno.
        errno: i32,
    },
    /// A launcher ended.
    Ended {
        /// Which.
        pid: i32,
        /// Exit code, when it exited.
        code: Option<i32>,
        /// Signal, when it was killed.
        signal: Option<i32>,
        /// User CPU of it and its waited-for children, microseconds.
        user_us: u64,
        /// System CPU, microseconds.
        system_us: u64,
    },
    /// Result of `Show`; 0: done.
    Shown {
        /// errno.
        errno: i32,
    },
    /// What came of `Expose`; 0: done.
    Exposed {
        /// errno.
        errno: i32,
    },
    /// There is no spawner; the process exits with 125.
    Failed {
        /// Which step; `guest_ids` with EAGAIN when every id is in use.
        step: String,
        /// What it was about.
        subject: String,
        /// errno; 0 when none applies.
        errno: i32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_with_system_users_or_beyond_31_bits_are_refused() {
        let ids = GuestIds::parse("200000:64").unwrap();
        assert_eq!((ids.first, ids.count), (200_000, 64));
        assert!(ids.contains(200_063) && !ids.contains(200_064) && !ids.contains(199_999));
        assert!(GuestIds::default().is_valid());
        for wrong in [
            "",
            "5",
            "0:10",
            "999:1",
            "1000:0",
            "1000:65537",
            "2147483600:100",
            "a:b",
            "1000:-1",
            "1000:1:1",
            " 1000:1",
        ] {
            let error = GuestIds::parse(wrong).unwrap_err();
            assert!(error.to_string().contains("FIRST:COUNT"), "{wrong}");
        }
    }

    #[test]
    fn ranges_have_ids_in_common_or_not() {
        let ids = |first, count| GuestIds { first, count };
        assert_eq!(ids(10, 10).common(ids(15, 10)), Some(ids(15, 5)));
        assert_eq!(ids(15, 10).common(ids(10, 10)), Some(ids(15, 5)));
        assert_eq!(ids(10, 10).common(ids(12, 3)), Some(ids(12, 3)));
        assert_eq!(ids(10, 10).common(ids(20, 10)), None);
        assert_eq!(ids(10, 10).common(ids(30, 10)), None);
        let endless = ids(u32::MAX - 1, u32::MAX);
        assert_eq!(
            endless.common(ids(u32::MAX - 1, 1)),
            Some(ids(u32::MAX - 1, 1))
        );
    }
}
