//! Tests of the registry of WASI tools with a shell script in place of the runner.
//!
//! They start programs. A child holds the locks of its parent until it executes its program, so
//! they are in a process of their own: unit tests of this crate check that locks are free.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use wp_codebox_artifacts::sha256;
use wp_codebox_contracts::{CodedError, ErrorCode, WasiToolId};
use wp_codebox_supervisor::{RegisteredTool, WasiRegistryError, WasiRunner, WasiTools};

/// Answers `engine` with the content of the file `key` beside it, and copies the module on
/// `compile`; a module that begins with `bad` is refused, and one that begins with `slow` never
/// ends. `compile` fails if the registry is not locked.
const RUNNER: &str = r#"#!/bin/sh
case "$1" in
engine) cat "${0%/*}/key" ;;
compile)
    flock --nonblock "${7%/*}/.." true && exit 4
    if head -c 3 "$5" | grep -q bad; then
        echo '{"code":"wp_codebox_wasi_import_refused","message":"imports sock_open"}' >&2
        exit 125
    fi
    if head -c 4 "$5" | grep -q slow; then
        exec sleep 100000
    fi
    cp "$5" "$7" ;;
esac
"#;

struct Rig {
    directory: tempfile::TempDir,
    tools: WasiTools,
    runner: WasiRunner,
}

fn rig() -> Rig {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("wp-codebox-wasi");
    // A child process makes the program: if this process wrote it, a process that another thread
    // starts meanwhile would have it open for writing, and executing it would fail with ETXTBSY.
    let text = program.with_extension("txt");
    fs::write(&text, RUNNER).unwrap();
    let copy = Command::new("install")
        .arg("-m755")
        .args([&text, &program])
        .status();
    assert!(copy.unwrap().success());
    fs::write(directory.path().join("key"), "1.0-x86_64-aa\n").unwrap();
    let state = directory.path().join("state");
    fs::create_dir(&state).unwrap();
    Rig {
        tools: WasiTools::of(&state),
        runner: WasiRunner::beside(&directory.path().join("wp-codebox-launch")).unwrap(),
        directory,
    }
}

fn definition(id: &str, module: &[u8]) -> Value {
    json!({
        "schema": "wp-codebox/wasi-tool/v1",
        "id": id,
        "version": "1",
        "description": "Finds duplicate declarations.",
        "parameters": {"type": "object"},
        "module": {"sha256": sha256(module), "bytes": module.len()},
        "files": "none",
        "grants": [],
        "limits": {"fuel": 1, "memory_bytes": 65536, "wall_ms": 1, "output_bytes": 1},
    })
}

impl Rig {
    fn add(&self, id: &str, module: &[u8]) -> Result<RegisteredTool, WasiRegistryError> {
        let text = definition(id, module).to_string();
        self.tools.add(text.as_bytes(), module, &self.runner)
    }

    fn ids(&self) -> Vec<String> {
        let rows = self.tools.list().unwrap();
        rows.iter().map(|row| row.tool.id.to_string()).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("state/tools").join(name)
    }

    fn entries(&self) -> usize {
        fs::read_dir(self.path("")).unwrap().count()
    }
}

fn code(result: Result<RegisteredTool, WasiRegistryError>) -> ErrorCode {
    result.unwrap_err().code()
}

#[test]
fn added_tool_is_listed_with_digests_and_compiled_code_and_disappears_when_removed() {
    let rig = rig();
    assert!(rig.ids().is_empty());
    rig.add("css.lint", b"\0asm lint").unwrap();
    rig.add("css.fix", b"\0asm fix").unwrap();
    assert_eq!(rig.ids(), ["css.fix", "css.lint"]);
    let id = WasiToolId::new("css.lint").unwrap();
    let found = rig.tools.get(&id).unwrap();
    assert_eq!(found.definition_sha256, sha256(&found.definition));
    assert_eq!(found.module().unwrap(), b"\0asm lint");
    let compiled = found.compiled(&rig.runner).unwrap();
    assert!(compiled.ends_with(format!("{}-1.0-x86_64-aa.cwasm", sha256(b"\0asm lint"))));
    let modified = |path: &Path| path.metadata().unwrap().modified().unwrap();
    let before = modified(&compiled);
    assert_eq!(modified(&found.compiled(&rig.runner).unwrap()), before);
    rig.tools.remove(&id).unwrap();
    assert_eq!(rig.ids(), ["css.fix"]);
    assert_eq!(rig.entries(), 1);
    assert_eq!(
        rig.tools.get(&id).unwrap_err().code(),
        ErrorCode::WasiToolUnknown
    );
    assert_eq!(
        rig.tools.remove(&id).unwrap_err().code(),
        ErrorCode::WasiToolUnknown
    );
}

