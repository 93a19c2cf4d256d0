//! Connects to `control.sock` of a run through the open descriptor of its directory, because the
//! path of a state directory may be longer than the 107 bytes of `sun_path`.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::path::{Path, PathBuf};
use wp_codebox_contracts::CONTROL_SOCKET;

/// Open descriptor of a run directory, which contains the control socket.
#[derive(Debug)]
pub struct ControlSocket(OwnedFd);

impl ControlSocket {
    /// Opens the run directory, which must not be a symbolic link.
    ///
    /// # Errors
    /// Fails with the errno of `open`.
    pub fn of(run_dir: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(run_dir, flags, Mode::empty()).map(Self)
    }

    /// Returns a path of the control socket that fits `sun_path`. It is valid while this value
    /// exists.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}/{CONTROL_SOCKET}", self.0.as_raw_fd()).into()
    }

    /// Connects to the control socket. `EAGAIN` means that its listen backlog is full.
    pub(crate) fn connect(&self) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&stream, &SocketAddrUnix::new(self.path())?)?;
        // Only `connect` must not block; a thread that sends on the socket later needs blocking
        // mode.
        rustix::io::ioctl_fionbio(&stream, false)?;
        Ok(stream)
    }
}
