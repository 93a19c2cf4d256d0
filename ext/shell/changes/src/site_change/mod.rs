//! Changes files of a site for the extension: applies approved files, checks the site, and rolls
//! back if a page fails that worked before; or commits approved files on a branch of a git repository.
//!
//! This is a process of its own because a broken site may not load PHP code any more: it does all of
//! its work even if the PHP process that requested it dies. The conversation is `contracts::site_change`.

mod caller;
mod health;
mod page;

use crate::applying::{self, Approved, SensitiveRule};
use crate::git_branch::{self, Commit};
use caller::Caller;
use health::Watch;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wp_codebox_apply::{AppliedChange, ApplyId, Claim, Journal, KeepRules, Trial, UndoReport};
use wp_codebox_artifacts::{Dir, PreflightRequest, Store, StoredBundle};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, HealthPlan, HealthStatus, PROTOCOL_VERSION, SiteAction, SiteApply,
    SiteChangeMessage, SiteChangeRequest, SiteChangeResult, SiteChangeStatus, SiteCommit,
    SiteConflict, SiteId, SiteRollBack,
};
use wp_codebox_runtime::{StateDir, now_rfc3339};

/// Reads a request from the frame socket on descriptor 3, carries it out and answers.
pub fn change_site() -> ExitCode {
    // A new session: signals for the caller's process group do not reach this process.
    let _ = rustix::process::setsid();
    let Ok(mut caller) = Caller::inherited() else {
        return ExitCode::from(125);
    };
    let ended = caller
        .request()
        .and_then(|request| changed(request, &mut caller));
    let (message, status) = match ended {
        Ok(result) => (SiteChangeMessage::Result { result }, 0),
        Err(error) => {
            let status = error.code.exit_status();
            (SiteChangeMessage::Error { error }, status)
        }
    };
    caller.send(&message);
    ExitCode::from(status)
}

/// Removes old changes from the journal, so that their number stays bounded even if `gc` never
/// runs. Ignores errors: the next change or `gc` tries again.
fn forget_old(journal: &Journal) {
    for expired in journal.expired(&KeepRules::default()).unwrap_or_default() {
        let _ = journal.remove(&expired.id);
    }
}

fn changed(request: SiteChangeRequest, caller: &mut Caller) -> Result<SiteChangeResult, ErrorBody> {
    if request.protocol != PROTOCOL_VERSION {
        let message = "the PHP extension and wp-codebox have different versions; install the same version of both";
        return Err(ErrorBody::new(ErrorCode::RunnerUnavailable, message));
    }
    let place = Place::open(&request)?;
    match request.action {
        SiteAction::Apply(apply) => place.apply(apply, request.health, caller),
        SiteAction::RollBack(undo) => place.roll_back(&undo, request.health, caller),
        SiteAction::Commit(commit) => place.commit(commit),
    }
}

/// Journal and state directory of the site, which no other process changes meanwhile.
struct Place {
    claim: Claim,
    state: PathBuf,
    site: SiteId,
    directory: PathBuf,
    php: PathBuf,
    journal: Journal,
}

impl Place {
    fn open(request: &SiteChangeRequest) -> Result<Self, ErrorBody> {
        let state = StateDir::open(Path::new(&request.state_dir))?;
        if matches!(request.action, SiteAction::Commit(_)) {
            // Root would leave files in the repository that its owner cannot change.
            state.become_owner()?;
        }
        let site = state.as_owner(|| state.site(&request.site));
        let site = site??;
        // The errors are not reported here: `Changes::recover` reports those that last.
        let (journal, _) = applying::journal(&site)?;
        let claim = journal.claim()?;
        let undone = journal.undo_trial(&claim, now_rfc3339());
        undone?;
        Ok(Self {
            claim,
            journal,
            state: state.path().to_owned(),
            site: request.site.clone(),
            directory: site,
            php: PathBuf::from(&request.php_binary),
        })
    }

