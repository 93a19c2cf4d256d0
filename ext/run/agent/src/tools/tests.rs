//! Tests of the tools with the real guest program, which this host's PHP runs in a temporary
//! directory instead of a sandbox. Other tests cover isolation; these cover accepted paths, results
//! and changes.

use super::*;
use crate::ToolCall;
use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wp_codebox_contracts::{ErrorCode, MountAccess, WasiTool};
use wp_codebox_policy::{HostTools, defaults};
use wp_codebox_runtime::ExecutionResult;

/// Runs guest programs on the host; a temporary directory stands for the guest's root.
struct HostExecutor {
    root: PathBuf,
    ran: Vec<String>,
    end: Option<ExecutionEnd>,
    forged: Option<Vec<u8>>,
    /// Path and content of a file that another program writes just before a tool's next write.
    meanwhile: Option<(PathBuf, &'static str)>,
}

impl HostExecutor {
    fn spawn(&mut self, call: &Call) -> (ExecutionEnd, Vec<u8>, Vec<u8>) {
        self.ran.push(call.command.clone());
        if let Some(end) = self.end.take() {
            return (end, Vec::new(), Vec::new());
        }
        if call.stdin.as_ref().is_some_and(|stdin| is_store(stdin))
            && let Some((path, content)) = self.meanwhile.take()
        {
            std::fs::write(path, content).unwrap();
        }
        if let Some(bytes) = self.forged.take() {
            return (ExecutionEnd::Exited { code: 0 }, bytes, Vec::new());
        }
        let share =
            Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../../share");
        let argv = call
            .argv
            .iter()
            .map(|word| word.replace("/opt/codebox", share.to_str().unwrap()));
        let argv: Vec<String> = argv.collect();
        let mut child = Command::new(&argv[0])
            .args(&argv[1..])
            .current_dir(format!("{}{}", self.root.display(), call.cwd))
            .env("CODEBOX_ROOT", &self.root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let bytes = call.stdin.clone().unwrap_or_default();
        let writer = std::thread::spawn(move || input.write_all(&bytes));
        let output = child.wait_with_output().unwrap();
        let _ = writer.join();
        let code = output.status.code().unwrap_or(255);
        (ExecutionEnd::Exited { code }, output.stdout, output.stderr)
    }
}

fn is_store(stdin: &[u8]) -> bool {
    let mut lines = stdin.split(|byte| *byte == b'\n');
    let question: Value = serde_json::from_slice(lines.next().unwrap()).unwrap_or_default();
    question["op"] == "store"
}

fn step(end: ExecutionEnd, stdout: &[u8], stderr: &[u8]) -> Step {
    Step {
        result: ExecutionResult {
            end,
            stopped: false,
            output_truncated: false,
            disk_full: false,
            duration: Duration::ZERO,
        },
        stdout: String::from_utf8_lossy(stdout).into_owned(),
        stderr: String::from_utf8_lossy(stderr).into_owned(),
        cut: Default::default(),
    }
}

impl GuestExecutor for HostExecutor {
    fn run(&mut self, call: &Call, _timeout: Duration) -> Result<Step, ErrorBody> {
        let (end, out, err) = self.spawn(call);
        let out = String::from_utf8_lossy(&out).replace("hunter22", "[redacted]");
        Ok(step(end, out.as_bytes(), &err))
    }

    fn take(&mut self, call: &Call, _timeout: Duration, most: u64) -> Result<RawOutput, ErrorBody> {
        let (end, mut bytes, err) = self.spawn(call);
        bytes.truncate(usize::try_from(most).unwrap());
        let step = step(end, b"", &err);
        Ok(RawOutput { step, bytes })
    }

    fn is_alive(&mut self) -> Result<bool, ErrorBody> {
        Ok(true)
    }

    fn changes(&mut self) -> Result<Vec<MountChange>, ErrorBody> {
        Ok(Vec::new())
    }

    fn clean(&self, text: &str) -> String {
        text.replace("hunter22", "[redacted]")
    }

    fn executions(&self) -> usize {
        self.ran.len()
    }

