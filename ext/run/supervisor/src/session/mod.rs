//! Session: the work guest and all operations in it, for commands of a request, steps of a
//! recipe, an agent and clients of a held sandbox.
//!
//! A session has one guest at a time. A fresh guest or one with a snapshot may replace the current
//! guest; the recorded resource usage covers all guests of the session.

mod agent_step;
mod agent_target;
pub(crate) mod agents;
mod answer;
mod block_editor;
mod browser;
mod command;
pub(crate) mod egress;
pub(crate) mod ending;
pub(crate) mod guest;
mod left;
pub(crate) mod mail;
mod mail_commands;
mod preview;
pub(crate) mod services;
mod state;
mod sync;

pub(crate) use agent_step::AgentStep;
pub(crate) use command::Commanded;
pub(crate) use preview::PreviewEnd;
pub use sync::FILE_BYTES as SYNC_FILE_BYTES;

use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use ending::AgentEnd;
use guest::{GuestContext, guest, spec};
use preview::{Previews, SiteServer};
use serde_json::json;
use services::Services;
use state::{Base, Below, Uppers};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sync::SyncProgram;
use wp_codebox_contracts::{ErrorBody, GuestPhase, HostSource, IsolationReport, SandboxAudit};
use wp_codebox_runtime::{CapturedMounts, Runtime, Usage};

/// The guest in which a session works, and the programs and connections that belong to this guest.
pub(crate) struct WorkingGuest {
    pub runtime: Box<dyn Runtime>,
    egress: egress::Open,
    /// Layers from which the guest started; `None` if it started from the sources of its mounts
    /// only.
    pub below: Option<Below>,
    /// Upper overlay directories, which contain what the guest has written, by layer index.
    pub uppers: Uppers,
    /// Servers of the run's services.
    pub services: Services,
    /// Web server in the guest; `None` until it is first needed.
    pub site: Option<SiteServer>,
    /// Number of web servers that were started in the guest.
    pub sites: u32,
    /// Program in the guest that transfers files; `None` until it is first needed.
    pub syncing: Option<SyncProgram>,
    /// Number of transfer programs that were started in the guest so far.
    pub syncs: u32,
}

/// One session. Methods borrow several of its members at once, so the members are public.
pub(crate) struct Session<'s, 'r> {
    pub context: &'s RunContext<'s>,
    pub recorder: &'s mut Recorder<'r>,
    pub guest: WorkingGuest,
    /// Isolation that probe programs observed in the current guest.
    pub isolation: IsolationReport,
    /// Audit record of the process wrapper (bubblewrap or gVisor, if used) around the current
    /// guest's launcher.
    pub outer: SandboxAudit,
    /// Previews, which show the guest's site on an address of the host.
    pub previews: Previews,
    /// How the agent ended that a step of the recipe ran; `None` until that step began.
    pub agent: Option<AgentEnd>,
    /// Resources that earlier guests of the session have used.
    spent: Usage,
    /// Number of guests that were replaced in this session.
    replaced: u32,
    /// Snapshot from which the first guest started. It stays open, and so cannot be removed, until
    /// the session ends, even if another guest replaces the first one.
    _begun_on: Option<Arc<Base>>,
    /// Time at which the guest must end.
    until: Instant,
}

/// What a session leaves when it has ended.
pub(crate) struct Ended {
    pub left: CapturedMounts,
    pub usage: Usage,
    pub isolation: IsolationReport,
    pub outer: SandboxAudit,
}

impl<'s, 'r> Session<'s, 'r> {
    /// Starts a guest, fresh or from the snapshot that the request names.
    pub(crate) fn begin(
        context: &'s RunContext<'s>,
        recorder: &'s mut Recorder<'r>,
    ) -> Result<Self, ErrorBody> {
        let base = state::asked(context)?;
        let restored = base.as_ref().map(|base| base.snapshot().clone());
        let until = context.clock.deadline;
        let guest = start(context, recorder, base.clone(), (0, until))?;
        let (isolation, outer) = record_isolation(context, recorder, guest.runtime.as_ref())?;
        if let Some(snapshot) = restored {
            state::began(context, recorder, &snapshot)?;
        }
        Ok(Self {
            context,
            recorder,
            guest,
            isolation,
            outer,
            previews: Previews::default(),
            agent: None,
            spent: Usage::default(),
            replaced: 0,
            _begun_on: base,
            until: context.clock.deadline,
        })
    }

