//! Bundles from contents that a browser uploaded.
//!
//! Invariants: changed files, patch and digests are computed here, from a baseline of this host and
//! the uploaded contents; nothing else that a browser states is used. The changes are found by the
//! capture and written by the bundle writer, as those of a sandbox. Uploaded contents are regular
//! files, and links are never followed. The bundle is signed with the statement that its contents
//! come from a browser. An equal upload of the same caller gives the bundle that is stored already.

mod baseline;
mod error;
mod root;
mod trees;
mod upload;

use crate::attestation::{HostKey, SignatureStatus};
use crate::bundle::{
    Approvable, BundleError, BundleInputs, BundleMount, BundleSigner, RenameMode, write_bundle,
};
use crate::capture::{ExcludeRules, LeftOut, MountChanges, Node};
use crate::digest::sha256;
use crate::dirfd::Dir;
use crate::patch::quote_name;
use crate::store::{Store, StoreError};
use crate::verify::{Verification, VerifyOptions, verify_bundle};
use baseline::Baseline;
pub use baseline::BaselineSource;
pub use error::ComposeError;
pub use root::{ComposeRoot, ComposeScope};
use serde::Serialize;
use serde_json::{Map, Value, json};
pub use upload::{MAX_UPLOADED_BYTES, MAX_UPLOADED_FILES, UploadedFile};
use wp_codebox_contracts::{
    GitView, IsolationLevel, IsolationReport, MountAccess, MountView, Outcome, RunId,
    RuntimeEnvironment, RuntimeInfo, Sha256Hex, schema_id,
};
use wp_codebox_policy::Redactor;

/// `runtime.backend` of a bundle whose contents a browser uploaded.
const BACKEND: &str = "browser";

/// An upload of a browser, and what this host knows about it.
#[derive(Debug)]
pub struct ComposeRequest {
    /// Creation time of the bundle in RFC 3339, UTC, milliseconds.
    pub created_at: String,
    /// Text by which this host distinguishes callers and sessions. An equal upload with an equal
    /// text gives the stored bundle.
    pub identity: String,
    /// Directories of the session.
    pub roots: Vec<ComposeRoot>,
    /// Uploaded files.
    pub files: Vec<UploadedFile>,
    /// Deleted files, by path below `wp-content`.
    pub deleted: Vec<String>,
    /// `provenance` in `metadata.json`: facts of this host, and under keys of their own what the
    /// caller claims. The writer redacts it.
    pub provenance: Map<String, Value>,
}

/// Whether an upload gave a new bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ComposeStatus {
    /// The bundle was written.
    Created,
    /// The same caller uploaded the same contents before; the bundle is stored already.
    Existing,
}

/// The stored bundle of an upload.
#[derive(Debug, Clone)]
pub struct Composed {
    /// Whether the bundle was written now.
    pub status: ComposeStatus,
    /// Name of the bundle's directory.
    pub run_id: RunId,
    /// Result of verifying the stored bundle.
    pub verification: Verification,
}

/// Computes the changes of an upload and stores them as a bundle.
///
/// # Errors
/// [`ComposeError`] if a path is not allowed, the upload changes nothing, a limit is exceeded, a
/// changed file contains a secret, the baseline is not the expected one, or a file cannot be
/// written.
pub fn compose(
    store: &Store,
    key: &HostKey,
    request: ComposeRequest,
    redactor: &Redactor,
) -> Result<Composed, ComposeError> {
    let uploads = upload::assign(&request.roots, request.files, request.deleted)?;
    let mut mounts = Vec::new();
    for (index, (root, upload)) in request.roots.into_iter().zip(uploads).enumerate() {
        mounts.push(mount(store.directory(), index, root, upload)?);
    }
    let changed = mounts.iter().filter_map(|mount| mount.changes.as_ref());
    let count: usize = changed.map(|changes| changes.entries.len()).sum();
    if count == 0 {
        return Err(ComposeError::Unchanged);
    }
    let run_id = RunId::from_digest(&identity(&request.identity, &mounts));
    if let Some(stored) = stored(store, key, &run_id)? {
        return Ok(stored);
    }
    let inputs = inputs(
        &run_id,
        request.created_at,
        request.provenance,
        mounts,
        count,
    );
    let signer = BundleSigner::HostForBrowser(key);
    let status = match write_bundle(store.directory(), &run_id, &inputs, redactor, signer) {
        Ok(_) => ComposeStatus::Created,
        // Another process has written the same bundle since the look above.
        Err(BundleError::Exists) => ComposeStatus::Existing,
        Err(error) => return Err(error.into()),
    };
    let composed = stored(store, key, &run_id)?;
    let composed = composed.ok_or(ComposeError::Damaged { run_id })?;
    Ok(Composed { status, ..composed })
}

