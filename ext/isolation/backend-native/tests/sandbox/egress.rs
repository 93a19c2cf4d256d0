//! Sockets of the egress bridge in the guest: present if the run requests network access, absent
//! otherwise. A guest has no other connection to the outside except the mail socket.

use crate::fixture::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;
use wp_codebox_backend_native::GuestEgress;
use wp_codebox_contracts::IsolationAxis;

const SOCKET: &str = "/run/codebox/egress.sock";

/// Reads the first request of a client and answers with the text `who`.
fn answer<S: Read + Write + Send + 'static>(mut stream: S, who: &'static str) {
    let _ = stream.read(&mut [0; 1024]);
    let text = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{who}",
        who.len()
    );
    let _ = stream.write_all(text.as_bytes());
}

fn network_row(guest: &wp_codebox_backend_native::Guest) -> String {
    let axes = &guest.report().axes;
    let row = axes.iter().find(|row| row.axis == IsolationAxis::Network);
    row.unwrap().evidence.clone()
}

#[test]
fn egress_sockets_in_the_guest_are_answered_by_the_runner() {
    let mut guest = Spec {
        egress: GuestEgress::Tunnel,
        ..Spec::default()
    }
    .launch();
    let sockets = guest.take_egress().unwrap();
    assert!(guest.take_egress().is_none(), "handed over once");
    assert!(network_row(&guest).contains("127.0.0.1:3128"));
    let unix = UnixListener::from(sockets.unix);
    let tcp = TcpListener::from(sockets.tcp);
    let threads: [JoinHandle<()>; 2] = [
        std::thread::spawn(move || answer(unix.accept().unwrap().0, "unix")),
        std::thread::spawn(move || answer(tcp.accept().unwrap().0, "tcp")),
    ];
    let curl = format!("curl -sS -m 60 --unix-socket {SOCKET} http://x/");
    assert_eq!(sh(&mut guest, &curl).ok(), "unix");
    assert_eq!(
        sh(&mut guest, "curl -sS -m 60 http://127.0.0.1:3128/").ok(),
        "tcp"
    );
    for thread in threads {
        thread.join().unwrap();
    }
    // The socket can be neither replaced nor removed, because its directory is read-only.
    let replace = format!("rm -f {SOCKET}; mv /run/codebox /tmp/x; ls {SOCKET}");
    assert!(sh(&mut guest, &replace).out.contains(SOCKET));
    assert_ne!(sh(&mut guest, &format!("rm {SOCKET}")).code(), 0);
    // Only the supervisor holds the listening sockets, so no process in the guest can accept.
    assert_eq!(
        sh(&mut guest, "ls /proc/1/fd 2>/dev/null | wc -l")
            .out
            .trim(),
        "0"
    );
}

#[test]
fn guest_without_network_access_has_no_egress_socket() {
    let mut guest = guest();
    assert!(guest.take_egress().is_none());
    assert!(
        network_row(&guest).contains("listening, for the mail capture only: 127.0.0.1:25"),
        "{}",
        network_row(&guest)
    );
    assert_ne!(sh(&mut guest, &format!("ls {SOCKET}")).code(), 0);
    let tried = sh(&mut guest, "curl -sS -m 60 http://127.0.0.1:3128/; echo $?");
    // curl exit code 7: connection refused. The control is the successful connection in
    // `egress_sockets_in_the_guest_are_answered_by_the_runner`.
    assert_eq!(tried.out.trim(), "7", "{tried:?}");
}

#[test]
fn mail_reaches_the_runner_and_is_refused_after_the_runner_closes_the_socket() {
    let mut guest = guest();
    let socket = guest.take_mail().unwrap();
    assert!(guest.take_mail().is_none(), "handed over once");
    let server = std::thread::spawn(move || {
        let listener = std::net::TcpListener::from(socket);
        let (mut stream, from) = listener.accept().unwrap();
        assert!(from.ip().is_loopback());
        stream.write_all(b"220 here\r\n").unwrap();
    });
    let dial = "python3 -c 'import socket; print(socket.create_connection((\"localhost\", 25), 60).recv(99))'";
    assert_eq!(sh(&mut guest, dial).ok(), "b'220 here\\r\\n'\n");
    server.join().unwrap();
    // The thread closed the listening socket, and the guest has no copy of it.
    let refused = sh(&mut guest, "curl -sS -m 60 telnet://127.0.0.1:25; echo $?");
    assert_eq!(refused.out.trim(), "7", "{refused:?}");
}

#[test]
fn egress_sockets_closed_by_the_runner_refuse_connections() {
    let mut guest = Spec {
        egress: GuestEgress::Tunnel,
        ..Spec::default()
    }
    .launch();
    drop(guest.take_egress());
    let curl = format!("curl -sS -m 60 --unix-socket {SOCKET} http://x/; echo $?");
    assert_eq!(sh(&mut guest, &curl).out.trim(), "7");
}
