//! An extension whose sandboxes are directories of the host, and whose programs are processes of the
//! host. All of its state is on the disk, so its sandboxes go on when the server is killed.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Duration;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, ExtensionId, HostId, IsolationClass, OutputStream, RoutePolicy,
    RouteRequest, SandboxNeeds, SandboxScope, hex,
};
use wp_codebox_routing::{Capabilities, HostRecord};
use wp_codebox_service::{
    Actor, CleanupReport, Ended, ExecEnd, ExecOutput, ExecRequest, Extension, Host, Page,
    PlannedRun, ProfileDocument, Provision, Reachability, Requester, RunOrder, RunProgress,
    RunSelection, SandboxId, SandboxState, SandboxUsage, SandboxView,
};

pub const WORKSPACE: &str = "/workspace";
const HOUR: u64 = 3_600_000;

/// What the following calls of `provision` do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Next {
    #[default]
    Ready,
    /// The sandbox stays provisioning until [`Fake::open`].
    Hold,
    /// The call fails before anything exists.
    Refuse,
    /// The next call blocks until [`Fake::release`], later ones do not. It stands for the call of a
    /// killed server that starts the sandbox late.
    Late,
    /// The sandbox starts and dies before it is ready.
    Die,
}

pub struct Fake {
    root: PathBuf,
    capabilities: Capabilities,
    next: Mutex<Next>,
    opened: Condvar,
    /// Number of calls that [`Next::Late`] blocks, and whether they may go on.
    late: Mutex<(usize, bool)>,
    released: Condvar,
    pub provisions: AtomicU64,
    pub teardowns: AtomicU64,
    turn: Mutex<()>,
}

fn error(code: ErrorCode, message: &str) -> ErrorBody {
    ErrorBody::new(code, message)
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_millis()).unwrap()
}

fn rfc3339(ms: u64) -> String {
    let at = std::time::UNIX_EPOCH + Duration::from_millis(ms);
    humantime::format_rfc3339_millis(at).to_string()
}

impl Fake {
    pub fn new(root: &Path) -> Arc<Self> {
        Self::named(root, "fake")
    }

    pub fn named(root: &Path, extension: &str) -> Arc<Self> {
        fs::create_dir_all(root.join("snapshots")).unwrap();
        Arc::new(Self {
            root: root.to_owned(),
            capabilities: capabilities(extension),
            next: Mutex::default(),
            opened: Condvar::new(),
            late: Mutex::default(),
            released: Condvar::new(),
            provisions: AtomicU64::new(0),
            teardowns: AtomicU64::new(0),
            turn: Mutex::new(()),
        })
    }

    /// Selects what provisionings do from now on.
    pub fn next(&self, next: Next) {
        *self.next.lock().unwrap() = next;
    }

    /// Lets held sandboxes become ready.
    pub fn open(&self) {
        self.next(Next::Ready);
        self.opened.notify_all();
    }

    /// Returns how many provisionings are blocked.
    pub fn late(&self) -> usize {
        self.late.lock().unwrap().0
    }

    /// Lets blocked provisionings go on, and waits until they have returned.
    pub fn release(&self) {
        let mut late = self.late.lock().unwrap();
        late.1 = true;
        self.released.notify_all();
        while late.0 > 0 {
            late = self.released.wait(late).unwrap();
        }
    }

    /// Ends a sandbox as if its lifetime were over or it had died.
    pub fn end(&self, sandbox: &str, state: SandboxState, reason: &str) {
        let id = SandboxId::parse(sandbox).unwrap();
        self.write_state(&id, state, Some(reason));
    }

    /// Ids of all sandboxes that were ever provisioned.
    pub fn sandboxes(&self) -> Vec<String> {
        let rows = fs::read_dir(&self.root).unwrap();
        let names = rows.map(|row| row.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("run_")).collect()
    }

    fn directory(&self, sandbox: &SandboxId) -> Result<PathBuf, ErrorBody> {
        let directory = self.root.join(sandbox.as_str());
        match directory.join("state.json").exists() {
            true => Ok(directory),
            false => Err(error(
                ErrorCode::SandboxNotFound,
                "the fake has no such sandbox",
            )),
        }
    }

