//! Parses the command line, selects the output format, and reports wrong usage.

use super::output::Output;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};
use std::ffi::OsString;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Returns the parsed arguments and the output, or the exit status if help or an error was printed.
pub(super) fn read(
    root: &mut Command,
    args: &[OsString],
) -> Result<(ArgMatches, Output), ExitCode> {
    let args = &json_flag(root, goal_first(root, args))[..];
    match root.try_get_matches_from_mut(args) {
        Ok(matches) => {
            let output = Output::new(asks_for_json(&matches));
            Ok((matches, output))
        }
        Err(error) => Err(refused(root, args, error)),
    }
}

/// Prints help or the error of a command line and returns the exit status.
pub(super) fn refused(root: &Command, args: &[OsString], error: clap::Error) -> ExitCode {
    let error = with_goal_tip(root, args, without_hidden(root, args, error));
    if error.use_stderr() && speaks_of_json(args) {
        let (command, body) = refusal(root, args, &error);
        return Output::new(true).failure(&command, &body);
    }
    let printed = error.print();
    match (error.kind(), printed) {
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, Ok(())) => ExitCode::SUCCESS,
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, Err(failed)) => {
            Output::lost(&failed);
            super::output::settled(ExitCode::SUCCESS)
        }
        _ => ExitCode::from(1),
    }
}

/// Options that choose an agent, by which a goal of one word is recognised.
const AGENT_OPTIONS: [&str; 3] = ["--agent", "--agent-command", "--model"];

/// Expands a goal as the first argument, `wp-codebox "Fix the test" …`, to `run --of-project --goal
/// "Fix the test" …`. A first argument with a space is a goal; a word that is no command is one if
/// an agent is chosen.
fn goal_first(root: &Command, args: &[OsString]) -> Vec<OsString> {
    let goal = args.get(1).and_then(|first| first.to_str());
    let chooses_agent = || {
        let mut rest = args.iter().skip(2).filter_map(|arg| arg.to_str());
        rest.any(|arg| AGENT_OPTIONS.contains(&arg.split('=').next().unwrap_or_default()))
    };
    let is_goal = |goal: &str| {
        !goal.starts_with('-')
            && (goal.trim().contains(' ')
                || root.find_subcommand(goal).is_none() && chooses_agent())
    };
    match goal {
        Some(goal) if is_goal(goal) => {
            let program = args.iter().take(1).cloned();
            let run = ["run", "--of-project", "--goal", goal].map(OsString::from);
            program
                .chain(run)
                .chain(args.iter().skip(2).cloned())
                .collect()
        }
        Some(_) | None => args.to_vec(),
    }
}

/// Replaces `--format json` and `--format=json` by `--json` for commands that have only the latter.
/// Arguments of a program in a sandbox stay as they are.
fn json_flag(root: &Command, args: Vec<OsString>) -> Vec<OsString> {
    let at = selected(root, &args);
    let has = |name: &str| at.get_arguments().any(|arg| arg.get_long() == Some(name));
    let passes_on = at
        .get_arguments()
        .any(|arg| arg.is_trailing_var_arg_set() || arg.is_allow_hyphen_values_set());
    if !has("json") || has("format") || passes_on {
        return args;
    }
    let mut replaced = Vec::with_capacity(args.len());
    let mut rest = args.into_iter().peekable();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            replaced.push(arg);
            replaced.extend(rest);
            return replaced;
        }
        let pair = arg == "--format" && rest.peek().is_some_and(|next| next == "json");
        if pair {
            rest.next();
        }
        match pair || arg == "--format=json" {
            true => replaced.push("--json".into()),
            false => replaced.push(arg),
        }
    }
    replaced
}

/// Adds a tip to the error of an unknown command: the word may be meant as a goal, even if clap
/// suggests a similar command, such as `doctor` for `Refactor`.
fn with_goal_tip(root: &Command, args: &[OsString], mut error: clap::Error) -> clap::Error {
    let word = args.get(1).and_then(|word| word.to_str());
    let (ErrorKind::InvalidSubcommand, Some(word)) = (error.kind(), word) else {
        return error;
    };
    if chosen(root, args) == "cli" {
        let tip = format!("a goal of one word needs its option: wp-codebox run --goal {word:?}");
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    }
    error
}

