//! Tables of the system calls that a guest may use.
//!
//! The list covers what PHP, node, Python, git, bash and curl use. It leaves out calls that reach
//! beyond the guest: memory of other processes, new namespaces, mounts, keyrings, BPF, clocks,
//! kernel modules, file handles that outlive their path, and memory that belongs to no process and
//! would escape the memory limit.

use libc::{
    SYS_accept, SYS_accept4, SYS_bind, SYS_brk, SYS_capget, SYS_chdir, SYS_clock_getres,
    SYS_clock_gettime, SYS_clock_nanosleep, SYS_clone, SYS_clone3, SYS_close, SYS_close_range,
    SYS_connect, SYS_copy_file_range, SYS_dup, SYS_dup3, SYS_epoll_create1, SYS_epoll_ctl,
    SYS_epoll_pwait, SYS_epoll_pwait2, SYS_eventfd2, SYS_execve, SYS_execveat, SYS_exit,
    SYS_exit_group, SYS_faccessat, SYS_faccessat2, SYS_fadvise64, SYS_fallocate, SYS_fchdir,
    SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_fcntl, SYS_fdatasync, SYS_fgetxattr,
    SYS_flistxattr, SYS_flock, SYS_fremovexattr, SYS_fstat, SYS_fstatfs, SYS_fsync, SYS_ftruncate,
    SYS_futex, SYS_futex_waitv, SYS_get_robust_list, SYS_getcpu, SYS_getcwd, SYS_getdents64,
    SYS_getegid, SYS_geteuid, SYS_getgid, SYS_getgroups, SYS_getitimer, SYS_getpeername,
    SYS_getpgid, SYS_getpid, SYS_getppid, SYS_getpriority, SYS_getrandom, SYS_getresgid,
    SYS_getresuid, SYS_getrlimit, SYS_getrusage, SYS_getsid, SYS_getsockname, SYS_getsockopt,
    SYS_gettid, SYS_gettimeofday, SYS_getuid, SYS_getxattr, SYS_inotify_add_watch,
    SYS_inotify_init1, SYS_inotify_rm_watch, SYS_io_uring_enter, SYS_io_uring_register,
    SYS_io_uring_setup, SYS_ioctl, SYS_ioprio_get, SYS_ioprio_set, SYS_kill, SYS_landlock_add_rule,
    SYS_landlock_create_ruleset, SYS_landlock_restrict_self, SYS_lgetxattr, SYS_linkat, SYS_listen,
    SYS_listxattr, SYS_llistxattr, SYS_lremovexattr, SYS_lseek, SYS_madvise, SYS_membarrier,
    SYS_memfd_create, SYS_mincore, SYS_mkdirat, SYS_mknodat, SYS_mlock, SYS_mlock2, SYS_mlockall,
    SYS_mmap, SYS_mprotect, SYS_mremap, SYS_msync, SYS_munlock, SYS_munlockall, SYS_munmap,
    SYS_nanosleep, SYS_newfstatat, SYS_openat, SYS_openat2, SYS_personality, SYS_pidfd_open,
    SYS_pidfd_send_signal, SYS_pipe2, SYS_pkey_alloc, SYS_pkey_free, SYS_pkey_mprotect, SYS_ppoll,
    SYS_prctl, SYS_pread64, SYS_preadv, SYS_preadv2, SYS_prlimit64, SYS_pselect6, SYS_pwrite64,
    SYS_pwritev, SYS_pwritev2, SYS_read, SYS_readahead, SYS_readlinkat, SYS_readv, SYS_recvfrom,
    SYS_recvmmsg, SYS_recvmsg, SYS_removexattr, SYS_renameat, SYS_renameat2, SYS_restart_syscall,
    SYS_rseq, SYS_rt_sigaction, SYS_rt_sigpending, SYS_rt_sigprocmask, SYS_rt_sigqueueinfo,
    SYS_rt_sigreturn, SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_rt_tgsigqueueinfo,
    SYS_sched_get_priority_max, SYS_sched_get_priority_min, SYS_sched_getaffinity,
    SYS_sched_getattr, SYS_sched_getparam, SYS_sched_getscheduler, SYS_sched_rr_get_interval,
    SYS_sched_setaffinity, SYS_sched_setattr, SYS_sched_setparam, SYS_sched_setscheduler,
    SYS_sched_yield, SYS_seccomp, SYS_sendfile, SYS_sendmmsg, SYS_sendmsg, SYS_sendto,
    SYS_set_robust_list, SYS_set_tid_address, SYS_setfsgid, SYS_setfsuid, SYS_setgid,
    SYS_setitimer, SYS_setpgid, SYS_setpriority, SYS_setregid, SYS_setresgid, SYS_setresuid,
    SYS_setreuid, SYS_setrlimit, SYS_setsid, SYS_setuid, SYS_shutdown, SYS_sigaltstack,
    SYS_signalfd4, SYS_socketpair, SYS_statfs, SYS_statx, SYS_symlinkat, SYS_sync,
    SYS_sync_file_range, SYS_syncfs, SYS_sysinfo, SYS_tgkill, SYS_timer_create, SYS_timer_delete,
    SYS_timer_getoverrun, SYS_timer_gettime, SYS_timer_settime, SYS_timerfd_create,
    SYS_timerfd_gettime, SYS_timerfd_settime, SYS_times, SYS_tkill, SYS_truncate, SYS_umask,
    SYS_uname, SYS_unlinkat, SYS_utimensat, SYS_wait4, SYS_waitid, SYS_write, SYS_writev,
};

