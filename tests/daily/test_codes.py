"""Every error code in tests/golden/codes.txt, provoked by one call of `wp-codebox`, or listed with the test that provokes it.

A case checks the code and the exit status of its error, that the message is one sentence and names the cause, and that
message or hints say what to do next. The class World in `provoke.py` prepares what a call needs.
"""

import functools
import json
import os
import re
import shutil
import signal
import socket
from collections import namedtuple

import pytest
from provoke import KEY, World, root_only

from harness import await_count, kill_and_wait, must, sleeper, wake
from harness.processes import children

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

#: A next step is an instruction to the reader, a command to call, or the rule for the given value.
STEP = re.compile(r"(^|[ :;,(`])(add|allow|apply|choose|check|correct|describe|discard|end|export|give|install|let|list|mount|name|needs|raise|read|remount"
                  r"|remove|restore|run|say|set|stage|start|use|wait|write|wp-codebox|must be)\b", re.I)

#: How an error is provoked: part of the message that names the cause, part of message or hints that says what to do, and the call.
#: A name in braces stands for an attribute of the world.
Case = namedtuple("Case", "cause step call")


@pytest.fixture(scope="module")
def world(bench):
    world = World(bench)
    yield world
    world.close()


@functools.cache
def table():
    """Returns the exit status of each error code, from tests/golden/codes.txt."""
    with open(os.path.join(ROOT, "tests/golden/codes.txt"), encoding="utf-8") as file:
        rows = [line.split() for line in file.read().partition("# outcome")[0].splitlines()]
    return {row[0]: int(row[3]) for row in rows if row[0] != "#"}


def judge(error, case, world):
    """Checks that message and hints of an error are sentences that name its cause and the next step."""
    message, hints = error["message"], error.get("hints", [])
    told = " ".join([message, *hints])
    must(len(message.split()) >= 4 and "\n" not in message, f"the message is not one sentence: {message!r}")
    cause, step = case.cause.format(w=world), case.step.format(w=world)
    must(cause and cause in message, f"the message does not name {cause!r}: {message!r}")
    must(STEP.search(step) and step in told, f"the next step {step!r} is not in: {told!r}")


def check(code, case, world):
    answer = case.call(world).expect(table()[code], code)
    judge(answer.json["error"], case, world)


# Refusals for which no guest starts.


def mount_special_file(w):
    source = w.source()
    os.mkfifo(os.path.join(source, "pipe"))
    return w.agent("true", source=source)


def mount_unreadable(w):
    # With the shared identity the supervisor reads the source with the rights of the owner of the state directory.
    source = w.folder("unreadable", 0)
    shutil.chown(source, os.geteuid())
    return w.agent("true", "--identity", "shared", source=source)


def mount_too_large(w):
    source = w.source()
    with open(os.path.join(source, "sparse"), "wb") as file:
        file.truncate(1 << 40)
    return w.agent("true", source=source)


def snapshot_invalid(w):
    snapshot = "snap_" + "1" * 32
    path = os.path.join(w.bench.state, "sites", w.bench.site, "snapshots", snapshot)
    os.makedirs(path, mode=0o700)
    w.bench.own(os.path.dirname(path))
    return w.sandbox("create", "--profile", w.profile(), "--source", w.source(), "--from-snapshot", snapshot)


def audit_failed(w):
    # Removes a damaged snapshot. The record of the removal cannot be written, because audit.jsonl is a directory.
    state, snapshot = w.state(), "snap_" + "0" * 32
    for name in (os.path.join("snapshots", snapshot), "audit.jsonl"):
        w.private(state, "sites", "cli", name)
    return w.call("sandbox", "remove-snapshot", snapshot, "--state", state)


def ledger(w, command, *arguments, state):
    return w.call("ledger", command, *arguments, "--state", state)


def granted(w):
    """Returns a state directory with a ledger of one grant."""
    state = w.state()
    ledger(w, "grant", "shop", "10", "--reference", "invoice-1", "--reason", "r", state=state).expect(0)
    return state


def ledger_damaged(w):
    state = granted(w)
    os.unlink(os.path.join(state, "ledger-anchor", "anchor.json"))
    return ledger(w, "balance", state=state)


def prices(w, *arguments, **members):
    table = {"schema": "wp-codebox/meter-prices/v1", "unit": "credit", "extensions": {}, **members}
    return w.call("ledger", "prices", "--prices", w.file("prices.json", table), *arguments)


def egress_unavailable(w):
    # Without trusted CA certificates the bridge cannot verify any host.
    covers = " && ".join(f"mount -t tmpfs none {path}" for path in ("/etc/ssl", "/usr/lib/ssl", "/usr/share/ca-certificates"))
    return w.agent("true", "--allow-host", "allowed.test", prefix=w.namespace(covers))


def preview_unavailable(w):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        return w.php("--preview-hold", "5s", "--preview-port", str(taken.getsockname()[1]))


