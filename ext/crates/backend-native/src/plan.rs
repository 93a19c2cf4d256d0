//! From what a run asks for to the launcher's plan. Pure: same input, same bytes.
//!
//! The guest's root is an empty tmpfs in which the launcher shows the host's system
//! directories read-only, through overlays; `/etc` and php.ini are made here. What the guest may write lies on
//! the scratch tmpfs or in an overlay's upper directory, never in a host directory.
//! The one exception is [`TemplateAccess::Build`], with which the template is made.

mod browser;
mod builder;
mod components;
mod error;
mod git;
mod paths;
mod settings;

pub use browser::{BrowserPlan, browser_plan};
pub use components::{PlannedComponent, PlannedComponents};
pub use error::PlanError;
pub use git::{PlannedCommits, PlannedGit, git_file, git_objects};
pub use paths::{MountPaths, mount_paths};
pub use settings::{AGENTS, GuestEgress, egress_environment, environment, php_ini};

use crate::host::{HiddenPath, HostLayout, SystemEntryKind};
use crate::php::PhpLayout;
use crate::template::Template;
use builder::{Builder, path};
use paths::WP_CONTENT;
use settings::{
    EGRESS_AUTHORITY, EGRESS_PORT, EGRESS_SOCKET, HOME, MAIL_PORT, PROGRAMS, egress_ini,
};
pub(crate) use settings::{OPCACHE, SHARE};
use wp_codebox_contracts::{
    BindSource, CallSet, EgressSockets, GuestPath, HostSource, IsolationLevel, LaunchMount,
    LaunchPlan, LaunchPurpose, Limits, MountAccess, MountView, PLAN_VERSION, PlanIdentity,
    StagedFile,
};

/// Layer index of the guest's `wp-content`; mounts use their own index from 0.
pub const WP_CONTENT_LAYER: u32 = u32::MAX;
/// uid and gid inside the guest.
pub const GUEST_ID: u32 = 1000;
const STAGED: &str = "/run/codebox/staged";
/// What covers a hidden directory.
const EMPTY: &str = "/run/codebox/empty";
/// What covers a hidden file.
const BLANK: &str = "/run/codebox/blank";
/// One mount, decided: sources are checked and, where needed, already copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedMount {
    /// Position in the request; the layer index under which its upper directory arrives.
    pub index: u32,
    /// Host directories, topmost first: the source, above it what hides entries of it, and
    /// above that the captured change in a check's guest.
    pub lowers: Vec<HostSource>,
    /// Declared target.
    pub target: GuestPath,
    /// What the guest may do.
    pub access: MountAccess,
    /// How it is materialised; `Bind` for read-only mounts only.
    pub view: MountView,
    /// Its repository in the guest.
    pub git: Option<PlannedGit>,
}

/// A host directory with programs that the guest may run and nobody may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramDirectory {
    /// Where it is.
    pub source: HostSource,
    /// Where the guest sees it, one level below [`AGENTS`].
    pub target: GuestPath,
}

/// How the guest sees the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateAccess {
    /// As overlay lowers; nothing of the template is writable.
    Run,
    /// `wp-content` and the opcode cache are bound writable: only to build a template. What runs
    /// then is the parent's WordPress core and the SQLite drop-in, no plugin and no agent, and
    /// nothing else has these new directories open.
    Build,
}

/// Everything a plan depends on.
#[derive(Debug, Clone)]
pub struct GuestSpec<'a> {
    /// The host's system directories.
    pub host: &'a HostLayout,
    /// PHP.
    pub php: &'a PhpLayout,
    /// Host directory with WP-CLI, the SQLite drop-in and the guest programs.
    pub share_dir: &'a str,
    /// WordPress.
    pub template: &'a Template,
    /// `Run` for every run.
    pub template_access: TemplateAccess,
    /// Mounts in request order.
    pub mounts: &'a [PlannedMount],
    /// Layers over the template's `wp-content`, topmost first; none in a fresh guest.
    pub content: &'a [HostSource],
    /// Code of the host that the guest's WordPress loads.
    pub components: &'a PlannedComponents,
    /// Text of `/run/codebox/task.json`; empty: no such file.
    pub task_json: &'a str,
    /// Single host files shown read-only.
    pub staged: &'a [StagedFile],
    /// Directories with programs.
    pub programs: &'a [ProgramDirectory],
    /// Limits.
    pub limits: Limits,
    /// What leaves the guest.
    pub egress: &'a GuestEgress,
}

