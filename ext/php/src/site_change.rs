//! Changes files of the site through a process of the supervisor, and reads the journal of these
//! changes. That process continues when PHP ends.

use crate::arguments;
use crate::clock::now;
use crate::fields::Fields;
use crate::guard::Failure;
use crate::ini::Settings;
use crate::interrupt::{TICK, tick};
use crate::runner::{Deadline, spawned};
use crate::state::State;
use ext_php_rs::types::ZendCallable;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use wp_codebox_apply::{ApplyError, Journal, Listed};
use wp_codebox_contracts::{
    CodedError, ErrorBody, ErrorCode, HealthPlan, PROTOCOL_VERSION, SiteAction, SiteApply,
    SiteChangeMessage, SiteChangeRequest, SiteCommit, SiteId, SiteRollBack,
};
use wp_codebox_control::Received;

/// Name of the PHP parameter whose function is called after files were written.
const ON_WRITTEN: &str = "onWritten";

/// Parses the argument `change` of `Changes::apply()`.
pub(crate) fn apply(change: Map<String, Value>) -> Result<SiteAction, ErrorBody> {
    read::<SiteApply>(change, "change").map(SiteAction::Apply)
}

/// Makes the action of `Changes::rollBack()` from its arguments.
pub(crate) fn roll_back(change: &str, files: Vec<String>) -> SiteAction {
    SiteAction::RollBack(SiteRollBack {
        change: change.to_owned(),
        files: (!files.is_empty()).then_some(files),
    })
}

/// Parses the argument `change` of `Changes::commit()`.
pub(crate) fn commit(change: Map<String, Value>) -> Result<SiteAction, ErrorBody> {
    read::<SiteCommit>(change, "change").map(SiteAction::Commit)
}

/// Reads the options, whose only permitted member is `health`.
pub(crate) fn health(options: Map<String, Value>) -> Result<Option<HealthPlan>, ErrorBody> {
    let mut fields = Fields::new(options, "", &["health"], ErrorCode::InputInvalid)?;
    let health = fields.object("health")?;
    health.map(|plan| read(plan, "health")).transpose()
}

fn read<T: serde::de::DeserializeOwned>(
    map: Map<String, Value>,
    name: &str,
) -> Result<T, ErrorBody> {
    // The error of serde may quote a value, and values such as cookies are secret, so only `name`
    // is reported.
    serde_json::from_value(Value::Object(map)).map_err(|_| {
        let message = format!("{name} has a missing, unknown or malformed member; see the class WPCodebox\\Native\\Changes in wp_codebox.stub.php");
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })
}

/// Carries out a change and returns its result. Each time after files were written, calls
/// `on_written` with their host paths.
pub(crate) fn run(
    settings: &Settings,
    site: SiteId,
    action: SiteAction,
    health: Option<HealthPlan>,
    on_written: Option<&ZendCallable<'_>>,
) -> Result<Value, Failure> {
    let deadline = Deadline::of_handshake();
    let request = SiteChangeRequest {
        protocol: PROTOCOL_VERSION,
        state_dir: settings.state_dir.clone(),
        php_binary: settings.php_binary.clone(),
        site,
        action,
        health,
    };
    let channel = spawned(
        &settings.runner,
        &["detach", "change-site"],
        &unavailable,
        deadline,
    )?;
    channel.send_document(&request, || {
        deadline.check()?;
        tick()
    })?;
    loop {
        let line = match channel.receive(TICK)? {
            Received::Nothing => {
                tick()?;
                continue;
            }
            Received::End => return Err(unavailable("died before the change ended").into()),
            Received::Line(line) => line,
        };
        let message = serde_json::from_slice::<SiteChangeMessage>(&line)
            .map_err(|_| unavailable("sent a message that this extension does not know (install the same version of the extension and of `wp-codebox`)"))?;
        match message {
            SiteChangeMessage::Written { files } => {
                if let Some(callable) = on_written {
                    arguments::call(callable, ON_WRITTEN, json!(files))?;
                }
                channel.send_document(&Value::Null, tick)?;
            }
            SiteChangeMessage::Result { result } => return Ok(json!(result)),
            SiteChangeMessage::Error { error } => return Err(error.into()),
        }
    }
}

/// Returns the changes of this user on the site, newest first. Fails if one cannot be read, because
/// it may be the newest.
pub(crate) fn list(settings: &Settings, site: &SiteId) -> Result<Value, Failure> {
    let Some(journal) = journal(settings, site)? else {
        return Ok(json!([]));
    };
    let all = journal.list().and_then(Listed::complete);
    let all = all?;
    let rows = all.iter().map(|change| {
        let mut row = json!(change);
        row["bytes"] = json!(journal.bytes(&change.id));
        row
    });
    Ok(rows.collect())
}

/// Forgets all applied changes of this user; returns their number. Refused while a process changes
/// the site.
pub(crate) fn forget(settings: &Settings, site: &SiteId) -> Result<i64, Failure> {
    let Some(journal) = journal(settings, site)? else {
        return Ok(0);
    };
    let _claim = journal.claim()?;
    let mut count = 0;
    for change in journal.list()?.changes {
        journal.remove(&change.id)?;
        count += 1;
    }
    Ok(count)
}

/// Finishes or reverses the interrupted changes of this user, and undoes a change after which the
/// site was not checked. Does nothing while another process changes the site; `running` in the
/// result is then true.
/// Returns the ids of the finished or reversed changes, reports of the undone change, the errors,
/// and the host paths of the files of all these changes.
pub(crate) fn recover(settings: &Settings, site: &SiteId) -> Result<Value, Failure> {
    let (mut settled, mut undone, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    let mut paths = Vec::new();
    let mut is_running = false;
    if let Some(journal) = journal(settings, site)? {
        match journal.claim() {
            Err(ApplyError::Busy { .. }) => is_running = true,
            Err(error) => return Err(error.body().into()),
            Ok(claim) => {
                for one in journal.recover()? {
                    paths.extend(one.paths);
                    match one.error {
                        None => settled.push(one.id),
                        Some(error) => failed.push(json!({"id": one.id, "error": error.body()})),
                    }
                }
                match journal.undo_trial(&claim, now()?) {
                    Ok(None) => {}
                    Ok(Some(trial)) => {
                        paths.extend(trial.paths);
                        undone.push(json!(trial.report));
                    }
                    Err(error) => failed.push(json!({"id": "trial", "error": error.body()})),
                }
            }
        }
    }
    let paths: Vec<_> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Ok(json!({
        "running": is_running, "settled": settled, "undone": undone, "failed": failed, "paths": paths,
    }))
}

/// Opens the journal of this user; `None` if the site has no directory yet.
fn journal(settings: &Settings, site: &SiteId) -> Result<Option<Journal>, Failure> {
    // Checks owner and mode of the state directory.
    let _ = State::open(settings)?;
    let directory = PathBuf::from(&settings.state_dir)
        .join("sites")
        .join(site.as_str());
    if !directory.is_dir() {
        return Ok(None);
    }
    Ok(Some(Journal::open(&directory)?))
}

/// Builds the error of the process that changes the site. `what`, such as `did not start`, follows
/// the name of the process in the message.
fn unavailable(what: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::RunnerUnavailable,
        format!("the site-change process {what}; run `wp-codebox doctor`"),
    )
}
