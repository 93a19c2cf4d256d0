"""Nodes that are broken, of another version, with a wrong clock, or that lie; and two submitters with one key."""

import hashlib
import json
import os
import secrets
import subprocess
import threading

import pytest

from harness import must, poll_until, skip_unless_root
from harness.accounts import Accounts
from harness.cluster import World
from harness.nats import Nats
from harness.nodes import SMALL, Nodes
from harness.records import Streams

PROTOCOL = 2


@pytest.fixture(scope="module")
def world(bench, environment, warm):
    """A server with one node."""
    one = World(bench, environment, ["default", "later"])
    one.nodes.make("one").like(warm).start()
    yield one
    one.close()


# Broken nodes.


def damaged_key(node):
    node.start()
    node.drain()
    path = f"{node.state}/keys/host.ed25519"
    with open(path, "ab") as file:
        file.write(b"more")


def readable_key(node):
    node.start()
    node.drain()
    os.chmod(f"{node.state}/keys/host.ed25519", 0o644)


def file_instead_of_directory(node):
    os.rmdir(node.state)
    with open(node.state, "w", encoding="utf-8"):
        pass


def open_directory(node):
    os.chmod(node.state, 0o755)


def directory_of_root(node):
    if os.geteuid() != 0:
        skip_unless_root("only root can give a directory to another user")
    os.chown(node.state, 0, 0)


def layers_of_another_user(node):
    if os.geteuid() != 0:
        skip_unless_root("only root can give a directory to another user")
    os.chown(node.layers, 12_345, 12_345)


def layers_that_are_a_file(node):
    os.rmdir(node.layers)
    with open(node.layers, "w", encoding="utf-8"):
        pass


def read_only_state(node):
    """Makes the state directory read-only with a mount, because its owner could undo a change of its mode."""
    if os.geteuid() != 0:
        skip_unless_root("only root can mount")
    node.prefix = ("unshare", "--mount", "sh", "-c", f'mount --bind {node.state} {node.state} && mount -o remount,ro,bind {node.state} && exec "$@"', "sh")


