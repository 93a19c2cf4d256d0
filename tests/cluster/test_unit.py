"""The unit of packaging/systemd for a node, under a real systemd."""

import os
import re

import pytest

from harness import must, poll_until
from harness.cluster import World
from harness.systemd import Machine, state_of

UNIT = "wp-codebox-node.service"


@pytest.fixture
def world(bench, environment, warm):
    one = World(bench, environment)
    one.nodes.make("unit").like(warm)
    yield one
    one.close()


def test_systemd_unit_starts_a_node_that_finishes_its_run_before_it_stops(world, bench):
    options = os.path.join(bench.directory, "node-options")
    places = [word for name in ("launcher", "share", "php") for word in (f"--{name}", bench.environment[{"launcher": "CODEBOX_LAUNCH", "share": "CODEBOX_SHARE", "php": "CODEBOX_PHP"}[name]])]
    # Here the layers are on an overlay, which the kernel cannot mount idmapped, so the node uses the shared identity.
    words = ["--name", "unit", *world.nodes.server(), *places, "--identity", "shared"]
    with open(options, "w", encoding="utf-8") as file:
        file.write(f"NODE_OPTIONS={' '.join(words)}\n")
    machine = Machine(bench, "systemd-node", world.nodes.nodes["unit"].state, {
        "wp-codebox.socket": "",
        UNIT: f"{state_of(bench.owner)}EnvironmentFile=\nEnvironmentFile={options}\n",
    }, network="host")
    try:
        poll_until(machine.systemd, what="systemd does not start")
        # The key is in the journal, as the comment in the unit says.
        said = lambda: re.search(r"node unit has joined; its key is ([0-9a-f]{64})", machine.control("status", "--full", "--lines=50", UNIT))
        keys = {"unit": poll_until(said, what=f"the node has not joined: {machine.output()}")[1]}
        user = machine.control("show", "--property=User", "--value", UNIT)
        must(user == "", f"the unit has a user: {user}")
        world.submit("unit", "echo a > a.txt", keys=keys).expect(0)
        run = world.detached("unit", "echo b > b.txt; sleep 2", keys=keys)
        poll_until(lambda: world.records.state(run), lambda state: state == "claimed", what="the node takes no run")
        machine.control("stop", UNIT)
        record = world.records.ended(run)
        must(record["epoch"] == 1 and record["state"]["end"]["outcome"] == "succeeded", str(record))
        world.delivered(run)
        state = machine.control("show", "--property=ActiveState,Result,ExecMainStatus", UNIT).split()
        must(state == ["Result=success", "ExecMainStatus=0", "ActiveState=inactive"], str(state))
    finally:
        machine.close()
