"""Fixtures for tests of the built-in agent loop, whose model is a server that answers from scripts."""

import pytest
from loop import Loop


@pytest.fixture(scope="session")
def bench(environment):
    loop = Loop(environment)
    yield loop
    loop.close()