/// Removes hidden commands from clap's suggestions: only other processes of this product call them.
fn without_hidden(root: &Command, args: &[OsString], mut error: clap::Error) -> clap::Error {
    let mut names = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names,
        Some(ContextValue::String(name)) => vec![name],
        _ => return error,
    };
    let at = selected(root, args);
    names.retain(|name| at.find_subcommand(name).is_some_and(|c| !c.is_hide_set()));
    if !names.is_empty() {
        let names = ContextValue::Strings(names);
        error.insert(ContextKind::SuggestedSubcommand, names);
    }
    error
}

/// Prints the `--help` text of a command.
pub(super) fn help(mut root: Command, command: &[String]) -> ExitCode {
    let words = command.iter().map(OsString::from);
    let args: Vec<_> = std::env::args_os().take(1).chain(words).collect();
    read(&mut root, &[args, vec!["--help".into()]].concat())
        .err()
        .unwrap_or(ExitCode::SUCCESS)
}

/// Returns whether the chosen command was given its option `--json`. A `--json` after `--` does not
/// count: it belongs to the program in the sandbox.
fn asks_for_json(matches: &ArgMatches) -> bool {
    let mut at = matches;
    while let Some((_, below)) = at.subcommand() {
        at = below;
    }
    matches!(at.try_get_one::<bool>("json"), Ok(Some(true)))
}

/// Returns whether `--json` or `--format json` was given before any `--`, for arguments that cannot
/// be parsed.
fn speaks_of_json(args: &[OsString]) -> bool {
    let own: Vec<&OsString> = args.iter().take_while(|arg| *arg != "--").collect();
    own.iter()
        .any(|arg| *arg == "--json" || *arg == "--format=json")
        || own
            .windows(2)
            .any(|pair| pair[0] == "--format" && pair[1] == "json")
}

/// Returns the name of the command on an invalid command line, and the error with clap's hints.
fn refusal(root: &Command, args: &[OsString], error: &clap::Error) -> (String, ErrorBody) {
    let command = chosen(root, args);
    let text = error.render().to_string();
    let mut parts = text.split("\n\n").map(one_line);
    let message = parts.next().unwrap_or_default();
    let message = message.trim_start_matches("error: ");
    let tips: Vec<String> = parts
        .filter_map(|part| part.strip_prefix("tip: ").map(str::to_owned))
        .flat_map(|tips| tips.split(" tip: ").map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let mut body = ErrorBody::new(ErrorCode::InputInvalid, message);
    for tip in tips {
        body = body.hint(tip);
    }
    let of = match command.as_str() {
        "cli" => String::new(),
        command => format!(" {command}"),
    };
    (command, body.hint(format!("wp-codebox{of} --help")))
}

fn one_line(part: &str) -> String {
    part.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the command that the first words select, or `root` if they select none.
fn selected<'a>(root: &'a Command, args: &[OsString]) -> &'a Command {
    let mut at = root;
    for word in args.iter().skip(1) {
        match at.find_subcommand(word) {
            Some(below) => at = below,
            None => break,
        }
    }
    at
}

