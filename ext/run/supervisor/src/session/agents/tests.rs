//! Runs the agent tools in real guests: a whole run in which test code replaces the model.
//!
//! `tests/tools/run` starts these tests as an unprivileged user, with the launcher, share directory
//! and WordPress from `CODEBOX_TOOLS_WORLD`; without this variable the tests are skipped.

use super::executor::{RunExecutor, tools};
use crate::host::peer::Caller;
use crate::journal::queue::{HoldMode, RequestQueue};
use crate::prepared::job::Job;
use crate::request::prepare::prepare;
use crate::request::service_plan::ServicePlan;
use crate::run::{begin, execute};
use crate::session::ending::{AgentEnd, ProgramsEnd};
use crate::session::guest::GuestContext;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use wp_codebox_agent::{Parent, ParentAnswer, ToolAnswer, ToolCall, ToolStatus, Toolbox, Tools};
use wp_codebox_contracts::{ErrorBody, IsolationLevel, RunRequest, RunResult};
use wp_codebox_policy::{Redactor, ToolSet};
use wp_codebox_runtime::Cancellation;

type Work = Box<dyn FnOnce(&mut TestAgent<'_, '_>)>;

static RUNS: AtomicU32 = AtomicU32::new(1);

thread_local! {
    static WORK: RefCell<Option<Work>> = const { RefCell::new(None) };
}

/// Returns whether a test in this thread has replaced the model by test code.
pub(super) fn is_model_replaced() -> bool {
    WORK.with_borrow(Option::is_some)
}

/// Runs the test code that replaces the model.
pub(super) fn run_test_agent(guest: GuestContext<'_, '_>) -> Result<ProgramsEnd, ErrorBody> {
    let prepared = &guest.run.prepared;
    let set = crate::request::programs::tool_set(
        &prepared.request,
        &prepared.policy,
        prepared.wasi.tools(),
    )?;
    let work = WORK.with_borrow_mut(Option::take);
    let mut hand = TestAgent {
        set: set.clone(),
        tools: tools(guest, set),
    };
    work.unwrap()(&mut hand);
    Ok((None, AgentEnd::Success))
}

struct TestAgent<'a, 'r> {
    set: ToolSet,
    tools: Tools<RunExecutor<'a, 'r>>,
}

