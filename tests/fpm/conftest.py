"""Fixtures: WordPress under real nginx and php-fpm, over HTTP; and the extension without WordPress in php-fpm, over FastCGI."""

import os
import signal
import sys
import threading

import extension_world
import pytest
from world import World


def pytest_configure():
    # SIGTERM must run the fixtures' teardown, which stops the servers. A worker process of xdist may call this in
    # another thread than the main one, where no handler can be set; it ends with the process that started it.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    # The cases of a file depend on the state of one site, so they run in one process; each process has its own sites.
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def world(environment):
    if os.geteuid() != 0:
        pytest.fail("php-fpm's workers change their user: run this as root")
    world = World(environment)
    try:
        world.build()
        yield world
        world.check_cleanup_median()
    finally:
        world.close()


@pytest.fixture(scope="session")
def extension():
    if os.geteuid() != 0:
        pytest.fail("php-fpm's workers get their user from root: run this as root")
    world = extension_world.World()
    try:
        world.pool = world.fpm()
        yield world
        world.check_cleanup_median()
    finally:
        world.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Before a case, clears the list of guests that the leak detectors recorded in the previous case."""
    if "world" in item.funcargs:
        item.funcargs["world"].host.forget_guests()
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Kills the supervisors, and with them the guests, that a failed case left."""
    outcome = yield
    if call.when == "call" and outcome.get_result().failed and "world" in item.funcargs:
        item.funcargs["world"].end_runs()
