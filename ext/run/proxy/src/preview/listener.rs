//! Listen address of a preview, reserved from the start of its run.
//!
//! A requested port is checked before the run starts. The check fails if another program listens on
//! the port or another run of this state directory has reserved it. The reservation is a lock on a
//! file in the state directory. No other user can open this file; the kernel releases the lock when
//! the process ends. The port is opened only when the preview opens. If a run of another state
//! directory uses the port, only this opening fails.

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::StateDir;

/// Directory of the lock files below the state directory, with one empty file for each requested
/// port.
const LOCKS: &str = "previews";

/// Listen address of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenAddress {
    /// IP address to listen on.
    pub ip: IpAddr,
    /// Port; `None` lets the kernel choose a free one.
    pub port: Option<u16>,
}

impl ListenAddress {
    /// Parses the requested address and port. The default address is 127.0.0.1; port 0 means any
    /// free port.
    pub fn new(bind: Option<&str>, port: Option<u16>) -> Result<Self, ErrorBody> {
        let ip = match bind {
            None => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some(text) => text.parse().map_err(|_| {
                let message = format!("the preview's address {text:?} is not an IP address");
                ErrorBody::new(ErrorCode::InputInvalid, message)
                    .hint("name an address of this host, such as 127.0.0.1 or 0.0.0.0")
            })?,
        };
        Ok(Self {
            ip,
            port: port.filter(|port| *port != 0),
        })
    }

    /// Returns whether the address is reachable from this machine only.
    pub fn is_loopback(self) -> bool {
        self.ip.is_loopback()
    }
}

/// Listen address of a run's preview. While this value exists, no other run of the same state
/// directory can reserve its port. An address without a port is not reserved.
#[derive(Debug)]
pub struct Reservation {
    address: ListenAddress,
    _lock: Option<OwnedFd>,
}

impl Reservation {
    /// Reserves an address. Requires the effective user to be the owner of the state directory.
    pub fn of(state: &StateDir, address: ListenAddress) -> Result<Self, ErrorBody> {
        let Some(port) = address.port else {
            return Ok(Self {
                address,
                _lock: None,
            });
        };
        let directory = state.ensure(&[LOCKS])?;
        let lock = lock_port(&directory, port).map_err(|error| match error {
            Errno::WOULDBLOCK => unavailable(&format!(
                "port {port} is reserved for the preview of another run"
            )),
            error => unavailable(&format!("port {port} cannot be reserved: {error}")),
        })?;
        // Opens a listening socket and closes it at once. Opening it fails when the port is in use.
        listen(address)?;
        Ok(Self {
            address,
            _lock: Some(lock),
        })
    }

    /// Returns the reserved address.
    pub fn address(&self) -> ListenAddress {
        self.address
    }

    /// Opens a listening socket at the reserved address.
    pub fn listen(&self) -> Result<TcpListener, ErrorBody> {
        listen(self.address)
    }
}

fn lock_port(directory: &Path, port: u16) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = directory.join(port.to_string());
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    // The file is never removed: a new file of the same name could be locked while this lock is
    // held.
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

fn listen(address: ListenAddress) -> Result<TcpListener, ErrorBody> {
    let address = SocketAddr::new(address.ip, address.port.unwrap_or(0));
    TcpListener::bind(address).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AddrInUse => "another program listens on this port".to_owned(),
            io::ErrorKind::PermissionDenied => {
                "the owner of the state directory may not use this port".to_owned()
            }
            io::ErrorKind::AddrNotAvailable => "this host does not have this address".to_owned(),
            _ => error.to_string(),
        };
        unavailable(&format!("{address}: {why}"))
    })
}

fn unavailable(why: &str) -> ErrorBody {
    let message = format!("the preview cannot be opened: {why}");
    ErrorBody::new(ErrorCode::PreviewUnavailable, message)
        .hint("choose another address or port; without a port, a free one is used")
}

