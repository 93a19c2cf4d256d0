//! Locks, leases, inotify, sockets, FIFOs and dirty pages of host files that a guest can open.
//!
//! In each test a host program and a guest use the same file, through every kind of mount. The
//! guest must not be able to observe what the host program does with the file, and the host program
//! must not be able to observe what the guest does. As control, a second host process in the place
//! of the guest can do so.

use crate::concurrent_programs::{Piped, launch_piped};
use crate::fixture::*;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use wp_codebox_backend_native::{
    Guest, GuestEgress, GuestSpec, PlannedComponent, PlannedComponents, ProgramDirectory, Template,
    TemplateAccess, build_plan,
};
use wp_codebox_contracts::{
    BindSource, ErrorBody, GuestPath, HostSource, LaunchMount, LaunchPlan, Limits, MountAccess,
    MountView, StagedFile,
};

const PROBE: &str = "/run/codebox/staged/probe";
const STAGED: &str = "/run/codebox/staged/data";
/// Number of times that a test tries to observe a page before it fails: the kernel may write or
/// drop a page by itself at any time.
const TRIES: usize = 5;

/// A host directory or single file that a guest can read, and its path in the guest.
struct SharedPath {
    kind: &'static str,
    host: PathBuf,
    guest: String,
    directory: bool,
}

impl SharedPath {
    /// Returns host path and guest path of a file that both can read: of this path itself, or of a
    /// file in it if it is a directory.
    fn file(&self) -> (String, String) {
        if self.directory {
            (self.below("data"), format!("{}/data", self.guest))
        } else {
            (self.host.display().to_string(), self.guest.clone())
        }
    }

    fn below(&self, name: &str) -> String {
        self.host.join(name).display().to_string()
    }
}

/// A directory that is removed recursively on drop.
struct Base(PathBuf);

