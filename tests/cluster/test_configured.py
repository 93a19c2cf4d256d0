"""The cluster that a host is configured for: `cluster configure`, its file, and the commands that use it."""

import json
import os
import stat
import sys

import pytest

from harness import must, poll_until
from harness.nats import Nats
from harness.nodes import SMALL, Nodes

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "service"))
from service import Service  # noqa: E402

SCHEMA = "wp-codebox/cluster-config/v1"
FILE = "cluster.json"


@pytest.fixture(scope="module")
def nodes(bench, environment):
    """A server with one node."""
    server = Nats(environment["CODEBOX_NATS_SERVER"], "configured").start()
    bench.call("cluster", "setup", "--nats", server.url, "--submitter", "team", *SMALL, "--json").expect(0)
    nodes = Nodes(environment, server.url)
    nodes.add("one")
    yield nodes
    nodes.close()
    server.close()


def host(bench, name):
    """Returns the state directory of a host."""
    path = os.path.join(bench.directory, name)
    os.mkdir(path, mode=0o700)
    return bench.own(path)


def configure(bench, nodes, state, *more, keys=None, submitter="team"):
    keys = keys or {name: node.key for name, node in nodes.nodes.items()}
    words = [f"--node-key={name}={key}" for name, key in keys.items()]
    return bench.call("cluster", "configure", *nodes.server(), "--submitter", submitter, *words, "--state", state, "--json", *more)


@pytest.fixture(scope="module")
def configured(bench, nodes):
    """State directory of a host for which the cluster is configured."""
    state = host(bench, "configured-host")
    configure(bench, nodes, state).expect(0)
    return state


def hosts(bench, state, *more):
    return bench.call("cluster", "hosts", "--state", state, "--json", *more)


def claims(bench, run, state):
    events = bench.call("runs", "events", run, "--state", state, "--site", bench.site, "--json").expect(0).json["events"]
    return [event["data"]["node"] for event in events if event["data"].get("backend") == "cluster"]


def test_configured_cluster_is_used_without_further_options(bench, nodes, configured):
    about = os.stat(os.path.join(configured, FILE))
    must(stat.S_IMODE(about.st_mode) == 0o600 and about.st_uid == os.stat(configured).st_uid, str(about))
    must([row["claimant"]["node"] for row in hosts(bench, configured).expect(0).json["hosts"]] == ["one"], "the node is not listed")
    source = bench.source("configured")
    words = ["--placement", "cluster", "--idempotency-key", "same"]
    first = bench.agent("echo new > new.txt", *words, source=source, state=configured).expect(0).result
    must([row["path"] for row in first["changed_files"]] == ["/workspace/plugin/new.txt"], json.dumps(first))
    must(claims(bench, first["run_id"], configured) == ["one"], "the run was not on the node")
    # A host that describes the cluster by options gets the same run for the same idempotency key.
    other = host(bench, "described-host")
    again = bench.agent("echo new > new.txt", "--idempotency-key", "same", *nodes.placement(), source=source, state=other).expect(0).result
    must(again["run_id"] == first["run_id"], json.dumps(again))


def test_task_with_placement_cluster_uses_the_configured_cluster_and_capability_option_overrides_the_file(bench, configured):
    path = os.path.join(bench.directory, "placed-task.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"goal": "Do it", "agent_command": "true", "placement": "cluster",
                   "mounts": [{"source": bench.source("placed-task"), "target": "/workspace/plugin"}]}, file)
    words = ["agent-sandbox-run", "--input-file", path, *bench.paths(configured), "--site", bench.site, "--json"]
    answer = bench.call(*words).expect(0).json
    must(claims(bench, answer["run"]["run_id"], configured) == ["one"], "the run was not on the node")
    answer = bench.call(*words, "--capability", "gpu").expect(125, "wp_codebox_cluster_not_set_up")
    unconfigured = host(bench, "host-without-cluster")
    words[words.index(configured)] = unconfigured
    bench.call(*words).expect(125, "wp_codebox_cluster_not_configured")


