//! Cgroup of a run or a self-test, from before root is given up until its last guest is dead.

use super::scope;
use crate::host::cgroup_reaper::CgroupReaper;
use std::path::Path;
use std::sync::Arc;
use wp_codebox_backend_native::{
    Cgroup, CgroupError, CgroupParents, Intent, RunCgroup, reap_cgroups,
};
use wp_codebox_contracts::{Limits, RunId, RunMode};
use wp_codebox_runtime::StateDir;

/// Process that removes the cgroup at the end.
#[derive(Debug)]
enum Remover {
    /// This process, which has the permission to remove it.
    Own,
    /// A helper process that has kept root, because root created the cgroup.
    Reaper(CgroupReaper),
}

/// What is released when the run has ended: the locked record of the cgroup, and the process that
/// removes the cgroup.
#[derive(Debug)]
struct Held {
    intent: Intent,
    remover: Remover,
}

/// Cgroup of a run, or the reason why there is none. The cgroup is removed when this value is
/// dropped.
#[derive(Debug)]
pub struct RunGroup {
    cgroup: Arc<Cgroup>,
    held: Option<Held>,
}

/// Removes the cgroups of dead runs, then does the same as [`make_only`]. Only root can remove the
/// cgroups that root created.
pub fn make(
    state: &StateDir,
    named: Option<&Path>,
    run: (&RunId, RunMode),
    limits: &Limits,
) -> RunGroup {
    let _ = reap_cgroups(state);
    make_only(state, named, run, limits)
}

/// Creates the run's cgroup with this process's current permissions. A host without cgroups is not
/// an error here: the policy decides whether the run may continue.
pub(crate) fn make_only(
    state: &StateDir,
    named: Option<&Path>,
    run: (&RunId, RunMode),
    limits: &Limits,
) -> RunGroup {
    match attempt(state, named, run, limits) {
        Ok(group) => group,
        Err(reason) => RunGroup {
            cgroup: Arc::new(Cgroup::none(reason)),
            held: None,
        },
    }
}

/// Returns the directories in which the cgroup is created. If this process's own cgroup belongs to
/// systemd, asks systemd for a scope first.
fn place(named: Option<&Path>, run: (&RunId, RunMode)) -> Result<CgroupParents, String> {
    let own = match named {
        Some(named) => CgroupParents::named(named),
        None => CgroupParents::own(),
    };
    match own {
        Err(error @ CgroupError::OfSystemd { .. }) => scope::enter(run)
            .map_err(|why| format!("{error}, and {why}"))
            .and_then(|()| CgroupParents::own().map_err(|e| e.to_string())),
        own => own.map_err(|e| e.to_string()),
    }
}

fn attempt(
    state: &StateDir,
    named: Option<&Path>,
    run: (&RunId, RunMode),
    limits: &Limits,
) -> Result<RunGroup, String> {
    let place = place(named, run)?;
    let (run_id, _) = run;
    let directories = RunCgroup::directories(&place, run_id);
    let intent = Intent::announce(state, run_id, &directories)
        .map_err(|e| format!("the cgroup's name cannot be stored in the state directory: {e}"))?;
    let group = match RunCgroup::make(&place, run_id, limits) {
        Ok(group) => group,
        Err(error) => {
            intent.done();
            return Err(error.to_string());
        }
    };
    let remover = if rustix::process::geteuid().is_root() {
        match CgroupReaper::start(&intent.path(state), state.owner(), &directories) {
            Ok(reaper) => Remover::Reaper(reaper),
            Err(error) => {
                group.remove();
                intent.done();
                return Err(format!(
                    "the process that would remove the cgroup cannot start: {error}"
                ));
            }
        }
    } else {
        Remover::Own
    };
    Ok(RunGroup {
        cgroup: Arc::new(Cgroup::Group(group)),
        held: Some(Held { intent, remover }),
    })
}

impl RunGroup {
    /// Returns the cgroup, in which the backend starts guests.
    pub fn cgroup(&self) -> Arc<Cgroup> {
        Arc::clone(&self.cgroup)
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        let (Cgroup::Group(group), Some(held)) = (self.cgroup.as_ref(), self.held.take()) else {
            return;
        };
        match held.remover {
            Remover::Own => {
                group.remove();
                if !group.exists() {
                    held.intent.done();
                }
            }
            Remover::Reaper(reaper) => reaper.finish(),
        }
    }
}
