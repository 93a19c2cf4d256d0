//! Guests in which the attacks are tried: one per level, a neighbour guest (a second guest that
//! attacks may not reach), and guests with special limits.

use crate::fixture::{Spec, mount};
use crate::guest::AttackGuest;
use crate::host_targets::{Host, Names, fill};
use crate::outside::{argv, result, signal_name};
use crate::table::{GuestLimits, ProbeKind};
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{ExecCall, ExecEnd};
use wp_codebox_contracts::{
    IsolationLevel, Limits, MountAccess, MountView, OutputStream, StagedFile,
};

const MIB: u64 = 1024 * 1024;
/// Maximum duration of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(40);
const STAGED: &str = "/run/codebox/staged";
/// Port of the neighbour's server on its own loopback interface.
const NEIGHBOUR_PORT: &str = "45671";

/// The guests of one isolation level, launched when first needed.
pub struct AttackGuests<'h> {
    pub level: IsolationLevel,
    host: &'h Host,
    guest: Option<AttackGuest>,
    neighbour: Option<AttackGuest>,
}

/// Returns a guest specification with everything that the attack table names.
pub fn spec(host: &Host, limits: GuestLimits) -> Spec {
    let staged = |source: &std::path::Path, name: &str| StagedFile {
        source: source.to_str().unwrap().to_owned(),
        target: format!("{STAGED}/{name}"),
    };
    let mut readonly = mount(0, &host.readonly, "/workspace/ro");
    readonly.access = MountAccess::Readonly;
    readonly.view = MountView::Bind;
    let mut all = Limits::default();
    all.memory_bytes = limits.memory_mib.map_or(all.memory_bytes, |n| n * MIB);
    all.disk_bytes = limits.disk_mib.map_or(all.disk_bytes, |n| n * MIB);
    all.processes = limits.processes.unwrap_or(all.processes);
    let mut files = vec![
        staged(&crate::fixture::fixture().probe, "probe"),
        staged(&host.given, "given.txt"),
    ];
    for name in ["setuid", "filecap"] {
        let source = host.privileged.join(name);
        // If the suite has never run as root, this file does not exist, and the controls that need
        // the file fail.
        if source.exists() {
            files.push(staged(&source, name));
        }
    }
    Spec {
        mounts: vec![readonly, mount(1, &host.writable, "/workspace/rw")],
        staged: files,
        limits: all,
        ..Spec::default()
    }
}

impl<'h> AttackGuests<'h> {
    pub fn new(level: IsolationLevel, host: &'h Host) -> Self {
        Self {
            level,
            host,
            guest: None,
            neighbour: None,
        }
    }

    /// Returns the host directory that is the source of the writable mount.
    pub fn writable_source(&self) -> std::path::PathBuf {
        self.host.writable.clone()
    }

    /// Launches a guest of this level.
    pub fn launch(&self, limits: GuestLimits) -> AttackGuest {
        AttackGuest::launch(self.level, &spec(self.host, limits))
    }

    /// Returns the values that replace `{NAME}` placeholders of the attack table when an attempt is
    /// made in this guest.
    pub fn names(&self, sandbox: &AttackGuest) -> Names {
        let mut names = self.host.names.clone();
        names.extend(
            [
                ("PROBE", "/run/codebox/staged/probe"),
                ("SETUID", "/run/codebox/staged/setuid"),
                ("FILECAP", "/run/codebox/staged/filecap"),
                ("GIVEN", "/run/codebox/staged/given.txt"),
                ("TMP", "/tmp"),
                ("DEVSHM", "/dev/shm"),
                ("RO", "/workspace/ro"),
                ("RW", "/workspace/rw"),
                ("CORE", "/wordpress"),
                ("CONTENT", "/wordpress/wp-content"),
                ("SHARE", "/opt/codebox"),
                ("TASK", "/run/codebox/task.json"),
                ("OPCACHE", "/var/cache/codebox/opcache"),
            ]
            .map(|(name, path)| (name, sandbox.path(path))),
        );
        names.insert("NEIGHBOUR_PORT", NEIGHBOUR_PORT.to_owned());
        names.insert("NEIGHBOUR_NAME", "attack-neighbour".to_owned());
        if let Some(neighbour) = &self.neighbour {
            names.insert("NEIGHBOUR", neighbour.guest.pid().to_string());
        }
        names
    }

    /// Returns the values that replace `{NAME}` placeholders when an attempt is made outside of any
    /// guest.
    pub fn outside_names(&self) -> Names {
        let mut names = self.host.names.clone();
        let privileged = |name| self.host.privileged.join(name).display().to_string();
        names.extend([
            ("SETUID", privileged("setuid")),
            ("FILECAP", privileged("filecap")),
            ("TMP", names["OUT"].clone()),
            ("DEVSHM", names["OUT"].clone()),
        ]);
        if let Some(neighbour) = &self.neighbour {
            names.insert("NEIGHBOUR", neighbour.guest.pid().to_string());
        }
        names
    }