/// Makes the plan.
pub fn build_plan(spec: &GuestSpec<'_>) -> Result<LaunchPlan, PlanError> {
    let targets: Vec<GuestPath> = spec.mounts.iter().map(|m| m.target.clone()).collect();
    let paths = mount_paths(&targets)?;
    let mut builder = Builder::default();
    system(&mut builder, spec)?;
    wordpress(&mut builder, spec)?;
    if !spec.task_json.is_empty() {
        builder.file("/run/codebox/task.json", spec.task_json)?;
    }
    for (mount, paths) in spec.mounts.iter().zip(&paths) {
        mounted(&mut builder, mount, paths)?;
    }
    let repositories = spec.mounts.iter();
    let repositories = repositories.filter_map(|mount| Some((mount.index, mount.git.as_ref()?)));
    git::shown(&mut builder, &repositories.collect::<Vec<_>>())?;
    components::shown(&mut builder, spec.components, &paths)?;
    for file in spec.staged {
        let target = path(&file.target)?;
        let below = path(STAGED)?.contains(&target) || path("/workspace")?.contains(&target);
        let free = paths
            .iter()
            .all(|m| !m.workspace.contains(&target) && !target.contains(&m.workspace));
        if !below || !free || matches!(target.as_str(), STAGED | "/workspace") {
            return Err(PlanError::Staged { target });
        }
        builder.bind(&file.source, target.as_str())?;
    }
    let egress = match spec.egress {
        GuestEgress::Denied => None,
        GuestEgress::Tunnel | GuestEgress::Terminate { .. } => Some(EgressSockets {
            socket: path(EGRESS_SOCKET)?,
            port: EGRESS_PORT,
        }),
    };
    Ok(LaunchPlan {
        version: PLAN_VERSION,
        purpose: LaunchPurpose::Serve,
        level: IsolationLevel::Full,
        guest_id: GUEST_ID,
        identity: PlanIdentity::Shared,
        hostname: "codebox".to_owned(),
        mounts: builder.mounts,
        writable: builder.writable,
        calls: CallSet::Programs,
        limits: spec.limits,
        egress,
        // What runs while a template is built sends no mail of a run.
        mail: match spec.template_access {
            TemplateAccess::Run => Some(MAIL_PORT),
            TemplateAccess::Build => None,
        },
    })
}

