//! Finds the earlier bundle from which a follow-up run starts, and changes the request accordingly:
//! comments for the agent, remaining budget, provenance.
//!
//! Invariants: only bundles of the request's own site are looked at. A bundle is used only if it
//! verifies, this host signed it, and its review lets the change be approved; so a recovery bundle
//! (unsigned), a bundle that is blocked for a secret, and one whose source changed during its run
//! are refused. The outcome does not matter: a follow-up may repair a failed run.

use super::budget::{remaining, sum};
use super::error::FollowUpError;
use super::notes::{Notes, notes};
use crate::request::sources::OpenMount;
use serde::Deserialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use wp_codebox_artifacts::{
    Dir, HostKey, KeyError, MountChanges, PreflightError, Store, WholeBundle, whole_bundle,
};
use wp_codebox_contracts::{
    Agent, ChangedFile, FollowUpOf, FollowUpRecord, GuestPath, MAX_CHAIN, ModelUsage, MountAccess,
    ReviewComment, RunId, RunRequest, SiteId, schema_id,
};
use wp_codebox_policy::{FOLLOW_UP_CONTEXT, Redactor};
use wp_codebox_runtime::StateDir;

/// Member of a run's provenance that names the earlier bundle.
const PROVENANCE: &str = "follow_up_of";

/// The verified earlier bundle from whose change a follow-up run starts.
#[derive(Debug)]
pub(crate) struct Earlier {
    bundle: WholeBundle,
    run_id: RunId,
    comments: Vec<ReviewComment>,
    /// Runs of the chain of follow-up runs that came before the new run, oldest first.
    chain: Vec<RunId>,
    /// Total model usage of the runs in `chain`.
    used: ModelUsage,
    /// Reviewers' comments and a summary of the earlier run, as text for the agent.
    pub text: String,
}

/// Finds and verifies the earlier bundle that the request names; `None` if it names none. Adds the
/// comments and a summary of the earlier run to the context of the task, reduces the agent's budget
/// by the usage of the earlier runs, and names the bundle in the provenance of the run.
pub(crate) fn find(
    state: &StateDir,
    request: &mut RunRequest,
    mounts: &[OpenMount],
    redactor: &Redactor,
) -> Result<Option<Earlier>, FollowUpError> {
    let Some(follow_up) = &request.follow_up else {
        return Ok(None);
    };
    let (bundle, run_id) = open(state, &request.site, &follow_up.of)?;
    let unusable = |source: PreflightError| FollowUpError::Bundle {
        run_id: run_id.clone(),
        source,
    };
    let files = &bundle.preflight().changed_files;
    check_mounts(files, mounts)?;
    let comments = complete(&follow_up.of.comments, files, mounts, redactor)?;
    let (chain, used) = chain(&bundle, &run_id)?;
    let Notes { document, text } =
        notes(&bundle, &run_id, &comments, redactor).map_err(unusable)?;
    if let Some(Agent::Model(agent)) = &mut request.agent {
        agent.budget = remaining(agent.budget, &follow_up.budget, used)?;
    }
    if let Some(task) = &mut request.task {
        task.context.insert(FOLLOW_UP_CONTEXT.to_owned(), document);
    }
    let id = &bundle.preflight().artifact_id;
    request.provenance.insert(
        PROVENANCE.to_owned(),
        json!({"artifact_id": id, "run_id": run_id}),
    );
    Ok(Some(Earlier {
        bundle,
        run_id,
        comments,
        chain,
        used,
        text,
    }))
}

impl Earlier {
    /// Returns the earlier bundle's change of each mount, by the mount's guest path. `targets` has
    /// the current directory of each mount. Fails if a file there differs from its state before the
    /// change.
    pub(crate) fn changes(
        &self,
        targets: &BTreeMap<String, PathBuf>,
    ) -> Result<BTreeMap<GuestPath, MountChanges>, FollowUpError> {
        let run_id = self.run_id.clone();
        self.bundle.changes(targets).map_err(|error| match error {
            PreflightError::Conflict {
                first, conflicts, ..
            } => FollowUpError::BaseChanged {
                run_id,
                first,
                conflicts,
            },
            source => FollowUpError::Bundle { run_id, source },
        })
    }

    /// Returns `files/follow-up.json` for the bundle of the new run. `own` is the model usage of
    /// the new run's agent. The bundle writer adds the changed files.
    pub(crate) fn record(&self, own: Option<ModelUsage>) -> FollowUpRecord {
        FollowUpRecord {
            schema: schema_id::FOLLOW_UP.to_owned(),
            artifact_id: self.bundle.preflight().artifact_id.clone(),
            run_id: self.run_id.clone(),
            manifest_sha256: self.bundle.preflight().manifest_sha256.clone(),
            comments: self.comments.clone(),
            chain: self.chain.clone(),
            used: sum(self.used, own.unwrap_or_default()),
            changed_files: Vec::new(),
        }
    }