    /// Returns the guest for ordinary attempts. Launches a new one if an attack has ended the
    /// previous one.
    pub fn guest(&mut self) -> &mut AttackGuest {
        if self.guest.is_none() {
            self.guest = Some(self.launch(GuestLimits::default()));
        }
        self.guest.as_mut().unwrap()
    }

    /// Returns the neighbour: the guest of a second, concurrent run, with a server, files, a
    /// database table and a process of its own.
    pub fn neighbour(&mut self) -> &mut AttackGuest {
        if self.neighbour.is_none() {
            let mut guest = self.launch(GuestLimits::default());
            let names = self.names(&guest);
            // At level `reduced` there are no sockets for a server and no shared memory directory.
            let more = match self.level {
                IsolationLevel::Full => {
                    "echo secret > {DEVSHM}/neighbour; \
                     {PROBE} serve {NEIGHBOUR_NAME} {NEIGHBOUR_PORT} > {TMP}/ready & \
                     until grep -q listening {TMP}/ready; do sleep 0.02; done"
                }
                IsolationLevel::Reduced | IsolationLevel::None => "",
            };
            let script = fill(
                &format!(
                    "set -e; echo secret > {{TMP}}/neighbour.txt; echo secret > {{RW}}/neighbour.txt; \
                     echo secret > {{CONTENT}}/neighbour.txt; echo secret > {{OPCACHE}}/neighbour; \
                     php -r '$d = new PDO(\"sqlite:{{CONTENT}}/database/.ht.sqlite\"); \
                     $d->exec(\"create table neighbour (x)\");'; {more}"
                ),
                &names,
            );
            guest.must(&["/bin/sh", "-c", &script]);
            self.neighbour = Some(guest);
        }
        self.neighbour.as_mut().unwrap()
    }

    /// Makes one attempt and returns the observation. Uses the guest for ordinary attempts, or a
    /// new guest if `limits` are given.
    pub fn attempt(
        &mut self,
        kind: ProbeKind,
        run: &[String],
        limits: Option<GuestLimits>,
    ) -> String {
        if let Some(limits) = limits {
            let mut sandbox = self.launch(limits);
            let patience = limits
                .deadline_ms
                .map_or(ATTEMPT_TIMEOUT, Duration::from_millis);
            let names = self.names(&sandbox);
            return try_in(&mut sandbox, kind, run, &names, patience).0;
        }
        self.guest();
        let Some(mut sandbox) = self.guest.take() else {
            return "no guest".to_owned();
        };
        let names = self.names(&sandbox);
        let (seen, alive) = try_in(&mut sandbox, kind, run, &names, ATTEMPT_TIMEOUT);
        self.guest = alive.then_some(sandbox);
        seen
    }

    /// Makes an attempt in the neighbour guest, against the neighbour's own objects, and returns
    /// the observation.
    pub fn attempt_by_neighbour(&mut self, kind: ProbeKind, run: &[String]) -> String {
        self.neighbour();
        let Some(mut sandbox) = self.neighbour.take() else {
            return "no neighbour".to_owned();
        };
        let names = self.names(&sandbox);
        let (seen, alive) = try_in(&mut sandbox, kind, run, &names, ATTEMPT_TIMEOUT);
        self.neighbour = alive.then_some(sandbox);
        seen
    }
}

/// Makes one attempt in a guest; returns the observation and whether the guest still lives.
pub fn try_in(
    sandbox: &mut AttackGuest,
    kind: ProbeKind,
    run: &[String],
    names: &Names,
    patience: Duration,
) -> (String, bool) {
    let filled: Vec<String> = run.iter().map(|part| fill(part, names)).collect();
    let argv = argv(&names["PROBE"], kind, &filled);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let request = sandbox.request(&argv);
    let call = ExecCall {
        request: &request,
        stdin: &[],
        deadline: Instant::now() + patience,
        output_limit: MIB,
    };
    let mut out = Vec::new();
    let ended = sandbox.guest.exec(&call, &mut |stream, bytes| {
        if stream == OutputStream::Stdout {
            out.extend_from_slice(bytes);
        }
    });
    let out = String::from_utf8_lossy(&out);
    match ended {
        Err(error) => (error.to_string(), false),
        Ok(execution) => match execution.end {
            ExecEnd::Exited(code) => (result(&out, code), true),
            ExecEnd::Signaled(signal) => (signal_name(signal), true),
            ExecEnd::Stopped => ("time".to_owned(), true),
            ExecEnd::TimedOut => ("deadline".to_owned(), false),
            ExecEnd::MemoryLimit => ("memory limit".to_owned(), false),
            ExecEnd::KernelObjects => ("kernel object limit".to_owned(), false),
            ExecEnd::DiskLimit => ("disk limit".to_owned(), false),
            ExecEnd::Cancelled => ("cancelled".to_owned(), false),
            ExecEnd::GuestDied => ("guest died".to_owned(), false),
        },
    }
}