def test_run_of_the_service_goes_to_a_node_if_its_task_has_the_placement_cluster(bench, nodes):
    service = Service(bench, "placed", "--source-root", bench.directory)
    configure(bench, nodes, service.state).expect(0)
    service.start()
    try:
        task = {"goal": "Do it", "agent_command": "true", "placement": "cluster", "mounts": [{"source": service.source, "target": "/workspace/plugin"}]}
        run = service.post("/v1/runs", task).expect(202).json["run_id"]
        poll_until(lambda: service.get(f"/v1/runs/{run}").expect(200).json["status"] == "ended", seconds=120, what=f"{run} has not ended")
        events = service.get(f"/v1/runs/{run}/events").expect(200).json["events"]
        must([event["data"]["node"] for event in events if event["data"].get("backend") == "cluster"] == ["one"], json.dumps(events))
    finally:
        service.close()


def test_configure_prints_a_notice_if_no_node_has_the_capability(bench, nodes):
    state = host(bench, "other-capability")
    keys = [f"--node-key={name}={node.key}" for name, node in nodes.nodes.items()]
    words = ["cluster", "configure", *nodes.server(), "--submitter", "team", *keys, "--state", state]
    said = "no node has the capability gpu"
    must(said in bench.call(*words, "--capability", "gpu").expect(0).stdout, "not said")
    must("no node has" not in bench.call(*words).expect(0).stdout, "control: said about a capability that a node has")


def test_options_that_describe_only_a_part_of_a_cluster_are_refused_on_a_configured_host(bench, nodes, configured):
    # Such an option replaces the whole configuration, so a run needs all three of them; `cluster hosts` needs only the server.
    for words in (nodes.server(), ["--submitter", "team"], [f"--node-key=one={nodes.nodes['one'].key}"]):
        bench.agent("true", "--placement", "cluster", *words, state=configured).expect(1, "wp_codebox_input_invalid")
    hosts(bench, configured, "--submitter", "team").expect(1, "wp_codebox_input_invalid")
    hosts(bench, configured, *nodes.server()).expect(0)


def recipe(bench, name, steps, **sections):
    directory = os.path.join(bench.directory, f"recipe-{name}")
    os.makedirs(os.path.join(directory, "code"))
    with open(os.path.join(directory, "code", "a.txt"), "w", encoding="utf-8") as file:
        file.write("one\n")
    bench.own(directory)
    path = os.path.join(directory, "recipe.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schema": "wp-codebox/workspace-recipe/v1", "inputs": {"mounts": [{"source": "./code", "target": "/workspace/code", "mode": "readwrite"}]},
                   "workflow": {"steps": steps}, **sections}, file)
    return path


HOME = {"command": "wordpress.wp-cli", "args": ["command=option get home"]}
AGENT = {"command": "wp-codebox.agent-sandbox-run", "args": ["task=Add a line"]}


def run_recipe(bench, path, state, *more):
    return bench.call("recipe-run", "--recipe", path, *bench.paths(state), "--site", bench.site, "--json", "--placement", "cluster", *more)


def test_recipe_with_an_agent_step_runs_on_a_node(bench, configured):
    path = recipe(bench, "placed", [HOME, AGENT], artifacts={"verify": True})
    answer = run_recipe(bench, path, configured, "--agent-command", "sh -c 'echo two >> a.txt'").expect(0)
    document = answer.json
    steps = [row for row in document["executions"] if row["recipePhase"] == "steps"]
    must([row["exitCode"] for row in steps] == [0, 0] and steps[0]["stdout"].startswith("http"), json.dumps(steps))
    must([row["path"] for row in document["changedFiles"]] == ["/workspace/code/a.txt"], str(answer))
    must(document["verification"]["valid"] is True and document["artifacts"]["directory"].startswith(configured), str(answer))
    must(claims(bench, document["run"]["runId"], configured) == ["one"], "the run was not on the node")
    with open(os.path.join(os.path.dirname(path), "code", "a.txt"), encoding="utf-8") as file:
        must(file.read() == "one\n", "the node changed the source")


RECIPES = {
    "a version of PHP": ({"runtime": {"phpVersion": "8.0"}}, [], "runtime.phpVersion"),
    "a preview": ({}, ["--preview-hold", "10s"], "hold"),
}


@pytest.mark.parametrize("name", RECIPES)
def test_cluster_recipe_that_needs_the_submitting_host_is_refused_and_the_error_names_the_field(bench, configured, name):
    sections, words, field = RECIPES[name]
    path = recipe(bench, name.replace(" ", "-"), [HOME], **sections)
    answer = run_recipe(bench, path, configured, *words).expect(1, "wp_codebox_placement_unsupported")
    must(answer.json["error"]["message"].startswith(f"{field} cannot be sent to another host: "), str(answer))


