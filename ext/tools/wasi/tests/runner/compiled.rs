//! Compiled code: written atomically, loaded only from a file that no other user could have written.

use crate::fixture::{RUNNER, Tool, command};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::process::Command;

fn tool(status: u8) -> Tool {
    let tool = Tool::wat(&command(&format!("(call $exit (i32.const {status}))")));
    tool.compile().ended(0);
    tool
}

fn run(tool: &Tool, file: &str) -> crate::fixture::Ended {
    tool.run(&["--compiled", &tool.text(file)])
}

#[test]
fn compiled_code_file_can_be_run_has_mode_0644_and_no_temporary_file_is_left() {
    let tool = tool(7);
    run(&tool, "c.cwasm").ended(7);
    let mode = fs::metadata(tool.path("c.cwasm")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o7777, 0o644);
    let names = fs::read_dir(tool.place.path()).unwrap().count();
    assert_eq!(names, 3, "a temporary file is left");
}

#[test]
fn compiled_code_that_another_user_could_have_written_is_refused() {
    let tool = tool(7);
    let path = tool.path("c.cwasm");
    for mode in [0o664, 0o646, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        run(&tool, "c.cwasm").refused("wasi_compiled_refused");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    run(&tool, "c.cwasm").ended(7);
    symlink(&path, tool.path("link")).unwrap();
    run(&tool, "link").refused("wasi_compiled_refused");
    fs::create_dir(tool.path("directory")).unwrap();
    run(&tool, "directory").refused("wasi_compiled_refused");
    if rustix::process::geteuid().is_root() {
        chown(&path, Some(12_345), None).unwrap();
        run(&tool, "c.cwasm").refused("wasi_compiled_refused");
        chown(&path, Some(0), None).unwrap();
        run(&tool, "c.cwasm").ended(7);
    }
}

#[test]
fn compiled_code_that_is_damaged_or_of_another_module_or_runner_is_refused() {
    let (tool, other) = (tool(7), tool(8));
    fs::copy(other.path("c.cwasm"), tool.path("other")).unwrap();
    run(&tool, "other").refused("wasi_compiled_refused");
    let bytes = fs::read(tool.path("c.cwasm")).unwrap();
    let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let key = head.lines().nth(1).unwrap();
    let foreign = [
        head.replace(key, "36.0.0-x86_64-0").as_bytes(),
        &bytes[end..],
    ]
    .concat();
    let mut flipped = bytes.clone();
    let middle = bytes.len() / 2;
    flipped[middle] ^= 1;
    for damaged in [
        foreign,
        flipped,
        bytes[..bytes.len() - 1].to_vec(),
        bytes[end + 2..].to_vec(),
        Vec::new(),
    ] {
        fs::write(tool.path("damaged"), damaged).unwrap();
        run(&tool, "damaged").refused("wasi_compiled_refused");
    }
    // Positive control: the same file, written the same way, without damage.
    fs::write(tool.path("damaged"), &bytes).unwrap();
    run(&tool, "damaged").ended(7);
}

#[test]
fn engine_key_is_one_line_and_is_in_the_header_of_compiled_code() {
    let output = Command::new(RUNNER).arg("engine").output().unwrap();
    let key = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && key.lines().count() == 1, "{key}");
    let code = fs::read(tool(0).path("c.cwasm")).unwrap();
    assert!(code.starts_with(format!("wp-codebox-wasi-code/1\n{key}").as_bytes()));
}

#[test]
fn compile_into_a_missing_directory_fails_with_code_wasi_runner_failed() {
    let tool = Tool::wat(&command(""));
    tool.write();
    let ended = Command::new(RUNNER)
        .args(["compile", "--definition", &tool.text("d.json")])
        .args([
            "--module",
            &tool.text("m.wasm"),
            "--out",
            &tool.text("no/c.cwasm"),
        ])
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(125));
    let error = String::from_utf8(ended.stderr).unwrap();
    assert!(error.contains("wasi_runner_failed"), "{error}");
}
