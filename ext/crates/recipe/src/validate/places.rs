//! Mounts, workspaces, staged files and artifacts: sources are there, targets are free.

use super::Judge;
use crate::issue::IssueCode;
use crate::layout;
use crate::model::{Access, MountPhase, SeedKind, SourceKind, SourceMode};
use crate::sources::{PathKind, is_below};
use std::collections::BTreeSet;
use wp_codebox_contracts::{GitChoice, GuestPath, MountAccess, MountRequest};
use wp_codebox_policy::{MountError, check_mounts as judge_mounts, check_staged_target, defaults};

pub(super) fn check_mounts(judge: &mut Judge<'_>) {
    for (index, mount) in judge.recipe.inputs.mounts.iter().enumerate() {
        let path = format!("$.inputs.mounts[{index}]");
        if mount.phase == Some(MountPhase::PreInstall) {
            judge.say(
                IssueCode::UnsupportedMount,
                format!("{path}.phase"),
                "guests begin with an installed WordPress; there is nothing to be mounted before",
            );
        }
        check_mount(
            judge,
            &path,
            Wanted {
                source: &mount.source,
                target: &mount.target,
                kind: mount.kind,
                access: mount.mode.unwrap_or(Access::Readwrite),
                git: mount.git,
            },
        );
    }
}

/// One mount of the recipe or its distribution.
pub(super) struct Wanted<'a> {
    pub source: &'a str,
    pub target: &'a str,
    pub kind: Option<SourceKind>,
    pub access: Access,
    pub git: Option<GitChoice>,
}

pub(super) fn check_mount(judge: &mut Judge<'_>, path: &str, wanted: Wanted<'_>) {
    let source = format!("{path}.source");
    if wanted.source.trim().is_empty() {
        judge.say(IssueCode::MissingSource, source, "is empty");
        return;
    }
    let wrong = match (judge.sources.kind(wanted.source), wanted.kind) {
        (PathKind::Directory, None | Some(SourceKind::Directory)) => {
            let target = format!("{path}.target");
            return check_target(judge, &target, wanted.target, wanted.access);
        }
        (PathKind::File, None | Some(SourceKind::File)) => None,
        (PathKind::Directory, Some(SourceKind::File)) => {
            Some((IssueCode::NotFile, "is a directory, not a file"))
        }
        (PathKind::File, Some(SourceKind::Directory)) => {
            Some((IssueCode::NotDirectory, "is a file, not a directory"))
        }
        (PathKind::Missing, _) => Some((IssueCode::MissingSource, "does not exist")),
        (PathKind::Other, _) => Some((
            IssueCode::InvalidSource,
            "must be a directory or a regular file",
        )),
        (PathKind::Denied, _) => Some((
            IssueCode::InvalidSource,
            "this path may not be given to a guest",
        )),
    };
    if let Some((code, message)) = wrong {
        return judge.say(code, source, message);
    }
    if wanted.access == Access::Readwrite {
        judge.say(
            IssueCode::UnsupportedMount,
            format!("{path}.mode"),
            "a single file is staged and only read (mounts are readwrite unless they say otherwise): say \"readonly\", or mount its directory",
        );
    }
    if wanted.git.is_some() {
        judge.say(
            IssueCode::UnsupportedMount,
            format!("{path}.git"),
            "a single file has no repository; leave git out, or mount its directory",
        );
    }
    check_staged_place(judge, &format!("{path}.target"), wanted.target);
}

/// The target of a directory, by the rules of every mount.
pub(super) fn check_target(judge: &mut Judge<'_>, path: &str, target: &str, access: Access) {
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
    let policy = judge.policy.clone().unwrap_or_else(|| defaults(Vec::new()));
    if let Err(error) = judge_mounts(&[request], &policy) {
        let code = match &error {
            MountError::Policy { .. } => IssueCode::RuntimePolicyMountDenied,
            _ => IssueCode::InvalidSandboxPath,
        };
        judge.say(code, path, error.to_string());
    }
}