    fn state(&self, sandbox: &SandboxId) -> Result<Value, ErrorBody> {
        let path = self.directory(sandbox)?.join("state.json");
        Ok(serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
    }

    fn put(&self, sandbox: &SandboxId, state: &Value) {
        let directory = self.root.join(sandbox.as_str());
        let unfinished = directory.join(format!("new-{:?}", std::thread::current().id()));
        fs::write(&unfinished, state.to_string()).unwrap();
        fs::rename(unfinished, directory.join("state.json")).unwrap();
    }

    fn write_state(&self, sandbox: &SandboxId, state: SandboxState, reason: Option<&str>) {
        let _turn = self.turn.lock().unwrap();
        let mut now = self.state(sandbox).unwrap();
        now["state"] = json!(state);
        if let Some(reason) = reason {
            now["reason"] = json!(reason);
        }
        self.put(sandbox, &now);
    }

    fn provide(&self, request: &Provision, next: Next) -> Result<(), ErrorBody> {
        if next == Next::Refuse {
            return Err(error(
                ErrorCode::RunnerUnavailable,
                "the fake starts nothing",
            ));
        }
        let directory = self.root.join(request.sandbox.as_str());
        if directory.join("state.json").exists() {
            return Ok(());
        }
        self.provisions.fetch_add(1, Ordering::Relaxed);
        fs::create_dir_all(directory.join("files")).unwrap();
        if let Some(snapshot) = &request.snapshot {
            copy(
                &self.root.join("snapshots").join(snapshot),
                &directory.join("files"),
            );
        }
        let (state, reason) = match next {
            Next::Ready | Next::Refuse | Next::Late => (SandboxState::Ready, Value::Null),
            Next::Hold => (SandboxState::Provisioning, Value::Null),
            Next::Die => (SandboxState::Failed, json!("its setup failed")),
        };
        let state = json!({
            "state": state, "reason": reason, "expires": now_ms() + request.ttl_ms,
            "actor": request.actor, "inputs": request.inputs,
        });
        self.put(&request.sandbox, &state);
        Ok(())
    }

    fn alive(&self, sandbox: &SandboxId) -> Result<PathBuf, ErrorBody> {
        let state = self.view(sandbox)?.state;
        match state.is_usable() {
            true => Ok(self.directory(sandbox)?.join("files")),
            false => Err(error(
                ErrorCode::SandboxNotHeld,
                "the sandbox of the fake has ended",
            )),
        }
    }

    fn file(&self, sandbox: &SandboxId, path: &str) -> Result<PathBuf, ErrorBody> {
        let files = self.alive(sandbox)?;
        let name = path.strip_prefix("/workspace/").unwrap_or("no-such-file");
        Ok(files.join(name))
    }
}

pub fn capabilities(extension: &str) -> Capabilities {
    let architecture = wp_codebox_contracts::ArchitectureName::new("x86_64").unwrap();
    Capabilities {
        extension: ExtensionId::new(extension).unwrap(),
        ..Capabilities::native(architecture)
    }
}

pub fn host(id: &str, extension: &str) -> HostRecord {
    let (id, extension) = (
        HostId::new(id).unwrap(),
        ExtensionId::new(extension).unwrap(),
    );
    HostRecord::new(id, extension, 10_000)
}

pub fn profile(id: &str) -> ProfileDocument {
    let text = format!("id: {id}\nversion: 1.0.0\n");
    ProfileDocument {
        id: id.to_owned(),
        version: "1.0.0".to_owned(),
        sha256: hex(&Sha256::digest(text.as_bytes())),
        text,
        document: json!({"id": id, "workspace": {"mode": "remote-canonical", "access": "readwrite"}}),
        route: RouteRequest {
            policy: RoutePolicy::default(),
            needs: SandboxNeeds::new(IsolationClass::Policy),
        },
        scope_default: SandboxScope::Session,
        ttl_default_ms: HOUR,
        ttl_max_ms: 4 * HOUR,
        secret_names: vec!["SHOP_KEY".to_owned()],
    }
}

impl Extension for Fake {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn health(&self, host: &str) -> Result<(), ErrorBody> {
        match host {
            "sick" => Err(error(ErrorCode::RunnerUnavailable, "its disk is full")),
            _ => Ok(()),
        }
    }

