"""Fixtures: the parent site, with and without the extension, and a stock Chromium."""

import contextlib
import os
import sys

import parent as site
import pytest
from chromium import Chromium

from harness import must

# The scripted model server.
sys.path.insert(0, os.path.join(site.ROOT, "tests", "model-server"))


@contextlib.contextmanager
def built(environment, with_extension):
    if os.geteuid() != 0:
        pytest.fail("php-fpm's workers change their user: run this as root")
    for needed in (os.path.join(site.PLUGIN, "assets/browser/client.js"), site.RUNTIME):
        if not os.path.isfile(needed):
            pytest.fail(f"{needed} does not exist; run: cargo xtask dist")
    world = site.Parent(environment, with_extension)
    try:
        world.build()
        yield world
        must(world.complaints() == [], f"PHP complained: {world.complaints()[:5]}")
    finally:
        world.close()


@pytest.fixture(scope="session")
def parent(environment):
    with built(environment, with_extension=False) as world:
        yield world


@pytest.fixture
def installed(parent):
    """The parent with its runtime files installed; cases of the installation remove them."""
    parent.install_runtime()
    return parent


@pytest.fixture(scope="session")
def keeper(environment):
    """A parent with the extension, which stores bundles; its runtime files are installed."""
    with built(environment, with_extension=True) as world:
        world.install_runtime()
        world.wp("option", "update", "wp_codebox_direct_apply", "1")
        yield world


@pytest.fixture(scope="session")
def browser():
    chromium = Chromium()
    try:
        yield chromium
    finally:
        chromium.close()
