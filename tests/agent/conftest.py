"""The built-in agent loop against a scripted model."""

import pytest
from loop import Loop


@pytest.fixture(scope="session")
def bench(environment):
    loop = Loop(environment)
    yield loop
    loop.close()
