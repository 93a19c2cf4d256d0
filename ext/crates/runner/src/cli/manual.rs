//! Manual pages and shell completion, made from the table that the arguments are parsed by.

use super::args::ManArgs;
use super::help::Epilogue;
use super::output::Output;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::roff::{Roff, bold, roman};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Prints the completion script of a shell.
pub(crate) fn completion(output: &Output, shell: Shell) -> ExitCode {
    output.data(script(shell).as_bytes());
    ExitCode::SUCCESS
}

/// Name in a bash script. The generator loses every subcommand of a program with a hyphen in its
/// name (clap issue 6421): it is generated for another name, and then completes the real ones.
const BASH_NAME: &str = "wp_codebox";

fn script(shell: Shell) -> String {
    let root = crate::cli::help::command();
    // The generators offer hidden commands, too.
    let mut shown = Command::new("wp-codebox")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .subcommands(visible(&root).cloned());
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

/// Prints what `--help` of a command prints.
pub(crate) fn help(output: &Output, words: &[String]) -> ExitCode {
    let mut root = crate::cli::help::command();
    root.build();
    match chosen(&root, words) {
        Ok(command) => {
            let text = command.clone().render_help();
            let text = match io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
                true => text.ansi().to_string(),
                false => text.to_string(),
            };
            output.data(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => output.failure("help", &error),
    }
}

/// Prints one page, or writes all of them.
pub(crate) fn man(output: &Output, args: &ManArgs) -> ExitCode {
    let mut root = crate::cli::help::command();
    root.build();
    let answer = chosen(&root, &args.command).and_then(|command| match &args.directory {
        Some(directory) => all(&root, directory),
        None => page(command)
            .map(|text| output.data(&text))
            .map_err(|e| unwritable(&e)),
    });
    match answer {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure("man", &error),
    }
}

fn unwritable(e: &io::Error) -> ErrorBody {
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

/// Variables of the environment that are read.
const ENVIRONMENT: [(&str, &str); 14] = [
    (
        "WP_CODEBOX_STATE_DIR",
        "State directory, instead of --state.",
    ),
    (
        "WP_CODEBOX_WORDPRESS",
        "WordPress directory, instead of --wordpress.",
    ),
    (
        "WP_CODEBOX_SHARE_DIR",
        "Directory with WP-CLI, the SQLite drop-in and the guest programs, instead of --share.",
    ),
    (
        "WP_CODEBOX_LAUNCHER",
        "The launcher, instead of --launcher.",
    ),
    (
        "WP_CODEBOX_CGROUP",
        "Cgroup directory, instead of --cgroup.",
    ),
    (
        "WP_CODEBOX_IDENTITY",
        "Whose kernel user guests run as, instead of --identity.",
    ),
    (
        "WP_CODEBOX_GUEST_IDS",
        "Numbers for guests' users, instead of --guest-ids.",
    ),
    (
        "WP_CODEBOX_AGENTS_DIR",
        "Directory with the programs of agents, instead of --agents-dir.",
    ),
    (
        "WP_CODEBOX_BROWSER",
        "Program of the browser, instead of --browser.",
    ),
    ("WP_CODEBOX_PHP", "PHP for the guest, instead of --php."),
    (
        "WP_CODEBOX_PREVIEW_HOLD_MAX_SECONDS",
        "Longest --preview-hold that is allowed, from 3600 to 86400 seconds.",
    ),
    (
        "WP_CODEBOX_REQUIRE_SOURCE_SHA256",
        "With 1, a recipe must name the sha256 of each archive it uses.",
    ),
    (
        "COLUMNS",
        "Width of help texts, when the terminal does not say it.",
    ),
    (
        "NO_COLOR",
        "Help texts and errors have no colours when it is set.",
    ),
];

/// Files and directories, unless something else is said.
const FILES: [(&str, &str); 5] = [
    (
        "/var/lib/wp-codebox",
        "State directory: templates, runs, bundles, keys.",
    ),
    (
        "/usr/share/wp-codebox",
        "WP-CLI, the SQLite drop-in and the guest programs.",
    ),
    ("/usr/libexec/wp-codebox-launch", "The launcher."),
    (
        "/opt/wp-codebox/agents",
        "Programs of agents, a directory for each.",
    ),
    ("<state>/profiles", "Profiles that sandboxes are made from."),
];

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let name = page_name(command);
    let man = clap_mangen::Man::new(command.clone())
        .title(name.to_uppercase())
        .source(concat!("wp-codebox ", env!("CARGO_PKG_VERSION")))
        .manual("WP Codebox");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    let epilogue = Epilogue::of(&text_behind(command));
    let mut roff = Roff::new();
    synopsis(&mut roff, command);
    roff.control("SH", ["DESCRIPTION"]);
    let about = command.get_about().map(ToString::to_string);
    let about = about.map(|about| format!("{}.", about.trim_end_matches('.')));
    for paragraph in about.iter().chain(&epilogue.prose) {
        roff.control("PP", []).text([roman(paragraph)]);
    }
    roff.to_writer(&mut out)?;
    man.render_options_section(&mut out)?;
    let mut roff = Roff::new();
    pairs(&mut roff, "COMMANDS", &below(command));
    if !epilogue.examples.is_empty() {
        roff.control("SH", ["EXAMPLES"]).control("nf", []);
        for line in &epilogue.examples {
            roff.text([roman(line)]);
        }
        roff.control("fi", []);
    }
    if let Some(status) = &epilogue.status {
        roff.control("SH", ["EXIT STATUS"]).text([roman(status)]);
    }
    pairs(&mut roff, "ENVIRONMENT", &read_by(command));
    if command.get_name() == name {
        let files: Vec<_> = FILES
            .map(|(file, what)| (file.to_owned(), what.to_owned()))
            .into();
        pairs(&mut roff, "FILES", &files);
    }
    let also = see_also(command);
    if !also.is_empty() {
        roff.control("SH", ["SEE ALSO"]);
        let mut line = Vec::new();
        for page in also {
            let comma = if line.is_empty() { "" } else { ", " };
            line.extend([roman(comma), bold(page), roman("(1)")]);
        }
        roff.text(line);
    }
    roff.to_writer(&mut out)?;
    Ok(out)
}

/// As the help says it.
fn synopsis(roff: &mut Roff, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let name = command.get_bin_name().unwrap_or_default();
    let rest = usage.strip_prefix(name).unwrap_or_default();
    roff.control("SH", ["SYNOPSIS"]);
    roff.text([bold(name), roman(rest)]);
}

/// A section of names and what they mean.
fn pairs(roff: &mut Roff, section: &str, rows: &[(String, String)]) {
    if rows.is_empty() {
        return;
    }
    roff.control("SH", [section]);
    for (name, what) in rows {
        roff.control("TP", [])
            .text([bold(name)])
            .text([roman(what)]);
    }
}

fn text_behind(command: &Command) -> String {
    let text = command.get_after_help();
    text.map(ToString::to_string).unwrap_or_default()
}

fn below(command: &Command) -> Vec<(String, String)> {
    let about = |c: &Command| c.get_about().map(ToString::to_string).unwrap_or_default();
    visible(command)
        .map(|c| (format!("{}(1)", page_name(c)), about(c)))
        .collect()
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|c| !c.is_hide_set())
}

/// The variables that the options of a command speak of; the whole program reads all of them.
fn read_by(command: &Command) -> Vec<(String, String)> {
    let whole = command.get_name() == page_name(command);
    let helps: Vec<String> = command
        .get_arguments()
        .filter_map(|argument| Some(argument.get_help()?.to_string()))
        .collect();
    let spoken_of = |name: &str| helps.iter().any(|help| help.contains(&format!("${name}")));
    ENVIRONMENT
        .into_iter()
        .filter(|(name, _)| whole || spoken_of(name))
        .map(|(name, what)| (name.to_owned(), what.to_owned()))
        .collect()
}

/// The pages above a page, and those that its texts name.
fn see_also(command: &Command) -> Vec<String> {
    let name = page_name(command);
    let mut pages: Vec<String> = name
        .match_indices('-')
        .map(|(at, _)| name.get(..at).unwrap_or_default().to_owned())
        .collect();
    let helps = command.get_arguments().filter_map(clap::Arg::get_help);
    let texts = helps.map(ToString::to_string).chain([text_behind(command)]);
    let texts = texts.collect::<Vec<_>>().join("\n");
    for rest in texts.split("wp-codebox ").skip(1) {
        let words = rest.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
        let mut named = "wp-codebox".to_owned();
        for word in words.take(2) {
            named = format!("{named}-{word}");
            pages.push(named.clone());
        }
    }
    let mut root = crate::cli::help::command();
    root.build();
    let mut there = Vec::new();
    let mut open = vec![&root];
    while let Some(at) = open.pop() {
        there.push(page_name(at).to_owned());
        open.extend(visible(at));
    }
    pages.retain(|page| page != name && there.contains(page));
    pages.sort();
    pages.dedup();
    pages
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
        open.extend(visible(command));
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
        let mut root = crate::cli::help::command();
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
                    Epilogue::of(&after).status.is_some(),
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
        let mut root = crate::cli::help::command();
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
        assert!(run.contains("\\-\\-mount"));
        for section in [
            "SYNOPSIS",
            "EXAMPLES",
            "\"EXIT STATUS\"",
            "ENVIRONMENT",
            "\"SEE ALSO\"",
        ] {
            assert!(
                run.contains(&format!(".SH {section}\n")),
                "{section}: {run}"
            );
        }
        assert!(run.contains("wp\\-codebox\\-exec") && !run.contains("EXTRA"));
        std::fs::remove_dir_all(&directory).unwrap();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);
            assert!(script.contains("mount"), "{shell}");
            assert!(!script.contains("keep-cgroups"), "{shell}");
        }
    }
}
