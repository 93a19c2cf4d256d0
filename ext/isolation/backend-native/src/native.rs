//! Native backend: implements the `Backend` and `Runtime` traits of the runtime crate.

use crate::cgroup::Cgroup;
use crate::execution::{ExecCall, ExecEnd, ExecError};
use crate::guest::{Guest, KillCause};
use crate::host::HostLayout;
use crate::launched::LaunchEnd;
use crate::launching::LaunchOptions;
use crate::php::PhpLayout;
use crate::plan::{
    BrowserPlan, GuestEgress, GuestSpec, PlannedComponents, PlannedMount, ProgramDirectory,
    TemplateAccess, browser_plan, build_plan, egress_environment, environment,
};
use crate::process_sandbox::ProcessSandbox;
use crate::reduced::GuestTree;
use crate::scratch::ScratchStorage;
use crate::spawner::GuestIdentity;
use crate::template::Template;
use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, ExecLimits, ExecRequest, ExecTerminal, ExecutionId,
    HostSource, IsolationLevel, IsolationReport, Limits, OutputStream, SandboxAudit, StagedFile,
};
use wp_codebox_runtime::{
    Backend, BackendError, CancelHook, Cancellation, Capabilities, CapturedMounts, Connector,
    Destroyed, EgressListeners, Execution, ExecutionEnd, ExecutionResult, Launch, LaunchedEnd,
    Runtime, Terminal, Usage, UsageMeter,
};

/// Maximum wait for a guest to become ready.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// Backend that builds guests on this host, with the settings that all guests of a run share.
#[derive(Debug)]
pub struct NativeBackend {
    /// Path of the launcher program.
    pub launcher: PathBuf,
    /// System directories of the host, which guests see read-only.
    pub host: HostLayout,
    /// PHP installation of the host, which guests use.
    pub php: PhpLayout,
    /// Process wrapper around the launcher.
    pub sandbox: Arc<dyn ProcessSandbox>,
    /// WordPress template from which guests start.
    pub template: Template,
    /// Host directory with WP-CLI and the guest programs.
    pub share_dir: String,
    /// Handle through which a cancelled run kills its guests.
    pub cancellation: Arc<Cancellation>,
    /// Cgroup of all guests of the run, or the reason why there is none.
    pub cgroup: Arc<Cgroup>,
    /// Kernel uid and gid of the guests. At level `reduced` they are the supervisor's own.
    pub identity: GuestIdentity,
    /// Where the writable files of guests at level `full` lie.
    pub scratch: ScratchStorage,
    /// Counters of all guests of the run.
    pub used: Arc<UsageMeter>,
}

/// What one guest of a run contains and may use.
#[derive(Debug, Clone)]
pub struct NativeSpec {
    /// Mounts of host directories, in the order of the request.
    pub mounts: Vec<PlannedMount>,
    /// Captured changes of `wp-content`: host directories layered over the template's `wp-content`,
    /// topmost first. Empty for a guest that starts from the template alone.
    pub content: Vec<HostSource>,
    /// Host plugins and libraries that the guest's WordPress loads.
    pub components: PlannedComponents,
    /// Text of `/run/codebox/task.json`; no file when empty.
    pub task_json: String,
    /// Single host files that the guest sees read-only.
    pub staged: Vec<StagedFile>,
    /// Host directories with programs that the guest sees read-only.
    pub programs: Vec<ProgramDirectory>,
    /// Resource limits of the guest.
    pub limits: Limits,
    /// How the guest may reach the network.
    pub egress: GuestEgress,
    /// Required isolation level: `full`, or `reduced` if the caller allows it.
    pub level: IsolationLevel,
    /// Host directory that the launch creates for the tree of a guest at level `reduced`, so it
    /// must not exist. Unused at `full`.
    pub tree: PathBuf,
}

impl Backend for NativeBackend {
    type Spec = NativeSpec;

