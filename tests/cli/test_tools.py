"""`wp-codebox tools` with a shell script in place of the program that runs WebAssembly; tests/wasi tests that program."""

import hashlib
import json
import os
import shutil
import subprocess

import pytest
from test_usage import on_a_terminal

from harness import must, tree
from harness.reduced import forbid_user_namespaces

MODULE = b"\0asm stands for a module"
#: A runner that prints its input and creates a file in each writable directory.
RUNNER = r"""#!/bin/sh
action=$1; shift
case "$action" in
engine) echo stand-in-1 ;;
compile) cp "$4" "$6" ;;
run)
    while [ $# -gt 0 ]; do
        case "$1:$2" in --dir:*:rw) echo made >"${2%%=*}/made" ;; esac
        shift
    done
    cat
    echo '{"exit":0}' >&2 ;;
esac
"""


def definition(**changes):
    return {
        "schema": "wp-codebox/wasi-tool/v1", "id": "code.make", "version": "1.0.0", "description": "Makes a file. " * 20,
        "parameters": {"type": "object"}, "module": {"sha256": hashlib.sha256(MODULE).hexdigest(), "bytes": len(MODULE)},
        "files": "write", "grants": [], "limits": {"fuel": 1000, "memory_bytes": 65536, "wall_ms": 60_000, "output_bytes": 1000},
        **changes,
    }


