//! Probe of the isolation axis `syscalls`: tries system calls that the seccomp filters refuse.

use super::findings::Observation;
use super::observe::{status_field, wrong};
use crate::error::{Failure, Step};
use crate::shortfall::Shortfalls;

/// Checks that each tried system call gives the errno that the seccomp filters define for it.
pub(super) fn syscalls(shortfalls: &Shortfalls) -> Result<Observation, Failure> {
    if shortfalls.has(Step::Seccomp) {
        // Without the filters, the attempts after this block would succeed and change this process,
        // so only the clone is tried, for the error message.
        let mode = status_field("Seccomp:")?;
        let errno = namespace_clone_errno();
        return Err(wrong(format!(
            "Seccomp mode {mode}: clone into a new namespace gave errno {errno}"
        )));
    }

    let errno_of = |result: i64| {
        if result >= 0 {
            0
        } else {
            std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
        }
    };
    if namespace_clone_errno() != libc::EPERM {
        return Err(wrong(
            "clone into a new namespace, which did not give EPERM",
        ));
    }
    // SAFETY: the filters answer every call before the kernel reads its arguments, which are zeros
    // or null pointers and would be refused anyway.
    let tried = unsafe {
        [
            (
                "unshare",
                libc::EPERM,
                errno_of(libc::syscall(libc::SYS_unshare, libc::CLONE_NEWUSER)),
            ),
            (
                "clone3",
                libc::ENOSYS,
                errno_of(libc::syscall(libc::SYS_clone3, 0, 0)),
            ),
            (
                "keyctl",
                libc::EPERM,
                errno_of(libc::syscall(libc::SYS_keyctl, 0, 0, 0, 0, 0)),
            ),
            (
                "ptrace",
                libc::EPERM,
                errno_of(libc::syscall(
                    libc::SYS_ptrace,
                    libc::PTRACE_TRACEME,
                    0,
                    0,
                    0,
                )),
            ),
            (
                "bpf",
                libc::EPERM,
                errno_of(libc::syscall(libc::SYS_bpf, 0, 0, 0)),
            ),
            (
                "io_uring_setup",
                libc::ENOSYS,
                errno_of(libc::syscall(libc::SYS_io_uring_setup, 0, 0)),
            ),
            (
                "mount",
                libc::EPERM,
                errno_of(libc::syscall(libc::SYS_mount, 0, 0, 0, 0, 0)),
            ),
            (
                "F_SETLEASE",
                libc::EPERM,
                errno_of(libc::syscall(libc::SYS_fcntl, -1, libc::F_SETLEASE, 0)),
            ),
            // The descriptors are invalid, so the kernel would return EBADF; a success or EINVAL comes
            // from the filter.
            ("syncfs", 0, errno_of(libc::syscall(libc::SYS_syncfs, -1))),
            (
                "splice",
                libc::EINVAL,
                errno_of(libc::syscall(libc::SYS_splice, -1, 0, -1, 0, 1, 0)),
            ),
            // For a null path the kernel would return EFAULT.
            (
                "setxattr",
                libc::EOPNOTSUPP,
                errno_of(libc::syscall(libc::SYS_setxattr, 0, 0, 0, 0, 0)),
            ),
        ]
    };
    for (name, wanted, got) in tried {
        if got != wanted {
            return Err(wrong(format!(
                "{name}, which gave errno {got} instead of {wanted}"
            )));
        }
    }
    if status_field("Seccomp:")? != "2" {
        return Err(wrong("the seccomp mode, which is not filter mode"));
    }
    Ok(Observation::enforced(
        "seccomp allow-list, five filters",
        "filter mode; clone into a namespace, unshare, keyctl, ptrace, bpf, mount and leases give EPERM, clone3 and io_uring_setup ENOSYS, splice EINVAL, setxattr EOPNOTSUPP; syncfs succeeds and does nothing",
    ))
}

/// Returns the errno of a `clone` into a new user namespace. If the call succeeds against
/// expectation, the child exits at once.
fn namespace_clone_errno() -> i32 {
    let flags = libc::CLONE_NEWUSER | libc::SIGCHLD;
    // SAFETY: without a stack argument the child runs on a copy of this process's stack, like after
    // fork, and only exits.
    unsafe {
        match libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) {
            0 => libc::_exit(0),
            result if result > 0 => 0,
            _ => std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
        }
    }
}