REFUSED = {
    "wp_codebox_cluster_not_configured": Case("its state directory has no cluster.json", "run the task on this host", lambda w: w.call("cluster", "hosts", "--state", w.state())),
    "wp_codebox_cluster_unreachable": Case("127.0.0.1:1", "check the address", lambda w: w.call("cluster", "hosts", "--nats", "nats://127.0.0.1:1")),
    "wp_codebox_task_missing": Case("--goal is empty", "describe what the agent should do", lambda w: w.agent("true", "--goal", " ")),
    "wp_codebox_raw_code_forbidden": Case(
        "code is not accepted", "mount the code and describe the goal", lambda w: w.task("agent-sandbox-run", {"goal": "g", "agent_command": "true", "code": "x"})),
    "wp_codebox_input_invalid": Case("'--moutn'", "wp-codebox run --help", lambda w: w.call("run", "--moutn", "x")),
    "wp_codebox_mount_invalid": Case('--mount ":/workspace/a"', "must be HOST, HOST:GUEST or", lambda w: w.run("--mount", ":/workspace/a")),
    "wp_codebox_mount_source_invalid": Case("/none: the source of mount", "check the path", lambda w: w.agent("true", source="/none")),
    "wp_codebox_mount_denied": Case("/etc: the source of mount", "use the plugin or theme directory itself", lambda w: w.agent("true", source="/etc")),
    "wp_codebox_mount_special_file": Case('the FIFO "pipe"', "remove it or mount a directory without special files", mount_special_file),
    "wp_codebox_mount_unreadable": Case('-unreadable: mount', "give the user that runs the sandbox read access", mount_unreadable),
    "wp_codebox_mount_too_large": Case("bytes in one file", "mount a smaller directory", mount_too_large),
    "wp_codebox_git_unavailable": Case("mount /workspace/plugin", "mount the root", lambda w: w.agent("true", "--git", "history")),
    "wp_codebox_mount_target_invalid": Case('"/etc"', "must be a normalised path below /workspace, ", lambda w: w.run("--mount", f"{w.plugin}:/etc", "--agent-command", "true")),
    "wp_codebox_mount_target_overlap": Case(
        "/workspace/plugin/lib", "give each mount a target of its own", lambda w: w.agent("true", "--mount", f"{w.plugin}:/workspace/plugin/lib")),
    "wp_codebox_limit_invalid": Case("limits.memory_bytes is 1024", "must be from", lambda w: w.agent("true", "--memory", "1K")),
    "wp_codebox_agent_missing": Case("named nobody", "choose an installed one: aider", lambda w: w.run("--goal", "g", "--agent", "nobody")),
    "wp_codebox_model_missing": Case("the agent codex", "--model NAME --model-url URL", lambda w: w.run("--goal", "g", "--agent", "codex")),
    "wp_codebox_model_invalid": Case("base_url", "correct these fields", lambda w: w.built_in(url="http://api.example.org")),
    "wp_codebox_budget_invalid": Case("turns: must be", "correct these fields", lambda w: w.built_in("--max-turns", "0")),
    "wp_codebox_sandbox_tool_policy_invalid": Case("the tool policy", "correct these fields", lambda w: w.built_in("--tool-policy", "{}")),
    "wp_codebox_tool_not_allowed": Case(
        '"workspace.write"', "choose among workspace.read", lambda w: w.built_in("--allowed-tool", "workspace.write", *w.policy(filesystem="readonly-mounts"))),
    "runtime-policy-invalid": Case("network: must be", "correct these fields", lambda w: w.php(*w.policy(network="open"))),
    "runtime-command-disallowed": Case("wordpress.run-php", "add it to the policy's commands", lambda w: w.php(*w.policy(commands=["wordpress.wp-cli"]))),
    "wp_codebox_policy_unenforceable": Case("network: unrestricted", 'use "deny" or name hosts', lambda w: w.php(*w.policy(network="allow"))),
    "wp_codebox_command_unknown": Case("wordpress.destroy", "`wp-codebox commands` lists all commands", lambda w: w.run("--command", "wordpress.destroy")),
    "wp_codebox_command_unsupported": Case(
        "wp-codebox/run-fuzz-suite", "write the inputs as steps of a recipe", lambda w: w.run("--command", "wp-codebox/run-fuzz-suite")),
    "wp_codebox_recipe_invalid": Case("$.workflow.steps[0].command", "correct these fields", lambda w: w.recipe({"command": "wordpress.no-such"})),
    "wp_codebox_profile_invalid": Case(
        "$.extension", "correct these fields",
        lambda w: w.sandbox("create", "--profile", w.file("bad.yaml", "id: a\nversion: 1.0.0\nextension: Ext\n"))),
    "wp_codebox_profile_not_found": Case("profile.none", "give the path of a file", lambda w: w.sandbox("create", "--profile", "profile.none")),
    "wp_codebox_route_unsatisfied": Case(
        "accepts only extension ext.compose-ssh", "use another profile",
        lambda w: w.sandbox("create", "--profile", w.file("elsewhere.yaml", "id: a\nversion: 1.0.0\nextension: ext.compose-ssh\n"))),
    "wp_codebox_sandbox_not_found": Case("run_00", "`wp-codebox sandbox list` shows all", lambda w: w.sandbox("get", "run_00")),
    "wp_codebox_snapshot_not_found": Case('"none"', "`wp-codebox sandbox snapshots` lists all", lambda w: w.sandbox("remove-snapshot", "none")),
    "wp_codebox_snapshot_invalid": Case("snap_11", "use another snapshot", snapshot_invalid),
    "wp_codebox_audit_failed": Case("the audit log", "check owner and free space of the state directory", audit_failed),
    "wp_codebox_forbidden": Case(
        "the policy allows no secrets", 'set "secrets": "connector-scoped"',
        lambda w: w.agent("true", "--secret-env", f"{KEY}=example.org", *w.policy(network={"allowHosts": ["example.org"]}), environment={KEY: "a-value-of-the-test"})),
    "wp_codebox_secret_invalid": Case("UNSET_KEY", "export it first", lambda w: w.built_in("--model-key-env", "UNSET_KEY")),
    "wp_codebox_run_not_found": Case('"run_00"', "list the runs", lambda w: w.call("runs", "get", "run_00", *w.place)),
    "wp_codebox_tasks_missing": Case("No task", "give tasks", lambda w: w.task("agent-sandbox-batch", {"tasks": []})),
    "wp_codebox_fanout_workers_missing": Case("No worker", 'give "workers"', lambda w: w.fanout()),
    "wp_codebox_fanout_worker_invalid": Case("Worker 0", 'give an object with "id" and "goal"', lambda w: w.fanout("text")),
    "wp_codebox_fanout_worker_id_invalid": Case("Worker 0", "needs an id of up to 64 letters, digits,", lambda w: w.fanout({"id": "a b", "goal": "g"})),
    "wp_codebox_fanout_worker_id_duplicate": Case('the id "a"', "give each worker an id", lambda w: w.fanout({"id": "a", "goal": "g"}, {"id": "a", "goal": "g"})),
    "wp_codebox_fanout_worker_goal_missing": Case('Worker "a"', 'say in "goal"', lambda w: w.fanout({"id": "a"})),
    "wp_codebox_fanout_worker_dependency_invalid": Case(
        'depends on "b"', "name workers of this plan", lambda w: w.fanout({"id": "a", "goal": "g", "dependsOn": ["b"]})),
    "wp_codebox_fanout_concurrency_invalid": Case("concurrency", "must be a whole number from 1 to", lambda w: w.fanout({"id": "a", "goal": "g"}, concurrency=0)),
    "wp_codebox_config_invalid": Case(
        "config.json", "wp-codebox config --help describes this file", lambda w: w.call("config", environment={"WP_CODEBOX_CONFIG": w.file("config.json", {"stat": "/x"})})),
    "wp_codebox_state_dir_invalid": Case("/none does not exist", "install -d -m 0700", lambda w: w.call("runs", "list", "--state", "/none")),
    "wp_codebox_wordpress_unavailable": Case("WordPress 1.2.3", "wp-codebox wordpress install 1.2.3", lambda w: w.cores("use", "1.2.3")),
    "wp_codebox_wordpress_invalid": Case("wp-load.php is missing", "must be at the top level", lambda w: w.cores("install", w.folder("empty"))),
    "wp_codebox_artifact_id_missing": Case("names no bundle", "give the id of a bundle or of its run", lambda w: w.agent("true", "--follow-up", "")),
    "wp_codebox_artifact_not_found": Case(
        "the bundle /none", "name the directory of a bundle", lambda w: w.call("artifacts", "verify", "--bundle", "/none", *w.place[:2])),
    "wp_codebox_apply_not_found": Case('"apply_00"', "wp-codebox log shows the runs", lambda w: w.call("undo", "apply_00", *w.place)),
    "wp_codebox_preview_unavailable": Case("another program listens on this port", "choose another address or port", preview_unavailable),
    "wp_codebox_sandbox_wrapper_missing": Case(
        "/none", "install it", lambda w: w.agent("true", "--outer-sandbox", "bubblewrap", "--outer-sandbox-program", "/none")),
    "wp_codebox_sandbox_start_failed": Case(
        "the outer sandbox around the launcher ended", "Run the same task without the outer sandbox",
        lambda w: w.agent("true", "--outer-sandbox", "bubblewrap", "--outer-sandbox-program", "/bin/false")),
    "wp_codebox_ledger_conflict": Case(
        "invoice-1", "give each grant a reference of its own",
        lambda w: ledger(w, "grant", "shop", "11", "--reference", "invoice-1", "--reason", "r", state=granted(w))),
    "wp_codebox_ledger_damaged": Case("its anchor", "restore the newest backup", ledger_damaged),
    "wp_codebox_ledger_unavailable": Case("no ledger at", "`wp-codebox ledger grant` creates it", lambda w: ledger(w, "balance", state=w.state())),
    "wp_codebox_prices_invalid": Case("currency", "correct it", lambda w: prices(w, currency="EUR")),
    "wp_codebox_price_missing": Case('"ext.none"', "add a row for it", lambda w: prices(w, "--extension", "ext.none", "--duration", "1h")),
    "wp_codebox_egress_unavailable": Case("no trusted certificates", "install the ca-certificates package", egress_unavailable),
}


