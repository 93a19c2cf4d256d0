//! Targets of the attacks: files, servers, processes and IPC objects of the host, created for the
//! suite.
//!
//! `{NAME}` in the attack table is a placeholder for one of these targets; its value may differ
//! between a guest and the host.

use crate::fixture::{directory, fixture, template};
use crate::outside::Outside;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Text in every host file that guests must not read.
pub const MARKER: &str = "marker-of-the-host";

/// Names of placeholders in the attack table, and their values.
pub type Names = BTreeMap<&'static str, String>;

/// Replaces every `{NAME}` placeholder in a text by its value.
pub fn fill(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

/// Targets of attacks on the host, removed on drop.
pub struct Host {
    /// Values of the placeholders for targets outside of every guest. Attempts in guests and on the
    /// host use the same values.
    pub names: Names,
    /// Host directories that no guest may change.
    pub guarded: Vec<PathBuf>,
    /// Source directory of the read-only mount.
    pub readonly: PathBuf,
    /// Source directory of the writable mount.
    pub writable: PathBuf,
    /// A host file that guests get as a staged file (a single host file, read-only).
    pub given: PathBuf,
    /// Directory of programs with a set-uid bit and with a file capability.
    pub privileged: PathBuf,
    target: Child,
    queues: Queues,
    _servers: Vec<Box<dyn std::any::Any>>,
    _lock: fs::File,
}

/// System V and POSIX IPC objects in the host's IPC namespace, as targets.
struct Queues {
    shm: i32,
    msg: i32,
    sem: i32,
    mq: CString,
    shared_file: PathBuf,
}

impl Queues {
    fn make() -> Self {
        let mq = CString::new(format!("attack-{}", std::process::id())).unwrap();
        let shared_file = PathBuf::from(format!("/dev/shm/attack-{}", std::process::id()));
        fs::write(&shared_file, MARKER).unwrap();
        // SAFETY: the calls get numbers, one NUL-terminated name and one message of the given size;
        // name and message outlive the calls.
        unsafe {
            let slash = CString::new(format!("/{}", mq.to_str().unwrap())).unwrap();
            let queue = libc::mq_open(
                slash.as_ptr(),
                libc::O_CREAT | libc::O_RDWR,
                0o600,
                std::ptr::null::<libc::mq_attr>(),
            );
            assert!(queue >= 0, "{}", std::io::Error::last_os_error());
            let msg = libc::msgget(libc::IPC_PRIVATE, 0o600);
            let mut message = [1_i64, 1];
            assert_eq!(libc::msgsnd(msg, (&raw mut message).cast(), 8, 0), 0);
            Self {
                shm: libc::shmget(libc::IPC_PRIVATE, 4096, 0o600),
                msg,
                sem: libc::semget(libc::IPC_PRIVATE, 1, 0o600),
                mq,
                shared_file,
            }
        }
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        let slash = CString::new(format!("/{}", self.mq.to_str().unwrap_or(""))).unwrap();
        // SAFETY: removes the objects created above, by number and name.
        unsafe {
            libc::shmctl(self.shm, libc::IPC_RMID, std::ptr::null_mut());
            libc::msgctl(self.msg, libc::IPC_RMID, std::ptr::null_mut());
            libc::semctl(self.sem, 0, libc::IPC_RMID);
            libc::mq_unlink(slash.as_ptr());
        }
        let _ = fs::remove_file(&self.shared_file);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.target.kill();
        let _ = self.target.wait();
    }
}

fn file(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, format!("{MARKER}\n")).unwrap();
    path
}

