//! The guest that works, and what can be done in it: one place for commands of a request, steps
//! of a recipe, an agent and whoever comes while the sandbox is held.
//!
//! A session has one guest at a time. It may be replaced, by a fresh one or by one with a state
//! that was kept; what the guests used in all is counted together.

mod browser;
mod checkpoint;
mod command;

pub(crate) use command::Commanded;

use super::egress::{self, Phase};
use super::preview::{PreviewEnd, Previews, SiteServer};
use super::recorder::Recorder;
use super::sync::SyncProgram;
use super::work::{guest, spec};
use super::{Setting, agents};
use serde_json::json;
use std::sync::Arc;
use wp_codebox_contracts::{ErrorBody, HostSource, IsolationReport, SandboxAudit};
use wp_codebox_runtime::{Cancellation, Left, Runtime, Usage};

/// A guest that lives, and its way out.
pub(crate) struct WorkingGuest {
    pub runtime: Box<dyn Runtime>,
    egress: egress::Open,
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
pub(crate) struct Session<'s, 'r> {
    pub setting: &'s Setting<'s>,
    pub cancellation: &'s Arc<Cancellation>,
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
}

/// What a session leaves.
pub(crate) struct Ended {
    pub left: Left,
    pub usage: Usage,
    pub isolation: IsolationReport,
    pub outer: SandboxAudit,
}

impl<'s, 'r> Session<'s, 'r> {
    /// Starts a fresh guest.
    pub(crate) fn begin(
        setting: &'s Setting<'s>,
        cancellation: &'s Arc<Cancellation>,
        recorder: &'s mut Recorder<'r>,
    ) -> Result<Self, ErrorBody> {
        let guest = start(setting)?;
        let (isolation, outer) = seen(setting, recorder, guest.runtime.as_ref())?;
        Ok(Self {
            setting,
            cancellation,
            recorder,
            guest,
            isolation,
            outer,
            previews: Previews::default(),
            spent: Usage::default(),
        })
    }

    /// The guest as an agent takes it.
    pub(crate) fn bench(&mut self) -> agents::Bench<'_, 'r> {
        agents::Bench {
            setting: self.setting,
            recorder: self.recorder,
            runtime: self.guest.runtime.as_mut(),
            cancellation: self.cancellation,
        }
    }

    /// Ends the guest, then its way out.
    pub(crate) fn end(mut self) -> Result<Ended, ErrorBody> {
        // Nobody looks at a guest that is captured.
        let closed = self.close_preview(PreviewEnd::Closed);
        let left = self.guest.runtime.destroy();
        self.guest.egress.close(Phase::Work, self.recorder)?;
        closed?;
        self.recorder.preview = self.previews.into_record();
        Ok(Ended {
            left: left.left,
            usage: added(self.spent, left.usage),
            isolation: self.isolation,
            outer: self.outer,
        })
    }
}

fn added(one: Usage, other: Usage) -> Usage {
    Usage {
        cpu: one.cpu + other.cpu,
        peak_memory_bytes: one.peak_memory_bytes.max(other.peak_memory_bytes),
    }
}

/// A fresh guest whose mounts show their sources.
fn start(setting: &Setting<'_>) -> Result<WorkingGuest, ErrorBody> {
    let lowers = |index: usize| -> Vec<HostSource> { vec![setting.mounts[index].lower.clone()] };
    let egress = egress::prepare(setting, Phase::Work)?;
    let spec = spec(setting, Phase::Work, lowers, egress.guest())?;
    let mut runtime = guest(setting, &spec)?;
    let egress = egress.open(runtime.as_mut())?;
    Ok(WorkingGuest {
        runtime,
        egress,
        site: None,
        sites: 0,
        syncing: None,
        syncs: 0,
    })
}

/// Records what the probes of a new guest saw.
fn seen(
    setting: &Setting<'_>,
    recorder: &mut Recorder<'_>,
    runtime: &dyn Runtime,
) -> Result<(IsolationReport, SandboxAudit), ErrorBody> {
    let isolation = runtime.isolation().clone();
    let outer = runtime.outer_sandbox().clone();
    let seen = json!({"level": isolation.level, "network": setting.prepared.policy.network});
    let detail = seen.as_object().cloned().unwrap_or_default();
    recorder.observe(
        "runtime-info",
        json!({"isolation": isolation, "backend": "native"}),
        detail,
    )?;
    Ok((isolation, outer))
}
