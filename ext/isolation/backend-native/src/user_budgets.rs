//! Kernel limits per host user, compared with the most that one run could use.
//!
//! Guests that run as the state directory's owner share these limits with every other process of
//! that user: other guests, php-fpm, a web server.

use rustix::process::{Resource, getrlimit};
use std::fs;
use wp_codebox_contracts::{FIXED_LIMITS, Limits};

/// A user limit should suffice for this many runs, so one run may use a quarter of it.
const SHARE: u64 = 4;
/// Kernel memory of one epoll watch in bytes. Linux 6.18 uses 206; the value is lower, so that the
/// number of watches computed from it is not too small.
const WATCH: u64 = 200;
/// Number of memory pages of a pipe with the default size.
const PIPE_PAGES: u64 = 16;
const PAGE: u64 = 4096;

/// Kernel limits of this process's user; `None` where there is no limit or the kernel does not
/// report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserBudgets {
    /// Hard RLIMIT_NOFILE of this process.
    pub open_files: Option<u64>,
    /// Sysctl `fs.epoll.max_user_watches`: epoll watches of all processes of the user.
    pub epoll_watches: Option<u64>,
    /// Sysctl `fs.inotify.max_user_instances`: inotify instances of all processes of the user.
    pub inotify_instances: Option<u64>,
    /// Sysctl `fs.pipe-user-pages-soft`: pages of all pipes of the user; `None` when it is 0
    /// (unlimited).
    pub pipe_pages: Option<u64>,
}

/// Whether a memory limit includes the kernel memory that a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelMemory {
    /// The memory limit of the run's cgroup includes kernel memory.
    Counted,
    /// No limit includes kernel memory.
    Uncounted,
}

/// A kernel limit of the user of which one run could use more than its share (a quarter).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverShare {
    /// Name of the limited resource, for a message.
    pub what: &'static str,
    /// Sysctl or setting that raises the limit.
    pub setting: &'static str,
    /// Largest amount of the resource that one run could use.
    pub run: u64,
    /// Value of the user's limit.
    pub budget: u64,
}

impl UserBudgets {
    /// Reads the limits of this process and its user from the kernel.
    #[must_use]
    pub fn read() -> Self {
        let number = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/fs/{name}")).ok()?;
            text.trim().parse().ok()
        };
        Self {
            open_files: Some(getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX)),
            epoll_watches: number("epoll/max_user_watches"),
            inotify_instances: number("inotify/max_user_instances"),
            pipe_pages: number("pipe-user-pages-soft").filter(|pages| *pages > 0),
        }
    }

    /// Returns the user limits of which one run with these resource limits could use more than its
    /// share.
    #[must_use]
    pub fn over_share(&self, limits: &Limits, memory: KernelMemory) -> Vec<OverShare> {
        let bounded = |count: u64, bytes: u64| match memory {
            KernelMemory::Counted => count.min(limits.memory_bytes / bytes),
            KernelMemory::Uncounted => count,
        };
        // Worst case: one half of a process's descriptors are epoll instances that watch the other
        // half.
        let half = FIXED_LIMITS.open_files / 2;
        let watches = limits.processes.saturating_mul(half * half);
        let pages = limits.processes.saturating_mul(half * PIPE_PAGES);
        let rows = [
            (
                "epoll watches",
                "fs.epoll.max_user_watches",
                bounded(watches, WATCH),
                self.epoll_watches,
            ),
            (
                "inotify instances",
                "fs.inotify.max_user_instances",
                FIXED_LIMITS.inotify_instances,
                self.inotify_instances,
            ),
            (
                "pages of pipes",
                "fs.pipe-user-pages-soft",
                bounded(pages, PAGE),
                self.pipe_pages,
            ),
            // Descriptors in flight over unix sockets; the kernel compares them with the sender's
            // limit.
            (
                "descriptors in flight",
                "RLIMIT_NOFILE (LimitNOFILE=)",
                FIXED_LIMITS.open_files,
                self.open_files,
            ),
        ];
        rows.into_iter()
            .filter_map(|(what, setting, run, budget)| {
                let budget = budget?;
                (run > budget / SHARE).then_some(OverShare {
                    what,
                    setting,
                    run,
                    budget,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: UserBudgets = UserBudgets {
        open_files: Some(524_288),
        epoll_watches: Some(200_000_000),
        inotify_instances: Some(128),
        pipe_pages: None,
    };

    fn over(budgets: UserBudgets, memory: KernelMemory) -> Vec<&'static str> {
        let all = budgets.over_share(&Limits::default(), memory);
        all.into_iter().map(|one| one.what).collect()
    }

    /// A limit is too low if one run could use more than a quarter of it.
    #[test]
    fn only_user_limits_too_low_for_four_runs_are_reported() {
        assert_eq!(over(LARGE, KernelMemory::Uncounted), Vec::<&str>::new());
        let small = UserBudgets {
            open_files: Some(4095),
            epoll_watches: Some(5_491_533),
            inotify_instances: Some(63),
            pipe_pages: Some(16_384),
        };
        assert_eq!(over(small, KernelMemory::Counted).len(), 4);
        let few = UserBudgets {
            open_files: Some(4096),
            inotify_instances: Some(64),
            ..LARGE
        };
        assert_eq!(over(few, KernelMemory::Counted), Vec::<&str>::new());
    }

    #[test]
    fn memory_limit_bounds_epoll_watches_only_if_it_counts_kernel_memory() {
        let budgets = UserBudgets {
            epoll_watches: Some(30_000_000),
            ..LARGE
        };
        assert_eq!(over(budgets, KernelMemory::Counted), Vec::<&str>::new());
        assert_eq!(over(budgets, KernelMemory::Uncounted), ["epoll watches"]);
    }

    #[test]
    fn epoll_and_inotify_limits_of_this_host_are_readable() {
        let budgets = UserBudgets::read();
        assert!(budgets.epoll_watches.is_some() && budgets.inotify_instances.is_some());
    }
}
