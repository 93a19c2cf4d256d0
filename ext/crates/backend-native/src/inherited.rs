//! What a process gets from others without asking: a descriptor by number, the limit on
//! descriptors, a peer's groups.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Most open files that this process asks for: far more than it uses, and than all guests of its
/// user may have in flight.
const OPEN_FILES: u64 = 65_536;

/// Raises the soft limit on open files to the hard one and answers it. Before it passes a
/// descriptor, the kernel compares those that this uid has in flight with the sender's soft limit:
/// with a higher one than guests have, guests cannot use it up.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    let wanted = limit.maximum.unwrap_or(u64::MAX).min(OPEN_FILES);
    let raised = Rlimit {
        current: Some(wanted),
        ..limit
    };
    if wanted > current && setrlimit(Resource::Nofile, raised).is_ok() {
        wanted
    } else {
        current
    }
}

/// Takes a copy of descriptor `number`, close-on-exec, and closes the original, so that
/// no child of this process inherits it.
pub fn inherited_descriptor(number: i32) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "descriptors 0 to 2 are not for passing on",
        ));
    }
    // SAFETY: the number is only looked at by `fcntl(F_DUPFD_CLOEXEC)`, which fails with
    // EBADF when it is not open; nothing in this process owns it yet.
    let passed = unsafe { BorrowedFd::borrow_raw(number) };
    let copy = rustix::io::fcntl_dupfd_cloexec(passed.as_fd(), 3)?;
    // SAFETY: the original came from exec, so no owner of it exists in this process.
    unsafe { rustix::io::close(number) };
    Ok(copy)
}

/// Supplementary groups of the process at the other end of a unix socket, when it connected.
pub fn peer_groups(socket: impl AsFd) -> io::Result<Vec<u32>> {
    // More than NGROUPS_MAX, the kernel's limit for one process.
    let mut groups = vec![0_u32; 65_537];
    let mut length = libc::socklen_t::try_from(size_of_val(groups.as_slice()))
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the buffer has `length` bytes, which the kernel replaces by what it wrote.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    groups.truncate(length as usize / size_of::<u32>());
    Ok(groups)
}
