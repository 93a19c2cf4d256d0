"""Each process of this suite has a network and a mount namespace of its own, with hosts that answer there."""

import pytest

from harness import Bench, internet

internet.enter()


@pytest.fixture(scope="session")
def bench(environment):
    bench = Bench(environment)
    bench.world = internet.World()
    yield bench
    bench.world.close()
    bench.close()
