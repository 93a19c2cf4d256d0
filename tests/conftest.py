"""Fixtures and summary of every suite: the exports of `make env`, a bench (it calls `wp-codebox`), and the last line, which `tests/run` reads.

A suite is a directory: `eval "$(make env)"; python3 -m pytest tests/cli -k git -n 2`.
"""

import os
import sys

import pytest

from harness import Bench

sys.dont_write_bytecode = True

NEEDED = ("CODEBOX", "CODEBOX_LAUNCH", "CODEBOX_WORDPRESS", "CODEBOX_SHARE", "CODEBOX_STATE", "CODEBOX_PHP", "CODEBOX_OWNER")


def pytest_sessionstart():
    missing = [name for name in NEEDED if not os.environ.get(name)]
    if missing:
        pytest.exit(f"{', '.join(missing)} not set; run: eval \"$(make env)\"", returncode=2)


@pytest.fixture(scope="session")
def environment():
    """Returns the environment variables whose names begin with CODEBOX; `make env` exports them."""
    return {name: value for name, value in os.environ.items() if name.startswith("CODEBOX")}


@pytest.fixture(scope="session")
def bench(environment):
    """Runs `wp-codebox` for the cases; owns the temporary directory, site and sample plugin of this process."""
    bench = Bench(environment)
    yield bench
    bench.close()


def pytest_terminal_summary(terminalreporter, config):
    """Prints the twenty slowest cases and `<suite>: N passed, N failed`. Skipped cases are not counted."""
    # A report of a module that cannot be imported has no duration.
    reports = [report for key in ("passed", "failed", "error") for report in terminalreporter.getreports(key) if hasattr(report, "duration")]
    seconds = {}
    for report in reports:
        seconds[report.nodeid] = seconds.get(report.nodeid, 0) + report.duration
    for case, spent in sorted(seconds.items(), key=lambda row: -row[1])[:20]:
        terminalreporter.write_line(f"slow {spent:.1f} s {case}")
    count = {key: len(terminalreporter.getreports(key)) for key in ("passed", "failed", "error")}
    suite = os.path.basename(os.path.abspath(config.args[0].split("::")[0]).rstrip("/")) if config.args else "tests"
    suite += "-matrix" if config.option.markexpr == "matrix" else ""
    terminalreporter.write_line(f"{suite}: {count['passed']} passed, {count['failed'] + count['error']} failed")
