//! Resources that a process gets from its parent or a peer: inherited file descriptors, the limit
//! on open files, the groups of a socket peer.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Limit on open files that this process requests. It exceeds what the process opens and what all
/// guests of its user may have in flight (sent, not received yet) over unix sockets.
const OPEN_FILES: u64 = 65_536;

/// Raises the soft limit on open files to the hard limit, at most to `OPEN_FILES`, and returns the
/// new soft limit.
/// When a process sends a file descriptor, the kernel compares the uid's descriptors in flight with
/// the sender's soft limit. This process needs a higher limit than the guests, so that guests
/// cannot use it up.
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

/// Duplicates descriptor `number` with close-on-exec and closes the original, so that no child of
/// this process inherits it.
pub fn inherited_descriptor(number: i32) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "an inherited descriptor must have a number above 2",
        ));
    }
    // SAFETY: `fcntl(F_DUPFD_CLOEXEC)` only reads the number and fails with EBADF when it is not
    // open; no value in this process owns it yet.
    let passed = unsafe { BorrowedFd::borrow_raw(number) };
    let copy = rustix::io::fcntl_dupfd_cloexec(passed.as_fd(), 3)?;
    // SAFETY: the original was inherited through `execve`, so no value in this process owns it.
    unsafe { rustix::io::close(number) };
    Ok(copy)
}

/// Returns the supplementary groups that the peer of a unix socket had when it connected.
pub fn peer_groups(socket: impl AsFd) -> io::Result<Vec<u32>> {
    // One more than NGROUPS_MAX, the kernel's limit for one process.
    let mut groups = vec![0_u32; 65_537];
    let mut length = libc::socklen_t::try_from(size_of_val(groups.as_slice()))
        .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the buffer has `length` bytes; the kernel replaces `length` by the number it wrote.
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
