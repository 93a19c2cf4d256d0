//! The listening sockets through which a guest reaches the egress bridge (the supervisor's proxy to the
//! network) and the supervisor's mail server.
//!
//! A listening socket belongs to the network namespace and the file system in which it was created,
//! no matter which process accepts on it. The launcher creates the sockets inside the guest and
//! sends them to the supervisor. The guest has no other connection to the outside, because its network
//! namespace contains only the loopback interface. Neither a bind mount of a host path nor a helper
//! process in the guest is needed.

use crate::error::{At, Failure, Step};
use crate::mounting::Tree;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, chmodat};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind,
    listen as start, netlink, recv, send, socket_with,
};
use std::net::{Ipv4Addr, SocketAddrV4};
use wp_codebox_contracts::{EgressSockets, LaunchPlan};

/// Maximum number of connections that wait to be accepted on one socket.
const BACKLOG: i32 = 128;
/// File mode of the unix socket: every user of the guest may connect.
const MODE: u32 = 0o666;

/// State number of a listening TCP socket.
const LISTEN: u8 = 10;
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
pub(crate) fn observe(plan: &LaunchPlan, sockets: &SocketTable) -> Result<String, Failure> {
    let mut tcp = sockets.listening()?;
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

/// A netlink socket on which the kernel lists the TCP sockets of this network namespace, opened
/// before seccomp refuses such sockets. `None` on a kernel without it.
///
/// It is asked for listening sockets only. To print `/proc/net/tcp`, the kernel searches its table
/// of all connections of the host, which took 4 to 8 ms for each address family.
pub(crate) struct SocketTable(Option<OwnedFd>);

impl SocketTable {
    pub(crate) fn open() -> Self {
        let protocol = Some(netlink::SOCK_DIAG);
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        Self(socket_with(family, kind, SocketFlags::CLOEXEC, protocol).ok())
    }

    /// Returns the local addresses of listening TCP sockets, as `/proc/net/tcp` prints them.
    fn listening(&self) -> Result<Vec<String>, Failure> {
        let mut rows = Vec::new();
        for (family, name) in [(libc::AF_INET, "tcp"), (libc::AF_INET6, "tcp6")] {
            rows.extend(
                match self.ask(family, libc::IPPROTO_TCP).at(Step::Probe, name)? {
                    Some(found) => found,
                    None => printed(name)?,
                },
            );
        }
        Ok(rows)
    }

    /// Asks the kernel for the listening sockets of an address family, one row for each. Returns
    /// `None` if there is no netlink socket or no complete answer; the caller then reads `/proc/net`.
    fn ask(&self, family: i32, protocol: i32) -> rustix::io::Result<Option<Vec<String>>> {
        let Some(socket) = &self.0 else {
            return Ok(None);
        };
        send(socket, &question(family, protocol), SendFlags::empty())?;
        let mut rows = Vec::new();
        let mut buffer = [0; 32 << 10];
        loop {
            let (_, received) = recv(socket, &mut buffer, RecvFlags::TRUNC)?;
            // The answer was longer than the buffer, and its rest is lost.
            let Some(mut rest) = buffer.get(..received) else {
                return Ok(None);
            };
            while let Some((kind, body)) = next_message(&mut rest) {
                match kind {
                    // A kernel that cannot list this protocol's sockets ends with an errno.
                    DONE if body.first_chunk().is_some_and(|error| *error != [0; 4]) => {
                        return Ok(None);
                    }
                    DONE => return Ok(Some(rows)),
                    SOCK_DIAG_BY_FAMILY => rows.extend(local_address(body)),
                    _ => return Ok(None),
                }
            }
        }
    }
}

/// Type of the netlink messages of `inet_diag`, of the question and of each row.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Type of the last netlink message of a list.
const DONE: u16 = 3;
/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;

/// Returns a `struct nlmsghdr` and a `struct inet_diag_req_v2` that ask for listening sockets.
fn question(family: i32, protocol: i32) -> [u8; HEADER + 56] {
    /// `NLM_F_REQUEST | NLM_F_DUMP`
    const FLAGS: u16 = 0x301;
    let mut bytes = [0; HEADER + 56];
    bytes[..4].copy_from_slice(&(HEADER as u32 + 56).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&FLAGS.to_ne_bytes());
    bytes[HEADER] = family as u8;
    bytes[HEADER + 1] = protocol as u8;
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&(1_u32 << LISTEN).to_ne_bytes());
    bytes
}

/// Removes the first netlink message from `bytes`; returns its type and body.
fn next_message<'b>(bytes: &mut &'b [u8]) -> Option<(u16, &'b [u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let body = bytes.get(HEADER..length)?;
    // Messages begin at multiples of four bytes.
    *bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, body))
}

/// Returns the local address of a `struct inet_diag_msg`.
fn local_address(row: &[u8]) -> Option<String> {
    let words = if i32::from(*row.first()?) == libc::AF_INET {
        1
    } else {
        4
    };
    let port = u16::from_be_bytes(*row.get(4..)?.first_chunk()?);
    let address: String = row
        .get(8..8 + 4 * words)?
        .chunks_exact(4)
        .filter_map(|word| word.first_chunk())
        .map(|word| format!("{:08X}", u32::from_ne_bytes(*word)))
        .collect();
    Some(format!("{address}:{port:04X}"))
}

/// Returns the local addresses of listening TCP sockets from the table of a family in `/proc/net`.
fn printed(family: &str) -> Result<Vec<String>, Failure> {
    let text = table(family)?;
    let rows = text.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next()?;
        (fields.nth(1)? == format!("{LISTEN:02X}")).then(|| local.to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv6Addr, TcpListener, TcpStream};

    #[test]
    fn netlink_and_proc_net_tcp_both_list_the_listening_sockets_only() {
        let four = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = four.local_addr().unwrap();
        let row = |port: u16| format!("0100007F:{port:04X}");
        // The client's end of a connection is no listening socket, so it must not be listed.
        let connected = TcpStream::connect(address).unwrap();
        let client = row(connected.local_addr().unwrap().port());
        for sockets in [SocketTable::open(), SocketTable(None)] {
            let rows = sockets.listening().unwrap();
            assert!(rows.contains(&row(address.port())), "{rows:?}");
            assert!(!rows.contains(&client), "{rows:?}");
        }
        // Not every host has IPv6.
        if let Ok(six) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
            let port = six.local_addr().unwrap().port();
            let row = format!("00000000000000000000000001000000:{port:04X}");
            for sockets in [SocketTable::open(), SocketTable(None)] {
                let rows = sockets.listening().unwrap();
                assert!(rows.contains(&row), "{rows:?}");
            }
        }
    }

    #[test]
    fn netlink_answer_for_a_protocol_that_the_kernel_does_not_list_is_none_and_not_empty() {
        let sockets = SocketTable::open();
        assert!(sockets.ask(libc::AF_INET, 200).unwrap().is_none());
        let tcp = sockets.ask(libc::AF_INET, libc::IPPROTO_TCP).unwrap();
        assert!(tcp.is_some());
    }
}
