"""Each process of this suite runs in its own network and mount namespace, with test hosts."""

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
