//! `control.sock` of a run, reached through the open descriptor of its directory: the path of a
//! state directory may be longer than the 107 bytes of a socket's address.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::path::{Path, PathBuf};
use wp_codebox_contracts::CONTROL_SOCKET;

/// The socket's directory, open.
#[derive(Debug)]
pub struct ControlSocket(OwnedFd);

impl ControlSocket {
    /// Opens the run directory, which must not be a symbolic link.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of(run_dir: &Path) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::open(run_dir, flags, Mode::empty()).map(Self)
    }

    /// A path of the socket that fits an address. It is good while this value lives.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}/{CONTROL_SOCKET}", self.0.as_raw_fd()).into()
    }

    /// A connection. `EAGAIN` means that the kernel's queue of the socket is full.
    pub(crate) fn connect(&self) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&stream, &SocketAddrUnix::new(self.path())?)?;
        // Only the connect was not to wait: a thread that only sends blocks.
        rustix::io::ioctl_fionbio(&stream, false)?;
        Ok(stream)
    }
}
