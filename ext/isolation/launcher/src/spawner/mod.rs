//! The spawner: a process that starts launchers under a kernel uid that nothing else on the host
//! has.
//!
//! A spawner started by root first does the steps that need root. It locks a free id. It makes
//! idmapped mounts of the host directories that launchers need; in these mounts the files belong to
//! that id. It enters a user namespace that maps two ids only: the owner of the state directory as
//! 0 and the guest's id as 1. After that it has no rights over other host objects. For a spawner
//! started by a user with subordinate ids, `newuidmap` and `newgidmap` write the two maps. Such a
//! spawner has the supervisor's rights plus those over the guest's id, so it mounts any path that the
//! supervisor names (see `store`). Launchers are children of the spawner and run as the guest's id
//! without capabilities. Paths that they name are resolved in the spawner's mount namespace with
//! the guest's rights, so a supervisor cannot expose a path that was not in the plan before root was
//! dropped.
//!
//! The spawner holds the lock of the id while it lives and kills every process of the id before it
//! ends. If the spawner is killed, processes with the id may survive it. So a later spawner uses an
//! unlocked id only if no process has that id.

mod disk;
mod ids;
mod serve;
mod store;
mod user_namespace;
mod views;

use crate::channel::{Channel, Incoming};
use crate::error::{At, Failure, NOT_STARTED, Step};
use crate::plan;
use rustix::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use user_namespace::OWNER;
use views::is_name;
use wp_codebox_contracts::{
    GuestReply, KernelIds, PLAN_VERSION, SpawnerPlan, SpawnerReply, SpawnerRequest, SpawnerScratch,
};

/// Maximum number of host directories that a spawner mounts for launchers at its start.
const VIEWS: usize = 256;

/// Runs the spawner: serves requests until the supervisor ends.
pub(crate) fn main(plan: OwnedFd, channel: &Channel, lifetime: &OwnedFd) -> ExitCode {
    match run(plan, channel, lifetime) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let GuestReply::Failed {
                step,
                subject,
                errno,
            } = failure.reply()
            else {
                return ExitCode::from(NOT_STARTED);
            };
            // If the reply cannot be sent, the exit status alone reports the failure.
            let _ = channel.send(&SpawnerReply::Failed {
                step,
                subject,
                errno,
            });
            ExitCode::from(NOT_STARTED)
        }
    }
}

fn run(plan: OwnedFd, channel: &Channel, lifetime: &OwnedFd) -> Result<(), Failure> {
    let plan: SpawnerPlan = plan::read_json(plan)?;
    check(&plan)?;
    let by_root = rustix::process::geteuid().is_root();
    let on_disk = match plan.scratch {
        SpawnerScratch::Memory => 0,
        SpawnerScratch::FileSystem(_) => 1,
    };
    if !by_root && plan.views.len() + on_disk > 0 {
        return Err(Failure::rule(
            Step::View,
            "the host directories to mount, which need a spawner started by root",
        ));
    }
    // Makes orphans of a killed launcher children of the spawner instead of the host's init, so
    // that the spawner reaps them.
    crate::reduced::adopt_orphans()?;
    let mut sources = sources(channel, plan.views.len() + on_disk)?;
    let lease = ids::take(&plan)?;
    let guest = lease.ids();
    if by_root {
        let file = sources.split_off(plan.views.len()).pop();
        let mounts = views::prepare(&plan, &sources, guest, channel)?;
        let made = match (plan.scratch, file) {
            (SpawnerScratch::FileSystem(bytes), Some(file)) => {
                Some(disk::make(&file, bytes, guest))
            }
            _ => None,
        };
        views::attach_all(
            &plan,
            &mounts,
            made.as_ref().and_then(|made| made.as_ref().ok()),
        )?;
        if let Some(made) = made {
            let theirs = made.and_then(|mount| disk::for_owner(&mount, guest, plan.owner));
            send_scratch(theirs, channel)?;
        }
    }
    let program = rustix::fs::open(
        "/proc/self/exe",
        rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )
    .at(Step::Descriptors, "launcher")?;
    user_namespace::enter(&plan, guest)?;
    let exposed = user_namespace::of(
        plan.guest_id,
        KernelIds {
            uid: OWNER,
            gid: OWNER,
        },
    )?;
    if plan.scratch == SpawnerScratch::Memory {
        views::check_scratch(&exposed)?;
    }
    let mut context = serve::SpawnerContext {
        program,
        exposed,
        place: None,
    };
    let ready = SpawnerReply::Ready { id: guest.uid };
    if by_root {
        channel.send(&ready)?;
    } else {
        let (place, store) = store::make(&plan.place)?;
        channel.send_with(&ready, &[store.as_fd()])?;
        context.place = Some(place);
    }
    let served = serve::serve(channel, lifetime, &context);
    ids::end_all_of_guest();
    drop(lease);
    served
}

/// Sends the supervisor its mount of the file system for the guests' files, or why there is none: the
/// files then lie in the state directory.
fn send_scratch(theirs: Result<OwnedFd, Failure>, channel: &Channel) -> Result<(), Failure> {
    let reply = |subject, errno| SpawnerReply::Scratch { subject, errno };
    match theirs {
        Ok(mount) => channel.send_with(&reply(String::new(), 0), &[mount.as_fd()]),
        Err(Failure { subject, errno, .. }) => channel.send(&reply(subject, errno)),
    }
}

fn check(plan: &SpawnerPlan) -> Result<(), Failure> {
    let rule = |what| Err(Failure::rule(Step::Plan, what));
    if plan.version != PLAN_VERSION {
        return rule("the plan's version: install runner and launcher from the same build");
    }
    if !plan.ids.is_valid() || plan.owner.uid == 0 || plan.guest_id == 0 {
        return rule("an id in the plan, which is invalid or 0");
    }
    if plan.ids.contains(plan.owner.uid) || plan.ids.contains(plan.owner.gid) {
        return rule("the guest ids, which contain the uid or gid of the state directory's owner");
    }
    let names_fit = plan
        .views
        .iter()
        .all(|view| is_name(&view.name) && view.covered.iter().all(|covered| is_name(covered)));
    let places_fit = [&plan.locks, &plan.place]
        .iter()
        .all(|path| path.starts_with('/') && !path.contains("/.."));
    if plan.views.len() > VIEWS || !names_fit || !places_fit {
        return rule("the host directories to mount: too many, or with an invalid name or path");
    }
    Ok(())
}

/// Receives the descriptor of each host directory to mount, in the order of the plan.
fn sources(channel: &Channel, count: usize) -> Result<Vec<OwnedFd>, Failure> {
    let mut buffer = Vec::new();
    let mut sources = Vec::new();
    while sources.len() < count {
        match channel.receive(&mut buffer) {
            Incoming::Request(SpawnerRequest::Source { index }, mut descriptors)
                if index == sources.len() && descriptors.len() == 1 =>
            {
                sources.append(&mut descriptors);
            }
            Incoming::Nothing => {}
            Incoming::Request(..) | Incoming::Malformed | Incoming::Closed => {
                return Err(Failure::rule(
                    Step::Channel,
                    "a host directory's descriptor, which is missing or out of order",
                ));
            }
        }
    }
    Ok(sources)
}
