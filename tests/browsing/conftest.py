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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Keeps the cases that read the one recipe run in one process, so that it runs once."""
    for item in items:
        if "recipe_run" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group("recipe"))
