//! Development tasks of this workspace: `cargo xtask SUBCOMMAND`; `cargo xtask help` lists them.
//!
//! A task collects all findings before it fails, so one run shows every problem. Each finding is
//! one line with the location and what to do. No other crate may depend on this one.
#![forbid(unsafe_code)]

mod abilities;
mod attacks;
mod changed;
mod check;
mod claims;
mod commands;
mod compatibility;
mod dependencies;
mod digest;
mod dist;
mod error_codes;
mod findings;
mod generate;
mod generated;
mod hosts;
mod kernel_memory;
mod links;
mod php;
mod request_fields;
mod schemas;
mod site_content;
mod source_rules;
mod structure;
mod task;
mod tree;

use check::Extent;
use findings::TaskError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Subcommands with their options; the text says what each does and when to use it.
const SUBCOMMANDS: &[(&str, &str)] = &[
    ("help", "Print this list; the same as no subcommand at all."),
    (
        "check",
        "Run all rules, clippy and the stub test. Use before a merge, after `make build`.",
    ),
    (
        "check --fast",
        "Run the rules that compile nothing, links included. Use before each commit.",
    ),
    (
        "check --changed",
        "Run the rules, and lints and unit tests of the crates with changed files. Use while you work.",
    ),
    (
        "generate",
        "Rewrite the generated files. Use after a change of schemas, abilities or error codes.",
    ),
    (
        "generate --all",
        "Do the same, and record the golden files, which compiles their crates. Use before a commit that changes output.",
    ),
    (
        "generate --check",
        "List outdated generated files. Use to find out whether `generate` is needed.",
    ),
    (
        "structure",
        "Print lines, files, arrows and cycles of each crate. Use before you split a module.",
    ),
    (
        "structure --arrows CRATE",
        "Print which file of a crate uses which. Use to find the cause of a cycle.",
    ),
    (
        "structure --write-circles",
        "Rewrite the list of known cycles. Use after you removed a cycle.",
    ),
    (
        "dist",
        "Build and check the plugin: dist/wp-codebox/, dist/codebox.zip and dist/codebox-browser.zip. Use for a release.",
    ),
    (
        "dist plugin",
        "Build and check dist/wp-codebox/ only, with the engine of browser sandboxes if it is built. Use for a demo.",
    ),
    (
        "dist deb",
        "Do the same as `dist`, then build the Debian packages. Use after `make build`.",
    ),
];

/// A subcommand with its options, parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task<'a> {
    Help,
    Check(Extent),
    Generate,
    GenerateAll,
    CompareGenerated,
    Structure,
    Arrows(&'a str),
    WriteCircles,
    Dist,
    DistPlugin,
    DistDeb,
}

/// Parses the command line; `None` for an unknown subcommand or option.
fn parse<'a>(words: &[&'a str]) -> Option<Task<'a>> {
    Some(match words {
        [] | ["help" | "--help" | "-h"] => Task::Help,
        ["check"] => Task::Check(Extent::Full),
        ["check", "--fast"] => Task::Check(Extent::Fast),
        ["check", "--changed"] => Task::Check(Extent::Changed),
        ["generate"] => Task::Generate,
        ["generate", "--all"] => Task::GenerateAll,
        ["generate", "--check"] => Task::CompareGenerated,
        ["structure"] => Task::Structure,
        ["structure", "--arrows", name] => Task::Arrows(name),
        ["structure", "--write-circles"] => Task::WriteCircles,
        ["dist"] => Task::Dist,
        ["dist", "plugin"] => Task::DistPlugin,
        ["dist", "deb"] => Task::DistDeb,
        _ => return None,
    })
}

