//! Test environment that all tests of a process share: an unprivileged user, the launcher and a
//! WordPress installation.
//!
//! If started as root, the whole test process first becomes an unprivileged user, as a supervisor does:
//! no test has rights that a run lacks.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{
    Cgroup, Choice, Database, ExecCall, ExecEnd, Execution, Guest, GuestEgress, GuestIdentity,
    GuestSpec, HostLayout, LaunchError, LaunchOptions, PhpLayout, PlannedMount, ProcessSandbox,
    Template, TemplateAccess, TemplateRequest, build_plan, choose, ensure_template, environment,
};
use wp_codebox_contracts::{
    ExecLimits, ExecRequest, ExecTerminal, ExecutionId, GuestPath, HostSource, IsolationLevel,
    LaunchPlan, Limits, MountAccess, MountView, OuterSandbox, OuterSandboxKind, OutputStream,
    StagedFile,
};

/// Environment variable with the directory of the test environment, which a child process uses
/// instead of creating its own.
pub const REUSE: &str = "CODEBOX_TEST_WORLD";
/// Uid that the tests change to; it has no passwd entry.
const USER: u32 = 61_234;

/// Test environment shared by all tests of one process.
pub struct Fixture {
    /// Temporary directory of the environment, removed at exit.
    pub root: PathBuf,
    /// Path of the launcher under test.
    pub launcher: PathBuf,
    /// Path of a complete share directory (WP-CLI, SQLite drop-in, guest programs).
    pub share: String,
    /// Path of an unmodified WordPress.
    pub wordpress: PathBuf,
    /// Path of the compiled C program that tries forbidden operations.
    pub probe: PathBuf,
    /// Path of the state directory that the tests use.
    pub state: PathBuf,
    /// System directories of the host.
    pub host: HostLayout,
    /// PHP installation of the host.
    pub php: PhpLayout,
}

static FIXTURE: OnceLock<Fixture> = OnceLock::new();
static TEMPLATE: OnceLock<Template> = OnceLock::new();

/// Returns the test environment; creates it on first use.
pub fn fixture() -> &'static Fixture {
    FIXTURE.get_or_init(|| {
        if let Some(root) = std::env::var_os(REUSE) {
            return existing(root.into());
        }
        let root = std::env::temp_dir().join(format!("wp-codebox-sandbox-{}", std::process::id()));
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        // SAFETY: registers a function that only removes the directory created here.
        unsafe { libc::atexit(remove_fixture) };
        let launcher = root.join("wp-codebox-launch");
        fs::copy(built_launcher(), &launcher).unwrap();
        let (share, wordpress) = provisioned(&root);
        let state = root.join("state");
        fs::create_dir(&state).unwrap();
        fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
        let probe = compiled_probe(&root);
        become_user(&root);
        assert_eq!(launcher, root.join("wp-codebox-launch"));
        assert_eq!(
            (share, wordpress),
            (root.join("share"), root.join("wordpress"))
        );
        assert_eq!(probe, root.join("probe"));
        existing(root)
    })
}

/// Opens a test environment that this process or its parent created earlier.
fn existing(root: PathBuf) -> Fixture {
    let state = root.join("state");
    Fixture {
        launcher: root.join("wp-codebox-launch"),
        share: root.join("share").to_str().unwrap().to_owned(),
        wordpress: root.join("wordpress"),
        probe: root.join("probe"),
        host: HostLayout::probe(),
        php: PhpLayout::discover(Path::new("/usr/bin/php"), &state).unwrap(),
        state,
        root,
    }
}

