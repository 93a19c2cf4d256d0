"""Failures that stop a recipe, how they are reported, and the changes that stay."""

import json
import os
import signal
import time

import recipes
from harness import must, poll_until
from recipes import check_failed_document, php, wp


def test_failed_step_skips_later_steps_and_still_runs_the_after_steps(bench):
    path = recipes.write(bench, "stop", {
        "before": [php("echo 'prepared';")],
        "steps": [wp("option get no_such_option"), php("echo 'not reached';")],
        "after": [php("echo 'cleaned up';")],
    }, probes=[{"name": "late", "step": php("echo '{}';")}])
    answer = recipes.run(bench, path).expect(1, "wp_codebox_step_failed")
    document = check_failed_document(answer)
    printed = [row["stdout"] for row in document["executions"]]
    must(printed == ["prepared", "", "cleaned up"], f"printed {printed}")
    must(document["stepFailures"][0]["classification"] == "error", str(document["stepFailures"]))
    must(document["skippedSteps"] == 2 and document["probes"][0]["status"] == "skipped", str(document["probes"]))
    must(document["error"]["data"]["reason"] == "verify-step-failed", str(document["error"]))
    must(document["result"]["failed_phase"] == "run_workloads", str(document["result"].get("failed_phase")))
    recipes.verified(bench, answer)


def test_recipe_continues_after_a_failed_step_with_allow_failure_or_advisory(bench):
    """Control of the previous case: with allowFailure or advisory the same failed step does not stop the recipe."""
    for name in ("allowFailure", "advisory"):
        path = recipes.write(bench, f"may-{name}", [{**wp("option get no_such_option"), name: True}, php("echo 'reached';")])
        answer = recipes.run(bench, path).expect(0)
        must(answer.json["executions"][-1]["stdout"] == "reached", str(answer))


def test_failed_probe_fails_the_run_unless_allowed(bench):
    for allowed, status in ((False, 1), (True, 0)):
        probe = {"name": "shape", "step": php("echo 'no json';"), "expectJson": True, "allowFailure": allowed}
        answer = recipes.run(bench, recipes.write(bench, f"probe-{status}", [php("echo 1;")], probes=[probe])).expect(status)
        must(answer.json["probes"][0]["status"] == "failed", str(answer.json["probes"]))
        if not allowed:
            must(check_failed_document(answer)["error"]["data"]["reason"] == "recipe-probe-failed", str(answer))


def test_step_timeout_fails_the_step_and_not_the_guest(bench):
    path = recipes.write(bench, "slow", {"steps": [{**php("sleep( 120 );"), "timeoutMs": 700}], "after": [php("echo 'still alive';")]})
    began = time.monotonic()
    answer = recipes.run(bench, path).expect(1, "wp_codebox_step_failed")
    document = check_failed_document(answer)
    must(time.monotonic() - began < 100, "it took its time")
    must(document["stepFailures"][0]["classification"] == "timeout", str(document["stepFailures"]))
    must(document["executions"][-1]["stdout"] == "still alive", "the guest is gone")


def test_recipe_run_timeout_keeps_the_changes(bench):
    source = bench.source("timed")
    path = recipes.write(bench, "timed", [php("file_put_contents( '/workspace/w/made.txt', 'x' ); sleep( 60 );")],
                         inputs={"mounts": [{"source": source, "target": "/workspace/w"}]})
    answer = recipes.run(bench, path, "--timeout", "20s").expect(124, "wp_codebox_run_timeout")
    document = check_failed_document(answer)
    must(document["result"]["status"] == "timeout", str(document["result"]["status"]))
    must([row["path"] for row in document["changedFiles"]] == ["/workspace/w/made.txt"], "the work is lost")


