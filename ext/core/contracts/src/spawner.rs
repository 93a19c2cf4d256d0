//! The launcher's second role, the spawner: it starts launchers under a separate kernel uid.
//!
//! Everything that runs as one uid shares the kernel's per-uid limits (epoll watches, inotify
//! instances, file descriptors in flight). A spawner started by root takes a free uid of the
//! operator's range, prepares idmapped mounts of the directories that guests will see, drops
//! root, and then serves one supervisor over a SEQPACKET channel with one JSON message per packet.
//! A spawner started by an ordinary user takes one of the user's subordinate ids; the
//! directories for guests are then copied to a tmpfs of the spawner, or mounted without id mapping.
//! The command line is `wp-codebox-launch spawner`, with the file descriptors of
//! [`crate::LauncherFd`]; the plan is a [`SpawnerPlan`].

use crate::string_enum;
use serde::{Deserialize, Serialize};

/// The launcher's only argument in the spawner role.
pub const SPAWNER_ROLE: &str = "spawner";

/// Program that maps subordinate user ids; set-uid root, or with CAP_SETUID.
pub const NEWUIDMAP: &str = "/usr/bin/newuidmap";
/// Program that maps subordinate group ids.
pub const NEWGIDMAP: &str = "/usr/bin/newgidmap";

/// Name of the directory, below [`SpawnerPlan::place`], where an unprivileged spawner mounts the
/// tmpfs to which directories for guests are copied.
pub const STORE: &str = "store";

/// Name of the directory, below [`SpawnerPlan::place`], where a spawner started by root mounts the
/// file system for the files of guests.
pub const SCRATCH: &str = "scratch";

/// Range of user and group ids that the operator reserved for guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestIds {
    /// First id of the range; each id is used as uid and as gid.
    pub first: u32,
    /// Number of ids in the range.
    pub count: u32,
}

impl Default for GuestIds {
    /// A range that no distribution assigns (systemd's UIDS-GIDS document).
    fn default() -> Self {
        Self {
            first: 1_900_000_000,
            count: 4096,
        }
    }
}

/// Error for a range of guest ids that is malformed or not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the user ids for guests, {given:?}, must be FIRST:COUNT with FIRST at least 1000, COUNT from 1 to 65536, and no id above 2147483646"
)]
pub struct InvalidGuestIds {
    /// The range as the operator wrote it.
    pub given: String,
}

impl GuestIds {
    /// Parses `FIRST:COUNT`.
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

    /// Returns whether a guest may use every id of the range: none below 1000 (system users), and
    /// none above 2147483646.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.first >= 1000
            && self.count >= 1
            && self.count <= 65_536
            && self.first.saturating_add(self.count) <= i32::MAX as u32
    }

    /// Returns the ids that are in both ranges, or `None` if there are none.
    #[must_use]
    pub fn common(self, other: Self) -> Option<Self> {
        let first = self.first.max(other.first);
        let end = |ids: Self| ids.first.saturating_add(ids.count);
        let count = end(self).min(end(other)).checked_sub(first)?;
        (count > 0).then_some(Self { first, count })
    }

    /// Returns whether an id is in the range.
    #[must_use]
    pub const fn contains(self, id: u32) -> bool {
        id >= self.first && id - self.first < self.count
    }
}

string_enum! {
    /// Which kernel uid guests get.
    #[derive(Default)]
    pub enum IdentityChoice {
        /// A separate kernel uid if this host can provide one.
        #[default]
        Auto = "auto",
        /// A separate kernel uid; the run is refused if this host cannot provide one.
        Own = "own",
        /// The kernel uid of the state directory's owner.
        Shared = "shared",
    }
}

/// A user id and a group id of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelIds {
    /// User id on the host.
    pub uid: u32,
    /// Group id on the host.
    pub gid: u32,
}

/// Whether guests may write through a view, an idmapped mount of a host directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewAccess {
    /// Guests may only read through the view.
    Read,
    /// Guests may write; on disk, their files belong to the directory's owner. Only for the state
    /// directory, in which templates are built.
    Write,
}

/// One host directory that launchers will open below [`SpawnerPlan::place`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnerView {
    /// Name of the view's mount point below `place`.
    pub name: String,
    /// Owner of the files on disk, mapped to the guest's user.
    pub owner: KernelIds,
    /// Whether guests may write to the directory through the view.
    pub access: ViewAccess,
    /// Names of direct subdirectories that an empty mount hides from guests.
    #[serde(default)]
    pub covered: Vec<String>,
}

