//! `cargo xtask check`: runs every rule and prints all findings at the end.

use crate::findings::{TaskError, collected, settle};
use crate::{
    changed, claims, commands, dependencies, generate, kernel_memory, links, php, schemas,
    source_rules, structure,
};
use std::path::Path;

/// Which rules a check runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All rules.
    Full,
    /// All rules that need no compiler.
    Fast,
    /// The rules, and lints and unit tests of the crates, that the files can break that differ from
    /// the last commit. Crates that use these crates are not compiled.
    Changed,
}

const CLIPPY: &[&str] = &[
    "clippy",
    "--quiet",
    "--keep-going",
    "--workspace",
    "--all-targets",
    "--features",
    "wp-codebox-fuzz/targets",
    "--",
    "-D",
    "warnings",
];

/// Compiles all tests. With clippy-driver as the compiler this applies the same lints as [`CLIPPY`].
/// It leaves out the fuzz targets, which the suite `fuzz` compiles.
const COMPILED_BY_CLIPPY: &[&str] = &[
    "test",
    "--quiet",
    "--workspace",
    "--all-targets",
    "--no-run",
];

/// Returns the cargo command that applies the lints. Where the environment sets clippy-driver as
/// the compiler, this is the build of the tests, so that their dependencies are not also checked.
fn clippy() -> &'static [&'static str] {
    if std::env::var_os("RUSTC_WORKSPACE_WRAPPER").is_some_and(|name| name == "clippy-driver") {
        COMPILED_BY_CLIPPY
    } else {
        CLIPPY
    }
}

/// Runs the rules, cheapest first.
pub fn run(root: &Path, extent: Extent) -> Result<(), TaskError> {
    let cargo = commands::cargo();
    let mut findings = Vec::new();
    let mut section = |name: &str, found: Vec<String>| {
        println!(
            "{name}: {}",
            if found.is_empty() {
                "ok".to_owned()
            } else {
                format!("{} finding(s)", found.len())
            }
        );
        // A generator that reads a wrong schema has the same finding as the rule for schemas.
        for finding in found {
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    };

    section(
        "format",
        tool(
            root,
            &cargo,
            &["fmt", "--all", "--check"],
            "run: cargo fmt --all",
        )?,
    );
    // A workspace of its own, which `--all` does not reach.
    section(
        "format of ext/tools/wasi",
        tool(
            root,
            &cargo,
            &[
                "fmt",
                "--check",
                "--manifest-path",
                "ext/tools/wasi/Cargo.toml",
            ],
            "run: cargo fmt --manifest-path ext/tools/wasi/Cargo.toml",
        )?,
    );
    section("dependency rule", collected(dependencies::check(root))?);
    section("source rules", source_rules::check(root)?);
    section("circles", structure::check(root)?);
    section("claims", claims::check(root)?);
    section("links", links::check(root)?);
    section("schemas", schemas::check(root)?);
    section("kernel memory", kernel_memory::check(root)?);
    section("generated files", collected(generate::check(root))?);
    if extent == Extent::Changed {
        let changed = changed::read(root)?;
        section("php", php::check_only(root, &changed.files)?);
        let packages = changed.packages.iter().flat_map(|name| ["-p", name]);
        let packages: Vec<&str> = packages.collect();
        if !packages.is_empty() {
            let run = |words: &[&[&str]], advice| tool(root, &cargo, &words.concat(), advice);
            let lints: &[&[&str]] = &[
                &[
                    "clippy",
                    "--quiet",
                    "--keep-going",
                    "--no-deps",
                    "--all-targets",
                ],
                &packages,
                &["--", "-D", "warnings"],
            ];
            section("clippy", run(lints, "see the warnings above")?);
            let tests: &[&[&str]] = &[
                &["test", "--quiet", "--no-fail-fast", "--lib", "--bins"],
                &packages,
            ];
            section("unit tests", run(tests, "see the failures above")?);
        }
        return settle(findings);
    }
    // PHP checks and clippy run in parallel, because each uses one processor most of the time.
    let (php, clippy) = std::thread::scope(|scope| {
        let php = scope.spawn(|| php::check(root));
        let clippy = (extent == Extent::Full)
            .then(|| tool(root, &cargo, clippy(), "see the warnings above"))
            .transpose();
        let php = php
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (php, clippy)
    });
    section("php", php?);
    if let Some(clippy) = clippy? {
        section("clippy", clippy);
        section("stub", stub(root)?);
    }
    settle(findings)
}

fn tool(
    root: &Path,
    program: &str,
    arguments: &[&str],
    advice: &str,
) -> Result<Vec<String>, TaskError> {
    Ok(if commands::shown(root, program, arguments)? {
        Vec::new()
    } else {
        vec![format!(
            "cargo {} failed; {advice}",
            arguments.first().copied().unwrap_or_default()
        )]
    })
}

/// Compares the PHP stub with the loaded extension; the test suite of the extension implements
/// this comparison.
fn stub(root: &Path) -> Result<Vec<String>, TaskError> {
    let script = root.join("tests/phpt/run").display().to_string();
    let test = root
        .join("tests/phpt/02_stub_parity.phpt")
        .display()
        .to_string();
    let answer = commands::quiet(root, &script, &[&test])?;
    Ok(if answer.success {
        Vec::new()
    } else {
        vec![format!(
            "ext/php/stubs/wp_codebox.stub.php differs from the extension:\n{}",
            answer.said.trim()
        )]
    })
}