impl Host {
    pub fn make(outside: &mut Outside) -> Self {
        let fixture = fixture();
        let secrets = directory("host");
        let home = directory("home");
        let (readonly, writable) = (directory("ro"), directory("rw"));
        let given = file(&directory("given"), "given.txt");
        let copies = directory("copies");
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let mut names = Names::new();
        for place in [&readonly, &writable] {
            file(place, "file.txt");
        }
        let beside = |place: &Path| text(file(place, "control.txt"));
        names.extend([
            ("PROBE", text(fixture.probe.clone())),
            ("HOST_PROBE", text(fixture.probe.clone())),
            ("SECRET", text(file(&secrets, "secret.txt"))),
            ("SECRETS", text(secrets.clone())),
            ("STATE", text(file(&fixture.state, "attack-key"))),
            ("WPCONFIG", text(fixture.wordpress.join("wp-config.php"))),
            (
                "UPLOAD",
                text(fixture.wordpress.join("wp-content/uploads/private.txt")),
            ),
            ("HOMEFILE", text(file(&home, ".my.cnf"))),
            ("TOOL", text(fs::canonicalize("/bin/true").unwrap())),
            ("OUT", text(directory("out"))),
            ("RO_CONTROL", beside(&readonly)),
            ("CORE_CONTROL", beside(Path::new(&template().core))),
            ("SHARE_CONTROL", beside(Path::new(&fixture.share))),
            ("WP_CLI_CONTROL", beside(Path::new(&template().wp_cli))),
            ("GIVEN_CONTROL", beside(given.parent().unwrap())),
            ("COPY_A", text(file(&copies, "a"))),
            ("COPY_B", text(file(&copies, "b"))),
            ("COPY_C", text(file(&copies, "c"))),
            ("COPY_D", text(file(&copies, "d"))),
            ("MARKER", MARKER.to_owned()),
        ]);
        let first = |file: &str, field: usize| -> String {
            let text = fs::read_to_string(file).unwrap();
            let word = text.split_whitespace().nth(field).unwrap();
            word.split('.').next().unwrap().to_owned()
        };
        names.extend([
            ("UPTIME", first("/proc/uptime", 0)),
            ("MEMORY", first("/proc/meminfo", 1)),
        ]);
        // Programs with a set-uid bit and with a file capability. Guests get them as staged files.
        let privileged = outside.privileged_files();
        let queues = Queues::make();
        names.extend([
            ("SHM", queues.shm.to_string()),
            ("MSG", queues.msg.to_string()),
            ("SEM", queues.sem.to_string()),
            ("MQ", queues.mq.to_str().unwrap().to_owned()),
            ("SHMFILE", text(queues.shared_file.clone())),
        ]);
        let servers = servers(&secrets, &mut names);
        // The vector `host-lock` tries to notice this lock of the host. The lock is shared, so that
        // concurrent suites do not block each other.
        let lock = fs::File::open(&names["TOOL"]).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockShared).unwrap();
        let (target, pid, address) = target();
        names.extend([("PID", pid), ("ADDRESS", address)]);
        Self {
            names,
            guarded: vec![
                secrets,
                home,
                readonly.clone(),
                writable.clone(),
                given.parent().unwrap().to_owned(),
                PathBuf::from(&template().content),
            ],
            readonly,
            writable,
            given,
            privileged,
            target,
            queues,
            _servers: servers,
            _lock: lock,
        }
    }

    /// Returns whether the host's POSIX shared memory object still has its original content.
    pub fn queues_are_whole(&self) -> bool {
        fs::read_to_string(&self.queues.shared_file).is_ok_and(|text| text == MARKER)
    }
}

/// Starts a process of the same user that allows every process to trace it.
fn target() -> (Child, String, String) {
    let mut child = Command::new(&fixture().probe)
        .arg("target")
        .env("ATTACK_SECRET", MARKER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let (pid, address) = line.trim().split_once(' ').unwrap();
    let found = (pid.to_owned(), address.to_owned());
    (child, found.0, found.1)
}

/// Starts servers on the host to which every client can connect; the UDP server also answers.
fn servers(place: &Path, names: &mut Names) -> Vec<Box<dyn std::any::Any>> {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    names.insert("TCP", tcp.local_addr().unwrap().port().to_string());
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    names.insert("UDP", udp.local_addr().unwrap().port().to_string());
    std::thread::spawn(move || {
        let mut byte = [0];
        while let Ok((_, from)) = udp.recv_from(&mut byte) {
            let _ = udp.send_to(&byte, from);
        }
    });
    let name = format!("attack-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    names.insert("ABSTRACT", name);
    let (stream, datagram) = (place.join("s"), place.join("d"));
    names.insert("UNIX", stream.to_str().unwrap().to_owned());
    names.insert("DATAGRAM", datagram.to_str().unwrap().to_owned());
    vec![
        Box::new(tcp),
        Box::new(UnixListener::bind_addr(&address).unwrap()),
        Box::new(UnixListener::bind(&stream).unwrap()),
        Box::new(UnixDatagram::bind(&datagram).unwrap()),
    ]
}