/// Everything that a spawner needs to start. One `Source` packet per view follows on the channel,
/// then one for the file of [`SpawnerScratch::FileSystem`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnerPlan {
    /// Version of the plan format, [`crate::PLAN_VERSION`].
    pub version: u32,
    /// Owner of the state directory, who must be able to read the files that guests create.
    pub owner: KernelIds,
    /// uid and gid of programs as seen inside a guest.
    pub guest_id: u32,
    /// Range of ids from which the spawner takes the kernel uid of its guests.
    pub ids: GuestIds,
    /// Lock file with one byte per id; the spawner locks the byte of its id. Owned by root or
    /// by the user of the spawner.
    pub locks: String,
    /// Mount point of the views; the mounts exist only in the spawner's mount namespace.
    pub place: String,
    /// Directories that launchers will see below `place`. An unprivileged spawner starts
    /// without views.
    pub views: Vec<SpawnerView>,
    /// Where the writable files of the guests lie.
    #[serde(default)]
    pub scratch: SpawnerScratch,
}

/// Where the writable files of a spawner's guests lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpawnerScratch {
    /// On a tmpfs of each guest, of which the spawner must be able to make idmapped mounts.
    #[default]
    Memory,
    /// On a file system of this size in bytes, which all guests share. A spawner started by root
    /// makes it in a file whose descriptor follows those of the views, and mounts it as
    /// [`SCRATCH`] below `place`.
    FileSystem(u64),
}

/// Messages from supervisor to spawner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SpawnerRequest {
    /// The directory of a view; the packet carries its file descriptor. Only before `Ready`.
    Source {
        /// Index of the view in the plan; the number of views for the file of the file system.
        index: usize,
    },
    /// Starts a launcher under the guest's kernel uid. The packet carries the launcher's three file
    /// descriptors, then open member files (`cgroup.procs`) of the cgroups that the launcher enters
    /// while it still has the uid of the state directory's owner.
    Launch {
        /// Command line of the process wrapper, all arguments included; empty: no wrapper.
        wrapper: Vec<String>,
    },
    /// Kills a launcher.
    Kill {
        /// Pid of the launcher, from `Launched`.
        pid: i32,
    },
    /// Makes a host directory visible below `place`; owners and modes of its files stay unchanged.
    /// Only an unprivileged spawner accepts this request; it can open the same directories as its
    /// supervisor.
    Show {
        /// Name below `place`; letters, digits and hyphens.
        name: String,
        /// Absolute path of the directory.
        path: String,
    },
    /// Maps the files of a guest's scratch tmpfs to the ids of the state directory's owner. The
    /// packet carries a detached mount of the scratch. The supervisor keeps a descriptor of the same
    /// mount and reads the files through it.
    Expose,
}

/// Messages from spawner to supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SpawnerReply {
    /// Result for a view. If `errno` is 0 and the view has an owner other than the owner of the
    /// state directory, the packet carries a detached mount of the directory. This mount maps the
    /// owner on disk to the owner of the state directory.
    View {
        /// Index of the view in the plan.
        index: usize,
        /// errno, 0 on success; EINVAL: the file system does not support idmapped mounts.
        errno: i32,
        /// Entries of `covered` on which an earlier version had left its mount on the host; the
        /// spawner has unmounted it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        uncovered: Vec<String>,
    },
    /// Result for the file system of [`SpawnerScratch::FileSystem`]. If `errno` is 0 and `subject`
    /// is empty, the packet carries a detached mount of it, in which the guests' files belong to the
    /// owner of the state directory.
    Scratch {
        /// What failed, for example the program that makes the file system; empty: nothing.
        subject: String,
        /// errno of the failure; 0 when none applies.
        errno: i32,
    },
    /// The spawner has dropped root. An unprivileged spawner has created [`STORE`] below `place`,
    /// and the packet carries a detached mount of this tmpfs. The mount maps the owner of the
    /// guest's files to the owner of the state directory.
    Ready {
        /// Kernel uid and gid of all guests of this spawner.
        id: u32,
    },
    /// A launcher started; the packet carries its pidfd.
    Launched {
        /// Pid of the launcher.
        pid: i32,
    },
    /// A launcher could not be started.
    NotLaunched {
        /// errno of the failing call.
        errno: i32,
    },
    /// The process of a launcher ended.
    Ended {
        /// Pid of the launcher.
        pid: i32,
        /// Exit code, if the launcher exited.
        code: Option<i32>,
        /// Signal, if a signal killed the launcher.
        signal: Option<i32>,
        /// User CPU time of the launcher and its waited-for children, in microseconds.
        user_us: u64,
        /// System CPU time of the launcher and its waited-for children, in microseconds.
        system_us: u64,
    },
    /// Result of `Show`.
    Shown {
        /// errno of the failing call; 0 on success.
        errno: i32,
    },
    /// Result of `Expose`.
    Exposed {
        /// errno of the failing call; 0 on success.
        errno: i32,
    },
    /// The spawner could not start; its process exits with 125.
    Failed {
        /// Failing step; `guest_ids` with EAGAIN if all ids are in use.
        step: String,
        /// What failed in the step, e.g. a path or a mechanism.
        subject: String,
        /// errno of the failing step; 0 when none applies.
        errno: i32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_id_range_is_refused_if_malformed_empty_below_1000_above_31_bits_or_over_65536_ids() {
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
    fn intersection_of_guest_id_ranges_contains_only_shared_ids() {
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