/// The key says which compiled code the runner can load (version and target of its engine). It is a
/// part of the file name of the compiled module.
#[test]
fn module_is_compiled_again_when_the_key_of_the_wasi_runner_changes_and_a_path_as_key_is_refused() {
    let rig = rig();
    let found = rig.add("css.lint", b"\0asm lint").unwrap();
    let before = found.compiled(&rig.runner).unwrap();
    fs::write(rig.directory.path().join("key"), "2.0-x86_64-bb").unwrap();
    let after = found.compiled(&rig.runner).unwrap();
    assert!(before != after && after.is_file());
    // A key that could name another directory.
    fs::write(rig.directory.path().join("key"), "../x").unwrap();
    assert_eq!(
        found.compiled(&rig.runner).unwrap_err().code(),
        ErrorCode::WasiRunnerFailed
    );
}

#[test]
fn refused_tool_leaves_nothing_in_the_registry() {
    let rig = rig();
    rig.add("css.lint", b"\0asm lint").unwrap();
    assert_eq!(
        code(rig.add("css.lint", b"\0asm lint")),
        ErrorCode::WasiToolTaken
    );
    assert_eq!(
        code(rig.add("workspace.read", b"\0asm lint")),
        ErrorCode::WasiToolTaken
    );
    assert_eq!(
        code(rig.add("css.bad", b"bad import")),
        ErrorCode::WasiImportRefused
    );
    let other = definition("css.fix", b"\0asm one").to_string();
    let added = rig.tools.add(other.as_bytes(), b"\0asm two", &rig.runner);
    assert_eq!(code(added), ErrorCode::WasiDigestMismatch);
    let mut path = definition("css.fix", b"\0asm fix");
    path["path"] = json!("/var/www/html");
    let added = rig
        .tools
        .add(path.to_string().as_bytes(), b"\0asm fix", &rig.runner);
    assert_eq!(code(added), ErrorCode::WasiDefinitionInvalid);
    assert_eq!((rig.ids(), rig.entries()), (vec!["css.lint".to_owned()], 1));
}

#[test]
fn changed_module_and_files_that_other_users_may_write_are_refused() {
    let rig = rig();
    let found = rig.add("css.lint", b"\0asm lint").unwrap();
    let module = rig.path("css.lint/module.wasm");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    assert!(found.module().is_ok());
    fs::write(&module, b"\0asm evil").unwrap();
    assert_eq!(
        found.module().unwrap_err().code(),
        ErrorCode::WasiDigestMismatch
    );
    fs::write(&module, b"\0asm lint").unwrap();
    assert!(found.module().is_ok());
    for path in [module.clone(), rig.path("css.lint")] {
        mode(&path, 0o770);
        assert_eq!(
            found.module().unwrap_err().code(),
            ErrorCode::WasiToolUntrusted
        );
        mode(&path, 0o700);
    }
    assert!(found.module().is_ok());
    fs::rename(&module, rig.path("css.lint/m")).unwrap();
    assert_eq!(
        found.module().unwrap_err().code(),
        ErrorCode::WasiToolUntrusted
    );
    symlink("m", &module).unwrap();
    assert_eq!(
        found.module().unwrap_err().code(),
        ErrorCode::WasiToolUntrusted
    );
    mode(&rig.path("css.lint/definition.json"), 0o666);
    assert_eq!(
        rig.tools.list().unwrap_err().code(),
        ErrorCode::WasiToolUntrusted
    );
}

