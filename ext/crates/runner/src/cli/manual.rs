//! Manual pages and shell completion, made from the table that the arguments are parsed by.

use super::args::{Cli, ManArgs};
use super::output::Output;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Prints the completion script of a shell.
pub(crate) fn completion(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "wp-codebox", &mut script);
    printed(&script)
}

/// Prints one page, or writes all of them.
pub(crate) fn man(output: &Output, args: &ManArgs) -> ExitCode {
    let mut root = Cli::command();
    root.build();
    let answer = match (&args.directory, chosen(&root, &args.command)) {
        (_, Err(error)) => Err(error),
        (Some(directory), Ok(_)) => all(&root, directory),
        (None, Ok(command)) => match page(command) {
            Ok(text) => return printed(&text),
            Err(e) => Err(unwritable(&e)),
        },
    };
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure("man", &error),
    }
}

fn printed(bytes: &[u8]) -> ExitCode {
    match std::io::stdout().write_all(bytes) {
        Ok(()) => ExitCode::SUCCESS,
        // A pager that was left early, for example.
        Err(_) => ExitCode::FAILURE,
    }
}

fn unwritable(e: &std::io::Error) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::InputInvalid,
        format!("the manual cannot be written: {e}"),
    )
}

/// The command that a list of words names.
fn chosen<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command, ErrorBody> {
    let mut at = root;
    for word in words {
        at = at.find_subcommand(word).ok_or_else(|| {
            let message = format!("{} has no command {word:?}", at.get_name());
            ErrorBody::new(ErrorCode::InputInvalid, message).hint("wp-codebox --help lists them")
        })?;
    }
    Ok(at)
}

fn page(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .title(page_name(command).to_uppercase())
        .manual("WP Codebox")
        .render(&mut text)?;
    Ok(text)
}

/// `wp-codebox-runs-list`.
fn page_name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

fn all(root: &Command, directory: &Path) -> Result<(), ErrorBody> {
    std::fs::create_dir_all(directory).map_err(|e| unwritable(&e))?;
    let mut open = vec![root];
    while let Some(command) = open.pop() {
        let file = format!("{}.1", page_name(command));
        page(command)
            .and_then(|text| std::fs::write(directory.join(file), text))
            .map_err(|e| unwritable(&e))?;
        open.extend(command.get_subcommands().filter(|c| !c.is_hide_set()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command that people see: it says what it does, and its leaves show an example and
    /// what their exit status means.
    #[test]
    fn help_is_complete() {
        let mut root = Cli::command();
        root.build();
        let mut open = vec![&root];
        let mut seen = 0;
        while let Some(command) = open.pop() {
            let name = command.get_bin_name().unwrap_or_default().to_owned();
            assert!(command.get_about().is_some(), "{name} has no description");
            for argument in command.get_arguments() {
                assert!(
                    argument.get_help().is_some() || argument.is_hide_set(),
                    "{name}: {} has no help",
                    argument.get_id()
                );
            }
            let below: Vec<_> = command
                .get_subcommands()
                .filter(|c| !c.is_hide_set())
                .collect();
            if below.is_empty() {
                seen += 1;
                let after = command
                    .get_after_help()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                assert!(after.contains("Example"), "{name} shows no example");
                assert!(
                    after.contains("Exit status"),
                    "{name} does not say its exit status"
                );
            }
            open.extend(below);
        }
        assert!(seen > 10);
    }

    #[test]
    fn pages_and_scripts_come_from_the_same_table() {
        let directory = std::env::temp_dir().join(format!("codebox-man.{}", std::process::id()));
        let mut root = Cli::command();
        root.build();
        all(&root, &directory).unwrap();
        let pages: Vec<String> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(pages.contains(&"wp-codebox.1".to_owned()));
        assert!(
            pages.contains(&"wp-codebox-runs-list.1".to_owned()),
            "{pages:?}"
        );
        assert!(!pages.iter().any(|page| page.contains("supervise")));
        let run = std::fs::read_to_string(directory.join("wp-codebox-run.1")).unwrap();
        assert!(run.contains("Exit status") && run.contains("\\-\\-mount"));
        std::fs::remove_dir_all(&directory).unwrap();
        let mut script = Vec::new();
        clap_complete::generate(Shell::Bash, &mut Cli::command(), "wp-codebox", &mut script);
        assert!(String::from_utf8(script).unwrap().contains("--mount"));
    }
}
