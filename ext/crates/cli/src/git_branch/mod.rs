//! Commits approved files of a bundle on a branch of a git repository.
//!
//! Invariants: the work tree and its index stay as they are, nothing is pushed, and no program but
//! git runs ([`program`]). A branch is continued only if its tip is a commit that this site made
//! ([`record`]). Git itself sets the branch, from the value that was read to the new commit, so a
//! branch that another program changed meanwhile stays. A crash at any moment leaves the branch at
//! the old or the new commit; the next call with the same files returns the commit that was made.

mod error;
mod program;
mod record;
mod repository;
mod tree;

use error::GitBranchError;
use program::Git;
use record::{Made, Record};
use repository::Repository;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tree::{Tree, TreeFile};
use wp_codebox_artifacts::{
    Conflict, Dir, FileMode, Node, Preflight, PreflightRequest, TrustedKeys, parse_patch,
    preflight, quote_name, unquote_name,
};
use wp_codebox_contracts::{ChangedFile, ErrorBody, ErrorCode, RunId, SiteCommit};

/// Directory of the site for records and for the work of one commit.
const PLACE: &str = "git-branch";

/// What is committed, and where this site keeps its records.
pub(crate) struct Commit<'a> {
    /// State directory.
    pub state: &'a Path,
    /// Directory of the site in it.
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

/// A commit on the branch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    /// Hash of the commit.
    pub commit: String,
    /// Approved paths that it has: all but directories.
    pub files: Vec<String>,
}

/// Commits the approved files. The caller holds the claim of the site.
pub(crate) fn commit(commit: &Commit<'_>) -> Result<Committed, ErrorBody> {
    let request = &commit.request;
    let place = commit.site.join(PLACE);
    let work = place.join("work");
    let prepared = prepare(&place, &work);
    prepared.map_err(|source| GitBranchError::Work { source }.body())?;
    let done = commit_in(commit, request, &place, &work);
    // What a killed call leaves, the next one removes.
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
    // First without targets: the approved entries tell which files of the tree are needed.
    let asked = PreflightRequest {
        approved_files: request.approved_files.clone(),
        manifest_sha256: Some(request.manifest_sha256.clone()),
        trusted: commit.trusted.clone(),
        ..PreflightRequest::default()
    };
    let ready = preflight(commit.bundle, &asked).map_err(|e| e.body())?;
    if ready.patch_sha256 != request.patch_sha256 {
        let message = "the approved patch is not the one of the bundle; run a new preflight and approve its result";
        return Err(ErrorBody::new(ErrorCode::ArtifactChanged, message));
    }
    let tree = Tree::read(&git, &branch.parent).map_err(failed)?;
    let bases = Bases::copy(&git, &tree, &ready, request, work)?;
    let asked = PreflightRequest {
        targets: bases.targets(),
        ..asked
    };
    let ready = preflight(commit.bundle, &asked).map_err(|e| e.body())?;
    let edits = edits(&git, &tree, &ready, &bases, work)?;
    let files: Vec<String> = carried(&ready).map(|entry| entry.path.clone()).collect();
    if edits.is_empty() {
        return Err(GitBranchError::Nothing.body());
    }
    let message = message(commit, &ready, &files);
    branch.commit(&git, &edits, &message, files).map_err(failed)
}

/// The branch, as it was when the call began.
struct Branch<'a> {
    repository: &'a Repository,
    request: &'a SiteCommit,
    record: Record,
    /// Commit of the branch; absent for a new branch.
    tip: Option<String>,
    /// Commit on which the new one is based.
    parent: String,
}

