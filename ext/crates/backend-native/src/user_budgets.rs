//! What the kernel lets one user of the host have, compared with what one run could take of it.
//!
//! Guests with the kernel uid of the state directory's owner share these budgets with every
//! other process of that user: other guests, php-fpm, a web server.

use rustix::process::{Resource, getrlimit};
use std::fs;
use wp_codebox_contracts::{FIXED_LIMITS, Limits};

/// One run may take a quarter of a budget: several are alive at once.
const SHARE: u64 = 4;
/// Kernel memory of one epoll watch, bytes: 206 on Linux 6.18.
const WATCH: u64 = 200;
/// Pages of a pipe of the size that `pipe` makes, and bytes of a page.
const PIPE_PAGES: u64 = 16;
const PAGE: u64 = 4096;

/// Budgets of this process's user; none where the kernel does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserBudgets {
    /// Hard limit on open files of this process.
    pub open_files: Option<u64>,
    /// `fs.epoll.max_user_watches`.
    pub epoll_watches: Option<u64>,
    /// `fs.inotify.max_user_instances`.
    pub inotify_instances: Option<u64>,
    /// `fs.pipe-user-pages-soft`; 0 means without limit.
    pub pipe_pages: Option<u64>,
}

/// What bounds the kernel memory of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelMemory {
    /// The memory limit of its group.
    Counted,
    /// Nothing.
    Uncounted,
}

/// A budget of which one run could take more than its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverShare {
    /// What it is a budget of.
    pub what: &'static str,
    /// Which setting raises it.
    pub setting: &'static str,
    /// The most that one run could take.
    pub run: u64,
    /// What the user has.
    pub budget: u64,
}

impl UserBudgets {
    /// Looks at this host and process.
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

    /// The budgets of which one run with these limits could take more than its share.
    #[must_use]
    pub fn over_share(&self, limits: &Limits, memory: KernelMemory) -> Vec<OverShare> {
        let bounded = |count: u64, bytes: u64| match memory {
            KernelMemory::Counted => count.min(limits.memory_bytes / bytes),
            KernelMemory::Uncounted => count,
        };
        // Half of a process's descriptors watch the other half.
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
            // In flight over unix sockets: compared with the sender's limit.
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

    #[test]
    fn budgets_smaller_than_four_runs_are_named_and_larger_ones_are_not() {
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
    fn counted_kernel_memory_bounds_watches_and_uncounted_does_not() {
        let budgets = UserBudgets {
            epoll_watches: Some(30_000_000),
            ..LARGE
        };
        assert_eq!(over(budgets, KernelMemory::Counted), Vec::<&str>::new());
        assert_eq!(over(budgets, KernelMemory::Uncounted), ["epoll watches"]);
    }

    #[test]
    fn this_host_says_what_its_users_have() {
        let budgets = UserBudgets::read();
        assert!(budgets.epoll_watches.is_some() && budgets.inotify_instances.is_some());
    }
}