fn check_staged_place(judge: &mut Judge<'_>, path: &str, target: &str) {
    if let Err(error) = check_staged_target(target) {
        judge.say(IssueCode::InvalidSandboxPath, path, error.to_string());
    }
}

pub(super) fn check_workspaces(judge: &mut Judge<'_>) {
    for (index, workspace) in judge.recipe.inputs.workspaces.iter().enumerate() {
        let path = format!("$.inputs.workspaces[{index}]");
        let seed = &workspace.seed;
        match (seed.kind, seed.source.as_deref()) {
            (SeedKind::Directory, None) => judge.say(
                IssueCode::MissingSource,
                format!("{path}.seed.source"),
                "a workspace made of a directory names it",
            ),
            (SeedKind::Directory, Some(source)) => {
                let path = format!("{path}.seed.source");
                check_given(judge, &path, source, SourceKind::Directory);
            }
            (SeedKind::Plugin | SeedKind::Theme, None) => {}
            (SeedKind::Plugin | SeedKind::Theme, Some(_)) => judge.say(
                IssueCode::InvalidSource,
                format!("{path}.seed.source"),
                "a scaffold is generated and has no source; use the seed \"directory\"",
            ),
        }
        if workspace.source_mode == Some(SourceMode::Site) && seed.kind != SeedKind::Directory {
            judge.say(
                IssueCode::InvalidSource,
                format!("{path}.sourceMode"),
                "a scaffold is not taken from a site; leave sourceMode out",
            );
        }
        let made = seed.kind != SeedKind::Directory || !seed.exclude_paths.is_empty();
        if workspace.git == Some(GitChoice::History) && made {
            judge.say(
                IssueCode::UnsupportedMount,
                format!("{path}.git"),
                "a scaffold and a directory with excludePaths are made for the run and have no history; use \"baseline\"",
            );
        }
        for (at, exclude) in seed.exclude_paths.iter().enumerate() {
            let pattern = exclude.strip_suffix("/**").unwrap_or(exclude);
            if !is_below(pattern) {
                judge.say(
                    IssueCode::InvalidSource,
                    format!("{path}.seed.excludePaths[{at}]"),
                    "must be a path below the workspace, such as `node_modules` or `build/**`",
                );
            }
        }
        match layout::workspace_target(workspace) {
            Some(target) => check_target(
                judge,
                &format!("{path}.target"),
                &target,
                workspace.mode.unwrap_or(Access::Readwrite),
            ),
            None => judge.say(
                IssueCode::InvalidSlug,
                format!("{path}.seed.slug"),
                "is required here: the workspace's place is named after it",
            ),
        }
    }
}

/// Says so when the path is blank, or not what is wanted.
pub(super) fn check_given(judge: &mut Judge<'_>, path: &str, source: &str, wanted: SourceKind) {
    match source.trim() {
        "" => judge.say(IssueCode::MissingSource, path, "is empty"),
        _ => check_is(judge, path, source, wanted),
    }
}

/// Says so unless the path is a directory or file, as wanted, that a guest may be given.
pub(super) fn check_is(judge: &mut Judge<'_>, path: &str, source: &str, wanted: SourceKind) {
    use SourceKind::{Directory, File};
    let (code, message) = match (judge.sources.kind(source), wanted) {
        (PathKind::Directory, Directory) | (PathKind::File, File) => return,
        (PathKind::Missing, _) => (IssueCode::MissingSource, "does not exist"),
        (PathKind::Denied, Directory) => (
            IssueCode::InvalidSource,
            "this directory may not be given to a guest",
        ),
        (PathKind::Denied, File) => (
            IssueCode::InvalidSource,
            "this file may not be given to a guest",
        ),
        (PathKind::File | PathKind::Other, Directory) => {
            (IssueCode::NotDirectory, "must be a directory")
        }
        (PathKind::Directory | PathKind::Other, File) => {
            (IssueCode::NotFile, "must be a regular file")
        }
    };
    judge.say(code, path, message);
}

