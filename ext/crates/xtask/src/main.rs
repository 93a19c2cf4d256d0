//! Development tasks of this workspace: `cargo xtask check|schemas|attacks|dist`.
//!
//! A task collects every finding before it fails, so that one run shows all of
//! them; each finding is one line that says where and what to do. Nothing here is
//! part of the product: no other crate may depend on this one.
#![forbid(unsafe_code)]

mod attacks;
mod check;
mod claims;
mod commands;
mod dependencies;
mod digest;
mod dist;
mod findings;
mod php;
mod schemas;
mod source_rules;
mod tree;

use findings::TaskError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask <task>

  check           formatting, clippy, dependency rule, source rules, claims, schemas, stub, PHP
  check --fast    the same without clippy and the stub test
  attacks         rewrites the table of attacks in SECURITY.md; --check only compares
  schemas         rewrites the contract digest in abilities/manifest.php
  dist            builds the plugin, dist/wp-codebox/ and dist/wp-codebox.zip, and checks its rules
  dist deb        the same, then the Debian package of what `make build` has built";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = workspace_root();
    let result = match words.as_slice() {
        ["check"] => check::run(&root, check::Extent::Full),
        ["check", "--fast"] => check::run(&root, check::Extent::Fast),
        ["attacks"] => attacks::rewrite(&root),
        ["attacks", "--check"] => attacks::check_only(&root),
        ["schemas"] => schemas::rewrite(&root),
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

/// The workspace this program was built from, three levels above its own manifest.
fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(3)
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
