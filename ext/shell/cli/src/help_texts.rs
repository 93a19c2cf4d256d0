//! Checks of the help texts, for the unit tests of both programs.

use clap::Command;

/// Checks the help texts of all visible commands and returns how many there are. Examples must fit 80
/// columns: a wrapped example cannot be copied.
pub fn check(mut root: Command) -> usize {
    root.build();
    let texts = texts(&root);
    for (name, text) in &texts {
        assert!(text.contains("Examples:\n"), "{name} shows no example");
        assert!(
            text.contains("Exit status: "),
            "{name} does not document its exit status"
        );
        for line in text.lines().filter(|line| line.starts_with(' ')) {
            assert!(line.chars().count() <= 79, "{name}: {line}");
        }
    }
    texts.len()
}

/// Returns the help texts of a command and its visible subcommands.
fn texts(command: &Command) -> Vec<(String, String)> {
    let name = command.get_bin_name().unwrap_or_default().to_owned();
    assert!(command.get_about().is_some(), "{name} has no description");
    for argument in command.get_arguments() {
        let told = argument.get_help().is_some() || argument.is_hide_set();
        assert!(told, "{name}: {} has no help", argument.get_id());
    }
    let after = command.get_after_help().map(ToString::to_string);
    let below = command.get_subcommands().filter(|c| !c.is_hide_set());
    let below: Vec<_> = below.flat_map(texts).collect();
    if below.is_empty() || after.is_some() {
        return [(name, after.unwrap_or_default())]
            .into_iter()
            .chain(below)
            .collect();
    }
    below
}
