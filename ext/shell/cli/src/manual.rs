//! Manual pages and shell completion, generated from the argument definitions.

use super::output::Output;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox man | man -l -
  wp-codebox man runs list
  wp-codebox man --directory /usr/local/share/man/man1

Exit status: 0 printed or written, 1 unknown command or the directory cannot be written.")]
pub(crate) struct ManArgs {
    /// Command, such as `runs list`. [default: the whole program]
    pub command: Vec<String>,
    /// Write one page per command to this directory.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub directory: Option<PathBuf>,
}

/// Prints the completion script of a shell.
pub(crate) fn completion(output: &Output, root: &Command, shell: Shell) -> ExitCode {
    output.data(script(root, shell).as_bytes());
    ExitCode::SUCCESS
}

/// Program name for which the bash completion is generated. For a name with a hyphen the generator
/// loses all subcommands (clap issue 6421), so the script is generated for this name and then
/// registered for `wp-codebox` and `codebox`.
const BASH_NAME: &str = "wp_codebox";

fn script(root: &Command, shell: Shell) -> String {
    // Copy only the visible commands: the generators would also complete hidden ones.
    let mut shown = Command::new("wp-codebox")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .subcommands(visible(root).cloned());
    let mut bytes = Vec::new();
    let name = match shell {
        Shell::Bash => BASH_NAME,
        _ => "wp-codebox",
    };
    clap_complete::generate(shell, &mut shown, name, &mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match shell {
        Shell::Bash => text.replace(&format!(" {BASH_NAME}\n"), " wp-codebox codebox\n"),
        _ => text,
    }
}

/// Prints the manual page of one command, or writes the pages of all commands.
pub(crate) fn man(output: &Output, mut root: Command, args: &ManArgs) -> ExitCode {
    root.build();
    let answer = match &args.directory {
        Some(directory) => write_pages(&root, directory),
        None => match chosen(&root, &args.command) {
            Ok(command) => page(command).map(|(_, text)| output.data(text.as_bytes())),
            Err(error) => return output.failure("man", &error),
        },
    };
    let Err(error) = answer else {
        return ExitCode::SUCCESS;
    };
    let message = format!("the manual cannot be written: {error}");
    output.failure("man", &ErrorBody::new(ErrorCode::InputInvalid, message))
}

/// Returns the command with the given words as its name, such as `runs list`.
fn chosen<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command, ErrorBody> {
    words.iter().try_fold(root, |at, word| {
        at.find_subcommand(word).ok_or_else(|| {
            let message = format!("{} has no subcommand {word:?}", at.get_name());
            ErrorBody::new(ErrorCode::InputInvalid, message)
                .hint("wp-codebox --help lists the commands")
        })
    })
}

/// Replacements in the generated roff text. Clap puts the whole text after the options into one
/// section whose lines `man` joins, which would break examples; these replacements make a section
/// of each part and keep its lines.
const SECTIONS: [(&str, &str); 6] = [
    ("\n.SH EXTRA\n", "\n.SH NOTES\n"),
    ("\nExamples:\n", "\n.SH EXAMPLES\n.nf\n"),
    ("\nExit status: ", "\n.fi\n.SH \"EXIT STATUS\"\n"),
    ("\nEnvironment:\n", "\n.SH ENVIRONMENT\n.nf\n"),
    ("\nFiles:\n", "\n.fi\n.SH FILES\n.nf\n"),
    ("\n.SH NOTES\n.SH ", "\n.SH "),
];

/// Returns the file name and the text of a command's manual page.
fn page(command: &Command) -> io::Result<(String, String)> {
    let page = Man::new(command.clone())
        .source(concat!("wp-codebox ", env!("CARGO_PKG_VERSION")))
        .manual("WP Codebox");
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    let text = SECTIONS
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to));
    Ok((page.get_filename(), text))
}

/// Writes the manual pages of a command and of all its subcommands.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    let (name, text) = page(command)?;
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join(name), text)?;
    visible(command).try_for_each(|below| write_pages(below, directory))
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|c| !c.is_hide_set())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HandedOver;
    use crate::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn every_help_text_has_examples_and_the_exit_status_and_its_indented_lines_fit_80_columns() {
        assert!(crate::help_texts::check(Cli::<HandedOver>::command()) > 50);
    }

    #[test]
    fn manual_pages_and_completions_contain_public_commands_and_no_internal_ones() {
        let directory = tempfile::tempdir().unwrap();
        let mut root = Cli::<HandedOver>::command();
        root.build();
        write_pages(&root, directory.path()).unwrap();
        let there = |page: &str| directory.path().join(page).exists();
        assert!(there("wp-codebox.1") && there("wp-codebox-runs-list.1"));
        assert!(!there("wp-codebox-supervise.1"));
        let run = std::fs::read_to_string(directory.path().join("wp-codebox-run.1")).unwrap();
        assert!(run.contains("\\-\\-mount") && run.contains(".SH \"EXIT STATUS\"\n"));
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(&Cli::<HandedOver>::command(), shell);
            assert!(script.contains("mount"), "{shell}");
            assert!(!script.contains("keep-cgroups"), "{shell}");
        }
    }
}
