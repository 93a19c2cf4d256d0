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
    """Assigns all cases that read the result of the shared recipe run to one process, so that the recipe runs only once."""
    for item in items:
        for fixture in ("recipe_run", "contract_run"):
            if fixture in item.fixturenames:
                item.add_marker(pytest.mark.xdist_group(fixture))
