"""Fixture that cancels the shared preview sandboxes at the end of the process."""

import pytest

from harness import Bench, previews


@pytest.fixture(scope="session")
def bench(environment):
    bench = Bench(environment)
    yield bench
    previews.close_shared()
    bench.close()
