//! The guests that attacks run in: one per level, its neighbour, and ones with limits.

use crate::outside::{argv, said, signal_name};
use crate::places::{Host, Names, fill};
use crate::table::{GuestLimits, ProbeKind};
use crate::world::{Spec, mount, request, run_request, sh};
use std::time::{Duration, Instant};
use wp_codebox_backend_native::{ExecCall, ExecEnd, Guest};
use wp_codebox_contracts::{
    IsolationLevel, Limits, MountAccess, MountView, OutputStream, StagedFile,
};

const MIB: u64 = 1024 * 1024;
/// Time for one attempt.
const PATIENCE: Duration = Duration::from_secs(40);
const STAGED: &str = "/run/codebox/staged";
/// Port of the neighbour's server, on its own loopback interface.
const NEIGHBOUR_PORT: &str = "45671";

/// Guests of one level.
pub struct Arena<'h> {
    pub level: IsolationLevel,
    host: &'h Host,
    guest: Option<Guest>,
    neighbour: Option<Guest>,
}

/// A specification with everything the table names.
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
        staged(&crate::world::world().probe, "probe"),
        staged(&host.given, "given.txt"),
    ];
    for name in ["setuid", "filecap"] {
        let source = host.privileged.join(name);
        // Without root there is none; the controls of its vectors fail then.
        if source.exists() {
            files.push(staged(&source, name));
        }
    }
    Spec {
        mounts: vec![readonly, mount(1, &host.writable, "/workspace/rw")],
        staged: files,
        limits: all,
    }
}

impl<'h> Arena<'h> {
    pub fn new(level: IsolationLevel, host: &'h Host) -> Self {
        Self {
            level,
            host,
            guest: None,
            neighbour: None,
        }
    }

    /// Source of the writable mount.
    pub fn writable_source(&self) -> std::path::PathBuf {
        self.host.writable.clone()
    }

    /// A guest of this level.
    pub fn launch(&self, limits: GuestLimits) -> Guest {
        match self.level {
            IsolationLevel::Full => spec(self.host, limits).launch(),
            IsolationLevel::Reduced | IsolationLevel::None => {
                panic!("this build has no guests of level {:?}", self.level)
            }
        }
    }

    /// The names of the table as a guest of this level has them.
    pub fn names(&self) -> Names {
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
                ("NEIGHBOUR_PORT", NEIGHBOUR_PORT),
                ("NEIGHBOUR_NAME", "attack-neighbour"),
            ]
            .map(|(name, path)| (name, path.to_owned())),
        );
        if let Some(neighbour) = &self.neighbour {
            names.insert("NEIGHBOUR", neighbour.pid().to_string());
        }
        names
    }

    /// The names of the table as they are outside.
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
            names.insert("NEIGHBOUR", neighbour.pid().to_string());
        }
        names
    }

    /// The guest of ordinary attempts; a new one when an attack ended the last.
    pub fn guest(&mut self) -> &mut Guest {
        if self.guest.is_none() {
            self.guest = Some(self.launch(GuestLimits::default()));
        }
        self.guest.as_mut().unwrap()
    }

    /// Another run at the same time, with a server, files, a database row and a process.
    pub fn neighbour(&mut self) -> &mut Guest {
        if self.neighbour.is_none() {
            let mut guest = self.launch(GuestLimits::default());
            let names = self.names();
            let script = fill(
                "set -e; echo secret > {TMP}/neighbour.txt; echo secret > {DEVSHM}/neighbour; \
                 echo secret > {RW}/neighbour.txt; echo secret > {CONTENT}/neighbour.txt; \
                 echo secret > {OPCACHE}/neighbour; \
                 php -r '$d = new PDO(\"sqlite:{CONTENT}/database/.ht.sqlite\"); $d->exec(\"create table neighbour (x)\");'; \
                 {PROBE} serve {NEIGHBOUR_NAME} {NEIGHBOUR_PORT} > {TMP}/ready & \
                 until grep -q listening {TMP}/ready; do sleep 0.02; done",
                &names,
            );
            sh(&mut guest, &script).ok();
            self.neighbour = Some(guest);
        }
        self.neighbour.as_mut().unwrap()
    }

    /// Makes one attempt in the shared guest, or in one of its own.
    pub fn attempt(
        &mut self,
        kind: ProbeKind,
        run: &[String],
        limits: Option<GuestLimits>,
    ) -> String {
        let names = self.names();
        match limits {
            Some(limits) => {
                let mut guest = self.launch(limits);
                let patience = limits.deadline_ms.map_or(PATIENCE, Duration::from_millis);
                try_in(&mut guest, kind, run, &names, patience).0
            }
            None => {
                let (seen, alive) = try_in(self.guest(), kind, run, &names, PATIENCE);
                if !alive {
                    self.guest = None;
                }
                seen
            }
        }
    }

    /// The same attempt by the neighbour on itself.
    pub fn attempt_by_neighbour(&mut self, kind: ProbeKind, run: &[String]) -> String {
        self.neighbour();
        let names = self.names();
        try_in(self.neighbour(), kind, run, &names, PATIENCE).0
    }
}

/// One attempt: what was seen, and whether the guest lives on.
pub fn try_in(
    guest: &mut Guest,
    kind: ProbeKind,
    run: &[String],
    names: &Names,
    patience: Duration,
) -> (String, bool) {
    let filled: Vec<String> = run.iter().map(|part| fill(part, names)).collect();
    let argv = argv(&names["PROBE"], kind, &filled);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let request = request(&argv);
    let call = ExecCall {
        request: &request,
        stdin: &[],
        deadline: Instant::now() + patience,
        output_limit: MIB,
    };
    let mut out = Vec::new();
    let ended = guest.exec(&call, &mut |stream, bytes| {
        if stream == OutputStream::Stdout {
            out.extend_from_slice(bytes);
        }
    });
    let out = String::from_utf8_lossy(&out);
    match ended {
        Err(error) => (error.to_string(), false),
        Ok(execution) => match execution.end {
            ExecEnd::Exited(code) => (said(&out, code), true),
            ExecEnd::Signaled(signal) => (signal_name(signal), true),
            ExecEnd::TimedOut => ("deadline".to_owned(), false),
            ExecEnd::MemoryLimit => ("memory limit".to_owned(), false),
            ExecEnd::Cancelled => ("cancelled".to_owned(), false),
            ExecEnd::GuestDied => ("guest died".to_owned(), false),
        },
    }
}

/// Runs a shell script that must succeed.
pub fn must(guest: &mut Guest, script: &str) -> String {
    run_request(guest, &request(&["/bin/sh", "-c", script]), &[]).ok()
}
