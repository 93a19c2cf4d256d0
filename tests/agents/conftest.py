"""Fixtures with well-known command-line agents, installed in pinned versions (tests/agents/lock) while the first cases run."""

import pytest
from agent_bench import AgentBench

ORDER = ["mini-swe-agent", "codex", "claude", "opencode"]


@pytest.fixture(scope="session")
def bench(environment, request):
    bench = AgentBench(environment)
    wanted = {mark.args[0] for item in request.session.items for mark in item.iter_markers("agent")}
    bench.begin_installing(sorted(wanted, key=ORDER.index))
    yield bench
    bench.close()


def pytest_configure(config):
    config.addinivalue_line("markers", "agent(name): the case needs this agent")