    fn forestall(&self, sandbox: &SandboxId) -> Result<(), ErrorBody> {
        let _turn = self.turn.lock().unwrap();
        if self.directory(sandbox).is_ok() {
            return Err(error(ErrorCode::StateDirInvalid, "the sandbox exists"));
        }
        fs::create_dir_all(self.root.join(sandbox.as_str())).unwrap();
        let state = json!({"state": SandboxState::Failed, "reason": "forestalled", "expires": 0});
        self.put(sandbox, &state);
        Ok(())
    }

    fn provision(&self, request: &Provision) -> Result<(), ErrorBody> {
        let next = *self.next.lock().unwrap();
        if next == Next::Late {
            self.next(Next::Ready);
            let mut late = self.late.lock().unwrap();
            late.0 += 1;
            while !late.1 {
                late = self.released.wait(late).unwrap();
            }
            drop(late);
            let done = self.provide(request, Next::Ready);
            self.late.lock().unwrap().0 -= 1;
            self.released.notify_all();
            return done;
        }
        self.provide(request, next)
    }

    fn wait_ready(&self, sandbox: &SandboxId) -> Result<Reachability, ErrorBody> {
        loop {
            match self.view(sandbox)?.state {
                SandboxState::Ready => {
                    return Ok(Reachability {
                        exec: true,
                        preview_url: None,
                    });
                }
                SandboxState::Provisioning => {
                    let next = self.next.lock().unwrap();
                    if *next == Next::Hold {
                        let wait = Duration::from_millis(100);
                        drop(self.opened.wait_timeout(next, wait).unwrap());
                    } else {
                        drop(next);
                        self.write_state(sandbox, SandboxState::Ready, None);
                    }
                }
                _ => {
                    return Err(error(
                        ErrorCode::SandboxNotHeld,
                        "the sandbox of the fake died",
                    ));
                }
            }
        }
    }

    fn view(&self, sandbox: &SandboxId) -> Result<SandboxView, ErrorBody> {
        let told = self.state(sandbox)?;
        let state: SandboxState = serde_json::from_value(told["state"].clone()).unwrap();
        let expires = told["expires"].as_u64().unwrap();
        Ok(SandboxView {
            state,
            expires_at: state.is_usable().then(|| rfc3339(expires)),
            ended: state.is_final().then(|| Ended {
                reason: told["reason"].as_str().unwrap_or_default().to_owned(),
                usage: SandboxUsage {
                    alive_ms: Some(1500),
                    ..SandboxUsage::default()
                },
            }),
        })
    }