/// Compiles the C program that tries forbidden operations. It is linked statically, so it needs no
/// file of the guest.
fn compiled_probe(root: &Path) -> PathBuf {
    let mut sources: Vec<PathBuf> = fs::read_dir(repository().join("tests/sandbox/attack/probe"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "c"))
        .collect();
    sources.sort();
    let program = root.join("probe");
    let status = Command::new("cc")
        .args(["-static", "-O1", "-Wall", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .args(sources)
        .status()
        .unwrap();
    assert!(status.success());
    program
}

extern "C" fn remove_fixture() {
    if let Some(fixture) = FIXTURE.get() {
        let _ = fs::remove_dir_all(&fixture.root);
    }
}

/// Returns the path of the launcher: the one given in `CODEBOX_LAUNCH`, or one built by cargo for
/// this profile.
pub fn built_launcher() -> PathBuf {
    if let Some(path) = std::env::var_os("CODEBOX_LAUNCH") {
        return path.into();
    }
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "wp-codebox-launcher"])
        .current_dir(std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .status()
        .unwrap();
    assert!(status.success(), "the launcher does not build");
    let deps = std::env::current_exe().unwrap();
    deps.ancestors().nth(2).unwrap().join("wp-codebox-launch")
}

/// Returns the path of the checkout, or of the readable copy of its needed parts in
/// `CODEBOX_REPOSITORY`.
pub fn repository() -> PathBuf {
    std::env::var_os("CODEBOX_REPOSITORY").map_or_else(
        || Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../.."),
        PathBuf::from,
    )
}

/// Copies share directory and WordPress to where the unprivileged user can read them; returns both
/// paths.
fn provisioned(root: &Path) -> (PathBuf, PathBuf) {
    let files = std::env::var_os("CODEBOX_WPFILES").map_or_else(
        || {
            let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(
                || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache"),
                PathBuf::from,
            );
            cache.join("wp-codebox/wpfiles")
        },
        PathBuf::from,
    );
    assert!(
        files.join("latest/wordpress/wp-load.php").is_file(),
        "{files:?} holds no WordPress; run tests/provision first, or set CODEBOX_WPFILES"
    );
    let (share, wordpress) = (root.join("share"), root.join("wordpress"));
    copy(&repository().join("share"), &share);
    copy(
        &files.join("sqlite-database-integration"),
        &share.join("sqlite-database-integration"),
    );
    copy(
        &files.join("wp-cli/wp-cli.phar"),
        &share.join("wp-cli.phar"),
    );
    copy(&files.join("latest/wordpress"), &wordpress);
    delete_files_for_browsers(&wordpress);
    // Secrets that must never reach a guest.
    fs::write(wordpress.join("wp-config.php"), "<?php // parent-secret\n").unwrap();
    fs::create_dir(wordpress.join("wp-content/uploads")).unwrap();
    fs::write(wordpress.join("wp-content/uploads/private.txt"), "x").unwrap();
    (share, wordpress)
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp")
        .arg("-rp")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(status.success());
    let status = Command::new("chmod").args(["-R", "a+rX"]).arg(to).status();
    assert!(status.unwrap().success());
}

/// Deletes scripts and fonts, 57 of the 117 MB of WordPress, which PHP never reads: a guest at level
/// `reduced` has a copy of every file.
fn delete_files_for_browsers(wordpress: &Path) {
    let status = Command::new("find")
        .arg(wordpress)
        .args(["-path", "*/wp-includes/js/dist/*.js", "-delete"])
        .args(["-o", "-name", "*.woff2", "-delete"])
        .status();
    assert!(status.unwrap().success());
}

fn become_user(root: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let user = USER.to_string();
    let status = Command::new("chown")
        .args(["-R", &format!("{user}:{user}")])
        .arg(root)
        .status()
        .unwrap();
    assert!(status.success());
    // SAFETY: the calls get numbers and one null pointer with length 0; the C library changes the
    // ids of every thread.
    unsafe {
        assert_eq!(libc::setgroups(0, std::ptr::null()), 0);
        assert_eq!(libc::setresgid(USER, USER, USER), 0);
        assert_eq!(libc::setresuid(USER, USER, USER), 0);
        // Changing the user has cleared the dumpable flag, which makes /proc/self unreadable; set
        // it again.
        assert_eq!(libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
    }
}

/// Returns the WordPress template for guests; builds it on first use.
pub fn template() -> &'static Template {
    TEMPLATE.get_or_init(|| ensure_template(&template_request()).unwrap())
}

/// Returns the request with which [`template`] builds its template.
pub fn template_request() -> TemplateRequest<'static> {
    let fixture = fixture();
    TemplateRequest {
        wordpress: &fixture.wordpress,
        state_dir: &fixture.state,
        share_dir: Path::new(&fixture.share),
        launcher: &fixture.launcher,
        sandbox: configured_wrapper(),
        php: &fixture.php,
        host: &fixture.host,
        database: Database::Sqlite,
        level: IsolationLevel::Full,
        identity: shared_identity(),
    }
}

