//! Development tasks of this workspace: `cargo xtask check|structure|generate|dist`.
//!
//! A task collects every finding before it fails, so that one run shows all of
//! them; each finding is one line that says where and what to do. Nothing here is
//! part of the product: no other crate may depend on this one.
#![forbid(unsafe_code)]

mod abilities;
mod attacks;
mod check;
mod claims;
mod commands;
mod dependencies;
mod digest;
mod dist;
mod error_codes;
mod findings;
mod generate;
mod generated;
mod links;
mod php;
mod schemas;
mod source_rules;
mod structure;
mod task;
mod tree;

use findings::TaskError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <task>

  check           formatting, clippy, dependency rule, source rules, circles, claims, links,
                  schemas, generated files, stub, PHP
  check --fast    the same without clippy and the stub test
  structure       lines, files, arrows and circles of each crate; --arrows CRATE prints its arrows,
                  --write-circles rewrites the list of known circles
  generate        rewrites the generated files; --check only compares
  dist            builds the plugin, dist/wp-codebox/ and dist/codebox.zip, and checks its rules
  dist deb        the same, then the Debian package of what `make build` has built";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let directory = std::env::current_dir().unwrap_or_default();
    let Some(root) = workspace_root(manifest.as_deref(), &directory) else {
        eprintln!(
            "xtask: {} is in no checkout of this workspace; run cargo xtask in one",
            directory.display()
        );
        return ExitCode::FAILURE;
    };
    let result = match words.as_slice() {
        ["check"] => check::run(&root, check::Extent::Full),
        ["check", "--fast"] => check::run(&root, check::Extent::Fast),
        ["structure"] => structure::print(&root),
        ["structure", "--arrows", name] => structure::print_arrows(&root, name),
        ["structure", "--write-circles"] => structure::rewrite(&root),
        ["generate"] => generate::rewrite(&root),
        ["generate", "--check"] => generate::check(&root).and_then(findings::settle),
        ["dist"] => dist::build(&root),
        ["dist", "deb"] => dist::build(&root).and_then(|()| dist::debian(&root)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
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

/// The checkout that the caller works in.
///
/// Found when the program runs: checkouts that share CARGO_TARGET_DIR share this program, so a
/// path compiled into it can be that of another checkout. Cargo names the manifest to what it
/// runs; without cargo, the working directory says it.
fn workspace_root(manifest: Option<&Path>, directory: &Path) -> Option<PathBuf> {
    manifest
        .and_then(|manifest| manifest.ancestors().nth(3))
        .into_iter()
        .chain(directory.ancestors())
        .find(|root| root.join("ext/crates/xtask/Cargo.toml").is_file())
        .map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::workspace_root;
    use std::fs;

    #[test]
    fn the_root_is_that_of_the_caller() {
        let place = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| place.path().join(name));
        for root in [&a, &b] {
            fs::create_dir_all(root.join("ext/crates/xtask/src")).unwrap();
            fs::write(root.join("ext/crates/xtask/Cargo.toml"), "").unwrap();
        }
        let crate_of_b = b.join("ext/crates/xtask");
        let inside_b = b.join("ext/crates/xtask/src");
        assert_eq!(workspace_root(Some(&crate_of_b), &a), Some(b.clone()));
        assert_eq!(workspace_root(None, &inside_b), Some(b.clone()));
        assert_eq!(workspace_root(Some(place.path()), &a), Some(a));
        assert_eq!(workspace_root(None, place.path()), None);
    }
}
