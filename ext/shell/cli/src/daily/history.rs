//! The history of the current directory, as the settings name its state directory, and messages about
//! its runs.

use super::args::OfRunArgs;
use crate::guest_args::StoreArgs;
use crate::output::Output;
use crate::project;
use std::path::PathBuf;
use wp_codebox_changes::{Choice, History, Wanted};
use wp_codebox_contracts::{ErrorBody, ErrorCode, SiteId};
use wp_codebox_runtime::{FoundRun, StateDir};
use wp_codebox_settings::Settings;
use wp_codebox_settings::prepare_state;

/// Opens the state directory from the settings; creates the default one if it is missing.
pub(super) fn open(store: &StoreArgs) -> Result<(History, Settings), ErrorBody> {
    let settings = Settings::resolve(&store.paths)?;
    prepare_state(&settings)?;
    let state = StateDir::open(&settings.state_dir)?;
    let site = SiteId::new(&store.site)
        .map_err(|e| ErrorBody::new(ErrorCode::InputInvalid, format!("--site: {e}")))?;
    let history = History {
        state,
        site,
        directory,
    };
    Ok((history, settings))
}

/// Returns the run with the change that a command uses. A message names it unless the arguments do.
pub(super) fn change_of(
    output: Output,
    history: &History,
    args: &OfRunArgs,
) -> Result<FoundRun, ErrorBody> {
    let chosen = history.run(args.run.as_deref(), Wanted::Change)?;
    if let Some(choice) = &chosen.choice {
        note_choice(output, &chosen.run, choice);
    }
    Ok(chosen.run)
}

/// Prints which run was chosen, and how many later runs failed without a change.
fn note_choice(output: Output, run: &FoundRun, choice: &Choice) {
    let later = match choice.skipped {
        0 => String::new(),
        1 => "; one later run failed without a change".to_owned(),
        count => format!("; {count} later runs failed without a change"),
    };
    let summary = choice.summary.as_deref().unwrap_or_default();
    let summary = format!("{summary}{later}");
    note_change(output, run, &choice.created_at, Some(&summary));
}

/// Prints whose change a command uses and how that run ended.
pub(super) fn note_change(output: Output, run: &FoundRun, date: &str, summary: Option<&str>) {
    let summary = summary.unwrap_or("still running");
    output.note(&format!("change of {}, of {date}: {summary}", run.run_id));
}

/// Returns the real path of the project that contains the current directory. Without a project,
/// returns the real path of the current directory itself.
fn directory() -> Result<PathBuf, ErrorBody> {
    match project::here() {
        Ok(project) => Ok(project.root),
        Err(_) => {
            let here = std::env::current_dir().and_then(|here| here.canonicalize());
            here.map_err(|e| {
                let message = format!("the current directory cannot be read: {e}");
                ErrorBody::new(ErrorCode::InputInvalid, message)
            })
        }
    }
}

/// Prints what can be done with the change of a run.
pub(crate) fn next_steps(output: Output, run_id: &str) {
    let short = run_id.trim_start_matches("run_");
    let short = short.get(..8).unwrap_or(short);
    output.note(&format!("Next: wp-codebox diff {short}"));
    output.note(&format!("      wp-codebox apply {short}"));
    output.note(&format!(
        "      wp-codebox again {short} --with 'what should be different'"
    ));
}