/// A condition on one argument of a system call. The first field is the index of the argument, of
/// which the lower 32 bits are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument {
    /// The argument equals the value.
    Is(u8, u64),
    /// The argument differs from the value.
    IsNot(u8, u64),
    /// The argument, after a bitwise AND with the mask, equals the value. The fields are index,
    /// mask and value.
    Masked(u8, u64, u64),
    /// The argument is a null pointer; compared as 64 bits.
    Null(u8),
}

/// System calls that are allowed with any arguments.
pub(crate) const COMMON: &[i64] = &[
    // Files and directories; the mounts and Landlock decide which paths are accessible.
    SYS_openat,
    SYS_openat2,
    SYS_close,
    SYS_close_range,
    SYS_read,
    SYS_readv,
    SYS_pread64,
    SYS_preadv,
    SYS_preadv2,
    SYS_write,
    SYS_writev,
    SYS_pwrite64,
    SYS_pwritev,
    SYS_pwritev2,
    SYS_lseek,
    SYS_readahead,
    SYS_fadvise64,
    SYS_fallocate,
    SYS_ftruncate,
    SYS_truncate,
    // Sync of single files: an overlay syncs its upper layer only, which is a tmpfs.
    SYS_fsync,
    SYS_fdatasync,
    SYS_sync_file_range,
    SYS_copy_file_range,
    SYS_sendfile,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_getdents64,
    SYS_getcwd,
    SYS_chdir,
    SYS_fchdir,
    SYS_mkdirat,
    SYS_unlinkat,
    SYS_renameat,
    SYS_renameat2,
    SYS_linkat,
    SYS_symlinkat,
    SYS_readlinkat,
    SYS_fchmod,
    SYS_fchmodat,
    // fchmodat2, which the libc crate does not name yet.
    452,
    SYS_fchown,
    SYS_fchownat,
    SYS_utimensat,
    SYS_umask,
    SYS_flock,
    SYS_dup,
    SYS_dup3,
    SYS_getxattr,
    SYS_lgetxattr,
    SYS_fgetxattr,
    SYS_listxattr,
    SYS_llistxattr,
    SYS_flistxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_inotify_init1,
    SYS_inotify_add_watch,
    SYS_inotify_rm_watch,
    // Memory of the calling process. `memfd_create` and System V shared memory are left out: their
    // pages belong to no process, so no limit here counts them.
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_mprotect,
    SYS_pkey_alloc,
    SYS_pkey_free,
    SYS_pkey_mprotect,
    SYS_mincore,
    SYS_msync,
    SYS_mlock,
    SYS_mlock2,
    SYS_mlockall,
    SYS_munlock,
    SYS_munlockall,
    SYS_membarrier,
    // Processes and threads of this guest; `CHECKED` restricts `clone`.
    SYS_execve,
    SYS_execveat,
    SYS_exit,
    SYS_exit_group,
    SYS_wait4,
    SYS_waitid,
    SYS_kill,
    SYS_tkill,
    SYS_tgkill,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_getpid,
    SYS_getppid,
    SYS_gettid,
    SYS_getpgid,
    SYS_setpgid,
    SYS_getsid,
    SYS_setsid,
    SYS_set_tid_address,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_rseq,
    SYS_futex,
    SYS_futex_waitv,
    SYS_restart_syscall,
    SYS_getrlimit,
    SYS_setrlimit,
    SYS_getrusage,
    SYS_times,
    SYS_getpriority,
    SYS_setpriority,
    SYS_ioprio_get,
    SYS_ioprio_set,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_setaffinity,
    SYS_sched_getparam,
    SYS_sched_setparam,
    SYS_sched_getscheduler,
    SYS_sched_setscheduler,
    SYS_sched_getattr,
    SYS_sched_setattr,
    SYS_sched_get_priority_max,
    SYS_sched_get_priority_min,
    SYS_sched_rr_get_interval,
    SYS_getcpu,
    // Identity: one id is mapped and there are no capabilities, so a call that sets an id can only
    // set the same id again.
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getresuid,
    SYS_getresgid,
    SYS_getgroups,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_capget,
    // Signals of processes in this guest.
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigpending,
    SYS_rt_sigsuspend,
    SYS_rt_sigtimedwait,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_sigaltstack,
    SYS_signalfd4,
    // Waiting for events, pipes.
    SYS_ppoll,
    SYS_pselect6,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_epoll_pwait2,
    SYS_eventfd2,
    SYS_pipe2,
    // Clocks, sleeping and timers.
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getitimer,
    SYS_setitimer,
    SYS_timer_create,
    SYS_timer_delete,
    SYS_timer_settime,
    SYS_timer_gettime,
    SYS_timer_getoverrun,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
    // Sockets within the empty network namespace; `CHECKED` restricts `socket` and `socketpair`.
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_connect,
    SYS_shutdown,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_recvmmsg,
    // Calls that a C library makes when a program starts.
    SYS_uname,
    SYS_sysinfo,
    SYS_getrandom,
    // Needed to install the later filters. The last filter answers ENOSYS to further calls of
    // `seccomp`.
    SYS_seccomp,
];

