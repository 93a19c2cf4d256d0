//! Builds the launcher's plan from a guest specification. The functions are pure: the same input
//! gives the same bytes.
//!
//! The guest's root is an empty tmpfs, in which the launcher mounts the host's system directories
//! read-only through overlays. `/etc` and php.ini are generated here. Writable paths of the guest
//! lie on the scratch tmpfs or in the upper directory of an overlay, never in a host directory. The
//! only exception is [`TemplateAccess::Build`], which builds the template.

mod browser;
mod builder;
mod components;
mod error;
mod git;
mod paths;
mod settings;
mod tool;

pub use browser::{BrowserPlan, browser_plan};
pub use components::{PlannedComponent, PlannedComponents};
pub use error::PlanError;
pub use git::{PlannedCommits, PlannedGit, git_file, git_objects};
pub use paths::{MountPaths, mount_paths};
pub use settings::{AGENTS, GuestEgress, WASI_TOOLS, egress_environment, environment, php_ini};
pub use tool::{TOOL_LAYER, ToolPlan, ToolWork, tool_plan};

use crate::host::{HiddenPath, HostLayout};
use crate::php::{PhpLayout, SETTINGS};
use crate::server::{DATABASE_RUN, Database};
use crate::template::Template;
use builder::{Builder, path};
use paths::{MUST_USE, WP_CONTENT, mountable};
use settings::{
    EGRESS_AUTHORITY, EGRESS_PORT, EGRESS_SOCKET, HOME, MAIL_PORT, PROGRAMS, egress_ini,
};
pub(crate) use settings::{OPCACHE, SHARE, WP_CLI};
use wp_codebox_contracts::{
    BindSource, CallSet, EgressSockets, GuestPath, HostSource, IsolationLevel, LaunchMount,
    LaunchPlan, LaunchPurpose, Limits, MountAccess, MountView, PLAN_VERSION, PlanIdentity,
    StagedFile,
};

/// Mount index of the captured overlay of `wp-content`. The request does not contain this overlay
/// as a mount; the mounts of the request have the indexes 0, 1, ….
pub const WP_CONTENT_LAYER: u32 = u32::MAX;
/// Uid and gid that programs have inside the guest.
pub const GUEST_ID: u32 = 1000;
const STAGED: &str = "/run/codebox/staged";
/// Directory of single files that are mounted at paths where the guest may write.
const FILES: &str = "/run/codebox/files";
/// Empty directory mounted over a hidden directory.
const EMPTY: &str = "/run/codebox/empty";
/// Empty file mounted over a hidden file.
const BLANK: &str = "/run/codebox/blank";
/// A mount whose sources are validated and, where needed, already copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedMount {
    /// Position of the mount in the request; the overlay upper directory with its changes has the
    /// same index.
    pub index: u32,
    /// Host directories merged into one, topmost first: layers that hide entries of the source,
    /// then the source. In a guest for checks, the captured change is above all of them.
    pub lowers: Vec<HostSource>,
    /// Path in the guest that the request names.
    pub target: GuestPath,
    /// Whether the guest may write the mount.
    pub access: MountAccess,
    /// Whether the guest sees an overlay, a copy or a bind mount of the source; `Bind` for
    /// read-only mounts only.
    pub view: MountView,
    /// Git repository that the guest gets in place of the source's own; `None`: the guest gets no
    /// repository in this mount.
    pub git: Option<PlannedGit>,
}

/// A host directory with programs that the guest may execute; read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramDirectory {
    /// Host directory that contains the programs.
    pub source: HostSource,
    /// Mount point in the guest, one level below [`AGENTS`].
    pub target: GuestPath,
}

/// Whether the guest runs with a finished WordPress template or builds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateAccess {
    /// The template's directories are lower directories of overlays, so the guest cannot change the
    /// template.
    Run,
    /// `wp-content`, the opcode cache and the directory for WP-CLI are bind-mounted writable; only
    /// for building a template.
    /// The guest then runs the parent site's WordPress core and the SQLite drop-in, no plugin and
    /// no agent, and no other process has these new directories open.
    Build,
}

/// Input of [`build_plan`].
#[derive(Debug, Clone)]
pub struct GuestSpec<'a> {
    /// System directories of the host.
    pub host: &'a HostLayout,
    /// PHP installation of the host.
    pub php: &'a PhpLayout,
    /// Host directory with WP-CLI, the SQLite drop-in and the guest programs.
    pub share_dir: &'a str,
    /// WordPress template that the guest starts from.
    pub template: &'a Template,
    /// `Run` for every run; `Build` for building a template.
    pub template_access: TemplateAccess,
    /// Mounts in request order.
    pub mounts: &'a [PlannedMount],
    /// Captured changes of `wp-content`: host directories layered over the template's `wp-content`,
    /// topmost first. Empty for a guest that starts from the template alone.
    pub content: &'a [HostSource],
    /// Host plugins and libraries that the guest's WordPress loads.
    pub components: &'a PlannedComponents,
    /// Text of `/run/codebox/task.json`; no file when empty.
    pub task_json: &'a str,
    /// Single host files that the guest sees read-only.
    pub staged: &'a [StagedFile],
    /// Host directories with programs that the guest sees read-only.
    pub programs: &'a [ProgramDirectory],
    /// Resource limits of the guest.
    pub limits: Limits,
    /// How the guest may reach the network.
    pub egress: &'a GuestEgress,
}

