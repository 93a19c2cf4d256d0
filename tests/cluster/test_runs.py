"""Runs on the nodes of a cluster: results, secrets, cancellation, death of nodes, and what is refused."""

import copy
import json
import os
import shutil
import signal

import pytest

from harness import contents, must, poll_until
from harness.frames import runs
from harness.nats import Client, Nats
from harness.nodes import SMALL, Nodes
from harness.records import Streams

CANARY = "canary-5c1d7f0e9b2a4c63"


@pytest.fixture(scope="module")
def server(environment):
    one = Nats(environment["CODEBOX_NATS_SERVER"]).start()
    yield one
    one.close()


@pytest.fixture(scope="module")
def pair(bench, environment, server):
    """Two nodes of one server."""
    bench.call("cluster", "setup", "--nats", server.url, "--submitter", "team", *SMALL, "--json").expect(0)
    nodes = Nodes(environment, server.url)
    nodes.add("one")
    nodes.add("two")
    yield nodes
    nodes.close()


@pytest.fixture
def alone(bench, environment):
    """A server without nodes, and the function that adds one."""
    server = Nats(environment["CODEBOX_NATS_SERVER"], "alone").start()
    bench.call("cluster", "setup", "--nats", server.url, "--submitter", "team", *SMALL, "--json").expect(0)
    nodes = Nodes(environment, server.url)
    nodes.store = server
    yield nodes
    nodes.close()
    server.close()


def place(bench, nodes, script, *arguments, **keys):
    """Runs the script as agent on the cluster."""
    return bench.agent(script, *nodes.placement(**keys), *arguments)


def detached(bench, nodes, script, *arguments, **keys):
    return place(bench, nodes, script, "--detach", *arguments, **keys).expect(0).json["run_id"]


def view(bench, run):
    return runs(bench, "get", run).expect(0).json


def ended(bench, run, seconds=120):
    def is_over():
        row = view(bench, run)
        return row if row["status"] == "ended" else None
    return poll_until(is_over, seconds=seconds, what=f"{run} has not ended")


def host(bench, name):
    """Returns the state directory of another host of the same submitter."""
    path = os.path.join(bench.directory, name)
    os.mkdir(path, mode=0o700)
    return bench.own(path)


def events(bench, run):
    return runs(bench, "events", run).expect(0).json["events"]


def await_output(bench, run):
    """Waits until the agent has printed `ready`."""
    poll_until(lambda: "ready" in json.dumps(events(bench, run)), seconds=120, what="the agent did not start")


def lifecycle(bench, run):
    return runs(bench, "status", run).expect(0).json


def test_run_on_a_node_returns_a_bundle_that_this_host_has_signed(bench, pair):
    answer = place(bench, pair, "echo new > new.txt", "--check", "test -s new.txt").expect(0)
    result = answer.result
    must([row["path"] for row in result["changed_files"]] == ["/workspace/plugin/new.txt"], str(answer))
    must(result["checks"][0]["status"] == "passed", str(answer))
    bundle = result["artifacts"]["path"]
    must(bundle.startswith(bench.state), bundle)
    verified = bench.call("artifacts", "verify", "--bundle", bundle, "--state", bench.state, "--json").expect(0).json
    must("signed-by-this-host" in json.dumps(verified), json.dumps(verified))
    with open(os.path.join(bundle, "metadata.json"), encoding="utf-8") as file:
        text = file.read()
    must('"cluster"' in text and pair.directory not in text, "the provenance names the task, and no path of the node")