/// System calls that x86_64 has in addition to newer architectures, allowed with any arguments.
#[cfg(target_arch = "x86_64")]
pub(crate) const LEGACY: &[i64] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_getdents,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_readlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_signalfd,
    libc::SYS_inotify_init,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_getpgrp,
    libc::SYS_alarm,
    libc::SYS_pause,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];
/// System calls that only x86_64 has; none on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const LEGACY: &[i64] = &[];

/// `clone` flags that create a namespace.
const NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;
const FILES: u64 = libc::CLONE_FILES as u64;
const THREAD: u64 = libc::CLONE_THREAD as u64;
/// `fcntl` command that takes a lease on a directory (Linux 6.19); the libc crate does not name it
/// yet.
const F_SETDELEG: u64 = 1040;
/// Bits of a file mode that contain the file type.
const KIND: u64 = libc::S_IFMT as u64;

pub(crate) const fn option(value: i32) -> Argument {
    Argument::Is(0, value as u64)
}

/// System calls that are allowed only if their arguments fulfil all conditions of at least one
/// alternative (inner list).
pub(crate) const CHECKED: &[(i64, &[&[Argument]])] = &[
    // Limits of the calling process, and reading those of others: programs of the guest have the uid of
    // pid 1 and could lower its limit of open files, after which it starts no further program.
    (
        SYS_prlimit64,
        &[&[Argument::Is(0, 0)], &[Argument::Null(2)]],
    ),
    // No namespaces, and no descriptor table shared by two processes (CLONE_FILES): a record lock
    // would outlive the process that took it, and the kernel would list it with the pid of a dead
    // process, so it could not be counted.
    (
        SYS_clone,
        &[
            &[Argument::Masked(0, NAMESPACES | FILES, 0)],
            &[Argument::Masked(0, NAMESPACES | THREAD, THREAD)],
        ],
    ),
    (SYS_socketpair, &[&[option(libc::AF_UNIX)]]),
    // No pages of the pool that the host has reserved (vm.nr_hugepages): no memory limit counts them.
    // Programs that ask for them take ordinary memory when this fails.
    (
        SYS_mmap,
        &[&[Argument::Masked(3, libc::MAP_HUGETLB as u64, 0)]],
    ),
    // No merging of pages with equal pages of other programs on the host: a write to a merged page
    // is slower, which would reveal what those programs have in memory.
    (
        SYS_madvise,
        &[&[Argument::IsNot(2, libc::MADV_MERGEABLE as u64)]],
    ),
    // A lease delays every process that opens the file by up to 45 s (fs.lease-break-time); a
    // directory notification reveals when other processes use its files. Overlays confine both to
    // the guest; at level `reduced` only this rule does. Locks of open file descriptions are
    // refused because `/proc/locks` shows no pid for them, so they could not be counted.
    (
        SYS_fcntl,
        &[&[
            Argument::IsNot(1, libc::F_SETLEASE as u64),
            Argument::IsNot(1, libc::F_NOTIFY as u64),
            Argument::IsNot(1, F_SETDELEG),
            Argument::IsNot(1, libc::F_OFD_SETLK as u64),
            Argument::IsNot(1, libc::F_OFD_SETLKW as u64),
        ]],
    ),
    // No TIOCSTI (types into a terminal), TIOCLINUX (reads the console's selection) and TIOCSETD
    // (loads a line discipline of the kernel).
    (
        SYS_ioctl,
        &[&[
            Argument::IsNot(1, libc::TIOCSTI),
            Argument::IsNot(1, libc::TIOCLINUX),
            Argument::IsNot(1, libc::TIOCSETD),
        ]],
    ),
    // Only reading the personality, or setting the plain Linux one: other values turn off address
    // randomisation.
    (
        SYS_personality,
        &[&[Argument::Is(0, 0xffff_ffff)], &[Argument::Is(0, 0)]],
    ),
    (
        SYS_prctl,
        &[
            &[option(libc::PR_SET_NAME)],
            &[option(libc::PR_GET_NAME)],
            &[option(libc::PR_SET_PDEATHSIG)],
            &[option(libc::PR_GET_PDEATHSIG)],
            &[option(libc::PR_SET_DUMPABLE)],
            &[option(libc::PR_GET_DUMPABLE)],
            &[option(libc::PR_SET_NO_NEW_PRIVS)],
            &[option(libc::PR_GET_NO_NEW_PRIVS)],
            &[option(libc::PR_SET_CHILD_SUBREAPER)],
            &[option(libc::PR_GET_CHILD_SUBREAPER)],
            &[option(libc::PR_CAPBSET_READ)],
            &[option(libc::PR_GET_KEEPCAPS)],
            &[option(libc::PR_GET_SECUREBITS)],
            &[option(libc::PR_SET_TIMERSLACK)],
            &[option(libc::PR_GET_TIMERSLACK)],
            &[option(libc::PR_GET_SECCOMP)],
            &[option(libc::PR_SET_VMA)],
        ],
    ),
    // Only regular files, FIFOs and sockets; no device nodes, even where a mount would allow them.
    (
        SYS_mknodat,
        &[
            &[Argument::Masked(2, KIND, libc::S_IFREG as u64)],
            &[Argument::Masked(2, KIND, 0)],
            &[Argument::Masked(2, KIND, libc::S_IFIFO as u64)],
            &[Argument::Masked(2, KIND, libc::S_IFSOCK as u64)],
        ],
    ),
    #[cfg(target_arch = "x86_64")]
    (
        libc::SYS_mknod,
        &[
            &[Argument::Masked(1, KIND, libc::S_IFREG as u64)],
            &[Argument::Masked(1, KIND, 0)],
            &[Argument::Masked(1, KIND, libc::S_IFIFO as u64)],
            &[Argument::Masked(1, KIND, libc::S_IFSOCK as u64)],
        ],
    ),
];