/// Builds the launch plan of a guest.
pub fn build_plan(spec: &GuestSpec<'_>) -> Result<LaunchPlan, PlanError> {
    let targets: Vec<GuestPath> = spec.mounts.iter().map(|m| m.target.clone()).collect();
    let paths = mount_paths(&targets)?;
    let mut builder = Builder::default();
    system(&mut builder, spec)?;
    wordpress(&mut builder, spec)?;
    if !spec.task_json.is_empty() {
        builder.file("/run/codebox/task.json", spec.task_json)?;
    }
    let bound = bound(&builder);
    for (mount, paths) in spec.mounts.iter().zip(&paths) {
        outside(&bound, &mount.target)?;
        let mut mount = mount.clone();
        if mount.target.as_str() == MUST_USE {
            // The product's own must-use plugin stays above the files of the mount.
            let own = format!("{}/mu-plugins", spec.template.content);
            mount.lowers.insert(0, HostSource::of(&own));
        }
        if !replaces(spec, &mount) {
            mounted(&mut builder, &mount, paths)?;
        }
    }
    let repositories = spec.mounts.iter();
    let repositories = repositories.filter_map(|mount| Some((mount.index, mount.git.as_ref()?)));
    git::shown(&mut builder, &repositories.collect::<Vec<_>>())?;
    let apart = spec.mounts.iter().zip(&paths);
    let apart: Vec<MountPaths> = apart
        .filter(|(mount, _)| !replaces(spec, mount))
        .map(|(_, paths)| paths.clone())
        .collect();
    components::shown(&mut builder, spec.components, &apart)?;
    // A component would cover what lies below it, so these mounts come after the components.
    for (mount, paths) in spec.mounts.iter().zip(&paths) {
        if replaces(spec, mount) {
            mounted(&mut builder, mount, paths)?;
        }
    }
    for (index, file) in spec.staged.iter().enumerate() {
        let target = path(&file.target)?;
        let below = path(STAGED)?.contains(&target) || mountable(target.as_str());
        let free = paths
            .iter()
            .flat_map(|m| std::iter::once(&m.target).chain(&m.link))
            .all(|at| !at.contains(&target) && !target.contains(at));
        if !below || !free || matches!(target.as_str(), STAGED | "/workspace" | MUST_USE) {
            return Err(PlanError::Staged { target });
        }
        outside(&bound, &target)?;
        let writable = [WP_CONTENT, "/tmp", HOME];
        if !writable
            .iter()
            .any(|root| path(root).is_ok_and(|root| root.contains(&target)))
        {
            builder.bind(&file.source, target.as_str())?;
            continue;
        }
        // A single file becomes a file of the guest's root. Where the guest may write, only a mount
        // of that file keeps it read-only.
        let shown = path(&format!("{FILES}/{index}"))?;
        builder.bind(&file.source, shown.as_str())?;
        builder.mounts.push(LaunchMount::Bind {
            source: BindSource::Guest { path: shown },
            target,
            writable: false,
        });
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
        scratch: None,
        egress,
        // A template build sends no mail, so it needs no mail socket.
        mail: match spec.template_access {
            TemplateAccess::Run => Some(MAIL_PORT),
            TemplateAccess::Build => None,
        },
    })
}

fn system(builder: &mut Builder, spec: &GuestSpec<'_>) -> Result<(), PlanError> {
    builder.system(spec.host)?;
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
    // `php` in the guest is the configured PHP, whatever the host's `/etc/alternatives` selects.
    builder.link(&format!("{PROGRAMS}/php"), &spec.php.binary)?;
    if let GuestEgress::Terminate { authority_pem } = spec.egress {
        builder.file(EGRESS_AUTHORITY, authority_pem.as_str())?;
    }
    php_settings(
        builder,
        spec.php,
        php_ini(spec.php) + &egress_ini(spec.egress),
    )
}

/// Adds the guest's php.ini. Where PHP looks for its configuration in a directory that the guest
/// sees, the guest's directory covers that of the host's ini files, and an empty file its php.ini.
fn php_settings(builder: &mut Builder, php: &PhpLayout, text: String) -> Result<(), PlanError> {
    builder.file(&format!("{}/php.ini", php.guest_ini_directory()), text)?;
    let Some(visible) = &php.visible else {
        return Ok(());
    };
    builder.cover(&visible.scan_directory, SETTINGS)?;
    if let Some(main_file) = &visible.main_file {
        let empty = format!("{SETTINGS}/empty.ini");
        builder.file(&empty, "")?;
        builder.cover(main_file, &empty)?;
    }
    Ok(())
}

