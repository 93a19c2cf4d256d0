//! Compares schemas, help texts, manual pages and completions with recorded (golden) files.
#![allow(clippy::unwrap_used, clippy::panic)] // A panic in a helper function fails the test.

#[path = "../../../../tests/golden/compare.rs"]
mod golden;

use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Commands for internal use, which no help text lists.
const HIDDEN: [&str; 4] = ["detach", "keep-cgroups", "supervise", "change-site"];

/// Commands that accept an unknown option, because they pass it to a program in a sandbox.
const PASS_ON: [&str; 2] = ["wp", "php"];

/// Runs the program that has all commands with its output in pipes, a width of 80 columns and no settings of this host.
fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wp-codebox-platform"))
        .arg0("wp-codebox")
        .args(args)
        .env_clear()
        .env("COLUMNS", "80")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Returns the commands that a help text lists.
fn listed(help: &str) -> Vec<&str> {
    let rows = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    rows.take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.strip_prefix("  ")
                .filter(|rest| !rest.starts_with(' '))
        })
        .filter_map(|row| row.split_whitespace().next())
        .collect()
}

/// Returns the commands that the manual page of the whole program lists.
fn commands() -> Vec<String> {
    let page = run(&["man"]);
    let rows = text(&page.stdout).lines();
    rows.filter_map(|row| row.strip_prefix("wp\\-codebox\\-")?.strip_suffix("(1)"))
        .map(|name| name.replace('\\', ""))
        .collect()
}

/// Returns a help text in which each option that an earlier text describes in the same words has its
/// first line only.
fn shortened(help: &str, described: &mut BTreeSet<String>) -> String {
    let mut short = String::new();
    let mut lines = help.lines().peekable();
    while let Some(first) = lines.next() {
        let mut option = vec![first];
        while let Some(line) = lines.next_if(|line| line.starts_with("          ")) {
            option.push(line);
        }
        let is_option = first.trim_start().starts_with('-') && option.len() > 1;
        if is_option && !described.insert(option.join("\n")) {
            writeln!(short, "{first}  (as above)").unwrap();
        } else {
            writeln!(short, "{}", option.join("\n")).unwrap();
        }
    }
    short
}

/// Appends the help texts of a command and its subcommands, and their errors for an unknown flag.
fn walk(words: &[&str], described: &mut BTreeSet<String>, all: &mut String) {
    let help = run(&[words, &["--help"]].concat());
    let shown = text(&help.stdout);
    writeln!(
        all,
        "==== wp-codebox {} --help: {:?}\n{shown}{}",
        words.join(" "),
        help.status.code(),
        text(&help.stderr),
        shown = shortened(shown, described),
    )
    .unwrap();
    if !matches!(words, [word] if PASS_ON.contains(word)) {
        let refused = run(&[words, &["--no-such-flag"]].concat());
        writeln!(
            all,
            "---- --no-such-flag: {:?}\n{}{}",
            refused.status.code(),
            text(&refused.stdout),
            text(&refused.stderr),
        )
        .unwrap();
    }
    let by_name = run(&[&["help"], words].concat());
    assert_eq!(shown, text(&by_name.stdout));
    for name in listed(shown) {
        walk(&[words, &[name]].concat(), described, all);
    }
}

fn sha256_line(list: &mut String, bytes: &[u8], name: &str) {
    for byte in Sha256::digest(bytes) {
        write!(list, "{byte:02x}").unwrap();
    }
    writeln!(list, " {name}").unwrap();
}

/// Returns the SHA-256 of each file in a directory, sorted by file name.
fn sha256_list(directory: &Path) -> String {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let mut list = String::new();
    for path in files {
        let name = path.file_name().unwrap().to_str().unwrap();
        sha256_line(&mut list, &fs::read(&path).unwrap(), name);
    }
    list
}

#[test]
fn ability_schemas_equal_the_recorded_sha256_list() {
    let mut list = String::new();
    for (name, text) in wp_codebox_schemas::all() {
        let file = format!("{name}.v1.schema.json");
        sha256_line(&mut list, text.as_bytes(), &file);
    }
    golden::compare("schemas.sha256", &list);
}

#[test]
fn help_and_exit_status_of_commands_equal_the_recorded_files() {
    let mut all = String::new();
    let mut described = BTreeSet::new();
    walk(&[], &mut described, &mut all);
    let commands = commands();
    assert!(commands.len() > 40, "{commands:?}");
    for name in commands.iter().map(String::as_str).chain(HIDDEN) {
        walk(&[name], &mut described, &mut all);
    }
    golden::compare("help.txt", &all);
}

#[test]
fn manual_pages_and_completions_equal_the_recorded_files() {
    let pages = tempfile::tempdir().unwrap();
    let written = run(&["man", "--directory", pages.path().to_str().unwrap()]);
    assert_eq!(written.status.code(), Some(0));
    let mut list = sha256_list(pages.path());
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(&["completion", shell]);
        sha256_line(&mut list, &script.stdout, &format!("completion {shell}"));
    }
    golden::compare("manual.sha256", &list);
}