def started(bench, name):
    """Starts a recipe, waits until its step sleeps, and returns the command's arguments and process."""
    source = bench.source(name)
    path = recipes.write(bench, name, [php("file_put_contents( '/workspace/w/made.txt', 'x' ); echo \"waiting\\n\", str_repeat( \".\\n\", 4096 ); sleep( 60 );")],
                         inputs={"mounts": [{"source": source, "target": "/workspace/w"}]})
    arguments = [word for word in recipes.arguments(bench, path) if word != "--json"]
    process = bench.start(arguments, recipes.PLAIN)
    seen = b""
    while b"waiting" not in seen:
        byte = process.stdout.read(1)
        must(byte, f"it ended early: {seen}")
        seen += byte
    return arguments, process


def runs(bench):
    listed = bench.call("runs", "list", "--site", bench.site, "--state", bench.state, "--json").expect(0).json
    return listed["runs"]


def test_sigint_ends_the_recipe_run_and_keeps_changes(bench):
    arguments, process = started(bench, "interrupt")
    process.send_signal(signal.SIGINT)
    answer = bench.finish(arguments, process)
    must(answer.exit == 130, str(answer))
    must("made.txt" in answer.stderr, f"the work is lost\n{answer}")


def test_killed_caller_cancels_the_recipe_run(bench):
    _, process = started(bench, "killed")
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    poll_until(lambda: [row for row in runs(bench) if row.get("status") in ("running", "queued")], lambda rows: not rows, what="a run is still alive")
    newest = runs(bench)[0]
    must("cancelled" in json.dumps(newest), f"it came to {newest}")


def test_recipe_step_that_repeats_past_max_iterations_fails(bench):
    arguments = "args-json=[\"-r\",\"echo json_encode(['more'=>true,'n'=>'1']);\",\"0\"]"
    step = {"command": "command-agent-run", "args": ["command=php", arguments, "parse-json=1"],
            "continuation": {"maxIterations": 3, "while": {"pointer": "/result/more", "equals": True},
                             "inputMappings": [{"from": "/result/n", "to": {"arg": "args-json", "pointer": "/2"}}]}}
    answer = recipes.run(bench, recipes.write(bench, "endless", [step])).expect(1, "wp_codebox_step_failed")
    document = check_failed_document(answer)
    evidence = document["executions"][-1]["continuationEvidence"]
    must(evidence["status"] == "exhausted" and evidence["iterations"] == 3, str(evidence))
    must("max-iterations-exhausted" in document["error"]["message"], str(document["error"]))


def test_missing_required_or_invalid_declared_artifact_fails_the_run(bench):
    secret = "sk-" + "A1b2C3d4" * 6
    step = php(f"file_put_contents( '/tmp/a.json', '{{\"schema\":\"x/v1\"}}' ); file_put_contents( '/tmp/b.json', 'no json' ); file_put_contents( '/tmp/c.txt', 'OPENAI_API_KEY={secret}' );")
    good = [{"name": "a", "type": "report", "path": "/tmp/a.json", "payloadSchema": "x/v1"}]
    optional = [{"name": "gone", "path": "/tmp/gone.txt", "required": False}, {"name": "key", "path": "/tmp/c.txt"}]
    answer = recipes.run(bench, recipes.write(bench, "collect", [step], artifacts={"typed": good, "paths": optional})).expect(0)
    status = {row["name"]: row["status"] for row in answer.json["declaredArtifacts"]}
    must(status == {"a": "collected", "gone": "missing", "key": "sensitive"}, str(status))
    bundle = recipes.verified(bench, answer)
    with open(os.path.join(bundle, "files/runtime-evidence/declared-artifacts.jsonl"), encoding="utf-8") as file:
        kept = [json.loads(line) for line in file]
    must([row["name"] for row in kept] == ["a"] and kept[0]["text"] == '{"schema":"x/v1"}', str(kept))
    for name, artifact in (("missing", {"name": "m", "path": "/tmp/nothing"}), ("invalid", {"name": "b", "path": "/tmp/b.json", "parseJson": True})):
        answer = recipes.run(bench, recipes.write(bench, f"collect-{name}", [step], artifacts={"paths": [artifact]}))
        answer.expect(1, "wp_codebox_collection_failed")
        must(check_failed_document(answer)["declaredArtifacts"][0]["status"] == name, str(answer))
