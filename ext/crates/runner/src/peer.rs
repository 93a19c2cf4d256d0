//! Who is on the other side of a unix socket.

use rustix::fd::AsFd;
use rustix::net::sockopt::{socket_acceptconn, socket_peercred};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Whether a user may speak to this process: its own, or root. A request names binaries,
/// and a cancellation ends somebody's work.
pub(crate) fn may_speak(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// Refuses a frame socket whose other side may not speak. What the kernel says of it was
/// true when the connection was made.
pub(crate) fn check(socket: impl AsFd) -> Result<(), ErrorBody> {
    let refuse = |why: String| Err(ErrorBody::new(ErrorCode::Forbidden, why));
    if socket_acceptconn(&socket).unwrap_or(false) {
        return refuse(
            "the frame socket is a listener: the socket unit needs Accept=yes".to_owned(),
        );
    }
    match socket_peercred(&socket) {
        Ok(peer) if may_speak(peer.uid.as_raw()) => Ok(()),
        Ok(peer) => refuse(format!(
            "uid {} may not start runs of uid {}: connect as that user or as root",
            peer.uid.as_raw(),
            rustix::process::geteuid().as_raw()
        )),
        Err(error) => refuse(format!(
            "the frame socket is no connected unix socket ({error})"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn oneself_may_speak_and_a_listener_is_no_conversation() {
        let (a, _b) = UnixStream::pair().unwrap();
        check(&a).unwrap();
        let temp = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(temp.path().join("s")).unwrap();
        let error = check(&listener).unwrap_err();
        assert!(error.message.contains("Accept=yes"), "{error}");
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(check(&file).unwrap_err().code, ErrorCode::Forbidden);
        assert!(may_speak(0) && !may_speak(65_534));
    }
}
