//! Export of a bundle to an archive, import of a bundle, and the changed files of a bundle, each
//! with its part of the patch.
//!
//! Files to read are opened with the caller's rights; stored files belong to the owner of the state
//! directory.

use crate::diff;
use crate::fields::Fields;
use crate::guard::Failure;
use crate::ini::{Settings, is_absolute};
use crate::state::{TRUSTED_KEYS, known_keys, trusted_keys};
use base64::Engine as _;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use serde_json::{Map, Value, json};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{
    ArchiveError, ArchiveReport, Dir, DownloadError, ImportRules, Imported, MemberSet,
    MembersError, PreflightRequest, Replace, SignatureRule, StoredBundle, VerifyOptions, preflight,
    write_archive,
};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode};

/// Maximum size of one changed file's patch in a result for PHP, in bytes; a longer one is cut.
const MAX_PATCH: usize = 1024 * 1024;
/// Size limit of an archive written to a file, in bytes.
const MAX_FILE: u64 = 1024 * 1024 * 1024;

/// Writes the archive of a bundle to a new file.
pub(crate) fn to_file(
    settings: &Settings,
    bundle: &StoredBundle,
    path: &str,
) -> Result<ArchiveReport, Failure> {
    if !is_absolute(path) {
        return Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "path must be an absolute path without `.` and `..` segments",
        )
        .into());
    }
    let options = options(settings)?;
    let file = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|source| {
            ErrorBody::new(
                ErrorCode::ArtifactExportFailed,
                format!("the archive file cannot be created: {source}; name a new file in a directory you may write to"),
            )
        })?;
    let written = write_archive(&bundle.directory, &options, MAX_FILE, &file).and_then(|report| {
        let synced = file.sync_all();
        synced
            .map(|()| report)
            .map_err(|source| ArchiveError::Write { source })
    });
    written.map_err(|error| {
        // Remove the incomplete archive; report the original error.
        let _ = std::fs::remove_file(path);
        error.body().into()
    })
}

/// Returns a bundle as archive bytes; fails if they are more than `most`.
pub(crate) fn to_memory(
    settings: &Settings,
    bundle: &StoredBundle,
    most: i64,
) -> Result<Vec<u8>, Failure> {
    let most = u64::try_from(most)
        .map_err(|_| ErrorBody::new(ErrorCode::InputInvalid, "maxBytes must be 0 or more"))?;
    let mut bytes = Vec::new();
    write_archive(&bundle.directory, &options(settings)?, most, &mut bytes)?;
    Ok(bytes)
}

/// Returns `files` of a bundle as a `patch` or a `zip`; an empty list stands for all changed files.
/// Fails if the bundle does not verify or the result has more than `most` bytes.
pub(crate) fn download(
    settings: &Settings,
    bundle: &StoredBundle,
    files: Vec<String>,
    form: &str,
    most: i64,
) -> Result<Vec<u8>, Failure> {
    let refused = |message: &str| Failure::from(ErrorBody::new(ErrorCode::InputInvalid, message));
    let most = u64::try_from(most).map_err(|_| refused("maxBytes must be 0 or more"))?;
    let approved_files = match files.is_empty() {
        false => files,
        true => diff::by_file(settings, bundle)?
            .into_iter()
            .map(|(entry, _)| entry.path)
            .collect(),
    };
    let request = PreflightRequest {
        approved_files,
        trusted: trusted_keys(settings, Vec::new())?,
        signatures: SignatureRule::Any,
        ..PreflightRequest::default()
    };
    let ready = preflight(&bundle.directory, &request)?;
    match form {
        "patch" if ready.patch.len() as u64 > most => {
            Err(DownloadError::TooLarge { most }.body().into())
        }
        "patch" => Ok(ready.patch.into_bytes()),
        "zip" => Ok(ready.zip(&bundle.directory, most)?),
        _ => Err(refused("form must be patch or zip")),
    }
}

/// Returns the options for an export. It accepts a signature of any key, so the known keys make no
/// difference.
fn options(settings: &Settings) -> Result<VerifyOptions, Failure> {
    Ok(VerifyOptions {
        trusted: trusted_keys(settings, Vec::new())?,
    })
}

/// Options of an import, as the PHP caller gave them.
#[derive(Debug)]
pub(crate) struct ImportOptions {
    /// Id and digest that the bundle must have, and whether it may replace a stored bundle of the
    /// same run.
    pub(crate) rules: ImportRules,
    /// Directories at or below which the source must lie; `None` for the operator, who may import
    /// from any directory.
    allowed_roots: Option<Vec<String>>,
}

/// Validates the options of an import.
pub(crate) fn import_options(
    settings: &Settings,
    options: Map<String, Value>,
) -> Result<ImportOptions, Failure> {
    const KNOWN: &[&str] = &[
        "expected_artifact_id",
        "expected_content_digest",
        "replace",
        "allowed_roots",
        TRUSTED_KEYS,
    ];
    let mut fields = Fields::new(options, "", KNOWN, ErrorCode::InputInvalid)?;
    Ok(ImportOptions {
        rules: ImportRules {
            expected_artifact_id: fields.text("expected_artifact_id")?,
            expected_content_digest: fields.text("expected_content_digest")?,
            replace: if fields.flag("replace")? {
                Replace::Replace
            } else {
                Replace::Refuse
            },
            trusted: trusted_keys(settings, known_keys(&mut fields)?)?,
        },
        allowed_roots: if fields.has("allowed_roots") {
            Some(fields.texts("allowed_roots")?)
        } else {
            None
        },
    })
}