# Failures of a run, of a held sandbox, or of what a run left.


def tool(name, **arguments):
    """Returns an answer of the model with one tool call."""
    return {"calls": [{"tool": name, "args": arguments}]}


def component_unavailable(w):
    broken = w.folder("broken")
    with open(os.path.join(broken, "broken.php"), "w", encoding="utf-8") as file:
        file.write("<?php\n/* Plugin Name: Broken */\nthrow new Exception( 'no such table' );\n")
    plugins = [{"source": broken, "slug": "broken", "loadAs": "mu-plugin"}]
    return w.recipe({"command": "wordpress.run-php", "args": ["code=1;"]}, inputs={"extra_plugins": plugins})


def collection_failed(w):
    return w.recipe({"command": "wordpress.run-php", "args": ["code=1;"]}, artifacts={"paths": [{"name": "report", "path": "/tmp/nothing"}]})


def template_failed(w):
    core = w.path("wordpress")
    shutil.copytree(w.bench.environment["CODEBOX_WORDPRESS"], core, ignore=shutil.ignore_patterns("themes", "plugins", "js", "css", "images"))
    with open(os.path.join(core, "wp-settings.php"), "w", encoding="utf-8") as file:
        file.write("<?php throw new Exception( 'settings broken' );")
    arguments = w.run_arguments("--command", "wordpress.run-php", "--arg", "code=1;", state=w.state())
    arguments[arguments.index("--wordpress") + 1] = core
    return w.call(*arguments)


def sandbox_in_use(w):
    program = sleeper(71)
    busy = w.start(["exec", w.held, *w.place, "--", *program.split()])
    try:
        await_count(1, program)
        return w.sandbox("snapshot", w.held, "--name", "busy")
    finally:
        busy.kill()
        busy.communicate()


def sync_conflict(w):
    directory = w.folder("sync")
    side, both = f"{directory}:/workspace/plugin/c", os.path.join(directory, "both.txt")
    w.write(both, "one")
    w.call("sync", w.held, "push", side, *w.place).expect(0)
    inside = w.bench.call("exec", w.held, *w.place, "--", "sh", "-c", "printf theirs >/workspace/plugin/c/both.txt")
    must(inside.exit == 0, str(inside))
    w.write(both, "ours")
    return w.call("sync", w.held, "push", side, *w.place)


def busy(w):
    must(w.held, "no run of the site is active")
    return w.task("agent-sandbox-run", {"goal": "g", "agent_command": "true"}, "--max-runs", "1")


def guest_ids_exhausted(w):
    root_only("a kernel uid for guests")
    must(w.held, "no sandbox has the only id")
    return w.agent("true", "--identity", "own", "--guest-ids", w.one_id)


def run_ambiguous(w):
    w.agent("true").expect(0)
    must(w.ended, "there is only one run")
    return w.call("runs", "get", "run_", *w.place)


def runner_unavailable(w):
    return w.interrupted(sleeper(73), lambda process, _: kill_and_wait(*children(process.pid)))[0]


def baseline_changed(w):
    program = sleeper(74)

    def edit(_, source):
        w.write(os.path.join(source, "lib", "a.txt"), "edited on the host\n")
        wake(program)

    answer, source = w.interrupted(program, edit)
    return w.apply(answer.result["run_id"], source)


def base_changed(w):
    run, source, _ = w.changed("echo four >> lib/a.txt")
    w.write(os.path.join(source, "lib", "a.txt"), "edited on the host\n")
    return w.agent("true", "--follow-up", run, source=source)


def artifact_ambiguous(w):
    for _ in range(2):
        w.changed()
    return w.agent("true", "--follow-up", "artifact-bundle-")


def secret_in_patch(w):
    policy = w.policy(network={"allowHosts": ["allowed.test"]}, secrets="connector-scoped", expose_secrets=[KEY])
    return w.agent(f'printf %s "${KEY}" > key.txt', *policy, "--secret-env", KEY, source=w.source(), environment={KEY: "correct-horse-battery-0123"})


def artifact_outside_root(w):
    run, _, bundle = w.changed()
    os.rename(bundle, bundle + ".moved")
    os.symlink(bundle + ".moved", bundle)
    return w.call("diff", run, *w.place)


def artifact_verification_failed(w):
    run, source, bundle = w.changed()
    os.unlink(os.path.join(bundle, "files", "patch.diff"))
    return w.apply(run, source)


def artifact_untrusted(w):
    bundle, state = w.changed()[2], w.state()
    key = os.path.join(w.private(state, "keys"), "host.ed25519")
    with open(key, "wb") as file:
        file.write(bytes(range(32)))
    os.chmod(key, 0o600)
    return w.call("artifacts", "apply-preflight", "--bundle", bundle, "--approved-file", "/workspace/plugin/x.txt", "--state", state)


def apply_conflict(w):
    run, source, _ = w.changed("echo four >> lib/a.txt")
    w.write(os.path.join(source, "lib", "a.txt"), "mine\n")
    return w.apply(run, source)


def apply_of_a_failed_run(w):
    source = w.source()
    run = w.agent("echo x >> plugin.php; exit 1", source=source).expect(1).result["run_id"]
    return w.apply(run, source)


def apply_failed(w):
    run, source, _ = w.changed()
    return w.apply(run, source, prefix=w.namespace(f"mount --bind {source} {source} && mount -o remount,bind,ro {source}"))


def apply_undone(w):
    run, source, _ = w.changed()
    w.apply(run, source).expect(0)
    w.call("undo", *w.place, cwd=source).expect(0)
    return w.call("undo", *w.place, cwd=source)


