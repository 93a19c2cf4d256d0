//! Landlock rules: a guest may read and execute everything in its tree, and write only the paths
//! that the launch plan allows.
//!
//! At level `full` Landlock adds to the read-only mounts: it also denies writes to device nodes
//! that the mounts allow, and confines signals and abstract unix sockets to the guest. At level
//! `reduced` only Landlock restricts files: a path without a rule cannot be opened.

use crate::error::{At, Failure, Step};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fd::{AsFd, OwnedFd};
use wp_codebox_contracts::GuestPath;

/// Newest Landlock ABI version that this program knows. The rules restrict all access rights of
/// that version.
const HANDLED: ABI = ABI::V7;
/// Lowest accepted Landlock ABI version at level `full`. Without the truncate right (version 3) only
/// read-only mounts keep a program from truncating a file that it may not write, so then the probes
/// check that every other mount is writable according to the plan.
const NEEDED: i32 = 2;
/// Flag that makes `landlock_create_ruleset` return the kernel's ABI version.
const CREATE_RULESET_VERSION: libc::c_uint = 1;
/// Lowest accepted ABI version at level `reduced`, where only Landlock's signal scope (version 6)
/// confines signals.
const NEEDED_ALONE: i32 = 6;
/// Devices that a guest may write. `/dev/urandom` is left out on purpose: its file mode allows
/// writing, so a probe can observe that Landlock denies it.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/tty",
];

/// Enforces the rules of level `full` on this process and its children; returns the Landlock ABI
/// version in use.
pub(crate) fn restrict(writable: &[GuestPath]) -> Result<u32, Failure> {
    available()?;
    let refused = |subject: &'static str| move |_| Failure::rule(Step::Landlock, subject);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(HANDLED))
        .map_err(refused("rights"))?
        .scope(Scope::from_all(HANDLED))
        .map_err(refused("scopes"))?
        .create()
        .map_err(refused("ruleset"))?;
    let read = AccessFs::from_read(HANDLED);
    rules = add(rules, "/", read)?;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    for path in DEVICES {
        if rustix::fs::access(path, rustix::fs::Access::EXISTS).is_ok() {
            rules = add(rules, path, device)?;
        }
    }
    // All rights except creating device nodes, which nothing in the guest needs.
    let everything = AccessFs::from_all(HANDLED) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    for path in writable {
        rules = add(rules, path.as_str(), everything)?;
    }
    let status = rules.restrict_self().map_err(refused("restrict_self"))?;
    in_force(&status, NEEDED)
}

/// A host path that a guest at level `reduced` may access.
pub(crate) struct AllowedPath {
    /// Descriptor of the path, opened with `O_PATH`.
    pub(crate) fd: OwnedFd,
    pub(crate) kind: AllowedAccess,
}

/// Whether the path is a file or a directory, and which access is allowed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedAccess {
    /// The path is a file; the guest may read and execute it.
    File,
    /// The path is a directory; the guest may read and execute everything below it.
    Read,
    /// The path is a directory; the guest has every access to what is below it.
    Write,
}

/// Enforces the rules of level `reduced` on this process and its children. They deny access to
/// every TCP port and to every file except `places` and the devices, and confine signals and
/// abstract unix sockets to these processes. Returns the Landlock ABI version in use.
pub(crate) fn restrict_to(places: &[AllowedPath]) -> Result<u32, Failure> {
    let refused = |subject: &'static str| move |_| Failure::rule(Step::Landlock, subject);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(HANDLED))
        .map_err(refused("rights"))?
        .handle_access(AccessNet::from_all(HANDLED))
        .map_err(refused("ports"))?
        .scope(Scope::from_all(HANDLED))
        .map_err(refused("scopes"))?
        .create()
        .map_err(refused("ruleset"))?;
    let file = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    for path in DEVICES {
        if path != "/dev/tty" {
            rules = add(rules, path, file)?;
        }
    }
    rules = add(rules, "/dev/urandom", AccessFs::ReadFile.into())?;
    for place in places {
        let rights = match place.kind {
            AllowedAccess::File => AccessFs::ReadFile | AccessFs::Execute,
            AllowedAccess::Read => AccessFs::from_read(HANDLED),
            AllowedAccess::Write => {
                AccessFs::from_all(HANDLED) & !(AccessFs::MakeBlock | AccessFs::MakeChar)
            }
        };
        rules = rules
            .add_rule(PathBeneath::new(place.fd.as_fd(), rights))
            .map_err(refused("an allowed path"))?;
    }
    let status = rules.restrict_self().map_err(refused("restrict_self"))?;
    in_force(&status, NEEDED_ALONE)
}

/// Lets this process and its children send signals only to each other. Restricts nothing else.
pub(crate) fn confine_signals() -> Result<(), Failure> {
    let refused = |subject: &'static str| move |_| Failure::rule(Step::Landlock, subject);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::Signal)
        .map_err(refused("signal scope"))?
        .create()
        .map_err(refused("signal scope"))?
        .restrict_self()
        .map_err(refused("signal scope"))?;
    in_force(&status, NEEDED_ALONE).map(drop)
}

fn in_force(status: &RestrictionStatus, needed: i32) -> Result<u32, Failure> {
    let abi = match status.landlock {
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => kernel_abi.unwrap_or(effective_abi as i32),
        LandlockStatus::NotEnabled => {
            return Err(Failure::rule(
                Step::Landlock,
                "a kernel with Landlock disabled",
            ));
        }
        LandlockStatus::NotImplemented => {
            return Err(Failure::rule(Step::Landlock, "a kernel without Landlock"));
        }
    };
    if status.ruleset == RulesetStatus::NotEnforced || abi < needed {
        return Err(Failure::rule(
            Step::Landlock,
            format!("ABI version {abi}; at least {needed} must be enforced"),
        ));
    }
    Ok(u32::try_from(abi).unwrap_or(0))
}

/// Checks that Landlock is usable. Calls the kernel directly, because the landlock crate hides the
/// errno. The errno distinguishes a kernel without Landlock (ENOSYS), a disabled Landlock
/// (EOPNOTSUPP) and a seccomp filter that refuses the call.
fn available() -> Result<(), Failure> {
    // SAFETY: with this flag the call takes no attributes and touches no memory.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            CREATE_RULESET_VERSION,
        )
    };
    if answer < 0 {
        return Err(std::io::Error::last_os_error()).at(Step::Landlock, "version");
    }
    Ok(())
}

fn add(
    rules: RulesetCreated,
    path: &str,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, Failure> {
    let refused = || Failure::rule(Step::Landlock, path);
    let fd = PathFd::new(path).map_err(|_| refused())?;
    rules
        .add_rule(PathBeneath::new(fd, rights))
        .map_err(|_| refused())
}