    /// Starts another guest, then ends the current one. If the start fails, the current guest
    /// continues. A new guest without a snapshot gets the components and site seeds of the request.
    pub(crate) fn replace(&mut self, base: Option<Arc<Base>>) -> Result<(), ErrorBody> {
        let fresh = base.is_none();
        let number = self.replaced + 1;
        let mut next = start(self.context, self.recorder, base, (number, self.until))?;
        if fresh {
            let mut guest = GuestContext {
                run: self.context,
                recorder: self.recorder,
                runtime: next.runtime.as_mut(),
                phase: GuestPhase::Work,
                limit: None,
            };
            if let Err(error) = agents::prepare(&mut guest).and_then(state::ready) {
                next.runtime.discard();
                next.egress.close(GuestPhase::Work, self.recorder)?;
                return Err(error);
            }
        }
        let seen = record_isolation(self.context, self.recorder, next.runtime.as_ref());
        let (isolation, outer) = match seen {
            Ok(seen) => seen,
            // The journal cannot be written: the current guest continues.
            Err(error) => {
                next.runtime.discard();
                let _ = next.egress.close(GuestPhase::Work, self.recorder);
                return Err(error);
            }
        };
        self.replaced = number;
        (self.isolation, self.outer) = (isolation, outer);
        let mut last = std::mem::replace(&mut self.guest, next);
        self.spent = added(self.spent, last.runtime.discard());
        last.services.finish();
        last.egress.close(GuestPhase::Work, self.recorder)
    }

    /// Returns the current guest for running programs in it.
    pub(crate) fn guest_context(&mut self) -> GuestContext<'_, 'r> {
        GuestContext {
            run: self.context,
            recorder: self.recorder,
            runtime: self.guest.runtime.as_mut(),
            phase: GuestPhase::Work,
            limit: None,
        }
    }

    /// Sets the deadline of the guest to `at_most` plus 30 seconds from now. The run's deadline no
    /// longer applies.
    pub(crate) fn stay(&mut self, at_most: Duration) {
        // In these 30 seconds, the code that holds the guest can end it in an orderly way.
        self.until = Instant::now() + at_most + Duration::from_secs(30);
    }

    /// Ends the guest, then its egress bridge. Returns what the session leaves and, separately,
    /// whether its end could be recorded: the changes are captured even if that failed.
    pub(crate) fn end(mut self) -> (Ended, Result<(), ErrorBody>) {
        // The preview must be closed before the guest is captured.
        let closed = self.close_preview(PreviewEnd::Closed);
        let left = self.guest.runtime.destroy();
        self.guest.services.finish();
        let closed = closed.and(self.guest.egress.close(GuestPhase::Work, self.recorder));
        self.recorder.evidence.preview = self.previews.into_record();
        let ended = Ended {
            left: left.left,
            usage: added(self.spent, left.usage),
            isolation: self.isolation,
            outer: self.outer,
        };
        (ended, closed)
    }
}

fn added(one: Usage, other: Usage) -> Usage {
    Usage {
        cpu: one.cpu + other.cpu,
        peak_memory_bytes: one.peak_memory_bytes.max(other.peak_memory_bytes),
    }
}

/// Starts a guest. Its mounts show their sources; overlay layers above the sources add the snapshot
/// `base` or, in a follow-up run without a snapshot, the change of the earlier bundle.
fn start(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    base: Option<Arc<Base>>,
    (number, until): (u32, Instant),
) -> Result<WorkingGuest, ErrorBody> {
    let below = Below::of(context, base);
    let lowers = |index: usize| -> Vec<HostSource> {
        let layer = u32::try_from(index)
            .ok()
            .and_then(|index| below.as_ref()?.place(index));
        layer
            .into_iter()
            .chain(context.mounts[index].lowers.iter().cloned())
            .collect()
    };
    let egress = egress::prepare(context, GuestPhase::Work)?;
    let mut spec = spec(context, GuestPhase::Work, lowers, egress.guest())?;
    spec.content = below.iter().flat_map(Below::content).collect();
    if number > 0 {
        spec.tree.set_file_name(format!("work-{number}"));
    }
    let mut runtime = guest(context, &spec)?;
    let egress = egress.open(runtime.as_mut())?;
    let uppers = state::uppers(runtime.as_ref())?;
    let mut runtime = match &below {
        None => runtime,
        Some(below) => state::continued(context.run_dir, runtime, below.clone())?,
    };
    let at = (GuestPhase::Work, until);
    let started = Services::start(context, runtime.as_mut(), recorder, at);
    let services = match started {
        Ok(services) => services,
        Err(error) => {
            runtime.discard();
            let _ = egress.close(GuestPhase::Work, recorder);
            return Err(error);
        }
    };
    Ok(WorkingGuest {
        runtime,
        egress,
        below,
        uppers,
        services,
        site: None,
        sites: 0,
        syncing: None,
        syncs: 0,
    })
}

/// Records what isolation a new guest reports.
fn record_isolation(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    runtime: &dyn Runtime,
) -> Result<(IsolationReport, SandboxAudit), ErrorBody> {
    let isolation = runtime.isolation().clone();
    let outer = runtime.outer_sandbox().clone();
    let seen = json!({"level": isolation.level, "network": context.prepared.policy.network});
    let detail = seen.as_object().cloned().unwrap_or_default();
    recorder.observe(
        "runtime-info",
        json!({"isolation": isolation, "backend": "native"}),
        detail,
    )?;
    Ok((isolation, outer))
}
