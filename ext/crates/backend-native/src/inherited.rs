//! A descriptor that a parent process passed on by number.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;

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