def put(bench, state, document, mode=0o600, owner=None):
    """Writes the configuration file without `cluster configure`."""
    path = os.path.join(state, FILE)
    with open(path, "w", encoding="utf-8") as file:
        file.write(document if isinstance(document, str) else json.dumps(document))
    os.chmod(path, mode)
    if os.geteuid() == 0:
        about = os.stat(state)
        os.chown(path, about.st_uid if owner is None else owner, about.st_gid)


def valid(nodes, **more):
    return {"schema": SCHEMA, "cluster": {"servers": [nodes.url], "submitter": "team"},
            "nodes": [{"node": "one", "key": nodes.nodes["one"].key}], **more}


#: What is wrong with a file that the operator wrote: the changed members, mode, owner, exit status, code, part of the message.
FILES = {
    "nothing": ({}, 0o600, None, 0, None, ""),
    "an unknown member": ({"token": "canary-7d11"}, 0o600, None, 125, "wp_codebox_config_invalid", "unknown field `token`"),
    "a priority that is none": ({"priority": "urgent"}, 0o600, None, 125, "wp_codebox_config_invalid", "priority"),
    "a path that is not absolute": ({"cluster": {"servers": ["nats://127.0.0.1:1"], "submitter": "team", "ca_file": "ca.pem"}}, 0o600, None, 125,
                                    "wp_codebox_config_invalid", "cluster.ca_file"),
    "permissions of the group": ({}, 0o640, None, 125, "wp_codebox_config_invalid", "chmod 0600"),
    "another owner": ({}, 0o600, 0, 125, "wp_codebox_config_invalid", "cluster.json"),
    "a server that is not there": ({"cluster": {"servers": ["nats://127.0.0.1:1"], "submitter": "team"}}, 0o600, None, 125,
                                   "wp_codebox_cluster_unreachable", "127.0.0.1:1"),
}


@pytest.mark.parametrize("name", FILES)
def test_configuration_file_is_used_only_if_its_members_mode_owner_and_server_are_right(bench, nodes, name):
    members, mode, owner, status, code, named = FILES[name]
    if owner == 0 and os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    state = host(bench, f"host-with-{name.replace(' ', '-')}")
    put(bench, state, valid(nodes, **members), mode, owner)
    answer = hosts(bench, state).expect(status, code)
    must(named in answer.stdout and "canary" not in answer.stdout + answer.stderr, str(answer))


def test_host_without_a_configuration_file_refuses_cluster_commands(bench):
    state = host(bench, "host-without-file")
    for answer in (hosts(bench, state), bench.agent("true", "--placement", "cluster", state=state)):
        answer.expect(125, "wp_codebox_cluster_not_configured")
        must("wp-codebox cluster configure" in json.dumps(answer.json["error"]), str(answer))


def test_cluster_configure_with_an_untrusted_node_missing_queue_or_unreachable_server_writes_no_file(bench, nodes):
    state = host(bench, "unchecked-host")
    configure(bench, nodes, state, keys={"one": "0" * 64}).expect(1, "wp_codebox_cluster_node_untrusted")
    configure(bench, nodes, state, submitter="other").expect(125, "wp_codebox_cluster_not_set_up")
    bench.call("cluster", "configure", "--nats", "nats://127.0.0.1:1", "--submitter", "team", "--node-key=one=" + "0" * 64, "--state", state,
               "--json").expect(125, "wp_codebox_cluster_unreachable")
    if os.geteuid() == 0:
        # Root can read the file, but the supervisors of runs cannot.
        seed = os.path.join(bench.directory, "root.seed")
        with open(seed, "w", encoding="utf-8") as file:
            file.write("team:secret\n")
        os.chmod(seed, 0o600)
        configure(bench, nodes, state, "--nats-credentials", seed).expect(1, "wp_codebox_secret_invalid")
    must(os.listdir(state) == [], f"the command wrote {os.listdir(state)}")
    # The file may also list a node that has not sent a heartbeat yet.
    keys = {"one": nodes.nodes["one"].key, "later": "0" * 64}
    answer = configure(bench, nodes, state, "--capability", "gpu", "--priority", "low", "--max-tries", "7", keys=keys).expect(0)
    with open(os.path.join(state, FILE), encoding="utf-8") as file:
        written = json.load(file)
    must(answer.json == written and (written["capability"], written["priority"], written["max_tries"]) == ("gpu", "low", 7), json.dumps(written))