#: What is broken, and a part of the message that names it. The code is the same for all.
BROKEN = {
    "damaged key": (damaged_key, "key"),
    "key that others may read": (readable_key, "key"),
    "file as state directory": (file_instead_of_directory, "cannot be opened"),
    "state directory that others may read": (open_directory, "has mode 0755"),
    "state directory of root": (directory_of_root, "belongs to root"),
    "read-only state directory": (read_only_state, "read-only"),
    "layers of another user": (layers_of_another_user, "directory of layers"),
    "file as directory of layers": (layers_that_are_a_file, "directory of layers"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_node_with_a_broken_directory_does_not_join_and_says_why(world, name):
    damage, text = BROKEN[name]
    node = world.nodes.make(f"broken-{list(BROKEN).index(name)}")
    del world.nodes.nodes[node.name]
    damage(node)
    done = subprocess.run(node.argv(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    must(done.returncode == 125, f"{done.returncode}: {done.stdout}{done.stderr}")
    error = json.loads(done.stdout)["error"]
    must(error["code"] == "wp_codebox_state_dir_invalid" and text in error["message"].lower(), json.dumps(error))
    hosts = world.bench.call("cluster", "hosts", "--nats", world.server.url, "--json").expect(0).json["hosts"]
    must([host["claimant"]["node"] for host in hosts] == ["one"], f"the node has joined: {hosts}")


# Other versions.


def record(world, run, protocol, **more):
    """Returns a record like that of a submitter; the task does not exist."""
    return {"protocol": protocol, "key": {"submitter": "team", "run": run}, "queue": {"capability": "default", "priority": "normal", "submitter": "team"},
            "task": "0" * 64, "epoch": 0, "max_tries": 1, "cancelled": False, "created_at": "2026-01-01T00:00:00Z", "state": {"state": "queued"}, **more}


def put_run(world, protocol, **more):
    run = f"run_{secrets.token_hex(16)}"
    must("seq" in world.records.store(f"records.team.{run}", json.dumps(record(world, run, protocol, **more))), "the record was not stored")
    must("seq" in world.records.store("tasks.default.normal.team", json.dumps({"submitter": "team", "run": run})), "the message was not stored")
    return run


def test_node_leaves_runs_of_a_newer_protocol_alone_and_takes_those_of_its_own_and_of_the_one_before(world):
    newer = [put_run(world, PROTOCOL + 1), put_run(world, PROTOCOL + 2, another="member")]
    older = [put_run(world, PROTOCOL), put_run(world, PROTOCOL - 1)]
    for run in older:
        # The node takes the run and finds that the task is missing.
        must(world.records.ended(run)["state"]["end"]["error"]["code"] == "wp_codebox_cluster_missing", str(world.records.get(run)))
    world.submit("versions", "true").expect(0)
    for run in newer:
        must(world.records.get(run)["state"] == {"state": "queued"} and world.records.stored[run] == 1, "a node changed a record of a newer version")
    for run in newer:
        world.records.call("STREAM.PURGE.CODEBOX_R_team", {"filter": f"records.team.{run}"})


def test_heartbeat_of_a_newer_version_hides_no_other_node(world):
    known = {"protocol": PROTOCOL + 1, "claimant": {"node": "newer", "instance": "0" * 32}, "version": "9.0.0", "key_id": "0" * 64, "capabilities": ["default"],
             "capacity": 1, "running": 0, "draining": False, "beat": 0}
    for beat in (known, {**known, "another": "member"}):
        must("seq" in world.records.store("hosts.newer", json.dumps(beat)), "the heartbeat was not stored")
        world.submit("newer-host", "true").expect(0)
        hosts = world.bench.call("cluster", "hosts", "--nats", world.server.url, "--json").expect(0).json["hosts"]
        must([host["claimant"]["node"] for host in hosts if host["claimant"]["node"] != "newer"] == ["one"], str(hosts))
    world.records.store("hosts.newer", "")


# Submitters that store what no node can read.


def test_unreadable_messages_and_records_of_a_submitter_do_not_delay_the_runs_of_another_one(bench, environment, warm):
    world = World(bench, environment)
    try:
        world.set_up("--submitter", "other")
        node = world.nodes.make("one").like(warm).start()
        for _ in range(300):
            must("seq" in world.records.store("tasks.default.high.other", "{"), "the message was not stored")
        for _ in range(20):
            run = f"run_{secrets.token_hex(16)}"
            # Its queue is that of `team`.
            lure = record(world, run, PROTOCOL, key={"submitter": "other", "run": run})
            must("seq" in world.records.store(f"records.other.{run}", json.dumps(lure)), "the record was not stored")
        world.submit("beside", "true").expect(0)
        left = lambda: world.records.call("STREAM.INFO.CODEBOX_T_other")["state"]["messages"]
        # A node that paused for a second after each of them would need five minutes.
        poll_until(left, lambda count: count == 0, 60, "the unreadable messages stay")
        details = lambda: [event["detail"] for event in node.events("unreadable") if event["submitter"] == "other"]
        poll_until(details, lambda seen: any("queue of another submitter" in detail for detail in seen), 60, f"the records are not reported: {node.text()}")
        must(len(details()) < 20, str(details()))
        must(not node.events("trouble") and world.records.messages() == 0, node.text())
    finally:
        world.close()


# Clocks.

SHIFT = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *to) {
	int failed = syscall(SYS_clock_gettime, id, to);
	if (!failed && id == CLOCK_REALTIME) to->tv_sec += YEARS * 31536000L;
	return failed;
}
time_t time(time_t *to) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (to) *to = now.tv_sec;
	return now.tv_sec;
}
int gettimeofday(struct timeval *to, void *zone) {
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	to->tv_sec = now.tv_sec;
	to->tv_usec = now.tv_nsec / 1000;
	return 0;
}
"""


def test_run_of_a_node_with_a_wrong_clock_is_ended_by_another_node_only_after_the_node_was_killed(bench, environment, warm):
    if os.geteuid() != 0:
        skip_unless_root("only root can make a time namespace")
    world = World(bench, environment, ["ahead", "behind", "started", "plain"])
    try:
        nodes = {}
        for name, years in (("ahead", 3), ("behind", -3)):
            library = f"{world.nodes.directory}/{name}.so"
            subprocess.run(["cc", "-shared", "-fPIC", f"-DYEARS={years}", "-x", "c", "-", "-o", library], input=SHIFT, text=True, check=True)
            nodes[name] = world.nodes.make(name, "--capability", name, prefix=("env", f"LD_PRELOAD={library}"))
        nodes["started"] = world.nodes.make("started", "--capability", "started", prefix=("unshare", "--time", "--monotonic", "1000000", "--boottime", "1000000"))
        # The node that ends the runs of the others: only a listed node may.
        plain = world.nodes.make("plain", *(word for name in nodes for word in ("--capability", name))).like(warm).learn_key()
        for node in nodes.values():
            node.like(warm).spawn()
        for node in nodes.values():
            node.joined()
        # Control: a program in place of the node sees the other time.
        year = subprocess.run([*nodes["ahead"].prefix, "date", "+%Y"], capture_output=True, text=True, check=True).stdout
        must(int(year) >= int(subprocess.run(["date", "+%Y"], capture_output=True, text=True, check=True).stdout) + 2, year)
        # Longer than a lease: a node that compared its clock with another node's would declare that node dead too early or never.
        runs = {name: world.detached(f"clock-{name}", "echo ready; sleep 12; echo a > a.txt", "--capability", name) for name in nodes}
        for name, run in runs.items():
            world.delivered(run)
            must(world.records.get(run)["epoch"] == 1, f"another node took the run of {name}")
        dies = {name: world.detached(f"dies-{name}", "sleep 600", "--capability", name, "--max-tries", "1") for name in nodes}
        for name, run in dies.items():
            poll_until(lambda one=run: world.records.state(one) == "claimed", what=f"{name} does not take the run")
            nodes[name].kill()
        plain.start()
        for name, run in dies.items():
            must(world.records.ended(run)["state"]["end"]["error"]["code"] == "wp_codebox_cluster_tries_exhausted", f"{name}: {world.records.get(run)}")
    finally:
        world.close()


# Lies.


class Lies:
    """A server with accounts and one honest node. After a run has ended, a program with the node's account stores false records of it."""

    def __init__(self, bench, environment, warm):
        self.bench = bench
        self.accounts = Accounts(bench, environment["CODEBOX_NATS_SERVER"], "lies").own("shop")
        bench.call("cluster", "setup", *self.accounts.options("operator"), "--submitter", "shop", "--submitter", "blog", *SMALL, "--json").expect(0)
        self.nodes = Nodes(environment, self.accounts.server.url, f"{self.accounts.directory}/ca.pem")
        self.node = self.nodes.make("node", "--nats-credentials", f"{self.accounts.directory}/node.seed")
        self.node.like(warm, "shop").start()
        self.streams = Streams(self.accounts.client("node"), "shop")
        self.source = bench.source("source-of-lies")
        self.run, self.honest = self.done("true")
        self.other, _ = self.done("other")

    def submit(self, key):
        words = ["--placement", "cluster", *self.accounts.options("shop"), "--submitter", "shop", f"--node-key=node={self.node.key}", "--idempotency-key", key]
        return self.bench.agent(f"echo {key} > a.txt", *words, source=self.source)

    def done(self, key):
        run = self.submit(key).expect(0).result["run_id"]
        return run, self.streams.get(run)

    def state(self, record):
        must("seq" in self.streams.store(f"records.shop.{self.run}", json.dumps(record)), "a node may not write a record")

    def close(self):
        self.streams.close()
        self.nodes.close()
        self.accounts.server.close()


@pytest.fixture(scope="module")
def lies(bench, environment, warm):
    one = Lies(bench, environment, warm)
    yield one
    one.close()


def ending(lies, **changes):
    """Returns the record with another end."""
    record = json.loads(json.dumps(lies.honest))
    record["state"]["end"].update(changes)
    return record


def stated(lies, content, epoch=1, **changes):
    """Stores a result, and returns a record that names it."""
    lies.streams.put(f"result.{lies.run}.{epoch}", content)
    return {**ending(lies, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content), **changes), "epoch": epoch}


def bundle_of_another_run(lies):
    return stated(lies, lies.streams.parts(f"result.{lies.other}.1"))


def forged_digest(lies):
    return ending(lies, sha256="0" * 64)


def replay_of_an_earlier_epoch(lies):
    return stated(lies, lies.streams.parts(f"result.{lies.run}.1"), 2)


def result_that_is_not_stored(lies):
    return {**lies.honest, "epoch": 9}


def changed_bundle(lies):
    content = bytearray(lies.streams.parts(f"result.{lies.run}.1"))
    content[len(content) // 2] ^= 1
    return stated(lies, bytes(content))


def cut_bundle(lies):
    return stated(lies, lies.streams.parts(f"result.{lies.run}.1")[:-1])


def better_outcome(lies):
    return ending(lies, outcome="no_op")


def name_of_another_node(lies):
    record = json.loads(json.dumps(lies.honest))
    record["state"]["by"]["node"] = "other"
    return record


def another_task(lies):
    return {**lies.honest, "task": "0" * 64}


INVALID = "wp_codebox_cluster_result_invalid"
LIES = {
    "bundle of another run": (bundle_of_another_run, 1, INVALID),
    "forged digest": (forged_digest, 1, INVALID),
    "replay of an earlier epoch": (replay_of_an_earlier_epoch, 1, INVALID),
    "result that is not stored": (result_that_is_not_stored, 1, "wp_codebox_cluster_missing"),
    "changed bundle": (changed_bundle, 1, INVALID),
    "cut bundle": (cut_bundle, 1, INVALID),
    "another outcome": (better_outcome, 1, INVALID),
    "name of another node": (name_of_another_node, 1, "wp_codebox_cluster_node_untrusted"),
    "another task": (another_task, 1, "wp_codebox_cluster_conflict"),
}


@pytest.mark.parametrize("name", LIES)
def test_false_record_or_result_of_a_node_is_refused_and_the_true_one_accepted(lies, name):
    lie, status, code = LIES[name]
    content = lies.streams.parts(f"result.{lies.run}.1")
    try:
        lies.state(lie(lies))
        lies.submit("true").expect(status, code)
    finally:
        lies.streams.put(f"result.{lies.run}.1", content)
        lies.state(lies.honest)
    again = lies.submit("true").expect(0)
    must(again.result["run_id"] == lies.run, str(again))


# Two submitters.


def test_two_hosts_submitting_with_one_idempotency_key_at_once_get_the_bundle_of_one_run(world, bench):
    hosts = []
    for name in ("first-of-two", "second-of-two"):
        path = os.path.join(bench.directory, name)
        os.mkdir(path, mode=0o700)
        hosts.append(bench.own(path))
    answers = {}
    def submit(state):
        answers[state] = world.submit("both", "sleep 1; echo a > a.txt", "--idempotency-key", "both", state=state)
    world.source("both")
    threads = [threading.Thread(target=submit, args=(state,)) for state in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runs = {answers[state].expect(0).result["run_id"] for state in hosts}
    must(len(runs) == 1, str(runs))
    run = runs.pop()
    for state in hosts:
        world.verified(run, state)
    world.records.must_have_stored(run, 3)


def test_submission_with_an_idempotency_key_in_use_on_the_same_host_is_refused_with_the_run_id(world):
    run = world.detached("twice", "sleep 2; echo a > a.txt", "--idempotency-key", "twice")
    refused = world.submit("twice", "sleep 2; echo a > a.txt", "--idempotency-key", "twice").expect(1, "wp_codebox_cluster_conflict")
    must(run in str(refused.json["error"]), str(refused))
    world.delivered(run)


# Servers.


def test_node_refuses_an_older_or_lenient_server_that_replaces_its_own(bench, environment, warm):
    world = World(bench, environment)
    try:
        node = world.nodes.make("one").like(warm).start()
        world.server.kill()
        expected = {"wp_codebox_cluster_unreachable"}
        for code, other in (
            ("wp_codebox_cluster_server_too_old", Nats(environment["CODEBOX_NATS_SERVER_DEBIAN"], "old", {"jetstream": {"strict": None}})),
            ("wp_codebox_cluster_server_not_strict", Nats(environment["CODEBOX_NATS_SERVER"], "lenient", {"jetstream": {"strict": False}})),
        ):
            other.port = world.server.port
            expected.add(code)
            try:
                other.start()
                codes = poll_until(lambda: {event["error"]["code"] for event in node.events("trouble")}, lambda seen, code=code: code in seen, what=f"the node does not refuse the server: {node.text()}")
                must(codes <= expected, str(codes))
            finally:
                other.close()
        world.server.start()
        world.reconnect()
        world.submit("after-old", "true").expect(0)
    finally:
        world.close()
