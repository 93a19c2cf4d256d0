//! Validates mounts: their targets in the guest, and which host directories may be mounted.

use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, GuestPath, MountAccess, MountRequest, RunPaths,
};
use wp_codebox_contracts::{FilesystemPolicy, GUEST_SYSTEM, RuntimePolicy};

/// Directory in the guest for staged files, which are host files that the guest may read.
pub const GUEST_STAGED_ROOT: &str = "/run/codebox/staged";

/// Host directories of the operating system. A mount of any of them would show secrets of the host
/// to the guest.
const SYSTEM: &[&str] = &["/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/var/run"];

/// Guest paths that belong to WordPress or to this product; no mount or staged file may overlap
/// them.
const RESERVED: &[&str] = &[
    "/wordpress/wp-content/database",
    "/wordpress/wp-content/db.php",
    "/wordpress/wp-content/index.php",
];
/// Guest paths of this product's own must-use plugins. The directory of must-use plugins may be a
/// mount: the guest then sees these entries above the entries of the mount's source.
const OWN_MUST_USE: &[&str] = &[
    "/wordpress/wp-content/mu-plugins/contained-runtime",
    "/wordpress/wp-content/mu-plugins/wp-codebox-guest.php",
];
/// Prefix of the guest paths below `wp-content`.
const CONTENT: &str = "/wordpress/wp-content/";
/// Directory of must-use plugins in the guest.
pub(crate) const MUST_USE: &str = "/wordpress/wp-content/mu-plugins";
/// Guest directories that other parts of the guest use too: a mount may lie below them, but may not
/// replace them.
const SHARED: &[&str] = &[
    "/home",
    "/home/agent",
    "/tmp",
    "/wordpress",
    "/wordpress/wp-content",
    "/wordpress/wp-content/plugins",
    "/wordpress/wp-content/themes",
];

/// Why a mount is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum MountError {
    /// The target is not a normalised path, is below `/wordpress` but not below its `wp-content`,
    /// is a directory that other parts of the guest use too, or is a path of the system or the
    /// runtime.
    #[error(
        "mount target {target:?} must be a normalised path below /workspace, /wordpress/wp-content, /tmp, /home/agent or a directory of its own such as /harness, but not the whole plugins or themes directory, and not a directory of the system or the runtime such as /usr, /etc, /run or /opt/codebox"
    )]
    #[code(MountTargetInvalid)]
    Target {
        /// Target of the mount in the request.
        target: String,
    },
    /// The targets of two mounts overlap.
    #[error("mount targets {first} and {second} overlap; give each mount a target of its own")]
    #[code(MountTargetOverlap)]
    Overlap {
        /// Target of the first mount.
        first: GuestPath,
        /// Target of the second mount.
        second: GuestPath,
    },
    /// The source of a mount is not an absolute path.
    #[error("mount source {source_path:?} must be the absolute path of a directory")]
    #[code(MountSourceInvalid)]
    Source {
        /// Source of the mount in the request.
        source_path: String,
    },
    /// The source of a mount or staged file is, contains or lies in a directory that must not be
    /// shown to guests, e.g. a system directory.
    #[error(
        "{subject} must not be shown to guests: it is, contains or is inside {what}; use the plugin or theme directory itself"
    )]
    #[code(MountDenied)]
    Denied {
        /// Name of the mount or staged file, e.g. `the source of mount /workspace/a`; never its
        /// host path, because the message may reach a remote caller.
        subject: String,
        /// Kind of the directory that the source is, contains or lies in.
        what: &'static str,
    },
    /// The source of a mount is outside the directories that this caller may mount.
    #[error(
        "{subject} lies outside the installed plugins, themes and wp_codebox.mount_roots; mount one of those, or let the operator add its directory to wp_codebox.mount_roots"
    )]
    #[code(MountDenied)]
    OutsideRoots {
        /// Name of the mount or staged file, as in [`Self::Denied`].
        subject: String,
    },
    /// The policy's file-system access forbids the mount.
    #[error(
        "the filesystem policy `{policy}` forbids the {wanted} mount at {target}; choose a policy that allows it"
    )]
    #[code(MountDenied)]
    Policy {
        /// File-system access of the policy, e.g. `sandbox`.
        policy: &'static str,
        /// Requested access to the mount: `readonly` or `readwrite`.
        wanted: &'static str,
        /// Target of the mount.
        target: String,
    },
    /// The target of a staged file is outside the allowed directories.
    #[error(
        "staged file target {target:?} must lie below {GUEST_STAGED_ROOT}, /workspace, /wordpress/wp-content, /tmp or a directory of its own, and not in a directory of the system or the runtime"
    )]
    #[code(MountTargetInvalid)]
    StagedTarget {
        /// Target of the staged file in the request.
        target: String,
    },
}