class Registry:
    """A state directory with its registry, and a launcher with a runner beside it."""

    def __init__(self, bench, name, runner=RUNNER):
        self.bench = bench
        self.place = os.path.join(bench.directory, name)
        self.state = os.path.join(self.place, "state")
        self.launcher = os.path.join(self.place, "wp-codebox-launch")
        os.mkdir(self.place)
        os.mkdir(self.state, 0o700)
        bench.own(self.state)
        shutil.copy(bench.environment["CODEBOX_LAUNCH"], self.launcher)
        if runner:
            self.file("wp-codebox-wasi", runner)
            os.chmod(os.path.join(self.place, "wp-codebox-wasi"), 0o755)

    def file(self, name, content):
        path = os.path.join(self.place, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    def words(self, action, *words):
        return ["tools", action, "--state", self.state, "--launcher", self.launcher, *words]

    def call(self, action, *words):
        return self.bench.call(*self.words(action, "--json", *words))

    def add(self, document=None, module=MODULE):
        document = definition() if document is None else document
        text = document if isinstance(document, str) else json.dumps(document)
        return ["add", "--definition", self.file("tool.json", text), "--module", self.file("tool.wasm", module)]

    def refused(self, code, exit_code, action, *words):
        """Makes the call with JSON and without, and checks code, sentence and exit status of both."""
        self.call(action, *words).expect(exit_code, code)
        plain = self.bench.call(*self.words(action, *words)).expect(exit_code)
        must(plain.stdout == "" and f"[{code}]" in plain.stderr and "Error: " in plain.stderr, str(plain))
        return plain


@pytest.fixture
def registry(bench, request):
    return Registry(bench, request.node.name)


def test_tools_list_is_empty_at_first_and_shows_an_added_tool_within_80_columns(registry):
    empty = registry.call("list").expect(0).json
    must((empty["success"], empty["total"], empty["tools"]) == (True, 0, []), json.dumps(empty))
    plain = registry.bench.call(*registry.words("list")).expect(0)
    must(plain.stdout == "" and plain.stderr == "no tools are registered\n", str(plain))
    registry.call(*registry.add()).expect(0)
    listed = registry.call("list").expect(0).json
    must([row["id"] for row in listed["tools"]] == ["code.make"], json.dumps(listed))
    lines = on_a_terminal(registry.bench, 80, *registry.words("list"))
    must(len(lines) == 2 and lines[1].startswith("code.make") and max(map(len, lines)) <= 80, str(lines))
    registry.call("remove", "code.make").expect(0)
    must(registry.call("list").json["total"] == 0, "the tool is still registered")


def test_definition_that_is_not_valid_or_names_another_module_is_not_registered(registry):
    for document in ("no JSON", "{}", definition(id="Code"), definition(path="/var/www/html"), definition(module={"sha256": "0", "bytes": 8})):
        registry.refused("wp_codebox_wasi_definition_invalid", 1, *registry.add(document))
    other = hashlib.sha256(b"other").hexdigest()
    registry.refused("wp_codebox_wasi_digest_mismatch", 1, *registry.add(definition(module={"sha256": other, "bytes": len(MODULE)})))
    registry.refused("wp_codebox_wasi_digest_mismatch", 1, *registry.add(module=MODULE + b"x"))
    registry.refused("wp_codebox_input_invalid", 1, "add", "--definition", registry.file("tool.json", "{}"), "--module", "/nonexistent/module")
    must(registry.call("list").json["total"] == 0, "a refused tool is registered")
    # Control: the unchanged definition is registered.
    registry.call(*registry.add()).expect(0)


def test_adding_a_tool_with_a_missing_or_failing_runner_is_an_error(bench, registry):
    without = Registry(bench, "tools-without-a-runner", runner=None)
    refused = without.refused("wp_codebox_wasi_runner_missing", 125, *without.add())
    must("hint: " in refused.stderr and "wp-codebox-wasi" in refused.stderr, str(refused))
    failing = Registry(bench, "tools-with-a-failing-runner", runner=RUNNER.replace('cp "$4" "$6"', "exit 3"))
    failing.refused("wp_codebox_wasi_runner_failed", 125, *failing.add())
    registry.call(*registry.add()).expect(0)


def test_unknown_tool_is_neither_removed_nor_run(registry):
    for action in ("remove", "run"):
        registry.refused("wp_codebox_wasi_tool_unknown", 1, action, "code.make")
        registry.refused("wp_codebox_input_invalid", 1, action, "../x")
    registry.call(*registry.add()).expect(0)
    must(registry.call("run", "code.make").expect(0).json["stdout"] == "{}", "the tool does not run")


def test_tool_arguments_that_are_not_a_json_object_and_option_write_without_dir_are_refused(registry):
    registry.call(*registry.add()).expect(0)
    for arguments in ("no JSON", "[]", "1", '{"a":', "{} {}"):
        registry.refused("wp_codebox_input_invalid", 1, "run", "code.make", "--", arguments)
    registry.call("run", "code.make", "--write").expect(1, "wp_codebox_input_invalid")
    registry.refused("wp_codebox_input_invalid", 1, "run", "code.make", "--dir", "/nonexistent/directory")
    answer = registry.call("run", "code.make", "--", '{"a": "b"}').expect(0).json
    must(json.loads(answer["stdout"]) == {"a": "b"}, json.dumps(answer))


def test_tool_run_with_option_wrapper_launcher_is_refused_without_full_isolation_or_launcher_program(registry):
    registry.call(*registry.add()).expect(0)
    source = registry.bench.source("tools-source")
    before = tree(source)
    words = ["run", "code.make", "--dir", source, "--wrapper", "launcher"]
    shown = registry.call(*words).expect(0).json
    must(shown["sandboxAudits"][0]["kind"] == "launcher" and "+made" in shown["patch"], json.dumps(shown))
    must(tree(source) == before, "the directory was written")

    arguments = registry.words("run", "--json", *words[1:], "--write")
    process = subprocess.Popen([registry.bench.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={"PATH": "/usr/bin:/bin"}, preexec_fn=forbid_user_namespaces)
    registry.bench.finish(arguments, process).expect(125, "wp_codebox_isolation_unavailable")
    must(tree(source) == before, "the tool ran without isolation")

    os.unlink(registry.launcher)
    registry.call(*words, "--write").expect(125, "wp_codebox_config_invalid")
    must(tree(source) == before, "the tool ran without a launcher")
    # Control: without a wrapper, the tool needs no launcher.
    registry.call(*words[:-1], "none", "--write").expect(0)
    must("made" in tree(source), "nothing was written")