#[test]
fn directory_with_the_definition_of_another_tool_is_refused() {
    let rig = rig();
    rig.add("css.lint", b"\0asm lint").unwrap();
    fs::rename(rig.path("css.lint"), rig.path("css.fix")).unwrap();
    let refused = rig.tools.list().unwrap_err();
    assert_eq!(refused.code(), ErrorCode::WasiToolUntrusted);
    fs::rename(rig.path("css.fix"), rig.path("css.lint")).unwrap();
    assert_eq!(rig.ids(), ["css.lint"]);
}

#[test]
fn missing_runner_is_an_error_that_says_how_to_install_it() {
    let directory = tempfile::tempdir().unwrap();
    let error = WasiRunner::beside(&directory.path().join("wp-codebox-launch")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::WasiRunnerMissing);
    assert!(error.body().hints[0].contains("wp-codebox-wasi"));
}

#[test]
fn tool_registry_that_is_a_file_is_an_error_and_a_missing_tool_registry_is_empty() {
    let rig = rig();
    assert!(rig.ids().is_empty());
    fs::write(rig.directory.path().join("state/tools"), "").unwrap();
    let error = rig.tools.list().unwrap_err();
    assert_eq!(error.code(), ErrorCode::WasiRegistryFailed);
}

/// The stand-in for the runner fails to compile unless the registry is locked. This test compiles
/// in a registration and in a run.
#[test]
fn registry_is_locked_while_a_module_is_compiled_and_free_afterwards() {
    let rig = rig();
    let found = rig.add("css.lint", b"\0asm lint").unwrap();
    fs::write(rig.directory.path().join("key"), "2.0-x86_64-bb").unwrap();
    found.compiled(&rig.runner).unwrap();
    let registry = fs::File::open(rig.path("")).unwrap();
    // Waits, because a program that another test starts has a copy of the lock until its exec.
    rustix::fs::flock(&registry, rustix::fs::FlockOperation::LockExclusive).unwrap();
}

/// Creates by hand what processes leave that are killed while they register, remove or compile a
/// tool.
#[test]
fn leftovers_of_killed_processes_and_modules_with_an_old_key_are_removed_by_the_next_add() {
    let rig = rig();
    rig.add("css.lint", b"\0asm lint").unwrap();
    let kept = ["definition.json", "module.wasm", "notes"];
    fs::write(rig.path("css.lint/notes"), "").unwrap();
    for directory in [".new-1-0", ".old-1-0"] {
        fs::create_dir(rig.path(directory)).unwrap();
        fs::write(rig.path(directory).join("module.wasm"), "").unwrap();
    }
    fs::write(rig.path("css.lint/.tmpAbC123"), "").unwrap();
    let old = rig.path(&format!("css.lint/{}-0.9.cwasm", sha256(b"\0asm lint")));
    fs::write(&old, "").unwrap();
    let list = |path: &Path| {
        let entries = fs::read_dir(path).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    // Control: listing the tools neither removes nor shows the leftovers.
    assert_eq!(rig.ids(), ["css.lint"]);
    assert_eq!(rig.entries(), 3);
    rig.add("css.fix", b"\0asm fix").unwrap();
    assert_eq!(list(&rig.path("")), ["css.fix", "css.lint"]);
    let current = format!("{}-1.0-x86_64-aa.cwasm", sha256(b"\0asm lint"));
    let mut expected = kept.map(str::to_owned).to_vec();
    expected.push(current);
    expected.sort();
    assert_eq!(list(&rig.path("css.lint")), expected);
}

#[test]
fn compile_that_does_not_end_is_killed_and_registers_nothing() {
    let mut rig = rig();
    rig.runner = rig
        .runner
        .clone()
        .with_compile_time(Duration::from_millis(500));
    // The call returns only when the process is gone.
    let error = rig.add("css.slow", b"slow module").unwrap_err();
    assert_eq!(error.code(), ErrorCode::WasiDeadline);
    assert!(error.to_string().contains("wp-codebox-wasi compile"));
    assert_eq!(rig.entries(), 0);
    // Positive control: the same runner with a module that it compiles.
    rig.runner = WasiRunner::beside(&rig.directory.path().join("wp-codebox-launch")).unwrap();
    rig.add("css.lint", b"\0asm lint").unwrap();
}
