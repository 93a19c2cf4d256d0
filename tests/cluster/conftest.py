"""Fixtures of the suite `cluster`."""

import pytest

from harness.cluster import World


def pytest_collection_modifyitems(items):
    """Runs the cases that share a server in one process."""
    for item in items:
        if item.path.stem in ("test_nats", "test_parties", "test_runs"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def warm(bench, environment):
    """A node that has run a task. Other nodes copy its template and layers, so that they need not create their own."""
    world = World(bench, environment)
    try:
        node = world.nodes.add("warm")
        world.submit("warm", "echo w > w.txt").expect(0)
        node.drain()
        yield node
    finally:
        world.close()