    fn exec(
        &self,
        sandbox: &SandboxId,
        exec: &ExecRequest,
        _actor: &Actor,
        output: &mut dyn ExecOutput,
    ) -> Result<ExecEnd, ErrorBody> {
        let files = self.alive(sandbox)?;
        let inner = files.to_str().unwrap();
        let argv: Vec<String> = exec
            .argv
            .iter()
            .map(|a| a.replace(WORKSPACE, inner))
            .collect();
        let mut child = Command::new(&argv[0])
            .args(&argv[1..])
            .envs(&exec.env)
            .current_dir(&files)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| error(ErrorCode::CommandFailed, &format!("{}: {e}", argv[0])))?;
        let mut stdin = child.stdin.take().unwrap();
        let input = exec.stdin.clone().unwrap_or_default();
        let (sender, chunks) = mpsc::sync_channel(4);
        std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        pump(OutputStream::Stdout, out, sender.clone());
        pump(OutputStream::Stderr, err, sender);
        let mut written = output.started("exec-1");
        while written.is_ok() {
            match chunks.recv_timeout(Duration::from_millis(50)) {
                Ok((stream, bytes)) => written = output.write(stream, &bytes),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) if output.is_closed() => {
                    written = Err(std::io::ErrorKind::BrokenPipe.into());
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
        if written.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().unwrap();
        Ok(ExecEnd {
            code: status.code(),
            signal: None,
            end: if written.is_ok() {
                "exited"
            } else {
                "cancelled"
            }
            .to_owned(),
            reason: String::new(),
            duration_ms: 1,
            output_truncated: false,
        })
    }

    fn files(&self, sandbox: &SandboxId) -> Result<Value, ErrorBody> {
        let files = fs::read_dir(self.alive(sandbox)?).unwrap();
        let names: Vec<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        Ok(json!({"schema": "wp-codebox/sandbox-sync/v1", "files": names}))
    }

    fn read_file(&self, sandbox: &SandboxId, path: &str) -> Result<Vec<u8>, ErrorBody> {
        fs::read(self.file(sandbox, path)?).map_err(|_| {
            error(
                ErrorCode::ServiceNotFound,
                "there is no such file in the sandbox",
            )
        })
    }

    fn write_file(
        &self,
        sandbox: &SandboxId,
        path: &str,
        content: Option<&[u8]>,
        base_sha256: Option<&str>,
        _actor: &Actor,
    ) -> Result<Value, ErrorBody> {
        let file = self.file(sandbox, path)?;
        let _turn = self.turn.lock().unwrap();
        let now = fs::read(&file).map(|bytes| hex(&Sha256::digest(&bytes)));
        if base_sha256.is_some_and(|base| now.unwrap_or_default() != base) {
            let message = "the file has other content; read it again";
            return Err(error(ErrorCode::PreconditionFailed, message));
        }
        match content {
            Some(bytes) => fs::write(&file, bytes).unwrap(),
            None => drop(fs::remove_file(&file)),
        }
        Ok(json!({"schema": "wp-codebox/sandbox-sync/v1", "path": path}))
    }

    fn extend_ttl(&self, sandbox: &SandboxId, ttl_ms: u64, _: &Actor) -> Result<(), ErrorBody> {
        self.alive(sandbox)?;
        if ttl_ms > 4 * HOUR {
            return Err(error(ErrorCode::InputInvalid, "the profile allows 4 hours"));
        }
        let _turn = self.turn.lock().unwrap();
        let mut state = self.state(sandbox)?;
        state["expires"] = json!(now_ms() + ttl_ms);
        self.put(sandbox, &state);
        Ok(())
    }

    fn snapshot(
        &self,
        sandbox: &SandboxId,
        name: Option<&str>,
        _: &Actor,
    ) -> Result<Value, ErrorBody> {
        let files = self.alive(sandbox)?;
        let id = format!("snap_{}", &sandbox.as_str()[4..]);
        let directory = self.root.join("snapshots").join(&id);
        fs::create_dir_all(&directory).unwrap();
        copy(&files, &directory);
        let row = json!({"id": id, "name": name.unwrap_or("now"), "run_id": sandbox});
        fs::write(
            self.root.join("snapshots").join(format!("{id}.json")),
            row.to_string(),
        )
        .unwrap();
        Ok(row)
    }

    fn restore(&self, sandbox: &SandboxId, snapshot: &str, _: &Actor) -> Result<(), ErrorBody> {
        let files = self.alive(sandbox)?;
        let directory = self.root.join("snapshots").join(snapshot);
        if !directory.exists() {
            return Err(error(
                ErrorCode::SnapshotNotFound,
                "the fake has no such snapshot",
            ));
        }
        copy(&directory, &files);
        Ok(())
    }

    fn snapshots(&self) -> Result<Vec<Value>, ErrorBody> {
        let rows = fs::read_dir(self.root.join("snapshots")).unwrap();
        Ok(rows
            .map(|row| row.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .filter_map(|path| fs::read(path).ok())
            .map(|text| serde_json::from_slice(&text).unwrap())
            .collect())
    }

    fn remove_snapshot(&self, id: &str, _: &Actor) -> Result<Value, ErrorBody> {
        let row = self.root.join("snapshots").join(format!("{id}.json"));
        let removed = fs::remove_file(row).is_ok();
        let _ = fs::remove_dir_all(self.root.join("snapshots").join(id));
        Ok(
            json!({"schema": "wp-codebox/sandbox-snapshot-removal/v1", "success": true, "id": id, "removed": removed}),
        )
    }

    fn teardown(
        &self,
        sandbox: &SandboxId,
        _: &Actor,
        reason: &str,
    ) -> Result<CleanupReport, ErrorBody> {
        let before = self.view(sandbox)?.state;
        let already_ended = before.is_final();
        self.teardowns.fetch_add(1, Ordering::Relaxed);
        self.write_state(
            sandbox,
            SandboxState::Destroyed,
            (!already_ended).then_some(reason),
        );
        Ok(CleanupReport {
            complete: true,
            already_ended,
            removed: vec!["processes".to_owned()],
            ended: self.view(sandbox)?.ended,
            ..CleanupReport::default()
        })
    }

    fn events(&self, sandbox: &SandboxId, after: u64) -> Result<Vec<Value>, ErrorBody> {
        self.directory(sandbox)?;
        let all = vec![json!({"seq": 1, "type": "runtime.created"})];
        Ok(all
            .into_iter()
            .filter(|row| row["seq"].as_u64() > Some(after))
            .collect())
    }

    fn estimate(&self, profile: &ProfileDocument, duration_ms: u64) -> Result<Value, ErrorBody> {
        Ok(
            json!({"schema": "wp-codebox/sandbox-estimate/v1", "profile": profile.id, "durationMs": duration_ms}),
        )
    }
}

fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

fn pump(
    stream: OutputStream,
    mut from: impl Read + Send + 'static,
    to: mpsc::SyncSender<(OutputStream, Vec<u8>)>,
) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.send((stream, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
}

/// A run of the fake machine.
#[derive(Debug, Clone, Default)]
pub struct FakeRun {
    pub profile: Option<String>,
    pub requester: Option<Requester>,
    /// Run whose bundle it continues.
    pub follow_up: Option<String>,
    pub ended: bool,
    /// Whether its bundle has the id [`EQUAL`].
    equal: bool,
}

/// Bundle id of every run with the goal `equal`: equal changes have equal ids.
pub const EQUAL: &str = "artifact-bundle-sha256-equal";

/// A machine with two profiles. Its runs are those in memory and the sandboxes of the fake; every
/// run has a bundle.
#[derive(Default)]
pub struct FakeHost {
    fake: Option<Arc<Fake>>,
    runs: Mutex<BTreeMap<String, FakeRun>>,
}

impl FakeHost {
    pub fn of(fake: &Arc<Fake>) -> Arc<Self> {
        Arc::new(Self {
            fake: Some(fake.clone()),
            runs: Mutex::default(),
        })
    }

    /// Adds a run that no client of the service started.
    pub fn add(&self, run: &str) {
        let mut runs = self.runs.lock().unwrap();
        runs.insert(run.to_owned(), FakeRun::default());
    }

    pub fn end_run(&self, run: &str) {
        self.runs.lock().unwrap().get_mut(run).unwrap().ended = true;
    }

    /// Runs in memory.
    pub fn started(&self) -> BTreeMap<String, FakeRun> {
        self.runs.lock().unwrap().clone()
    }

    fn all(&self) -> Vec<String> {
        let mut all: Vec<String> = self.started().into_keys().collect();
        all.extend(self.fake.iter().flat_map(|fake| fake.sandboxes()));
        all
    }

    fn known(&self, run: &str) -> Result<Value, ErrorBody> {
        match self.all().iter().any(|known| known == run) {
            true => Ok(json!({"run_id": run, "artifact_id": self.bundle_of(run)})),
            false => Err(error(ErrorCode::RunNotFound, "there is no such run here")),
        }
    }

    fn bundle_of(&self, run: &str) -> String {
        match self.started().get(run) {
            Some(run) if run.equal => EQUAL.to_owned(),
            _ => bundle(run),
        }
    }

    fn rows(&self, which: &RunSelection, page: Page) -> (usize, Vec<Value>) {
        let mut all = self.all();
        all.retain(|run| which.has(run));
        let rows = all.iter().skip(page.offset).take(page.limit);
        let rows = rows.map(|run| self.known(run).unwrap());
        (all.len(), rows.collect())
    }
}

/// Returns the id of the bundle of a run that is not equal to another one.
pub fn bundle(run: &str) -> String {
    format!("artifact-bundle-sha256-of-{run}")
}

struct FakePlan<'a> {
    host: &'a FakeHost,
    order: RunOrder,
}

impl PlannedRun for FakePlan<'_> {
    fn duration_ms(&self) -> u64 {
        10_000
    }

    fn follow_up(&self) -> Option<&str> {
        let of = &self.order.task["follow_up_of"];
        of["run_id"].as_str().or(of["artifact_id"].as_str())
    }

    fn set_follow_up(&mut self, run: &str) {
        self.order.task["follow_up_of"] = json!({"run_id": run});
    }

    fn start(self: Box<Self>) -> Result<Value, ErrorBody> {
        if self.order.task["goal"] == "do not start" {
            return Err(error(
                ErrorCode::RunnerUnavailable,
                "the fake starts nothing",
            ));
        }
        let run = FakeRun {
            profile: self
                .order
                .profile
                .as_ref()
                .map(|profile| profile.id.clone()),
            requester: Some(self.order.requester),
            follow_up: self.follow_up().map(str::to_owned),
            ended: false,
            equal: self.order.task["goal"] == "equal",
        };
        let id = self.order.run.to_string();
        self.host.runs.lock().unwrap().insert(id.clone(), run);
        Ok(json!({"success": true, "schema": "wp-codebox/run-handle/v1", "run_id": id}))
    }
}

impl Host for FakeHost {
    fn profiles(&self) -> Result<Vec<ProfileDocument>, ErrorBody> {
        Ok(vec![profile("profile.other"), profile("profile.shop")])
    }

