//! Commits approved files of a bundle on a branch of a git repository.
//!
//! Invariants:
//! - The work tree and its index stay unchanged, nothing is pushed, and no program except git runs
//!   ([`program`]).
//! - A commit is added to an existing branch only if this site made its tip ([`record`]).
//! - `git update-ref` gets the expected old commit, so it fails if another program changed the
//!   branch meanwhile.
//! - A crash at any moment leaves the branch at the old or the new commit. If it is the new one, a
//!   repeated call with the same patch returns it.

mod branch;
mod edits;
mod error;
mod program;
mod record;
mod repository;
mod tree;

use crate::applying::browser_origin;
use branch::Branch;
use edits::{Bases, carried, edits};
use error::GitBranchError;
use program::Git;
pub(crate) use record::Committed;
use repository::Repository;
use std::fs;
use std::path::Path;
use tree::Tree;
use wp_codebox_artifacts::{Dir, Preflight, PreflightRequest, TrustedKeys, preflight};
use wp_codebox_contracts::{BundleOrigin, CodedError, ErrorBody, ErrorCode, RunId, SiteCommit};

/// Name of a directory inside the site's directory. It contains the records of commits and, while a
/// commit is made, its temporary files.
const PLACE: &str = "git-branch";

/// Approved files to commit, and the directories of this site.
pub(crate) struct Commit<'a> {
    /// State directory.
    pub state: &'a Path,
    /// Directory of the site in the state directory.
    pub site: &'a Path,
    /// Directory of the bundle.
    pub bundle: &'a Dir,
    /// Run that wrote the bundle.
    pub run_id: &'a RunId,
    /// Keys by which a signature counts as trusted.
    pub trusted: TrustedKeys,
    /// Approved files, repository and branch.
    pub request: SiteCommit,
}

/// Commits the approved files. The caller must hold the site's lock
/// ([`wp_codebox_apply::Journal::claim`]).
pub(crate) fn commit(commit: &Commit<'_>) -> Result<Committed, ErrorBody> {
    let request = &commit.request;
    let place = commit.site.join(PLACE);
    let work = place.join("work");
    let prepared = prepare(&place, &work);
    prepared.map_err(|source| GitBranchError::Work { source }.body())?;
    let done = commit_in(commit, request, &place, &work);
    // If this fails or the process is killed before, the next call removes the directory.
    let _ = fs::remove_dir_all(&work);
    done
}

fn prepare(place: &Path, work: &Path) -> std::io::Result<()> {
    fs::create_dir_all(place)?;
    match fs::remove_dir_all(work) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir(work)
}

fn commit_in(
    commit: &Commit<'_>,
    request: &SiteCommit,
    place: &Path,
    work: &Path,
) -> Result<Committed, ErrorBody> {
    let failed = |e: GitBranchError| e.body();
    let repository = Repository::open(Path::new(&request.repository), commit.state);
    let repository = repository.map_err(failed)?;
    let git = Git::new(work, &repository).map_err(failed)?;
    let branch = Branch::open(&git, &repository, request, place).map_err(failed)?;
    if let Some(made) = branch.made_before(request) {
        return Ok(made);
    }
    // The first preflight has no targets; its result says which files of the tree to copy.
    // The second one compares these copies with the files that the run started from.
    let asked = PreflightRequest {
        approved_files: request.approved_files.clone(),
        manifest_sha256: Some(request.manifest_sha256.clone()),
        trusted: commit.trusted.clone(),
        browser_origin: browser_origin(request.confirm_browser_origin),
        ..PreflightRequest::default()
    };
    let ready = preflight(commit.bundle, &asked)?;
    if ready.patch_sha256 != request.patch_sha256 {
        let message = "the approved patch differs from the patch of the bundle; check the bundle again and approve what the new check shows";
        return Err(ErrorBody::new(ErrorCode::ArtifactChanged, message));
    }
    let tree = Tree::read(&git, &branch.parent).map_err(failed)?;
    let bases = Bases::copy(&git, &tree, &ready, request, work)?;
    let asked = PreflightRequest {
        targets: bases.targets(),
        ..asked
    };
    let ready = preflight(commit.bundle, &asked)?;
    let edits = edits(&git, &tree, &ready, &bases, work)?;
    let files: Vec<String> = carried(&ready).map(|entry| entry.path.clone()).collect();
    if edits.is_empty() {
        return Err(GitBranchError::Nothing.body());
    }
    let message = message(commit, &ready, &files);
    branch.commit(&git, &edits, &message, files).map_err(failed)
}

/// Returns the message of the commit with its provenance as trailers.
fn message(commit: &Commit<'_>, ready: &Preflight, files: &[String]) -> String {
    let approver = commit.request.approver.chars();
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let origin = ready.signature.origin.map_or("", |origin| match origin {
        BundleOrigin::Browser => "Codebox-Origin: browser\n",
    });
    let approver: String = approver.map(plain).take(200).collect();
    format!(
        "Apply approved changes of {run}\n\nChanged files: {count}\n\nCodebox-Bundle: {bundle}\nCodebox-Run: {run}\nCodebox-Manifest: sha256:{manifest}\nCodebox-Patch: sha256:{patch}\nCodebox-Approved-By: {approver}\n{origin}",
        run = commit.run_id.as_str(),
        count = files.len(),
        bundle = ready.artifact_id,
        manifest = ready.manifest_sha256,
        patch = ready.patch_sha256,
        approver = approver.trim(),
    )
}