    fn executions_since(&self, count: usize) -> Vec<String> {
        (count..self.ran.len())
            .map(|n| format!("exec-{}", n + 1))
            .collect()
    }
}

fn wasi_tool(id: &str, files: &str) -> WasiTool {
    let document = json!({
        "schema": "wp-codebox/wasi-tool/v1",
        "id": id,
        "version": "1",
        "description": "Finds duplicate declarations.",
        "parameters": {"type": "object"},
        "module": {"sha256": "a".repeat(64), "bytes": 8},
        "files": files,
        "grants": [],
        "limits": {"fuel": 1, "memory_bytes": 65536, "wall_ms": 1000, "output_bytes": 9},
    });
    WasiTool::parse(document.to_string().as_bytes()).unwrap()
}

struct Rig {
    _directory: tempfile::TempDir,
    mount: PathBuf,
    outside: PathBuf,
    tools: Tools<HostExecutor>,
}

fn rig() -> Rig {
    rig_with(&[])
}

fn rig_with(allowed: &[&str]) -> Rig {
    rig_with_wasi(allowed, &[])
}

/// Like [`rig_with`], with WASI tools. Each has an id, an access to files (`none`, `read` or
/// `write`), and a shell script that replaces the runner.
fn rig_with_wasi(allowed: &[&str], wasi: &[(&str, &str, &str)]) -> Rig {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let mount = root.join("workspace/plugin");
    let outside = root.join("etc");
    std::fs::create_dir_all(&mount).unwrap();
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("secret"), "outside\n").unwrap();
    let all = ["wordpress.run-php", "wordpress.wp-cli", "command-agent-run"];
    let runtime = defaults(all.map(str::to_owned).to_vec());
    let allowed: Vec<String> = allowed.iter().map(|a| (*a).to_owned()).collect();
    let tools: Vec<WasiTool> = wasi
        .iter()
        .map(|(id, files, _)| wasi_tool(id, files))
        .collect();
    let host = HostTools {
        parent: None,
        wasi: &tools,
    };
    let set = ToolSet::resolve(None, &allowed, host, &runtime).unwrap();
    let mounted = tools.iter().zip(wasi).map(|(tool, (id, _, script))| {
        let runner = root.join(format!("runner-{id}"));
        // A child process makes the program: if this process wrote it, a process that another thread
        // starts meanwhile would have it open for writing, and executing it would fail with ETXTBSY.
        let text = runner.with_extension("txt");
        std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        let copy = Command::new("install")
            .arg("-m755")
            .args([&text, &runner])
            .status();
        assert!(copy.unwrap().success());
        GuestWasiTool {
            id: tool.id.clone(),
            runner: runner.to_str().unwrap().to_owned(),
            directory: GuestPath::new("/opt/agents/.wasi/css.lint").unwrap(),
            files: tool.files,
            limit: Duration::from_millis(tool.limits.wall_ms),
        }
    });
    let wasi = mounted.collect();
    let at = GuestPath::new("/workspace/plugin").unwrap();
    let place = ToolContext {
        mounts: vec![GuestMount {
            target: at.clone(),
            link: None,
            access: MountAccess::Readwrite,
        }],
        cwd: at,
        checks: Vec::new(),
        environment: BTreeMap::new(),
        wasi,
    };
    let executor = HostExecutor {
        root,
        ran: Vec::new(),
        end: None,
        forged: None,
        meanwhile: None,
    };
    Rig {
        _directory: directory,
        mount,
        outside,
        tools: Tools::new(executor, set, place),
    }
}

impl Rig {
    fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.mount.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn content(&self, name: &str) -> String {
        std::fs::read_to_string(self.mount.join(name)).unwrap()
    }

    fn call(&mut self, name: &str, arguments: Value) -> ToolAnswer {
        let arguments: Map<String, Value> = arguments.as_object().unwrap().clone();
        let call = ToolCall {
            id: "c1".to_owned(),
            name: name.to_owned(),
            arguments: Ok(arguments),
        };
        self.tools.call(&call).unwrap()
    }

    #[track_caller]
    fn ok(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.call(name, arguments);
        assert_eq!(answer.status, ToolStatus::Ok, "{}", answer.text);
        answer.text
    }

