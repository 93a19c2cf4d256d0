//! Validates mounts, workspaces, staged files and artifacts: sources must exist, and guest paths
//! must be valid and not overlap.

use super::Validator;
use crate::issue::IssueCode;
use crate::layout::{self, PlacedPlugin, PluginSource};
use crate::model::{Access, SeedKind, SourceKind, SourceMode};
use crate::overlay;
use crate::packages;
use crate::places::{self, MUST_USE, file_view};
use crate::sources::{PathKind, is_below};
use std::collections::BTreeSet;
use wp_codebox_contracts::{GitChoice, GuestPath, MountAccess, MountRequest};
use wp_codebox_policy::{
    GUEST_MU_COMPONENTS, MountError, check_mounts as judge_mounts, check_staged_target, defaults,
};

pub(super) fn check_mounts(validator: &mut Validator<'_>) {
    for (path, mount) in places::mounts(validator.recipe) {
        check_mount(
            validator,
            &path,
            Wanted {
                source: &mount.source,
                target: &mount.target,
                kind: mount.kind,
                access: mount.mode,
                default: Access::Readwrite,
                git: mount.git,
            },
        );
    }
}

/// A mount of the recipe or its distribution.
pub(super) struct Wanted<'a> {
    pub source: &'a str,
    pub target: &'a str,
    pub kind: Option<SourceKind>,
    pub access: Option<Access>,
    /// Access of a directory if the recipe states none.
    pub default: Access,
    pub git: Option<GitChoice>,
}

pub(super) fn check_mount(validator: &mut Validator<'_>, path: &str, wanted: Wanted<'_>) {
    let source = format!("{path}.source");
    if wanted.source.trim().is_empty() {
        validator.report(
            IssueCode::MissingSource,
            source,
            "the source is empty; name a host path",
        );
        return;
    }
    let wrong = match (validator.sources.kind(wanted.source), wanted.kind) {
        (PathKind::Directory, None | Some(SourceKind::Directory)) => {
            let target = format!("{path}.target");
            let access = wanted.access.unwrap_or(wanted.default);
            return check_target(validator, &target, wanted.target, access);
        }
        (PathKind::File, None | Some(SourceKind::File)) => None,
        (PathKind::Directory, Some(SourceKind::File)) => Some((
            IssueCode::NotFile,
            "the source is a directory, but the type is \"file\"",
        )),
        (PathKind::File, Some(SourceKind::Directory)) => Some((
            IssueCode::NotDirectory,
            "the source is a file, but the type is \"directory\"",
        )),
        (PathKind::Missing, _) => Some((
            IssueCode::MissingSource,
            "the source does not exist on the host",
        )),
        (PathKind::Other, _) => Some((
            IssueCode::InvalidSource,
            "the source must be a directory or a regular file",
        )),
        (PathKind::Denied, _) => Some((
            IssueCode::InvalidSource,
            "guests must not see this path: it belongs to the system, the site's configuration or WP Codebox's state, or is outside wp_codebox.mount_roots; choose another",
        )),
    };
    if let Some((code, message)) = wrong {
        return validator.report(code, source, message);
    }
    if file_view(wanted.target, wanted.access).is_none() {
        validator.report(
            IssueCode::UnsupportedMount,
            format!("{path}.mode"),
            "guests cannot write a single file here, only below /wordpress/wp-content, /tmp and /home/agent: set \"readonly\", or mount its directory",
        );
    }
    if wanted.git.is_some() {
        validator.report(
            IssueCode::UnsupportedMount,
            format!("{path}.git"),
            "a single file has no git repository; omit git, or mount its directory",
        );
    }
    check_staged_path(validator, &format!("{path}.target"), wanted.target);
}