def test_every_task_of_a_batch_runs_once_on_one_of_the_nodes(bench, pair):
    tasks = {"tasks": [{"goal": f"task {n}", "agent_command": f"sh -c 'echo {n} > {n}.txt'"} for n in range(12)],
             "mounts": [{"source": bench.source("batch"), "target": "/workspace/plugin"}]}
    path = os.path.join(bench.directory, "tasks.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(tasks, file)
    words = ["agent-sandbox-batch", "--input-file", path, "--concurrency", "6", *bench.paths(), "--site", bench.site, *pair.placement(), "--json"]
    rows = bench.finish(words[:1], bench.start(words)).expect(0).json["runs"]
    changed = [[file["relativePath"] for file in row["changed_files"]] for row in rows]
    must(changed == [[f"{n}.txt"] for n in range(12)], json.dumps(changed))
    wanted = {row["run_id"] for row in rows}

    def worked():
        return [event["run_id"] for node in pair.nodes.values() for event in node.events("worked") if event["run_id"] in wanted]

    # A node reports the end of a run before it prints this event.
    poll_until(lambda: set(worked()) == wanted, seconds=60, what="a run was done by no node")
    must(sorted(worked()) == sorted(wanted) and len(wanted) == 12, json.dumps(worked()))


def test_secret_variable_is_set_for_the_agent_on_the_node_and_no_stored_file_has_its_value(bench, pair, server):
    # The variable of the agent has a placeholder; only requests to api.example.org would carry the value.
    environment = {**os.environ, "CLUSTER_TOKEN": CANARY}
    arguments = [*bench.run_arguments(), *pair.placement(), "--mount", f"{bench.source('secret')}:/workspace/plugin", "--goal", "Use it",
                 "--agent-command", "sh -c 'test -n \"$CLUSTER_TOKEN\" && echo used > used.txt'", "--allow-host", "api.example.org",
                 "--secret-env", "CLUSTER_TOKEN=api.example.org"]
    answer = bench.finish(["run"], bench.start(arguments, environment=environment)).expect(0)
    must([row["path"] for row in answer.result["changed_files"]] == ["/workspace/plugin/used.txt"], str(answer))
    named = 0
    own = [os.path.join(bench.state, name) for name in ("layer-digests", f"sites/{bench.site}")]
    for path, content in contents(server.directory, pair.directory, *own):
        must(CANARY.encode() not in content, f"{path} has the value")
        named += b"CLUSTER_TOKEN" in content
    must(named > 0, "no file has the name of the secret: the search read nothing")


def test_cancelled_run_on_a_node_ends_with_outcome_cancelled_and_a_bundle(bench, pair):
    run = detached(bench, pair, "echo half > half.txt; echo ready; exec sleep 600")
    await_output(bench, run)
    runs(bench, "cancel", run).expect(0)
    row = ended(bench, run)
    must(row["outcome"] == "cancelled" and row["bundle_id"], json.dumps(row))


def test_run_without_a_node_is_queued_until_it_is_cancelled_and_a_run_succeeds_after_a_node_joined(bench, alone):
    nobody = {"one": "0" * 64}
    run = detached(bench, alone, "true", keys=nobody)
    poll_until(lambda: lifecycle(bench, run)["status"] == "queued", seconds=60, what="the run is not queued")
    runs(bench, "cancel", run).expect(0)
    row = ended(bench, run)
    must(row["outcome"] == "cancelled" and row["error"]["code"] == "wp_codebox_run_cancelled", json.dumps(row))
    node = alone.add("one")
    waits = detached(bench, alone, "echo a > a.txt", keys={"one": node.key})
    must(ended(bench, waits)["outcome"] == "succeeded", "the run did not succeed")


def test_run_of_a_killed_node_is_repeated_by_another_one_and_ends_once(bench, alone):
    second = alone.add("second")
    second.drain()
    first = alone.add("first")
    run = detached(bench, alone, "echo ready; sleep 20; echo b > b.txt")
    await_output(bench, run)
    first.kill()
    second.start()
    must(ended(bench, run)["outcome"] == "succeeded", "the run did not succeed")
    claims = [event["data"] for event in events(bench, run) if event["data"].get("backend") == "cluster"]
    must([(claim["node"], claim["epoch"]) for claim in claims] == [("first", 1), ("second", 2)], json.dumps(claims))


def test_run_with_max_tries_1_ends_with_tries_exhausted_after_its_node_is_killed(bench, alone):
    node = alone.add("one")
    run = detached(bench, alone, "echo ready; exec sleep 600", "--max-tries", "1")
    await_output(bench, run)
    node.kill()
    node.start()
    row = ended(bench, run)
    must(row["error"]["code"] == "wp_codebox_cluster_tries_exhausted", json.dumps(row))


def test_drained_node_finishes_its_run_and_takes_no_new_one(bench, alone):
    node = alone.add("one")
    run = detached(bench, alone, "echo ready; while ! test -e /tmp/never && sleep 0.1; do n=$((n+1)); test $n -lt 30 || break; done; echo c > c.txt")
    await_output(bench, run)
    node.process.send_signal(signal.SIGTERM)
    poll_until(lambda: node.events("draining"), seconds=60, what="the node does not drain")
    waits = detached(bench, alone, "true")
    must(node.process.wait(timeout=120) == 0, node.text())
    must(ended(bench, run)["outcome"] == "succeeded", "the run did not end")
    must(lifecycle(bench, waits)["status"] == "queued", "a draining node took a run")
    runs(bench, "cancel", waits).expect(0)
    ended(bench, waits)


def collect(bench, nodes, keep):
    words = ["cluster", "gc", *nodes.server(), "--submitter", "team", "--keep", keep, "--grace", "0s", "--json"]
    return bench.call(*words).expect(0).json


def stored(server, stream):
    with Client(server) as client:
        return client.request(f"$JS.API.STREAM.INFO.{stream}")["state"]["messages"]


def test_cluster_gc_removes_records_and_stored_inputs_and_results_of_ended_runs_only(bench, alone):
    alone.add("one")
    run = detached(bench, alone, "echo a > a.txt")
    # Before the record is there, a collection finds inputs without a run, some of them half uploaded, and removes them.
    while view(bench, run)["status"] != "ended" and collect(bench, alone, "1h")["objects"] == 0:
        pass
    row = ended(bench, run, seconds=300)
    must(row["outcome"] == "succeeded", json.dumps(row))
    collect(bench, alone, "1h")
    must(stored(alone.store, "CODEBOX_R_team") == 1 and stored(alone.store, "CODEBOX_O_team") >= 8, "a collection removed what a run needs")
    gone = collect(bench, alone, "0s")
    must(gone["records"] == 1 and gone["objects"] >= 4 and gone["bytes"] > 1_000_000, json.dumps(gone))
    left = [stored(alone.store, f"CODEBOX_{kind}_team") for kind in "RO"]
    must(left == [0, 0], f"{left}")


def test_cluster_gc_keeps_the_objects_of_a_run_whose_record_cannot_be_read(bench, alone):
    streams = Streams(Client(alone.store))
    newer, other = (f"run_{number:032x}" for number in (1, 2))
    kept = {f"task.{'a' * 64}", f"layer.{'b' * 64}", f"result.{newer}.1"}
    for name in (*kept, f"result.{other}.1"):
        streams.put(name, b"content")
    must("seq" in streams.store(f"records.team.{newer}", json.dumps({"protocol": 99, "task": "a" * 64})), "the record was not stored")
    done = collect(bench, alone, "0s")
    must(streams.objects() == kept, f"{streams.objects()}: {done}")
    must((done["objects"], done["unreadable"], done["kept_layers"]) == (1, 1, True), f"{done}")
    words = ["cluster", "gc", *alone.server(), "--submitter", "team", "--grace", "0s"]
    must("records cannot be read: 1" in bench.call(*words).expect(0).stdout, "the text does not say it")
    # Control: without the record, the same command removes them.
    streams.call("STREAM.PURGE.CODEBOX_R_team", {"filter": f"records.team.{newer}"})
    done = collect(bench, alone, "0s")
    must((streams.objects(), done["objects"], done["unreadable"]) == (set(), 3, 0), f"{done}")
    streams.close()


def test_same_idempotency_key_gives_the_same_run_and_is_refused_for_another_task(bench, pair):
    source = bench.source("key")
    words = ["--idempotency-key", "nightly", *pair.placement()]
    first = bench.agent("echo d > d.txt", *words, source=source).expect(0)
    # Another host of the same submitter: a state directory of its own.
    other = host(bench, "other-host")
    again = bench.agent("echo d > d.txt", *words, source=source, state=other).expect(0)
    must(first.result["run_id"] == again.result["run_id"], f"{first}\n{again}")
    third = host(bench, "third-host")
    bench.agent("echo e > e.txt", *words, source=source, state=third).expect(1, "wp_codebox_cluster_conflict")


def test_run_waits_for_a_listed_node_while_a_node_that_is_not_listed_serves_its_queue(bench, alone):
    listed = alone.add("listed")
    listed.drain()
    other = alone.add("other")
    # Control: the node runs the tasks of those who list it.
    place(bench, alone, "true", keys={"other": other.key}).expect(0)
    run = detached(bench, alone, "echo a > a.txt", "--max-tries", "1", keys={"listed": listed.key})
    kinds = lambda: [(event["run_id"], event["worked"]["kind"]) for event in other.events("worked")]
    poll_until(kinds, lambda seen: (run, "not_listed") in seen, what=f"the node did not get the message: {other.text()}")
    must(view(bench, run)["status"] != "ended", str(view(bench, run)))
    listed.start()
    row = ended(bench, run)
    must(row["outcome"] == "succeeded", json.dumps(row))
    claims = [event["data"] for event in events(bench, run) if event.get("data", {}).get("backend") == "cluster"]
    must([(claim["node"], claim["epoch"]) for claim in claims] == [("listed", 1)], json.dumps(claims))


REFUSED = {
    "result of a node that is not listed": (["--node-key", "one=" + "0" * 64, "--node-key", "two=" + "0" * 64], 1, "wp_codebox_cluster_node_untrusted"),
    "held sandbox": (["--hold", "10s"], 1, "wp_codebox_placement_unsupported"),
    "server that is not there": (["--nats", "nats://127.0.0.1:1"], 125, "wp_codebox_cluster_unreachable"),
    "queue that is not set up": (["--capability", "gpu"], 125, "wp_codebox_cluster_not_set_up"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_placement_cluster_with_an_unlisted_node_a_hold_option_or_a_missing_server_or_queue_is_refused(bench, pair, server, name):
    words, status, code = REFUSED[name]
    default = {"--node-key": pair.placement()[6:], "--nats": ["--nats", server.url]}
    options = ["--placement", "cluster", "--submitter", "team"]
    for option, usual in default.items():
        options += [] if option in words else usual
    answer = bench.agent("true", *options, *words)
    answer.expect(status, code)


def test_run_and_commands_of_the_platform_are_refused_by_name_where_its_program_is_missing(bench, pair):
    """Nothing is made for the run. Control: with the program beside it, the copy hands over."""
    must(not os.path.exists("/usr/libexec/wp-codebox-platform"), "the installed package hides what this case tests")
    home = os.path.join(bench.directory, "without-platform")
    os.mkdir(home)
    alone = shutil.copy(bench.environment["CODEBOX"], home)
    bench_alone = copy.copy(bench)
    bench_alone.environment = bench.environment | {"CODEBOX": alone}
    before = runs(bench, "list").expect(0).json["runs"]
    answer = place(bench_alone, pair, "true").expect(1, "wp_codebox_placement_unsupported")
    must("install the package wp-codebox-platform" in str(answer), str(answer))
    must(runs(bench, "list").expect(0).json["runs"] == before, "the refused run left a record")
    for command in ("serve", "node", "token", "cluster", "ledger"):
        answer = bench_alone.call(command, "--json").expect(1, "wp_codebox_input_invalid")
        must("install the package wp-codebox-platform" in str(answer), str(answer))
    shutil.copy(bench.environment["CODEBOX_PLATFORM"], home)
    place(bench_alone, pair, "true").expect(0)
    must("Usage: wp-codebox serve" in bench_alone.call("serve", "--help").expect(0).stdout, "the command was not handed over")


def test_run_whose_bundle_could_not_be_stored_on_this_host_is_refused_before_it_is_sent(bench, pair):
    place(bench, pair, "true").expect(0)
    artifacts = os.path.join(bench.state, "sites", bench.site, "artifacts")
    os.chmod(artifacts, 0o500)
    try:
        answer = place(bench, pair, "echo worked > new.txt").expect(1, "wp_codebox_bundle_write_failed")
    finally:
        os.chmod(artifacts, 0o700)
    must("the run was not started" in str(answer), str(answer))
    refused = runs(bench, "list").expect(0).json["runs"][0]["run_id"]
    must(view(bench, refused)["error"]["code"] == "wp_codebox_bundle_write_failed", "the newest run is another one")
    # Control: the next run is sent, and a node says so.
    control = place(bench, pair, "echo worked > new.txt").expect(0).result["run_id"]

    def named():
        return {event.get("run_id") for node in pair.nodes.values() for event in node.events()}

    poll_until(named, lambda found: control in found, 60)
    must(refused not in named(), "a node got the refused run")