impl<'a> Branch<'a> {
    fn open(
        git: &Git<'_>,
        repository: &'a Repository,
        request: &'a SiteCommit,
        place: &Path,
    ) -> Result<Self, GitBranchError> {
        let config = repository.directory().join("config");
        let arguments = ["config", "--file"].map(OsStr::new);
        let list = ["--no-includes", "--null", "--list"].map(OsStr::new);
        let listed = [&arguments[..], &[config.as_os_str()], &list].concat();
        let format = repository::format(&git.run(&listed, b"")?)?;
        git.configure(&format.objects, format.shared.as_deref())?;

        let name = &request.branch;
        for name in [name, &request.base] {
            let full = reference(name);
            let arguments = ["check-ref-format", &full].map(OsStr::new);
            // Git permits a first dash here, and later takes such a name for an option.
            if name.starts_with('-') || !git.end(&arguments, b"", &[])?.success {
                return Err(GitBranchError::Name {
                    what: format!("the branch name {name:?}"),
                });
            }
        }
        if *name == request.base {
            return Err(GitBranchError::Name {
                what: format!("the branch {name:?}, which is also the base branch,"),
            });
        }
        repository.check_branch(name)?;
        repository.check_not_in_use(name)?;
        let record = Record::open(place, repository.directory(), name)?;
        let full = reference(name);
        let symbolic = ["symbolic-ref", "--quiet", &full].map(OsStr::new);
        let foreign = || GitBranchError::Foreign {
            branch: name.clone(),
        };
        if git.end(&symbolic, b"", &[])?.success {
            return Err(foreign());
        }
        let tip = resolved(git, name)?;
        let parent = match &tip {
            Some(tip) if record.of(tip).is_none() => return Err(foreign()),
            Some(tip) => tip.clone(),
            None => resolved(git, &request.base)?.ok_or_else(|| GitBranchError::NoBase {
                base: request.base.clone(),
            })?,
        };
        Ok(Self {
            repository,
            request,
            record,
            tip,
            parent,
        })
    }

    /// Returns the commit at the tip if an earlier call made it of the same files: that call was
    /// killed before it could answer, or it is repeated.
    fn made_before(&self, request: &SiteCommit) -> Option<Committed> {
        let made = self.record.of(self.tip.as_ref()?)?;
        let same = made.manifest_sha256 == request.manifest_sha256
            && made.patch_sha256 == request.patch_sha256;
        same.then(|| Committed {
            commit: made.commit.clone(),
            files: made.files.clone(),
        })
    }

    /// Writes tree and commit, and sets the branch.
    fn commit(
        mut self,
        git: &Git<'_>,
        edits: &Edits,
        message: &str,
        files: Vec<String>,
    ) -> Result<Committed, GitBranchError> {
        let parent = self.parent.as_str();
        git.run(&["read-tree", parent].map(OsStr::new), b"")?;
        let zero = "0".repeat(parent.len());
        let mut index = Vec::new();
        // Removals first: a file may take the place of a directory.
        for is_removal in [true, false] {
            for (path, file) in edits {
                if file.is_none() == is_removal {
                    let (mode, object) = match file {
                        Some(file) => (file.mode.as_str(), file.object.as_str()),
                        None => ("0", zero.as_str()),
                    };
                    index.extend_from_slice(format!("{mode} {object}\t").as_bytes());
                    index.extend_from_slice(path);
                    index.push(0);
                }
            }
        }
        let update = ["update-index", "-z", "--index-info"].map(OsStr::new);
        git.run(&update, &index)?;
        let tree = one_line(&git.run(&["write-tree"].map(OsStr::new), b"")?);
        let make = ["commit-tree", &tree, "-p", parent, "-F", "-"].map(OsStr::new);
        let (author, committer) = (&self.request.author, &self.request.committer);
        let commit = one_line(&git.run_as(author, committer, &make, message.as_bytes())?);
        check_difference(git, parent, &commit, edits)?;

        let made = Made {
            commit: commit.clone(),
            manifest_sha256: self.request.manifest_sha256.clone(),
            patch_sha256: self.request.patch_sha256.clone(),
            files: files.clone(),
        };
        self.record.add(self.tip.as_deref(), made)?;
        let branch = &self.request.branch;
        self.repository.check_branch(branch)?;
        self.repository.check_not_in_use(branch)?;
        let full = reference(branch);
        let old = self.tip.as_deref().unwrap_or(&zero);
        let set = ["update-ref", "--no-deref", &full, &commit, old].map(OsStr::new);
        let ended = git.end(&set, b"", &[])?;
        if !ended.success {
            return Err(GitBranchError::NotSet {
                branch: branch.clone(),
                why: ended.message,
            });
        }
        Ok(Committed { commit, files })
    }
}

/// New state of the changed files by path in the repository; `None` for a removed one.
type Edits = BTreeMap<Vec<u8>, Option<TreeFile>>;

/// Fails unless the commit differs from its parent in exactly the edited files.
fn check_difference(
    git: &Git<'_>,
    parent: &str,
    commit: &str,
    edits: &Edits,
) -> Result<(), GitBranchError> {
    let compare = [
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--name-only",
        parent,
        commit,
    ];
    let output = git.run(&compare.map(OsStr::new), b"")?;
    let changed: Vec<&[u8]> = output
        .split(|b| *b == 0)
        .filter(|p| !p.is_empty())
        .collect();
    let mut expected: Vec<&[u8]> = edits.keys().map(Vec::as_slice).collect();
    expected.sort_unstable();
    let mut sorted = changed;
    sorted.sort_unstable();
    match sorted == expected {
        true => Ok(()),
        false => Err(GitBranchError::Git {
            command: "diff-tree".to_owned(),
            why: "the commit would change other files than the approved ones".to_owned(),
        }),
    }
}