    fn kind(&self) -> &'static str {
        "native"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            capture: true,
            snapshot: true,
        }
    }

    fn create(&self, spec: &NativeSpec) -> Result<Box<dyn Runtime>, BackendError> {
        let mut plan = build_plan(&GuestSpec {
            host: &self.host,
            php: &self.php,
            share_dir: &self.share_dir,
            template: &self.template,
            template_access: TemplateAccess::Run,
            mounts: &spec.mounts,
            content: &spec.content,
            components: &spec.components,
            task_json: &spec.task_json,
            staged: &spec.staged,
            programs: &spec.programs,
            limits: spec.limits,
            egress: &spec.egress,
        })?;
        plan.level = spec.level;
        let options = self.launch_options(&self.cgroup);
        let view = match spec.level {
            IsolationLevel::Full => View::Private,
            IsolationLevel::Reduced => View::Host(Box::new(GuestTree::lay_out(&plan, &spec.tree)?)),
            IsolationLevel::None => {
                return Err(ErrorBody::new(
                    ErrorCode::IsolationUnavailable,
                    "no guest is started at isolation level none; require level full or reduced",
                ));
            }
        };
        let plan = match &view {
            View::Private => &plan,
            View::Host(tree) => tree.plan(),
        };
        let mut guest = Guest::launch(plan, &options)?;
        if let View::Host(tree) = &view {
            guest.watch_disk(tree.writable()).map_err(|e| {
                ErrorBody::new(
                    ErrorCode::SandboxStartFailed,
                    format!("the disk use of the sandbox cannot be measured: {e}; check the limits on open files and threads"),
                )
            })?;
        }
        Ok(Box::new(NativeRuntime {
            hook: self.hook(&guest),
            guest,
            view,
            php: self.php.clone(),
            limits: spec.limits,
            egress: egress_environment(&spec.egress),
            cancellation: Arc::clone(&self.cancellation),
        }))
    }
}

impl NativeBackend {
    fn launch_options<'a>(&'a self, cgroup: &'a Cgroup) -> LaunchOptions<'a> {
        LaunchOptions {
            launcher: &self.launcher,
            sandbox: self.sandbox.as_ref(),
            ready_timeout: READY_TIMEOUT,
            cgroup,
            identity: &self.identity,
            scratch: &self.scratch,
            used: &self.used,
        }
    }

    /// Creates a guest that runs a browser instead of WordPress, next to the guest with the run's
    /// WordPress. Its memory is polled separately, because the run's cgroup has the limits of the
    /// other guest.
    pub fn create_browser(
        &self,
        directory: Option<&str>,
        limits: Limits,
    ) -> Result<Box<dyn Runtime>, BackendError> {
        let plan = browser_plan(&BrowserPlan {
            host: &self.host,
            hidden: &self.template.hidden,
            directory,
            limits,
        })?;
        let apart = Cgroup::None {
            reason: "the run's cgroup has the limits of the guest with WordPress".to_owned(),
        };
        let guest = Guest::launch(&plan, &self.launch_options(&apart))?;
        Ok(Box::new(NativeRuntime {
            hook: self.hook(&guest),
            guest,
            view: View::Private,
            php: self.php.clone(),
            limits,
            egress: BTreeMap::new(),
            cancellation: Arc::clone(&self.cancellation),
        }))
    }

    fn hook(&self, guest: &Guest) -> CancelHook {
        let killer = guest.killer();
        self.cancellation
            .on_cancel(Box::new(move || killer.kill(KillCause::Cancelled)))
    }
}

/// Location of a guest's own directories (`/workspace`, `/tmp`, …): in its mount namespace or on
/// the host's disk.
#[derive(Debug)]
enum View {
    /// They are mounts in the guest's own mount namespace.
    Private,
    /// A directory tree on the host's disk (level `reduced`).
    Host(Box<GuestTree>),
}

/// A guest of this backend as a [`Runtime`], with the data that its executions need.
#[derive(Debug)]
struct NativeRuntime {
    guest: Guest,
    view: View,
    php: PhpLayout,
    limits: Limits,
    egress: BTreeMap<String, String>,
    cancellation: Arc<Cancellation>,
    hook: CancelHook,
}

impl Runtime for NativeRuntime {
    fn isolation(&self) -> &IsolationReport {
        self.guest.report()
    }

    fn take_egress(&mut self) -> Option<EgressListeners> {
        self.guest.take_egress()
    }

    fn take_mail(&mut self) -> Option<OwnedFd> {
        self.guest.take_mail()
    }

    fn outer_sandbox(&self) -> &SandboxAudit {
        self.guest.audit()
    }

