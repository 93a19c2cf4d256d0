"""Fixtures for held sandboxes, which stay open after their setup."""

import pytest
from held_sandbox import Bench


@pytest.fixture(scope="session")
def bench(environment):
    bench = Bench(environment)
    yield bench
    bench.close()
