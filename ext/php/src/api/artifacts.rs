//! `WPCodebox\Native\Artifacts`: digests, verification, review data, apply preflight.

#![allow(non_snake_case)] // Parameter names are those of named arguments in PHP.

use crate::arguments::{Answer, Array, Bytes, Text};
use crate::audit;
use crate::clock::now;
use crate::convert;
use crate::diff;
use crate::fields::Fields;
use crate::guard::{Failure, guard};
use crate::ini::{Settings, is_absolute};
use crate::state::{State, TRUSTED_KEYS, known_keys, trusted_keys, verify_options};
use crate::transfer::{self, ImportOptions};
use crate::upload;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::types::Zval;
use ext_php_rs::{php_class, php_impl};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{
    self as bundles, AuditLog, BrowserOriginRule, Dir, Json, MemberSet, OverLimit,
    PreflightRequest, SignatureReport, SignatureRule, Store, StoredBundle, Verification,
};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, Sha256Hex, SiteId};
use wp_codebox_policy::Redactor;

/// The PHP class for artifact bundles: the recorded changes of a run, with manifest and signature.
#[php_class]
#[php(name = "WPCodebox\\Native\\Artifacts", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct Artifacts;

#[php_impl]
impl Artifacts {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self
    }

    /// Returns a value as canonical JSON, the byte form over which all digests of bundles are
    /// computed.
    pub(crate) fn canonical_json(value: &Zval) -> PhpResult<String> {
        guard(|| {
            let value = Json::from(&convert::from_zval(value, "value")?);
            bundles::canonical_json(&value, OverLimit::Refuse)
                .map_err(|e| ErrorBody::new(e.code(), e.to_string()).into())
        })
    }

    /// Returns the content digest of a bundle, computed over the named files of its directory.
    #[php(defaults(inputs = Array::default_list(&["files/changed-files.json", "files/patch.diff"])))]
    pub(crate) fn content_digest(directory: Text<'_>, inputs: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let directory = open(directory.utf8("directory")?)?;
            let inputs = inputs.texts("inputs")?;
            let digest = bundles::directory_content_digest(&directory, &inputs).map_err(|errno| {
                ErrorBody::new(
                    ErrorCode::ArtifactVerificationFailed,
                    format!("a file named in \"inputs\" is missing, is not a regular file of the bundle or is too large ({errno}); verify the bundle"),
                )
            })?;
            Ok(Answer(json!(digest)))
        })
    }

    /// Verifies the bundle in a directory: manifest, file hashes, digests and signature.
    #[php(defaults(options = Array::default_list(&[])))]
    pub(crate) fn verify(directory: Text<'_>, options: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let options = options.object("options")?;
            let options = verify_options(&Settings::checked()?, options)?;
            let path = directory.utf8("directory")?;
            let verification = bundles::verify_bundle(&open(path)?, &options);
            let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
            let path = path.to_string_lossy();
            Ok(Answer(verification_answer(&verification, &path)))
        })
    }

    /// Lists the bundles of a site, newest first.
    pub(crate) fn list(site: Text<'_>) -> PhpResult<Answer> {
        guard(|| {
            let site = Site::open(&site)?;
            let rows = site.store.list()?;
            let rows = rows.iter().map(|row| {
                let mut answer = json!(row);
                answer["directory"] = site.directory(row.run_id.as_str()).into();
                answer
            });
            Ok(Answer(rows.collect()))
        })
    }

    /// Returns one bundle of a site with its JSON documents. `reference` is its bundle id, its run
    /// id, or a unique prefix of one of them.
    pub(crate) fn get(site: Text<'_>, reference: Text<'_>) -> PhpResult<Answer> {
        guard(|| {
            let site = Site::open(&site)?;
            let bundle = site.resolve(&reference)?;
            Ok(Answer(json!({
                "artifact_id": bundle.row.artifact_id,
                "run_id": bundle.row.run_id,
                "directory": site.directory(bundle.row.run_id.as_str()),
                "created_at": bundle.row.created_at,
                "manifest": bundle.document("manifest.json"),
                "metadata": bundle.document("metadata.json"),
                "changed_files": bundle.document("files/changed-files.json"),
                "review": bundle.document("files/review.json"),
                "test_results": bundle.document("files/test-results.json"),
            })))
        })
    }

    /// Returns the patch of a bundle, whole or for the given paths. Fails unless the bundle
    /// verifies.
    #[php(defaults(paths = Array::default_list(&[])))]
    pub(crate) fn diff(site: Text<'_>, reference: Text<'_>, paths: Array<'_>) -> PhpResult<Bytes> {
        guard(|| {
            let site = Site::open(&site)?;
            let bundle = site.resolve(&reference)?;
            let paths = paths.texts("paths")?;
            Ok(Bytes(diff::patch(&site.settings, &bundle, &paths)?))
        })
    }

    /// Verifies a bundle and returns what is needed to apply its approved files to the site.
    pub(crate) fn preflight(
        site: Text<'_>,
        reference: Text<'_>,
        request: Array<'_>,
    ) -> PhpResult<Answer> {
        guard(|| {
            let site = Site::open(&site)?;
            let request = preflight_request(&site.settings, request.object("request")?)?;
            let bundle = site.resolve(&reference)?;
            let checked = bundles::preflight(&bundle.directory, &request)?;
            let mut answer = json!(checked);
            answer["run_id"] = json!(bundle.row.run_id);
            answer["signature"] = signature_answer(&checked.signature);
            let directory = site.directory(bundle.row.run_id.as_str());
            answer["verification"] = verification_answer(&checked.verification, &directory);
            Ok(Answer(answer))
        })
    }

    /// Deletes a bundle, even one that does not verify.
    pub(crate) fn discard(site: Text<'_>, reference: Text<'_>) -> PhpResult<Answer> {
        guard(|| {
            let site = Site::open(&site)?;
            let reference = reference.utf8("reference")?;
            let discarded = site.store.discard(reference)?;
            Ok(Answer(json!(discarded)))
        })
    }

    /// Appends one record to the audit log of a site. Each of `anchors` is the signed length and
    /// last hash that the log had at an earlier call; the log is checked against them.
    #[php(defaults(anchors = Array::default_list(&[])))]
    pub(crate) fn audit(
        site: Text<'_>,
        record: Array<'_>,
        anchors: Array<'_>,
    ) -> PhpResult<Answer> {
        guard(|| {
            let site = site.site()?;
            let record = record.object("record")?;
            let anchors = anchors.object("anchors")?;
            let now = now()?;
            let state = State::open(&Settings::checked()?)?;
            let _owner = state.as_owner();
            let appended = AuditLog::open(&state.directory, &site)
                .and_then(|log| log.append(&record, &now, &Redactor::new(&[]), &anchors))?;
            Ok(Answer(
                json!({"record": appended.entry, "anchor": appended.anchor}),
            ))
        })
    }

    /// Returns records of a site's audit log, and whether the hash chain of the whole log is intact
    /// and agrees with `anchors`. Each anchor is the signed length and last hash that the log had
    /// when an earlier call of `audit` returned the anchor.
    #[php(defaults(after = 0, limit = 100, anchors = Array::default_list(&[])))]
    pub(crate) fn audit_records(
        site: Text<'_>,
        after: i64,
        limit: i64,
        anchors: Array<'_>,
    ) -> PhpResult<Answer> {
        guard(|| {
            let site = site.site()?;
            let anchors = anchors.object("anchors")?;
            let window = audit::window(after, limit)?;
            let state = State::open(&Settings::checked()?)?;
            let _owner = state.as_owner();
            let reading = AuditLog::open(&state.directory, &site)
                .and_then(|log| audit::page(&log, window, &anchors))?;
            let mut chain = json!({"valid": reading.valid, "head": reading.head});
            if let Some(line) = reading.broken_at {
                chain["broken_at"] = line.into();
            }
            if let Some(problem) = reading.problem {
                chain["problem"] = problem.into();
            }
            Ok(Answer(json!({
                "records": reading.entries,
                "total": reading.total,
                "chain": chain,
            })))
        })
    }

    /// Returns the audit records about the given runs, as far as they are in the last part of the
    /// log. Does not check the hash chain.
    pub(crate) fn audit_of(site: Text<'_>, runs: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let site = site.site()?;
            let runs = runs.texts("runs")?.into_iter().collect();
            let most = usize::try_from(audit::MAX_AUDIT_ENTRIES).unwrap_or(usize::MAX);
            let state = State::open(&Settings::checked()?)?;
            let _owner = state.as_owner();
            let excerpt =
                AuditLog::open(&state.directory, &site).and_then(|log| log.about(&runs, most))?;
            Ok(Answer(json!(excerpt)))
        })
    }

    /// Returns the newest audit records of the given operations, without a check of the hash chain.
    #[php(defaults(before = 0, limit = 50))]
    pub(crate) fn audit_of_operations(
        site: Text<'_>,
        operations: Array<'_>,
        before: i64,
        limit: i64,
    ) -> PhpResult<Answer> {
        guard(|| {
            let site = site.site()?;
            let (before, most) = audit::newest_before(before, limit)?;
            let operations = audit::operations(operations.object("operations")?)?;
            let state = State::open(&Settings::checked()?)?;
            let _owner = state.as_owner();
            let excerpt = AuditLog::open(&state.directory, &site)
                .and_then(|log| log.of_operations(&operations, before, most))?;
            Ok(Answer(json!(excerpt)))
        })
    }

    /// Writes a bundle as an archive to a new file.
    pub(crate) fn export(site: Text<'_>, reference: Text<'_>, path: Text<'_>) -> PhpResult<Answer> {
        guard(|| {
            let site = Site::open(&site)?;
            let bundle = site.resolve(&reference)?;
            let path = path.utf8("path")?;
            let report = transfer::to_file(&site.settings, &bundle, path)?;
            Ok(Answer(json!({
                "path": path,
                "bytes": report.bytes,
                "sha256": report.sha256,
                "artifact_id": bundle.row.artifact_id,
                "run_id": bundle.row.run_id,
            })))
        })
    }

    /// Returns a bundle as archive bytes; fails if they are more than `maxBytes`.
    pub(crate) fn archive(site: Text<'_>, reference: Text<'_>, maxBytes: i64) -> PhpResult<Bytes> {
        guard(|| {
            let site = Site::open(&site)?;
            let bundle = site.resolve(&reference)?;
            Ok(Bytes(transfer::to_memory(
                &site.settings,
                &bundle,
                maxBytes,
            )?))
        })
    }

    /// Returns the approved files of a bundle: their part of the patch, or their new contents as a
    /// zip archive.
    pub(crate) fn download(
        site: Text<'_>,
        reference: Text<'_>,
        files: Array<'_>,
        form: Text<'_>,
        maxBytes: i64,
    ) -> PhpResult<Bytes> {
        guard(|| {
            let site = Site::open(&site)?;
            let bundle = site.resolve(&reference)?;
            let files = files.texts("files")?;
            let form = form.utf8("form")?;
            let bytes = transfer::download(&site.settings, &bundle, files, form, maxBytes)?;
            Ok(Bytes(bytes))
        })
    }

    /// Imports a bundle from a directory or an archive file.
    #[php(defaults(options = Array::default_list(&[])))]
    pub(crate) fn import(site: Text<'_>, path: Text<'_>, options: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let site = Site::open(&site)?;
            let options = transfer::import_options(&site.settings, options.object("options")?)?;
            let members = transfer::members(&site.settings, path.utf8("path")?, &options)?;
            site.import(&members, &options)
        })
    }

    /// Imports a bundle from archive bytes.
    #[php(defaults(options = Array::default_list(&[])))]
    pub(crate) fn import_archive(
        site: Text<'_>,
        bytes: Text<'_>,
        options: Array<'_>,
    ) -> PhpResult<Answer> {
        guard(|| {
            let site = Site::open(&site)?;
            let options = transfer::import_options(&site.settings, options.object("options")?)?;
            let members = transfer::members_of(bytes.bytes())?;
            site.import(&members, &options)
        })
    }

    /// Stores contents that a browser uploaded as a bundle. The changes are computed from a baseline
    /// of this host.
    pub(crate) fn compose(site: Text<'_>, request: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let site = Site::open(&site)?;
            let request = upload::request(request.upload_object("request")?)?;
            let composed = upload::compose(&site.settings, &site.store, request)?;
            let directory = site.directory(composed.run_id.as_str());
            let found = &composed.verification;
            Ok(Answer(json!({
                "status": composed.status,
                "artifact_id": found.manifest.as_ref().map(|m| &m["id"]),
                "run_id": composed.run_id,
                "manifest_sha256": found.manifest_sha256,
                "verification": verification_answer(found, &directory),
                "directory": directory,
            })))
        })
    }

    /// Returns the changed files of a bundle, each with its part of the patch.
    pub(crate) fn files(site: Text<'_>, reference: Text<'_>) -> PhpResult<Answer> {
        guard(|| {
            let site = Site::open(&site)?;
            let bundle = site.resolve(&reference)?;
            Ok(Answer(transfer::files(&site.settings, &bundle)?))
        })
    }
}