    fn execute(
        &mut self,
        execution: &Execution,
        sink: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<ExecutionResult, BackendError> {
        let request = self.request(ExecRequest {
            id: execution.id.clone(),
            argv: execution.argv.clone(),
            env: execution.env.clone(),
            cwd: execution.cwd.clone(),
            limits: ExecLimits::default(),
            terminal: ExecTerminal::None,
        })?;
        let started = Instant::now();
        let call = ExecCall {
            request: &request,
            stdin: execution.stdin.as_deref().unwrap_or_default(),
            deadline: execution.deadline,
            output_limit: execution.output_bytes,
        };
        let done = match self.guest.exec_until(&call, execution.stop_at, sink) {
            Ok(done) => done,
            Err(
                error @ (ExecError::NotStarted { .. }
                | ExecError::TooLarge
                | ExecError::TooMany
                | ExecError::Busy),
            ) => {
                return Ok(ended(
                    ExecutionEnd::NotStarted {
                        error: error.body(),
                    },
                    started.elapsed(),
                ));
            }
            Err(ExecError::Gone) => {
                let end = if self.cancellation.reason().is_some() {
                    ExecutionEnd::Cancelled
                } else {
                    let death = self.guest.cause_of_death();
                    ExecutionEnd::GuestDied { death }
                };
                return Ok(ended(end, started.elapsed()));
            }
            Err(error @ ExecError::Host { .. }) => return Err(error.body()),
        };
        let end = match done.end {
            ExecEnd::Exited(code) if code != 0 && done.memory_pressure => {
                ExecutionEnd::LimitReached {
                    error: self.memory_error(&format!("it exited with {code} near")),
                }
            }
            ExecEnd::Signaled(signal) if done.memory_pressure => ExecutionEnd::LimitReached {
                error: self.memory_error(&format!("signal {signal} ended it near")),
            },
            end => self.plain_end(end),
        };
        Ok(ExecutionResult {
            end,
            stopped: done.end == ExecEnd::Stopped,
            output_truncated: done.output_truncated,
            disk_full: done.disk_full,
            duration: done.duration,
        })
    }

    fn launch(&mut self, launch: &Launch, stdio: [OwnedFd; 3]) -> Result<(), BackendError> {
        let request = self.request(ExecRequest {
            id: launch.id.clone(),
            argv: launch.argv.clone(),
            env: launch.env.clone(),
            cwd: launch.cwd.clone(),
            limits: ExecLimits::default(),
            terminal: match launch.terminal {
                Terminal::None => ExecTerminal::None,
                Terminal::Controlling => ExecTerminal::Controlling,
            },
        })?;
        self.guest
            .launch_program(&request, stdio)
            .map_err(ErrorBody::from)
    }

    fn signal(&mut self, id: &ExecutionId, signal: i32) -> Result<(), BackendError> {
        self.guest
            .signal_program(id, signal)
            .map_err(ErrorBody::from)
    }

    fn stop(&mut self, id: &ExecutionId) -> Result<(), BackendError> {
        self.guest.stop_program(id).map_err(ErrorBody::from)
    }

    fn ended(&mut self, wake: BorrowedFd<'_>, until: Instant) -> Option<LaunchedEnd> {
        let (id, end) = self.guest.next_end(wake, until)?;
        let end = match end {
            LaunchEnd::Ended(end) => self.plain_end(end),
            LaunchEnd::NotStarted(error) => ExecutionEnd::NotStarted {
                error: error.body(),
            },
        };
        Some(LaunchedEnd { id, end })
    }

    fn death(&mut self) -> Option<ExecutionEnd> {
        let end = self.guest.death()?;
        Some(self.plain_end(end))
    }

    fn connect(&mut self, port: u16) -> Result<OwnedFd, BackendError> {
        self.has_sockets()?;
        self.guest.connect(port).map_err(ErrorBody::from)
    }

    fn connector(&self) -> Result<Arc<dyn Connector>, BackendError> {
        self.has_sockets()?;
        Ok(self.guest.connector())
    }

    fn listen(&mut self) {
        self.guest.listen();
    }

    fn look(&self) -> Result<CapturedMounts, BackendError> {
        match &self.view {
            View::Private => copies(self.guest.layers.iter().map(|(index, fd)| (*index, fd)))
                .map(CapturedMounts::Layers),
            View::Host(tree) => copies(tree.captured_now()).map(CapturedMounts::Trees),
        }
    }

    fn destroy(mut self: Box<Self>) -> Destroyed {
        self.cancellation.forget(self.hook);
        let end = self.guest.kill(KillCause::Finished);
        let left = match self.view {
            View::Private => CapturedMounts::Layers(self.guest.take_layers()),
            View::Host(tree) => CapturedMounts::Trees(tree.into_layers()),
        };
        Destroyed {
            left,
            usage: Usage {
                cpu: Duration::from_micros(end.user_us.saturating_add(end.system_us)),
                peak_memory_bytes: end.usage.peak_memory_bytes,
            },
        }
    }
}

fn copies<'a>(
    layers: impl Iterator<Item = (u32, &'a OwnedFd)>,
) -> Result<BTreeMap<u32, OwnedFd>, ErrorBody> {
    layers
        .map(|(index, fd)| {
            let fd = fd.try_clone().map_err(|e| {
                ErrorBody::new(
                    ErrorCode::RunFailed,
                    format!("the file descriptor of the directory with a mount's changes cannot be duplicated: {e}; raise the limit on open files"),
                )
            })?;
            Ok((index, fd))
        })
        .collect()
}

impl NativeRuntime {
    /// Fails at level `reduced`, where programs in the guest may not use sockets, so no server in
    /// it can be reached.
    fn has_sockets(&self) -> Result<(), BackendError> {
        match &self.view {
            View::Private => Ok(()),
            View::Host(_) => Err(ErrorBody::new(
                ErrorCode::PreviewUnavailable,
                "at isolation level reduced a sandbox has no sockets, so no server in it can be reached",
            )),
        }
    }

