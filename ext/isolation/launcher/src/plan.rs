//! Reads and checks the launch plan.
//!
//! The plan comes from the project's own supervisor and is validated here again: the launcher is the
//! program that makes the mounts, and it does not rely on the supervisor's validation.

use crate::error::{At, Failure, Step};
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::Read;
use wp_codebox_contracts::{
    BindSource, CallSet, EgressSockets, GuestPath, HostSource, IsolationLevel, LaunchMount,
    LaunchPlan, PLAN_VERSION, PlanIdentity,
};

/// Size limit in bytes of the launch plan.
const SIZE: u64 = 8 * 1024 * 1024;
/// Maximum number of mount steps in a launch plan; far below the kernel's limit on mounts
/// (fs.mount-max).
const STEPS: usize = 1024;
/// Maximum number of lower directories of one overlay.
const LOWERS: usize = 16;

/// Reads the plan from `fd` and validates it.
pub(crate) fn read(fd: OwnedFd) -> Result<LaunchPlan, Failure> {
    let plan = read_json(fd)?;
    check(&plan)?;
    Ok(plan)
}

/// Reads JSON from `fd`: a launch plan or a spawner plan.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(fd: OwnedFd) -> Result<T, Failure> {
    let mut bytes = Vec::new();
    File::from(fd)
        .take(SIZE + 1)
        .read_to_end(&mut bytes)
        .at(Step::Plan, "read")?;
    if bytes.len() as u64 > SIZE {
        return Err(rule("a plan larger than 8 MiB"));
    }
    serde_json::from_slice(&bytes).map_err(|_| rule("JSON that is not a plan"))
}

fn rule(what: &str) -> Failure {
    Failure::rule(Step::Plan, what)
}

fn check(plan: &LaunchPlan) -> Result<(), Failure> {
    if plan.version != PLAN_VERSION {
        return Err(rule(
            "the plan's version: install runner and launcher from the same build",
        ));
    }
    if let Some(sockets) = &plan.egress {
        egress(sockets, plan)?;
    }
    if let Some(port) = plan.mail
        && (port == 0 || plan.egress.as_ref().is_some_and(|one| one.port == port))
    {
        return Err(rule("the mail port, which is 0 or the egress port"));
    }
    if plan.guest_id == 0 {
        return Err(rule("guest_id, which must not be 0"));
    }
    let hostname_fits = (1..=64).contains(&plan.hostname.len())
        && plan
            .hostname
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !hostname_fits {
        return Err(rule("the hostname, whose length or characters are invalid"));
    }
    if plan.mounts.len() > STEPS {
        return Err(rule("more than 1024 mount steps"));
    }
    match plan.level {
        IsolationLevel::Full => tree(plan),
        IsolationLevel::Reduced => places(plan),
        IsolationLevel::None => Err(rule("level none, at which no guest is built")),
    }
}

/// Checks the mount steps of a launch plan for level `full`, where they build a root.
fn tree(plan: &LaunchPlan) -> Result<(), Failure> {
    for needed in [LaunchMount::Proc, LaunchMount::Dev] {
        if plan.mounts.iter().filter(|m| **m == needed).count() != 1 {
            return Err(rule(
                "the mount steps, which must have one proc and one dev step",
            ));
        }
    }
    for mount in &plan.mounts {
        step(mount)?;
    }
    if plan.writable.iter().any(|path| path.as_str() == "/") {
        return Err(rule("the writable paths, which must not contain /"));
    }
    Ok(())
}

/// Host directories to which a launch plan for level `reduced` must not give access; it may name
/// directories below them.
const TOO_BROAD: [&str; 16] = [
    "/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root", "/run",
    "/srv", "/sys", "/tmp", "/var", "/var/lib",
];

/// Checks the steps of a launch plan for level `reduced`, where nothing is mounted and each step
/// allows access to a host path.
fn places(plan: &LaunchPlan) -> Result<(), Failure> {
    for mount in &plan.mounts {
        let LaunchMount::Bind {
            source: BindSource::Host(host),
            target,
            writable,
        } = mount
        else {
            return Err(rule(
                "a step that needs a mount, which level reduced does not have",
            ));
        };
        let fine = host_source(host)
            && host.path == target.as_str()
            && !TOO_BROAD.contains(&host.path.as_str())
            // Writable paths must be the directories that the supervisor created, recorded by inode.
            && (!writable || host.inode.is_some());
        if !fine {
            return Err(rule("a host path that level reduced does not allow"));
        }
    }
    if plan.calls != CallSet::Programs {
        return Err(rule(
            "the system calls of a browser, which level reduced does not have",
        ));
    }
    // Without mounts the supervisor could not read files that a guest with another uid leaves.
    if plan.identity != PlanIdentity::Shared {
        return Err(rule(
            "a guest uid of its own, which level reduced does not have",
        ));
    }
    // The sockets for egress and mail would need a network namespace of the guest's own.
    if plan.egress.is_some() || plan.mail.is_some() {
        return Err(rule(
            "sockets for egress or mail, which level reduced does not have",
        ));
    }
    if plan.writable.is_empty() {
        Ok(())
    } else {
        Err(rule(
            "the list of writable paths, which must be empty at level reduced",
        ))
    }
}

fn host_source(source: &HostSource) -> bool {
    let path = source.path.as_str();
    path.starts_with('/')
        && path != "/"
        && !path.contains('\0')
        && !path.split('/').any(|part| matches!(part, "." | ".."))
}