    fn profile(&self, reference: &str) -> Result<ProfileDocument, ErrorBody> {
        let mut all = self.profiles()?.into_iter();
        all.find(|row| reference == row.id || reference == format!("{}@{}", row.id, row.version))
            .ok_or_else(|| error(ErrorCode::ProfileNotFound, "there is no such profile here"))
    }

    fn run_extension(&self) -> &str {
        "fake"
    }

    fn runs(&self, which: &RunSelection, page: Page) -> Result<Value, ErrorBody> {
        let (total, rows) = self.rows(which, page);
        Ok(json!({"schema": "wp-codebox/run-list/v1", "total": total, "runs": rows}))
    }

    fn run(&self, run: &str) -> Result<Value, ErrorBody> {
        self.known(run)
    }

    fn run_events(&self, run: &str, _: u64) -> Result<Value, ErrorBody> {
        self.known(run)
    }

    fn run_progress(&self, run: &str) -> Result<RunProgress, ErrorBody> {
        Ok(match self.started().get(run) {
            None => RunProgress::Unknown,
            Some(run) if run.ended => RunProgress::Ended(SandboxUsage {
                alive_ms: Some(1500),
                ..SandboxUsage::default()
            }),
            Some(_) => RunProgress::Running,
        })
    }

    fn plan_run(&self, order: RunOrder) -> Result<Box<dyn PlannedRun + '_>, ErrorBody> {
        match order.task["goal"].is_string() {
            true => Ok(Box::new(FakePlan { host: self, order })),
            false => Err(error(ErrorCode::TaskMissing, "the task has no goal")),
        }
    }

