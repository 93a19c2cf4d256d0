"""Fixtures: a developer (a user with an empty home and one plugin) per test module, and a server in place of wordpress.org."""

import os
import shutil
import tempfile

import pytest

from harness import skip_unless_root
from harness.developer import Developer, Origin
from harness.users import temporary_user


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Runs the cases of a module that use the developer in one process of xdist, because the developer installs WordPress in each process."""
    for item in items:
        if "developer" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.fixture(scope="session")
def origin(environment):
    origin = Origin(environment["CODEBOX_WORDPRESS"])
    yield origin
    origin.close()


@pytest.fixture(scope="module")
def developer(environment, origin):
    if os.geteuid() != 0:
        skip_unless_root("another user")
    root = tempfile.mkdtemp(prefix="codebox-first.")
    os.chmod(root, 0o755)
    home, tables = os.path.join(root, "home"), os.path.join(root, "tables")
    os.makedirs(home), os.makedirs(tables)
    uid = 54_000 + os.getpid() % 2000
    with temporary_user(uid, (2_100_000_000, 4096), tables) as prefix:
        yield Developer(environment["CODEBOX"], home, uid, prefix, origin)
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def project(developer):
    made = []

    def make(name, files):
        root = os.path.join(developer.home, name)
        for path, text in files.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        developer.own(root)
        made.append(root)
        return root

    yield make
    for root in made:
        shutil.rmtree(root)