    fn apply(
        &self,
        apply: SiteApply,
        plan: Option<HealthPlan>,
        caller: &mut Caller,
    ) -> Result<SiteChangeResult, ErrorBody> {
        let bundle = self.bundle(&apply.reference)?;
        let id = applying::new_id("apply")?;
        let approved = Approved {
            id: id.clone(),
            bundle: &bundle.directory,
            run_id: Some(bundle.row.run_id.clone()),
            request: PreflightRequest {
                approved_files: apply.approved_files,
                manifest_sha256: Some(apply.manifest_sha256),
                targets: apply
                    .targets
                    .into_iter()
                    .map(|(mount, path)| (mount, PathBuf::from(path)))
                    .collect(),
                trusted: applying::trusted_keys(&self.state, apply.trusted_keys)?,
                browser_origin: applying::browser_origin(apply.confirm_browser_origin),
                ..PreflightRequest::default()
            },
            patch_sha256: Some(apply.patch_sha256),
            sensitive: SensitiveRule::of(apply.confirm_sensitive),
        };
        let watch = plan.map(Watch::begin);
        let trial = watch
            .as_ref()
            .map(|_| self.journal.begin_trial(&self.claim, &id));
        let trial = trial.transpose()?;
        let end_trial = || trial.map_or(Ok(()), Trial::end).map_err(ErrorBody::from);
        let change = match applying::apply(&self.journal, approved, &self.php) {
            Ok(change) => change,
            Err(error) => {
                // Ignore an error of removing the record of the trial (a change that may be rolled
                // back): the next change finds the record, and that nothing was applied.
                let _ = end_trial();
                return Err(error);
            }
        };
        forget_old(&self.journal);
        let caller_answers = caller.written(&change.paths);
        let health = watch.map(|watch| watch.end(caller_answers, &change));
        if health.as_ref().map(|health| health.status) != Some(HealthStatus::Worse) {
            end_trial()?;
            return Ok(SiteChangeResult {
                status: SiteChangeStatus::Applied,
                change: change.id.to_string(),
                files: change.files,
                conflicts: Vec::new(),
                health,
            });
        }
        // The site got worse. The result reports that even if the undo fails, too.
        let undone = self
            .undo(&change, None)
            .and_then(|report| end_trial().map(|()| report));
        caller.written(&change.paths);
        let (restored, conflicts) = match undone {
            Ok(report) => (report.restored.clone(), conflicts(&report)),
            Err(error) => (
                Vec::new(),
                vec![SiteConflict {
                    path: String::new(),
                    reason: error.message,
                }],
            ),
        };
        Ok(SiteChangeResult {
            status: match conflicts.is_empty() {
                true => SiteChangeStatus::RolledBack,
                false => SiteChangeStatus::RollBackFailed,
            },
            change: change.id.to_string(),
            files: restored,
            conflicts,
            health,
        })
    }

    fn roll_back(
        &self,
        undo: &SiteRollBack,
        plan: Option<HealthPlan>,
        caller: &mut Caller,
    ) -> Result<SiteChangeResult, ErrorBody> {
        let id = ApplyId::new(&*undo.change)
            .map_err(|why| ErrorBody::new(ErrorCode::InputInvalid, format!("change: {why}")))?;
        let change = self.journal.applied(&id)?;
        let watch = plan.map(Watch::begin);
        let report = self.undo(&change, undo.files.as_deref())?;
        let caller_answers = caller.written(&change.paths);
        Ok(SiteChangeResult {
            status: match report.conflicts.is_empty() {
                true => SiteChangeStatus::Restored,
                false => SiteChangeStatus::RestoredInPart,
            },
            change: id.to_string(),
            conflicts: conflicts(&report),
            files: report.restored,
            health: watch.map(|watch| watch.end(caller_answers, &change)),
        })
    }

    fn commit(&self, request: SiteCommit) -> Result<SiteChangeResult, ErrorBody> {
        let bundle = self.bundle(&request.reference)?;
        let committed = git_branch::commit(&Commit {
            state: &self.state,
            site: &self.directory,
            bundle: &bundle.directory,
            run_id: &bundle.row.run_id,
            trusted: applying::trusted_keys(&self.state, request.trusted_keys.clone())?,
            request,
        })?;
        Ok(SiteChangeResult {
            status: SiteChangeStatus::Committed,
            change: committed.commit,
            files: committed.files,
            conflicts: Vec::new(),
            health: None,
        })
    }

    fn bundle(&self, reference: &str) -> Result<StoredBundle, ErrorBody> {
        let root = Dir::open(&self.state);
        let root = root.map_err(|e| ErrorBody::new(ErrorCode::StateDirInvalid, e.to_string()))?;
        let store = Store::open(&root, &self.site)?;
        store.resolve(reference).map_err(ErrorBody::from)
    }

    fn undo(
        &self,
        change: &AppliedChange,
        files: Option<&[String]>,
    ) -> Result<UndoReport, ErrorBody> {
        let id = applying::new_id("undo")?;
        let report = self.journal.undo(&change.id, files, id, now_rfc3339());
        report.map_err(ErrorBody::from)
    }
}

fn conflicts(report: &UndoReport) -> Vec<SiteConflict> {
    let conflicts = report.conflicts.iter().map(|conflict| SiteConflict {
        path: conflict.path.clone(),
        reason: conflict.reason.to_owned(),
    });
    conflicts.collect()
}