impl TestAgent<'_, '_> {
    fn call(&mut self, name: &str, arguments: Value) -> ToolAnswer {
        let call = ToolCall {
            id: "c".to_owned(),
            name: name.to_owned(),
            arguments: Ok(arguments.as_object().unwrap().clone()),
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

    #[track_caller]
    fn sh(&mut self, command: &str) -> String {
        self.ok("terminal_run", json!({"command": command}))
    }
}

struct NoParent;

impl Parent for NoParent {
    fn ask(&self, _: &str, _: Value, _: Instant) -> ParentAnswer {
        ParentAnswer::Unavailable("this is a test")
    }
}

/// A finished run and its results.
struct Ran {
    result: RunResult,
    /// Host directory that was mounted into the guest.
    source: PathBuf,
    _directory: tempfile::TempDir,
}

impl Ran {
    fn bundle(&self, name: &str) -> String {
        let path = &self.result.artifacts.as_ref().unwrap().path;
        std::fs::read_to_string(PathBuf::from(path).join(name)).unwrap()
    }
}

fn run(work: impl FnOnce(&mut TestAgent<'_, '_>) + 'static) -> Ran {
    run_with(&json!({}), work)
}

/// Runs a sandbox for a plugin, in which `work` acts as the agent. `more` has members to add to the
/// run request.
fn run_with(more: &Value, work: impl FnOnce(&mut TestAgent<'_, '_>) + 'static) -> Ran {
    let world = PathBuf::from(std::env::var_os("CODEBOX_TOOLS_WORLD").unwrap());
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("hello");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(
        source.join("hello.php"),
        "<?php\n/* Plugin Name: Hello */\n$x = 1;\n$y = 2;\n",
    )
    .unwrap();
    std::fs::write(source.join("gone.txt"), "gone\n").unwrap();
    let at = |name: &str| world.join(name).to_str().unwrap().to_owned();
    let mut request = json!({
        "schema": "wp-codebox/run-request/v1",
        "run_id": format!("run_{:032x}", RUNS.fetch_add(1, Ordering::Relaxed)),
        "site": "test",
        "paths": {
            "state_dir": at("state"), "share_dir": at("share"), "launcher": at("wp-codebox-launch"),
            "php_binary": "/usr/bin/php", "wordpress": at("wordpress"),
        },
        "mounts": [{"source": source, "target": "/wordpress/wp-content/plugins/hello", "mode": "readwrite"}],
        "agent": {"kind": "model"},
        "model": {"provider": "p", "model": "m", "api": "openai-chat", "base_url": "http://127.0.0.1:9/v1", "private": true},
    });
    for (key, value) in more.as_object().unwrap() {
        request[key] = value.clone();
    }
    let request: RunRequest = serde_json::from_value(request).unwrap();
    WORK.set(Some(Box::new(work)));
    let redactor = Redactor::new(&["hunter2-hunter2".to_owned()]);
    let prepared = prepare(request, ServicePlan::default(), &Caller::Trusted, &redactor).unwrap();
    let begun = begin(Job::Here(Box::new(prepared)), &redactor, Instant::now()).unwrap();
    let cancellation = std::sync::Arc::new(Cancellation::default());
    let result = execute(
        begun,
        &redactor,
        &cancellation,
        &NoParent,
        &std::sync::Arc::new(RequestQueue::new(HoldMode::Nothing).unwrap()),
        crate::request::placed::PlacedRuns::HandedOver(|| None),
        &mut |_| {},
    )
    .unwrap();
    assert!(
        WORK.with_borrow(Option::is_none),
        "the test's work was not done"
    );
    Ran {
        result,
        source,
        _directory: directory,
    }
}

/// Policy without network access and secrets, so that it also fits isolation level `reduced`.
fn policy(commands: &[&str]) -> Value {
    json!({
        "network": "deny", "filesystem": "readwrite-mounts", "commands": commands,
        "secrets": "none", "approvals": "never",
    })
}

const MAIN: &str = "/wordpress/wp-content/plugins/hello/hello.php";

#[test]
#[ignore = "tests/tools/run"]
fn agent_edits_are_shown_in_the_diff_and_captured() {
    let seen = std::rc::Rc::new(RefCell::new(String::new()));
    let diff = std::rc::Rc::clone(&seen);
    let ran = run(move |hand| {
        let listed = hand.ok("workspace_list", json!({}));
        assert!(
            listed
                .starts_with("/wordpress/wp-content/plugins/hello/\ngone.txt (5 bytes)\nhello.php"),
            "{listed}"
        );
        assert_eq!(
            hand.ok("workspace_diff", json!({})),
            "(nothing has changed)"
        );
        assert!(
            hand.ok("workspace_read", json!({"path": MAIN}))
                .contains("3|$x = 1;")
        );
        hand.ok(
            "workspace_edit",
            json!({"path": "hello.php", "old_text": "$x = 1;", "new_text": "$x = 3;"}),
        );
        hand.ok("workspace_patch", json!({"patch": "--- a/hello.php\n+++ b/hello.php\n@@ -3,2 +3,2 @@\n $x = 3;\n-$y = 2;\n+$y = 4;\n--- /dev/null\n+++ b/src/new.php\n@@ -0,0 +1 @@\n+<?php\n"}));
        hand.ok("workspace_delete", json!({"path": "gone.txt"}));
        // Changes that the agent's programs make are captured as well.
        hand.sh("printf 'by hand\\n' > notes.txt; printf '\\0' > b.bin");
        assert!(
            hand.ok("workspace_search", json!({"pattern": "by hand"}))
                .contains("notes.txt:1|by hand")
        );
        let text = hand.ok("workspace_diff", json!({}));
        for part in [
            "-$x = 1;\n-$y = 2;\n+$x = 3;\n+$y = 4;",
            "-gone",
            "+by hand",
            "b/src/new.php",
            "b.bin",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let stat = hand.ok("workspace_diff", json!({"stat": true}));
        assert!(
            stat.contains("# modified hello.php (+2 -2)")
                && stat.contains("# added b.bin (binary)"),
            "{stat}"
        );
        let only = hand.ok("workspace_diff", json!({"path": "src"}));
        assert!(
            only.contains("src/new.php") && !only.contains("hello.php"),
            "{only}"
        );
        // The guest sees the mount under two paths; both lead to the same file.
        assert!(hand.sh(&format!("cat {MAIN}")).contains("$y = 4;"));
        *diff.borrow_mut() = text;
    });
    assert_eq!(
        ran.bundle("files/patch.diff").trim_end(),
        seen.borrow()
            .lines()
            .filter(|l| !l.starts_with("# "))
            .collect::<Vec<_>>()
            .join("\n")
            .trim_end()
    );
    let source = std::fs::read_to_string(ran.source.join("hello.php")).unwrap();
    assert!(source.contains("$x = 1;"), "the source stays as it was");
    assert!(ran.source.join("gone.txt").exists());
}

#[test]
#[ignore = "tests/tools/run"]
fn content_read_by_an_edit_is_not_recorded_and_a_secret_in_it_stays_unredacted_in_the_file() {
    let ran = run(|hand| {
        hand.ok(
            "workspace_write",
            json!({"path": "s.txt", "content": "shown-in-reads hunter2-hunter2\n"}),
        );
        let edit = json!({"path": "s.txt", "old_text": "shown-in", "new_text": "seen-in"});
        let answer = hand.call("workspace_edit", edit);
        assert_eq!(answer.executions, ["exec-2", "exec-3"]);
        let read = hand.ok("workspace_read", json!({"path": "s.txt"}));
        assert!(
            read.contains("seen-in-reads") && !read.contains("hunter2"),
            "{read}"
        );
        assert!(!hand.ok("workspace_diff", json!({})).contains("hunter2"));
        // The secret is still in the file: the edit did not write the redacted text that the model
        // saw.
        assert!(hand.sh("grep -c 'hunter[2]-' s.txt").contains("\n1\n"));
    });
    let commands = ran.bundle("commands.jsonl");
    for id in [
        "workspace.write",
        "workspace.edit",
        "workspace.read",
        "terminal.run",
    ] {
        assert!(
            commands.contains(&format!("\"{id}\"")),
            "{id} in {commands}"
        );
    }
    assert!(commands.contains("seen-in-reads"), "a read is recorded");
    assert!(
        !commands.contains("shown-in-reads"),
        "the content fetched for an edit is not"
    );
}

#[test]
#[ignore = "tests/tools/run"]
fn program_and_its_child_processes_are_killed_at_its_timeout_and_the_guest_still_runs_commands() {
    run(|hand| {
        let said = hand.failed(
            "terminal_run",
            json!({"command": "trap '' TERM INT; sleep 71 & (sleep 72 &) ; bash -ic 'sleep 73' 2>/dev/null & setsid -f sleep 74; echo started; while :; do sleep 1; done", "timeout_seconds": 10}),
        );
        assert!(
            said.contains("ended after 10 seconds") && said.contains("child processes"),
            "{said}"
        );
        // A process that was killed may take a moment to end.
        let left = hand.sh("sleepers() { for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null | grep -E '^sleep'; }; \
             for n in $(seq 100); do sleepers | grep -qE 'sleep 7[123]' || break; sleep 0.1; done; sleepers | sort");
        // A process that called setsid and lost its parent is a daemon; it is not killed with the
        // call.
        assert!(
            left.contains("sleep 74")
                && !left.contains("sleep 71")
                && !left.contains("sleep 72")
                && !left.contains("sleep 73"),
            "{left}"
        );
        assert!(hand.sh("echo alive").contains("alive"));
        let slow = hand.call(
            "wordpress_run_php",
            json!({"code": "sleep(60);", "timeout_seconds": 1}),
        );
        assert_eq!(slow.status, ToolStatus::Failed);
        assert!(
            hand.ok("workspace_read", json!({"path": "hello.php"}))
                .contains("$x")
        );
    });
}

#[test]
#[ignore = "tests/tools/run"]
fn programs_over_the_output_or_memory_limit_do_not_end_the_guest() {
    let limits = json!({"limits": {"memory_bytes": 268_435_456, "output_bytes": 1_000_000}});
    run_with(&limits, |hand| {
        let said = hand.sh("yes \"$(seq -s - 30)\" | head -c 20000000");
        assert!(
            said.len() < 60_000 && said.contains("output limit"),
            "{}",
            said.len()
        );
        assert!(said.contains("exit code 0"));
        let said = hand.call(
            "terminal_run",
            json!({"command": "php -d memory_limit=-1 -r 'str_repeat(\"x\", 1 << 30);'"}),
        );
        assert!(said.text.contains("memory"), "{}", said.text);
        assert!(hand.sh("echo alive").contains("alive"));
        hand.ok("terminal_run", json!({"command": "seq 700000 > large.txt"}));
        assert!(
            hand.failed(
                "workspace_edit",
                json!({"path": "large.txt", "old_text": "a", "new_text": "b"})
            )
            .contains("too large")
        );
        let page = hand.ok(
            "workspace_read",
            json!({"path": "large.txt", "start_line": 40_000}),
        );
        assert!(
            page.len() < 60_000 && page.contains("(more: start_line"),
            "{}",
            page.len()
        );
    });
}

#[test]
#[ignore = "tests/tools/run"]
fn agent_file_tools_cannot_reach_outside_the_mounts_of_a_real_guest() {
    let ran = run(|hand| {
        hand.sh("ln -s /etc/passwd leak; ln -s /tmp out; mkfifo pipe; mkdir .git; echo x > .git/config; printf 'a\\nb' > \"$(printf 'n\\nl')\"; echo tmp > /tmp/secret");
        for path in [
            "/etc/passwd",
            "../../etc/passwd",
            "leak",
            "out/secret",
            "/tmp/secret",
            "/wordpress/wp-load.php",
            "/proc/1/environ",
            ".git/config",
            "/workspace/hello/../../etc/passwd",
        ] {
            hand.failed("workspace_read", json!({"path": path}));
            hand.failed("workspace_write", json!({"path": path, "content": "x"}));
            hand.failed("workspace_search", json!({"path": path, "pattern": "x"}));
            hand.failed(
                "workspace_delete",
                json!({"path": path.replace("leak", "out/secret")}),
            );
        }
        assert!(
            hand.failed("workspace_read", json!({"path": "pipe"}))
                .contains("fifo")
        );
        assert!(hand.sh("cat /tmp/secret").contains("tmp"));
        assert!(
            hand.ok("workspace_read", json!({"path": "n\nl"}))
                .contains("2|b")
        );
        hand.ok("workspace_delete", json!({"path": "leak"}));
        assert!(hand.sh("test -e /etc/passwd; echo $?").contains("\n0\n"));
    });
    let changed = ran.bundle("files/changed-files.json");
    assert!(
        !changed.contains(".git/config") && changed.contains("n\\nl"),
        "{changed}"
    );
}

#[test]
#[ignore = "tests/tools/run"]
fn agent_tools_cannot_change_read_only_mounts() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("lib.php"), "<?php\n").unwrap();
    symlink("lib.php", directory.path().join("same.php")).unwrap();
    let mounts = json!({"mounts": [{"source": directory.path(), "target": "/workspace/lib", "mode": "readonly"}]});
    run_with(&mounts, |hand| {
        assert!(
            hand.ok("workspace_read", json!({"path": "/workspace/lib/same.php"}))
                .contains("1|<?php")
        );
        for (tool, arguments) in [
            (
                "workspace_write",
                json!({"path": "lib.php", "content": "x"}),
            ),
            ("workspace_write", json!({"path": "d/new", "content": "x"})),
            (
                "workspace_edit",
                json!({"path": "lib.php", "old_text": "php", "new_text": "x"}),
            ),
            ("workspace_delete", json!({"path": "lib.php"})),
        ] {
            let said = hand.failed(tool, arguments);
            assert!(
                said.contains("read-only") || said.contains("Read-only"),
                "{said}"
            );
        }
    });
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
#[ignore = "tests/tools/run"]
fn agent_tools_run_php_wp_cli_abilities_and_http_requests_in_a_real_guest() {
    run(|hand| {
        assert!(
            hand.ok(
                "wordpress_run_php",
                json!({"code": "<?php echo get_bloginfo('version'), PHP_EOL, defined('ABSPATH');"})
            )
            .contains("\n1")
        );
        assert_eq!(
            hand.call(
                "wordpress_run_php",
                json!({"code": "throw new Exception('no');"})
            )
            .status,
            ToolStatus::Failed
        );
        assert!(
            hand.ok(
                "wordpress_wp_cli",
                json!({"command": "wp plugin list --format=csv"})
            )
            .contains("hello")
        );
        assert_eq!(
            hand.call("wordpress_wp_cli", json!({"command": "no-such-command"}))
                .status,
            ToolStatus::Failed
        );
        let info = hand.ok(
            "wordpress_ability",
            json!({"name": "core/get-site-info", "input": {"fields": ["version"]}}),
        );
        assert!(info.contains("\"version\""), "{info}");
        assert!(
            hand.failed("wordpress_ability", json!({"name": "no/such"}))
                .contains("core/get-site-info")
        );
        let index = hand.ok("wordpress_http_request", json!({"path": "/wp-json/"}));
        assert!(
            index.starts_with("GET /wp-json/: status 200") && index.contains("\"namespaces\""),
            "{}",
            &index[..300.min(index.len())]
        );
        let post = json!({"method": "POST", "path": "/wp-json/wp/v2/posts", "headers": {"content-type": "application/json"}, "body": "{\"title\":\"From a tool\",\"status\":\"publish\"}"});
        assert!(
            hand.ok("wordpress_http_request", post.clone())
                .contains("status 401")
        );
        let mut post = post;
        post["user_id"] = json!(1);
        assert!(
            hand.ok("wordpress_http_request", post)
                .contains("status 201")
        );
        let page = hand.ok("wordpress_http_request", json!({"path": "/"}));
        assert!(
            page.contains("status 200") && page.contains("</html>"),
            "{page}"
        );
        assert!(
            hand.ok("wordpress_http_request", json!({"path": "/?s=From+a+tool"}))
                .contains("From a tool")
        );
        assert!(
            hand.ok("wordpress_http_request", json!({"path": "/?p=99999"}))
                .contains("status 404")
        );
        for path in [
            "/wp-admin/",
            "/wp-login.php",
            "//example.org/",
            "http://example.org/",
        ] {
            hand.failed("wordpress_http_request", json!({"path": path}));
        }
        hand.sh("printf '<?php syntax error' > /workspace/hello/hello.php");
        assert!(
            hand.ok("tests_run", json!({"command": "php -l hello.php"}))
                .contains("0 of 1 passed")
        );
    });
}

#[test]
#[ignore = "tests/tools/run"]
fn agent_tools_not_listed_in_allowed_tools_are_refused_in_a_real_run() {
    let request = json!({
        "policy": policy(&["wordpress.wp-cli"]),
        "task": {"schema": "wp-codebox/task-input/v1", "version": 1, "goal": "g", "allowed_tools": ["workspace.read", "wordpress.wp-cli"]},
    });
    let ran = run_with(&request, |hand| {
        assert_eq!(hand.set.offered().len(), 4);
        for (tool, arguments) in [
            ("terminal_run", json!({"command": "echo x > hello.php"})),
            ("wordpress_run_php", json!({"code": "echo 1;"})),
            (
                "workspace_write",
                json!({"path": "hello.php", "content": "x"}),
            ),
        ] {
            let answer = hand.call(tool, arguments);
            assert_eq!(answer.status, ToolStatus::Denied);
            assert!(
                answer.executions.is_empty() && answer.text.contains("wp_codebox_tool_not_allowed")
            );
        }
        hand.ok("workspace_read", json!({"path": "hello.php"}));
        assert!(
            hand.ok(
                "wordpress_wp_cli",
                json!({"command": "option get blogname"})
            )
            .contains("exit code 0")
        );
    });
    assert!(ran.bundle("files/changed-files.json").contains("[]"));
    assert!(!ran.bundle("commands.jsonl").contains("terminal.run"));
}

#[test]
#[ignore = "tests/tools/run"]
fn agent_tools_edit_files_and_reach_wordpress_at_isolation_level_reduced() {
    crate::prepared::level::force_for_test(IsolationLevel::Reduced);
    let mut policy = policy(&["wordpress.run-php", "wordpress.wp-cli", "command-agent-run"]);
    policy["minimum_isolation"] = json!("reduced");
    let ran = run_with(&json!({"policy": policy}), |hand| {
        assert!(
            hand.ok("workspace_read", json!({"path": MAIN}))
                .contains("3|$x = 1;")
        );
        hand.ok(
            "workspace_edit",
            json!({"path": "hello.php", "old_text": "$x = 1;", "new_text": "$x = 5;"}),
        );
        hand.ok(
            "workspace_write",
            json!({"path": "new/file.txt", "content": "n"}),
        );
        for path in ["/etc/passwd", "../../../../../../etc/passwd", "/workspace"] {
            hand.failed("workspace_read", json!({"path": path}));
        }
        let diff = hand.ok("workspace_diff", json!({}));
        assert!(diff.contains("+$x = 5;"), "{diff}");
        let said = hand.failed(
            "terminal_run",
            json!({"command": "sleep 61 & sleep 62", "timeout_seconds": 1}),
        );
        assert!(said.contains("ended after 1 seconds"), "{said}");
        assert!(hand.sh("echo alive").contains("alive"));
        assert!(
            hand.ok("wordpress_http_request", json!({"path": "/wp-json/"}))
                .contains("status 200")
        );
        hand.ok("wordpress_ability", json!({"name": "core/get-site-info"}));
    });
    assert!(ran.bundle("files/patch.diff").contains("+$x = 5;"));
}