/// System calls answered with ENOSYS, so that libraries use an older call instead of failing.
pub(crate) const ABSENT: &[i64] = &[
    // The flags of `clone3` lie in memory, which a seccomp filter cannot read; the C library falls
    // back to `clone`.
    SYS_clone3,
    SYS_seccomp,
    SYS_memfd_create,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_landlock_create_ruleset,
    SYS_landlock_add_rule,
    SYS_landlock_restrict_self,
];

/// System calls answered with success but not executed, so that programs continue. Each one would
/// affect the host. A guest at level `full` has nothing to flush, because everything that it writes
/// is in memory.
pub(crate) const IGNORED: &[(i64, &[&[Argument]])] = &[
    // Would write the caches of the whole host to disk.
    (SYS_sync, &[]),
    (SYS_syncfs, &[]),
    // The page cache of host files is shared, through overlays too: dropping a file from it makes
    // every other reader wait for the disk.
    (
        SYS_fadvise64,
        &[&[Argument::Is(3, libc::POSIX_FADV_DONTNEED as u64)]],
    ),
    (
        SYS_madvise,
        &[
            &[Argument::Is(2, libc::MADV_COLD as u64)],
            &[Argument::Is(2, libc::MADV_PAGEOUT as u64)],
        ],
    ),
    // A larger receive buffer would take more memory that no limit counts.
    (
        libc::SYS_setsockopt,
        &[&[
            Argument::Is(1, libc::SOL_SOCKET as u64),
            Argument::Is(2, libc::SO_RCVBUF as u64),
        ]],
    ),
    // The kernel stores the name of a memory area (up to 80 bytes) and charges it to no cgroup; a
    // process has up to 65,530 areas. Programs name areas for debuggers only.
    (SYS_prctl, &[&[option(libc::PR_SET_VMA)]]),
];
