//! Landlock: read and execute everywhere in the guest's tree, write where the plan says.
//!
//! At `full` it is a second line behind the read-only mounts: it also stops writes to
//! devices that the mounts allow, and keeps signals and abstract sockets inside. At
//! `reduced` it is the only line: what no rule names cannot be opened at all.

use crate::error::{At, Failure, Step};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fd::{AsFd, OwnedFd};
use wp_codebox_contracts::GuestPath;

/// The newest ABI whose rights are all handled.
const HANDLED: ABI = ABI::V7;
/// Without truncation rights (ABI 3) a file could be emptied although it may not be written.
const NEEDED: i32 = 3;
/// Makes `landlock_create_ruleset` answer the ABI.
const CREATE_RULESET_VERSION: libc::c_uint = 1;
/// Where nothing else confines signals (ABI 6), they must be confined here.
const NEEDED_ALONE: i32 = 6;
/// Devices that may be written. `/dev/urandom` is left out: nothing needs it, and its mode
/// alone would allow it, so a probe can see Landlock at work there.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/tty",
];

/// Puts the rules in force for this process and everything it starts; returns the ABI in use.
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
    // Device nodes are made by nobody; everything else is.
    let everything = AccessFs::from_all(HANDLED) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    for path in writable {
        rules = add(rules, path.as_str(), everything)?;
    }
    let status = rules.restrict_self().map_err(refused("restrict_self"))?;
    in_force(&status, NEEDED)
}

/// One place of the host that a guest at `reduced` may reach.
pub(crate) struct Place {
    /// Open with `O_PATH`.
    pub(crate) fd: OwnedFd,
    pub(crate) kind: PlaceKind,
}

/// What a place is and what may be done there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    /// A file, to read and execute.
    File,
    /// A directory, to read and execute everything below.
    Read,
    /// A directory, to do everything below.
    Write,
}

/// Denies every file but these places and the devices, every port, and signals and
/// abstract sockets beyond this process and what it starts; returns the ABI in use.
pub(crate) fn restrict_to(places: &[Place]) -> Result<u32, Failure> {
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
            PlaceKind::File => AccessFs::ReadFile | AccessFs::Execute,
            PlaceKind::Read => AccessFs::from_read(HANDLED),
            PlaceKind::Write => {
                AccessFs::from_all(HANDLED) & !(AccessFs::MakeBlock | AccessFs::MakeChar)
            }
        };
        rules = rules
            .add_rule(PathBeneath::new(place.fd.as_fd(), rights))
            .map_err(refused("a place"))?;
    }
    let status = rules.restrict_self().map_err(refused("restrict_self"))?;
    in_force(&status, NEEDED_ALONE)
}

/// From here on this process and what it starts signal nobody else. Nothing else changes.
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
        LandlockStatus::NotEnabled => return Err(Failure::rule(Step::Landlock, "not enabled")),
        LandlockStatus::NotImplemented => {
            return Err(Failure::rule(Step::Landlock, "not implemented"));
        }
    };
    if status.ruleset == RulesetStatus::NotEnforced || abi < needed {
        return Err(Failure::rule(
            Step::Landlock,
            format!("ABI {abi}, needed {needed}"),
        ));
    }
    Ok(u32::try_from(abi).unwrap_or(0))
}

/// Asks the kernel itself: the library keeps the errno to itself, and it is what tells
/// a kernel without Landlock from one where it is off and from a filter in the way.
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
