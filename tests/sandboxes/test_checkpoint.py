"""Checkpoint commands save and restore files and database within one run."""

import json
import os
import shutil
import subprocess

from harness import must, tree
from harness.frames import SupervisorClient
from sandbox import CHANGE, HARM


def sh(script):
    return {"command": "command-agent-run", "args": ["command=sh", "args-json=" + json.dumps(["-ec", script])]}


def wp(line):
    return {"command": "wordpress.wp-cli", "args": [f"command={line}"]}


def checkpoint(operation, *args):
    return {"command": f"wp-codebox.checkpoint-{operation}", "args": list(args)}


def commands(bench, *calls, **changes):
    """Runs commands such as `wordpress.wp-cli` in one guest; returns the client and the result."""
    talk = SupervisorClient(bench, "true", task=None, commands=list(calls), **changes)
    talk.request["agent"] = None
    talk.spawn().accepted()
    last = talk.last()
    talk.ended()
    must(last["type"] == "result", f"no result: {json.dumps(last)[:1500]}")
    return talk, last["result"]


def printed(result, number):
    """Returns standard output of the run's command with this index."""
    return result["transcript"]["executions"][number]["stdout"]


def applied(bench, talk, result):
    """Returns a copy of the source with the bundle's patch applied by git."""
    copy = os.path.join(bench.directory, "applied-" + talk.run_id[4:12])
    shutil.copytree(talk.request["mounts"][0]["source"], copy, symlinks=True)
    patch = os.path.join(result["artifacts"]["path"], "files/patch.diff")
    with open(patch, encoding="utf-8") as file:
        text = file.read()
    if text:
        done = subprocess.run(["git", "apply", "--directory=" + os.path.basename(copy), "-p1", patch], cwd=bench.directory, capture_output=True,
                              text=True, check=False)
        must(done.returncode == 0, f"git apply: {done.stderr}\n{text}")
    return copy


def test_checkpoint_restores_files_and_database(bench):
    talk, result = commands(
        bench,
        sh(CHANGE), wp("option update kept before"), wp("post create --post_title=kept --post_status=publish"),
        checkpoint("create", "name=a", 'metadata-json={"why":"test"}'),
        sh(HARM), wp("option update kept after"), wp("post delete 1 --force"),
        checkpoint("restore", "name=a"),
        sh("cat plugin.php lib/b.txt tool.sh link /wordpress/wp-content/uploads-note.txt; ls lib; test ! -e more.txt; test ! -e lib/a.txt; test -x tool.sh"),
        wp("option get kept"), wp("post list --field=post_title"),
        sh("echo later > later.txt; rm link"),
        checkpoint("list"))
    must(result["outcome"] == "succeeded", f"outcome {result['outcome']}: {result.get('error')} {result['transcript']['executions'][-1]}")
    made = json.loads(printed(result, 3))
    must(made["schema"] == "wp-codebox/runtime-checkpoint-result/v1" and made["status"] == "created", f"{made}")
    must(made["checkpoint"]["metadata"] == {"why": "test"}, f"{made}")
    must(printed(result, 8) == "changed\nb\nrun\nchanged\nkept\nb.txt\n", f"the files did not come back: {printed(result, 8)!r}")
    must(printed(result, 9) == "before\n", f"the option did not come back: {printed(result, 9)!r}")
    must(sorted(printed(result, 10).split("\n"))[1:] == ["Hello world!", "kept"], f"posts: {printed(result, 10)!r}")
    must([row["name"] for row in json.loads(printed(result, 12))["checkpoints"]] == ["a"], printed(result, 12))
    copy = applied(bench, talk, result)
    seen = {name: content for name, (_, content) in tree(copy).items()}
    must(seen == {"plugin.php": b"changed\n", "lib": None, "lib/b.txt": b"b\n", "tool.sh": b"run\n", "later.txt": b"later\n"}, f"{seen}")


def test_checkpoint_command_with_an_unknown_or_existing_name_or_invalid_argument_returns_a_failure_document(bench):
    _, result = commands(bench, checkpoint("restore", "name=none"))
    must(result["outcome"] == "failed", f"{result['outcome']}")
    answer = json.loads(printed(result, 0))
    must(answer["schema"] == "wp-codebox/runtime-checkpoint-failure/v1" and answer["status"] == "not-found", f"{answer}")
    _, result = commands(bench, checkpoint("create", "name=a", "snapshot-option-names=home"))
    answer = json.loads(printed(result, 0))
    must(result["outcome"] == "failed" and answer["status"] == "invalid-request", f"{answer}")
    _, result = commands(bench, checkpoint("create", "name=a"), checkpoint("create", "name=a"))
    must(json.loads(printed(result, 0))["status"] == "created", "control")
    must(json.loads(printed(result, 1))["status"] == "invalid-request", printed(result, 1))