/// Returns whether a mount is read-only and lies inside a component, of which it replaces a part.
fn replaces(spec: &GuestSpec<'_>, mount: &PlannedMount) -> bool {
    let below = |component: &PlannedComponent| {
        component.target != mount.target && component.target.contains(&mount.target)
    };
    mount.access == MountAccess::Readonly && spec.components.rows.iter().any(below)
}

/// Returns the guest paths at which the plan shows host paths so far.
fn bound(builder: &Builder) -> Vec<GuestPath> {
    let targets = builder.mounts.iter().filter_map(|mount| match mount {
        LaunchMount::Bind { target, .. } => Some(target.clone()),
        LaunchMount::Directory { .. }
        | LaunchMount::File(_)
        | LaunchMount::Symlink { .. }
        | LaunchMount::Scratch { .. }
        | LaunchMount::Overlay { .. }
        | LaunchMount::Merged { .. }
        | LaunchMount::Proc
        | LaunchMount::Dev => None,
    });
    targets.collect()
}

/// Refuses the guest path of a mount or file that overlaps a directory of the system, such as that
/// of a PHP below `/opt`. Paths below `wp-content` and [`STAGED`] are always allowed.
fn outside(bound: &[GuestPath], target: &GuestPath) -> Result<(), PlanError> {
    let content = path(WP_CONTENT)?.contains(target);
    let staged = path(STAGED)?.contains(target);
    let overlaps = |bound: &GuestPath| bound.contains(target) || target.contains(bound);
    if !content && !staged && bound.iter().any(overlaps) {
        return Err(PlanError::Target {
            target: target.clone(),
        });
    }
    Ok(())
}

/// Covers hidden paths that lie inside a mounted directory, for example a site below `/usr/share`,
/// with an empty directory or file.
fn hide<'a>(
    builder: &mut Builder,
    hidden: impl Iterator<Item = &'a HiddenPath>,
) -> Result<(), PlanError> {
    let bound = bound(builder);
    builder.directory(EMPTY)?;
    builder.file(BLANK, "")?;
    for hidden in hidden {
        let (hidden, cover) = match hidden {
            HiddenPath::Directory(hidden) => (hidden, EMPTY),
            HiddenPath::File(hidden) => (hidden, BLANK),
        };
        let target = path(hidden)?;
        if bound.iter().any(|bound| bound.contains(&target)) {
            builder.cover(hidden, cover)?;
        }
    }
    Ok(())
}

fn wordpress(builder: &mut Builder, spec: &GuestSpec<'_>) -> Result<(), PlanError> {
    let template = spec.template;
    builder.bind(&template.core, "/wordpress")?;
    match template.database {
        Database::Sqlite => {}
        Database::MariaDb { .. } => builder.scratch(DATABASE_RUN, 0o755)?,
    }
    match spec.template_access {
        TemplateAccess::Run => {
            let (content, opcache) = (path(WP_CONTENT)?, path(OPCACHE)?);
            let mut lowers = spec.content.to_vec();
            lowers.push(HostSource::of(&template.content));
            builder.overlay(lowers, content, Some(WP_CONTENT_LAYER));
            builder.overlay(vec![HostSource::of(&template.opcache)], opcache, None);
            builder.bind(&template.wp_cli, WP_CLI)?;
        }
        TemplateAccess::Build => {
            builder.bind_writable(&template.content, WP_CONTENT)?;
            builder.bind_writable(&template.opcache, OPCACHE)?;
            builder.bind_writable(&template.wp_cli, WP_CLI)?;
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
        // The guest sees the source, or a copy of it, read-only: there are no changes to capture.
        (MountAccess::Readonly, MountView::Bind | MountView::Copy) => false,
        (MountAccess::Readwrite, MountView::Overlay | MountView::Copy) => true,
        // An overlay view has an upper directory, which the guest could write.
        (MountAccess::Readonly, MountView::Overlay) => {
            return Err(inconsistent(
                "a read-only mount needs view `bind` or `copy`, not `overlay`",
            ));
        }
        (MountAccess::Readwrite, MountView::Bind) => {
            return Err(inconsistent(
                "a writable mount needs view `overlay` or `copy`, not `bind`",
            ));
        }
    };
    if mount.lowers.is_empty() {
        return Err(inconsistent("the mount has no source directory"));
    }
    if writable {
        if mount.index == WP_CONTENT_LAYER {
            return Err(inconsistent(
                "the index of the mount is reserved for wp-content",
            ));
        }
        let target = paths.target.clone();
        builder.overlay(mount.lowers.clone(), target, Some(mount.index));
    } else {
        builder.merged(&mount.lowers, paths.target.clone());
    }
    match &paths.link {
        Some(link) => builder.link(link.as_str(), paths.target.as_str()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
