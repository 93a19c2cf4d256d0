//! What stands behind the options of a help text: prose, examples, the exit status.
//!
//! Written once, in `after_help` of each command, and read twice: the help gives prose to the
//! terminal's width and leaves examples alone, the manual has a section for each.

use super::args::Cli;
use super::model::ModelArgs;
use super::preview::PreviewArgs;
use super::settings::PathArgs;
use clap::{Args, Command, CommandFactory, Id};

const EXAMPLES: &str = "Examples:";
const STATUS: &str = "Exit status:";

/// The commands with their help as it is shown.
pub(super) fn command() -> Command {
    let groups = [
        Group::of::<PreviewArgs>("Preview"),
        Group::of::<ModelArgs>("Model and built-in agent"),
        Group::of::<PathArgs>("Places on this host"),
    ];
    headed(flowing(Cli::command()), &groups)
}

/// A group of options that several commands have, under a heading of its own.
struct Group {
    heading: &'static str,
    options: Vec<Id>,
}

impl Group {
    fn of<A: Args>(heading: &'static str) -> Self {
        let table = A::augment_args(Command::new(heading));
        let options = table.get_arguments().map(|one| one.get_id().clone());
        Self {
            heading,
            options: options.collect(),
        }
    }

    /// A command that has some of them by chance has another meaning for them.
    fn head(&self, command: Command) -> Command {
        let has = |id: &Id| command.get_arguments().any(|one| one.get_id() == id);
        if !self.options.iter().all(has) {
            return command;
        }
        command.mut_args(|one| match self.options.contains(one.get_id()) {
            true => one.help_heading(self.heading),
            false => one,
        })
    }
}

fn headed(command: Command, groups: &[Group]) -> Command {
    let command = groups
        .iter()
        .fold(command, |command, group| group.head(command));
    command.mut_subcommands(|below| headed(below, groups))
}

fn flowing(command: Command) -> Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(text) => command.after_help(Epilogue::of(&text).text()),
        None => command,
    };
    command.mut_subcommands(flowing)
}

/// The parts of a text behind the options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Epilogue {
    /// Paragraphs, a line each.
    pub prose: Vec<String>,
    /// Lines as they are typed.
    pub examples: Vec<String>,
    /// What the exit status says, in one line.
    pub status: Option<String>,
}

impl Epilogue {
    pub(super) fn of(text: &str) -> Self {
        let mut parts = Self::default();
        let mut at = At::Between;
        for line in text.lines() {
            at = match (at, line) {
                (_, "") => At::Between,
                (_, EXAMPLES) => At::Examples,
                (At::Examples, line) if line.starts_with(' ') => {
                    parts.examples.push(line.to_owned());
                    At::Examples
                }
                (At::Status, line) => {
                    let status = parts.status.get_or_insert_default();
                    status.push(' ');
                    status.push_str(line.trim());
                    At::Status
                }
                (_, line) if line.starts_with(STATUS) => {
                    let said = line.trim_start_matches(STATUS).trim();
                    parts.status = Some(said.to_owned());
                    At::Status
                }
                (At::Prose, line) => {
                    if let Some(paragraph) = parts.prose.last_mut() {
                        paragraph.push(' ');
                        paragraph.push_str(line.trim());
                    }
                    At::Prose
                }
                (At::Between | At::Examples, line) => {
                    parts.prose.push(line.trim().to_owned());
                    At::Prose
                }
            };
        }
        parts
    }

    fn text(&self) -> String {
        let mut blocks = self.prose.clone();
        if !self.examples.is_empty() {
            blocks.push(format!("{EXAMPLES}\n{}", self.examples.join("\n")));
        }
        blocks.extend(self.status.iter().map(|said| format!("{STATUS} {said}")));
        blocks.join("\n\n")
    }
}

/// Where a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Between,
    Prose,
    Examples,
    Status,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "One and\ntwo.\n\nExamples:\n  a \\\n    --b\n  c\n\nThree.\nExit status: 0 good,\n1 bad.";

    #[test]
    fn parts_are_told_apart_and_prose_flows() {
        let parts = Epilogue::of(TEXT);
        assert_eq!(parts.prose, ["One and two.", "Three."]);
        assert_eq!(parts.examples, ["  a \\", "    --b", "  c"]);
        assert_eq!(parts.status.as_deref(), Some("0 good, 1 bad."));
        let shown = parts.text();
        assert_eq!(
            shown,
            "One and two.\n\nThree.\n\nExamples:\n  a \\\n    --b\n  c\n\nExit status: 0 good, 1 bad."
        );
        assert_eq!(Epilogue::of(&shown), parts);
    }

    #[test]
    fn groups_have_their_headings_and_nothing_else_has() {
        let root = command();
        let heading = |words: [&str; 2], id: &str| {
            let command = root.find_subcommand(words[0]).unwrap();
            let command = command.find_subcommand(words[1]).unwrap_or(command);
            let option = command.get_arguments().find(|one| one.get_id() == id);
            option.unwrap().get_help_heading().map(str::to_owned)
        };
        assert_eq!(heading(["run", ""], "preview_hold").unwrap(), "Preview");
        assert_eq!(
            heading(["runs", "list"], "state").unwrap(),
            "Places on this host"
        );
        for (words, id) in [
            (["run", ""], "json"),
            (["runs", "events"], "follow"),
            (["artifacts", "verify"], "state"),
        ] {
            assert_eq!(heading(words, id), None, "{id}");
        }
    }

    /// An example that a terminal of 80 columns breaks cannot be copied.
    #[test]
    fn examples_fit() {
        let mut open = vec![command()];
        let mut seen = 0;
        while let Some(command) = open.pop() {
            let text = command.get_after_help().map(ToString::to_string);
            for line in Epilogue::of(&text.unwrap_or_default()).examples {
                seen += 1;
                let width = line.chars().count();
                assert!(width <= 79, "{}, {width}: {line}", command.get_name());
            }
            open.extend(command.get_subcommands().cloned());
        }
        assert!(seen > 50);
    }
}