/// Checks that the egress socket lies on the guest's own root tmpfs and not inside a path that
/// another step mounts.
fn egress(sockets: &EgressSockets, plan: &LaunchPlan) -> Result<(), Failure> {
    let covered = plan.mounts.iter().any(|mount| match mount {
        LaunchMount::Directory { .. } => false,
        LaunchMount::File(entry) => entry.target.contains(&sockets.socket),
        LaunchMount::Symlink { target, .. }
        | LaunchMount::Bind { target, .. }
        | LaunchMount::Scratch { target, .. }
        | LaunchMount::Overlay { target, .. }
        | LaunchMount::Merged { target, .. } => target.contains(&sockets.socket),
        LaunchMount::Proc => sockets.socket.as_str().starts_with("/proc/"),
        LaunchMount::Dev => sockets.socket.as_str().starts_with("/dev/"),
    });
    if covered || sockets.port == 0 || !sockets.socket.as_str().starts_with("/run/") {
        return Err(rule(
            "the egress port, which is 0, or its socket, which is not free below /run",
        ));
    }
    Ok(())
}

fn step(mount: &LaunchMount) -> Result<(), Failure> {
    // The launcher itself creates `/`; a step must not cover it.
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
        // With one lower directory, the plan must use a bind step.
        LaunchMount::Merged { lowers, target } => {
            below_root(target)
                && (2..=LOWERS).contains(&lowers.len())
                && lowers.iter().all(host_source)
        }
        LaunchMount::Proc | LaunchMount::Dev => true,
    };
    if fine {
        Ok(())
    } else {
        Err(rule("a mount step with an invalid path, mode or source"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::LaunchPurpose;
    use wp_codebox_contracts::Limits;

    fn plan(mounts: Vec<LaunchMount>) -> LaunchPlan {
        let mut all = vec![LaunchMount::Proc, LaunchMount::Dev];
        all.extend(mounts);
        LaunchPlan {
            version: PLAN_VERSION,
            purpose: LaunchPurpose::Serve,
            level: IsolationLevel::Full,
            guest_id: 1000,
            identity: Default::default(),
            hostname: "codebox".to_owned(),
            mounts: all,
            writable: vec![GuestPath::new("/tmp").unwrap()],
            calls: CallSet::Programs,
            limits: Limits::default(),
            scratch: None,
            egress: None,
            mail: None,
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
    fn minimal_launch_plan_is_accepted() {
        check(&plan(vec![bind("/usr", "/usr")])).unwrap();
    }

    /// Each seed must reach the check for which it was written: if an earlier check refused the
    /// seed, the fuzzer would not reach the later one.
    #[test]
    fn fuzzer_seed_climb_is_refused_by_its_rule_and_all_others_are_read_as_launch_plans() {
        let root = std::env::var("CARGO_MANIFEST_DIR").unwrap();
        let seeds = std::fs::read_dir(format!("{root}/../../../tests/fuzz/corpus/launch_plan"));
        let mut seen = 0;
        for seed in seeds.unwrap().flatten() {
            let name = seed.file_name().into_string().unwrap();
            let result = read(File::open(seed.path()).unwrap().into());
            match name.as_str() {
                "climb" => assert_eq!(
                    result,
                    Err(rule("a mount step with an invalid path, mode or source"))
                ),
                _ => drop(result.unwrap_or_else(|error| panic!("{name}: {error:?}"))),
            }
            seen += 1;
        }
        assert!(seen >= 4, "{seen}");
    }

    #[test]
    fn launch_plan_may_not_bind_the_host_root_the_guest_root_or_a_relative_or_dot_dot_path() {
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

    /// The inode proves that a writable directory is the one that the supervisor created.
    #[test]
    fn reduced_plan_binds_only_permitted_paths_to_themselves_and_writable_ones_with_an_inode() {
        let reduced = |mounts| LaunchPlan {
            level: IsolationLevel::Reduced,
            mounts,
            writable: Vec::new(),
            ..plan(vec![])
        };
        check(&reduced(vec![bind("/usr", "/usr")])).unwrap();
        for mounts in [
            vec![bind("/usr", "/elsewhere")],
            vec![bind("/var", "/var")],
            vec![bind("/home", "/home")],
            vec![LaunchMount::Proc],
        ] {
            assert!(check(&reduced(mounts.clone())).is_err(), "{mounts:?}");
        }
        let writable = |inode| LaunchMount::Bind {
            source: BindSource::Host(HostSource {
                path: "/state/run/tmp".to_owned(),
                inode,
            }),
            target: GuestPath::new("/state/run/tmp").unwrap(),
            writable: true,
        };
        let pinned = wp_codebox_contracts::InodeId {
            device: 1,
            inode: 2,
        };
        check(&reduced(vec![writable(Some(pinned))])).unwrap();
        assert!(check(&reduced(vec![writable(None)])).is_err());
        let mut none = plan(vec![]);
        none.level = IsolationLevel::None;
        assert!(check(&none).is_err());
    }

    #[test]
    fn egress_socket_outside_the_root_tmpfs_and_port_0_for_egress_or_mail_are_refused() {
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
        let mail = |port, level| {
            check(&LaunchPlan {
                mail: Some(port),
                level,
                ..plan(vec![])
            })
        };
        mail(25, IsolationLevel::Full).unwrap();
        assert!(mail(0, IsolationLevel::Full).is_err());
    }

    #[test]
    fn launch_plan_with_guest_id_0_a_writable_root_or_two_proc_mounts_is_refused() {
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
