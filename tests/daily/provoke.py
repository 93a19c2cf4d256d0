"""Prepares what a failing call of `wp-codebox` needs: sources, state directories, documents, runs, one held sandbox."""

import functools
import itertools
import json
import os
import secrets
import shutil
import subprocess

from scripted import Server

from harness import await_count, skip_unless_root
from harness.idmaps import FIRST

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
POLICY = {"network": "deny", "filesystem": "readwrite-mounts", "secrets": "none", "approvals": "never",
          "commands": ["command-agent-run", "wordpress.run-php"]}
#: Environment variable with the key of the scripted model.
KEY = "SCRIPTED_MODEL_KEY"
PROFILE = """
id: profile.codes
version: 1.0.0
extension: native
workspace: { mode: mirror, access: rw, target: /workspace/plugin }
ttl: { default: 10m, max: 20m }
resources: { disk_mb: 64 }
"""


class World:
    """Calls `wp-codebox` on the site of a bench. No two cases share a directory."""

    #: Range of one guest id, which the held sandbox uses.
    one_id = f"{FIRST + 90_000 + os.getpid() % 5000}:1"

    def __init__(self, bench):
        self.bench = bench
        self.numbers = itertools.count(1)
        self.directory = os.path.join(bench.directory, "codes")
        os.mkdir(self.directory, 0o755)
        self.plugin = bench.source("codes-plugin")

    def close(self):
        if "held" in vars(self):
            self.sandbox("destroy", self.held)
        if "server" in vars(self):
            self.server.close()

    # Files and directories.

    def path(self, name):
        """Returns a path that no other case uses."""
        return os.path.join(self.directory, f"{next(self.numbers)}-{name}")

    def file(self, name, content):
        path = self.path(name)
        self.write(path, content if isinstance(content, str) else json.dumps(content))
        return path

    def folder(self, name, mode=0o755):
        path = self.path(name)
        os.mkdir(path)
        self.bench.own(path)
        os.chmod(path, mode)
        return path

    def source(self):
        """Returns a fresh copy of the sample plugin."""
        return self.bench.source(f"codes-{next(self.numbers)}")

    def write(self, path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def state(self):
        """Returns an empty state directory."""
        return self.folder("state", 0o700)

    def private(self, *parts):
        """Creates directories of mode 0700 below a state directory; returns the innermost one."""
        path = parts[0]
        for name in os.path.join(*parts[1:]).split("/"):
            path = os.path.join(path, name)
            if not os.path.isdir(path):
                os.mkdir(path, 0o700)
        self.bench.own(parts[0])
        return path

    @staticmethod
    def namespace(script):
        """Returns a command prefix that runs this shell script in a new mount namespace, and then the call there."""
        root_only("a mount namespace")
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{script} && exec "$0" "$@"']

    # Calls.

    @property
    def place(self):
        return ["--state", self.bench.state, "--site", self.bench.site]

    def start(self, arguments, prefix=(), cwd="/", environment=None):
        return subprocess.Popen([*prefix, self.bench.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, cwd=cwd, env={"PATH": PATH, **(environment or {})})

    def call(self, *arguments, **how):
        return self.bench.finish(arguments, self.start([*arguments, "--json"], **how))

    def sandbox(self, command, *arguments):
        return self.call("sandbox", command, *arguments, *self.bench.paths(), "--site", self.bench.site)

    def run_arguments(self, *arguments, state=None):
        return ["run", *self.bench.paths(state), "--site", self.bench.site, *arguments]

    def run(self, *arguments, state=None, **how):
        """Calls `run` without a mount."""
        return self.call(*self.run_arguments(*arguments, state=state), **how)

    def php(self, *arguments, **how):
        """Runs a PHP command with the sample plugin."""
        return self.run("--mount", f"{self.plugin}:/workspace/plugin", "--command", "wordpress.run-php", "--arg", "code=echo 1;", *arguments, **how)

    def agent_arguments(self, script, *arguments, source=None, state=None):
        mount = f"{source or self.plugin}:/workspace/plugin"
        return self.run_arguments("--mount", mount, "--agent-command", quoted(script), *arguments, state=state)

    def agent(self, script, *arguments, source=None, state=None, **how):
        """Runs a shell script as the agent, with `source` mounted or else the sample plugin."""
        return self.call(*self.agent_arguments(script, *arguments, source=source, state=state), **how)

    def interrupted(self, program, act):
        """Runs a program that waits, calls `act` with the process of the call and the source, and returns the answer and the source."""
        source = self.source()
        arguments = [*self.agent_arguments(f"echo x > x.txt; {program}; true", source=source), "--json"]
        process = self.start(arguments)
        await_count(1, program)
        act(process, source)
        return self.bench.finish(arguments, process), source

    def task(self, verb, document, *arguments):
        """Calls a command that reads a task or a group of tasks as JSON."""
        return self.call(verb, "--input-file", self.file("task.json", document), *self.bench.paths(), "--site", self.bench.site, *arguments)

    def fanout(self, *workers, **fields):
        return self.task("agent-fanout", {"workers": list(workers), **fields})

    def recipe(self, *steps, **sections):
        recipe = {"schema": "wp-codebox/workspace-recipe/v1", "workflow": {"steps": list(steps)}, **sections}
        return self.call("recipe-run", "--recipe", self.file("recipe.json", recipe), *self.bench.paths(), "--site", self.bench.site)

    def cores(self, command, *arguments):
        """Calls the subcommand `wordpress` with an empty cache."""
        return self.call("wordpress", command, *arguments, environment={"WP_CODEBOX_CACHE_DIR": self.folder("cache", 0o700)})

    @staticmethod
    def policy(**changes):
        return ["--policy", json.dumps({**POLICY, **changes})]

    # Models.

    def built_in(self, *arguments, url="http://127.0.0.1:9"):
        """Runs the built-in agent with a model that is never asked."""
        return self.run("--goal", "g", "--model", "m", "--model-url", url, *arguments)

    @functools.cached_property
    def server(self):
        return Server().start()

    def model(self, steps, *arguments, key=None):
        """Runs the built-in agent with the scripted model, which answers with these steps."""
        name, good = f"s{next(self.numbers)}", "sk-test-" + secrets.token_hex(16)
        self.server.add(name, {"key": good, "models": ["scripted-1"], "turns": steps, "after": "repeat"})
        return self.run("--mount", f"{self.plugin}:/workspace/plugin", "--goal", "Add a line.", "--model", "scripted-1",
                        "--model-url", self.server.base(name), "--model-key-env", KEY, *arguments, environment={KEY: key or good})

    # Runs and sandboxes.

    def changed(self, script="echo x > x.txt", source=None):
        """Runs a script that changes the mounted directory; returns run id, mounted directory and bundle directory."""
        source = source or self.source()
        answer = self.agent(script, source=source).expect(0)
        return answer.result["run_id"], source, answer.json["artifacts"]["directory"]

    def apply(self, run, to, *arguments, **how):
        return self.call("apply", run, "--to", to, *self.bench.paths(), "--site", self.bench.site, *arguments, **how)

    @functools.cached_property
    def ended(self):
        """Id of a run that has ended without a change."""
        return self.agent("true").expect(0).result["run_id"]

    def profile(self):
        return self.file("profile.yaml", PROFILE)

    @functools.cached_property
    def held(self):
        """Id of a held sandbox; if root starts it, its guest has the only id of `one_id`."""
        own = ["--identity", "own", "--guest-ids", self.one_id] if os.geteuid() == 0 else []
        made = self.sandbox("create", "--profile", self.profile(), "--source", self.source(), *own).expect(0)
        return made.json["id"]


def root_only(reason):
    if os.geteuid() != 0:
        skip_unless_root(reason)


def quoted(script):
    return "sh -c '" + script.replace("'", "'\\''") + "'"