/// Settings, state directory and artifact store that the methods need for one site.
struct Site {
    settings: Settings,
    store: Store,
    id: SiteId,
}

impl Site {
    fn open(site: &Text<'_>) -> Result<Self, Failure> {
        let id = site.site()?;
        let settings = Settings::checked()?;
        let state = State::open(&settings)?;
        let store = {
            let _owner = state.as_owner();
            Store::open(&state.directory, &id)?
        };
        Ok(Self {
            settings,
            store,
            id,
        })
    }

    fn resolve(&self, reference: &Text<'_>) -> Result<StoredBundle, Failure> {
        let reference = reference.utf8("reference")?;
        Ok(self.store.resolve(reference)?)
    }

    /// Stores an imported bundle with the rights of the owner of the state directory. `members` was
    /// read before, with the rights of the caller.
    fn import(&self, members: &MemberSet, options: &ImportOptions) -> Result<Answer, Failure> {
        let imported = {
            let state = State::open(&self.settings)?;
            let _owner = state.as_owner();
            bundles::import(&self.store, members, &options.rules)?
        };
        let directory = self.directory(imported.run_id.as_str());
        let verification = verification_answer(&imported.verification, &directory);
        Ok(Answer(transfer::imported(
            &imported,
            directory,
            verification,
        )))
    }

