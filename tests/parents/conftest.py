"""Fixture: parent sites (sites that start sandboxes) of several WordPress versions, on MariaDB and on SQLite."""

import os
import pathlib
import re

import pytest
from world import World


@pytest.fixture(scope="session")
def world(environment):
    # By default, downloads are cached beside the WordPress files that tests/provision downloaded.
    os.environ.setdefault("CODEBOX_CACHE", os.path.dirname(environment["CODEBOX_WPFILES"]))
    version = (pathlib.Path(environment["CODEBOX_WORDPRESS"]) / "wp-includes/version.php").read_text()
    world = World({**environment, "WORDPRESS_VERSION": re.search(r"\$wp_version = '([^']+)'", version)[1]})
    yield world
    world.close()
