//! Launch plan of the guest that a self-test starts.

use crate::host::{HostLayout, SystemEntryKind};
use wp_codebox_contracts::{
    BindSource, CallSet, GuestPath, HostSource, IsolationLevel, LaunchMount, LaunchPlan,
    LaunchPurpose, Limits, PLAN_VERSION, PlanIdentity,
};

/// Returns the smallest launch plan that can start: system directories and a scratch `/tmp`.
/// Self-tests use it.
#[must_use]
pub fn probe_plan(host: &HostLayout) -> LaunchPlan {
    let mut mounts = vec![LaunchMount::Proc, LaunchMount::Dev];
    for entry in &host.system {
        let Ok(target) = GuestPath::new(entry.path.clone()) else {
            continue;
        };
        mounts.push(match &entry.kind {
            SystemEntryKind::Directory => LaunchMount::Bind {
                source: BindSource::Host(HostSource::of(&entry.path)),
                target,
                writable: false,
            },
            SystemEntryKind::Link(to) => LaunchMount::Symlink {
                target,
                to: to.clone(),
            },
        });
    }
    let writable: Vec<GuestPath> = GuestPath::new("/tmp").into_iter().collect();
    mounts.extend(writable.iter().map(|target| LaunchMount::Scratch {
        target: target.clone(),
        mode: 0o1777,
    }));
    LaunchPlan {
        version: PLAN_VERSION,
        purpose: LaunchPurpose::Serve,
        level: IsolationLevel::Full,
        guest_id: 1000,
        identity: PlanIdentity::Shared,
        hostname: "codebox".to_owned(),
        mounts,
        writable,
        calls: CallSet::Programs,
        limits: Limits::default(),
        scratch: None,
        egress: None,
        mail: None,
    }
}