/// Returns the name of the command that the first words select, such as `runs list`; `cli` if they
/// select none.
fn chosen(root: &Command, args: &[OsString]) -> String {
    let (mut at, mut names) = (root, Vec::new());
    for word in args.iter().skip(1) {
        let Some(below) = at.find_subcommand(word) else {
            break;
        };
        names.push(below.get_name());
        at = below;
    }
    match names.is_empty() {
        true => "cli".to_owned(),
        false => names.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HandedOver;
    use crate::args::Cli;
    use clap::CommandFactory;

    fn root() -> Command {
        Cli::<HandedOver>::command()
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn first_word_is_a_goal_if_it_has_a_space_or_is_no_command_and_an_agent_is_chosen() {
        let is_goal = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            goal_first(&root(), &args) != args
        };
        assert!(is_goal(&["wp-codebox", "fix it"]));
        assert!(is_goal(&[
            "wp-codebox",
            "fix",
            "--agent-command",
            "php a.php"
        ]));
        assert!(is_goal(&["wp-codebox", "fix", "--check", "x", "--model=m"]));
        assert!(!is_goal(&["wp-codebox", "fix"]));
        assert!(!is_goal(&["wp-codebox", "fix", "--check", "x"]));
        assert!(!is_goal(&["wp-codebox", "again", "--agent-command", "x"]));
        assert!(!is_goal(&["wp-codebox", "--agent-command", "x"]));
    }

    #[test]
    fn json_flag_after_double_dash_belongs_to_the_program_in_the_sandbox() {
        let json =
            |line: &str| read(&mut root(), &words(line)).is_ok_and(|(_, output)| output.is_json());
        assert!(json("wp-codebox runs list --json"));
        assert!(!json("wp-codebox runs list"));
        assert!(json("wp-codebox exec --json run_1 -- wp option list"));
        for theirs in ["--json", "--format=json"] {
            assert!(!json(&format!(
                "wp-codebox exec run_1 -- wp option list {theirs}"
            )));
        }
    }

    #[test]
    fn option_format_json_becomes_json_except_among_the_arguments_of_a_program_in_the_sandbox() {
        let shown = |line: &str| json_flag(&root(), words(line)).join(std::ffi::OsStr::new(" "));
        assert_eq!(
            shown("wp-codebox runs list --format json"),
            "wp-codebox runs list --json"
        );
        assert_eq!(
            shown("wp-codebox runs list --format=json"),
            "wp-codebox runs list --json"
        );
        for same in [
            "wp-codebox runs events run_1 --format json-lines",
            "wp-codebox wp option list --format=json",
            "wp-codebox exec run_1 -- wp option list --format=json",
            "wp-codebox runs list --format yaml",
        ] {
            assert_eq!(shown(same), same);
        }
    }

    #[test]
    fn usage_error_names_the_subcommand_and_suggests_the_correct_flag_or_command() {
        let refused = |line: &str| {
            let args = words(line);
            refusal(
                &root(),
                &args,
                &root().try_get_matches_from(&args).unwrap_err(),
            )
        };
        let (command, body) = refused("wp-codebox recipe validate --json");
        assert_eq!(command, "recipe validate");
        assert!(
            body.message.ends_with("--recipe <FILE>"),
            "{}",
            body.message
        );
        assert_eq!(body.hints, ["wp-codebox recipe validate --help"]);
        let (command, body) = refused("wp-codebox run --moutn x --json");
        assert_eq!(command, "run");
        assert!(body.hints[0].contains("'--mount'"), "{:?}", body.hints);
        let (command, body) = refused("wp-codebox runn --json");
        assert_eq!(command, "cli");
        assert!(body.message.contains("'runn'") && body.hints[0].contains("'run'"));
    }

    /// Checks the suggestions for a misspelt name of every command below `group`. Returns how many
    /// commands are visible and how many are hidden.
    fn check_suggestions(group: &Command, path: &[OsString]) -> (usize, usize) {
        let (mut visible, mut hidden) = (0, 0);
        // `sync` has the id of a run before its commands.
        let given = group.get_positionals().map(|_| OsString::from("run_1"));
        let path = &[path, &given.collect::<Vec<_>>()].concat()[..];
        for command in group.get_subcommands() {
            let name = command.get_name();
            let misspelt = [path, &[format!("{name}x").into()]].concat();
            let error = root().try_get_matches_from(&misspelt).unwrap_err();
            let text = without_hidden(&root(), &misspelt, error)
                .render()
                .to_string();
            assert_eq!(
                text.contains(&format!("'{name}'")),
                !command.is_hide_set(),
                "{misspelt:?}: {text}"
            );
            match command.is_hide_set() {
                true => hidden += 1,
                false => visible += 1,
            }
            let below = check_suggestions(command, &[path, &[name.into()]].concat());
            visible += below.0;
            hidden += below.1;
        }
        (visible, hidden)
    }

    #[test]
    fn misspelt_command_of_any_group_suggests_visible_commands_and_no_hidden_one() {
        let (visible, hidden) = check_suggestions(&root(), &words("wp-codebox"));
        assert!(visible > 50 && hidden >= 4, "{visible} {hidden}");
    }
}
