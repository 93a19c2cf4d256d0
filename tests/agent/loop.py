"""Helpers for tests of the built-in agent loop: a scripted model server, runs against it, and bundle checks."""

import glob
import itertools
import json
import os
import re
import secrets
import shutil

from scripted import Server, digest

from harness import Bench, Failed, contents, must
from harness.detectors import find_encoded

NEEDED = ("CODEBOX", "CODEBOX_LAUNCH", "CODEBOX_WORDPRESS", "CODEBOX_SHARE", "CODEBOX_STATE", "CODEBOX_PHP", "CODEBOX_OWNER")
#: Environment variable with the model key; the command line contains only this name.
KEY = "SCRIPTED_MODEL_KEY"
MODEL = "scripted-1"
OPENAI, ANTHROPIC = "openai-chat", "anthropic-messages"


def call(tool, **arguments):
    """Returns one turn of the scripted model that calls this tool."""
    return {"calls": [{"tool": tool, "args": arguments}]}


def finish(summary="Done."):
    return call("task.finish", summary=summary)


class Loop(Bench):
    """A bench with a model server. Every run has its own session, key, site and copy of the plugin, so that cases may
    run in parallel."""

    def __init__(self, environment):
        super().__init__(environment)
        self.site = f"agent-test-{os.getpid()}"
        self.server = Server().start()
        self.numbers = itertools.count(1)

    def close(self):
        self.server.close()
        for site in glob.glob(os.path.join(self.state, "sites", self.site + "*")):
            shutil.rmtree(site, ignore_errors=True)
        super().close()

    def source(self, name=None):
        return super().source(name or f"plugin-{next(self.numbers)}")

    def run_arguments(self, *arguments, state=None):
        return ["run", *self.paths(state), "--site", f"{self.site}-{next(self.numbers)}", "--json", *arguments]

    def arguments(self, steps, *more, api=OPENAI, key=None, model=MODEL, source=None, target="/workspace/plugin",
                  goal="Add a line to lib/a.txt.", base=None):
        """Prepares a run whose model plays the steps. Returns arguments, environment, session name and model key."""
        name = f"s{next(self.numbers)}"
        key = key or "sk-test-" + secrets.token_hex(16)
        script = steps if isinstance(steps, dict) else {"turns": steps}
        self.server.add(name, {"key": key, "models": [MODEL], **script})
        source = source or self.source()
        full = self.run_arguments("--mount", f"{source}:{target}", "--goal", goal, "--model", model, "--model-api", api,
                                  "--model-url", base or self.server.base(name, api=api), "--provider", "scripted", "--model-key-env", KEY, *more)
        return full, {"PATH": "/usr/bin:/bin", KEY: key}, name, key

    def play(self, steps, *more, seconds=120, **how):
        """Runs the agent loop to its end. The answer also has the model requests, the session name and the model key."""
        full, environment, name, key = self.arguments(steps, *more, **how)
        return self.known(self.finish(full, self.start(full, environment), seconds), name, key)

    def known(self, answer, name, key):
        answer.session, answer.key = name, key
        answer.requests = self.server.of(name)
        answer.mismatches = [row["mismatch"] for row in answer.requests if row.get("mismatch")]
        return answer

    def good(self, answer, outcome="succeeded", exit_code=0, code=None):
        """Checks outcome and exit status, that the model's script was followed, and that the bundle verifies."""
        must(not answer.mismatches, f"the model requests differ from the script: {answer.mismatches}\n{answer}")
        answer.expect(exit_code, code)
        must(answer.result["outcome"] == outcome, f"expected {outcome}, got {answer.result['outcome']}\n{answer}")
        return self.bundle(answer)

    def bundle(self, answer):
        """Verifies the bundle, checks that the key is in no stored file or output, and returns the directory."""
        path = (answer.json.get("artifacts") or {}).get("directory") or ""
        must(os.path.isfile(os.path.join(path, "manifest.json")), f"no bundle at {path!r}\n{answer}")
        self.call("artifacts", "verify", "--bundle", path, "--state", self.state, "--json").expect(0)
        self.without(answer, answer.key)
        return path

    def without(self, answer, value):
        """Checks that no encoding of a value is in the run's stored files or output."""
        run = re.search(r"run_[0-9a-f]{32}", answer.stdout)
        must(run, f"there is no run\n{answer}")
        kept = glob.glob(os.path.join(self.state, "sites", "*", "*", run[0]))
        places = [place for one in kept for place in contents(one)]
        must(any(name.endswith("manifest.json") for name, _ in places) and any(name.endswith("events.jsonl") for name, _ in places),
             f"the search does not see what is kept: {[name for name, _ in places]}")
        # Reads only the audit logs of sites that have this run: parallel cases create and remove other sites meanwhile.
        audits = {os.path.join(os.path.dirname(os.path.dirname(one)), "audit.jsonl") for one in kept}
        places += [(audit, open_bytes(audit)) for audit in audits if os.path.isfile(audit)]
        places += [("stdout", answer.stdout.encode()), ("stderr", answer.stderr.encode())]
        found = find_encoded(value, places)
        must(not found, f"the key was kept: {found[:8]}")


def open_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def document(bundle, path):
    with open(os.path.join(bundle, path), encoding="utf-8") as file:
        return json.load(file)


def text(bundle, path):
    with open(os.path.join(bundle, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def changed(answer, target="/workspace/plugin"):
    """Returns the paths of the files that the run changed, relative to the mount."""
    return sorted(entry["path"][len(target) + 1:] for entry in answer.result["changed_files"])


def calls(bundle):
    """Returns the rows of the tool call transcript."""
    manifest = document(bundle, "manifest.json")
    found = [row["path"] for row in manifest["files"] if row.get("kind") == "tool-call-transcript"]
    must(found, f"no tool call transcript among {sorted(str(row.get('kind')) for row in manifest['files'])}")
    return document(bundle, found[0])["tool_calls"]


def results(answer, tool=None):
    """Returns tool names and results from the last model request, oldest first."""
    found = []
    names = {}
    for message in answer.requests[-1]["messages"]:
        for made in message.get("calls", []):
            names[made["id"]] = made["name"]
        if message["role"] == "tool":
            found.append((names.get(message["call_id"], "?"), message["text"]))
    return found if tool is None else [said for name, said in found if name == tool.replace(".", "_").replace("-", "_")]


__all__ = ["ANTHROPIC", "Failed", "KEY", "Loop", "MODEL", "NEEDED", "OPENAI", "call", "calls", "changed", "digest", "document", "files", "finish",
           "must", "results", "text"]
