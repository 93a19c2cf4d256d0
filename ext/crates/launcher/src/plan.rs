//! Reading and checking the plan.
//!
//! The plan comes from our own runner, yet it is checked here again: this is the last
//! program with any power over mounts, and it does not depend on another's care.

use crate::error::{At, Failure, Step};
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::Read;
use wp_codebox_contracts::{
    BindSource, EgressSockets, GuestPath, HostSource, IsolationLevel, LaunchMount, LaunchPlan,
    LaunchPurpose,
};

/// Largest plan, bytes.
const SIZE: u64 = 8 * 1024 * 1024;
/// Most steps; far below any limit on mounts.
const STEPS: usize = 1024;
/// Most lowers of one overlay.
const LOWERS: usize = 16;

/// Reads the plan to its end.
pub(crate) fn read(fd: OwnedFd) -> Result<LaunchPlan, Failure> {
    let mut bytes = Vec::new();
    File::from(fd)
        .take(SIZE + 1)
        .read_to_end(&mut bytes)
        .at(Step::Plan, "read")?;
    if bytes.len() as u64 > SIZE {
        return Err(rule("larger than 8 MiB"));
    }
    let plan = serde_json::from_slice(&bytes).map_err(|_| rule("not a launch plan"))?;
    check(&plan)?;
    Ok(plan)
}

fn rule(what: &str) -> Failure {
    Failure::rule(Step::Plan, what)
}

fn check(plan: &LaunchPlan) -> Result<(), Failure> {
    if plan.version != 2 {
        return Err(rule("unknown version"));
    }
    if plan.level != IsolationLevel::Full {
        return Err(rule("level"));
    }
    if plan.purpose != LaunchPurpose::Serve {
        return Err(rule("purpose"));
    }
    if let Some(sockets) = &plan.egress {
        egress(sockets, plan)?;
    }
    if plan.guest_id == 0 {
        return Err(rule("guest_id 0"));
    }
    let hostname_fits = (1..=64).contains(&plan.hostname.len())
        && plan
            .hostname
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !hostname_fits {
        return Err(rule("hostname"));
    }
    if plan.mounts.len() > STEPS {
        return Err(rule("too many steps"));
    }
    for needed in [LaunchMount::Proc, LaunchMount::Dev] {
        if plan.mounts.iter().filter(|m| **m == needed).count() != 1 {
            return Err(rule("exactly one proc and one dev step are needed"));
        }
    }
    for mount in &plan.mounts {
        step(mount)?;
    }
    if plan.writable.iter().any(|path| path.as_str() == "/") {
        return Err(rule("the root is never writable"));
    }
    Ok(())
}

/// The socket lies on the guest's own root, where no step of the plan shows anything of the host's.
fn egress(sockets: &EgressSockets, plan: &LaunchPlan) -> Result<(), Failure> {
    let covered = plan.mounts.iter().any(|mount| match mount {
        LaunchMount::Directory { .. } => false,
        LaunchMount::File(entry) => entry.target.contains(&sockets.socket),
        LaunchMount::Symlink { target, .. }
        | LaunchMount::Bind { target, .. }
        | LaunchMount::Scratch { target, .. }
        | LaunchMount::Overlay { target, .. } => target.contains(&sockets.socket),
        LaunchMount::Proc => sockets.socket.as_str().starts_with("/proc/"),
        LaunchMount::Dev => sockets.socket.as_str().starts_with("/dev/"),
    });
    if covered || sockets.port == 0 || !sockets.socket.as_str().starts_with("/run/") {
        return Err(rule("egress sockets"));
    }
    Ok(())
}

fn step(mount: &LaunchMount) -> Result<(), Failure> {
    let host_path = |path: &str| {
        path.starts_with('/') && !path.contains('\0') && !path.split('/').any(|part| part == "..")
    };
    let host_source = |source: &HostSource| host_path(&source.path) && source.path != "/";
    // `/` itself is made by the launcher, and nothing may cover it again.
    let below_root = |target: &GuestPath| target.as_str() != "/";
    let fine = match mount {
        LaunchMount::Directory { target } | LaunchMount::Symlink { target, .. } => {
            below_root(target)
        }
        LaunchMount::File(entry) => below_root(&entry.target) && entry.mode <= 0o777,
        LaunchMount::Bind { source, target, .. } => {
            below_root(target)
                && match source {
                    BindSource::Host(source) => host_source(source),
                    BindSource::Guest { path } => below_root(path),
                }
        }
        LaunchMount::Scratch { target, mode } => below_root(target) && *mode <= 0o1777,
        LaunchMount::Overlay { lowers, target, .. } => {
            below_root(target)
                && (1..=LOWERS).contains(&lowers.len())
                && lowers.iter().all(host_source)
        }
        LaunchMount::Proc | LaunchMount::Dev => true,
    };
    if fine {
        Ok(())
    } else {
        Err(rule("a step breaks a rule"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::Limits;

    fn plan(mounts: Vec<LaunchMount>) -> LaunchPlan {
        let mut all = vec![LaunchMount::Proc, LaunchMount::Dev];
        all.extend(mounts);
        LaunchPlan {
            version: 2,
            purpose: LaunchPurpose::Serve,
            level: IsolationLevel::Full,
            guest_id: 1000,
            hostname: "codebox".to_owned(),
            mounts: all,
            writable: vec![GuestPath::new("/tmp").unwrap()],
            limits: Limits::default(),
            egress: None,
        }
    }

    fn bind(path: &str, target: &str) -> LaunchMount {
        LaunchMount::Bind {
            source: BindSource::Host(HostSource::of(path)),
            target: GuestPath::new(target).unwrap(),
            writable: false,
        }
    }

    #[test]
    fn a_plain_plan_passes() {
        check(&plan(vec![bind("/usr", "/usr")])).unwrap();
    }

    #[test]
    fn the_hosts_root_and_climbing_paths_are_refused() {
        for (path, target) in [
            ("/", "/host"),
            ("/usr", "/"),
            ("/a/../b", "/b"),
            ("usr", "/usr"),
        ] {
            assert!(
                check(&plan(vec![bind(path, target)])).is_err(),
                "{path} {target}"
            );
        }
    }

    #[test]
    fn egress_sockets_lie_on_the_guests_own_root() {
        let with = |socket: &str, port| {
            let mut plan = plan(vec![bind("/usr", "/run/codebox/share")]);
            plan.egress = Some(EgressSockets {
                socket: GuestPath::new(socket).unwrap(),
                port,
            });
            check(&plan)
        };
        with("/run/codebox/egress.sock", 3128).unwrap();
        for (socket, port) in [
            ("/run/codebox/egress.sock", 0),
            ("/run/codebox/share", 3128),
            ("/run/codebox/share/egress.sock", 3128),
            ("/tmp/egress.sock", 3128),
            ("/run", 3128),
        ] {
            assert!(with(socket, port).is_err(), "{socket} {port}");
        }
    }

    #[test]
    fn root_inside_and_a_writable_root_are_refused() {
        let mut root = plan(vec![]);
        root.guest_id = 0;
        assert!(check(&root).is_err());
        let mut open = plan(vec![]);
        open.writable.push(GuestPath::new("/").unwrap());
        assert!(check(&open).is_err());
        let mut twice = plan(vec![LaunchMount::Proc]);
        assert!(check(&twice).is_err());
        twice.mounts.remove(0);
        check(&twice).unwrap();
    }
}