    /// Returns the id of the run that made the earlier bundle.
    pub(crate) fn run_id(&self) -> &RunId {
        &self.run_id
    }
}

/// Finds the bundle in the site's artifacts directory by bundle id or run id, and verifies it.
fn open(
    state: &StateDir,
    site: &SiteId,
    of: &FollowUpOf,
) -> Result<(WholeBundle, RunId), FollowUpError> {
    let state = Dir::open(state.path()).map_err(|source| FollowUpError::State { source })?;
    let reference = of.run_id.as_ref().or(of.artifact_id.as_ref());
    let reference = reference.map(String::as_str).unwrap_or_default();
    let found = Store::open(&state, site)?.resolve(reference)?;
    let host = match HostKey::load(&state) {
        Ok(key) => key.public_keys(),
        Err(KeyError::Missing) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    let run_id = found.row.run_id;
    match whole_bundle(found.directory, host) {
        Ok(bundle) => Ok((bundle, run_id)),
        Err(source) => Err(FollowUpError::Bundle { run_id, source }),
    }
}

/// Fails if the run has no writable mount at a guest path where the earlier bundle changed files.
fn check_mounts(files: &[ChangedFile], mounts: &[OpenMount]) -> Result<(), FollowUpError> {
    let writable = |mount: &&OpenMount| mount.request.mode == MountAccess::Readwrite;
    let writable = mounts.iter().filter(writable);
    let writable: BTreeSet<&str> = writable.map(|mount| mount.target.as_str()).collect();
    let changed: BTreeSet<&str> = files
        .iter()
        .map(|file| file.mount_target.as_str())
        .collect();
    let missing = changed.difference(&writable);
    let targets: Vec<String> = missing.map(|target| (*target).to_owned()).collect();
    match targets.is_empty() {
        true => Ok(()),
        false => Err(FollowUpError::Mounts { targets }),
    }
}

/// Returns the comments with secrets removed and each relative path replaced by a guest path.
fn complete(
    comments: &[ReviewComment],
    files: &[ChangedFile],
    mounts: &[OpenMount],
    redactor: &Redactor,
) -> Result<Vec<ReviewComment>, FollowUpError> {
    let places = Places {
        files,
        mounts: mounts
            .iter()
            .map(|mount| (&mount.target, mount.request.mode))
            .collect(),
    };
    let clean = |text: &str| redactor.redact(text).into_owned();
    let rows = comments.iter().enumerate().map(|(index, comment)| {
        let path = comment.path.as_deref().map(|path| {
            let path = places.complete(path);
            path.ok_or(FollowUpError::Comment { index })
        });
        Ok(ReviewComment {
            path: path.transpose()?.as_deref().map(clean),
            line: comment.line,
            body: clean(&comment.body),
        })
    });
    rows.collect()
}

/// Paths to which a comment may refer: changed files of the earlier bundle and paths in mounts.
struct Places<'p> {
    files: &'p [ChangedFile],
    mounts: Vec<(&'p GuestPath, MountAccess)>,
}

impl Places<'_> {
    /// Returns the guest path to which a comment's path refers; `None` if it is in no mount or
    /// ambiguous. A relative path means the only changed file with this path in its mount; if no
    /// changed file has it, a path in the only writable mount.
    fn complete(&self, path: &str) -> Option<String> {
        if self.files.iter().any(|file| file.path == path) {
            return Some(path.to_owned());
        }
        if path.starts_with('/') {
            let path = GuestPath::new(path).ok()?;
            let mut mounts = self.mounts.iter();
            let is_inside = mounts.any(|(target, _)| target.contains(&path));
            return is_inside.then(|| path.as_str().to_owned());
        }
        let mut named = self.files.iter().filter(|file| file.relative_path == path);
        match (named.next(), named.next()) {
            (Some(file), None) => return Some(file.path.clone()),
            (Some(_), Some(_)) => return None,
            (None, _) => {}
        }
        let is_writable = |(_, mode): &&(&GuestPath, MountAccess)| *mode == MountAccess::Readwrite;
        let mut writable = self.mounts.iter().filter(is_writable);
        match (writable.next(), writable.next()) {
            (Some((target, _)), None) => {
                let path = GuestPath::new(format!("{target}/{path}")).ok()?;
                Some(path.as_str().to_owned())
            }
            _ => None,
        }
    }
}

/// Part of `files/follow-up.json` that a later run of the chain needs.
#[derive(Debug, Deserialize)]
struct Link {
    chain: Vec<RunId>,
    used: ModelUsage,
}