fn mount(
    work: &Dir,
    index: usize,
    root: ComposeRoot,
    upload: upload::RootUpload,
) -> Result<BundleMount, ComposeError> {
    let mut baseline = Baseline::new(&root.name);
    for source in root.baseline {
        baseline.add(source)?;
    }
    trees::keep_empty_directories(&mut baseline.entries);
    let changes = trees::changes(work, &mut baseline, upload)?;
    Ok(BundleMount {
        index,
        target: root.target,
        access: MountAccess::Readwrite,
        view: MountView::Copy,
        git: GitView::None,
        exclude: ExcludeRules::default(),
        left_out: LeftOut::default(),
        metadata: root.metadata,
        changes: Some(changes),
    })
}

/// Returns the digest of the caller and of the contents before and after the change.
fn identity(caller: &str, mounts: &[BundleMount]) -> Sha256Hex {
    let side = |node: Option<&Node>| match node {
        None => Value::Null,
        Some(node) => json!([node.git_mode(), node.blob().map(sha256)]),
    };
    let rows = |changes: &MountChanges| -> Value {
        let entries = changes.entries.iter();
        entries
            .map(|entry| {
                let (before, after) = (entry.change.before(), entry.change.after());
                json!([quote_name(&entry.path), side(before), side(after)])
            })
            .collect()
    };
    let mounts: Vec<Value> = mounts
        .iter()
        .map(|mount| json!([mount.target, mount.changes.as_ref().map(rows)]))
        .collect();
    let text = json!(["wp-codebox/browser-bundle/v1", caller, mounts]).to_string();
    sha256(text.as_bytes())
}

/// Returns the stored bundle of an upload; fails if it does not verify as one of this host with
/// contents from a browser.
fn stored(store: &Store, key: &HostKey, run_id: &RunId) -> Result<Option<Composed>, ComposeError> {
    let bundle = match store.resolve(run_id.as_str()) {
        Ok(bundle) => bundle,
        Err(StoreError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let options = VerifyOptions {
        trusted: key.trusted(Vec::new()),
    };
    let verification = verify_bundle(&bundle.directory, &options);
    let status = verification.signature.status;
    if !verification.valid || status != SignatureStatus::BrowserOrigin {
        return Err(ComposeError::Damaged {
            run_id: run_id.clone(),
        });
    }
    Ok(Some(Composed {
        status: ComposeStatus::Existing,
        run_id: run_id.clone(),
        verification,
    }))
}

fn inputs(
    run_id: &RunId,
    created_at: String,
    provenance: Map<String, Value>,
    mounts: Vec<BundleMount>,
    count: usize,
) -> BundleInputs {
    BundleInputs {
        runtime: RuntimeInfo {
            id: run_id.to_string(),
            backend: BACKEND.to_owned(),
            environment: RuntimeEnvironment {
                kind: "wordpress".to_owned(),
                version: None,
                php_version: None,
            },
            created_at: created_at.clone(),
            status: "created".to_owned(),
        },
        created_at,
        outcome: Outcome::Succeeded,
        summary: format!(
            "A browser uploaded {count} changed files. This host did not see their code run."
        ),
        summary_detail: None,
        approvable: Approvable::Yes,
        provenance,
        task: None,
        policy: Value::Null,
        spec: Map::new(),
        mounts,
        renames: RenameMode::Separate,
        events: Vec::new(),
        commands: Vec::new(),
        observations: Vec::new(),
        checks: Vec::new(),
        completion_outcome: None,
        agent_result: None,
        transcript: None,
        // No isolation probe of this host ran in the browser.
        isolation: IsolationReport {
            schema: schema_id::ISOLATION_REPORT.to_owned(),
            level: IsolationLevel::None,
            kernel: String::new(),
            landlock_abi: 0,
            axes: Vec::new(),
        },
        preview: None,
        evidence: Vec::new(),
        files: Vec::new(),
        episode: None,
        follow_up: None,
    }
}
