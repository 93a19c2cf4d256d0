//! Applies approved files of a bundle: runs the preflight, then the apply engine with a syntax
//! check by the configured PHP. Trusts signatures of this host's key and of keys that are named.

use crate::syntax;
use serde_json::json;
use std::path::Path;
use wp_codebox_apply::{
    AppliedChange, ApplyId, ApplyRequest, BundleReference, Journal, TargetChanges,
};
use wp_codebox_artifacts::{
    BrowserOriginRule, Dir, HostKey, PathRisk, PreflightRequest, TrustedKeys, preflight,
};
use wp_codebox_contracts::terminal_text::plain_line;
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, RunId, Sha256Hex};
use wp_codebox_control::new_run_id;
use wp_codebox_runtime::now_rfc3339;

/// Approved files of a bundle, and the directories to change.
pub(crate) struct Approved<'a> {
    /// Id for the transaction, from [`new_id`].
    pub id: ApplyId,
    /// Directory of the bundle.
    pub bundle: &'a Dir,
    /// Run that wrote the bundle.
    pub run_id: Option<RunId>,
    /// Approved files, their target directories, and the required id and signature of the bundle.
    pub request: PreflightRequest,
    /// SHA-256 that the approved part of the patch must have; `None` accepts any.
    pub patch_sha256: Option<Sha256Hex>,
    /// What happens to files that programs run or obey by themselves.
    pub sensitive: SensitiveRule,
}

/// Whether an apply accepts files that programs run or obey by themselves, such as must-use plugins
/// and git repositories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SensitiveRule {
    /// The whole change is refused.
    Refuse,
    /// The approver confirmed these files.
    Confirmed,
}

impl SensitiveRule {
    pub(crate) const fn of(is_confirmed: bool) -> Self {
        if is_confirmed {
            Self::Confirmed
        } else {
            Self::Refuse
        }
    }

    /// Fails if the change has files to confirm that nobody confirmed.
    fn check(self, risks: &[PathRisk]) -> Result<(), ErrorBody> {
        let unconfirmed: Vec<&PathRisk> = risks.iter().filter(|risk| risk.confirm).collect();
        let first = match (self, unconfirmed.first()) {
            (Self::Refuse, Some(first)) => first,
            (Self::Confirmed, _) | (_, None) => return Ok(()),
        };
        let message = format!(
            "{} needs a confirmation of its own, so nothing was applied: {}",
            plain_line(&first.path),
            first.sentence
        );
        Err(ErrorBody::new(ErrorCode::ApplyConfirmationMissing, message)
            .hint("read these files; then apply with --confirm-sensitive, or choose the other files with --file")
            .with("risks", json!(unconfirmed)))
    }
}

/// Opens this user's journal of applied changes in the directory of a site. Interrupted transactions
/// are finished or reversed first; the bodies are the errors of those that could not be.
pub(crate) fn journal(site: &Path) -> Result<(Journal, Vec<ErrorBody>), ErrorBody> {
    let journal = Journal::open(site)?;
    let recovered = journal.recover()?;
    let errors = recovered.into_iter().filter_map(|one| one.error);
    Ok((journal, errors.map(|error| error.body()).collect()))
}

/// Returns the keys of this host and the `known` keys of other hosts as the trusted ones.
pub(crate) fn trusted_keys(state: &Path, known: Vec<Sha256Hex>) -> Result<TrustedKeys, ErrorBody> {
    let state = Dir::open(state);
    let state = state.map_err(|e| ErrorBody::new(ErrorCode::StateDirInvalid, e.to_string()))?;
    let key = HostKey::load(&state)?;
    Ok(key.trusted(known))
}

/// Returns the rule for bundles that were made in a browser: refused unless the approver confirmed
/// that this host did not see the code run.
pub const fn browser_origin(is_confirmed: bool) -> BrowserOriginRule {
    match is_confirmed {
        true => BrowserOriginRule::Confirmed,
        false => BrowserOriginRule::Refuse,
    }
}

/// Applies the approved files of a bundle to their targets.
pub(crate) fn apply(
    journal: &Journal,
    approved: Approved<'_>,
    php: &Path,
) -> Result<AppliedChange, ErrorBody> {
    let request = &approved.request;
    let ready = preflight(approved.bundle, request)?;
    if approved
        .patch_sha256
        .is_some_and(|patch| patch != ready.patch_sha256)
    {
        let message = "the approved patch differs from the patch of the bundle; check the bundle again and approve what the new check shows";
        return Err(ErrorBody::new(ErrorCode::ArtifactChanged, message));
    }
    approved.sensitive.check(&ready.risks)?;
    let mut targets = Vec::new();
    for patch in &ready.mount_patches {
        let mount = patch.mount_target.to_string();
        let Some(path) = request.targets.get(&mount) else {
            return Err(elsewhere(&mount));
        };
        targets.push(TargetChanges {
            changes: ready.changes(patch, path)?,
            path: path.clone(),
            mount,
        });
    }
    syntax::check(php, &targets, ready.php_syntax.as_ref())?;
    let change = journal.apply(ApplyRequest {
        id: approved.id,
        now: now_rfc3339(),
        bundle: BundleReference {
            artifact_id: ready.artifact_id.clone(),
            manifest_sha256: ready.manifest_sha256.clone(),
            run_id: approved.run_id,
            confirmed_origin: ready.signature.origin,
        },
        targets,
    });
    change.map_err(ErrorBody::from)
}

/// Returns a new id of a transaction; `kind` is `apply` or `undo`.
pub(crate) fn new_id(kind: &str) -> Result<ApplyId, ErrorBody> {
    let run = new_run_id()?;
    let digits = run.as_str().trim_start_matches("run_");
    ApplyId::new(format!("{kind}_{digits}")).map_err(|why| ErrorBody::new(ErrorCode::Internal, why))
}

fn elsewhere(mount: &str) -> ErrorBody {
    let message =
        format!("it is not known which directory of this host the run mounted at {mount}");
    ErrorBody::new(ErrorCode::ApplyTargetMismatch, message).hint("name the directory with --to")
}