/// Reports an issue if a directory may not be mounted at the guest path `target`.
pub(super) fn check_target(
    validator: &mut Validator<'_>,
    path: &str,
    target: &str,
    access: Access,
) {
    let request = MountRequest {
        source: "/".to_owned(),
        target: target.to_owned(),
        mode: match access {
            Access::Readonly => MountAccess::Readonly,
            Access::Readwrite => MountAccess::Readwrite,
        },
        exclude: Vec::new(),
        git: GitChoice::Auto,
        metadata: None,
    };
    let policy = validator
        .policy
        .clone()
        .unwrap_or_else(|| defaults(Vec::new()));
    if let Err(error) = judge_mounts(&[request], &policy) {
        let code = match &error {
            MountError::Policy { .. } => IssueCode::RuntimePolicyMountDenied,
            _ => IssueCode::InvalidSandboxPath,
        };
        validator.report(code, path, error.to_string());
    }
}

pub(super) fn check_staged_path(validator: &mut Validator<'_>, path: &str, target: &str) {
    if let Err(error) = check_staged_target(target) {
        validator.report(IssueCode::InvalidSandboxPath, path, error.to_string());
    }
}

pub(super) fn check_workspaces(validator: &mut Validator<'_>) {
    for (index, workspace) in validator.recipe.inputs.workspaces.iter().enumerate() {
        let path = format!("$.inputs.workspaces[{index}]");
        let seed = &workspace.seed;
        match (seed.kind, seed.source.as_deref()) {
            (SeedKind::Directory, None) => validator.report(
                IssueCode::MissingSource,
                format!("{path}.seed.source"),
                "a workspace with the seed \"directory\" needs a source",
            ),
            (SeedKind::Directory, Some(source)) => {
                let path = format!("{path}.seed.source");
                check_given(validator, &path, source, SourceKind::Directory);
            }
            (SeedKind::Plugin | SeedKind::Theme, None) => {}
            (SeedKind::Plugin | SeedKind::Theme, Some(_)) => validator.report(
                IssueCode::InvalidSource,
                format!("{path}.seed.source"),
                "a scaffold is generated and has no source; use the seed \"directory\"",
            ),
        }
        if workspace.source_mode == Some(SourceMode::Site) && seed.kind != SeedKind::Directory {
            validator.report(
                IssueCode::InvalidSource,
                format!("{path}.sourceMode"),
                "a scaffold is generated and has no source mode; omit sourceMode",
            );
        }
        let made = seed.kind != SeedKind::Directory || !seed.exclude_paths.is_empty();
        if workspace.git == Some(GitChoice::History) && made {
            validator.report(
                IssueCode::UnsupportedMount,
                format!("{path}.git"),
                "a scaffold, or a directory with excludePaths, is created for the run and has no history; use \"baseline\"",
            );
        }
        for (at, exclude) in seed.exclude_paths.iter().enumerate() {
            let pattern = exclude.strip_suffix("/**").unwrap_or(exclude);
            if !is_below(pattern) {
                validator.report(
                    IssueCode::InvalidSource,
                    format!("{path}.seed.excludePaths[{at}]"),
                    "must be a path below the workspace, such as `node_modules` or `build/**`",
                );
            }
        }
        match layout::workspace_target(workspace) {
            Some(target) => check_target(
                validator,
                &format!("{path}.target"),
                &target,
                workspace.mode.unwrap_or(Access::Readwrite),
            ),
            None => validator.report(
                IssueCode::InvalidSlug,
                format!("{path}.seed.slug"),
                "a slug is required, because the guest path of the workspace contains it",
            ),
        }
    }
}

/// Reports an issue if a source is blank, or if [`check_is`] refuses it.
pub(super) fn check_given(
    validator: &mut Validator<'_>,
    path: &str,
    source: &str,
    wanted: SourceKind,
) {
    match source.trim() {
        "" => validator.report(
            IssueCode::MissingSource,
            path,
            "the source is empty; name a host path",
        ),
        _ => check_is(validator, path, source, wanted),
    }
}

