"""Fixtures: the parent site, with and without the extension, and a stock Chromium."""

import contextlib
import os
import sys

import parent as site
import pytest
from chromium import Chromium
from page import BANNER, link_of_banner, open_banner, running, shot, visit, write

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


@pytest.fixture
def admin(installed, browser):
    """A tab in which an administrator is logged in."""
    visitor = installed.login("admin")
    page = browser.page()
    page.cookies(installed.url, visitor.cookies)
    yield page
    page.close()


@pytest.fixture(scope="session")
def opened(parent, browser):
    """A tab with a sandbox that was opened from the page of plugins, and what was seen then. No archive was in the cache of the browser, and the page
    has the command palette of WordPress. A boot takes six seconds of processor time, ten without archives."""
    parent.install_runtime()
    page = browser.page()
    page.cookies(parent.url, parent.login("admin").cookies)
    # Other cases may have cached the archives. Sandboxes that run need their service workers.
    page.session.send("Storage.clearDataForOrigin", {"origin": parent.url, "storageTypes": "cache_storage"})
    before = len(browser.trap.requests)
    page.go(link_of_banner(page, parent) + "&new=1&palette=1")
    running(page)
    page.seen = {"palette": page.evaluate("Boolean(window.wp.commands)"), "text": page.frame("/site/", BANNER),
                 "color": page.frame("/site/", "getComputedStyle(document.querySelector('.banner')).color"),
                 "script": page.frame("/site/", "document.documentElement.dataset.banner")}
    shot(page, "front")
    page.seen |= {"requests": page.requests(), "trapped": browser.trap.requests[before:]}
    yield page
    page.close()


@pytest.fixture
def sandbox(installed, opened):
    """The tab that cases share, with the code of the parent and its front page."""
    write(opened, "banner.php", installed.read("wp-content/plugins/banner/banner.php"))
    visit(opened, "/?begin")
    opened.frame("/site/", BANNER + " === 'Banner of the parent'")
    return opened


@pytest.fixture(scope="session")
def other(parent, browser):
    """A tab with a second sandbox, for the cases that do not depend on its files."""
    parent.install_runtime()
    page = browser.page()
    page.cookies(parent.url, parent.login("admin").cookies)
    open_banner(page, parent)
    page.frame("/site/", BANNER)
    yield page
    page.close()
