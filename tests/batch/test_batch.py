"""`agent-sandbox-run`, batches and fan-outs on the command line: result documents, error codes, cancellation.
"""

import json
import os
import signal
import time

from harness import await_count, must, sleeper
from harness.frames import SupervisorClient, runs



def mounts(bench, name):
    return [{"source": bench.source(name), "target": "/workspace/plugin"}]


def start(bench, verb, document, *arguments):
    """Starts the subcommand `verb` with the document as its `--input-file`."""
    path = os.path.join(bench.directory, f"input-{time.monotonic_ns()}.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document, file)
    paths = bench.paths()
    if "--wordpress" in arguments:
        del paths[:2]
    return bench.start([verb, "--input-file", path, *paths, "--site", bench.site, *arguments])


def call(bench, verb, document, *arguments, seconds=120):
    return bench.finish([verb], start(bench, verb, document, "--json", *arguments), seconds)


def sh(script):
    return f"sh -c '{script}'"


def test_agent_sandbox_run_command_prints_the_agent_task_document(bench):
    result = os.path.join(bench.directory, "answer.json")
    task = {"goal": "Write a file", "agent_command": sh("echo a > a.txt"), "mounts": mounts(bench, "one"), "session_id": "mine",
            "orchestrator": {"id": "o-1"}, "checks": ["true"], "limits": {"wall_clock_ms": 60000}, "metadata": {"ticket": "7"},
            "context": {"why": "a test"}}
    answer = call(bench, "agent-sandbox-run", task, "--result-file", result, "--artifacts", os.path.join(bench.directory, "out"))
    doc = answer.expect(0).json
    must(doc["schema"] == "wp-codebox/agent-task-run/v1" and doc["success"] and doc["run"]["outcome"] == "succeeded", str(answer))
    must(doc["session"]["id"] == "mine" and doc["session"]["orchestrator"] == {"id": "o-1"} and doc["task_input"]["context"] == {"why": "a test"},
         json.dumps(doc["session"]))
    must([f["path"] for f in doc["changed_files"]] == ["/workspace/plugin/a.txt"] and doc["checks"][0]["status"] == "passed", str(answer))
    with open(result, encoding="utf-8") as file:
        must(json.load(file) == doc, "the result file differs from the printed document")
    must(os.listdir(os.path.dirname(result)).count("answer.json") == 1 and not [n for n in os.listdir(bench.directory) if n.endswith(".tmp")], "left")
    bench.call("artifacts", "verify", "--bundle", doc["artifacts"], "--state", bench.state, "--json").expect(0)
    bench.call("artifacts", "verify", "--bundle", doc["exported"]["path"], "--state", bench.state, "--json").expect(0)
    # The caller's session and orchestrator ids are not stored.
    view = runs(bench, "get", doc["run"]["run_id"]).expect(0).json
    must(view["provenance"]["metadata"] == {"ticket": "7"} and "o-1" not in json.dumps(view), json.dumps(view["provenance"]))
    must(doc["agent_task_run_result"]["refs"]["patches"][0]["path"] == doc["paths"]["patch"], json.dumps(doc["agent_task_run_result"]))
    must(doc["artifact_result"]["artifactBundle"]["id"] == doc["artifact_id"] and doc["artifact_result"]["status"] == "created", json.dumps(doc["artifact_result"]))
    must(doc["headless_agent_task_result"]["agent_task_run_result"] == doc["agent_task_run_result"], "the nested result differs")
    must(doc["outputs"]["changed_files"] == ["/workspace/plugin/a.txt"] and doc["session"]["status"] == "completed", json.dumps(doc["outputs"]))
    # The alias `run-agent-task`, with input from /dev/stdin.
    process = bench.start(["run-agent-task", "--input-file", "/dev/stdin", *bench.paths(), "--site", bench.site, "--json"])
    bench.finish(["run-agent-task"], process).expect(1, "wp_codebox_input_invalid")


def test_goal_and_context_inside_a_workload_or_parent_request_become_those_of_the_task(bench):
    workload = {"schema": "wp-codebox/agent-workload/v1", "task": {"prompt": " Write it "}, "context": {"why": "a test"}}
    parent = {"schema": "wp-codebox/task-input/v1", "version": 1, "goal": "Write it", "context": {"why": "a test"}}
    for wrapped in ({"agent_workload": workload}, {"workload": workload}, {"parent_request": parent}, parent):
        doc = call(bench, "agent-sandbox-run", {"agent_command": "true", **wrapped}).expect(0).json
        must(doc["task"] == "Write it" and doc["task_input"]["context"] == {"why": "a test"}, json.dumps(doc["task_input"]))
    # Without a schema, the members `workload` and `parent_request` are no task but context of the task beside them.
    noted = {"agent_command": "true", "goal": "Mine", "workload": {"id": 7, "context": {"why": "a note"}}, "parent_request": {"ticket": 4}}
    doc = call(bench, "agent-sandbox-run", noted).expect(0).json
    must(doc["task"] == "Mine" and doc["task_input"]["context"] == {"why": "a note", "parent_request": {"ticket": 4}}, json.dumps(doc["task_input"]))
    for wrong, field in (({**workload, "code": "x"}, "workload.code"), ({**workload, "task": ""}, "workload.task"), ({**workload, "schema": "x/v1"}, "workload.schema")):
        answer = call(bench, "agent-sandbox-run", {"agent_command": "true", "workload": wrong})
        must(answer.exit == 1 and field in json.dumps(answer.json), str(answer))


def test_site_seeds_of_a_task_copy_content_of_the_parent_site_into_its_guest(bench):
    seed = {"type": "parent_site", "name": "content", "scopes": {"options": {"names": ["blogname"]}, "posts": {"maxRecords": 1}}}
    task = {"goal": "Look", "agent_command": sh("wp option get blogname"), "site_seeds": [seed], "checks": ["wp option get blogname"]}
    refused = call(bench, "agent-sandbox-run", task).expect(1, "wp_codebox_site_seed_invalid")
    must("has no wp-config.php" in refused.json["error"]["message"], str(refused))
    parent = ["--wordpress", bench.environment["CODEBOX_PARENT"]]
    name = {}
    for seeds in ([], [seed]):
        doc = call(bench, "agent-sandbox-run", {**task, "site_seeds": seeds}, *parent).expect(0).json
        name[len(seeds)] = doc["checks"][0]["output_tail"].strip()
    must(name[0] != name[1] and name[1], f"the guest of the checks has the name {name[1]}, without a seed {name[0]}")
    unsafe = {**seed, "scopes": {"users": {"maxRecords": 1}}}
    call(bench, "agent-sandbox-run", {**task, "site_seeds": [unsafe]}, *parent).expect(1, "wp_codebox_site_seed_users_unsafe")


def test_whole_float_in_a_task_is_stored_as_an_integer_and_a_fraction_in_an_integer_field_is_refused(bench):
    task = {"goal": "g", "agent_command": "true", "metadata": {"ticket": 7382.0, "zero": -0.0, "share": 0.5, "large": 1e300},
            "limits": {"wall_clock_ms": 60000.0}, "agent_success_codes": [0.0]}
    doc = call(bench, "agent-sandbox-run", task).expect(0).json
    metadata = runs(bench, "get", doc["run"]["run_id"]).expect(0).json["provenance"]["metadata"]
    must(repr(metadata["ticket"]) == "7382" and repr(metadata["zero"]) == "0" and metadata["share"] == 0.5 and metadata["large"] == 1e300, repr(metadata))
    for limit in (60000.5, 1e300):
        call(bench, "agent-sandbox-run", {**task, "limits": {"wall_clock_ms": limit}}).expect(1, "wp_codebox_limit_invalid")


def test_agent_task_with_an_invalid_or_unknown_field_is_refused_with_its_error_code(bench):
    good = {"goal": "g", "agent_command": "true"}
    for change, code in (({"goal": " "}, "wp_codebox_task_missing"), ({"code": "x"}, "wp_codebox_raw_code_forbidden"),
                         ({"plugin": "x"}, "wp_codebox_input_invalid"), ({"surprise": 1}, "wp_codebox_input_invalid"),
                         ({"limits": {"processes": "many"}}, "wp_codebox_limit_invalid"),
                         ({"mounts": [{"source": "relative", "target": "/workspace/x"}]}, "wp_codebox_mount_invalid"),
                         ({"policy": {"network": "deny"}}, "runtime-policy-invalid"),
                         ({"agent_command": ""}, "wp_codebox_agent_missing")):
        result = os.path.join(bench.directory, "failure.json")
        exit_code = {"runtime-policy-invalid": 126, "wp_codebox_agent_missing": 2}.get(code, 1)
        call(bench, "agent-sandbox-run", {**good, **change}, "--result-file", result).expect(exit_code, code)
        with open(result, encoding="utf-8") as file:
            must(json.load(file)["error"]["code"] == code, "the result file has another error code")
    call(bench, "agent-sandbox-run", good).expect(0)


def test_batch_result_lists_one_run_per_task_in_task_order(bench):
    """One task succeeds, one fails, one is invalid, one changes nothing; the results keep the order of the tasks."""
    batch = {"agent_command": sh("echo shared > shared.txt"), "mounts": mounts(bench, "rows"), "session_id": "job-1",
             "tasks": ["First", {"goal": "Second", "agent_command": "false"}, {"goal": ""}, {"goal": "Fourth", "agent_command": "true"}]}
    answer = call(bench, "agent-sandbox-batch", batch, "--concurrency", "3")
    doc = answer.expect(3).json
    must(doc["schema"] == "wp-codebox/agent-task-batch/v1" and not doc["success"], str(answer))
    must([doc[n] for n in ("total", "completed", "failed", "skipped", "cancelled", "timed_out")] == [4, 2, 2, 0, 0, 0], str(answer))
    rows = doc["runs"]
    must([row["index"] for row in rows] == [0, 1, 2, 3] and [row["task"] for row in rows] == doc["tasks"] == ["First", "Second", "", "Fourth"], str(answer))
    must([row.get("run", {}).get("outcome") for row in rows] == ["succeeded", "failed", None, "no_op"], str(answer))
    must(rows[2]["error"]["code"] == "wp_codebox_task_missing" and rows[0]["session"]["id"] == "job-1:0", str(answer))
    must(doc["execution"] == "bounded-concurrent-isolated-sandboxes", doc["execution"])
    # With stop_on_failure the tasks run in sequence and stop at the first failure.
    batch["tasks"] = ["First", {"goal": "Second", "agent_command": "false"}, "Third"]
    doc = call(bench, "agent-sandbox-batch", {**batch, "stop_on_failure": True}).expect(3).json
    must([row["status"] for row in doc["runs"]] == ["completed", "failed", "skipped"] and doc["execution"] == "sequential-isolated-sandboxes",
         json.dumps(doc)[:600])
    must(doc["runs"][2]["error"]["code"] == "batch-stopped", json.dumps(doc["runs"][2]))
    for tasks, code in (([], "wp_codebox_tasks_missing"), ("x", "wp_codebox_input_invalid")):
        call(bench, "agent-sandbox-batch", {"tasks": tasks}).expect(1, code)


def test_batch_waits_while_the_host_is_at_max_runs(bench):
    """With max-runs 2 and another caller's run active for three seconds, all three tasks still complete."""
    stranger = SupervisorClient(bench, "sleep 3", mode="detached", max_runs=2).spawn().accepted()
    batch = {"agent_command": "sleep 0.3", "mounts": mounts(bench, "full"), "tasks": ["a", "b", "c"]}
    doc = call(bench, "agent-sandbox-batch", batch, "--concurrency", "3", "--max-runs", "2").expect(0).json
    must(doc["completed"] == 3, json.dumps(doc)[:600])
    stranger.last()


def test_fanout_workers_wait_for_their_dependencies(bench):
    source = mounts(bench, "fan")
    plan = {"mounts": source, "concurrency": 3, "sandbox_session_id": "plan-1", "workers": [
        {"id": "a", "goal": "A", "agent_command": sh("sleep 0.4; echo a > a.txt")},
        {"id": "b", "goal": "B", "agent_command": "false", "required": False},
        {"id": "c", "goal": "C", "agent_command": sh("echo c > c.txt"), "dependsOn": ["a"]},
        {"id": "d", "goal": "D", "agent_command": "true", "dependsOn": ["b"], "required": False}]}
    answer = call(bench, "agent-fanout", plan)
    doc = answer.expect(0).json
    rows = {row["worker_id"]: row for row in doc["runs"]}
    must({name: row["status"] for name, row in rows.items()} == {"a": "completed", "b": "failed", "c": "completed", "d": "skipped"}, str(answer))
    must(rows["c"]["timings"]["started_at"] >= rows["a"]["timings"]["ended_at"], json.dumps([rows[n]["timings"] for n in "ac"]))
    must(rows["d"]["dependencies"] == ["b"] and rows["a"]["artifacts"]["namespace"] == "a", str(answer))
    aggregate = doc["aggregate"]
    must(aggregate["status"] == "succeeded" and doc["success"] and [c["severity"] for c in aggregate["conflicts"]] == ["warning", "warning"], str(answer))
    must([ref["workerId"] for ref in aggregate["finalArtifactRefs"]] == ["a", "c"], json.dumps(aggregate["finalArtifactRefs"]))
    must([child["session_id"] for child in doc["session"]["children"]] == [f"plan-1:{n}" for n in "abcd"], json.dumps(doc["session"]))
    must(len(doc["failures"]) == 2, json.dumps(doc["failures"]))
    must(doc["fanout_id"] == "plan-1" and doc["status"] == "succeeded" and doc["workerResultRefs"] == aggregate["workerResultRefs"], str(answer))
    events = [(event["event"], event.get("worker_id")) for event in doc["events"]]
    must(events[0] == ("fanout.started", None) and events[-1] == ("fanout.completed", None), json.dumps(events))
    must(events.index(("worker.completed", "a")) < events.index(("worker.started", "c")), json.dumps(events))
    must(("worker.skipped", "d") in events and ("worker.started", "d") not in events and ("worker.failed", "b") in events, json.dumps(events))
    must([event["time"] for event in doc["events"]] == sorted(event["time"] for event in doc["events"]), json.dumps(doc["events"]))


def test_fanout_with_artifacts_option_writes_its_files_where_the_result_names_them(bench):
    out = os.path.join(bench.directory, "fanned")
    plan = {"mounts": mounts(bench, "files"), "workers": [
        {"id": "a", "goal": "A", "agent_command": sh("echo a > a.txt")}, {"id": "b", "goal": "B", "agent_command": "false", "required": False}]}
    doc = call(bench, "agent-fanout", plan, "--artifacts", out).expect(0).json

    def read(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    names = doc["artifacts"]
    must(names["path"] == os.path.join(out, "fanout") and doc["session"]["artifacts"] == names, json.dumps(names))
    must(read(names["plan"]) == doc["plan"] and read(names["aggregate"]) == doc["aggregate"], "plan or aggregate differ")
    with open(names["events"], encoding="utf-8") as file:
        must([json.loads(line) for line in file] == doc["events"], "the events differ")
    must(read(names["result"]) == doc and read(os.path.join(out, "aggregate", "final", "result.json")) == doc["aggregate"], "the results differ")
    for row in doc["runs"]:
        directory = os.path.join(out, "fanout", "workers", row["worker_id"])
        must(read(os.path.join(directory, "result.json")) == row, f"the row of {row['worker_id']} differs")
        must(row["exported"]["path"] == os.path.join(directory, "artifacts", row["run_id"]), json.dumps(row["exported"]))
        bench.call("artifacts", "verify", "--bundle", row["exported"]["path"], "--state", bench.state, "--json").expect(0)


def test_two_fanout_workers_that_change_the_same_file_conflict(bench):
    """Two workers mount the same host directory at two targets and change the same file."""
    source = bench.source("clash")
    worker = lambda name, target: {"id": name, "goal": name, "agent_command": sh("echo x > lib/a.txt"),  # noqa: E731
                                   "mounts": [{"source": source, "target": target}]}
    plan = {"concurrency": 2, "workers": [worker("one", "/workspace/one"), worker("two", "/workspace/two")]}
    doc = call(bench, "agent-fanout", plan).expect(3).json
    conflict = doc["aggregate"]["conflicts"][0]
    must(conflict["type"] == "duplicate-final-artifact-path" and conflict["workerIds"] == ["one", "two"], json.dumps(doc["aggregate"])[:800])
    must(doc["aggregate"]["status"] == "failed" and doc["aggregate"]["finalArtifactRefs"] == [] and doc["completed"] == 2, json.dumps(doc)[:400])
    plan["workers"][1]["agent_command"] = sh("echo x > lib/b.txt")
    doc = call(bench, "agent-fanout", plan).expect(0).json
    must(len(doc["aggregate"]["finalArtifactRefs"]) == 2, json.dumps(doc["aggregate"])[:400])


def test_invalid_fanout_plan_starts_no_run(bench):
    good = {"id": "a", "goal": "g", "agent_command": "true"}
    before = len(os.listdir(os.path.join(bench.state, "sites", bench.site, "runs")))
    for change, code in (({"workers": []}, "workers_missing"), ({"workers": [good, good]}, "worker_id_duplicate"),
                         ({"workers": [{**good, "id": "7"}]}, "worker_id_invalid"), ({"workers": [{**good, "goal": ""}]}, "worker_goal_missing"),
                         ({"workers": [good, {**good, "id": "b", "dependsOn": ["c"]}]}, "worker_dependency_invalid"),
                         ({"workers": [{**good, "dependsOn": ["b"]}, {**good, "id": "b", "dependsOn": ["a"]}]}, "worker_dependency_invalid"),
                         ({"workers": [good, {**good, "id": "b", "surprise": 1}]}, "worker_invalid"), ({"concurrency": 65}, "concurrency_invalid")):
        call(bench, "agent-fanout", {"workers": [good], **change}).expect(1, f"wp_codebox_fanout_{code}")
    must(len(os.listdir(os.path.join(bench.state, "sites", bench.site, "runs"))) == before, "an invalid plan started a run")


def test_sigint_cancels_the_batch_and_saves_changes(bench):
    """SIGINT cancels the running tasks and saves their changes; waiting tasks do not start."""
    batch = {"agent_command": sh(f"echo early > early.txt; {sleeper(66)}"), "mounts": mounts(bench, "stop"), "tasks": ["a", "b", "c"]}
    process = start(bench, "agent-sandbox-batch", batch, "--json", "--concurrency", "2")
    await_count(2, sleeper(66))
    process.send_signal(signal.SIGINT)
    doc = bench.finish(["batch"], process).expect(130).json
    must([row["status"] for row in doc["runs"]] == ["cancelled"] * 3 and doc["cancelled"] == 3, json.dumps(doc)[:800])
    for row in doc["runs"][:2]:
        must([f["path"] for f in row["changed_files"]] == ["/workspace/plugin/early.txt"], json.dumps(row)[:600])
        bench.call("artifacts", "verify", "--bundle", row["artifacts"]["path"], "--state", bench.state, "--json").expect(0)
    must("run_id" not in doc["runs"][2], json.dumps(doc["runs"][2]))
    must(runs(bench, "list", "--status", "running").expect(0).json["total"] == 0, "a run is still running")


def test_batch_without_json_option_prints_one_line_per_task(bench):
    batch = {"agent_command": "true", "tasks": ["a", {"goal": "b", "agent_command": "false"}]}
    answer = bench.finish(["batch"], start(bench, "agent-sandbox-batch", batch))
    must(answer.exit == 3 and "task 0" in answer.stdout and "task 1" in answer.stdout and "1 of 2 completed" in answer.stderr, str(answer))
