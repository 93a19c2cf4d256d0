//! Makes bundles from files that a browser uploaded.
//!
//! The PHP process opens the baseline, the code of the site that the browser session started from, with
//! its own rights. The bundle is written as the owner of the state directory.

use crate::clock::now;
use crate::fields::Fields;
use crate::guard::Failure;
use crate::ini::{Settings, is_absolute};
use crate::state::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use serde_json::{Map, Value};
use std::fs::File;
use wp_codebox_artifacts::{
    self as bundles, BaselineSource, ComposeRequest, ComposeRoot, ComposeScope, Composed, Dir,
    HostKey, Store, UploadedFile,
};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPath, Sha256Hex};
use wp_codebox_policy::Redactor;

const CODE: ErrorCode = ErrorCode::InputInvalid;

/// Reads the argument `request` of `Artifacts::compose()`.
pub(crate) fn request(request: Map<String, Value>) -> Result<ComposeRequest, Failure> {
    const KNOWN: &[&str] = &["identity", "roots", "files", "deleted", "provenance"];
    let mut fields = Fields::new(request, "", KNOWN, CODE)?;
    let identity = fields.text("identity")?;
    let identity = identity.ok_or_else(|| fields.refuse("identity", "a string"))?;
    let rows = fields.list("roots")?.unwrap_or_default();
    let roots = rows.into_iter().enumerate();
    let roots: Result<_, Failure> = roots.map(|(index, row)| root(index, row)).collect();
    let rows = fields.list("files")?.unwrap_or_default();
    let files = rows.into_iter().enumerate();
    let files: Result<_, Failure> = files.map(|(index, row)| file(index, row)).collect();
    Ok(ComposeRequest {
        created_at: now()?,
        identity,
        roots: roots?,
        files: files?,
        deleted: fields.texts("deleted")?,
        provenance: fields.object("provenance")?.unwrap_or_default(),
    })
}

/// Writes the bundle as the owner of the state directory, signed with the key of this host.
pub(crate) fn compose(
    settings: &Settings,
    store: &Store,
    request: ComposeRequest,
) -> Result<Composed, Failure> {
    let state = State::open(settings)?;
    let _owner = state.as_owner();
    let key = HostKey::load_or_create(&state.directory)?;
    let composed = bundles::compose(store, &key, request, &Redactor::new(&[]));
    Ok(composed?)
}

fn row(place: &str, row: Value, known: &[&str]) -> Result<Fields, ErrorBody> {
    match row {
        Value::Object(map) => Fields::new(map, place, known, CODE),
        _ => Err(ErrorBody::new(CODE, format!("{place} must be an object"))),
    }
}

fn root(index: usize, value: Value) -> Result<ComposeRoot, Failure> {
    const KNOWN: &[&str] = &["name", "target", "files", "baseline", "metadata"];
    let place = format!("roots[{index}]");
    let mut fields = row(&place, value, KNOWN)?;
    let target = fields.text("target")?.unwrap_or_default();
    let target = GuestPath::new(target).map_err(|e| fields.refuse("target", &e.to_string()))?;
    let rows = fields.list("baseline")?.unwrap_or_default();
    let rows = rows.into_iter().enumerate();
    let baseline: Result<Vec<BaselineSource>, Failure> = rows
        .map(|(at, row)| source(&format!("{place}.baseline[{at}]"), row))
        .collect();
    // Without `files` every path of the directory may change; an empty list allows none.
    let scope = match fields.has("files") {
        true => ComposeScope::Files(fields.texts("files")?.into_iter().collect()),
        false => ComposeScope::Everything,
    };
    Ok(ComposeRoot {
        name: fields.text("name")?.unwrap_or_default(),
        scope,
        target,
        baseline: baseline?,
        metadata: fields.object("metadata")?,
    })
}

/// Opens a zip archive (`path`, `sha256`) or a directory (`directory`) of this host.
fn source(place: &str, value: Value) -> Result<BaselineSource, Failure> {
    let mut fields = row(place, value, &["path", "sha256", "directory"])?;
    let missing = |source: std::io::Error| {
        ErrorBody::new(
            ErrorCode::BrowserArtifactBaselineInvalid,
            format!(
                "the site's code that the session started from is missing on this host: {source}; start a new session"
            ),
        )
    };
    if let Some(directory) = fields.text("directory")? {
        let opened = Dir::open(directory.as_ref());
        return Ok(BaselineSource::Directory(
            opened.map_err(|e| missing(e.into()))?,
        ));
    }
    let path = fields.text("path")?.unwrap_or_default();
    if !is_absolute(&path) {
        return Err(fields.refuse("path", "an absolute path").into());
    }
    let sha256 = fields.text("sha256")?.unwrap_or_default();
    let sha256 =
        Sha256Hex::new(sha256).map_err(|_| fields.refuse("sha256", "64 lowercase hex digits"))?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = open(&path, flags, Mode::empty()).map_err(|e| missing(e.into()))?;
    let stat = fstat(&fd).map_err(|e| missing(e.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(fields.refuse("path", "the path of a regular file").into());
    }
    Ok(BaselineSource::Archive {
        file: File::from(fd),
        sha256,
    })
}

fn file(index: usize, value: Value) -> Result<UploadedFile, Failure> {
    let place = format!("files[{index}]");
    let mut fields = row(&place, value, &["path", "content", "content_base64"])?;
    let path = fields.text("path")?.unwrap_or_default();
    let bytes = match (fields.text("content")?, fields.text("content_base64")?) {
        (Some(text), None) => text.into_bytes(),
        (None, Some(text)) => BASE64.decode(text).map_err(|_| {
            let message = format!("{place}.content_base64 is not base64; encode the bytes of the file without line breaks");
            ErrorBody::new(ErrorCode::BrowserArtifactBase64Invalid, message)
        })?,
        (None, None) | (Some(_), Some(_)) => {
            let message = format!("{place} must have exactly one of \"content\" and \"content_base64\"");
            return Err(ErrorBody::new(ErrorCode::BrowserArtifactFileInvalid, message).into());
        }
    };
    Ok(UploadedFile { path, bytes })
}