/// Returns the runs of the chain up to the earlier run, oldest first, and their total model usage.
fn chain(bundle: &WholeBundle, run_id: &RunId) -> Result<(Vec<RunId>, ModelUsage), FollowUpError> {
    let read = |member: &str| {
        bundle
            .document(member)
            .map_err(|source| FollowUpError::Bundle {
                run_id: run_id.clone(),
                source,
            })
    };
    let link = match read(FollowUpRecord::PATH)? {
        Some(bytes) => serde_json::from_slice(&bytes).map_err(|source| FollowUpError::Record {
            run_id: run_id.clone(),
            source,
        })?,
        // The first run of a chain is not a follow-up run, so its bundle has no
        // `files/follow-up.json`. Its transcript contains the usage.
        None => {
            let log = read("files/transcript.json")?.unwrap_or_default();
            Link {
                chain: Vec::new(),
                used: usage(&log),
            }
        }
    };
    linked(link, run_id)
}

/// Returns the model usage from a transcript; zero if the transcript has none, because no model was
/// used.
fn usage(transcript: &[u8]) -> ModelUsage {
    let document: serde_json::Value = serde_json::from_slice(transcript).unwrap_or_default();
    let usage = document.get("usage").cloned().unwrap_or_default();
    serde_json::from_value(usage).unwrap_or_default()
}

/// Adds the earlier run to the runs before it. Fails if the chain is longer than [`MAX_CHAIN`].
fn linked(link: Link, run_id: &RunId) -> Result<(Vec<RunId>, ModelUsage), FollowUpError> {
    let Link { mut chain, used } = link;
    chain.push(run_id.clone());
    match chain.len() {
        length if length > MAX_CHAIN => Err(FollowUpError::Chain { length }),
        _ => Ok((chain, used)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_contracts::{CodedError, ErrorCode};

    const TARGET: &str = "/workspace/p";

    fn file(relative: &str, target: &str) -> ChangedFile {
        serde_json::from_value(json!({
            "path": format!("{target}/{relative}"), "relativePath": relative, "status": "added",
            "type": "file", "mountIndex": 0, "mountTarget": target, "patchName": relative,
            "patchPath": "files/diffs/mount-0.patch",
        }))
        .unwrap()
    }

    fn run(number: u64) -> RunId {
        RunId::new(format!("run_{number:032x}")).unwrap()
    }

    /// `complete` returns the guest path of a review comment, or `None` if its path is refused.
    #[test]
    fn comment_path_must_be_a_changed_file_or_an_unambiguous_path_in_a_mount() {
        let (first, second) = (
            GuestPath::new(TARGET).unwrap(),
            GuestPath::new("/workspace/q").unwrap(),
        );
        let files = [file("a.php", TARGET), file("odd\\name", TARGET)];
        let (read, write) = (MountAccess::Readonly, MountAccess::Readwrite);
        let one = Places {
            files: &files,
            mounts: vec![(&first, write), (&second, read)],
        };
        let path = |relative: &str| Some(format!("{TARGET}/{relative}"));
        for (given, complete) in [
            ("/workspace/p/a.php", path("a.php")),
            ("/workspace/p/odd\\name", path("odd\\name")),
            ("a.php", path("a.php")),
            ("new/b.php", path("new/b.php")),
            ("/workspace/p", Some(TARGET.to_owned())),
            ("/workspace/q/c.php", Some("/workspace/q/c.php".to_owned())),
            ("/workspace/other/c.php", None),
            ("/workspace/p/../q/c.php", None),
            ("../q/c.php", None),
            ("/etc/passwd", None),
        ] {
            assert_eq!(one.complete(given), complete, "{given}");
        }
        // With two writable mounts a relative path is unambiguous only if exactly one changed file
        // has it.
        let both = [file("a.php", TARGET), file("a.php", "/workspace/q")];
        let two = Places {
            files: &both,
            mounts: vec![(&first, write), (&second, write)],
        };
        assert_eq!(two.complete("a.php"), None);
        assert_eq!(two.complete("new/b.php"), None);
        let mounts = vec![(&first, write), (&second, write)];
        let clear = Places {
            files: &files,
            mounts,
        };
        assert_eq!(clear.complete("a.php"), path("a.php"));
    }

    #[test]
    fn chain_of_more_than_20_earlier_runs_is_refused() {
        let link = |length: u64| Link {
            chain: (0..length).map(run).collect(),
            used: ModelUsage::default(),
        };
        assert_eq!(linked(link(0), &run(9)).unwrap().0, [run(9)]);
        let (longest, _) = linked(link(19), &run(99)).unwrap();
        assert_eq!((longest.len(), longest.last()), (20, Some(&run(99))));
        let error = linked(link(20), &run(99)).unwrap_err().body();
        assert_eq!(error.code, ErrorCode::InputInvalid);
        assert!(error.message.contains("at most 20"), "{}", error.message);
    }

    #[test]
    fn usage_is_zero_if_the_transcript_has_no_usage_of_a_model() {
        let with = br#"{"executions": [], "usage": {"turns": 3, "input_tokens": 5,
            "cached_input_tokens": 0, "output_tokens": 7}}"#;
        assert_eq!((usage(with).turns, usage(with).output_tokens), (3, 7));
        for without in [&b""[..], b"{}", br#"{"executions": []}"#] {
            assert_eq!(usage(without), ModelUsage::default());
        }
    }
}