/// Reports an issue if the host path `source` is not what `wanted` names, a directory or a regular
/// file, or if the host's settings do not allow guests to see it.
pub(super) fn check_is(
    validator: &mut Validator<'_>,
    path: &str,
    source: &str,
    wanted: SourceKind,
) {
    use SourceKind::{Directory, File};
    let (code, message) = match (validator.sources.kind(source), wanted) {
        (PathKind::Directory, Directory) | (PathKind::File, File) => return,
        (PathKind::Missing, _) => (
            IssueCode::MissingSource,
            "the source does not exist on the host",
        ),
        (PathKind::Denied, Directory) => (
            IssueCode::InvalidSource,
            "guests must not see this directory: it belongs to the system, the site's configuration or WP Codebox's state, or is outside wp_codebox.mount_roots; choose another",
        ),
        (PathKind::Denied, File) => (
            IssueCode::InvalidSource,
            "guests must not see this file: it belongs to the system, the site's configuration or WP Codebox's state, or is outside wp_codebox.mount_roots; choose another",
        ),
        (PathKind::File | PathKind::Other, Directory) => {
            (IssueCode::NotDirectory, "the source must be a directory")
        }
        (PathKind::Directory | PathKind::Other, File) => {
            (IssueCode::NotFile, "the source must be a regular file")
        }
    };
    validator.report(code, path, message);
}

pub(super) fn check_staged(validator: &mut Validator<'_>) {
    for (index, staged) in validator.recipe.inputs.staged_files.iter().enumerate() {
        let path = format!("$.inputs.stagedFiles[{index}]");
        let source = format!("{path}.source");
        check_given(validator, &source, &staged.source, SourceKind::File);
        check_staged_path(validator, &format!("{path}.target"), &staged.target);
    }
}

pub(super) fn check_artifacts(validator: &mut Validator<'_>) {
    let artifacts = &validator.recipe.artifacts;
    if let Some(directory) = artifacts.directory.as_deref()
        && (directory.trim().is_empty() || directory.contains('\0'))
    {
        validator.report(
            IssueCode::MissingPath,
            "$.artifacts.directory",
            "the directory is blank or contains NUL; omit it to use the run's own directory",
        );
    }
    let rows = artifacts
        .paths
        .iter()
        .enumerate()
        .map(|(i, a)| (format!("$.artifacts.paths[{i}]"), &a.name, &a.path))
        .chain(
            artifacts
                .typed
                .iter()
                .enumerate()
                .map(|(i, a)| (format!("$.artifacts.typed[{i}]"), &a.name, &a.path)),
        );
    let git = artifacts
        .workspace_policy
        .as_ref()
        .and_then(|p| p.get("gitBacked"));
    if git.and_then(serde_json::Value::as_bool) == Some(true) {
        validator.report(
            IssueCode::UnsupportedWorkspacePolicy,
            "$.artifacts.workspacePolicy.gitBacked",
            "the workspace policy checks files only and not git metadata; omit gitBacked, and run `wp-codebox workspace-policy check --git` on the workspace instead",
        );
    }
    for (index, row) in artifacts.typed.iter().enumerate() {
        if row.payload_schema.as_ref().is_some_and(|s| !s.is_string()) {
            validator.report(
                IssueCode::UnsupportedPayloadSchema,
                format!("$.artifacts.typed[{index}].payloadSchema"),
                "documents are not validated against a schema here; give the id expected in the document's member \"schema\"",
            );
        }
    }
    let mut names = BTreeSet::new();
    for (path, name, target) in rows {
        if !names.insert(name.as_str()) {
            validator.report(
                IssueCode::DuplicateName,
                format!("{path}.name"),
                "another artifact has this name; use a distinct name",
            );
        }
        if GuestPath::new(target.clone()).is_err() {
            validator.report(
                IssueCode::InvalidSandboxPath,
                format!("{path}.path"),
                "must be a normalised absolute path in the guest, without `..`",
            );
        }
    }
}

