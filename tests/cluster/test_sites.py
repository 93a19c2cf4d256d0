"""Abilities of a WordPress site under nginx and php-fpm whose runs go to a node: handles, events, cancellation, and the bundle, which the site applies."""

import json
import os
import sys

import pytest

from harness import must, poll_until
from harness.nats import Nats
from harness.nodes import SMALL, Nodes

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fpm"))
import world as fpm  # noqa: E402

FILE = "/wordpress/wp-content/plugins/sample/sample.php"


@pytest.fixture(scope="module")
def nodes(bench, environment):
    if os.geteuid() != 0:
        pytest.fail("php-fpm's workers change their user: run this as root")
    server = Nats(environment["CODEBOX_NATS_SERVER"], "sites").start()
    bench.call("cluster", "setup", "--nats", server.url, "--submitter", "site", *SMALL, "--json").expect(0)
    nodes = Nodes(environment, server.url)
    nodes.add("one", "--capacity", "2")
    yield nodes
    nodes.close()
    server.close()


@pytest.fixture(scope="module")
def site(bench, environment, nodes):
    """A site whose host is configured for the cluster."""
    # One user only, because each user costs two processes of WP-CLI.
    fpm.ROLES = {"admin": "administrator"}
    world = fpm.World(environment)
    try:
        world.build()
        bench.call("cluster", "configure", *nodes.server(), "--submitter", "site", f"--node-key=one={nodes.nodes['one'].key}",
                   "--state", world.state, "--json").expect(0)
        # The site itself applies changes, without a host plugin.
        world.wp("plugin", "deactivate", "host-plugin")
        world.wp("option", "update", "wp_codebox_direct_apply", "1")
        yield world
    finally:
        world.close()


def get(site, run):
    return site.ability("get-run", {"run_id": run}, method="GET").expect(200).json


def events(site, run):
    rows, after = [], 0
    while True:
        page = site.ability("list-run-events", {"run_id": run, "after": after, "per_page": 200}, method="GET").expect(200).json
        rows, after = rows + page["events"], page["cursor"]
        if not page["more"]:
            return rows


def claims(site, run):
    return [event["data"]["node"] for event in events(site, run) if event["data"].get("backend") == "cluster"]


def detach(site, script):
    return site.run(script, placement="cluster", wait=False).expect(200).json["run_id"]


def ended(site, run):
    poll_until(lambda: get(site, run)["run"]["status"] == "ended", seconds=120, what=f"{run} has not ended")
    return get(site, run)


def test_task_of_a_site_runs_on_a_node_and_returns_changes_that_the_site_applies(site, nodes):
    answer = site.run("echo '// changed on a node' >> sample.php", placement="cluster").expect(200).json
    # A call that takes longer than 20 seconds returns a handle instead of the result.
    run = answer.get("run_id") or answer["run"]["run_id"]
    answer = answer if "run" in answer else ended(site, run)["result"]
    must(answer["success"] is True and [row["path"] for row in answer["changed_files"]] == [FILE], json.dumps(answer))
    must(claims(site, run) == ["one"], "the run was not on the node")
    code = site.path("site", "wp-content", "plugins", "sample", "sample.php")
    with open(code, encoding="utf-8") as file:
        must("changed on a node" not in file.read(), "the node changed the site")
    site.ability("apply-approved-artifact", {"artifact_id": run, "approved_files": [FILE]}).expect(200)
    with open(code, encoding="utf-8") as file:
        must(file.read().endswith("// changed on a node\n"), "the change was not applied")


def test_run_is_queued_without_a_node_and_its_events_can_be_read_until_it_is_cancelled(bench, site, nodes):
    node = nodes.nodes["one"]
    must(node.drain() == 0, node.text())
    run = detach(site, "echo half > half.txt; echo ready; exec sleep 600")
    lifecycle = lambda: bench.call("runs", "status", run, "--state", site.state, "--json").expect(0).json["status"]  # noqa: E731
    poll_until(lambda: lifecycle() == "queued", seconds=60, what="the run is not queued")
    must(get(site, run)["run"]["status"] == "running" and claims(site, run) == [], "a run without a node has a claim")
    node.start()
    poll_until(lambda: "ready" in json.dumps(events(site, run)), seconds=120, what="no output of the agent arrived")
    must(claims(site, run) == ["one"] and get(site, run)["run"]["status"] == "running", "the run is not on the node")
    site.ability("cancel-run", {"run_id": run}).expect(200)
    row = ended(site, run)
    must(row["run"]["outcome"] == "cancelled" and row["run"]["bundle_id"], json.dumps(row))
    must([file["relativePath"] for file in row["result"]["changed_files"]] == ["half.txt"], json.dumps(row))


def test_batch_and_fan_out_send_each_of_their_runs_to_the_node(site, nodes):
    tasks = [site.task(f"echo {n} > {n}.txt") for n in range(2)]
    batch = site.ability("run-agent-task-batch", {"placement": "cluster", "tasks": tasks}).expect(200).json
    workers = [{"id": f"w{n}", **task} for n, task in enumerate(tasks)]
    fanout = site.ability("run-agent-task-fanout", {"placement": "cluster", "concurrency": 2, "workers": workers}).expect(200).json
    for answer in (batch, fanout):
        must([row["status"] for row in answer["runs"]] == ["completed", "completed"], json.dumps(answer))
        must([claims(site, row["run_id"]) for row in answer["runs"]] == [["one"], ["one"]], "a run was not on the node")


def test_wp_cli_option_placement_cluster_sends_the_run_to_the_node(site):
    said = site.wp("codebox", "run-agent-task", "Do it", "--plugin=sample", "--agent-command=true", "--placement=cluster", "--format=json")
    must(claims(site, json.loads(said)["run"]["run_id"]) == ["one"], said)


def test_placement_cluster_is_refused_without_the_cluster_file_of_the_operator(site):
    path = os.path.join(site.state, "cluster.json")
    os.rename(path, path + ".away")
    try:
        site.run("true", placement="cluster").expect(503, "wp_codebox_cluster_not_configured")
    finally:
        os.rename(path + ".away", path)
    must(site.run("true", placement="cluster").expect(200).json["success"] is True, "positive control: the same call with the file")


def test_placement_cluster_is_refused_without_the_program_of_the_platform(site):
    program = site.path("bin", "wp-codebox-platform")
    os.rename(program, program + ".away")
    try:
        answer = site.run("true", placement="cluster").expect(400, "wp_codebox_placement_unsupported")
        must("wp-codebox-platform" in answer.body.decode(), answer)
    finally:
        os.rename(program + ".away", program)
    must(site.run("true", placement="cluster").expect(200).json["success"] is True, "positive control: the same call with the program")


def test_preview_hold_of_a_run_on_the_cluster_is_refused_and_the_error_names_it(site):
    answer = site.run("true", placement="cluster", preview_hold_seconds=30)
    must("hold cannot be sent to another host" in answer.body.decode() and "wp_codebox_placement_unsupported" in answer.body.decode(), answer)
