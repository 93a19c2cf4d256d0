"""Sandboxes held for a preview: those that several cases share end with the process."""

import pytest

from harness import Bench, previews


@pytest.fixture(scope="session")
def bench(environment):
    bench = Bench(environment)
    yield bench
    previews.close_shared()
    bench.close()