/// Returns the list of subcommands, one line each.
fn usage() -> String {
    let width = SUBCOMMANDS.iter().map(|(name, _)| name.len()).max();
    let width = width.unwrap_or_default();
    let mut text = "usage: cargo xtask SUBCOMMAND\n\n".to_owned();
    for (name, about) in SUBCOMMANDS {
        text.push_str(&format!("  {name:width$}  {about}\n"));
    }
    text
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let task = match parse(&words) {
        Some(Task::Help) => {
            print!("{}", usage());
            return ExitCode::SUCCESS;
        }
        Some(task) => task,
        None => {
            eprint!(
                "xtask: unknown subcommand: {}\n{}",
                words.join(" "),
                usage()
            );
            return ExitCode::from(2);
        }
    };
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let directory = std::env::current_dir().unwrap_or_default();
    let Some(root) = workspace_root(manifest.as_deref(), &directory) else {
        eprintln!(
            "xtask: {} is not in a checkout of this workspace; change to a checkout and run cargo xtask there",
            directory.display()
        );
        return ExitCode::FAILURE;
    };
    match run(task, &root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(TaskError::Findings(findings)) => {
            for finding in &findings {
                eprintln!("error: {finding}");
            }
            eprintln!("xtask: {} finding(s)", findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task<'_>, root: &Path) -> Result<(), TaskError> {
    match task {
        Task::Help => Ok(()),
        Task::Check(extent) => check::run(root, extent),
        Task::Generate => generate::rewrite(root),
        Task::GenerateAll => generate::rewrite_all(root),
        Task::CompareGenerated => generate::check(root).and_then(findings::settle),
        Task::Structure => structure::print(root),
        Task::Arrows(name) => structure::print_arrows(root, name),
        Task::WriteCircles => structure::rewrite(root),
        Task::Dist => dist::build(root),
        Task::DistPlugin => dist::plugin(root),
        Task::DistDeb => dist::build(root).and_then(|()| dist::debian(root)),
    }
}

/// Returns the root of the checkout that the caller works in.
///
/// The root is determined at run time: checkouts with the same CARGO_TARGET_DIR share this
/// program, so a path compiled into it may belong to another checkout. Cargo sets the directory
/// of the manifest; without cargo, the working directory determines the checkout.
fn workspace_root(manifest: Option<&Path>, directory: &Path) -> Option<PathBuf> {
    manifest
        .and_then(|manifest| manifest.ancestors().nth(3))
        .into_iter()
        .chain(directory.ancestors())
        .find(|root| root.join("ext/tools/xtask/Cargo.toml").is_file())
        .map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::{SUBCOMMANDS, Task, parse, usage, workspace_root};
    use std::fs;

    #[test]
    fn every_xtask_subcommand_is_parsed_and_has_one_line_in_the_usage_text() {
        assert_eq!(parse(&[]), Some(Task::Help));
        let text = usage();
        let mut tasks = Vec::new();
        for (name, about) in SUBCOMMANDS {
            let words: Vec<&str> = name.split(' ').collect();
            let task = parse(&words).unwrap_or_else(|| panic!("{name} is listed, but not parsed"));
            assert!(!tasks.contains(&task), "{name} is the same as another one");
            tasks.push(task);
            let line =
                |line: &&str| line.starts_with(&format!("  {name} ")) && line.ends_with(about);
            assert_eq!(text.lines().filter(line).count(), 1, "{name}");
        }
    }

    #[test]
    fn unknown_subcommands_and_options_are_not_parsed() {
        for words in [
            &["chekc"][..],
            &["check", "--slow"],
            &["structure", "--arrows"],
            &[""],
        ] {
            assert_eq!(parse(words), None, "{words:?}");
        }
    }

    #[test]
    fn workspace_root_is_derived_from_the_manifest_else_from_the_current_directory() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| directory.path().join(name));
        for root in [&a, &b] {
            fs::create_dir_all(root.join("ext/tools/xtask/src")).unwrap();
            fs::write(root.join("ext/tools/xtask/Cargo.toml"), "").unwrap();
        }
        let crate_of_b = b.join("ext/tools/xtask");
        let inside_b = b.join("ext/tools/xtask/src");
        assert_eq!(workspace_root(Some(&crate_of_b), &a), Some(b.clone()));
        assert_eq!(workspace_root(None, &inside_b), Some(b.clone()));
        assert_eq!(workspace_root(Some(directory.path()), &a), Some(a));
        assert_eq!(workspace_root(None, directory.path()), None);
    }
}