FAILED = {
    "wp_codebox_agent_program_missing": Case('"no-such-program"', "stage a file or mount its directory", lambda w: w.run("--agent-command", "no-such-program")),
    "wp_codebox_budget_exhausted": Case(
        "1 turns", "give a smaller task", lambda w: w.model([tool("terminal.run", command="echo 1"), tool("terminal.run", command="echo 2")], "--max-turns", "1")),
    "wp_codebox_agent_no_progress": Case("workspace_read 5 times", "give a smaller task", lambda w: w.model([tool("workspace.read", path="plugin.php")])),
    "wp_codebox_agent_blocked": Case("the licence is missing", "remove what stops the agent", lambda w: w.model([tool("task.blocked", reason="the licence is missing")])),
    "wp_codebox_provider_unavailable": Case(
        "status 500", "check base_url, or try again later",
        # The provider demands a pause of 110 s. The run has less time left, so the agent loop does not try again.
        lambda w: w.model([{"fault": "status", "status": 500, "headers": {"retry-after": "110"}}], "--timeout", "60s")),
    "wp_codebox_provider_rejected": Case("refused the key", "correct the secret", lambda w: w.model([tool("task.finish", summary="Done.")], key="sk-another-key-of-the-test")),
    "wp_codebox_command_failed": Case('no ability "no/such"', "name one of: core/", lambda w: w.run("--command", "wordpress.ability", "--arg", "name=no/such")),
    "wp_codebox_step_failed": Case(
        "step steps[0] (wordpress.wp-cli)", "read the output of the step", lambda w: w.recipe({"command": "wordpress.wp-cli", "args": ["command=option get no_such"]})),
    "wp_codebox_collection_failed": Case("/tmp/nothing", "let a step write the file", collection_failed),
    "wp_codebox_component_unavailable": Case("the required component broken", "correct the component, or leave it out", component_unavailable),
    "wp_codebox_template_failed": Case("settings broken", "name a directory with an unchanged WordPress release", template_failed),
    "wp_codebox_browser_unavailable": Case(
        "/none", "install Chromium", lambda w: w.run("--command", "wordpress.browser-probe", "--arg", "url=/", "--browser", "/none")),
    "wp_codebox_isolation_unavailable": Case(
        "axis cpu must be enforced", 'set isolation_floors.cpu to "best-effort"', lambda w: w.php(*w.policy(isolation_floors={"cpu": "enforced"}))),
    "wp_codebox_run_timeout": Case("its wall clock limit", "raise the limit", lambda w: w.agent("sleep 60", "--timeout", "1s")),
    "wp_codebox_memory_limit": Case(
        "ran out of memory", "raise the memory limit",
        lambda w: w.agent("php -d memory_limit=-1 -r '$a = []; while (true) { $a[] = str_repeat(chr(65), 1 << 20); }'", "--memory", "96M")),
    "wp_codebox_disk_limit": Case("the guest's disk was full", "raise the disk limit", lambda w: w.agent("head -c 30000000 /dev/zero > big.bin || exit 9", "--disk", "16M")),
    "wp_codebox_capture_limit": Case("64 directory levels", "let the agent change less", lambda w: w.agent("mkdir -p " + "d/" * 70)),
    "wp_codebox_run_failed": Case("sh exited with 9", "read the output of sh", lambda w: w.agent("exit 9")),
    "wp_codebox_run_cancelled": Case(
        "the caller cancelled the run", "start the task again", lambda w: w.interrupted(sleeper(72), lambda process, _: process.send_signal(signal.SIGINT))[0]),
    "wp_codebox_runner_unavailable": Case("the supervisor of run_", "`wp-codebox runs get run_", runner_unavailable),
    "wp_codebox_run_ambiguous": Case('"run_"', "give more characters", run_ambiguous),
    "wp_codebox_sandbox_not_held": Case("{w.ended} has ended", "wp-codebox runs list --status running", lambda w: w.call("runs", "socket", w.ended, *w.place)),
    "wp_codebox_sandbox_in_use": Case("(sleep)", "end them or wait", sandbox_in_use),
    "wp_codebox_sync_conflict": Case("both.txt", "choose a side: --on-conflict ours", sync_conflict),
    "wp_codebox_busy": Case("the limit is 1", "wait until one ends", busy),
    "wp_codebox_guest_ids_exhausted": Case("guest ids from", "wait until a sandbox ends", guest_ids_exhausted),
    "wp_codebox_check_failed": Case("check `false`", "read the output of the check", lambda w: w.agent("true", "--check", "false")),
    "wp_codebox_secret_in_patch": Case("key.txt", "remove it and run again", secret_in_patch),
    "wp_codebox_bundle_write_failed": Case("/dev/null/out", "artifacts directory that this user may write", lambda w: w.agent("true", "--artifacts", "/dev/null/out")),
    "wp_codebox_internal": Case(
        "/none/answer.json", "name a file in a directory that exists",
        lambda w: w.task("agent-sandbox-run", {"goal": "g", "agent_command": "true"}, "--result-file", "/none/answer.json")),
    "wp_codebox_baseline_changed": Case("files of the mounted directory changed", "run again", baseline_changed),
    "wp_codebox_base_changed": Case("lib/a.txt", "start a new run from the current files", base_changed),
    "wp_codebox_artifact_ambiguous": Case('"artifact-bundle-"', "give the whole run id of one", artifact_ambiguous),
    "wp_codebox_artifact_outside_root": Case("the entry run_", "remove the link", artifact_outside_root),
    "wp_codebox_artifact_verification_failed": Case("files/patch.diff", "discard it or run the task again", artifact_verification_failed),
    "wp_codebox_artifact_untrusted": Case("not signed by this host", "run the task on this host", artifact_untrusted),
    "wp_codebox_approved_files_missing": Case(
        "approves no file", "name at least one", lambda w: w.call("artifacts", "apply-preflight", "--bundle", w.changed()[2], "--state", w.bench.state)),
    "wp_codebox_approved_files_invalid": Case('"c.txt"', "wp-codebox diff --stat lists the changed files", lambda w: w.apply(*w.changed()[:2], "--file", "c.txt")),
    "wp_codebox_apply_conflict": Case("lib/a.txt", "run again on the current files", apply_conflict),
    "wp_codebox_apply_syntax_invalid": Case(
        '"plugin.php" is not valid PHP', "apply only the other files", lambda w: w.apply(*w.changed("echo 'function (' >> plugin.php")[:2])),
    "wp_codebox_apply_checks_unconfirmed": Case(
        "did not succeed", "look at it with wp-codebox diff", apply_of_a_failed_run),
    "wp_codebox_apply_failed": Case("create a directory in the target", "remount the file system", apply_failed),
    "wp_codebox_apply_undone": Case("apply_", "name an older change", apply_undone),
    "wp_codebox_apply_target_mismatch": Case("not this directory", "name the directory to change with --to", lambda w: w.call("apply", w.changed()[0], *w.place, cwd=w.folder("other"))),
}


# Codes that a run reports without failing: in a notice, or in the response to a request of the guest.


def egress_failed(w):
    root_only("a network namespace")
    # Without a network no name is resolved.
    answer = w.agent('curl -sS "$CODEBOX_EGRESS_URL/https/allowed.test/x"', "--allow-host", "allowed.test", prefix=["unshare", "--net"])
    executions = answer.expect(0).result["transcript"]["executions"]
    output = next(row["stdout"] for row in executions if row["phase"] == "agent")
    return json.loads(output.splitlines()[1])


def notice(answer, code):
    """Returns the notice with the code as an error."""
    found = [text for text in answer.expect(0).result["notices"] if text.endswith(f"[{code}]")]
    must(len(found) == 1, str(answer.result["notices"]))
    return {"code": code, "message": found[0]}


REPORTED = {
    "wp_codebox_output_limit": Case(
        "20000 bytes of stdout", "raise the output limit",
        lambda w: notice(w.agent("head -c 20000 /dev/zero", "--output-limit", "4K"), "wp_codebox_output_limit")),
    "wp_codebox_egress_denied": Case(
        "other.test", "allow them in the policy's network",
        lambda w: notice(w.agent('curl -sS "$CODEBOX_EGRESS_URL/https/other.test/x"', "--allow-host", "allowed.test"), "wp_codebox_egress_denied")),
    "wp_codebox_egress_failed": Case("name could not be resolved", "check its spelling", egress_failed),
}


# Codes that no call of `wp-codebox` reports: file and name of the test that provokes the code.

