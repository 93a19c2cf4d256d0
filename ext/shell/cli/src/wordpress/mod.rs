//! `wp-codebox wordpress`: installs WordPress cores into a cache, lists them and chooses the default.
//!
//! Archives, directories and the answers of servers are untrusted: they are checked and bounded,
//! and no code from them is executed on the host. PHP code of a core runs only inside guests.

mod archive;
mod args;
mod cache;
mod directory;
mod fetch;
mod install;
mod layout;
mod progress;
mod release;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod unpack;
mod version;

pub(crate) use args::WordpressCommand;
pub(crate) use cache::{Core, Cores};
pub(crate) use progress::for_output;
pub(crate) use source::{Network, Origins, Source};

use super::columns::{self, Column};
use super::output::Output;
use super::settings::{PathArgs, Settings};
use args::{InstallArgs, UseArgs};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use version::Version;
use wp_codebox_contracts::{ErrorBody, schema_id};

pub(crate) fn main(output: &Output, command: &WordpressCommand) -> ExitCode {
    let (name, done) = match command {
        WordpressCommand::Install(args) => ("wordpress install", install(*output, args)),
        WordpressCommand::List(_) => ("wordpress list", list(*output)),
        WordpressCommand::Use(args) => ("wordpress use", choose(*output, args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure(name, &error),
    }
}

/// Returns the core whose version is nearest to the wanted one, out of a list that begins with the
/// newest: the newest that is not newer, else the oldest. `None` if the wanted text is no version.
pub(crate) fn nearest(cores: &[Core], wanted: &str) -> Option<PathBuf> {
    let wanted = Version::parse(wanted)?;
    let older = |core: &&Core| {
        Version::parse(&core.version)
            .is_some_and(|v| v <= wanted || v.is_release_of(wanted.as_str()))
    };
    let found = cores.iter().find(older).or_else(|| cores.last());
    found.map(|core| core.path.clone())
}

/// Installs the core of a zip archive of this host, or finds it in the cache, without a connection.
pub(crate) fn install_zip(cores: &Cores, zip: &Path, output: Output) -> Result<PathBuf, ErrorBody> {
    let source = Source::Zip(zip.to_owned());
    let progress = for_output(output);
    let core = cores.install(&source, Network::Offline, progress.as_ref())?;
    Ok(core.path)
}

/// Installs the latest core for a run on a host that has no WordPress yet, and prints a note.
pub(crate) fn install_first(cores: &Cores, output: Output) -> Result<PathBuf, ErrorBody> {
    if !output.is_json() {
        output.note("no WordPress is installed for sandboxes yet; installing the latest one");
    }
    let progress = for_output(output);
    let network = Network::Online(Origins::from_environment()?);
    let core = cores.install(&Source::Latest, network, progress.as_ref())?;
    drop(progress);
    if !output.is_json() {
        output.note(&format!(
            "WordPress {}: {}",
            core.version,
            shown(&core.path)
        ));
    }
    Ok(core.path)
}

fn cores() -> Result<Cores, ErrorBody> {
    Ok(Settings::resolve(&PathArgs::default())?.cores)
}

fn install(output: Output, args: &InstallArgs) -> Result<(), ErrorBody> {
    let source = Source::parse(&args.source)?;
    let network = match args.offline {
        true => Network::Offline,
        false => Network::Online(Origins::from_environment()?),
    };
    let cores = cores()?;
    let progress = for_output(output);
    let core = cores.install(&source, network, progress.as_ref())?;
    // The drop removes the progress bar from the terminal.
    drop(progress);
    answer(output, &core);
    Ok(())
}

fn choose(output: Output, args: &UseArgs) -> Result<(), ErrorBody> {
    let core = cores()?.use_version(&args.version)?;
    answer(output, &core);
    Ok(())
}

fn answer(output: Output, core: &Core) {
    let default = if core.current { " (default)" } else { "" };
    let line = format!("WordPress {}{default}: {}", core.version, shown(&core.path));
    output.answer(&core_document(core), &[line]);
    if !core.current && !output.is_json() {
        output.note(&format!(
            "wp-codebox wordpress use {} makes it the default",
            core.version
        ));
    }
}

fn list(output: Output) -> Result<(), ErrorBody> {
    let cores = cores()?.list()?;
    if output.is_json() {
        output.document(&list_document(&cores));
        return Ok(());
    }
    let column = |heading, spare| Column { heading, spare };
    let columns = [
        column("VERSION", false),
        column("DEFAULT", false),
        column("INSTALLED", true),
        column("SOURCE", true),
        column("DIRECTORY", false),
    ];
    let cells = |core: &Core| {
        let default = if core.current { "yes" } else { "" };
        vec![
            core.version.clone(),
            default.to_owned(),
            core.installed_at.clone(),
            core.source.clone(),
            shown(&core.path),
        ]
    };
    let rows: Vec<Vec<String>> = cores.iter().map(cells).collect();
    if rows.is_empty() {
        output.note("no WordPress is installed; `wp-codebox wordpress install` installs one");
        return Ok(());
    }
    for line in columns::table(&columns, &rows, columns::terminal()) {
        output.line(&line);
    }
    Ok(())
}

fn core_document(core: &Core) -> Value {
    json!({"schema": schema_id::WORDPRESS_CORE, "success": true, "core": row(core)})
}

fn list_document(cores: &[Core]) -> Value {
    json!({
        "schema": schema_id::WORDPRESS_CORE_LIST,
        "success": true,
        "total": cores.len(),
        "cores": cores.iter().map(row).collect::<Vec<Value>>(),
    })
}

fn row(core: &Core) -> Value {
    json!({
        "version": core.version,
        "path": shown(&core.path),
        "source": core.source,
        "installedAt": core.installed_at,
        "current": core.current,
    })
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
