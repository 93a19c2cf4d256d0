//! The address of a preview, kept from the moment its run begins.
//!
//! A port that is named is judged before anything starts: somebody listens there already, or
//! another run of this machine has been promised it. The promise is a socket with an abstract
//! name, which lives in the same network namespace as the port and dies with its process; no port
//! is open before the preview is.

use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Where a preview listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub address: IpAddr,
    /// None: one that is free.
    pub port: Option<u16>,
}

impl Place {
    /// From what was asked for; 127.0.0.1 unless an address is named.
    pub(crate) fn new(bind: Option<&str>, port: Option<u16>) -> Result<Self, ErrorBody> {
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
    pub(crate) fn is_loopback(self) -> bool {
        self.address.is_loopback()
    }
}

/// A place that no other run takes meanwhile.
#[derive(Debug)]
pub(crate) struct Reservation {
    place: Place,
    _promise: Option<OwnedFd>,
}

impl Reservation {
    /// Judges a place.
    pub(crate) fn of(place: Place) -> Result<Self, ErrorBody> {
        let Some(port) = place.port else {
            return Ok(Self {
                place,
                _promise: None,
            });
        };
        let promise = promise(port).map_err(|error| match error {
            rustix::io::Errno::ADDRINUSE => unavailable(&format!(
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
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// Listens from now on.
    pub(crate) fn listen(&self) -> Result<TcpListener, ErrorBody> {
        listen(self.place)
    }
}

fn promise(port: u16) -> Result<OwnedFd, rustix::io::Errno> {
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let name = format!("wp-codebox-preview-{port}");
    bind(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    Ok(socket)
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

    fn free_port() -> u16 {
        let probe = TcpListener::bind("127.0.0.1:0").unwrap();
        probe.local_addr().unwrap().port()
    }

    #[test]
    fn a_port_is_promised_once_and_open_only_when_it_listens() {
        let port = free_port();
        let place = Place::new(None, Some(port)).unwrap();
        let mine = Reservation::of(place).unwrap();
        let code = |place| Reservation::of(place).map(drop).unwrap_err().code;
        assert_eq!(code(place), ErrorCode::PreviewUnavailable);
        let connect = || std::net::TcpStream::connect(("127.0.0.1", port));
        assert!(connect().is_err());
        let listener = mine.listen().unwrap();
        assert!(connect().is_ok());
        drop((mine, listener));
        assert!(Reservation::of(place).is_ok());
    }

    #[test]
    fn a_port_that_somebody_has_is_refused_at_once() {
        let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = Place::new(None, Some(theirs.local_addr().unwrap().port())).unwrap();
        let error = Reservation::of(place).unwrap_err();
        assert_eq!(error.code, ErrorCode::PreviewUnavailable);
        assert!(error.message.contains("listens there already"), "{error:?}");
        drop(theirs);
        assert!(Reservation::of(place).is_ok());
    }

    #[test]
    fn an_address_is_one_of_this_host() {
        assert!(Place::new(None, Some(0)).unwrap().port.is_none());
        assert!(Place::new(None, None).unwrap().is_loopback());
        assert!(!Place::new(Some("0.0.0.0"), None).unwrap().is_loopback());
        assert!(Place::new(Some("localhost"), None).is_err());
        // Documentation addresses: no host has one.
        let elsewhere = Place::new(Some("192.0.2.1"), Some(free_port())).unwrap();
        assert!(Reservation::of(elsewhere).is_err());
    }
}