pub(super) fn check_staged(judge: &mut Judge<'_>) {
    for (index, staged) in judge.recipe.inputs.staged_files.iter().enumerate() {
        let path = format!("$.inputs.stagedFiles[{index}]");
        let source = format!("{path}.source");
        check_given(judge, &source, &staged.source, SourceKind::File);
        check_staged_place(judge, &format!("{path}.target"), &staged.target);
    }
}

pub(super) fn check_artifacts(judge: &mut Judge<'_>) {
    let artifacts = &judge.recipe.artifacts;
    if let Some(directory) = artifacts.directory.as_deref()
        && (directory.trim().is_empty() || directory.contains('\0'))
    {
        judge.say(
            IssueCode::MissingPath,
            "$.artifacts.directory",
            "is empty; leave it out for a directory of the run's own",
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
        judge.say(
            IssueCode::UnsupportedWorkspacePolicy,
            "$.artifacts.workspacePolicy.gitBacked",
            "what a guest changed is judged, and a repository's own metadata is no part of that; use `wp-codebox workspace-policy check --git` on the workspace",
        );
    }
    for (index, row) in artifacts.typed.iter().enumerate() {
        if row.payload_schema.as_ref().is_some_and(|s| !s.is_string()) {
            judge.say(
                IssueCode::UnsupportedPayloadSchema,
                format!("$.artifacts.typed[{index}].payloadSchema"),
                "documents are not held against a schema here; give the id that the document's own member \"schema\" must have",
            );
        }
    }
    let mut names = BTreeSet::new();
    for (path, name, target) in rows {
        if !names.insert(name.as_str()) {
            judge.say(
                IssueCode::DuplicateName,
                format!("{path}.name"),
                "another artifact has this name; each needs its own",
            );
        }
        if GuestPath::new(target.clone()).is_err() {
            judge.say(
                IssueCode::InvalidSandboxPath,
                format!("{path}.path"),
                "must be a normalised absolute path in the guest, without `..`",
            );
        }
    }
}

/// No two things of a recipe may share a place, whichever section they stand in.
pub(super) fn check_overlaps(judge: &mut Judge<'_>) {
    let recipe = judge.recipe;
    let inputs = &recipe.inputs;
    let mut places: Vec<(String, String)> = Vec::new();
    for (i, mount) in recipe
        .distribution
        .iter()
        .flat_map(|d| &d.source_mounts)
        .enumerate()
    {
        places.push((
            format!("$.distribution.sourceMounts[{i}].target"),
            mount.target.clone(),
        ));
    }
    for (i, mount) in inputs.mounts.iter().enumerate() {
        places.push((format!("$.inputs.mounts[{i}].target"), mount.target.clone()));
    }
    for (i, workspace) in inputs.workspaces.iter().enumerate() {
        if let Some(target) = layout::workspace_target(workspace) {
            places.push((format!("$.inputs.workspaces[{i}].target"), target));
        }
    }
    for (i, plugin) in inputs.extra_plugins.iter().enumerate() {
        let target = layout::place_plugin(plugin, judge.sources).target;
        places.push((format!("$.inputs.extra_plugins[{i}]"), target));
    }
    for (i, staged) in inputs.staged_files.iter().enumerate() {
        places.push((
            format!("$.inputs.stagedFiles[{i}].target"),
            staged.target.clone(),
        ));
    }
    let mut taken: Vec<(String, GuestPath)> = Vec::new();
    for (path, target) in places {
        // A target that is none has its own issue.
        let Ok(target) = GuestPath::new(target) else {
            continue;
        };
        if let Some((other, _)) = taken
            .iter()
            .find(|(_, t)| t.contains(&target) || target.contains(t))
        {
            judge.say(
                IssueCode::OverlappingTarget,
                &path,
                format!("lies at, in or around the place of {other}; give each a place of its own"),
            );
        }
        taken.push((path, target));
    }
}