    fn forestall_run(&self, run: &SandboxId) -> Result<(), ErrorBody> {
        match self.started().contains_key(run.as_str()) {
            true => Err(error(ErrorCode::StateDirInvalid, "the run exists")),
            false => Ok(()),
        }
    }

    fn cancel_run(&self, run: &str, _: &Actor, _: &str) -> Result<Value, ErrorBody> {
        let row = self.known(run)?;
        if let Some(run) = self.runs.lock().unwrap().get_mut(run) {
            run.ended = true;
        }
        Ok(row)
    }

    fn artifacts(&self, which: &RunSelection, page: Page) -> Result<Value, ErrorBody> {
        let (total, rows) = self.rows(which, page);
        Ok(json!({"schema": "wp-codebox/artifact-list/v1", "total": total, "artifacts": rows}))
    }

    fn runs_of_artifact(&self, id: &str) -> Result<Vec<String>, ErrorBody> {
        let mut all = self.all();
        all.retain(|run| run == id || self.bundle_of(run) == id);
        Ok(all)
    }

    fn artifact(&self, run: &str) -> Result<Value, ErrorBody> {
        self.known(run)
    }

    fn verify_artifact(&self, run: &str) -> Result<Value, ErrorBody> {
        self.known(run)
    }

    fn ready(&self) -> Result<(), ErrorBody> {
        Ok(())
    }
}
