"""Registered WASI tools with the real runner: `wp-codebox tools` in each wrapper, and a repair by the built-in agent.

`tests/wasi/run` starts this file, with WASI_RUNNER and WASI_MODULES in the environment.
"""

import hashlib
import json
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "agent"))

from harness import remove_tree
from loop import Loop, call, calls, changed, document, finish, must, results

REPLACE, BEFORE, AFTER = "text.replace", "<?php\nreturn 1;\n", "<?php\nreturn 2;\n"


class Registered(Loop):
    """A loop that also calls `wp-codebox tools`."""

    def tools(self, action, *words, arguments=None):
        last = [] if arguments is None else ["--", json.dumps(arguments)]
        return self.call("tools", action, *words, *self.common, "--json", *last)


@pytest.fixture(scope="module")
def registered(environment):
    """A loop with a state directory of its own, in which text.replace is registered."""
    # Outside of pytest's directories, which other users, such as the owner of the state directory, cannot enter.
    place = pathlib.Path(tempfile.mkdtemp(prefix="codebox-wasi."))
    place.chmod(0o755)
    launcher = shutil.copy(environment["CODEBOX_LAUNCH"], place / "wp-codebox-launch")
    shutil.copy(os.environ["WASI_RUNNER"], place / "wp-codebox-wasi")
    state = place / "state"
    state.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(state, environment["CODEBOX_OWNER"], environment["CODEBOX_OWNER"])
    loop = Registered({**environment, "CODEBOX_LAUNCH": str(launcher), "CODEBOX_STATE": str(state)})
    loop.place, loop.common = place, ["--state", str(state), "--launcher", str(launcher)]
    with open(os.path.join(os.environ["WASI_MODULES"], "text_replace.wasm"), "rb") as file:
        module = file.read()
    loop.digest = hashlib.sha256(module).hexdigest()
    (place / "tool.wasm").write_bytes(module)
    (place / "tool.json").write_text(json.dumps({
        "schema": "wp-codebox/wasi-tool/v1", "id": REPLACE, "version": "1.0.0", "description": "Replaces a text in every file below a directory.",
        "parameters": {"type": "object", "properties": {name: {"type": "string"} for name in ("from", "to", "path")}},
        "module": {"sha256": loop.digest, "bytes": len(module)}, "files": "write", "grants": [],
        "limits": {"fuel": 1_000_000_000, "memory_bytes": 32 << 20, "wall_ms": 60_000, "output_bytes": 100_000},
    }))
    loop.tools("add", "--definition", str(place / "tool.json"), "--module", str(place / "tool.wasm")).expect(0)
    yield loop
    loop.close()
    remove_tree(place)


@pytest.mark.parametrize("wrapper", ["none", "bubblewrap", "gvisor", "launcher"])
def test_tools_run_shows_the_change_and_writes_it_only_with_option_write(registered, wrapper):
    directory = registered.place / f"plugin-{wrapper}"
    directory.mkdir()
    (directory / "plugin.php").write_text(BEFORE)
    words = ["run", REPLACE, "--dir", str(directory), "--wrapper", wrapper]
    arguments = {"from": "return 1;", "to": "return 2;"}
    shown = registered.tools(*words, arguments=arguments).expect(0).json
    must(shown["exitCode"] == 0 and shown["stdout"] == "/work/plugin.php: 1\n1 replacements\n" and shown["stderr"] == "", json.dumps(shown))
    must("+return 2;" in shown["patch"] and not shown["written"], json.dumps(shown))
    must((directory / "plugin.php").read_text() == BEFORE, "the change was written")
    (audit,) = shown["sandboxAudits"]
    must(audit["kind"] == wrapper, json.dumps(audit))
    must(str(registered.place) not in json.dumps(audit), "the audit has a host path")
    written = registered.tools(*words, "--write", arguments=arguments).expect(0).json
    must(written["written"] and (directory / "plugin.php").read_text() == AFTER, json.dumps(written))
    # Exit status 2 is that of the tool itself, not one of the wrapper.
    failed = registered.tools(*words, arguments={}).expect(2).json
    must("the argument from is missing" in failed["stderr"], json.dumps(failed))


def test_agent_repairs_code_with_a_real_module_and_the_bundle_verifies(registered):
    source = registered.source()
    with open(os.path.join(source, "plugin.php"), "w", encoding="utf-8") as file:
        file.write(BEFORE)
    made = call(REPLACE, path="/workspace/plugin", **{"from": "return 1;", "to": "return 2;"})
    answer = registered.play([made, finish("Repaired.")], "--check", "grep -q 'return 2;' plugin.php", source=source)
    bundle = registered.good(answer)
    must(results(answer, REPLACE) == ["/workspace/plugin/plugin.php: 1\n1 replacements\n"], str(results(answer)))
    must(changed(answer) == ["plugin.php"], str(changed(answer)))
    (row,) = [row for row in calls(bundle) if row["tool_name"] == REPLACE]
    must(row["wasi"]["moduleSha256"] == registered.digest, json.dumps(row))
    (path,) = [row["path"] for row in document(bundle, "manifest.json")["files"] if row.get("kind") == "wasi-tools"]
    (tool,) = document(bundle, path)["tools"]
    must(tool["executions"] == row["executions"] and len(tool["sandboxAudits"]) == 1, json.dumps(tool))