/// Reads a bundle from its directory, from its `manifest.json` in that directory, or from an
/// archive. The location check uses the opened file, so replacing the path later has no effect.
pub(crate) fn members(
    settings: &Settings,
    path: &str,
    options: &ImportOptions,
) -> Result<MemberSet, Failure> {
    if path.trim().is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::ArtifactImportSourceMissing,
            "the path of the source is empty; give a bundle directory, its manifest.json, or an archive",
        )
        .into());
    }
    let unreadable = |source: std::io::Error| {
        ErrorBody::new(
            ErrorCode::ArtifactImportSourceMissing,
            format!("the source cannot be opened: {source}"),
        )
    };
    if !is_absolute(path) {
        return Err(ErrorBody::new(
            ErrorCode::ArtifactImportSourceMissing,
            "the source must be an absolute path without `.` and `..` segments",
        )
        .into());
    }
    let path = path
        .strip_suffix("/manifest.json")
        .filter(|directory| !directory.is_empty())
        .unwrap_or(path);
    // The source may be a FIFO or a terminal: opening it must neither block nor acquire a
    // controlling terminal.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = open(path, flags, Mode::empty()).map_err(|e| unreadable(e.into()))?;
    let stat = fstat(&fd).map_err(|e| unreadable(e.into()))?;
    let place =
        std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).map_err(unreadable)?;
    check_location(settings, &place, options)?;
    let members = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => directory(&fd),
        FileType::RegularFile => MemberSet::from_archive(File::from(fd)),
        _ => Err(MembersError::Special {
            member: "the source".to_owned(),
        }),
    };
    Ok(members.map_err(|e| refused(&e))?)
}

fn directory(fd: &OwnedFd) -> Result<MemberSet, MembersError> {
    use std::os::fd::AsFd;
    let directory = Dir::reopen(fd.as_fd()).map_err(|e| MembersError::Unreadable {
        what: "the bundle".to_owned(),
        source: e.into(),
    })?;
    MemberSet::from_directory(&directory)
}

/// Reads a bundle from archive bytes.
pub(crate) fn members_of(bytes: &[u8]) -> Result<MemberSet, Failure> {
    Ok(MemberSet::from_archive(bytes).map_err(|e| refused(&e))?)
}

fn refused(error: &MembersError) -> ErrorBody {
    ErrorBody::new(
        error.code(),
        format!("the source cannot be imported: {error}"),
    )
}

/// Refuses a source in the state directory, which holds other sites' bundles, and a source outside
/// the allowed roots.
fn check_location(
    settings: &Settings,
    place: &Path,
    options: &ImportOptions,
) -> Result<(), ErrorBody> {
    let outside = |message: &str| ErrorBody::new(ErrorCode::ArtifactOutsideRoot, message);
    let real = |path: &str| std::fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
    if place.starts_with(real(&settings.state_dir)) {
        return Err(outside(
            "the source lies in the state directory; export the bundle and import the archive",
        ));
    }
    match &options.allowed_roots {
        None => Ok(()),
        Some(roots) if roots.iter().any(|root| place.starts_with(real(root))) => Ok(()),
        Some(_) => Err(outside(
            "the source lies outside the directories that may be read for this site; put it below one of wp_codebox.mount_roots, or send the archive itself",
        )),
    }
}

/// Returns the result of an import as the PHP API presents it.
pub(crate) fn imported(imported: &Imported, directory: String, verification: Value) -> Value {
    json!({
        "status": imported.status,
        "artifact_id": imported.artifact_id,
        "run_id": imported.run_id,
        "directory": directory,
        "manifest_sha256": imported.manifest_sha256,
        "verification": verification,
    })
}

/// Returns the changed files of a bundle, each with its part of the patch.
pub(crate) fn files(settings: &Settings, bundle: &StoredBundle) -> Result<Value, Failure> {
    let rows = diff::by_file(settings, bundle)?;
    let rows = rows.into_iter().map(|(entry, patch)| {
        let mut row = json!(entry);
        let mut shown = patch.as_slice();
        if shown.len() > MAX_PATCH {
            let cut = shown.get(..MAX_PATCH).unwrap_or_default();
            // Cut after a whole line, so that the remaining patch stays valid text.
            let end = cut.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            shown = cut.get(..end).unwrap_or_default();
            row["truncated"] = true.into();
        }
        match std::str::from_utf8(shown) {
            Ok(text) => row["patch"] = text.into(),
            Err(_) => {
                let text = base64::engine::general_purpose::STANDARD.encode(shown);
                row["patch_base64"] = text.into();
            }
        }
        row
    });
    Ok(rows.collect())
}
