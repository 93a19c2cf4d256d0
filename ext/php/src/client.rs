//! Detects that the client of this FastCGI request has disconnected.
//!
//! PHP notices a disconnect only when it writes to the client, and a request that waits for a run
//! writes nothing. An attached run must end with its caller, so the wait checks the connection
//! itself and then does what PHP does when a write fails: it ends the script unless
//! `ignore_user_abort` is on.
//!
//! The connection is found without reading internal structures of the server: a FastCGI worker
//! holds its listening socket, and an accepted connection has the same address (unix) or port. The
//! inode of the found socket is stored, because `fastcgi_finish_request()` closes the descriptor
//! and its number may be reused. If the connection is not identifiable, for example in a script
//! that accepts connections itself, only PHP's own detection remains.

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

/// The connection is searched among the descriptors below this number: a worker accepts it before
/// the script opens files.
const HIGHEST: RawFd = 256;

#[derive(Debug, Clone, Copy)]
enum Client {
    /// The connection was not searched for yet in this request.
    Unknown,
    /// The connection is no longer checked: it was not found, was closed, or its disconnect was
    /// handled.
    None,
    /// The connection: `fd` is valid only while it still refers to the socket with this inode.
    Connected { fd: RawFd, inode: u64 },
}

thread_local! {
    static CLIENT: Cell<Client> = const { Cell::new(Client::Unknown) };
}

/// Resets the state for a new request. Called in RINIT.
pub(crate) fn reset() {
    CLIENT.set(Client::Unknown);
}

/// Ends the script if its client has disconnected. Does not return in that case: the engine jumps
/// out (longjmp), and only values in a `BailoutGuard` are dropped.
pub(crate) fn end_if_disconnected() {
    let client = match CLIENT.get() {
        Client::Unknown => find(),
        known => known,
    };
    CLIENT.set(client);
    let Client::Connected { fd, inode } = client else {
        return;
    };
    // SAFETY: the borrow ends with this call; a closed descriptor number gives an error.
    let connection = unsafe { BorrowedFd::borrow_raw(fd) };
    if fstat(connection).map_or(true, |stat| stat.st_ino != inode) {
        CLIENT.set(Client::None);
    } else if !ignored() && hung_up(connection) {
        // The connection is not checked again: a shutdown function that waits for a run must not be
        // ended, too.
        CLIENT.set(Client::None);
        // SAFETY: this is the PHP thread during a request; the call jumps out as the engine does
        // when a write to the client fails.
        unsafe { php_handle_aborted_connection() };
    }
}

/// Returns whether a disconnect has no further effect: `ignore_user_abort` is on, or PHP has
/// already aborted the script.
fn ignored() -> bool {
    // SAFETY: this is the PHP thread during a request, so the globals are set up.
    unsafe {
        let globals = ext_php_rs_process_globals();
        (*globals).ignore_user_abort || (*globals).connection_status != 0
    }
}

/// Returns whether the client has disconnected. A client that only shut down its sending side
/// counts as connected on unix sockets; TCP cannot distinguish that from a close, and no web server
/// does it.
fn hung_up(connection: BorrowedFd<'_>) -> bool {
    let local = getsockname(connection).is_ok_and(|name| SocketName::of(&name).is_local());
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
    // SAFETY: the borrow ends with the call that uses it; a closed descriptor number gives an
    // error.
    let socket = |fd| unsafe { BorrowedFd::borrow_raw(fd) };
    let streams: Vec<(RawFd, bool, SocketName)> = (0..HIGHEST)
        .filter(|fd| socket_type(socket(*fd)) == Ok(SocketType::STREAM))
        .filter_map(|fd| {
            let listens = socket_acceptconn(socket(fd)).ok()?;
            let name = SocketName::of(&getsockname(socket(fd)).ok()?);
            (name != SocketName::Other).then_some((fd, listens, name))
        })
        .collect();
    let accepted = |(_, listens, name): &&(RawFd, bool, SocketName)| {
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
    // SAFETY: set before any module starts; the name is NULL or NUL-terminated and static.
    let name = unsafe {
        let name = (*ext_php_rs_sapi_module()).name;
        if name.is_null() {
            return false;
        }
        CStr::from_ptr(name)
    };
    matches!(name.to_bytes(), b"fpm-fcgi" | b"cgi-fcgi")
}

/// Address of a socket, reduced to what a listening socket shares with its accepted connections:
/// the unix path or the TCP port.
#[derive(Debug, PartialEq, Eq)]
enum SocketName {
    Path(Vec<u8>),
    Port(u16),
    Other,
}

impl SocketName {
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
