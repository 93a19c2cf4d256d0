//! `wp-codebox wordpress`: installs WordPress cores into a cache, lists them and chooses the default.

mod args;
mod progress;

pub(crate) use args::WordpressCommand;

use super::columns::{self, Column};
use super::output::Output;
use args::{InstallArgs, UseArgs};
use progress::for_output;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_settings::{CoreInstaller, PathArgs, Settings};
use wp_codebox_wordpress::{
    Core, Cores, Network, ORIGIN_VARIABLE, Origins, Source, core_document, list_document,
};

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

impl CoreInstaller for Output {
    /// Installs the latest core for a run on a host that has no WordPress yet, and prints a note.
    fn install_first(&self, cores: &Cores) -> Result<PathBuf, ErrorBody> {
        if !self.is_json() {
            self.note("no WordPress is installed for sandboxes yet; installing the latest one");
        }
        let progress = for_output(*self);
        let network = Network::Online(origins()?);
        let core = cores.install(&Source::Latest, network, progress.as_ref())?;
        drop(progress);
        if !self.is_json() {
            self.note(&format!(
                "WordPress {}: {}",
                core.version,
                shown(&core.path)
            ));
        }
        Ok(core.path)
    }
}

/// Returns the servers to ask: those of wordpress.org and npm, or the origin in the environment.
fn origins() -> Result<Origins, ErrorBody> {
    Origins::new(std::env::var_os(ORIGIN_VARIABLE).as_deref())
}

fn cores() -> Result<Cores, ErrorBody> {
    Ok(Settings::resolve(&PathArgs::default())?.cores)
}

fn install(output: Output, args: &InstallArgs) -> Result<(), ErrorBody> {
    let source = Source::parse(&args.source)?;
    let network = match args.offline {
        true => Network::Offline,
        false => Network::Online(origins()?),
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

fn shown(path: &Path) -> String {
    path.display().to_string()
}