/// Specification of a guest. Tests change some fields and use the defaults for the others.
#[derive(Default)]
pub struct Spec {
    pub mounts: Vec<PlannedMount>,
    pub staged: Vec<StagedFile>,
    pub limits: Limits,
    pub egress: GuestEgress,
}

impl Spec {
    pub fn plan(&self) -> LaunchPlan {
        let fixture = fixture();
        build_plan(&GuestSpec {
            host: &fixture.host,
            php: &fixture.php,
            share_dir: &fixture.share,
            template: template(),
            template_access: TemplateAccess::Run,
            mounts: &self.mounts,
            content: &[],
            components: &wp_codebox_backend_native::PlannedComponents::default(),
            programs: &[],
            task_json: "{\"goal\":\"test\"}",
            staged: &self.staged,
            limits: self.limits,
            egress: &self.egress,
        })
        .unwrap()
    }

    pub fn launch(&self) -> Guest {
        launch(&self.plan()).unwrap()
    }
}

/// Returns the process wrapper that `CODEBOX_OUTER_SANDBOX` selects for every launcher in this
/// process.
pub fn configured_wrapper() -> &'static dyn ProcessSandbox {
    static WRAPPER: OnceLock<Choice> = OnceLock::new();
    let choice = WRAPPER.get_or_init(|| {
        let kind = match std::env::var("CODEBOX_OUTER_SANDBOX").as_deref() {
            Ok("bubblewrap") => OuterSandboxKind::Bubblewrap,
            Ok("none") | Err(_) => OuterSandboxKind::None,
            Ok(other) => panic!("CODEBOX_OUTER_SANDBOX={other}"),
        };
        let wanted = OuterSandbox {
            kind,
            ..OuterSandbox::default()
        };
        choose(&wanted, &fixture().state).unwrap()
    });
    choice.sandbox.as_ref()
}

/// Returns the identity of guests that run under the test's own kernel uid.
pub fn shared_identity() -> &'static GuestIdentity {
    static SHARED: LazyLock<GuestIdentity> =
        LazyLock::new(|| GuestIdentity::shared("this test requests no uid of its own"));
    &SHARED
}

pub fn launch(plan: &LaunchPlan) -> Result<Guest, LaunchError> {
    launch_in(plan, configured_wrapper())
}

/// Launches a guest inside the given process wrapper instead of the configured one.
pub fn launch_in(plan: &LaunchPlan, sandbox: &dyn ProcessSandbox) -> Result<Guest, LaunchError> {
    Guest::launch(
        plan,
        &LaunchOptions {
            launcher: &fixture().launcher,
            sandbox,
            ready_timeout: Duration::from_secs(20),
            cgroup: &Cgroup::none("this test creates no cgroup"),
            identity: shared_identity(),
            scratch: &wp_codebox_backend_native::ScratchStorage::of_kernel(std::env::temp_dir()),
            used: &std::sync::Arc::default(),
        },
    )
}

/// Launches a guest with default settings.
pub fn guest() -> Guest {
    Spec::default().launch()
}

/// Output of one program in a guest, and how the program ended.
#[derive(Debug)]
pub struct ProgramOutput {
    pub out: String,
    pub err: String,
    pub execution: Execution,
}

impl ProgramOutput {
    pub fn code(&self) -> i32 {
        match self.execution.end {
            ExecEnd::Exited(code) => code,
            _ => panic!("{self:?}"),
        }
    }

    /// Returns the standard output of a program; panics when the program failed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.execution.end, ExecEnd::Exited(0), "{self:?}");
        self.out
    }
}

static COUNTER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

pub fn request(argv: &[&str]) -> ExecRequest {
    let number = COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    ExecRequest {
        id: ExecutionId::new(format!("exec-{number}")).unwrap(),
        argv: argv.iter().map(|&a| a.to_owned()).collect(),
        env: environment(),
        cwd: GuestPath::new("/tmp").unwrap(),
        limits: ExecLimits::default(),
        terminal: ExecTerminal::None,
    }
}