CASES = "tests/wordpress/cases"
NORMALIZE = f"{CASES}/browser-artifacts.php: normalize-browser-artifact-bundle returns files with sizes and digests, and refuses each mistake with its code"
UPLOAD = f"{CASES}/browser-artifacts.php: browser bundle: an upload without a change, without files, outside the session, malformed or with a secret is refused"
ABILITIES = f"{CASES}/abilities.php: each ability is allowed with its own capability and denied with the other capabilities"
BRIDGE_POLICY = f"{CASES}/bridge.php: a bridge policy that is incomplete or invalid refuses every request"
BRIDGE_REQUEST = f"{CASES}/bridge.php: a request with an unsupported operation, method, address or authentication is not sent"
BRIDGE_CALLBACK = f"{CASES}/bridge.php: an authenticate_request callback may change URL and headers, and the bridge checks the result"
HANDLER = f"{CASES}/connectors.php: a handler that throws or returns an invalid response fails closed, and only its location is logged"
IMPORT = f"{CASES}/transfers.php: transfer: an import with a missing, invalid or mismatched source is refused and audited"
TARGET = f"{CASES}/runtime-tasks.php: runtime task: an unknown field, target or right of the caller is refused, also inside input and options"
RUNTIME = f"{CASES}/runtime-tasks.php: runtime task: a plugin can provide a runtime, and its answer is checked"
PACKAGE = f"{CASES}/runtime-tasks.php: runtime package: what cannot run is a failed result with the reason, and an incomplete request is refused"
SEEDS = f"{CASES}/site-seeds.php: site seeds: a wrong seed is refused by its code and field before anything is read"
PACKAGE_PROVIDER = f"{CASES}/runtime-tasks.php: runtime package: a plugin can choose the runtime, and its answer is checked"
WORKLOAD = f"{CASES}/workloads.php: workload: what a sandbox cannot do is answered as unsupported before anything runs"
FUZZ = f"{CASES}/workloads.php: fuzz suite: a suite that needs this site, coverage or unknown targets is unsupported, and an invalid one is refused"
DELEGATION = f"{CASES}/delegations.php: delegation: an answer that belongs to another request, or is none, is refused with its own code"
DELEGATED = f"{CASES}/delegations.php: delegation: a request without a goal, with a wrong digest or too large is refused before the plugin is asked"
WORKSPACE = f"{CASES}/runner-workspaces.php: runner workspace: failures and malformed answers of the backend have a type and a code"
BLUEPRINT_REF = f"{CASES}/browser-sites.php: a reference that is tampered, foreign, expired, replayed or of other sources gives no blueprint, each with its code"
BROWSER_SITE = f"{CASES}/browser-sites.php: it opens, boots and ends, and a handle of another session or scope is refused"
BROWSER_STORE = f"{CASES}/browser-sites.php: a session store tells unknown, expired and foreign sessions apart"
BROWSER_FIELD = f"{CASES}/browser-sessions.php: what can have no effect in a browser is refused by its name, and its empty value is accepted"
BROWSER_PICTURE = f"{CASES}/browser-sites.php: a picture of an archived site is checked and answered as unsupported"
PROVIDER_REQUEST = f"{CASES}/connectors.php: provider request: every refusal has its code, and a request without an adapter is refused"

SERVICE = "ext/platform/service/tests/service"
WASI = "ext/tools/wasi/tests/runner"

WASI_REGISTRY = "ext/run/supervisor/tests/wasi_registry.rs"

