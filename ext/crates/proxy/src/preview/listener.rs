//! The address of a preview, kept from the moment its run begins.
//!
//! A port that is named is judged before anything starts: something listens there already, or
//! another run of this state directory has been promised it. The promise is a lock on a file of
//! the state directory, which no other user can open, and ends with its process; no port is open
//! before the preview is. Runs of another state directory find out when the preview opens.

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::StateDir;

/// Directory of the locks, below the state directory; one empty file for each port that was named.
const PROMISES: &str = "previews";

/// Where a preview listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Address to listen on.
    pub address: IpAddr,
    /// None: one that is free.
    pub port: Option<u16>,
}

impl Place {
    /// From what was asked for; 127.0.0.1 unless an address is named.
    pub fn new(bind: Option<&str>, port: Option<u16>) -> Result<Self, ErrorBody> {
        let address = match bind {
            None => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some(text) => text.parse().map_err(|_| {
                let message = format!("the preview's address {text:?} is no IP address");
                ErrorBody::new(ErrorCode::InputInvalid, message)
                    .hint("name an address of this host, such as 127.0.0.1 or 0.0.0.0")
            })?,
        };
        Ok(Self {
            address,
            port: port.filter(|port| *port != 0),
        })
    }

    /// Whether only this machine reaches it.
    pub fn is_loopback(self) -> bool {
        self.address.is_loopback()
    }
}

/// A place that no other run takes meanwhile.
#[derive(Debug)]
pub struct Reservation {
    place: Place,
    _promise: Option<OwnedFd>,
}

impl Reservation {
    /// Judges a place, as the owner of the state directory.
    pub fn of(state: &StateDir, place: Place) -> Result<Self, ErrorBody> {
        let Some(port) = place.port else {
            return Ok(Self {
                place,
                _promise: None,
            });
        };
        let directory = state.ensure(&[PROMISES]).map_err(|error| error.body())?;
        let promise = promise(&directory, port).map_err(|error| match error {
            Errno::WOULDBLOCK => unavailable(&format!(
                "port {port} is promised to the preview of another run"
            )),
            error => unavailable(&format!("port {port} cannot be reserved: {error}")),
        })?;
        // Only to see whether it can be had.
        listen(place)?;
        Ok(Self {
            place,
            _promise: Some(promise),
        })
    }

    /// Where.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Listens from now on.
    pub fn listen(&self) -> Result<TcpListener, ErrorBody> {
        listen(self.place)
    }
}

fn promise(directory: &Path, port: u16) -> Result<OwnedFd, Errno> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = directory.join(port.to_string());
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    // The file stays: removed, it could be locked by name once more while this lock is held.
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

fn listen(place: Place) -> Result<TcpListener, ErrorBody> {
    let address = SocketAddr::new(place.address, place.port.unwrap_or(0));
    TcpListener::bind(address).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::AddrInUse => "something listens there already".to_owned(),
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
        .hint("name another port, or none: then a free one is taken")
}

#[cfg(test)]
mod unit {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn free_port() -> u16 {
        let probe = TcpListener::bind("127.0.0.1:0").unwrap();
        probe.local_addr().unwrap().port()
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

    /// A child of another test has copies of this process's descriptors until it runs its program.
    fn free_again(state: &StateDir, place: Place) {
        let begun = std::time::Instant::now();
        while let Err(error) = Reservation::of(state, place) {
            assert!(begun.elapsed().as_secs() < 20, "{error:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    #[test]
    fn a_stranger_can_neither_take_the_old_name_nor_the_lock_of_a_port() {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, socket};
        let temp = tempfile::tempdir().unwrap();
        let state = state(&temp);
        let port = free_port();
        // Any user may bind an abstract name: earlier versions took this one for a promise.
        let squatter = socket(AddressFamily::UNIX, SocketType::DGRAM, None).unwrap();
        let name = format!("wp-codebox-preview-{port}");
        let name = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        bind(&squatter, &name).unwrap();
        let place = Place::new(None, Some(port)).unwrap();
        drop(Reservation::of(&state, place).unwrap());
        let lock = state.path().join(PROMISES).join(port.to_string());
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
            // Root made both here; in a run their owner did.
            for path in [lock.parent().unwrap(), &lock] {
                std::os::unix::fs::chown(path, Some(12_345), Some(12_345)).unwrap();
            }
            assert!(taken("12345"), "control: the owner can");
            assert!(!taken("12346"));
        }
    }

    #[test]
    fn a_port_is_promised_once_and_open_only_when_it_listens() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(&temp);
        let port = free_port();
        let place = Place::new(None, Some(port)).unwrap();
        let mine = Reservation::of(&state, place).unwrap();
        let code = |place| Reservation::of(&state, place).map(drop).unwrap_err().code;
        assert_eq!(code(place), ErrorCode::PreviewUnavailable);
        let connect = || std::net::TcpStream::connect(("127.0.0.1", port));
        assert!(connect().is_err());
        let listener = mine.listen().unwrap();
        assert!(connect().is_ok());
        drop((mine, listener));
        free_again(&state, place);
    }

    #[test]
    fn a_port_that_somebody_has_is_refused_at_once() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(&temp);
        let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = Place::new(None, Some(theirs.local_addr().unwrap().port())).unwrap();
        let error = Reservation::of(&state, place).unwrap_err();
        assert_eq!(error.code, ErrorCode::PreviewUnavailable);
        assert!(error.message.contains("listens there already"), "{error:?}");
        drop(theirs);
        free_again(&state, place);
    }

    #[test]
    fn an_address_is_one_of_this_host() {
        let temp = tempfile::tempdir().unwrap();
        let state = state(&temp);
        assert!(Place::new(None, Some(0)).unwrap().port.is_none());
        assert!(Place::new(None, None).unwrap().is_loopback());
        assert!(!Place::new(Some("0.0.0.0"), None).unwrap().is_loopback());
        assert!(Place::new(Some("localhost"), None).is_err());
        // Documentation addresses: no host has one.
        let elsewhere = Place::new(Some("192.0.2.1"), Some(free_port())).unwrap();
        assert!(Reservation::of(&state, elsewhere).is_err());
    }
}
