"""Three repair tasks that the built-in loop solves end to end. README.md has the variables for a real model."""

import os

import pytest
import tasks


@pytest.fixture(scope="session")
def bench(environment):
    bench = tasks.Tasks(environment, tasks.provider(os.environ))
    yield bench
    bench.close()


@pytest.mark.parametrize("name", tasks.NAMES)
def test_built_in_agent_solves_the_task(bench, name):
    tasks.solve(bench, name)