/// Returns the commit of a branch; `None` if there is no such branch.
fn resolved(git: &Git<'_>, branch: &str) -> Result<Option<String>, GitBranchError> {
    let name = format!("{}^{{commit}}", reference(branch));
    let arguments = [
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &name,
    ];
    let ended = git.end(&arguments.map(OsStr::new), b"", &[])?;
    Ok(ended.success.then(|| one_line(&ended.output)))
}

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

fn one_line(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim().to_owned()
}

/// Copies of the files of the tree that the change starts from, one directory for each mount.
struct Bases(BTreeMap<String, Base>);

struct Base {
    copy: PathBuf,
    /// Directory of the code in the repository, with a slash at its end unless it is the top.
    prefix: Vec<u8>,
}

impl Bases {
    fn copy(
        git: &Git<'_>,
        tree: &Tree,
        ready: &Preflight,
        request: &SiteCommit,
        work: &Path,
    ) -> Result<Self, ErrorBody> {
        let mut bases = BTreeMap::new();
        for patch in &ready.mount_patches {
            let mount = patch.mount_target.to_string();
            let Some(directory) = request.directories.get(&mount) else {
                let message = format!(
                    "it is not known which directory of the repository has the code of {mount}; set it in the settings of the git branch"
                );
                return Err(ErrorBody::new(ErrorCode::ApplyTargetMismatch, message));
            };
            let base = Base {
                copy: work.join(format!("base-{}", patch.mount_index)),
                prefix: prefix(directory).map_err(|e| e.body())?,
            };
            let entries = || {
                let all = ready.changed_files.iter();
                all.filter(|entry| entry.mount_index == patch.mount_index)
            };
            let mut paths: Vec<Vec<u8>> = entries().map(raw).collect();
            // The contents of a renamed file come from its old path.
            let blocks = parse_patch(patch.patch.as_bytes());
            let blocks =
                blocks.map_err(|e| ErrorBody::new(ErrorCode::PatchUnfilterable, e.to_string()))?;
            paths.extend(blocks.into_iter().filter_map(|block| block.old_name));
            paths.sort();
            paths.dedup();
            let copied = fs::create_dir(&base.copy)
                .map_err(GitBranchError::from)
                .and_then(|()| tree.copy(git, &base.prefix, &paths, &base.copy));
            copied.map_err(|e| e.body())?;
            for entry in entries().filter(|e| e.before_mode.as_deref() == Some("040000")) {
                // Git stores no empty directory; one that the change removes counts as there.
                let _ = fs::create_dir_all(base.copy.join(OsStr::from_bytes(&raw(entry))));
            }
            bases.insert(mount, base);
        }
        Ok(Self(bases))
    }

    fn targets(&self) -> BTreeMap<String, PathBuf> {
        let rows = self.0.iter();
        rows.map(|(mount, base)| (mount.clone(), base.copy.clone()))
            .collect()
    }
}

/// Returns the edits of the tree, whose new contents are in the repository then.
fn edits(
    git: &Git<'_>,
    tree: &Tree,
    ready: &Preflight,
    bases: &Bases,
    work: &Path,
) -> Result<Edits, ErrorBody> {
    let failed = |e: GitBranchError| e.body();
    let mut edits = Edits::new();
    let mut blobs = Vec::new();
    let new = work.join("new");
    fs::create_dir(&new).map_err(|e| failed(e.into()))?;
    for patch in &ready.mount_patches {
        let Some(base) = bases.0.get(patch.mount_target.as_str()) else {
            continue;
        };
        let changes = ready.changes(patch, &base.copy).map_err(|e| e.body())?;
        for entry in changes.entries {
            let full = [base.prefix.as_slice(), &entry.path].concat();
            let (mode, bytes) = match entry.change.after() {
                Some(Node::File { mode, bytes }) => (file_mode(*mode), bytes),
                Some(Node::Symlink { target }) => ("120000", target),
                Some(Node::Directory) | None => {
                    if tree.files.contains_key(&full) {
                        edits.insert(full, None);
                    }
                    continue;
                }
            };
            let file = new.join(blobs.len().to_string());
            fs::write(&file, bytes).map_err(|e| failed(e.into()))?;
            let same = ready.changed_files.iter().any(|file| {
                file.mount_index == patch.mount_index
                    && raw(file) == entry.path
                    && file.before_mode == file.after_mode
            });
            // A change that leaves the mode leaves that of the tree, too.
            let mode = match tree.files.get(&full) {
                Some(old) if same && mode != "120000" => old.mode.clone(),
                _ => mode.to_owned(),
            };
            blobs.push((full, mode, file));
        }
    }
    let names = blobs.iter().map(|(_, _, file)| file.to_string_lossy());
    let input = names.map(|name| format!("{name}\n")).collect::<String>();
    let write = ["hash-object", "-w", "--no-filters", "--stdin-paths"].map(OsStr::new);
    let output = git.run(&write, input.as_bytes()).map_err(failed)?;
    let output = String::from_utf8_lossy(&output);
    for ((path, mode, _), object) in blobs.into_iter().zip(output.lines()) {
        let file = TreeFile {
            mode,
            object: object.to_owned(),
        };
        if tree.files.get(&path) != Some(&file) {
            edits.insert(path, Some(file));
        }
    }
    check_places(tree, &edits).map_err(failed)?;
    Ok(edits)
}

