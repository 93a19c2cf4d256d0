//! What a module is, what it may import, and what it gets.

use crate::fixture::{Tool, command};
use serde_json::json;

#[test]
fn file_that_is_not_a_valid_wasi_command_module_is_refused() {
    let mut truncated = wat::parse_str(command("")).unwrap();
    truncated.truncate(truncated.len() - 3);
    for module in [
        b"#!/bin/sh\necho hello\n".to_vec(),
        b"\0asm\x01\0\0\0garbage".to_vec(),
        // A magic number of a version that does not exist.
        b"\0asm\x02\0\0\0".to_vec(),
        truncated,
        wat::parse_str("(module)").unwrap(),
        wat::parse_str("(module (func (export \"_start\") (param i32)))").unwrap(),
        wat::parse_str("(component)").unwrap(),
    ] {
        let tool = Tool::of(module);
        tool.run(&[]).refused("wasi_module_invalid");
        tool.compile().refused("wasi_module_invalid");
    }
    Tool::wat("(module (func (export \"_start\")))")
        .run(&[])
        .ended(0);
}

#[test]
fn import_that_is_not_granted_is_refused_before_any_code_runs() {
    let write = command("(call $write (i32.const 1) (i32.const 10))");
    // Positive control: without the import, the module writes.
    assert_eq!(Tool::wat(&write).run(&[]).ended(0).len(), 10);
    for import in [
        r#"(import "env" "system" (func (param i32) (result i32)))"#,
        r#"(import "wasi_snapshot_preview1" "sock_send" (func (param i32 i32 i32 i32 i32) (result i32)))"#,
        r#"(import "wasi_snapshot_preview1" "sock_accept" (func (param i32 i32 i32) (result i32)))"#,
        r#"(import "wasi_snapshot_preview1" "proc_raise" (func (param i32) (result i32)))"#,
        r#"(import "wasi_unstable" "fd_write" (func (param i32 i32 i32 i32) (result i32)))"#,
        r#"(import "wasi_snapshot_preview1" "fd_read" (global i32))"#,
    ] {
        let tool = Tool::wat(&write.replacen("(module", &format!("(module {import}"), 1));
        let ended = tool.run(&[]);
        ended.refused("wasi_import_refused");
        assert_eq!(ended.stdout, "");
        tool.compile().refused("wasi_import_refused");
        assert!(!tool.path("c.cwasm").exists());
    }
}

const COMPONENT: &str = r#"(component
  (core module $m (func (export "run") (result i32) i32.const STATUS))
  (core instance $i (instantiate $m))
  (func $run (result (result)) (canon lift (core func $i "run")))
  (instance $exported (export "run" (func $run)))
  (export "wasi:cli/run@0.2.0" (instance $exported)))"#;

#[test]
fn wasi_command_component_runs_and_its_result_is_the_exit_status() {
    for (result, status) in [("0", 0), ("1", 1)] {
        let tool = Tool::wat(&COMPONENT.replace("STATUS", result));
        tool.run(&[]).ended(status);
        tool.compile().ended(0);
        let compiled = tool.text("c.cwasm");
        tool.run(&["--compiled", &compiled]).ended(status);
    }
    let looping = COMPONENT.replace("i32.const STATUS", "(loop $l (br $l)) i32.const 0");
    Tool::wat(&looping)
        .limit("fuel", 10_000)
        .run(&[])
        .refused("wasi_fuel_exhausted");
}

#[test]
fn component_with_imports_that_are_not_granted_is_refused() {
    let component = COMPONENT.replace("STATUS", "0");
    for import in [
        "wasi:sockets/tcp@0.2.0",
        "wasi:http/outgoing-handler@0.2.0",
        "host:own/x",
    ] {
        let with = component.replacen(
            "(component",
            &format!("(component (import \"{import}\" (instance))"),
            1,
        );
        Tool::wat(&with).run(&[]).refused("wasi_import_refused");
    }
    let granted = component.replacen(
        "(component",
        "(component (import \"wasi:cli/environment@0.2.0\" (instance))",
        1,
    );
    Tool::wat(&granted).run(&[]).ended(0);
}

#[test]
fn module_that_differs_from_its_definition_is_refused() {
    let tool = || Tool::wat(&command(""));
    tool().run(&[]).ended(0);
    let mut changed = tool();
    let last = changed.module.len() - 1;
    changed.module[last] ^= 1;
    changed.run(&[]).refused("wasi_digest_mismatch");
    changed.compile().refused("wasi_digest_mismatch");
    let mut longer = tool();
    longer.module.push(0);
    longer.run(&[]).refused("wasi_digest_mismatch");
    let mut shorter = tool();
    shorter.module.pop();
    shorter.run(&[]).refused("wasi_digest_mismatch");
}

#[test]
fn definition_with_a_host_path_or_an_unknown_member_is_refused() {
    for (name, value) in [
        ("dirs", json!(["/var/www/html=/work:rw"])),
        ("files", json!("/var/www/html")),
        ("env", json!({ "A": "b" })),
    ] {
        let mut tool = Tool::wat(&command(""));
        tool.definition[name] = value;
        tool.run(&[]).refused("wasi_definition_invalid");
    }
}

/// Prints 32 random bytes and two clock readings, each byte mapped to one of 64 ASCII characters.
const OBSERVE: &str = "
    (drop (call $random (i32.const 64) (i32.const 32)))
    (drop (call $clock (i32.const 0) (i64.const 0) (i32.const 96)))
    (drop (call $clock (i32.const 1) (i64.const 0) (i32.const 104)))
    (local $i i32)
    (loop $again
      (i32.store8 (i32.add (i32.const 64) (local.get $i))
        (i32.or (i32.const 64) (i32.and (i32.const 63)
          (i32.load8_u (i32.add (i32.const 64) (local.get $i))))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 48))))
    (call $write (i32.const 1) (i32.const 48))";

#[test]
fn clock_and_random_bytes_are_the_same_in_each_run_unless_they_are_granted() {
    let start = OBSERVE.replacen("(local $i i32)", "", 1);
    let start = format!("(local $i i32) {start}");
    let observe = |grants: &[&str]| {
        let mut tool = Tool::wat(&command(&start));
        tool.definition["grants"] = json!(grants);
        tool.run(&[]).ended(0).to_owned()
    };
    let (first, second) = (observe(&[]), observe(&[]));
    assert_eq!(first, second);
    let (random, again) = (observe(&["random"]), observe(&["random"]));
    assert_ne!(random[..32], again[..32]);
    assert_eq!(random[32..], first[32..]);
    let clock = observe(&["clock"]);
    assert_eq!(clock[..32], first[..32]);
    assert_ne!(clock[32..], first[32..]);
}