BUS, NATS, RUNS = "ext/platform/cluster/tests/nats.rs", "tests/cluster/test_nats.py", "tests/cluster/test_runs.py"
ELSEWHERE = {
    "wp_codebox_cluster_denied": f"{BUS}: accounts_of_submitter_and_node_are_denied_at_once_what_only_other_parties_may_do",
    "wp_codebox_cluster_not_set_up": f"{BUS}: submitter_for_which_the_cluster_is_not_set_up_gets_the_code_not_set_up",
    "wp_codebox_cluster_server_too_old": f"{NATS}: test_server_that_is_too_old_unreachable_or_not_set_up_is_refused_with_its_own_code",
    "wp_codebox_cluster_server_not_strict": f"{NATS}: test_every_party_refuses_a_server_that_is_not_strict",
    "wp_codebox_cluster_full": f"{BUS}: full_queue_refuses_messages_until_one_is_acknowledged_and_other_queues_have_room",
    "wp_codebox_cluster_object_too_large": f"{BUS}: new_records_leave_room_for_changes_of_existing_records",
    "wp_codebox_cluster_conflict": f"{NATS}: test_setup_that_lowers_a_stream_limit_without_shrink_option_is_refused_and_changes_nothing",
    "wp_codebox_cluster_missing": f"{BUS}: watch_returns_the_present_record_each_change_and_its_removal",
    "wp_codebox_cluster_unreadable": f"{BUS}: record_that_is_unreadable_of_another_run_or_of_a_foreign_queue_is_an_error_and_hides_no_other",
    "wp_codebox_cluster_tries_exhausted": f"{RUNS}: test_run_with_max_tries_1_ends_with_tries_exhausted_after_its_node_is_killed",
    "wp_codebox_cluster_node_untrusted": f"{RUNS}: result of a node that is not listed",
    "wp_codebox_cluster_result_invalid": "ext/platform/cluster/src/result/tests.rs: result_of_another_run_task_epoch_node_or_submitter_is_refused",
    "wp_codebox_placement_unsupported": f"{RUNS}: held sandbox",
    "wp_codebox_secret_source_gone": "ext/platform/cluster/src/seal/tests.rs: unanswered_secret_request_fails_with_secret_source_gone_and_a_denied_one_with_cluster_denied",
    "wp_codebox_wasi_runner_missing": f"{WASI_REGISTRY}: missing_runner_is_an_error_that_says_how_to_install_it",
    "wp_codebox_wasi_tool_unknown": f"{WASI_REGISTRY}: added_tool_is_listed_with_digests_and_compiled_code_and_disappears_when_removed",
    "wp_codebox_wasi_tool_taken": f"{WASI_REGISTRY}: refused_tool_leaves_nothing_in_the_registry",
    "wp_codebox_wasi_tool_untrusted": f"{WASI_REGISTRY}: changed_module_and_files_that_other_users_may_write_are_refused",
    "wp_codebox_wasi_registry_failed": f"{WASI_REGISTRY}: tool_registry_that_is_a_file_is_an_error_and_a_missing_tool_registry_is_empty",
    "wp_codebox_credits_short":
        "ext/platform/ledger/tests/operations.rs: reservation_beyond_the_available_credits_is_refused_and_one_of_all_of_them_is_accepted",
    # The caller is a client of the service.
    "wp_codebox_account_missing": f"{SERVICE}/credits.rs: administrator_must_name_an_account_and_a_token_may_name_only_its_own",
    "wp_codebox_service_token_required": f"{SERVICE}/access.rs: wrong_revoked_and_malformed_tokens_get_the_same_refusal",
    "wp_codebox_service_scope_missing": f"{SERVICE}/access.rs: token_creates_only_sandboxes_of_the_profiles_that_its_scopes_name",
    "wp_codebox_service_not_found": f"{SERVICE}/sandboxes.rs: created_sandbox_becomes_ready_runs_programs_stores_files_and_can_be_destroyed",
    "wp_codebox_service_method_not_allowed": f"{SERVICE}/bounds.rs: malformed_requests_are_refused_and_the_server_still_serves_requests",
    "wp_codebox_idempotency_conflict":
        f"{SERVICE}/sandboxes.rs: concurrent_requests_with_one_idempotency_key_make_one_sandbox_and_another_body_is_a_conflict",
    "wp_codebox_precondition_failed": f"{SERVICE}/sandboxes.rs: created_sandbox_becomes_ready_runs_programs_stores_files_and_can_be_destroyed",
    "wp_codebox_service_request_too_large": f"{SERVICE}/bounds.rs: request_with_an_oversized_head_or_body_is_refused_with_status_431_or_413",
    "wp_codebox_service_request_timeout": f"{SERVICE}/bounds.rs: slow_clients_lose_their_connection_and_others_do_not_wait",
    "wp_codebox_service_rate_limited":
        f"{SERVICE}/access.rs: requests_beyond_the_rate_or_concurrency_of_a_token_are_refused_and_other_tokens_are_not",
    "wp_codebox_service_unavailable": "tests/service/test_restart.py: test_second_server_on_a_state_directory_is_refused_until_the_first_one_is_killed",
    # The runner of WASI tools, a program of its own.
    "wp_codebox_wasi_definition_invalid": f"{WASI}/modules.rs: definition_with_a_host_path_or_an_unknown_member_is_refused",
    "wp_codebox_wasi_digest_mismatch": f"{WASI}/modules.rs: module_that_differs_from_its_definition_is_refused",
    "wp_codebox_wasi_module_invalid": f"{WASI}/modules.rs: file_that_is_not_a_valid_wasi_command_module_is_refused",
    "wp_codebox_wasi_import_refused": f"{WASI}/modules.rs: import_that_is_not_granted_is_refused_before_any_code_runs",
    "wp_codebox_wasi_compiled_refused": f"{WASI}/compiled.rs: compiled_code_that_another_user_could_have_written_is_refused",
    "wp_codebox_wasi_directory_refused": f"{WASI}/files.rs: directory_that_the_definition_does_not_allow_is_refused",
    "wp_codebox_wasi_fuel_exhausted": f"{WASI}/limits.rs: endless_loop_ends_by_its_fuel_or_at_its_deadline_whichever_comes_first",
    "wp_codebox_wasi_memory_exceeded": f"{WASI}/limits.rs: memory_and_tables_beyond_the_limit_end_the_call",
    "wp_codebox_wasi_deadline": f"{WASI}/limits.rs: module_that_sleeps_in_the_host_ends_at_its_deadline",
    "wp_codebox_wasi_output_too_large": f"{WASI}/limits.rs: output_beyond_the_limit_ends_the_call_after_exactly_the_limit",
    "wp_codebox_wasi_trap": f"{WASI}/limits.rs: traps_are_reported_with_their_name",
    "wp_codebox_wasi_exit_invalid":
        f"{WASI}/limits.rs: exit_statuses_0_to_123_are_passed_on_and_a_module_cannot_fake_an_error_of_the_runner",
    "wp_codebox_wasi_runner_failed": f"{WASI}/compiled.rs: compile_into_a_missing_directory_fails_with_code_wasi_runner_failed",
    # Needs several hosts.
    "wp_codebox_route_no_capacity": "ext/core/routing/tests/decisions.rs: request_fails_with_no_capacity_only_if_a_full_host_would_otherwise_meet_it",
    "wp_codebox_service_failed": "tests/recipes/test_services.py: test_killed_database_fails_its_step_and_ends_the_run",
    # The caller is a WordPress site, which resolves plugins, providers, connectors and components.
    "wp_codebox_mount_missing": f"{CASES}/runs.php: no mount",
    "wp_codebox_provider_credentials_unavailable": f"{CASES}/model-runs.php: a missing key is refused before a run starts",
    "wp_codebox_connector_credentials_unavailable":
        f"{CASES}/credentials.php: the first inherited connector with a provider is used, and an unusable connector refuses the task",
    "wp_codebox_component_path_missing": "tests/components/test_load.py: test_component_with_a_denied_or_missing_source_or_an_invalid_or_repeated_slug_is_refused",
    "wp_codebox_runtime_task_request_invalid": "tests/components/test_task.py: test_missing_ability_is_refused_before_any_command_runs",
    "wp_codebox_runtime_task_failed": "tests/components/test_task.py: test_ability_agent_failure_fails_the_run_with_its_message",
    "wp_codebox_agent_bundle_import_failed": "tests/components/test_bundle.py: test_failed_agent_bundle_import_fails_the_run",
    "wp_codebox_agent_bundle_importer_unavailable": "tests/components/test_bundle.py: test_run_with_an_agent_bundle_but_without_an_importer_is_refused",
    "wp_codebox_api_ability_not_supported": f"{CASES}/facade.php: an unknown ability name is refused with its error code",
    "wp_codebox_runtime_profile_unresolved": f"{CASES}/public-input.php: a runtime profile adds components and defaults, and an unknown one is refused",
    # The caller is a WordPress site, which serves the files of browser sandboxes.
    "wp_codebox_browser_assets_missing": f"{CASES}/browser-assets.php: a missing or damaged file of engine or runtime is named",
    "wp_codebox_browser_assets_invalid": f"{CASES}/browser-assets.php: a runtime archive that differs from the list in any way is refused and nothing is installed",
    "wp_codebox_browser_host_invalid": f"{CASES}/browser-assets.php: a separate host that cannot isolate the sandbox is refused",
    "wp_codebox_browser_archive_unavailable": f"{CASES}/browser-files.php: without the zip module nothing is packed",
    "wp_codebox_browser_seed_too_large": f"{CASES}/browser-files.php: a plugin that is too large is refused",
    "wp_codebox_browser_storage_failed": f"{CASES}/browser-files.php: a directory that cannot be written is refused",
    "wp_codebox_browser_storage_full": f"{CASES}/browser-files.php: the store refuses what exceeds its size, and makes room by deleting old files",
    "wp_codebox_browser_file_missing": f"{CASES}/browser-files.php: a link to a deleted file is refused",
    "wp_codebox_browser_link_invalid": f"{CASES}/browser-files.php: a tampered link is refused",
    "wp_codebox_browser_link_expired": f"{CASES}/browser-files.php: an expired link is refused",
    "wp_codebox_browser_link_foreign": f"{CASES}/browser-files.php: a link is valid only for its user and site",
    # The extension is missing, or it and the plugin are from different builds.
    "wp_codebox_extension_missing": f"{CASES}/gate.php: without the extension abilities are registered and answer 503",
    "wp_codebox_extension_stale": "tests/parents/test_parents.py: test_missing_or_stale_extension_leaves_public_pages_unchanged",
    # `wp-codebox` does not export, import or replay bundles, and it applies a bundle without a review decision.
    "wp_codebox_artifact_changed": f"{CASES}/applies.php: an apply with wrong files, id, manifest digest or target is refused and written to the audit log",
    "wp_codebox_artifact_too_large": f"{CASES}/transfers.php: transfer: an archive too large for an answer is refused, and can be exported to a file",
    "wp_codebox_artifact_import_source_missing": IMPORT,
    "wp_codebox_artifact_import_source_invalid": IMPORT,
    "wp_codebox_artifact_import_id_mismatch": IMPORT,
    "wp_codebox_artifact_import_digest_mismatch": IMPORT,
    "wp_codebox_artifact_import_conflict": f"{CASES}/transfers.php: transfer: reimport replaces a damaged bundle, and import does so only with the replace option",
    "wp_codebox_artifact_import_copy_failed": "ext/core/artifacts/tests/transfer.rs: import_into_a_removed_artifacts_directory_fails_with_the_code_copy_failed",
    "wp_codebox_artifact_export_failed": "tests/phpt/23_transfer.phpt: Bundles can be exported and imported from every source, and hostile sources are refused",
    "wp_codebox_replay_unavailable": f"{CASES}/replays.php: replay: a run whose inputs are missing is refused with the names of the inputs",
    # Needs a hand-made bundle, whose digests are right and whose patch contradicts its list of files.
    "wp_codebox_patch_unfilterable": "ext/core/artifacts/tests/apply.rs: preflight_refuses_bundle_whose_patch_contradicts_its_changed_files",
    # Reviews and applies of a site, and the plugins that take part in them.
    "wp_codebox_review_action_missing": ABILITIES,
    "wp_codebox_review_action_invalid": f"{CASES}/cli-reviews.php: cli: artifacts review rejects, approves and requests changes, and refuses invalid decisions",
    "wp_codebox_review_result_invalid": f"{CASES}/reviews.php: review: an invalid answer of a host plugin is refused, and its own error passes through",
    "wp_codebox_pending_apply_unavailable": f"{CASES}/stages.php: stage: without a store of pending actions a change is not staged, and the audit log says so",
    "wp_codebox_file_changes_disallowed": f"{CASES}/adapters.php: a site that disallows file modifications refuses an apply before any adapter is called",
    "wp_codebox_apply_confirmation_missing": "tests/fpm/test_apply.py: test_apply_of_a_changed_htaccess_file_is_refused_without_confirm_sensitive",
    "wp_codebox_apply_own_change": "tests/fpm/test_apply.py: test_four_eyes_setting_refuses_an_approval_by_the_user_who_started_the_run",
    # `wp-codebox` commits on a branch only for the extension.
    "wp_codebox_git_repository_invalid": "tests/cli/test_git_branch.py: test_repository_with_an_unsupported_feature_is_refused_and_accepted_without_it",
    "wp_codebox_git_branch_conflict": "tests/cli/test_git_branch.py: test_commit_on_a_foreign_symbolic_or_checked_out_branch_is_refused",
    "wp_codebox_git_failed": "tests/cli/test_git_branch.py: test_damaged_repository_is_refused_as_a_git_failure_with_a_message_and_no_branch_is_created",
    "wp_codebox_apply_adapter_missing": f"{CASES}/adapters.php: an apply without an adapter is refused and written to the audit log",
    "wp_codebox_apply_result_invalid": f"{CASES}/adapters.php: an invalid adapter result is refused and recorded as a failure",
    # Tasks of runtimes and runtime packages, site seeds, and what a site passes to other plugins.
    "wp_codebox_runtime_task_target_required": TARGET,
    "wp_codebox_runtime_task_unsupported_target": TARGET,
    "wp_codebox_runtime_task_provider_invalid": RUNTIME,
    "wp_codebox_runtime_task_provider_invalid_result": RUNTIME,
    "wp_codebox_runtime_package_task_invalid": PACKAGE,
    "wp_codebox_runtime_package_source_missing": PACKAGE,
    "wp_codebox_runtime_package_workflow_unavailable": PACKAGE,
    "wp_codebox_site_seed_invalid": SEEDS,
    "wp_codebox_site_seed_type_invalid": SEEDS,
    "wp_codebox_site_seed_name_invalid": SEEDS,
    "wp_codebox_site_seed_scopes_missing": SEEDS,
    "wp_codebox_site_seed_scope_invalid": SEEDS,
    "wp_codebox_site_seed_scope_unbounded": SEEDS,
    "wp_codebox_site_seed_options_unbounded": SEEDS,
    "wp_codebox_site_seed_users_unsafe": SEEDS,
    "wp_codebox_site_seed_media_files_unsupported": SEEDS,
    "wp_codebox_runtime_provider_unavailable": PACKAGE_PROVIDER,
    "wp_codebox_runtime_provider_invalid_result": PACKAGE_PROVIDER,
    "wp_codebox_wordpress_workload_steps_missing":
        f"{CASES}/workloads.php: workload: a user may mount and stage only code of the site, and an unknown field is refused by name",
    "wp_codebox_wordpress_workload_step_unsupported": WORKLOAD,
    "wp_codebox_wordpress_workload_input_unsupported": WORKLOAD,
    "wp_codebox_wordpress_workload_provider_invalid_result": f"{CASES}/workloads.php: workload: a plugin can run workloads, and its answer is checked",
    "wp_codebox_fuzz_case_invalid": FUZZ,
    "wp_codebox_fuzz_step_unsupported": f"{CASES}/workloads.php: fuzz suite: each case runs as a command of the sandbox and has its own status",
    "wp_codebox_fuzz_suite_runner_mode_unavailable": FUZZ,
    "wp_codebox_host_delegation_request_invalid": DELEGATED,
    "wp_codebox_host_delegation_source_digest_invalid": DELEGATED,
    "wp_codebox_host_delegation_unavailable": f"{CASES}/delegations.php: delegation: without a plugin the status is unavailable, and the audit log says so",
    "wp_codebox_host_delegation_provider_result_invalid": DELEGATION,
    "wp_codebox_host_delegation_provider_status_invalid": DELEGATION,
    "wp_codebox_host_delegation_request_id_mismatch": DELEGATION,
    "wp_codebox_host_delegation_scope_mismatch": DELEGATION,
    "wp_codebox_host_delegation_source_digest_mismatch": DELEGATION,
    "wp_codebox_runner_workspace_prepare_invalid_request": ABILITIES,
    "wp_codebox_runner_workspace_identity_invalid_request": ABILITIES,
    "wp_codebox_runner_workspace_command_invalid_request": ABILITIES,
    "wp_codebox_runner_workspace_publication_invalid_request": ABILITIES,
    "wp_codebox_runner_workspace_prepare_clone_url_required":
        f"{CASES}/runner-workspaces.php: runner workspace: without clone_url the backend looks the repository up; a backend without that operation asks for clone_url",
    "wp_codebox_runner_workspace_backend_unavailable": f"{CASES}/runner-workspaces.php: does nothing and says so",
    "wp_codebox_runner_workspace_backend_invalid_response": WORKSPACE,
    "wp_codebox_runner_workspace_backend_error": WORKSPACE,
    # Sessions of a WordPress in the visitor's browser.
    "wp_codebox_browser_session_unknown": BROWSER_STORE,
    "wp_codebox_browser_session_expired": BROWSER_STORE,
    "wp_codebox_browser_session_foreign": BROWSER_STORE,
    "wp_codebox_browser_contained_site_ref_missing":
        f"{CASES}/browser-sites.php: each reason why it cannot be recovered is a miss with its own word",
    "wp_codebox_browser_contained_site_ref_invalid":
        f"{CASES}/browser-sites.php: each reason why it cannot be recovered is a miss with its own word",
    "wp_codebox_browser_contained_site_mode_required":
        f"{CASES}/browser-sites.php: the reuse decision and open-or-create follow the mode",
    "wp_codebox_browser_contained_site_unavailable": BROWSER_SITE,
    "wp_codebox_browser_contained_site_stale_digest": BROWSER_SITE,
    "wp_codebox_browser_contained_site_session_mismatch": BROWSER_SITE,
    "wp_codebox_browser_contained_site_scope_mismatch": BROWSER_SITE,
    "wp_codebox_browser_contained_site_sync_operation_invalid":
        f"{CASES}/browser-sites.php: the REST routes ask for the right of the ability, not only for a login, and answer like it",
    "wp_codebox_browser_contained_site_sync_failed":
        f"{CASES}/browser-sites.php: synchronisation is unavailable without a backend, and a backend answers every operation",
    "wp_codebox_browser_blueprint_ref_missing": BLUEPRINT_REF,
    "wp_codebox_browser_blueprint_ref_cache_miss": BLUEPRINT_REF,
    "wp_codebox_browser_blueprint_ref_expired": BLUEPRINT_REF,
    "wp_codebox_browser_blueprint_ref_input_hash_mismatch": BLUEPRINT_REF,
    "wp_codebox_browser_blueprint_ref_tampered": BLUEPRINT_REF,
    "wp_codebox_browser_blueprint_ref_foreign": BLUEPRINT_REF,
    "wp_codebox_browser_blueprint_ref_replayed": BLUEPRINT_REF,
    "wp_codebox_browser_url_invalid": BROWSER_FIELD,
    "wp_codebox_browser_url_insecure": BROWSER_FIELD,
    "wp_codebox_browser_origin_not_allowed": BROWSER_FIELD,
    "wp_codebox_browser_plugin_host_not_allowed": BROWSER_FIELD,
    "wp_codebox_browser_runtime_component_unresolved": BROWSER_FIELD,
    "wp_codebox_browser_step_unsupported": BROWSER_FIELD,
    "wp_codebox_browser_runner_path_invalid": BROWSER_FIELD,
    "wp_codebox_viewport_replay_archive_invalid": BROWSER_PICTURE,
    "wp_codebox_viewport_replay_route_invalid": BROWSER_PICTURE,
    # Files that a browser uploaded to a site.
    "wp_codebox_browser_artifact_schema_missing": NORMALIZE,
    "wp_codebox_browser_artifact_entrypoint_missing": NORMALIZE,
    "wp_codebox_browser_artifact_file_too_large": NORMALIZE,
    "wp_codebox_browser_artifact_extension_blocked": NORMALIZE,
    "wp_codebox_browser_artifact_files_missing": UPLOAD,
    "wp_codebox_browser_artifact_file_invalid": UPLOAD,
    "wp_codebox_browser_artifact_path_invalid": UPLOAD,
    "wp_codebox_browser_artifact_path_duplicate": UPLOAD,
    "wp_codebox_browser_artifact_encoding_invalid": UPLOAD,
    "wp_codebox_browser_artifact_base64_invalid": UPLOAD,
    "wp_codebox_browser_artifact_unchanged": UPLOAD,
    "wp_codebox_browser_artifact_baseline_invalid":
        f"{CASES}/browser-artifacts.php: browser bundle: a session that is unknown, of another user or of another site, and a forged or missing baseline are refused",
    "wp_codebox_apply_browser_origin_unconfirmed":
        f"{CASES}/browser-artifacts.php: browser bundle: preflight reports the origin; apply needs its confirmation, records it and tells the adapter",
    # Requests of a browser to connectors and providers of a site.
    "wp_codebox_browser_connector_request_invalid": ABILITIES,
    "wp_codebox_browser_connector_unresolved": PROVIDER_REQUEST,
    "wp_codebox_browser_connector_provider_mismatch": PROVIDER_REQUEST,
    "wp_codebox_browser_connector_model_mismatch": PROVIDER_REQUEST,
    "wp_codebox_browser_connector_credentials_unavailable": f"{CASES}/connectors.php: a credential that the site denies to this user is not passed to the handler",
    "wp_codebox_browser_connector_handler_missing":
        f"{CASES}/connectors.php: an unresolved, unavailable or mismatched connector fails closed before the handler is called",
    "wp_codebox_browser_connector_handler_failed": HANDLER,
    "wp_codebox_browser_connector_response_invalid": HANDLER,
    "wp_codebox_browser_provider_operation_required": ABILITIES,
    "wp_codebox_browser_provider_request_required": ABILITIES,
    "wp_codebox_browser_provider_connector_required": ABILITIES,
    "wp_codebox_browser_provider_adapter_missing": PROVIDER_REQUEST,
    "wp_codebox_browser_provider_adapter_invalid_response":
        f"{CASES}/connectors.php: provider request: the adapter gets a redacted request without credentials, and its answer is checked",
    "wp_codebox_browser_provider_bridge_policy_invalid": BRIDGE_POLICY,
    "wp_codebox_browser_provider_bridge_operation_unsupported": BRIDGE_REQUEST,
    "wp_codebox_browser_provider_bridge_uri_invalid":
        f"{CASES}/bridge.php: the bridge accepts URLs below a base URL in every spelling and refuses all other URLs",
    "wp_codebox_browser_provider_bridge_uri_forbidden": BRIDGE_REQUEST,
    "wp_codebox_browser_provider_bridge_path_invalid": BRIDGE_REQUEST,
    "wp_codebox_browser_provider_bridge_base_url_missing": BRIDGE_POLICY,
    "wp_codebox_browser_provider_bridge_authentication_missing": BRIDGE_POLICY,
    "wp_codebox_browser_provider_bridge_authentication_strategy_missing": BRIDGE_REQUEST,
    "wp_codebox_browser_provider_bridge_authentication_strategy_invalid":
        f"{CASES}/bridge.php: an adapter of a plugin runs before the bridge, and the bridge has a credential only during a request",
    "wp_codebox_browser_provider_bridge_authenticated_request_invalid": BRIDGE_CALLBACK,
    "wp_codebox_browser_provider_bridge_authentication_failed": BRIDGE_CALLBACK,
    "wp_codebox_browser_provider_bridge_exception":
        f"{CASES}/bridge.php: redirected, compressed, oversized, slow and undecodable responses are not passed to the sandbox",
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusal_without_a_guest_names_its_cause_and_the_next_step(world, code):
    check(code, REFUSED[code], world)


@pytest.mark.parametrize("code", FAILED)
def test_failure_of_a_run_or_a_sandbox_names_its_cause_and_the_next_step(world, code):
    check(code, FAILED[code], world)


@pytest.mark.parametrize("code", REPORTED)
def test_problem_reported_by_a_successful_run_names_its_cause_and_the_next_step(world, code):
    error = REPORTED[code].call(world)
    must(error["code"] == code, str(error))
    judge(error, REPORTED[code], world)


def test_every_error_code_of_codes_txt_has_a_case_here_or_occurs_in_the_test_listed_in_elsewhere():
    placed = [*REFUSED, *FAILED, *REPORTED, *ELSEWHERE]
    must(sorted(placed) == sorted(table()), f"without a case: {sorted(set(table()) - set(placed))}; twice or unknown: "
         f"{sorted(code for code in set(placed) if placed.count(code) > 1 or code not in table())}")
    for code, where in ELSEWHERE.items():
        path, _, name = where.partition(": ")
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            _, found, rest = file.read().partition(name)
        must(found, f"{path} has no test {name!r}")
        must(re.search(rf"\b({'|'.join(spellings(code))})\b", rest), f"{code} is not in the test {where}")


def spellings(code):
    """Returns the spellings of a code in tests: without a prefix that a helper function adds, or as the variant of the Rust enum."""
    words = code.split("_")
    return ["_".join(words[start:]) for start in range(len(words) - 1)] + ["".join(word.capitalize() for word in words[2:])]