    /// Returns the request as pid 1 of the guest must get it, with the environment that all
    /// programs share.
    fn request(&self, request: ExecRequest) -> Result<ExecRequest, ErrorBody> {
        let mut env = environment();
        env.extend(self.egress.clone());
        env.extend(request.env);
        let request = ExecRequest { env, ..request };
        match &self.view {
            View::Private => Ok(request),
            View::Host(tree) => tree
                .root()
                .request(&request, &self.php)
                .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, e.to_string())),
        }
    }

    fn plain_end(&mut self, end: ExecEnd) -> ExecutionEnd {
        match end {
            ExecEnd::Exited(code) => ExecutionEnd::Exited { code },
            ExecEnd::Signaled(signal) => ExecutionEnd::Signalled { signal },
            ExecEnd::Stopped => ExecutionEnd::Signalled {
                signal: libc::SIGKILL,
            },
            ExecEnd::TimedOut => ExecutionEnd::TimedOut,
            ExecEnd::MemoryLimit => ExecutionEnd::LimitReached {
                error: self.memory_error("all its processes together exceeded"),
            },
            ExecEnd::DiskLimit => ExecutionEnd::LimitReached {
                error: self.disk_error(),
            },
            ExecEnd::KernelObjects => ExecutionEnd::LimitReached {
                error: crate::kernel_objects::too_many(&self.limits),
            },
            ExecEnd::Cancelled => ExecutionEnd::Cancelled,
            ExecEnd::GuestDied => ExecutionEnd::GuestDied {
                death: self.guest.cause_of_death(),
            },
        }
    }

    fn disk_error(&self) -> ErrorBody {
        let bytes = self.limits.disk_bytes;
        ErrorBody::new(ErrorCode::DiskLimit, format!("the sandbox wrote more than the limit of {bytes} bytes, more files than the limit allows, or directories nested too deeply; raise the disk limit or let the program write less"))
            .with("limitBytes", bytes)
    }

    fn memory_error(&self, what: &str) -> ErrorBody {
        let bytes = self.limits.memory_bytes;
        ErrorBody::new(ErrorCode::MemoryLimit, format!("the program ran out of memory: {what} the limit of {bytes} bytes; raise the memory limit or let the program use less"))
            .with("limitBytes", bytes)
    }
}

fn ended(end: ExecutionEnd, duration: Duration) -> ExecutionResult {
    ExecutionResult {
        end,
        stopped: false,
        output_truncated: false,
        disk_full: false,
        duration,
    }
}
