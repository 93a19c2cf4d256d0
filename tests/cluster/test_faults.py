"""Nodes and submitters that die, lose their connection, or are cut off between each pair of their steps, with real servers and processes.

The pure protocol is tested in ext/platform/cluster/tests/protocol. Here a proxy stops one party at one message. All cases of a test wait at the same
time, because each waits for a lease or for the server to deliver a message again.
"""

import os

import pytest

from harness import must, poll_until
from harness.cluster import World
from harness.faults import Fault

#: Steps of a node: the message that the fault waits for.
NODE_STEPS = {
    "fetch": {"subject": r"\$JS\.ACK\..*", "down": True},
    "claim": {"subject": r"records\..*", "content": '"state":"claimed"'},
    # The line that the agent prints first.
    "output": {"subject": r"events\.team\..*", "content": r"ready\\n"},
    "part": {"subject": r"objects\.team\.result\..*\.part\.0"},
    "result": {"subject": r"objects\.team\.result\..*\.end"},
    "end": {"subject": r"records\..*", "content": '"state":"terminal"'},
    "answer": {"subject": r"\$JS\.ACK\..*", "content": r"\+ACK"},
}

#: Steps of a submitter.
SUBMITTER_STEPS = {
    "task": {"subject": r"objects\.team\.task\..*\.end"},
    "record": {"subject": r"records\..*", "content": '"state":"queued"'},
    "message": {"subject": r"tasks\..*"},
    "follow": {"subject": r"\$JS\.API\.STREAM\.MSG\.GET\.CODEBOX_R_team"},
    "result": {"subject": r"\$JS\.API\.STREAM\.MSG\.GET\.CODEBOX_O_team", "content": r"result\."},
}


#: Steps that the suite `cluster` tries; `cluster-matrix` tries every one.
SOME = ("claim-answer", "end-lost", "end-answer", "record-answer", "message-lost")


@pytest.fixture(params=[pytest.param(SOME, id="some steps"), pytest.param(None, id="every step", marks=pytest.mark.matrix)])
def steps(request):
    """Selects the cases whose step is tried."""
    return lambda cases: [case for case in cases if request.param is None or case.name in request.param]


class Case:
    """A fault in one step of a node, and what must follow. `epoch`: number of claims of the run. `evidence`: whether the result of the first claim stays stored although a later claim ended the run."""

    def __init__(self, step, then, epoch, arrives=False, evidence=False):
        self.step, self.epoch, self.evidence = step, epoch, evidence
        self.fault = Fault(**NODE_STEPS[step], arrives=arrives, then=then)
        self.name = f"{step}-{'answer' if arrives else 'lost'}"
        self.victim = self.proxy = self.run = None
        self.script = f"{'echo ready; sleep 3; ' if step == 'output' else ''}echo {self.name} > done.txt"


def begin(world, cases, warm):
    """Starts a node behind a proxy and a run for each case. Returns the node `rescuer`, which is stopped and takes the runs over once it is started."""
    capabilities = [word for case in cases for word in ("--capability", case.name)]
    rescuer = world.nodes.make("rescuer", *capabilities, "--capacity", "4").like(warm).start()
    rescuer.drain()
    for case in cases:
        case.proxy = world.proxy(case.fault)
        case.victim = world.nodes.make(case.name, "--capability", case.name, url=case.proxy.url).like(warm).spawn()
    for case in cases:
        case.victim.joined()
    for case in cases:
        case.run = world.detached(case.name, case.script, "--capability", case.name)
    world.all_hit()
    return rescuer


def check(world, case):
    """Checks that the run has ended with a bundle after the expected number of claims, and which of its results are stored."""
    records = world.records
    record = records.ended(case.run)
    must(record["state"]["end"]["kind"] == "result", f"{case.name}: {record}")
    must(record["epoch"] == case.epoch, f"{case.name}: {record}")
    world.delivered(case.run)
    late = f"result.{case.run}.1"
    must(f"result.{case.run}.{case.epoch}" in records.objects(), f"{case.name} has no result")
    if case.epoch > 1:
        must((late in records.objects()) is case.evidence, f"{case.name}: {sorted(records.objects('result'))}")


def check_all(world, cases):
    for case in cases:
        check(world, case)
    poll_until(world.records.messages, lambda count: count == 0, what="a message of a run that has ended stays")
    for case in cases:
        # The record was stored once for the submission, once for each claim and once for the end.
        world.records.must_have_stored(case.run, case.epoch + 2)


def world_of(bench, environment, cases):
    return World(bench, environment, [case.name for case in cases])


def test_run_of_a_node_that_is_killed_between_two_steps_ends_once_with_its_bundle(bench, environment, warm, steps):
    cases = steps([
        Case("fetch", "kill", 1),
        Case("claim", "kill", 1), Case("claim", "kill", 2, arrives=True),
        Case("output", "kill", 2),
        Case("part", "kill", 2),
        Case("result", "kill", 2), Case("result", "kill", 2, arrives=True, evidence=True),
        Case("end", "kill", 2, evidence=True), Case("end", "kill", 1, arrives=True),
        Case("answer", "kill", 1), Case("answer", "kill", 1, arrives=True),
    ])
    world = world_of(bench, environment, cases)
    try:
        rescuer = begin(world, cases, warm)
        for case in cases:
            must(case.victim.process.wait(60) == -9, f"{case.name}: {case.victim.text()}")
        rescuer.start()
        check_all(world, cases)
    finally:
        world.close()


