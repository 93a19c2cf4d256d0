//! The guest that works, and what can be done in it: one place for commands of a request, steps
//! of a recipe, an agent and whoever comes while the sandbox is held.
//!
//! A session has one guest at a time. It may be replaced, by a fresh one or by one with a state
//! that was kept; what the guests used in all is counted together.

mod answer;
mod browser;
mod command;
mod left;
mod mail;
mod preview;
mod state;
mod sync;

pub(super) use command::Commanded;
pub(super) use preview::PreviewEnd;
pub use sync::FILE_BYTES as SYNC_FILE_BYTES;

use super::agents;
use super::context::RunContext;
use super::egress;
use super::guest::{GuestContext, guest, spec};
use super::recorder::Recorder;
use preview::{Previews, SiteServer};
use serde_json::json;
use state::{Base, Uppers};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sync::SyncProgram;
use wp_codebox_contracts::{ErrorBody, GuestPhase, HostSource, IsolationReport, SandboxAudit};
use wp_codebox_runtime::{CapturedMounts, Runtime, Usage};

/// A guest that lives, and its way out.
pub(super) struct WorkingGuest {
    pub runtime: Box<dyn Runtime>,
    egress: egress::Open,
    /// The kept state it began on; absent: its mounts' sources alone.
    pub base: Option<Arc<Base>>,
    /// Its own upper directories.
    pub uppers: Uppers,
    /// Its web server, once somebody needed it.
    pub site: Option<SiteServer>,
    /// Web servers that were started in it.
    pub sites: u32,
    /// The program that carries files, once somebody needed it.
    pub syncing: Option<SyncProgram>,
    /// How many of it were started.
    pub syncs: u32,
}

/// One session. Everything in it may be used at once, which is why its members are open.
pub(super) struct Session<'s, 'r> {
    pub context: &'s RunContext<'s>,
    pub recorder: &'s mut Recorder<'r>,
    pub guest: WorkingGuest,
    /// What the present guest's own probes saw.
    pub isolation: IsolationReport,
    /// What was around the present guest's launcher.
    pub outer: SandboxAudit,
    /// Ways for visitors to the guest's site.
    pub previews: Previews,
    /// What guests before the present one used.
    spent: Usage,
    /// Guests before the present one.
    replaced: u32,
    /// The kept state that the first guest began on: it stays as long as the session does, because
    /// whoever makes the sandbox again begins on it again.
    _begun_on: Option<Arc<Base>>,
    /// When the guest must end.
    until: Instant,
}

/// What a session leaves.
pub(super) struct Ended {
    pub left: CapturedMounts,
    pub usage: Usage,
    pub isolation: IsolationReport,
    pub outer: SandboxAudit,
}

impl<'s, 'r> Session<'s, 'r> {
    /// Starts a guest: a fresh one, or one with the stored state that the request names.
    pub(super) fn begin(
        context: &'s RunContext<'s>,
        recorder: &'s mut Recorder<'r>,
    ) -> Result<Self, ErrorBody> {
        let base = state::asked(context)?;
        let restored = base.as_ref().map(|base| base.snapshot().clone());
        let guest = start(context, base.clone(), 0)?;
        let (isolation, outer) = seen(context, recorder, guest.runtime.as_ref())?;
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
            spent: Usage::default(),
            replaced: 0,
            _begun_on: base,
            until: context.clock.deadline,
        })
    }

    /// Starts another guest, then ends the present one. When it cannot be started the present one
    /// goes on. One without a kept state gets its components again.
    pub(super) fn replace(&mut self, base: Option<Arc<Base>>) -> Result<(), ErrorBody> {
        let fresh = base.is_none();
        let number = self.replaced + 1;
        let mut next = start(self.context, base, number)?;
        if fresh {
            let mut guest = GuestContext {
                run: self.context,
                recorder: self.recorder,
                runtime: next.runtime.as_mut(),
                phase: GuestPhase::Work,
            };
            let loaded = agents::load_components(&mut guest);
            if let Err(error) = loaded.and_then(state::ready) {
                next.runtime.discard();
                next.egress.close(GuestPhase::Work, self.recorder)?;
                return Err(error);
            }
        }
        let seen = seen(self.context, self.recorder, next.runtime.as_ref());
        let (isolation, outer) = match seen {
            Ok(seen) => seen,
            // A journal that cannot be written: the present guest goes on.
            Err(error) => {
                next.runtime.discard();
                let _ = next.egress.close(GuestPhase::Work, self.recorder);
                return Err(error);
            }
        };
        self.replaced = number;
        (self.isolation, self.outer) = (isolation, outer);
        let last = std::mem::replace(&mut self.guest, next);
        self.spent = added(self.spent, last.runtime.discard());
        last.egress.close(GuestPhase::Work, self.recorder)
    }

    /// The present guest, for programs in it.
    pub(super) fn guest_context(&mut self) -> GuestContext<'_, 'r> {
        GuestContext {
            run: self.context,
            recorder: self.recorder,
            runtime: self.guest.runtime.as_mut(),
            phase: GuestPhase::Work,
        }
    }

    /// The guest stays: from now on it is this time that bounds what is done in it.
    pub(super) fn stay(&mut self, at_most: Duration) {
        // A little more: whoever holds it ends it in time, and orderly.
        self.until = Instant::now() + at_most + Duration::from_secs(30);
    }

    /// Ends the guest, then its way out. What could not be recorded of that is told beside what
    /// the guest left.
    pub(super) fn end(mut self) -> (Ended, Result<(), ErrorBody>) {
        // Nobody looks at a guest that is captured.
        let closed = self.close_preview(PreviewEnd::Closed);
        let left = self.guest.runtime.destroy();
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

/// A guest whose mounts show their sources, or a kept state over them.
fn start(
    context: &RunContext<'_>,
    base: Option<Arc<Base>>,
    number: u32,
) -> Result<WorkingGuest, ErrorBody> {
    let lowers = |index: usize| -> Vec<HostSource> {
        let kept = u32::try_from(index)
            .ok()
            .and_then(|index| base.as_ref()?.place(index));
        kept.into_iter()
            .chain(context.mounts[index].lowers.iter().cloned())
            .collect()
    };
    let egress = egress::prepare(context, GuestPhase::Work)?;
    let mut spec = spec(context, GuestPhase::Work, lowers, egress.guest())?;
    spec.content = base.iter().flat_map(|base| base.content()).collect();
    if number > 0 {
        spec.tree.set_file_name(format!("work-{number}"));
    }
    let mut runtime = guest(context, &spec)?;
    let egress = egress.open(runtime.as_mut())?;
    let uppers = state::uppers(runtime.as_ref())?;
    let runtime = match &base {
        None => runtime,
        Some(base) => state::continued(context.run_dir, runtime, Arc::clone(base))?,
    };
    Ok(WorkingGuest {
        runtime,
        egress,
        base,
        uppers,
        site: None,
        sites: 0,
        syncing: None,
        syncs: 0,
    })
}

/// Records what the probes of a new guest saw.
fn seen(
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
