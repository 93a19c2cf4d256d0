//! Whether the client of this request is still there, under FastCGI.
//!
//! PHP notices that a client hung up only when it writes to it, and a request that waits for a
//! run writes nothing. An attached run is to end with its caller, so a wait looks itself and
//! then does what PHP does when a write fails: it ends the script, unless `ignore_user_abort` is on.
//!
//! The connection is found without looking into the server's structures: a FastCGI worker holds
//! its listener, and an accepted connection has the listener's name (unix) or port. It is known
//! by its inode from then on, because `fastcgi_finish_request()` closes it and its number may
//! come back for something else. Where it cannot be told, as in a script that accepts
//! connections of its own, PHP's way is all there is.

use ext_php_rs::ffi::{ext_php_rs_process_globals, ext_php_rs_sapi_module};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, RawFd};
use rustix::fs::fstat;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::net::{SocketAddrAny, SocketType, getsockname};
use std::cell::Cell;
use std::ffi::CStr;

unsafe extern "C" {
    /// Ends the script when `ignore_user_abort` is off.
    fn php_handle_aborted_connection();
}

/// Connections lie low: a worker opens one before anything of the script.
const HIGHEST: RawFd = 256;

#[derive(Debug, Clone, Copy)]
enum Client {
    /// Not looked for in this request.
    Unknown,
    /// None that can be told, or it was let go.
    None,
    /// This descriptor, as long as it is this socket.
    Connected { fd: RawFd, inode: u64 },
}

thread_local! {
    static CLIENT: Cell<Client> = const { Cell::new(Client::Unknown) };
}

/// The next request has another client. Called in RINIT.
pub(crate) fn forget() {
    CLIENT.set(Client::Unknown);
}

/// Ends the script if its client hung up. Then it does not return: the engine jumps out, and
/// only values in a `BailoutGuard` are dropped.
pub(crate) fn end_if_gone() {
    let client = match CLIENT.get() {
        Client::Unknown => find(),
        known => known,
    };
    CLIENT.set(client);
    let Client::Connected { fd, inode } = client else {
        return;
    };
    // SAFETY: used for the time of this call only; a closed number gives an error.
    let connection = unsafe { BorrowedFd::borrow_raw(fd) };
    if fstat(connection).map_or(true, |stat| stat.st_ino != inode) {
        CLIENT.set(Client::None);
    } else if !ignored() && hung_up(connection) {
        // Once: shutdown functions that wait for a run are not ended again.
        CLIENT.set(Client::None);
        // SAFETY: this is the PHP thread during a request; it jumps out as the engine does
        // when a write to the client fails.
        unsafe { php_handle_aborted_connection() };
    }
}

/// Whether the script wants to outlive its client, or has been told already.
fn ignored() -> bool {
    // SAFETY: this is the PHP thread during a request, so the globals are set up.
    unsafe {
        let globals = ext_php_rs_process_globals();
        (*globals).ignore_user_abort || (*globals).connection_status != 0
    }
}

/// A client that only ended its writing is still there. TCP cannot tell that from a close, and
/// no web server does it.
fn hung_up(connection: BorrowedFd<'_>) -> bool {
    let local = getsockname(connection).is_ok_and(|name| Name::of(&name).is_local());
    let signs = if local {
        PollFlags::empty()
    } else {
        PollFlags::RDHUP
    };
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let mut looked = [PollFd::from_borrowed_fd(connection, signs)];
    matches!(poll(&mut looked, Some(&now)), Ok(1))
}

fn find() -> Client {
    if !speaks_fastcgi() {
        return Client::None;
    }
    // SAFETY: as in `end_if_gone`.
    let socket = |fd| unsafe { BorrowedFd::borrow_raw(fd) };
    let streams: Vec<(RawFd, bool, Name)> = (0..HIGHEST)
        .filter(|fd| socket_type(socket(*fd)) == Ok(SocketType::STREAM))
        .filter_map(|fd| {
            let listens = socket_acceptconn(socket(fd)).ok()?;
            let name = Name::of(&getsockname(socket(fd)).ok()?);
            (name != Name::Other).then_some((fd, listens, name))
        })
        .collect();
    let accepted = |(_, listens, name): &&(RawFd, bool, Name)| {
        !listens
            && streams
                .iter()
                .any(|(_, listening, other)| *listening && other == name)
    };
    let mut found = streams.iter().filter(accepted);
    match (found.next(), found.next()) {
        (Some((fd, ..)), None) => {
            fstat(socket(*fd)).map_or(Client::None, |stat| Client::Connected {
                fd: *fd,
                inode: stat.st_ino,
            })
        }
        (_, _) => Client::None,
    }
}

fn speaks_fastcgi() -> bool {
    // SAFETY: set up before any module; the name is NULL or NUL-terminated and static.
    let name = unsafe {
        let name = (*ext_php_rs_sapi_module()).name;
        if name.is_null() {
            return false;
        }
        CStr::from_ptr(name)
    };
    matches!(name.to_bytes(), b"fpm-fcgi" | b"cgi-fcgi")
}

/// What a listener and the connections it accepted have in common.
#[derive(Debug, PartialEq, Eq)]
enum Name {
    Path(Vec<u8>),
    Port(u16),
    Other,
}

impl Name {
    fn of(address: &SocketAddrAny) -> Self {
        if let Ok(address) = rustix::net::SocketAddrUnix::try_from(address.clone()) {
            return match (address.path_bytes(), address.abstract_name()) {
                (Some(path), _) => Self::Path(path.to_vec()),
                (None, Some(name)) => Self::Path([b"\0", name].concat()),
                (None, None) => Self::Other,
            };
        }
        match std::net::SocketAddr::try_from(address.clone()) {
            Ok(address) => Self::Port(address.port()),
            Err(_) => Self::Other,
        }
    }

    fn is_local(&self) -> bool {
        match self {
            Self::Path(_) => true,
            Self::Port(_) | Self::Other => false,
        }
    }
}