impl Base {
    /// Creates the directory on a disk file system, because the tests observe when pages are
    /// written to disk, which never happens on a tmpfs.
    fn new(name: &str) -> Self {
        let beside = [std::env::temp_dir(), PathBuf::from("/var/tmp")];
        let on_disk = |path: &PathBuf| {
            let found = rustix::fs::statfs(path).unwrap();
            found.f_type != libc::TMPFS_MAGIC
        };
        let parent = beside.into_iter().find(on_disk);
        let parent = parent.unwrap_or_else(|| panic!("TMPDIR or /var/tmp must lie on a disk"));
        let path = parent.join(format!("wp-codebox-{name}-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn directory(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("data"), "data").unwrap();
        path
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn host(path: &Path) -> HostSource {
    HostSource::of(path.to_str().unwrap())
}

/// Returns a launch plan that uses every kind of mount on a directory of this test, and the shared
/// paths.
fn every_kind(base: &Base) -> (LaunchPlan, Vec<SharedPath>) {
    let fixture = fixture();
    let guest = |path: &str| GuestPath::new(path).unwrap();
    let mut places = Vec::new();
    let mut place = |kind, at: &str| {
        let host = base.directory(kind);
        places.push(SharedPath {
            kind,
            host: host.clone(),
            guest: at.to_owned(),
            directory: true,
        });
        host
    };
    let core = place("core", "/wordpress");
    fs::create_dir(core.join("wp-content")).unwrap();
    let share = place("share", "/opt/codebox");
    let content = place("snapshot layer", "/wordpress/wp-content");
    fs::create_dir_all(content.join("mu-plugins/part")).unwrap();
    let mut readonly = mount(
        0,
        &place("read-only mount", "/workspace/ro"),
        "/workspace/ro",
    );
    readonly.access = MountAccess::Readonly;
    readonly.view = MountView::Bind;
    let writable = mount(
        1,
        &place("writable mount", "/workspace/rw"),
        "/workspace/rw",
    );
    let mut check = mount(2, &base.directory("checked source"), "/workspace/check");
    let change = place("captured change", "/workspace/check");
    check.lowers.insert(0, host(&change));
    let components = PlannedComponents {
        rows: vec![PlannedComponent {
            lowers: vec![host(&place("component", "/run/codebox/components/part"))],
            target: guest("/wordpress/wp-content/mu-plugins/part"),
        }],
        list: "{}".to_owned(),
    };
    let programs = [ProgramDirectory {
        source: host(&place("programs", "/opt/agents/tool")),
        target: guest("/opt/agents/tool"),
    }];
    // The plan step for this directory is of the kind that mounts /usr and the other system
    // directories.
    let system = place("system directory", "/srv/system");
    let single = base.directory("staged").join("data");
    places.push(SharedPath {
        kind: "staged file",
        host: single.clone(),
        guest: STAGED.to_owned(),
        directory: false,
    });
    let staged = |source: &Path, target: &str| StagedFile {
        source: source.to_str().unwrap().to_owned(),
        target: target.to_owned(),
    };
    let mut plan = build_plan(&GuestSpec {
        host: &fixture.host,
        php: &fixture.php,
        share_dir: share.to_str().unwrap(),
        template: &Template {
            core: core.to_str().unwrap().to_owned(),
            ..template().clone()
        },
        template_access: TemplateAccess::Run,
        mounts: &[readonly, writable, check],
        content: &[host(&content)],
        components: &components,
        programs: &programs,
        task_json: "",
        staged: &[staged(&fixture.probe, PROBE), staged(&single, STAGED)],
        limits: Limits::default(),
        egress: &GuestEgress::Denied,
    })
    .unwrap();
    plan.mounts.push(LaunchMount::Bind {
        source: BindSource::Host(host(&system)),
        target: guest("/srv/system"),
        writable: false,
    });
    (plan, places)
}

/// A test program, in the guest or on the host, that answers each request line with one line.
trait Asked {
    fn ask(&mut self, verb: &str, path: &str) -> String;
}

impl Asked for Piped {
    fn ask(&mut self, verb: &str, path: &str) -> String {
        let line = format!("{verb} {path}\n");
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        self.line()
    }
}

/// The test program as a process of the host.
struct Neighbour {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Neighbour {
    fn start() -> Self {
        let mut child = Command::new(&fixture().probe)
            .arg("sharing")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }
}

impl Asked for Neighbour {
    fn ask(&mut self, verb: &str, path: &str) -> String {
        writeln!(self.input, "{verb} {path}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A guest with the test program in it, and two processes of the test program on the host.
struct Bench {
    _guest: Guest,
    inside: Piped,
    one: Neighbour,
    other: Neighbour,
    places: Vec<SharedPath>,
    _base: Base,
}

fn bench(name: &str) -> Bench {
    fixture();
    let base = Base::new(name);
    let (plan, places) = every_kind(&base);
    let mut guest = launch(&plan).unwrap();
    let inside = launch_piped(&mut guest, &[PROBE, "sharing"]);
    Bench {
        _guest: guest,
        inside,
        one: Neighbour::start(),
        other: Neighbour::start(),
        places,
        _base: base,
    }
}

#[test]
fn file_locks_are_not_shared_between_host_and_guest() {
    let mut bench = bench("locks");
    for place in &bench.places {
        let (outside, within) = place.file();
        let kind = place.kind;
        assert_eq!(bench.one.ask("hold-write", &outside), "ok", "{kind}");
        for verb in ["flock", "read-lock"] {
            let control = bench.other.ask(verb, &outside);
            assert_eq!(control, "EAGAIN", "control: {verb}, {kind}");
            assert_eq!(bench.inside.ask(verb, &within), "ok", "{verb}, {kind}");
        }
        bench.one.ask("drop", "");
        assert_eq!(bench.inside.ask("hold", &within), "ok", "{kind}");
        for verb in ["flock", "write-lock"] {
            assert_eq!(bench.one.ask(verb, &outside), "ok", "{verb}, {kind}");
        }
        bench.inside.ask("drop", "");
    }
}

#[test]
fn file_leases_and_directory_notifications_fail_in_the_guest_on_host_files() {
    let mut bench = bench("leases");
    for place in &bench.places {
        let (outside, within) = place.file();
        let kind = place.kind;
        assert_eq!(bench.one.ask("lease", &outside), "ok", "control: {kind}");
        assert_eq!(bench.inside.ask("lease", &within), "EPERM", "{kind}");
        if place.directory {
            let outside = place.host.to_str().unwrap();
            assert_eq!(bench.one.ask("notify", outside), "ok", "control: {kind}");
            assert_eq!(bench.inside.ask("notify", &place.guest), "EPERM", "{kind}");
        }
    }
}

#[test]
fn host_socket_or_fifo_created_after_launch_does_not_connect_guest_and_host() {
    let mut bench = bench("late");
    for place in bench.places.iter().filter(|place| place.directory) {
        let kind = place.kind;
        let within = |name: &str| format!("{}/{name}", place.guest);
        // The address of a unix socket is limited to 108 bytes. With a longer path the attempt
        // would fail only for that reason.
        assert!(place.below("sock").len() < 108);
        let _listener = UnixListener::bind(place.host.join("sock")).unwrap();
        let control = bench.one.ask("connect", &place.below("sock"));
        assert_eq!(control, "ok", "control: {kind}");
        let seen = bench.inside.ask("connect", &within("sock"));
        assert_eq!(seen, "ECONNREFUSED", "{kind}");

        let fifo = place.host.join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        // Opening the FIFO for reading and writing gives it both a reader and a writer from the
        // start.
        let mut both = fs::File::options()
            .read(true)
            .write(true)
            .open(&fifo)
            .unwrap();
        both.write_all(b"x").unwrap();
        assert_eq!(bench.inside.ask("read", &within("fifo")), "empty", "{kind}");
        let control = bench.one.ask("read", &place.below("fifo"));
        assert_eq!(control, "ok", "control: {kind}");
    }
}

#[test]
fn inotify_in_the_guest_does_not_see_host_file_access() {
    let mut bench = bench("watches");
    for place in &bench.places {
        let (outside, within) = place.file();
        let kind = place.kind;
        for (watcher, path, expected) in [
            (&mut bench.inside as &mut dyn Asked, &within, "silent"),
            (&mut bench.other, &outside, "ok"),
        ] {
            assert_eq!(watcher.ask("watch", path), "ok", "{kind}");
            assert_eq!(bench.one.ask("read", &outside), "ok", "{kind}");
            assert_eq!(watcher.ask("watched", ""), expected, "{kind}");
        }
    }
    // This part of the test watches a system directory in which every host program looks for
    // libraries.
    for (watcher, expected) in [
        (&mut bench.inside as &mut dyn Asked, "silent"),
        (&mut bench.other, "ok"),
    ] {
        assert_eq!(watcher.ask("watch", "/usr/lib"), "ok");
        assert_eq!(bench.one.ask("read", "/usr/lib/os-release"), "ok");
        assert_eq!(watcher.ask("watched", ""), expected, "/usr/lib");
    }
}

#[test]
fn inotify_in_the_guest_reports_host_reads_of_dev_null_but_not_of_a_shared_file() {
    let mut bench = bench("devices");
    assert_eq!(bench.inside.ask("watch", "/dev/null"), "ok");
    assert_eq!(bench.one.ask("read", "/dev/null"), "empty");
    assert_eq!(bench.inside.ask("watched", ""), "ok");
    // Control: on a regular file that guest and host share, inotify does not report the host's
    // access.
    let (outside, within) = bench.places[0].file();
    assert_eq!(bench.inside.ask("watch", &within), "ok");
    assert_eq!(bench.one.ask("read", &outside), "ok");
    assert_eq!(bench.inside.ask("watched", ""), "silent");
}

#[test]
fn sync_in_the_guest_does_not_write_dirty_host_pages() {
    let mut bench = bench("syncs");
    for place in &bench.places {
        let (outside, within) = place.file();
        let kind = place.kind;
        let dirty =
            |bench: &mut Neighbour| -> u32 { bench.ask("dirty", &outside).parse().unwrap() };
        let mut kept = false;
        for _ in 0..TRIES {
            // Written without truncating: ext4 writes a truncated file to disk on close.
            let mut file = fs::File::options().write(true).open(&outside).unwrap();
            file.write_all(&[b'x'; 64 * 1024]).unwrap();
            assert_eq!(bench.inside.ask("write-back", &within), "ok", "{kind}");
            // The kernel may have written the pages to disk by itself before this check; then try
            // again.
            kept = dirty(&mut bench.one) > 0;
            if kept {
                break;
            }
        }
        assert!(kept, "{kind}: no page is dirty after a sync inside");
        assert_eq!(bench.other.ask("write-back", &outside), "ok");
        assert_eq!(dirty(&mut bench.one), 0, "control: {kind}");
    }
}

#[test]
fn fadvise_dontneed_in_the_guest_does_not_evict_the_host_page_cache() {
    let mut bench = bench("cache");
    for place in &bench.places {
        let (outside, within) = place.file();
        let kind = place.kind;
        let cached = |bench: &mut Neighbour| bench.ask("cached", &outside) != "0";
        assert_eq!(bench.one.ask("write-back", &outside), "ok", "{kind}");
        let mut kept = false;
        for _ in 0..TRIES {
            assert_eq!(bench.one.ask("read", &outside), "ok", "{kind}");
            assert_eq!(bench.inside.ask("discard", &within), "ok", "{kind}");
            // The kernel may have dropped the page by itself before this check; then try again.
            kept = cached(&mut bench.one);
            if kept {
                break;
            }
        }
        assert!(kept, "{kind}");
        assert_eq!(bench.one.ask("discard", &outside), "ok", "{kind}");
        assert!(!cached(&mut bench.one), "control: {kind}");
    }
    assert_eq!(bench.inside.ask("page-out", ""), "ok");
    assert_eq!(bench.one.ask("page-out", ""), "EINVAL", "control");
}

#[test]
fn launch_is_refused_if_a_host_file_to_copy_is_special_or_too_large() {
    let base = Base::new("copies");
    let (plan, _) = every_kind(&base);
    let with = |name: &str, times: usize| {
        let mut plan = plan.clone();
        plan.mounts.extend((0..times).map(|at| LaunchMount::Bind {
            source: BindSource::Host(host(&base.0.join(name))),
            target: GuestPath::new(format!("/srv/file-{at}")).unwrap(),
            writable: false,
        }));
        launch(&plan).map(drop).map_err(ErrorBody::from)
    };
    let sized = |name: &str, bytes| {
        let file = fs::File::create(base.0.join(name)).unwrap();
        file.set_len(bytes).unwrap();
    };
    sized("largest", 16 * 1024 * 1024);
    sized("larger", 16 * 1024 * 1024 + 1);
    let _listener = UnixListener::bind(base.0.join("socket")).unwrap();
    with("largest", 1).unwrap();
    for (name, times, result) in [
        ("larger", 1, "File too large"),
        ("largest", 17, "File too large"),
        ("socket", 1, "Invalid argument"),
    ] {
        let body = with(name, times).unwrap_err();
        let message = &body.message;
        assert!(
            message.contains("bind") && message.contains(result),
            "{message}"
        );
        let hinted = body.hints.iter().any(|hint| hint.contains("16 MiB"));
        assert_eq!(hinted, result == "File too large", "{:?}", body.hints);
    }
}

#[test]
fn proc_in_the_guest_contains_no_host_paths() {
    let mut bench = bench("paths");
    // Search for the name of the test's own directory, since `/var` or `/tmp` alone would match
    // other paths.
    let base = bench
        ._base
        .0
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    let fixture = fixture()
        .root
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    for file in ["mountinfo", "mounts", "mountstats", "maps", "cgroup"] {
        let text = sh(&mut bench._guest, &format!("cat /proc/self/{file}")).ok();
        assert!(!text.is_empty(), "{file}");
        for name in [&base, &fixture] {
            assert!(!text.contains(name.as_str()), "{file}: {text}");
        }
    }
    let own = fs::read_to_string("/proc/self/cmdline").unwrap()
        + &fs::read_to_string("/proc/self/maps").unwrap();
    assert!(
        own.contains("sandbox"),
        "control: this process's own maps name its program"
    );
}