const fn file_mode(mode: FileMode) -> &'static str {
    match mode {
        FileMode::Executable => "100755",
        FileMode::Regular => "100644",
    }
}

/// Fails if a new file would be below another file of the commit, or in the place of a directory.
fn check_places(tree: &Tree, edits: &Edits) -> Result<(), GitBranchError> {
    let stays = |path: &[u8]| match edits.get(path) {
        Some(edit) => edit.is_some(),
        None => tree.files.contains_key(path),
    };
    let mut conflicts = Vec::new();
    for (path, file) in edits {
        if file.is_none() {
            continue;
        }
        let cuts = path.iter().enumerate().filter(|(_, b)| **b == b'/');
        let below_file = { cuts }.any(|(at, _)| stays(&path[..at]));
        let start = [path.as_slice(), b"/"].concat();
        let mut below = tree.files.range(start.clone()..).map(|(path, _)| path);
        let over_directory = below
            .by_ref()
            .take_while(|path| path.starts_with(&start))
            .any(|path| stays(path));
        if below_file || over_directory {
            conflicts.push(Conflict {
                path: quote_name(path),
                reason: "another type",
            });
        }
    }
    match conflicts.first() {
        None => Ok(()),
        Some(first) => Err(GitBranchError::Conflict {
            count: conflicts.len(),
            first: first.path.clone(),
            conflicts,
        }),
    }
}

/// Returns a directory of the repository as the beginning of the paths in it.
fn prefix(directory: &str) -> Result<Vec<u8>, GitBranchError> {
    if directory.is_empty() {
        return Ok(Vec::new());
    }
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    match directory.split('/').all(is_plain) && !directory.contains(char::is_control) {
        true => Ok(format!("{directory}/").into_bytes()),
        false => Err(GitBranchError::Name {
            what: format!("the directory {directory:?} in the repository"),
        }),
    }
}

/// Returns the path of an entry below its mount.
fn raw(entry: &ChangedFile) -> Vec<u8> {
    let text = entry.relative_path.as_bytes();
    match entry.path_encoding.as_deref() {
        Some("git-quoted") => unquote_name(text).map_or_else(|| text.to_vec(), |(name, _)| name),
        _ => text.to_vec(),
    }
}

/// Returns the approved entries that a commit can have: all but directories.
fn carried(ready: &Preflight) -> impl Iterator<Item = &ChangedFile> {
    let is_carried = |mode: &Option<String>| mode.as_deref().is_some_and(|mode| mode != "040000");
    ready.changed_files.iter().filter(move |entry| {
        let no_modes = entry.before_mode.is_none() && entry.after_mode.is_none();
        no_modes || is_carried(&entry.before_mode) || is_carried(&entry.after_mode)
    })
}

/// Returns the message of the commit with its provenance as trailers.
fn message(commit: &Commit<'_>, ready: &Preflight, files: &[String]) -> String {
    let approver = commit.request.approver.chars();
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let approver: String = approver.map(plain).take(200).collect();
    format!(
        "Apply approved changes of {run}\n\nChanged files: {count}\n\nCodebox-Bundle: {bundle}\nCodebox-Run: {run}\nCodebox-Manifest: sha256:{manifest}\nCodebox-Patch: sha256:{patch}\nCodebox-Approved-By: {approver}\n",
        run = commit.run_id.as_str(),
        count = files.len(),
        bundle = ready.artifact_id,
        manifest = ready.manifest_sha256,
        patch = ready.patch_sha256,
        approver = approver.trim(),
    )
}
