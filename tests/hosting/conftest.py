"""Fixture: three sites of three users on one host, with one php-fpm and one runner socket."""

import os

import pytest
from hosting import Hosting


@pytest.fixture(scope="session")
def hosting(environment):
    if os.geteuid() != 0:
        pytest.fail("users, their PHP and the runner socket need root: run this as root")
    hosting = Hosting(environment)
    try:
        hosting.build()
        yield hosting
    finally:
        hosting.close()
