//! Errors caused by exhausted kernel resources.
//!
//! Epoll watches are limited per user of the host (`fs.epoll.max_user_watches`), so another process
//! of that user can use all of them, and this program needs some for every guest. Neither the
//! request nor this program is at fault, so the error code is `busy`: the same request may succeed
//! later.

use std::io;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Creates an error body: with code `busy` if a kernel resource is exhausted, otherwise with the
/// given `code`. Call it only for errors of watching descriptors and starting threads: for file
/// operations, ENOSPC means a full disk.
pub fn kernel_error(code: ErrorCode, sentence: impl Into<String>, error: &io::Error) -> ErrorBody {
    let sentence = sentence.into();
    match scarce(error) {
        Some(scarce) => ErrorBody::new(ErrorCode::Busy, format!("{sentence}: {scarce}"))
            .hint("end processes that use up this resource, or try again later; guests do not count towards the limits of this user if they have a kernel uid of their own (--identity own)"),
        None => ErrorBody::new(code, sentence),
    }
}

fn scarce(error: &io::Error) -> Option<&'static str> {
    use rustix::io::Errno;
    match Errno::from_io_error(error)? {
        Errno::NOSPC => {
            Some("the kernel has no epoll watch left for this user (fs.epoll.max_user_watches)")
        }
        Errno::MFILE => Some("this process has no descriptor left (RLIMIT_NOFILE)"),
        Errno::NFILE => Some("the host has no descriptor left (fs.file-max)"),
        Errno::NOMEM => Some("the kernel has no memory left"),
        Errno::AGAIN => Some("this user has no process or thread left (RLIMIT_NPROC, pids.max)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn exhausted_kernel_resource_gives_error_code_busy() {
        let body = |errno| kernel_error(ErrorCode::Internal, "it", &io::Error::from(errno));
        for errno in [
            Errno::NOSPC,
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOMEM,
            Errno::AGAIN,
        ] {
            assert_eq!(body(errno).code, ErrorCode::Busy, "{errno}");
        }
        let full = body(Errno::NOSPC).message;
        assert!(full.contains("fs.epoll.max_user_watches"), "{full}");
        assert_eq!(body(Errno::PERM).code, ErrorCode::Internal);
    }
}