pub fn run_request(guest: &mut Guest, request: &ExecRequest, stdin: &[u8]) -> ProgramOutput {
    let call = ExecCall {
        request,
        stdin,
        deadline: Instant::now() + Duration::from_secs(60),
        output_limit: 16 * 1024 * 1024,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let execution = guest
        .exec(&call, &mut |stream, bytes| match stream {
            OutputStream::Stdout => out.extend_from_slice(bytes),
            OutputStream::Stderr => err.extend_from_slice(bytes),
        })
        .unwrap();
    ProgramOutput {
        out: String::from_utf8_lossy(&out).into_owned(),
        err: String::from_utf8_lossy(&err).into_owned(),
        execution,
    }
}

pub fn run(guest: &mut Guest, argv: &[&str]) -> ProgramOutput {
    run_request(guest, &request(argv), &[])
}

pub fn sh(guest: &mut Guest, script: &str) -> ProgramOutput {
    run(guest, &["/bin/sh", "-c", script])
}

/// Returns a read-write mount of the host directory `source` at `target`.
pub fn mount(index: u32, source: &Path, target: &str) -> PlannedMount {
    PlannedMount {
        index,
        lowers: vec![HostSource::of(source.to_str().unwrap())],
        target: GuestPath::new(target).unwrap(),
        access: MountAccess::Readwrite,
        view: MountView::Overlay,
        git: None,
    }
}

/// Creates a new directory in the test environment.
pub fn directory(name: &str) -> PathBuf {
    // The pid is part of the name, because a child process with the same environment restarts the
    // counter.
    let path = fixture().root.join(format!(
        "{name}-{}-{}",
        std::process::id(),
        COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    ));
    fs::create_dir(&path).unwrap();
    path
}

/// Returns every file below a directory with its type, mode and content.
pub fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut queue = vec![root.to_owned()];
    while let Some(path) = queue.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            let meta = fs::symlink_metadata(entry.path()).unwrap();
            let name = entry
                .path()
                .strip_prefix(root)
                .unwrap()
                .display()
                .to_string();
            let mode = meta.permissions().mode();
            let content = if meta.is_dir() {
                queue.push(entry.path());
                "directory".to_owned()
            } else if meta.is_symlink() {
                format!("link {:?}", fs::read_link(entry.path()).unwrap())
            } else if meta.is_file() {
                format!("{:?}", fs::read(entry.path()).unwrap())
            } else {
                format!("{:?}", meta.file_type())
            };
            all.insert(name, format!("{mode:o} {content}"));
        }
    }
    all
}

/// Returns whether a process exists and is not a zombie.
pub fn alive(pid: i32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat
            .rsplit(')')
            .next()
            .unwrap_or("")
            .trim_start()
            .starts_with('Z'),
        Err(_) => false,
    }
}

/// Maximum wait for an event that occurs at once if the tested code is correct, and much later or
/// never if it is not. It is long because the machine may be busy.
pub const GENEROUS: Duration = Duration::from_secs(20);

/// Clock that ignores time in which this thread was not scheduled: each poll counts for at most
/// [`BusyClock::LOOK`].
pub struct BusyClock {
    start: Instant,
    seen: Instant,
    lived: Duration,
}

impl BusyClock {
    const PAUSE: Duration = Duration::from_millis(5);
    const LOOK: Duration = Duration::from_millis(20);

    pub fn start() -> Self {
        let now = Instant::now();
        Self {
            start: now,
            seen: now,
            lived: Duration::ZERO,
        }
    }

    /// Waits until `check` holds or this clock reaches `limit`.
    pub fn until(&mut self, limit: Duration, mut check: impl FnMut() -> bool) -> bool {
        loop {
            if check() {
                return true;
            }
            if self.lived > limit {
                return false;
            }
            std::thread::sleep(Self::PAUSE);
            let now = Instant::now();
            self.lived += now.duration_since(self.seen).min(Self::LOOK);
            self.seen = now;
        }
    }

    /// Returns the real time since the clock was started.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Waits until `check` is true; returns the elapsed time. Panics when `check` is still false after
/// 20 seconds of [`BusyClock`]. The processes that tests start run more than twice as long, so they
/// do not end by themselves within that time.
#[track_caller]
pub fn in_time(check: impl FnMut() -> bool) -> Duration {
    let mut clock = BusyClock::start();
    assert!(
        clock.until(Duration::from_secs(20), check),
        "not within 20 seconds (wall-clock time {:?})",
        clock.elapsed()
    );
    clock.elapsed()
}