/// Checks the mounts of a run: targets, overlaps and the policy's file-system access. Returns the
/// normalised targets in order.
pub fn check_mounts(
    mounts: &[MountRequest],
    policy: &RuntimePolicy,
) -> Result<Vec<GuestPath>, MountError> {
    let mut targets: Vec<GuestPath> = Vec::with_capacity(mounts.len());
    for mount in mounts {
        if !mount.source.starts_with('/') || mount.source.contains('\0') {
            return Err(MountError::Source {
                source_path: mount.source.clone(),
            });
        }
        let target = check_target(&mount.target)?;
        if let Some(first) = targets
            .iter()
            .find(|t| t.contains(&target) || target.contains(t))
        {
            return Err(MountError::Overlap {
                first: first.clone(),
                second: target,
            });
        }
        check_posture(mount, policy)?;
        targets.push(target);
    }
    Ok(targets)
}

fn check_target(text: &str) -> Result<GuestPath, MountError> {
    let fail = || MountError::Target {
        target: text.to_owned(),
    };
    let target = GuestPath::new(text).map_err(|_| fail())?;
    if is_free(&target) {
        Ok(target)
    } else {
        Err(fail())
    }
}

/// Returns whether a mount or a staged file may appear at a guest path.
fn is_free(target: &GuestPath) -> bool {
    let paths = |list: &'static [&str]| list.iter().filter_map(|r| GuestPath::new(*r).ok());
    let outside_content =
        target.as_str().starts_with("/wordpress/") && !target.as_str().starts_with(CONTENT);
    let own = target.as_str() != MUST_USE
        && paths(OWN_MUST_USE).any(|own| own.contains(target) || target.contains(&own));
    let reserved = paths(RESERVED)
        .chain(paths(GUEST_SYSTEM))
        .any(|r| r.contains(target) || target.contains(&r));
    !outside_content && !own && !reserved && !SHARED.contains(&target.as_str())
}

fn check_posture(mount: &MountRequest, policy: &RuntimePolicy) -> Result<(), MountError> {
    let wanted = match mount.mode {
        MountAccess::Readonly => "readonly",
        MountAccess::Readwrite => "readwrite",
    };
    let refuse = |policy| {
        Err(MountError::Policy {
            policy,
            wanted,
            target: mount.target.clone(),
        })
    };
    match (policy.filesystem, mount.mode) {
        (FilesystemPolicy::Sandbox, _) => refuse("sandbox"),
        (FilesystemPolicy::ReadonlyMounts, MountAccess::Readwrite) => refuse("readonly-mounts"),
        (FilesystemPolicy::ReadonlyMounts, MountAccess::Readonly)
        | (FilesystemPolicy::ReadwriteMounts, _) => Ok(()),
    }
}

/// The run's host paths, which include the directories that the caller may mount and the denied
/// directories.
#[derive(Debug, Clone, Copy)]
pub struct MountAuthority<'a> {
    /// Host paths of the run, in canonical form.
    pub paths: &'a RunPaths,
}