    fn directory(&self, run_id: &str) -> String {
        format!(
            "{}/sites/{}/artifacts/{run_id}",
            self.settings.state_dir.trim_end_matches('/'),
            self.id
        )
    }
}

fn open(directory: &str) -> Result<Dir, ErrorBody> {
    Dir::open(Path::new(directory)).map_err(|errno| {
        ErrorBody::new(
            ErrorCode::ArtifactNotFound,
            format!(
                "the bundle directory cannot be opened ({errno}); give a directory, not a link"
            ),
        )
    })
}

fn preflight_request(
    settings: &Settings,
    request: Map<String, Value>,
) -> Result<PreflightRequest, Failure> {
    const KNOWN: &[&str] = &[
        "approved_files",
        "manifest_sha256",
        "targets",
        "confirm_browser_origin",
        TRUSTED_KEYS,
    ];
    let mut fields = Fields::new(request, "", KNOWN, ErrorCode::InputInvalid)?;
    let approved_files = fields.texts("approved_files")?;
    let manifest_sha256 = match fields.text("manifest_sha256")? {
        None => None,
        Some(text) => Some(
            Sha256Hex::new(text)
                .map_err(|_| fields.refuse("manifest_sha256", "64 lowercase hex digits"))?,
        ),
    };
    let mut targets = BTreeMap::new();
    for (target, directory) in fields.object("targets")?.unwrap_or_default() {
        match directory {
            Value::String(path) if is_absolute(&path) => {
                targets.insert(target, PathBuf::from(path));
            }
            _ => {
                let name = format!("targets.{target}");
                return Err(fields.refuse(&name, "an absolute host directory").into());
            }
        }
    }
    Ok(PreflightRequest {
        approved_files,
        manifest_sha256,
        targets,
        trusted: trusted_keys(settings, known_keys(&mut fields)?)?,
        signatures: SignatureRule::Trusted,
        browser_origin: match fields.flag("confirm_browser_origin")? {
            true => BrowserOriginRule::Confirmed,
            false => BrowserOriginRule::Refuse,
        },
    })
}

/// Converts a signature report to the field names of the PHP API.
fn signature_answer(signature: &SignatureReport) -> Value {
    let mut answer = json!({ "status": signature.status });
    let stated = [
        ("key_id", json!(signature.key_id)),
        ("coverage", json!(signature.coverage)),
        ("origin", json!(signature.origin)),
    ];
    for (name, value) in stated.into_iter().filter(|(_, value)| !value.is_null()) {
        answer[name] = value;
    }
    answer
}

fn verification_answer(verification: &Verification, directory: &str) -> Value {
    let mut answer = json!(verification);
    answer["bundleDirectory"] = json!(directory);
    if let Some(map) = answer.as_object_mut() {
        map.shift_remove("manifestSha256");
        map.insert(
            "signature".to_owned(),
            signature_answer(&verification.signature),
        );
        if let Some(hash) = &verification.manifest_sha256 {
            map.insert("manifest_sha256".to_owned(), json!(hash));
        }
    }
    answer
}