#[cfg(test)]
mod unit {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicU16, Ordering};

    /// Returns a free port below the range from which the kernel assigns ports to other tests.
    fn free_port() -> u16 {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let first = 10_000 + (std::process::id() % 1000) as u16 * 20;
        (0..20)
            .map(|_| first + NEXT.fetch_add(1, Ordering::Relaxed) % 20)
            .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .unwrap()
    }

    fn state(temp: &tempfile::TempDir) -> StateDir {
        let path = temp.path().join("state");
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(12_345), Some(12_345)).unwrap();
        }
        StateDir::open(&path).unwrap()
    }

    /// Waits until the lock on the port's file is free. A child process that another test forks
    /// holds copies of this process's descriptors until its `execve`.
    fn free_again(state: &StateDir, address: ListenAddress) {
        let begun = std::time::Instant::now();
        while let Err(error) = Reservation::of(state, address) {
            assert!(begun.elapsed().as_secs() < 60, "{error:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn other_users_cannot_block_the_reservation_of_a_preview_port() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, socket};
        let temp = tempfile::tempdir().unwrap();
        let state = state(&temp);
        let port = free_port();
        // An abstract socket with the name that earlier versions used as reservation; any user can
        // bind it.
        let squatter = socket(AddressFamily::UNIX, SocketType::DGRAM, None).unwrap();
        let name = format!("wp-codebox-preview-{port}");
        let name = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        bind(&squatter, &name).unwrap();
        let address = ListenAddress::new(None, Some(port)).unwrap();
        drop(Reservation::of(&state, address).unwrap());
        let lock = state.path().join(LOCKS).join(port.to_string());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&lock), mode(lock.parent().unwrap())), (0o600, 0o700));
        if rustix::process::geteuid().is_root() {
            std::fs::set_permissions(temp.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
            let taken = |user: &str| {
                let id = ["--reuid", user, "--regid", user, "--clear-groups"];
                let mut command = std::process::Command::new("setpriv");
                command.args(id).args(["flock", "--nonblock"]).arg(&lock);
                command.arg("true").output().unwrap().status.success()
            };
            // In a run, the owner of the state directory creates the lock directory and the lock
            // file. This test runs as root, so it changes the owner of both.
            for path in [lock.parent().unwrap(), &lock] {
                std::os::unix::fs::chown(path, Some(12_345), Some(12_345)).unwrap();
            }
            assert!(taken("12345"), "control: the owner can");
            assert!(!taken("12346"));
        }
    }

    #[test]
    fn preview_port_can_be_reserved_once_and_accepts_connections_only_after_listen() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(&temp);
        let port = free_port();
        let address = ListenAddress::new(None, Some(port)).unwrap();
        let mine = Reservation::of(&state, address).unwrap();
        let code = |address| Reservation::of(&state, address).map(drop).unwrap_err().code;
        assert_eq!(code(address), ErrorCode::PreviewUnavailable);
        let connect = || std::net::TcpStream::connect(("127.0.0.1", port));
        assert!(connect().is_err());
        let listener = mine.listen().unwrap();
        assert!(connect().is_ok());
        drop((mine, listener));
        free_again(&state, address);
    }

    #[test]
    fn preview_port_in_use_cannot_be_reserved() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(&temp);
        let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = ListenAddress::new(None, Some(theirs.local_addr().unwrap().port())).unwrap();
        let error = Reservation::of(&state, address).unwrap_err();
        assert_eq!(error.code, ErrorCode::PreviewUnavailable);
        assert!(error.message.contains("listens on this port"), "{error:?}");
        drop(theirs);
        free_again(&state, address);
    }

    #[test]
    fn preview_address_must_be_an_ip_address_of_this_host() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(&temp);
        assert!(ListenAddress::new(None, Some(0)).unwrap().port.is_none());
        assert!(ListenAddress::new(None, None).unwrap().is_loopback());
        assert!(
            !ListenAddress::new(Some("0.0.0.0"), None)
                .unwrap()
                .is_loopback()
        );
        assert!(ListenAddress::new(Some("localhost"), None).is_err());
        // No host has this address: it is reserved for documentation (RFC 5737).
        let elsewhere = ListenAddress::new(Some("192.0.2.1"), Some(free_port())).unwrap();
        assert!(Reservation::of(&state, elsewhere).is_err());
    }
}