/// Returns the read-only mounts that replace a directory of a plugin, each with the plugin's guest
/// path. The directory must exist in the plugin's source: the launcher cannot create a mount point
/// in a mounted plugin.
fn replacing(
    validator: &Validator<'_>,
    placed: &PlacedPlugin<'_>,
    root: &str,
) -> Vec<(String, String)> {
    let mounts = places::mounts(validator.recipe).into_iter();
    mounts
        .filter(|(_, mount)| {
            let below = mount
                .target
                .strip_prefix(&placed.target)
                .and_then(|rest| rest.strip_prefix('/'));
            placed.from == PluginSource::Directory
                && mount.mode == Some(Access::Readonly)
                && !places::is_file(mount.kind, &mount.source, validator.sources)
                && below.is_some_and(|below| {
                    validator.sources.kind(&format!("{root}/{below}")) == PathKind::Directory
                })
        })
        .map(|(_, mount)| (mount.target, placed.target.clone()))
        .collect()
}

/// Reports each guest path of an input that equals the guest path of an earlier input, contains it,
/// or lies below it.
pub(super) fn check_overlaps(validator: &mut Validator<'_>) {
    let recipe = validator.recipe;
    let inputs = &recipe.inputs;
    let mut paths: Vec<(String, String)> = Vec::new();
    for (i, mount) in recipe
        .distribution
        .iter()
        .flat_map(|d| &d.source_mounts)
        .enumerate()
    {
        paths.push((
            format!("$.distribution.sourceMounts[{i}].target"),
            mount.target.clone(),
        ));
    }
    for (path, mount) in places::mounts(recipe) {
        paths.push((format!("{path}.target"), mount.target));
    }
    for file in overlay::files(recipe) {
        paths.push((format!("{}.path", file.path), file.target));
    }
    for package in packages::source_packages(recipe) {
        paths.push((format!("{}.target", package.path), package.target));
    }
    for package in crate::blueprint::packages(recipe, validator.sources) {
        paths.push((
            format!("$.runtime.blueprint.{}", package.path),
            package.target(),
        ));
    }
    for (i, workspace) in inputs.workspaces.iter().enumerate() {
        if let Some(target) = layout::workspace_target(workspace) {
            paths.push((format!("$.inputs.workspaces[{i}].target"), target));
        }
    }
    let mut nested: Vec<(String, String)> = Vec::new();
    for (path, plugin) in packages::plugins(recipe) {
        let placed = layout::place_plugin(&plugin, validator.sources);
        let root = layout::plugin_root(&plugin, placed.source);
        nested.extend(replacing(validator, &placed, &root));
        for overlay in packages::dependency_overlays(recipe) {
            if placed.slug == overlay.consumer || placed.directory == overlay.consumer {
                let target = format!("{}/vendor/{}", placed.target, overlay.package);
                nested.push((target.clone(), placed.target.clone()));
                paths.push((format!("{}.package", overlay.path), target));
            }
        }
        paths.push((path, placed.target));
    }
    for (i, staged) in inputs.staged_files.iter().enumerate() {
        paths.push((
            format!("$.inputs.stagedFiles[{i}].target"),
            staged.target.clone(),
        ));
    }
    let mut taken: Vec<(String, GuestPath)> = Vec::new();
    for (path, target) in paths {
        // `check_target` and `check_staged_path` report an invalid path.
        let Ok(target) = GuestPath::new(target) else {
            continue;
        };
        // A mount at the directory of must-use plugins does not overlap the directory in it where
        // the run's own must-use plugins are.
        let apart = |a: &GuestPath, b: &GuestPath| {
            a.as_str() == MUST_USE && b.as_str().starts_with(GUEST_MU_COMPONENTS)
                || nested
                    .iter()
                    .any(|(inner, outer)| inner == a.as_str() && outer == b.as_str())
        };
        if let Some((other, _)) = taken.iter().find(|(_, t)| {
            (t.contains(&target) || target.contains(t)) && !apart(t, &target) && !apart(&target, t)
        }) {
            validator.report(
                IssueCode::OverlappingTarget,
                &path,
                format!("overlaps the guest path of {other}; use distinct paths that do not contain each other"),
            );
        }
        taken.push((path, target));
    }
}
