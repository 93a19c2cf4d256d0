//! What the kernel had no more of.
//!
//! Epoll watches are counted per user of the host (`fs.epoll.max_user_watches`), so another
//! process of that user can take all of them, and every runtime here needs some. That is no
//! fault of the request or of this program: it is `busy`, and the same request may work later.

use std::io;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// A sentence about an error of the kernel: `busy` when something is used up, else `code`. Only
/// for callers that watch descriptors and make threads: of files, ENOSPC means a full disk.
pub fn kernel_error(code: ErrorCode, sentence: impl Into<String>, error: &io::Error) -> ErrorBody {
    let sentence = sentence.into();
    match scarce(error) {
        Some(scarce) => ErrorBody::new(ErrorCode::Busy, format!("{sentence}: {scarce}"))
            .hint("end what took them, or try again; guests with an identity of their own count apart from their user"),
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
        Errno::NOMEM => Some("the kernel has no memory left for it"),
        Errno::AGAIN => Some("this user has no process or thread left (RLIMIT_NPROC, pids.max)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn what_is_used_up_is_busy() {
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
