"""WASI tools in a guest of their own (`--wrapper launcher`): as root, as a user with subordinate ids, and as one without.

The native probe takes the place of the program that runs WebAssembly: it is what a broken runtime would be.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import pytest

from harness import must, remove_tree
from harness.users import unprivileged_bench

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = b"\0asm stands for a module"
#: Runs the program `probe` of the tool's directory, with the arguments in the file `arguments` there.
RUNNER = r"""#!/bin/sh
action=$1; shift
case "$action" in
engine) echo stand-in-1 ;;
compile) cp "$4" "$6" ;;
run)
    while [ $# -gt 0 ]; do
        case "$1" in --dir) work=${2%%=*} ;; esac
        shift
    done
    set -- $(cat "$work/arguments")
    "$work/probe" "$1" "$2" "$work" "$3"
    echo '{"exit":0}' >&2 ;;
esac
"""
USERS = {"suite": None, "own-ids": (2_100_000_000, 4096), "shared-id": ()}


def definition(tool, module):
    return json.dumps({
        "schema": "wp-codebox/wasi-tool/v1", "id": tool, "version": "1.0.0", "description": "Replaces a text in every file below a directory.",
        "parameters": {"type": "object"}, "module": {"sha256": hashlib.sha256(module).hexdigest(), "bytes": len(module)},
        "files": "write", "grants": [],
        "limits": {"fuel": 1_000_000_000, "memory_bytes": 32 << 20, "wall_ms": 60_000, "output_bytes": 100_000},
    })


class Host:
    """A directory with launcher and runner, and a state directory, of one user."""

    def __init__(self, bench, place, state, uid):
        self.bench, self.place, self.state, self.uid = bench, place, state, uid

    def tools(self, action, *words, arguments=None):
        last = [] if arguments is None else ["--", json.dumps(arguments)]
        return self.bench.call("tools", action, *words, "--state", str(self.state), "--launcher", str(self.place / "wp-codebox-launch"), "--json", *last)

    def add(self, tool, module):
        (self.place / "tool.json").write_text(definition(tool, module))
        (self.place / "tool.wasm").write_bytes(module)
        self.tools("add", "--definition", str(self.place / "tool.json"), "--module", str(self.place / "tool.wasm")).expect(0)

    def directory(self, name):
        path = self.place / name
        path.mkdir()
        return path

    def own(self, path):
        """Gives a tree to the user that runs the tools."""
        for item in [path, *path.rglob("*")]:
            os.chown(item, self.uid, self.uid)


@contextlib.contextmanager
def host(environment, bench, user, runner):
    ids = USERS[user]
    with contextlib.ExitStack() as stack:
        caller = bench if ids is None else stack.enter_context(unprivileged_bench(bench, ids))
        uid = os.geteuid() if ids is None else caller.owner
        # Outside of pytest's directories, which other users cannot enter.
        place = pathlib.Path(tempfile.mkdtemp(prefix="codebox-wasi."))
        stack.callback(remove_tree, place)
        place.chmod(0o755)
        shutil.copy(environment["CODEBOX_LAUNCH"], place / "wp-codebox-launch")
        if isinstance(runner, str):
            (place / "wp-codebox-wasi").write_text(runner)
        else:
            shutil.copy(runner, place / "wp-codebox-wasi")
        (place / "wp-codebox-wasi").chmod(0o755)
        state = place / "state"
        state.mkdir(mode=0o700)
        if os.geteuid() == 0:
            owner = environment["CODEBOX_OWNER"] if ids is None else uid
            shutil.chown(state, owner, owner)
        yield Host(caller, place, state, uid)


@pytest.mark.parametrize("user", USERS)
def test_wasi_tool_with_wrapper_launcher_changes_its_directory_only_with_option_write(environment, bench, user):
    with open(os.path.join(os.environ["WASI_MODULES"], "text_replace.wasm"), "rb") as file:
        module = file.read()
    with host(environment, bench, user, pathlib.Path(os.environ["WASI_RUNNER"])) as tools:
        tools.add("text.replace", module)
        directory = tools.directory("plugin")
        (directory / "plugin.php").write_text("<?php\nreturn 1;\n")
        (directory / "private.php").write_text("return 1;\n")
        (directory / "private.php").chmod(0o600)
        tools.own(directory)
        words = ["run", "text.replace", "--dir", str(directory), "--wrapper", "launcher"]
        arguments = {"from": "return 1;", "to": "return 2;"}
        shown = tools.tools(*words, arguments=arguments).expect(0).json
        must(shown["stdout"].endswith("2 replacements\n") and shown["patch"].count("+return 2;") == 2, json.dumps(shown))
        must((directory / "plugin.php").read_text() == "<?php\nreturn 1;\n", "the change was written")
        (audit,) = shown["sandboxAudits"]
        must((audit["kind"], audit["wrapperName"], audit["wrappedCmd"]) == ("launcher", "wp-codebox-launch", "wp-codebox-wasi"), json.dumps(audit))
        must(str(tools.place) not in json.dumps(audit) and "/tmp/" not in json.dumps(audit), "the audit has a host path")
        tools.tools(*words, "--write", arguments=arguments).expect(0)
        for name, mode in (("plugin.php", 0o644), ("private.php", 0o600)):
            status = (directory / name).stat()
            must("return 2;" in (directory / name).read_text(), name)
            must((status.st_uid, status.st_mode & 0o777) == (tools.uid, mode), f"{name}: {status}")
        failed = tools.tools(*words, arguments={}).expect(2).json
        must("the argument from is missing" in failed["stderr"], json.dumps(failed))


def probe(tools, wrapper, port, secret):
    """Runs the native probe as the tool. Returns its reports, and what the host sees afterwards."""
    directory = tools.directory(f"probe-{wrapper}")
    outside = tools.directory(f"outside-{wrapper}")
    subprocess.run(["cc", "-static", "-o", directory / "probe", ROOT / "tests/wasi/probe.c"], check=True)
    (directory / "arguments").write_text(f"{port} {outside}/made {secret}\n")
    tools.own(directory)
    tools.own(outside)
    answer = tools.tools("run", "code.probe", "--dir", str(directory), "--wrapper", wrapper).expect(0).json
    told = dict(line.split(" ", 1) for line in answer["stdout"].splitlines())
    must(len(told) == 6, json.dumps(answer))
    told["outside on the host"] = "yes" if list(outside.iterdir()) else "no"
    told["work in the patch"] = "yes" if "/made" in answer["patch"] else "no"
    must(not (directory / "made").exists(), "the directory itself was written")
    return told


@pytest.mark.parametrize("user", USERS)
def test_native_probe_reaches_a_secret_a_socket_and_files_outside_its_directory_only_without_the_launcher(environment, bench, user):
    with host(environment, bench, user, RUNNER) as tools, socket.create_server(("127.0.0.1", 0)) as listener:
        tools.add("code.probe", MODULE)
        # As root the probe reads the file that only root can read; another user has no such file.
        secret = pathlib.Path("/etc/shadow")
        if tools.uid != 0:
            secret = tools.place / "secret"
            secret.write_text("x")
            secret.chmod(0o600)
            os.chown(secret, tools.uid, tools.uid)
        port = listener.getsockname()[1]
        bare = probe(tools, "none", port, secret)
        must(set(bare.values()) == {"yes"}, f"control: {bare}")
        inside = probe(tools, "launcher", port, secret)
        for what in ("secret", "socket", "outside", "outside on the host"):
            must(inside[what] != "yes", f"{what}: {inside}")
        # Control: the probe can fork and write where the guest allows it.
        for what in ("fork", "work", "work in the patch"):
            must(inside[what] == "yes", f"{what}: {inside}")
