"""The built-in agent repairs code with a registered WASI tool, and the bundle proves which tool ran and how.

A shell script takes the place of the program that runs WebAssembly; tests/wasi tests that program itself.
"""

import hashlib
import json
import os
import pathlib
import shutil
import tempfile

import pytest
from harness import remove_tree
from loop import Loop, call, calls, changed, document, finish, must, results

TOOL = "code.repair"
MODULE = b"\0asm stands for a module"
DIGEST = hashlib.sha256(MODULE).hexdigest()
#: A runner that repairs plugin.php in each writable directory and prints the tool's arguments.
RUNNER = r"""#!/bin/sh
action=$1; shift
case "$action" in
engine) echo stand-in-1 ;;
compile) cp "$4" "$6" ;;
run)
    while [ $# -gt 0 ]; do
        case "$1:$2" in --dir:*:rw) sed -i 's/return 1;/return 2;/' "${2%%=*}/plugin.php" ;; esac
        shift
    done
    echo "repaired with $(cat)" ;;
esac
"""


def definition():
    return {
        "schema": "wp-codebox/wasi-tool/v1", "id": TOOL, "version": "1.0.0", "description": "Repairs plugin.php.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        "module": {"sha256": DIGEST, "bytes": len(MODULE)}, "files": "write", "grants": [],
        "limits": {"fuel": 1000, "memory_bytes": 65536, "wall_ms": 5000, "output_bytes": 1000},
    }


def policy(*tools):
    rows = [{
        "id": tool, "runtime_tool_id": tool.replace(".", "_"), "execution_location": "sandbox", "transport_visibility": "both", "allowed": True,
        "runtime": {"environment": "runtime_local", "capability_scope": "runtime_local"},
    } for tool in tools]
    return ["--tool-policy", json.dumps({"schema": "wp-codebox/sandbox-tool-policy/v1", "version": 1, "tools": rows, "metadata": {}})]


def recorded(bundle):
    """Returns the paths of the records of WASI tools."""
    return [row["path"] for row in document(bundle, "manifest.json")["files"] if row.get("kind") == "wasi-tools"]


@pytest.fixture(scope="module")
def registered(environment):
    """A loop with its own state directory, in which the tool is registered: in the shared directory every run would be offered the tool."""
    # Outside of pytest's directories, which other users, such as the owner of the state directory, cannot enter.
    place = pathlib.Path(tempfile.mkdtemp(prefix="codebox-wasi."))
    place.chmod(0o755)
    launcher = shutil.copy(environment["CODEBOX_LAUNCH"], place / "wp-codebox-launch")
    (place / "wp-codebox-wasi").write_text(RUNNER)
    (place / "wp-codebox-wasi").chmod(0o755)
    state = place / "state"
    state.mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(state, environment["CODEBOX_OWNER"], environment["CODEBOX_OWNER"])
    loop = Loop({**environment, "CODEBOX_LAUNCH": str(launcher), "CODEBOX_STATE": str(state)})
    (place / "tool.json").write_text(json.dumps(definition()))
    (place / "tool.wasm").write_bytes(MODULE)
    loop.call("tools", "add", "--definition", str(place / "tool.json"), "--module", str(place / "tool.wasm"), "--state", str(state),
              "--launcher", str(launcher), "--json").expect(0)
    yield loop
    loop.close()
    remove_tree(place)


def test_agent_repairs_code_with_a_wasi_tool_and_the_bundle_records_its_digests_and_audit(registered):
    answer = registered.play([call(TOOL, path="plugin.php"), finish("Repaired.")], *policy(TOOL), "--check", "grep -q 'return 2;' plugin.php")
    bundle = registered.good(answer)
    must(results(answer, TOOL) == ['repaired with {"path":"plugin.php"}\n'], str(results(answer)))
    must(changed(answer) == ["plugin.php"], str(changed(answer)))
    (made,) = [row for row in calls(bundle) if row["tool_name"] == TOOL]
    (path,) = recorded(bundle)
    (tool,) = document(bundle, path)["tools"]
    must(made["tool_type"] == "wasi" and made["executions"] == tool["executions"], json.dumps([made, tool]))
    must(made["wasi"] == {name: tool[name] for name in ("definitionSha256", "moduleSha256")}, json.dumps([made, tool]))
    must(tool["moduleSha256"] == DIGEST, json.dumps(tool))
    (audit,) = tool["sandboxAudits"]
    must((audit["kind"], audit["wrappedCmd"]) == ("none", "wp-codebox-wasi"), json.dumps(audit))
    must(audit["wrappedArgs"][-2:] == ["--dir", "/workspace/plugin=/workspace/plugin:rw"], json.dumps(audit))

    # `good` has verified the unchanged bundle; with a changed audit, verification fails.
    audit["wrappedArgs"].pop()
    with open(os.path.join(bundle, path), "w", encoding="utf-8") as file:
        json.dump({"schema": "wp-codebox/wasi-tools/v1", "tools": [tool]}, file)
    refused = registered.call("artifacts", "verify", "--bundle", bundle, "--state", registered.state, "--json").expect(1)
    must(path in refused.stdout, refused.stdout)


def test_wasi_tool_that_the_policy_leaves_out_is_refused_and_does_not_run(registered):
    script = [call(TOOL, path="plugin.php"), finish("Repaired.")]
    answer = registered.play(script, *policy("workspace.read"), "--check", "grep -q 'return 2;' plugin.php")
    bundle = registered.good(answer, "partial", 3, "wp_codebox_check_failed")
    # The run has no tool of this id, so the transcript has the name that the model called.
    (made,) = [row for row in calls(bundle) if row["tool_name"] == TOOL.replace(".", "_")]
    must((made["status"], made["executions"]) == ("denied", []), json.dumps(made))
    must("wp_codebox_tool_not_allowed" in results(answer, TOOL)[0], str(results(answer)))
    must(changed(answer) == [] and not recorded(bundle), str(changed(answer)))
