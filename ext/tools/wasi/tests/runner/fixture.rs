//! A tool in a temporary directory, and one call of it.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The runner.
pub const RUNNER: &str = env!("CARGO_BIN_EXE_wp-codebox-wasi");

/// A tool whose definition a case may change before it calls the tool.
pub struct Tool {
    pub place: tempfile::TempDir,
    pub definition: Value,
    pub module: Vec<u8>,
}

/// Exit status and output of one call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Returns the code of the error in the last line of standard error, without its prefix.
    pub fn code(&self) -> String {
        let line = self.stderr.lines().last().unwrap_or_default();
        let error: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{self:?}"));
        assert!(error["message"].as_str().unwrap().len() > 10, "{self:?}");
        let code = error["code"].as_str().unwrap();
        code.strip_prefix("wp_codebox_").unwrap().to_owned()
    }

    /// Checks that the runner refused or ended the call with this code.
    pub fn refused(&self, code: &str) {
        let status = if code == "wasi_deadline" { 124 } else { 125 };
        assert_eq!(
            (self.status, self.code().as_str()),
            (status, code),
            "{self:?}"
        );
    }

    /// Checks that the module ended with this status and no error of the runner.
    pub fn ended(&self, status: i32) -> &str {
        assert_eq!(self.status, status, "{self:?}");
        &self.stdout
    }
}

impl Tool {
    /// Creates a tool of a module in text form.
    pub fn wat(text: &str) -> Self {
        Self::of(wat::parse_str(text).unwrap())
    }

    /// Creates a tool of a module that was compiled from `tests/wasi/tools`.
    pub fn built(name: &str) -> Self {
        let modules = std::env::var_os("WASI_MODULES").expect("run tests/wasi/run");
        let path = Path::new(&modules).join(format!("{name}.wasm"));
        Self::of(std::fs::read(path).unwrap())
    }

    /// Creates a tool of a module in binary form.
    pub fn of(module: Vec<u8>) -> Self {
        let digest: String = Sha256::digest(&module)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let definition = json!({
            "schema": "wp-codebox/wasi-tool/v1",
            "id": "tests.tool",
            "version": "1",
            "description": "A tool of the tests.",
            "parameters": { "type": "object" },
            "module": { "sha256": digest, "bytes": module.len() },
            "files": "none",
            "grants": [],
            "limits": {
                "fuel": 1_000_000_000_u64,
                "memory_bytes": 16 << 20,
                "wall_ms": 60_000,
                "output_bytes": 100_000,
            },
        });
        Self {
            place: tempfile::tempdir().unwrap(),
            definition,
            module,
        }
    }

    pub fn files(mut self, files: &str) -> Self {
        self.definition["files"] = json!(files);
        self
    }

    pub fn limit(mut self, name: &str, value: u64) -> Self {
        self.definition["limits"][name] = json!(value);
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes definition and module.
    pub fn write(&self) {
        std::fs::write(self.path("d.json"), self.definition.to_string()).unwrap();
        std::fs::write(self.path("m.wasm"), &self.module).unwrap();
    }

    /// Compiles the module to `c.cwasm`.
    pub fn compile(&self) -> Ended {
        self.write();
        let out = self.text("c.cwasm");
        self.start("compile", &["--out", &out], "")
    }

    /// Calls the tool without input.
    pub fn run(&self, options: &[&str]) -> Ended {
        self.run_with(options, "")
    }

    /// Calls the tool with `input` on its standard input.
    pub fn run_with(&self, options: &[&str], input: &str) -> Ended {
        self.write();
        self.start("run", options, input)
    }

    fn start(&self, command: &str, options: &[&str], input: &str) -> Ended {
        let mut child = Command::new(RUNNER)
            .arg(command)
            .args([
                "--definition",
                &self.text("d.json"),
                "--module",
                &self.text("m.wasm"),
            ])
            .args(options)
            .env("MARK", "set")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A runner that refuses the call reads no input: EPIPE.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Ended {
            status: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Returns the text of a preview 1 command with one page of memory. `start` is the body of its
/// function; `$write` writes `length` bytes at address 64 to a descriptor.
pub fn command(start: &str) -> String {
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (table $table 1 funcref)
  (data (i32.const 64) "{{\"code\":\"wp_codebox_wasi_trap\",\"message\":\"forged by the module\"}}")
  (func $write (param $fd i32) (param $length i32)
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $recurse (call $recurse))
  (func (export "_start") {start}))"#
    )
}
