//! Probe of the isolation axis `files`: what the guest's tree contains and which parts are
//! writable.

use super::findings::Observation;
use super::observe::{Before, open_errno, read, wrong};
use crate::error::{At, Failure, Step};
use crate::shortfall::Shortfalls;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs;
use wp_codebox_contracts::{LaunchMount, LaunchPlan};

const BY_VIEW: &str = "mount namespace, pivot_root, overlays, copies";
/// First Landlock ABI version with a right to truncate files.
const TRUNCATE: u32 = 3;

/// Returns the names of the entries that the guest's root directory must have according to the
/// plan.
fn expected_entries(plan: &LaunchPlan) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["proc", "dev"].map(str::to_owned).into();
    for mount in &plan.mounts {
        let target = match mount {
            LaunchMount::Directory { target }
            | LaunchMount::Symlink { target, .. }
            | LaunchMount::Bind { target, .. }
            | LaunchMount::Scratch { target, .. }
            | LaunchMount::Overlay { target, .. }
            | LaunchMount::Merged { target, .. } => target,
            LaunchMount::File(entry) => &entry.target,
            LaunchMount::Proc | LaunchMount::Dev => continue,
        };
        names.extend(target.as_str().split('/').nth(1).map(str::to_owned));
    }
    if let Some(sockets) = &plan.egress {
        names.extend(sockets.socket.as_str().split('/').nth(1).map(str::to_owned));
    }
    names
}

/// Checks that the root is the planned tree, is read-only and shows nothing else of the host.
/// `bound` lists the system directories that are bind-mounted because no overlay was possible,
/// `landlock_abi` is the Landlock ABI version in force.
pub(super) fn files(
    plan: &LaunchPlan,
    before: &Before,
    bound: &[String],
    landlock_abi: u32,
    shortfalls: &Shortfalls,
) -> Result<Observation, Failure> {
    let is_host = |path: &str| {
        rustix::fs::stat(path).is_ok_and(|s| s.st_dev == before.device && s.st_ino == before.inode)
    };
    let expected = expected_entries(plan);
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir("/").at(Step::Probe, "/")? {
        let name = entry.at(Step::Probe, "/")?.file_name();
        let name = name.to_string_lossy().into_owned();
        if !expected.contains(&name) || is_host(&format!("/{name}")) {
            return Err(wrong(format!("/{name}, which is not as planned")));
        }
        seen.insert(name);
    }
    if is_host("/") || is_host("/..") || seen != expected {
        return Err(wrong("/, which is not the planned root"));
    }
    if open_errno("/.probe", OFlags::CREATE | OFlags::WRONLY).is_none() {
        return Err(wrong("/, which is writable"));
    }
    let (mounts, writable) = mounts(plan, bound, landlock_abi)?;
    let truncated = match truncation_is_denied(plan)? {
        Some(path) => path,
        None if landlock_abi >= TRUNCATE => "no file",
        None => return Err(wrong("the plan, which has no file to truncate")),
    };
    let inodes = if bound.is_empty() {
        "no inode of the host except devices is mounted".to_owned()
    } else {
        format!(
            "host directories are bind-mounted at {}, because no overlay could be mounted there",
            bound.join(" ")
        )
    };
    let view = format!(
        "root shows only {}; creating in it and truncating {truncated} are denied; {mounts} mounts, \
         {writable} writable, all of the run's own files or planned; {inodes}",
        seen.into_iter().collect::<Vec<_>>().join(" ")
    );
    if shortfalls.has(Step::Landlock) {
        return Ok(Observation::best_effort(BY_VIEW, view));
    }
    landlock_denies()?;
    Ok(Observation::enforced(
        &format!("{BY_VIEW}, Landlock"),
        format!("{view}; Landlock denies a write that file modes allow"),
    ))
}

/// Tries to truncate the first planned file of the root; Landlock below ABI version 3 cannot deny
/// that, a read-only mount does. Returns the path of the file, if
/// there is one.
fn truncation_is_denied(plan: &LaunchPlan) -> Result<Option<&str>, Failure> {
    let first = plan.mounts.iter().find_map(|mount| match mount {
        LaunchMount::File(entry) => Some(entry.target.as_str()),
        _ => None,
    });
    let Some(path) = first else {
        return Ok(None);
    };
    let size = rustix::fs::stat(path).at(Step::Probe, path)?.st_size;
    let target = std::ffi::CString::new(path).map_err(|_| wrong(path))?;
    // SAFETY: the path is a valid string for the length of the call.
    let done = unsafe { libc::truncate(target.as_ptr(), size) };
    match crate::mounting::last_errno() {
        Errno::ROFS | Errno::ACCESS | Errno::PERM if done < 0 => Ok(Some(path)),
        _ => Err(wrong(format!("{path}, which can be truncated"))),
    }
}

/// Checks that Landlock denies writing to `/dev/urandom` but not to `/dev/null`: both nodes have
/// the same mode and mount, so only Landlock tells them apart.
fn landlock_denies() -> Result<(), Failure> {
    if open_errno("/dev/null", OFlags::WRONLY).is_some() {
        return Err(wrong("/dev/null, which is not writable"));
    }
    if open_errno("/dev/urandom", OFlags::WRONLY) != Some(libc::EACCES) {
        return Err(wrong("/dev/urandom, which Landlock lets programs write"));
    }
    Ok(())
}

/// Counts all mounts and the writable ones. A mount whose file system is not one of the guest's own
/// (tmpfs, overlay, proc) is a bind mount of the host. It must be a planned writable mount, a device,
/// or in a directory of `bound`; and if it is writable, it must be a planned writable mount. The root
/// is never writable. Where Landlock cannot deny truncation, every writable mount except `/proc` must
/// lie below a path that the plan allows to write.
fn mounts(
    plan: &LaunchPlan,
    bound: &[String],
    landlock_abi: u32,
) -> Result<(usize, usize), Failure> {
    let planned: BTreeSet<&str> = plan
        .mounts
        .iter()
        .filter_map(|mount| match mount {
            LaunchMount::Bind {
                target,
                writable: true,
                ..
            } => Some(target.as_str()),
            // These lie on a host's disk if the plan names a directory for them.
            LaunchMount::Scratch { target, .. } if plan.scratch.is_some() => Some(target.as_str()),
            _ => None,
        })
        .collect();
    let may_be_written = |point: &str| {
        let below = |path: &str| {
            point
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        landlock_abi >= TRUNCATE
            || point == "/proc"
            || plan.writable.iter().any(|path| below(path.as_str()))
    };
    let is_bound = |point: &str| {
        let within = |outer: &str| {
            point
                .strip_prefix(outer)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        within("/dev") || bound.iter().any(|outer| within(outer))
    };
    let text = read("/proc/self/mountinfo")?;
    let mut writable = 0;
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let kind = fields.iter().position(|field| *field == "-");
        let kind = kind.and_then(|at| fields.get(at + 1));
        let (Some(point), Some(options), Some(kind)) = (fields.get(4), fields.get(5), kind) else {
            return Err(wrong("a line of mountinfo that cannot be parsed"));
        };
        let private = matches!(*kind, "tmpfs" | "overlay" | "proc");
        if !(private || planned.contains(point) || is_bound(point)) {
            return Err(wrong(format!("{point}, which is an unplanned bind mount")));
        }
        if options.split(',').any(|option| option == "ro") {
            continue;
        }
        writable += 1;
        if *point == "/" || !(private || planned.contains(point)) || !may_be_written(point) {
            return Err(wrong(format!("{point}, which must not be writable")));
        }
    }
    Ok((text.lines().count(), writable))
}