/// Returns whether `inner` is `outer` or lies below it; both are canonical.
fn holds(outer: &str, inner: &str) -> bool {
    outer == "/"
        || inner == outer
        || inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// Refuses a state directory inside WordPress, because the web server would serve the private
/// key that signs bundles. Both paths are canonical.
pub fn check_state_location(state_dir: &str, wordpress: &str) -> Result<(), ErrorBody> {
    if wordpress == "/" || !holds(wordpress, state_dir) {
        return Ok(());
    }
    let message =
        "the state directory is inside the WordPress directory, whose files a web server serves"
            .to_owned();
    Err(ErrorBody::new(ErrorCode::StateDirInvalid, message)
        .hint("move the state directory to a place that no web server serves. Then delete its file keys/host.ed25519, the private signing key, which the web server could have served; the next run makes a new key"))
}

/// Checks the canonical path of an opened source directory. `subject` names the mount in error
/// messages.
pub fn check_source(
    canonical: &str,
    subject: &str,
    authority: MountAuthority<'_>,
) -> Result<(), MountError> {
    let denied = |what| {
        Err(MountError::Denied {
            subject: subject.to_owned(),
            what,
        })
    };
    if canonical == "/" {
        return denied("the root directory");
    }
    for system in SYSTEM {
        if holds(system, canonical) || holds(canonical, system) {
            return denied("a system directory");
        }
    }
    let state = authority.paths.state_dir.as_str();
    if holds(state, canonical) || holds(canonical, state) {
        return denied("the state directory");
    }
    let paths = authority.paths;
    // A code root or allowed root below a denied directory may be mounted, and so may everything
    // below that root. A root that contains the denied directory (e.g. `/srv` as a mount root for a
    // site in `/srv/www`) does not lift the denial.
    let opened = |denied: &str| {
        let allowed = paths.allowed_roots.iter().flatten();
        let mut roots = paths.code_roots.iter().chain(allowed);
        roots.any(|root| holds(denied, root) && holds(root, canonical))
    };
    for root in &paths.denied {
        if holds(canonical, root) || (holds(root, canonical) && !opened(root)) {
            return denied("the site's own root, content or configuration directory");
        }
    }
    match &paths.allowed_roots {
        None => Ok(()),
        Some(roots) if roots.iter().any(|root| holds(root, canonical)) => Ok(()),
        Some(_) => Err(MountError::OutsideRoots {
            subject: subject.to_owned(),
        }),
    }
}

/// Checks the canonical path of an opened file to stage. If the caller is not restricted to
/// `allowed_roots`, every file below a directory in [`RunPaths::denied`] is refused, even if the
/// file is below a code root.
pub fn check_staged_source(
    canonical: &str,
    subject: &str,
    authority: MountAuthority<'_>,
) -> Result<(), MountError> {
    check_source(canonical, subject, authority)?;
    if authority.paths.allowed_roots.is_none()
        && authority
            .paths
            .denied
            .iter()
            .any(|root| holds(root, canonical))
    {
        return Err(MountError::Denied {
            subject: subject.to_owned(),
            what: "the site's own root, content or configuration directory",
        });
    }
    Ok(())
}

/// Checks the path in the guest at which a staged file is to appear.
pub fn check_staged_target(text: &str) -> Result<GuestPath, MountError> {
    let fail = || MountError::StagedTarget {
        target: text.to_owned(),
    };
    let target = GuestPath::new(text).map_err(|_| fail())?;
    let below = |root: &str| {
        target
            .as_str()
            .strip_prefix(root)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    let whole = matches!(target.as_str(), "/workspace" | MUST_USE);
    if below(GUEST_STAGED_ROOT) || (is_free(&target) && !whole) {
        Ok(target)
    } else {
        Err(fail())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults;

    fn mount(target: &str) -> MountRequest {
        MountRequest {
            source: "/srv/x".to_owned(),
            target: target.to_owned(),
            mode: MountAccess::Readwrite,
            exclude: vec![],
            git: wp_codebox_contracts::GitChoice::Auto,
            metadata: None,
        }
    }

    fn paths(allowed: Option<&[&str]>) -> RunPaths {
        RunPaths {
            state_dir: "/var/lib/wp-codebox".to_owned(),
            share_dir: String::new(),
            launcher: String::new(),
            php_binary: String::new(),
            wordpress: "/srv/site".to_owned(),
            denied: vec![
                "/srv/site".to_owned(),
                "/srv/site/wp-content".to_owned(),
                "/srv/config".to_owned(),
            ],
            cgroup: None,
            identity: Default::default(),
            guest_ids: None,
            agents_dir: None,
            browser: None,
            code_roots: vec![],
            allowed_roots: allowed.map(|roots| roots.iter().map(|r| (*r).to_owned()).collect()),
        }
    }

    #[test]
    fn mount_targets_outside_allowed_directories_or_overlapping_are_refused() {
        let policy = defaults(vec![]);
        for good in [
            "/workspace/a",
            "/workspace/a/b",
            "/wordpress/wp-content/plugins/a",
            "/wordpress/wp-content/themes/t",
            "/wordpress/wp-content/uploads",
            "/wordpress/wp-content/mu-plugins",
            "/wordpress/wp-content/mu-plugins/x",
            "/workspace",
            "/workspacex/a",
            "/tmp/a",
            "/home/agent/a",
            "/opt/x",
            "/harness",
        ] {
            assert!(check_mounts(&[mount(good)], &policy).is_ok(), "{good}");
        }
        for bad in [
            "/",
            "/opt",
            "/opt/codebox/x",
            "/opt/agents",
            "/tmp",
            "/home",
            "/home/agent",
            "/usr/local/x",
            "/proc/x",
            "/run/codebox/x",
            "/var/www",
            "/wordpress",
            "/wordpress/wp-content",
            "/wordpress/wp-content/plugins",
            "/wordpress/wp-includes/x",
            "/wordpress/wp-config.php",
            "/wordpress/wp-content/mu-plugins/contained-runtime/x",
            "/wordpress/wp-content/mu-plugins/wp-codebox-guest.php",
            "/wordpress/wp-content/database",
            "/wordpress/wp-content/db.php",
            "/wordpress/wp-includes",
            "/etc/x",
            "/workspace/../etc",
            "workspace/a",
            "",
        ] {
            assert_eq!(
                check_mounts(&[mount(bad)], &policy)
                    .unwrap_err()
                    .body()
                    .code,
                ErrorCode::MountTargetInvalid,
                "{bad}"
            );
        }
        for (a, b) in [
            ("/workspace/a", "/workspace/a/b"),
            ("/workspace/a", "/workspace/a"),
            (
                "/wordpress/wp-content/plugins/a/b",
                "/wordpress/wp-content/plugins/a",
            ),
        ] {
            assert_eq!(
                check_mounts(&[mount(a), mount(b)], &policy)
                    .unwrap_err()
                    .body()
                    .code,
                ErrorCode::MountTargetOverlap,
                "{a} {b}"
            );
        }
        assert!(check_mounts(&[mount("/workspace/a"), mount("/workspace/ab")], &policy).is_ok());
    }

    #[test]
    fn readonly_mounts_policy_refuses_writable_mounts_and_sandbox_policy_refuses_all() {
        let mut policy = defaults(vec![]);
        policy.filesystem = FilesystemPolicy::ReadonlyMounts;
        let mut row = mount("/workspace/a");
        assert_eq!(
            check_mounts(&[row.clone()], &policy)
                .unwrap_err()
                .body()
                .code,
            ErrorCode::MountDenied
        );
        row.mode = MountAccess::Readonly;
        assert!(check_mounts(&[row.clone()], &policy).is_ok());
        policy.filesystem = FilesystemPolicy::Sandbox;
        assert!(check_mounts(&[row], &policy).is_err());
        assert!(check_mounts(&[], &policy).is_ok());
    }

    #[test]
    fn mount_source_in_or_above_a_denied_directory_is_refused_except_below_a_permitted_root() {
        let mut operator = paths(None);
        operator.code_roots = vec!["/srv/site/wp-content/plugins".to_owned()];
        let check =
            |path: &str, p: &RunPaths| check_source(path, "mount 0", MountAuthority { paths: p });
        for good in [
            "/srv/site/wp-content/plugins/a",
            "/home/u/code",
            "/srv/sitemap",
        ] {
            assert!(check(good, &operator).is_ok(), "{good}");
        }
        for bad in [
            "/",
            "/srv",
            "/srv/site",
            "/srv/site/wp-content",
            "/srv/config",
            "/srv/config/sub",
            "/srv/site/wp-admin",
            "/srv/site/wp-content/uploads",
            "/srv/site/wp-content/plugins-old",
            "/etc",
            "/etc/php",
            "/var",
            "/var/lib",
            "/var/lib/wp-codebox",
            "/var/lib/wp-codebox/sites/x",
            "/proc/1",
            "/run/x",
            "/boot",
            "/dev/shm/x",
            "/sys/kernel",
        ] {
            assert_eq!(
                check(bad, &operator).unwrap_err().body().code,
                ErrorCode::MountDenied,
                "{bad}"
            );
        }
        assert!(check("/srv/site/wp-content/plugins/a", &paths(None)).is_err());
        // A mount root above the site permits directories beside the site, but not the site
        // itself.
        let mut above = operator.clone();
        above.code_roots.push("/srv".to_owned());
        let delegated_above = paths(Some(&["/srv", "/srv/site/wp-content/plugins"]));
        for roots in [&above, &delegated_above] {
            assert!(check("/srv/other/checkout", roots).is_ok());
            assert!(check("/srv/site/wp-content/plugins/a", roots).is_ok());
            for bad in [
                "/srv/site/wp-admin",
                "/srv/site/wp-content/uploads",
                "/srv/config/sub",
            ] {
                let error = check(bad, roots).unwrap_err();
                assert!(matches!(error, MountError::Denied { .. }), "{bad}: {error}");
            }
        }
        let delegated = paths(Some(&["/srv/site/wp-content/plugins/a"]));
        assert!(check("/srv/site/wp-content/plugins/a", &delegated).is_ok());
        assert!(check("/srv/site/wp-content/plugins/a/sub", &delegated).is_ok());
        assert!(check("/srv/site/wp-content/plugins/ab", &delegated).is_err());
        assert!(check("/home/u/code", &delegated).is_err());
        let stage = |path: &str, p: &RunPaths| {
            check_staged_source(path, "file", MountAuthority { paths: p }).is_ok()
        };
        assert!(stage("/home/u/agent.php", &operator));
        assert!(!stage("/srv/site/wp-config.php", &operator));
        assert!(!stage("/srv/config/salts.php", &operator));
        assert!(!stage("/var/lib/wp-codebox/keys/host.ed25519", &operator));
        assert!(!stage("/srv/site/wp-content/plugins/a/x.php", &operator));
        assert!(stage("/srv/site/wp-content/plugins/a/x.php", &delegated));
        assert!(!stage("/srv/site/wp-config.php", &delegated));
    }

    #[test]
    fn state_directory_inside_wordpress_is_refused() {
        for state in ["/srv/site", "/srv/site/wp-content/state"] {
            let refused = check_state_location(state, "/srv/site").unwrap_err();
            assert_eq!(refused.code, ErrorCode::StateDirInvalid, "{state}");
        }
        for state in ["/srv/site-state", "/srv/state", "/srv"] {
            check_state_location(state, "/srv/site").unwrap();
        }
    }

    #[test]
    fn staged_file_targets_outside_allowed_directories_are_refused() {
        for good in [
            "/run/codebox/staged/a.php",
            "/workspace/a.php",
            "/harness/a.php",
            "/tmp/a.php",
            "/wordpress/wp-content/mu-plugins/a.php",
        ] {
            assert!(check_staged_target(good).is_ok(), "{good}");
        }
        for bad in [
            "/run/codebox/task.json",
            "/run/codebox/stagedx/a",
            "/workspace",
            "/tmp",
            "/usr/local/a.php",
            "/wordpress/wp-load.php",
            "/wordpress/wp-content/mu-plugins",
            "/wordpress/wp-content/mu-plugins/wp-codebox-guest.php",
        ] {
            assert!(check_staged_target(bad).is_err(), "{bad}");
        }
    }
}