def test_run_of_a_node_cut_off_between_two_steps_ends_once_and_its_record_stays_the_same_when_the_node_is_back(bench, environment, warm, steps):
    cases = steps([
        Case("fetch", "cut", 1),
        Case("claim", "cut", 1), Case("claim", "cut", 2, arrives=True),
        Case("output", "cut", 2, evidence=True),
        Case("part", "cut", 2, evidence=True),
        Case("result", "cut", 2, arrives=True, evidence=True),
        Case("end", "cut", 2, evidence=True), Case("end", "cut", 1, arrives=True),
        Case("answer", "cut", 1),
    ])
    world = world_of(bench, environment, cases)
    try:
        begin(world, cases, warm).start()
        for case in cases:
            world.records.ended(case.run)
        before = {case.name: world.records.get(case.run) for case in cases}
        for case in cases:
            case.proxy.heal()
        for case in cases:
            if case.evidence:
                kinds = lambda one=case: [event["worked"]["kind"] for event in one.victim.events("worked")]
                poll_until(kinds, lambda seen: "fenced" in seen, what=f"{case.name} is not told that it lost its run: {case.victim.text()}")
        check_all(world, cases)
        for case in cases:
            must(world.records.get(case.run) == before[case.name], f"{case.name} changed the record of a run that has ended")
            must(case.victim.drain() == 0, f"{case.name}: {case.victim.text()}")
    finally:
        world.close()


def test_node_whose_connection_breaks_for_two_seconds_between_two_steps_ends_the_run_itself(bench, environment, warm, steps):
    cases = steps([
        Case("fetch", 2, 1),
        Case("claim", 2, 1), Case("claim", 2, 1, arrives=True),
        Case("output", 2, 1),
        Case("part", 2, 1),
        Case("result", 2, 1), Case("result", 2, 1, arrives=True),
        Case("end", 2, 1), Case("end", 2, 1, arrives=True),
        Case("answer", 2, 1), Case("answer", 2, 1, arrives=True),
    ])
    world = world_of(bench, environment, cases)
    try:
        begin(world, cases, warm)
        check_all(world, cases)
        for case in cases:
            must(world.records.get(case.run)["state"]["by"]["node"] == case.name, f"{case.name} did not end its run")
    finally:
        world.close()


# Submitters.


@pytest.fixture
def world(bench, environment, warm):
    """A server with one node."""
    one = World(bench, environment)
    one.nodes.make("one", "--capacity", "4").like(warm).start()
    yield one
    one.close()


class Submission:
    """A step of a submitter at which a fault happens; `arrives`: the server still gets the message of this step."""

    def __init__(self, step, arrives=False):
        self.step, self.arrives, self.name = step, arrives, f"{step}-{'answer' if arrives else 'lost'}"


def submit_with_faults(world, steps, then):
    """Submits a run with a key through a proxy for each step, and returns name, script and key of each."""
    rows = []
    for one in steps([Submission("task"), Submission("record"), Submission("record", True), Submission("message"), Submission("message", True), Submission("follow"), Submission("result")]):
        name = f"{one.name}-{then}"
        proxy = world.proxy(Fault(**SUBMITTER_STEPS[one.step], arrives=one.arrives, then=then))
        script = f"echo {name} > done.txt"
        run = world.detached(name, script, "--idempotency-key", name, url=proxy.url)
        rows.append((name, script, run))
    world.all_hit()
    return rows


def test_run_of_a_killed_submitter_goes_on_and_the_same_idempotency_key_returns_it_on_any_host(world, bench, steps):
    rows = submit_with_faults(world, steps, "kill")
    for name, script, run in rows:
        again = world.submit(name, script, "--idempotency-key", name).expect(0)
        must(again.result["run_id"] == run, f"{name}: {again}")
        world.verified(run)
        record = world.records.ended(run)
        must(record["epoch"] == 1, f"{name} ran {record['epoch']} times")
        world.records.must_have_stored(run, 3)
    # A run that has ended is taken over, too.
    name, script, run = rows[0]
    other = os.path.join(bench.directory, "other-host-of-faults")
    os.mkdir(other, mode=0o700)
    bench.own(other)
    again = world.submit(name, script, "--idempotency-key", name, state=other).expect(0)
    must(again.result["run_id"] == run, str(again))
    world.verified(run, other)


def test_submitter_whose_connection_breaks_for_two_seconds_gets_its_bundle(world, steps):
    rows = submit_with_faults(world, steps, 2)
    for name, _, run in rows:
        record = world.records.ended(run)
        must(record["epoch"] == 1, f"{name}: {record}")
        world.records.must_have_stored(run, 3)
        world.delivered(run)
