"""Fixtures of the suite: a state directory of its own, two projects, and pinned programs that check CI files (tests/ci/lock)."""

import importlib.util
import os
import shutil
import subprocess
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SCRIPT = os.path.join(ROOT, "ci", "wp-codebox-ci")


class Machine:
    """Runs ci/wp-codebox-ci as a CI system does: in a work directory, with inputs in the environment."""

    def __init__(self, environment, directory):
        self.directory, self.codebox = directory, environment["CODEBOX"]
        self.owner = environment["CODEBOX_OWNER"]
        self.state = self.own_directory("state")
        # The script finds the program under this name on the PATH.
        self.programs = os.path.join(directory, "bin")
        os.makedirs(self.programs)
        os.symlink(self.codebox, os.path.join(self.programs, "wp-codebox"))
        self.places = {
            "PATH": f"{self.programs}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": directory, "LANG": "C.UTF-8",
            "WP_CODEBOX_STATE_DIR": self.state, "WP_CODEBOX_WORDPRESS": environment["CODEBOX_WORDPRESS"],
            "WP_CODEBOX_SHARE_DIR": environment["CODEBOX_SHARE"], "WP_CODEBOX_LAUNCHER": environment["CODEBOX_LAUNCH"],
            "WP_CODEBOX_PHP": environment["CODEBOX_PHP"], "WP_CODEBOX_AGENTS_DIR": os.path.join(directory, "agents"),
            "WP_CODEBOX_CACHE_DIR": os.path.join(directory, "cores"),
        }

    def own_directory(self, name):
        """Creates a directory of mode 0700 that belongs to the owner of the state directories."""
        path = os.path.join(self.directory, name)
        os.makedirs(path, mode=0o700)
        if os.geteuid() == 0:
            shutil.chown(path, self.owner, self.owner)
        return path

    def project(self, name, expected=3):
        """Creates a plugin with one test, which passes if `expected` is 3."""
        path = os.path.join(self.directory, name, "shop")
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)
        os.makedirs(os.path.join(path, "tests"))
        self.write(f"{name}/shop/shop.php", "<?php\n/* Plugin Name: Shop */\nfunction shop_sum( ...$numbers ) { return array_sum( $numbers ); }\n")
        self.write(f"{name}/shop/tests/SumTest.php", "<?php\nfinal class SumTest extends PHPUnit\\Framework\\TestCase {\n"
                   f"\tpublic function test_sum(): void {{\n\t\t$this->assertSame( {expected}, shop_sum( 1, 2 ) );\n\t}}\n}}\n")
        return path

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.directory, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    def run(self, command, cwd, more=(), seconds=300):
        return subprocess.run(command, cwd=cwd, env={**self.places, **dict(more)}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=seconds, check=False)

    def job(self, name, cwd, **inputs):
        """Runs one job of the script. An input `wp_fallback` is the variable CODEBOX_CI_WP_FALLBACK; upper-case names stay."""
        named = {key if key.isupper() else f"CODEBOX_CI_{key.upper()}": value for key, value in inputs.items()}
        return self.run([SCRIPT, name], cwd, named)


@pytest.fixture(scope="session")
def machine(environment):
    # Other users run the sandboxes and must read the projects, but pytest resets the mode of its own directories to 0700 at each start.
    directory = tempfile.mkdtemp(prefix="codebox-ci.")
    os.chmod(directory, 0o755)
    yield Machine(environment, directory)
    shutil.rmtree(directory, ignore_errors=True)


def installed(name):
    """Returns the directory of pinned programs, installed like those of the suite `agents`."""
    spec = importlib.util.spec_from_file_location("agents_install", os.path.join(ROOT, "tests", "agents", "install.py"))
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    install.LOCKS = os.path.join(HERE, "lock")
    return install.ensure(name, os.path.join(install.cache(), "ci-tools"))


@pytest.fixture(scope="session")
def node_tools():
    return os.path.join(installed("node"), "node_modules")


@pytest.fixture(scope="session")
def python_tools():
    return os.path.join(installed("python"), "site")
