"""Fixtures: the parent site, and a Chromium for cases that need one."""

import os

import parent as site
import pytest

from harness import must


@pytest.fixture(scope="session")
def parent(environment):
    if os.geteuid() != 0:
        pytest.fail("php-fpm's workers change their user: run this as root")
    for needed in (os.path.join(site.PLUGIN, "assets/browser/client.js"), site.RUNTIME):
        if not os.path.isfile(needed):
            pytest.fail(f"{needed} does not exist; run: cargo xtask dist")
    world = site.Parent(environment)
    try:
        world.build()
        yield world
        must(world.complaints() == [], f"PHP complained: {world.complaints()[:5]}")
    finally:
        world.close()


@pytest.fixture
def installed(parent):
    """The parent with its runtime files installed; cases of the installation remove them."""
    if not os.path.isdir(parent.path("site/wp-content/uploads/wp-codebox-browser-runtime")):
        parent.install_runtime()
    return parent