    #[track_caller]
    fn failed(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.call(name, arguments);
        assert_eq!(answer.status, ToolStatus::Failed, "{}", answer.text);
        answer.text
    }
}

#[test]
fn workspace_read_returns_the_requested_lines_and_the_start_line_of_the_next_page() {
    let mut rig = rig();
    let text: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
    rig.file("a.txt", &text);
    let page = rig.ok(
        "workspace_read",
        json!({"path": "a.txt", "start_line": 10, "lines": 2}),
    );
    assert!(
        page.contains("lines 10-11 of 1000\n10|line 10\n11|line 11\n"),
        "{page}"
    );
    assert!(page.ends_with("(more: start_line 12)"), "{page}");
    let last = rig.ok(
        "workspace.read",
        json!({"path": "/workspace/plugin/a.txt", "start_line": 999}),
    );
    assert!(last.ends_with("1000|line 1000\n"), "{last}");
    assert!(
        rig.ok(
            "workspace_read",
            json!({"path": "a.txt", "start_line": 2000})
        )
        .contains("has no line 2000")
    );
    rig.file("empty", "");
    assert!(
        rig.ok("read_file", json!({"path": "empty"}))
            .contains("is empty")
    );
    rig.file("long", format!("{}\nend\n", "x".repeat(100_000)));
    let long = rig.ok("workspace_read", json!({"path": "long"}));
    assert!(
        long.len() < 4000
            && long.contains("2|end")
            && long.contains("cut, because they are too long: lines 1"),
        "{}",
        long.len()
    );
    rig.file("crlf", "a\r\nb\r\n");
    let crlf = rig.ok("workspace_read", json!({"path": "crlf"}));
    assert!(
        crlf.contains("1|a\n2|b\n") && crlf.contains("CRLF"),
        "{crlf}"
    );
    rig.file("big", vec![b'y'; 40_000_000]);
    let big = rig.ok("workspace_read", json!({"path": "big"}));
    assert!(big.len() < 4000, "{}", big.len());
}

#[test]
fn secrets_in_file_content_and_in_error_texts_are_redacted() {
    let mut rig = rig();
    rig.file("notes.txt", "first\nthe password is hunter22\n");
    let page = rig.ok("workspace_read", json!({"path": "notes.txt"}));
    assert!(
        page.contains("the password is [redacted]") && !page.contains("hunter22"),
        "{page}"
    );
    // The error text of the first call comes from the guest program, that of the second from this
    // crate.
    for (tool, arguments) in [
        ("workspace_read", json!({"path": "hunter22.txt"})),
        ("workspace_hunter22", json!({})),
    ] {
        let refusal = rig.call(tool, arguments).text;
        assert!(
            refusal.contains("[redacted]") && !refusal.contains("hunter22"),
            "{refusal}"
        );
    }
}

#[test]
fn binary_file_is_readable_only_as_base64_and_a_fifo_is_refused() {
    let mut rig = rig();
    rig.file("b.png", b"\x89PNG\0\0abc");
    let said = rig.ok("workspace_read", json!({"path": "b.png"}));
    assert!(said.contains("is binary (9 bytes, sha256 "), "{said}");
    let bytes = rig.ok(
        "workspace_read",
        json!({"path": "b.png", "encoding": "base64", "offset": 6, "length": 2}),
    );
    assert!(
        bytes.contains("YWI=") && bytes.ends_with("(more: offset 8)"),
        "{bytes}"
    );
    let fifo = rig.mount.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    assert!(
        rig.failed("workspace_read", json!({"path": "pipe"}))
            .contains("not a regular file but a fifo")
    );
    assert!(
        rig.failed(
            "workspace_edit",
            json!({"path": "pipe", "old_text": "a", "new_text": "b"})
        )
        .contains("fifo")
    );
    assert!(
        rig.failed("workspace_write", json!({"path": "pipe", "content": "b"}))
            .contains("fifo")
    );
    // A search skips a FIFO instead of blocking on it.
    assert!(
        rig.ok("workspace_search", json!({"pattern": "PNG"}))
            .contains("(no hits)")
    );
    rig.file("latin.txt", b"caf\xe9 au lait\n");
    assert!(
        rig.ok("workspace_search", json!({"pattern": "au lait"}))
            .contains("latin.txt:1|caf")
    );
    assert!(
        rig.ok(
            "workspace_search",
            json!({"pattern": "au\\slait", "regex": true})
        )
        .contains("latin.txt:1")
    );
    assert!(
        rig.failed(
            "workspace_edit",
            json!({"path": "latin.txt", "old_text": "au", "new_text": "b"})
        )
        .contains("not UTF-8")
    );
}

/// Messages that refuse a path. Tests compare with these texts, so that they do not take an
/// unrelated error for a refusal.
const REFUSALS: [&str; 5] = [
    "is outside the mounts",
    "leads out of the mounts",
    "is below .git",
    "is a link to something that does not exist",
    "a path must be a text",
];

#[test]
fn paths_and_links_outside_the_mounts_and_paths_in_git_directories_are_refused() {
    let mut rig = rig();
    rig.file("in.txt", "in\n");
    symlink(&rig.outside, rig.mount.join("way-out")).unwrap();
    symlink(rig.outside.join("secret"), rig.mount.join("leak")).unwrap();
    symlink(rig.outside.join("new"), rig.mount.join("dangling")).unwrap();
    symlink("in.txt", rig.mount.join("inner")).unwrap();
    std::fs::create_dir_all(rig.mount.join(".git/hooks")).unwrap();
    rig.file(".git/config", "[core]\n");
    for path in [
        "../../etc/secret",
        "/etc/secret",
        "/workspace/plugin/../../etc/secret",
        "/workspace/plugin-other/x",
        "/workspace",
        "/",
        "way-out/secret",
        "leak",
        "dangling",
        ".git/config",
        ".GIT/config",
        "sub/.git/config",
        "a\0b",
        "",
    ] {
        for (tool, mut arguments) in [
            ("workspace_read", json!({})),
            ("workspace_read", json!({"encoding": "base64"})),
            ("workspace_write", json!({"content": "x"})),
            ("workspace_edit", json!({"old_text": "o", "new_text": "x"})),
            ("workspace_search", json!({"pattern": "o"})),
            ("workspace_list", json!({})),
        ] {
            arguments["path"] = json!(path);
            let said = rig.failed(tool, arguments);
            let refused = REFUSALS.iter().any(|words| said.contains(words));
            assert!(refused, "{tool} {path:?}: {said}");
        }
    }
    for path in [
        "/etc/secret",
        "../../etc/secret",
        "way-out/secret",
        ".git",
        ".git/config",
        ".",
        "/workspace/plugin",
        "..",
    ] {
        rig.failed("workspace_delete", json!({"path": path, "recursive": true}));
    }
    let patch = |path: &str| format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n");
    for path in [
        "/etc/new",
        "../../etc/new",
        "way-out/new",
        ".git/hooks/pre-commit",
        "dangling",
    ] {
        rig.failed("workspace_patch", json!({"patch": patch(path)}));
    }
    assert_eq!(std::fs::read_dir(&rig.outside).unwrap().count(), 1);
    assert_eq!(
        std::fs::read_to_string(rig.outside.join("secret")).unwrap(),
        "outside\n"
    );
    // Control: the same operations succeed inside the mount.
    rig.ok("workspace_read", json!({"path": "in.txt"}));
    rig.ok("workspace_read", json!({"path": "./x/../in.txt"}));
    rig.ok("workspace_read", json!({"path": "inner"}));
    rig.ok("workspace_patch", json!({"patch": patch("deep/er/new")}));
    rig.ok(
        "workspace_write",
        json!({"path": "inner", "content": "through\n"}),
    );
    assert_eq!(rig.content("in.txt"), "through\n");
    assert!(rig.mount.join("inner").is_symlink());
    // Deleting a symbolic link removes the link, and nothing in its target.
    rig.ok(
        "workspace_delete",
        json!({"path": "way-out", "recursive": true}),
    );
    assert!(rig.outside.join("secret").exists() && !rig.mount.join("way-out").exists());
    let listed = rig.ok("workspace_list", json!({"depth": 9}));
    assert!(
        !listed.contains(".git") && listed.contains("leak -> "),
        "{listed}"
    );
}

#[test]
fn directory_is_deleted_only_recursively_and_never_if_it_contains_a_git_repository() {
    let mut rig = rig();
    rig.file("vendor/x/.git/config", "c");
    rig.file("vendor/y/z", "c");
    assert!(
        rig.failed(
            "workspace_delete",
            json!({"path": "vendor", "recursive": true})
        )
        .contains(".git")
    );
    assert!(rig.mount.join("vendor/y/z").exists());
    assert!(
        rig.failed("workspace_delete", json!({"path": "vendor/y"}))
            .contains("recursive")
    );
    rig.ok(
        "workspace_delete",
        json!({"path": "vendor/y", "recursive": true}),
    );
    assert!(!rig.mount.join("vendor/y").exists());
}

#[test]
fn file_tools_treat_unusual_file_names_literally() {
    let mut rig = rig();
    for name in [
        "a\nb.txt",
        "-rf",
        "a b;$(touch x)`.txt",
        "\"quoted\"'",
        "0",
        "é.txt",
        "a\\b",
    ] {
        rig.ok(
            "workspace_write",
            json!({"path": name, "content": "needle\n"}),
        );
        assert_eq!(rig.content(name), "needle\n");
        assert!(
            rig.ok("workspace_read", json!({"path": name}))
                .contains("1|needle")
        );
        rig.ok(
            "workspace_edit",
            json!({"path": name, "old_text": "needle", "new_text": "pin needle"}),
        );
    }
    let listed = rig.ok("workspace_list", json!({}));
    assert!(listed.contains("\"a\\nb.txt\" (11 bytes)"), "{listed}");
    assert_eq!(listed.lines().count(), 8, "{listed}");
    let found = rig.ok("workspace_search", json!({"pattern": "pin needle"}));
    assert!(
        found.contains("\n0:1|pin needle\n") && found.contains("(7 files"),
        "{found}"
    );
    for name in ["a\nb.txt", "-rf", "0"] {
        rig.ok("workspace_delete", json!({"path": name}));
        assert!(!rig.mount.join(name).exists());
    }
}

#[test]
fn workspace_list_and_workspace_search_return_long_results_in_pages() {
    let mut rig = rig();
    for n in 0..50 {
        rig.file(&format!("d/{n:02}.php"), format!("<?php // hit {n}\n"));
    }
    let (mut all, mut offset) = (Vec::new(), 0);
    loop {
        let page = rig.ok(
            "workspace_list",
            json!({"path": "d", "limit": 20, "offset": offset}),
        );
        all.extend(
            page.lines()
                .filter(|l| l.contains(".php"))
                .map(str::to_owned),
        );
        match page.split("(more: offset ").nth(1) {
            Some(next) => offset = next.trim_end_matches(')').parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(all.len(), 50);
    let first = rig.ok("workspace_search", json!({"pattern": "hit", "limit": 30}));
    let second = rig.ok(
        "workspace_search",
        json!({"pattern": "hit", "limit": 30, "offset": 30}),
    );
    assert!(
        first.contains("(more: offset 30)") && !second.contains("more:"),
        "{first}"
    );
    assert!(second.contains("d/49.php:1|<?php // hit 49"), "{second}");
    let globbed = rig.ok(
        "workspace_search",
        json!({"pattern": "HIT \\d$", "regex": true, "ignore_case": true, "glob": "d/0*.{php,js}"}),
    );
    assert_eq!(globbed.matches("php:1|").count(), 10, "{globbed}");
    assert!(
        rig.ok(
            "workspace_search",
            json!({"pattern": "hit", "glob": "*.js"})
        )
        .contains("no hits")
    );
    assert!(
        rig.failed("workspace_search", json!({"pattern": "(", "regex": true}))
            .contains("not a valid regular expression")
    );
    rig.file("ctx", "1\n2\nneedle\n4\n5\n");
    let near = rig.ok(
        "workspace_search",
        json!({"pattern": "needle", "context": 1}),
    );
    assert!(
        near.contains("ctx:2-2\nctx:3|needle\nctx:4-4\n--\n"),
        "{near}"
    );
}

#[test]
fn workspace_write_and_edit_keep_the_file_mode_and_leave_no_temporary_file() {
    let mut rig = rig();
    rig.file("run.sh", "#!/bin/sh\n");
    let path = rig.mount.join("run.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    rig.ok(
        "workspace_write",
        json!({"path": "run.sh", "content": "#!/bin/sh\nexit 0\n"}),
    );
    rig.ok(
        "workspace_edit",
        json!({"path": "run.sh", "old_text": "exit 0", "new_text": "exit 1"}),
    );
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(rig.content("run.sh"), "#!/bin/sh\nexit 1\n");
    rig.ok(
        "workspace_write",
        json!({"path": "x/y/z.bin", "content": "AP8=", "encoding": "base64"}),
    );
    assert_eq!(
        std::fs::read(rig.mount.join("x/y/z.bin")).unwrap(),
        [0, 255]
    );
    assert_eq!(
        rig.mount
            .join("x/y/z.bin")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o644
    );
    rig.ok("workspace_write", json!({"path": "nothing", "content": ""}));
    assert!(
        rig.failed("workspace_write", json!({"path": "x", "content": "a"}))
            .contains("not a regular file but a dir")
    );
    assert!(
        rig.failed(
            "workspace_write",
            json!({"path": "run.sh/a", "content": "a"})
        )
        .contains("not a directory")
    );
    let left: Vec<_> = std::fs::read_dir(&rig.mount)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn failed_workspace_edit_states_the_reason() {
    let mut rig = rig();
    rig.file("a.php", "one\ntwo\none\n");
    let edit = |old: &str, new: &str| json!({"path": "a.php", "old_text": old, "new_text": new});
    assert!(
        rig.failed("workspace_edit", edit("one", "1"))
            .contains("2 times, at lines 1, 3")
    );
    assert!(
        rig.failed("workspace_edit", edit("three", "3"))
            .contains("not in the file")
    );
    assert!(
        rig.failed(
            "workspace_edit",
            json!({"path": "b.php", "old_text": "a", "new_text": "b"})
        )
        .contains("does not exist")
    );
    assert!(
        rig.failed("workspace_edit", json!({"path": "a.php", "old_text": "a"}))
            .contains("new_text")
    );
    assert!(
        rig.failed(
            "workspace_edit",
            json!({"path": "a.php", "old_text": "a", "new_text": "b", "all": true})
        )
        .contains("replace_all")
    );
    assert_eq!(rig.content("a.php"), "one\ntwo\none\n");
    rig.ok(
        "workspace_edit",
        json!({"path": "a.php", "old_text": "one", "new_text": "1", "replace_all": true}),
    );
    assert_eq!(rig.content("a.php"), "1\ntwo\n1\n");
}

#[test]
fn concurrently_changed_file_is_not_overwritten() {
    let mut rig = rig();
    let patch = "*** Begin Patch\n*** Update File: a.php\n@@\n-one\n+1\n*** End Patch\n";
    let ways = [
        (
            "workspace_edit",
            json!({"path": "a.php", "old_text": "one", "new_text": "1"}),
        ),
        ("workspace_patch", json!({"patch": patch})),
    ];
    for (tool, arguments) in ways {
        rig.file("a.php", "one\n");
        rig.tools.executor().meanwhile = Some((rig.mount.join("a.php"), "somebody's\n"));
        let said = rig.failed(tool, arguments.clone());
        assert!(said.contains("changed"), "{said}");
        assert_eq!(rig.content("a.php"), "somebody's\n", "{tool}");
        // Control: without a concurrent change the same call succeeds.
        rig.file("a.php", "one\n");
        rig.ok(tool, arguments);
        assert_eq!(rig.content("a.php"), "1\n");
    }
    // A write that the guest program does not confirm is reported as failed.
    rig.tools.executor().forged = Some(b"{\"ok\":true,\"files\":[]}\n".to_vec());
    let said = rig.failed("workspace_write", json!({"path": "b", "content": "x"}));
    assert!(said.contains("did not confirm"), "{said}");
}

#[test]
fn workspace_patch_applies_all_changes_or_none_if_one_fails() {
    let mut rig = rig();
    rig.file("a", "1\n2\n");
    rig.file("b", "x\n");
    rig.file("old", "o\n");
    let half = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-nope\n+y\n";
    assert!(
        rig.failed("workspace_patch", json!({"patch": half}))
            .contains("nothing was changed")
    );
    assert_eq!(rig.content("a"), "1\n2\n");
    // The second change fails, because its parent `n` is a file; so the first is rolled back.
    rig.file("n", "file\n");
    let late =
        "*** Begin Patch\n*** Update File: a\n@@\n-1\n+one\n*** Add File: n/x\n+y\n*** End Patch\n";
    rig.failed("workspace_patch", json!({"patch": late}));
    assert_eq!(rig.content("a"), "1\n2\n");
    let whole = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-1\n+one\n 2\ndiff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\ndiff --git a/b b/b\nold mode 100644\nnew mode 100755\ndiff --git a/s b/s\nnew file mode 100755\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+#!/bin/sh\n";
    let said = rig.ok("apply_patch", json!({"patch": whole}));
    assert!(
        said.contains("changed a\n")
            && said.contains("added new\n")
            && said.contains("deleted old\n"),
        "{said}"
    );
    assert_eq!(
        (rig.content("a"), rig.content("new"), rig.content("s")),
        ("one\n2\n".into(), "o\n".into(), "#!/bin/sh\n".into())
    );
    assert!(!rig.mount.join("old").exists());
    for name in ["b", "s"] {
        assert_eq!(
            rig.mount
                .join(name)
                .metadata()
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o755,
            "{name}"
        );
    }
    let left: Vec<_> = std::fs::read_dir(&rig.mount)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(
        left.iter()
            .all(|name| !name.to_string_lossy().contains(".codebox-")),
        "{left:?}"
    );
}

#[test]
fn secret_in_file_is_redacted_in_output_and_kept_by_an_edit() {
    let mut rig = rig();
    rig.file("env", "KEY=hunter22\nMODE=a\n");
    assert!(
        rig.ok("workspace_read", json!({"path": "env"}))
            .contains("KEY=[redacted]")
    );
    rig.ok(
        "workspace_edit",
        json!({"path": "env", "old_text": "MODE=a", "new_text": "MODE=b"}),
    );
    assert_eq!(rig.content("env"), "KEY=hunter22\nMODE=b\n");
    let error = rig.failed(
        "workspace_edit",
        json!({"path": "env", "old_text": "KEY = hunter22", "new_text": "x"}),
    );
    assert!(!error.contains("hunter22"), "{error}");
    let error = rig.failed(
        "workspace_patch",
        json!({"patch": "--- a/env\n+++ b/env\n@@ -1,2 +1,2 @@\n KEY=hunter2\n-MODE=b\n+MODE=c\n"}),
    );
    assert!(!error.contains("hunter22"), "{error}");
}

#[test]
fn call_of_a_tool_that_is_not_allowed_is_denied_and_executes_nothing() {
    let mut rig = rig_with(&["workspace.read"]);
    rig.file("a", "a\n");
    for (tool, arguments) in [
        ("workspace_write", json!({"path": "a", "content": "b"})),
        (
            "workspace.edit",
            json!({"path": "a", "old_text": "a", "new_text": "b"}),
        ),
        ("shell", json!({"command": "echo b > a"})),
        ("nothing_known", json!({})),
    ] {
        let answer = rig.call(tool, arguments);
        assert_eq!(answer.status, ToolStatus::Denied, "{}", answer.text);
        assert!(
            answer.text.contains(ErrorCode::ToolNotAllowed.as_str()),
            "{}",
            answer.text
        );
        assert!(answer.executions.is_empty());
    }
    assert!(rig.tools.executor().ran.is_empty(), "nothing ran");
    assert_eq!(rig.content("a"), "a\n");
    let names: Vec<&str> = rig
        .tools
        .specs()
        .iter()
        .map(|spec| spec.name.as_str())
        .collect();
    assert_eq!(names, ["workspace_read", "task_finish", "task_blocked"]);
    let answer = rig.call("workspace_read", json!({"path": "a"}));
    assert_eq!(
        (answer.status, answer.executions.len()),
        (ToolStatus::Ok, 1)
    );
}

#[test]
fn terminal_tool_returns_exit_code_and_shortened_output_and_test_tool_counts_passed_checks() {
    let mut rig = rig();
    rig.file("a", "a\n");
    let said = rig.ok(
        "terminal_run",
        json!({"command": "cat a; echo e >&2; exit 3"}),
    );
    assert!(
        said.contains("exit code 3")
            && said.contains("--- stdout\na\n")
            && said.contains("--- stderr\ne\n"),
        "{said}"
    );
    let said = rig.ok("terminal_run", json!({"command": "seq 100000; echo last"}));
    assert!(
        said.len() < 30_000 && said.contains("bytes left out") && said.contains("last"),
        "{}",
        said.len()
    );
    rig.failed("terminal_run", json!({"command": " "}));
    rig.failed(
        "terminal_run",
        json!({"command": "true", "timeout_seconds": 100_000}),
    );
    rig.failed("terminal_run", json!({"command": "true", "cwd": "../../x"}));
    assert!(rig.failed("tests_run", json!({})).contains("no checks"));
    let said = rig.ok("tests_run", json!({"command": "sh -c 'exit 1'"}));
    assert!(
        said.contains("0 of 1 passed in this sandbox") && said.contains("fresh sandbox"),
        "{said}"
    );
    rig.tools.context.checks = vec!["true".to_owned(), "false".to_owned()];
    assert!(rig.ok("tests_run", json!({})).contains("1 of 2 passed"));
}

#[test]
fn forged_output_of_the_file_helper_in_the_guest_fails_the_tool_call() {
    let mut rig = rig();
    for forged in [
        &b""[..],
        b"no json\n",
        b"[]\n",
        b"{\"ok\":\"true\"}\n",
        b"{\"ok\":true,\"files\":[{\"exists\":true,\"length\":99}]}\nshort",
        b"{\"ok\":true,\"files\":[]}\n",
        b"{\"ok\":true,\"files\":[{\"exists\":true,\"length\":-1}]}\n",
        b"{\"ok\":false,\"message\":7}\n",
    ] {
        rig.tools.executor().forged = Some(forged.to_vec());
        rig.failed(
            "workspace_edit",
            json!({"path": "a", "old_text": "a", "new_text": "b"}),
        );
    }
    rig.tools.executor().forged = Some(vec![b'x'; 3_000_000]);
    let answer = rig.failed("workspace_read", json!({"path": "a"}));
    assert!(answer.len() < 2000);
    // Items of `entries` that are not JSON objects are skipped and do not fail the call.
    rig.tools.executor().forged =
        Some(b"{\"ok\":true,\"entries\":[1,null,{}],\"next\":\"x\"}\n".to_vec());
    rig.ok("workspace_list", json!({}));
}

#[test]
fn only_timeout_cancellation_or_guest_death_in_a_terminal_tool_call_ends_the_agent_loop() {
    let error = ErrorBody::new(ErrorCode::MemoryLimit, "too much");
    for (end, halts) in [
        (ExecutionEnd::TimedOut, true),
        (ExecutionEnd::Cancelled, true),
        (
            ExecutionEnd::GuestDied {
                death: wp_codebox_contracts::GuestDeath::default(),
            },
            true,
        ),
        (
            ExecutionEnd::LimitReached {
                error: error.clone(),
            },
            false,
        ),
        (ExecutionEnd::NotStarted { error }, false),
    ] {
        let mut rig = rig();
        rig.tools.executor().end = Some(end.clone());
        let call = ToolCall {
            id: "c".to_owned(),
            name: "terminal_run".to_owned(),
            arguments: Ok(json!({"command": "true"}).as_object().unwrap().clone()),
        };
        match rig.tools.call(&call) {
            Err(Halt::Stop(_)) => assert!(halts, "{end:?}"),
            Ok(answer) => {
                assert!(!halts, "{end:?}");
                assert_eq!(answer.status, ToolStatus::Failed);
            }
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn unparsable_tool_call_fails_and_task_finish_and_task_blocked_end_the_task() {
    let mut rig = rig();
    let call = ToolCall {
        id: "c".to_owned(),
        name: "workspace_read".to_owned(),
        arguments: Err("EOF at 3".to_owned()),
    };
    let answer = rig.tools.call(&call).unwrap();
    assert_eq!(answer.status, ToolStatus::Failed);
    assert!(answer.text.contains("EOF at 3"));
    let answer = rig.call("task_finish", json!({"summary": "s"}));
    assert_eq!(
        answer.end,
        Some(TaskEnd::Finished {
            summary: "s".to_owned()
        })
    );
    let answer = rig.call("task.blocked", json!({"reason": "r"}));
    assert_eq!(
        answer.end,
        Some(TaskEnd::Blocked {
            reason: "r".to_owned()
        })
    );
    rig.failed("task_finish", json!({}));
}

#[test]
fn wasi_tool_gets_its_arguments_and_the_mounts_that_its_definition_allows() {
    let mounted = "--dir /workspace/plugin=/workspace/plugin";
    for (files, directories) in [
        ("none", String::new()),
        ("read", format!(" {mounted}:ro")),
        ("write", format!(" {mounted}:rw")),
    ] {
        let mut rig = rig_with_wasi(&[], &[("css.lint", files, "echo \"$@\"; cat")]);
        let answer = rig.call("css_lint", json!({"path": "a.css"}));
        let at = "/opt/agents/.wasi/css.lint";
        let expected = format!(
            "run --definition {at}/definition.json --module {at}/module.wasm --compiled {at}/module.cwasm{directories}\n{{\"path\":\"a.css\"}}"
        );
        assert_eq!((answer.text, answer.status), (expected, ToolStatus::Ok));
        assert_eq!(answer.executions, ["exec-1"]);
    }
}

#[test]
fn exit_status_of_a_wasi_tool_is_answered_and_a_wasi_tool_that_cannot_run_fails_the_call() {
    let error = r#"{"code":"wp_codebox_wasi_fuel_exhausted","message":"out of fuel"}"#;
    let fuel = format!("echo noise >&2; echo '{error}' >&2; exit 125");
    let scripts = [
        ("css.lint", "none", "echo twice; exit 1"),
        ("css.loop", "none", fuel.as_str()),
        ("css.odd", "none", "exit 125"),
    ];
    let mut rig = rig_with_wasi(&[], &scripts);
    let found = rig.call("css.lint", json!({}));
    assert_eq!(found.status, ToolStatus::Ok);
    assert!(found.text.contains("exit code 1") && found.text.contains("twice"));
    let looped = rig.call("css.loop", json!({}));
    assert_eq!(looped.status, ToolStatus::Failed);
    assert_eq!(looped.text, "wp_codebox_wasi_fuel_exhausted: out of fuel");
    assert_eq!(rig.call("css.odd", json!({})).status, ToolStatus::Failed);
}

#[test]
fn wasi_tool_that_is_not_an_allowed_tool_is_denied_and_does_not_run() {
    let scripts = [("css.lint", "none", "cat")];
    let mut rig = rig_with_wasi(&["workspace.read"], &scripts);
    let denied = rig.call("css.lint", json!({}));
    assert_eq!(denied.status, ToolStatus::Denied);
    assert!(denied.executions.is_empty());
    let mut control = rig_with_wasi(&["css.lint"], &scripts);
    assert_eq!(control.call("css.lint", json!({})).status, ToolStatus::Ok);
}