fn system(builder: &mut Builder, spec: &GuestSpec<'_>) -> Result<(), PlanError> {
    builder.mounts.push(LaunchMount::Proc);
    builder.mounts.push(LaunchMount::Dev);
    for entry in &spec.host.system {
        match &entry.kind {
            SystemEntryKind::Directory => builder.bind(&entry.path, &entry.path)?,
            SystemEntryKind::Link(to) => builder.link(&entry.path, to)?,
        }
    }
    if let Some(root) = spec.php.extra_root() {
        builder.bind(&root, &root)?;
    }
    for programs in spec.programs {
        let target = programs.target.clone();
        let name = target.as_str().strip_prefix(AGENTS);
        if name.is_none_or(|name| name.rfind('/') != Some(0) || name.len() < 2) {
            return Err(PlanError::Programs { target });
        }
        builder.bind_from(programs.source.clone(), target.as_str())?;
    }
    let hidden = spec.host.hidden.iter().chain(&spec.template.hidden);
    hide(builder, hidden)?;
    for file in &spec.host.etc {
        builder.bind(file, file)?;
    }
    builder.file(
        "/etc/passwd",
        format!(
            "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n\
             agent:x:{GUEST_ID}:{GUEST_ID}:agent:{HOME}:/bin/bash\n\
             nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
        ),
    )?;
    builder.file(
        "/etc/group",
        format!("root:x:0:\nagent:x:{GUEST_ID}:\nnogroup:x:65534:\n"),
    )?;
    builder.file(
        "/etc/hosts",
        "127.0.0.1 localhost codebox\n::1 localhost ip6-localhost ip6-loopback\n",
    )?;
    builder.file(
        "/etc/nsswitch.conf",
        "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    )?;
    builder.file("/etc/resolv.conf", "")?;
    builder.bind(spec.share_dir, SHARE)?;
    builder.scratch("/tmp", 0o1777)?;
    builder.directory("/var")?;
    builder.link("/var/tmp", "/tmp")?;
    builder.scratch(HOME, 0o755)?;
    builder.scratch("/dev/shm", 0o1777)?;
    builder.directory("/workspace")?;
    builder.directory(STAGED)?;
    // The configured PHP is `php`, whatever the host's alternatives say.
    builder.link(&format!("{PROGRAMS}/php"), &spec.php.binary)?;
    if let GuestEgress::Terminate { authority_pem } = spec.egress {
        builder.file(EGRESS_AUTHORITY, authority_pem.as_str())?;
    }
    builder.file(
        &format!("{}/php.ini", spec.php.ini_directory),
        php_ini(spec.php) + &egress_ini(spec.egress),
    )
}

/// Covers what must not be seen although a directory above it is bound, e.g. a site below
/// `/usr/share`. Nothing else of the host is bound whole.
fn hide<'a>(
    builder: &mut Builder,
    hidden: impl Iterator<Item = &'a HiddenPath>,
) -> Result<(), PlanError> {
    let bound: Vec<GuestPath> = builder
        .mounts
        .iter()
        .filter_map(|mount| match mount {
            LaunchMount::Bind { target, .. } => Some(target.clone()),
            LaunchMount::Directory { .. }
            | LaunchMount::File(_)
            | LaunchMount::Symlink { .. }
            | LaunchMount::Scratch { .. }
            | LaunchMount::Overlay { .. }
            | LaunchMount::Merged { .. }
            | LaunchMount::Proc
            | LaunchMount::Dev => None,
        })
        .collect();
    builder.directory(EMPTY)?;
    builder.file(BLANK, "")?;
    for hidden in hidden {
        let (hidden, cover) = match hidden {
            HiddenPath::Directory(hidden) => (hidden, EMPTY),
            HiddenPath::File(hidden) => (hidden, BLANK),
        };
        let target = path(hidden)?;
        if bound.iter().any(|bound| bound.contains(&target)) {
            builder.mounts.push(LaunchMount::Bind {
                source: BindSource::Guest { path: path(cover)? },
                target,
                writable: false,
            });
        }
    }
    Ok(())
}

fn wordpress(builder: &mut Builder, spec: &GuestSpec<'_>) -> Result<(), PlanError> {
    let template = spec.template;
    builder.bind(&template.core, "/wordpress")?;
    match spec.template_access {
        TemplateAccess::Run => {
            let (content, opcache) = (path(WP_CONTENT)?, path(OPCACHE)?);
            let mut lowers = spec.content.to_vec();
            lowers.push(HostSource::of(&template.content));
            builder.overlay(lowers, content, Some(WP_CONTENT_LAYER));
            builder.overlay(vec![HostSource::of(&template.opcache)], opcache, None);
        }
        TemplateAccess::Build => {
            builder.bind_writable(&template.content, WP_CONTENT)?;
            builder.bind_writable(&template.opcache, OPCACHE)?;
        }
    }
    Ok(())
}

fn mounted(
    builder: &mut Builder,
    mount: &PlannedMount,
    paths: &MountPaths,
) -> Result<(), PlanError> {
    let inconsistent = |rule| PlanError::Mount {
        target: mount.target.clone(),
        rule,
    };
    let writable = match (mount.access, mount.view) {
        // A copy of the source, or the source itself: nothing is captured, so nothing is written.
        (MountAccess::Readonly, MountView::Bind | MountView::Copy) => false,
        (MountAccess::Readwrite, MountView::Overlay | MountView::Copy) => true,
        (MountAccess::Readonly, MountView::Overlay) => true,
        (MountAccess::Readwrite, MountView::Bind) => {
            return Err(inconsistent("a writable mount is an overlay, never a bind"));
        }
    };
    if mount.lowers.is_empty() {
        return Err(inconsistent("it has no source"));
    }
    if writable {
        if mount.index == WP_CONTENT_LAYER {
            return Err(inconsistent("its index is reserved"));
        }
        let workspace = paths.workspace.clone();
        builder.overlay(mount.lowers.clone(), workspace, Some(mount.index));
    } else {
        builder.merged(&mount.lowers, paths.workspace.clone());
    }
    if paths.target != paths.workspace {
        if writable {
            builder.writable.push(paths.target.clone());
        }
        builder.mounts.push(LaunchMount::Bind {
            source: BindSource::Guest {
                path: paths.workspace.clone(),
            },
            target: paths.target.clone(),
            writable,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
