"""Fixtures of the suite `cluster`."""

import pytest

from harness.cluster import World


@pytest.fixture(scope="session")
def warm(bench, environment):
    """A node that has run a task, whose template and layers other nodes take, so that they need not make them again."""
    world = World(bench, environment)
    try:
        node = world.nodes.add("warm")
        world.submit("warm", "echo w > w.txt").expect(0)
        node.drain()
        yield node
    finally:
        world.close()
