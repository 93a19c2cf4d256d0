//! Tables of the differences between the system calls allowed at level `reduced` and at level
//! `full`.
//!
//! At this level the guest runs as the supervisor's own host user and sees the host's paths. Landlock
//! decides which files the guest can open, but does not cover calls that change a file by path
//! without opening it, or another process by pid. Such calls are removed, or allowed only if their
//! arguments name an open descriptor or the calling process.

use crate::syscalls::Argument;
use crate::syscalls_sockets::SOCKET_KIND;
use libc::{
    SYS_accept, SYS_accept4, SYS_bind, SYS_connect, SYS_fchmodat, SYS_fchownat, SYS_fdatasync,
    SYS_fsync, SYS_inotify_add_watch, SYS_ioprio_set, SYS_listen, SYS_lremovexattr, SYS_msync,
    SYS_prlimit64, SYS_removexattr, SYS_sched_setaffinity, SYS_sched_setattr, SYS_sched_setparam,
    SYS_sched_setscheduler, SYS_setpriority, SYS_socket, SYS_socketpair, SYS_sync_file_range,
    SYS_utimensat,
};

/// System calls of the full list that are not allowed at level `reduced`.
pub(crate) const REMOVED: &[i64] = &[
    // No socket of any family: the host's network and every unix socket of the host would be
    // reachable, and Landlock covers neither UDP nor unix socket paths.
    SYS_socket,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_connect,
    // No change of mode, owner, times and attributes by path: files of the host belong to the same
    // user. `fchmod` and `fchown` stay allowed, because only the guest's files can be opened.
    SYS_fchmodat,
    // fchmodat2, which the libc crate does not name yet.
    452,
    SYS_fchownat,
    SYS_removexattr,
    SYS_lremovexattr,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
    // inotify needs no Landlock right and reveals file names.
    SYS_inotify_add_watch,
];

/// Kernel constant `IOPRIO_WHO_PROCESS`.
const IOPRIO_PROCESS: u64 = 1;

/// Rows that replace the rows of the full list for the same system calls.
pub(crate) const CHECKED: &[(i64, &[&[Argument]])] = &[
    // No datagram pairs: one end of a datagram pair can be connected to another unix socket.
    (
        SYS_socketpair,
        &[
            &[
                Argument::Is(0, libc::AF_UNIX as u64),
                Argument::Masked(1, SOCKET_KIND, libc::SOCK_STREAM as u64),
            ],
            &[
                Argument::Is(0, libc::AF_UNIX as u64),
                Argument::Masked(1, SOCKET_KIND, libc::SOCK_SEQPACKET as u64),
            ],
        ],
    ),
    // Only times of an open file, not of a path.
    (SYS_utimensat, &[&[Argument::Null(1)]]),
    // Only limits of the calling process: another process of this user may be the supervisor.
    (SYS_prlimit64, &[&[Argument::Is(0, 0)]]),
    (SYS_sched_setaffinity, &[&[Argument::Is(0, 0)]]),
    (SYS_sched_setattr, &[&[Argument::Is(0, 0)]]),
    (SYS_sched_setparam, &[&[Argument::Is(0, 0)]]),
    (SYS_sched_setscheduler, &[&[Argument::Is(0, 0)]]),
    (
        SYS_setpriority,
        &[&[
            Argument::Is(0, libc::PRIO_PROCESS as u64),
            Argument::Is(1, 0),
        ]],
    ),
    (
        SYS_ioprio_set,
        &[&[Argument::Is(0, IOPRIO_PROCESS), Argument::Is(1, 0)]],
    ),
];

/// System calls answered with success but not executed, in addition to those of the full list. At
/// this level the guest's files lie on the host's disk, and no file of a run has to survive a crash
/// of the host.
pub(crate) const IGNORED: &[(i64, &[&[Argument]])] = &[
    (SYS_fsync, &[]),
    (SYS_fdatasync, &[]),
    (SYS_sync_file_range, &[]),
    (SYS_msync, &[]),
];
