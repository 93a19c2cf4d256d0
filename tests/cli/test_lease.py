"""Options of the run registry, and the preview lease of a held run."""

import json
import os
import time
import urllib.request

from harness import must, poll_until

PHP = ["--command", "wordpress.run-php", "--arg", "code=echo 1;"]


def test_runs_commands_accept_the_registry_and_the_run_id_as_options(bench):
    run = bench.run("--mount", f"{bench.source()}:/workspace/plugin", *PHP).expect(0).result["run_id"]
    site = ["--site", bench.site]
    plain = bench.call("runs", "status", run, "--state", bench.state, *site, "--json").expect(0)
    for registry in ("--registry", "--run-registry"):
        named = bench.call("runs", "status", registry, bench.state, "--run-id", run, *site, "--json").expect(0)
        must(named.json == plain.json and named.json["schema"] == "wp-codebox/run-registry-entry/v1", str(named))
    files = bench.call("runs", "artifacts", "--registry", bench.state, "--run-id", run, *site, "--json").expect(0)
    must(files.json["schema"] == "wp-codebox/run-artifacts/v1" and files.json["bundle"], str(files))
    ended = bench.call("runs", "cancel", "--registry", bench.state, "--run-id", run, "--reason", "over", *site, "--json").expect(0)
    must(ended.json["schema"] == "wp-codebox/run-cancellation-request/v1" and ended.json["terminal"] is True, str(ended))
    for wrong in ([run, "--run-id", run, "--state", bench.state], ["--state", bench.state],
                  [run, "--state", bench.state, "--registry", bench.state]):
        bench.call("runs", "status", *wrong, "--json").expect(1, "wp_codebox_input_invalid")


def test_preview_lease_of_a_held_run_is_shown_and_released(bench):
    run = bench.run("--mount", f"{bench.source()}:/workspace/plugin", *PHP, "--preview-hold-seconds", "2m", "--detach").expect(0).json["run_id"]
    place = ["--registry", bench.state, "--site", bench.site, "--json"]
    try:
        lease = bench.call("preview-lease", "status", "--lease-id", run, *place).expect(0).json
        must(lease["schema"] == "wp-codebox/preview-lease/v1" and lease["status"] == lease["lease"]["status"] == "active", str(lease))
        must(lease["lease"]["expires_at"] and lease["lease_id"] == run and lease["reachability"]["status"] == "listening", str(lease))
        with urllib.request.urlopen(lease["local_url"] + "/", timeout=60) as page:
            must(page.status == 200, "the preview does not answer")
        file = os.path.join(bench.directory, "lease.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(lease, out)
        released = bench.call("preview-lease", "release", "--lease-file", file, *place).expect(0).json
        must(released["status"] == "released" and released["reachability"]["status"] == "closed", str(released))
        must(bench.call("preview-lease", "release", "--lease-id", run, *place).expect(0).json["status"] == "released", "the second release")
    finally:
        bench.call("runs", "cancel", "--run-id", run, *place).expect(0)
    poll_until(lambda: bench.call("runs", "get", run, *place).json["status"] == "ended", seconds=60)
    must(bench.call("preview-lease", "status", "--lease-id", run, *place).expect(0).json["status"] == "released", "after the end")
    for wrong in (["--lease-id", "run_none"], [], ["--lease-file", file + ".none"]):
        answer = bench.call("preview-lease", "status", *wrong, *place)
        must(answer.exit == 1 and answer.code, str(answer))


def test_preview_options_without_an_effect_are_refused_and_the_error_names_them(bench):
    hold = ["--preview-hold-seconds", "9"]
    for flags in (["--preview-lease-json", "{}"], ["--preview-lease"], ["--preview-hold-blocking", "--detach"]):
        answer = bench.run("--mount", f"{bench.source()}:/workspace/plugin", *PHP, *hold, *flags).expect(1, "wp_codebox_input_invalid")
        must(answer.json["error"]["message"].startswith(flags[0] + ": "), str(answer))
    began = time.monotonic()
    bench.run("--mount", f"{bench.source()}:/workspace/plugin", *PHP, "--preview-hold-seconds", "1s", "--preview-hold-blocking").expect(0)
    must(time.monotonic() - began >= 1, "it did not wait")


def test_agent_task_with_a_preview_hold_prints_the_preview_address_and_has_the_preview_in_its_result(bench):
    task = os.path.join(bench.directory, "task.json")
    source = bench.source()
    for fields, flags in (({"preview_hold_seconds": 1}, []), ({}, ["--preview-hold-seconds", "1"])):
        with open(task, "w", encoding="utf-8") as out:
            json.dump({"goal": "Change it", "agent_command": "sh -c 'echo x >> plugin.php'",
                       "mounts": [{"source": source, "target": "/workspace/plugin"}], **fields}, out)
        answer = bench.call("run-agent-task", "--input-file", task, *flags, *bench.paths(), "--site", bench.site, "--json").expect(0)
        must(answer.json["schema"] == "wp-codebox/agent-task-run/v1" and answer.json["preview"]["status"] in ("closed", "expired"), str(answer))
        must("preview http://127.0.0.1:" in answer.stderr, answer.stderr)
    with open(task, "w", encoding="utf-8") as out:
        json.dump({"goal": "Change it", "agent_command": "true", "preview_port": 8080}, out)
    refused = bench.call("run-agent-task", "--input-file", task, *bench.paths(), "--json").expect(1, "wp_codebox_input_invalid")
    must("preview_hold_seconds" in refused.json["error"]["message"], str(refused))


def test_run_registry_that_is_missing_is_created_by_a_command_that_starts_a_sandbox(bench):
    registry = os.path.join(bench.directory, "new-registry")
    arguments = ["recipe", "validate", "--recipe", "/dev/null", "--run-registry", registry, "--json"]
    bench.call(*arguments)
    must(not os.path.exists(registry), "a check created the directory")
    missing = bench.call("runs", "status", "--registry", registry, "--run-id", "run_1", "--json")
    must(missing.exit == 125 and missing.code == "wp_codebox_state_dir_invalid", str(missing))
    recipe = os.path.join(bench.directory, "registry.json")
    with open(recipe, "w", encoding="utf-8") as out:
        json.dump({"schema": "wp-codebox/workspace-recipe/v1", "workflow": {"steps": [{"command": "wordpress.run-php", "args": ["code=echo 1;"]}]}}, out)
    paths = bench.paths()
    at = paths.index("--state")
    ran = bench.call("recipe-run", "--recipe", recipe, *paths[:at], *paths[at + 2:], "--run-registry", registry, "--json").expect(0).json
    shown = bench.call("runs", "status", "--registry", registry, "--run-id", ran["run"]["runId"], "--json").expect(0)
    must(shown.json["lifecycle"]["terminal"] is True, str(shown))
