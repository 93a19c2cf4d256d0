//! The listening sockets through which a guest reaches the egress bridge (the runner's proxy to the
//! network) and the runner's mail server.
//!
//! A listening socket belongs to the network namespace and the file system in which it was created,
//! no matter which process accepts on it. The launcher creates the sockets inside the guest and
//! sends them to the runner. The guest has no other connection to the outside, because its network
//! namespace contains only the loopback interface. Neither a bind mount of a host path nor a helper
//! process in the guest is needed.

use crate::error::{At, Failure, Step};
use crate::mounting::Tree;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, chmodat};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen as start, socket_with,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use wp_codebox_contracts::{EgressSockets, LaunchPlan};

/// Maximum number of connections that wait to be accepted on one socket.
const BACKLOG: i32 = 128;
/// File mode of the unix socket: every user of the guest may connect.
const MODE: u32 = 0o666;

/// State number of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";
/// `Flags` value of a listening socket in `/proc/net/unix`.
const ACCEPTING: &str = "00010000";

/// The listening sockets on which the egress bridge accepts: a unix socket and a TCP socket.
pub(crate) struct Listeners {
    pub(crate) unix: OwnedFd,
    pub(crate) tcp: OwnedFd,
}

/// Creates both listening sockets. Call it while the guest's tree is still writable and after the
/// loopback interface is up.
pub(crate) fn listen(sockets: &EgressSockets, tree: &Tree) -> Result<Listeners, Failure> {
    Ok(Listeners {
        unix: unix(sockets, tree)?,
        tcp: tcp(sockets.port)?,
    })
}

fn unix(sockets: &EgressSockets, tree: &Tree) -> Result<OwnedFd, Failure> {
    let path = sockets.socket.as_str();
    let socket = stream(AddressFamily::UNIX).at(Step::Egress, path)?;
    // `parent` is opened without following links, and binding relative to it keeps the socket path
    // below 108 bytes.
    let parent = tree.parent(&sockets.socket)?;
    rustix::process::fchdir(&parent).at(Step::Egress, path)?;
    let name = sockets.socket.name();
    let address = SocketAddrUnix::new(name).at(Step::Egress, path)?;
    bind(&socket, &address).at(Step::Egress, path)?;
    rustix::process::chdir("/").at(Step::Egress, path)?;
    let mode = Mode::from_raw_mode(MODE);
    chmodat(&parent, name, mode, AtFlags::empty()).at(Step::Egress, path)?;
    start(&socket, BACKLOG).at(Step::Egress, path)?;
    Ok(socket)
}

fn tcp(port: u16) -> Result<OwnedFd, Failure> {
    let socket = stream(AddressFamily::INET).at(Step::Egress, "127.0.0.1")?;
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    bind(&socket, &address).at(Step::Egress, "127.0.0.1")?;
    start(&socket, BACKLOG).at(Step::Egress, "127.0.0.1")?;
    Ok(socket)
}

fn stream(family: AddressFamily) -> Result<OwnedFd, rustix::io::Errno> {
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
}

/// Creates the listening socket for mail. Its port may be below 1024: this process still has every
/// capability over its network namespace.
pub(crate) fn listen_for_mail(port: u16) -> Result<OwnedFd, Failure> {
    tcp(port)
}

/// Describes the listening sockets of this network namespace for the isolation report; fails unless
/// they are exactly those in the launch plan.
pub(crate) fn observe(plan: &LaunchPlan) -> Result<String, Failure> {
    let mut tcp: Vec<String> = ["tcp", "tcp6"]
        .into_iter()
        .map(listening)
        .collect::<Result<Vec<_>, _>>()?
        .concat();
    let unix = table("unix")?
        .lines()
        .filter(|line| line.split_whitespace().nth(3) == Some(ACCEPTING))
        .count();
    let wrong = |what: &str| Err(Failure::rule(Step::Probe, what));
    let address = u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets());
    let bridge = plan.egress.as_ref();
    let ports = bridge.map(|sockets| sockets.port).into_iter();
    let mut planned: Vec<String> = ports
        .chain(plan.mail)
        .map(|port| format!("{address:08X}:{port:04X}"))
        .collect();
    planned.sort();
    tcp.sort();
    if tcp != planned || unix != usize::from(bridge.is_some()) {
        return wrong("the listening sockets, which differ from the plan");
    }
    let mail = plan
        .mail
        .map(|port| format!("for the mail capture only: 127.0.0.1:{port}"));
    let bridge = bridge
        .map(|sockets| {
            let path = sockets.socket.as_str();
            let stat = rustix::fs::lstat(path).at(Step::Probe, path)?;
            if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
                return wrong("the egress socket, which is missing");
            }
            Ok(format!(
                "for the egress bridge only: {path}, 127.0.0.1:{}",
                sockets.port
            ))
        })
        .transpose()?;
    let listening: Vec<String> = bridge.into_iter().chain(mail).collect();
    Ok(match listening.is_empty() {
        true => "nothing listens".to_owned(),
        false => format!("listening, {}", listening.join("; ")),
    })
}

/// Returns the local addresses of listening TCP sockets, as the kernel prints them.
fn listening(family: &str) -> Result<Vec<String>, Failure> {
    let text = table(family)?;
    let rows = text.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next()?;
        (fields.nth(1)? == LISTEN).then(|| local.to_owned())
    });
    Ok(rows.collect())
}

/// Reads a socket table of this network namespace; returns an empty text when the kernel lacks the
/// address family.
fn table(family: &str) -> Result<String, Failure> {
    let path = format!("/proc/self/net/{family}");
    match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        other => other.at(Step::Probe, &path),
    }
}
