"""Helpers for tests of agent programs: a model key, a scripted model server, and runs that use them."""

import concurrent.futures
import hashlib
import os
import secrets

import install
from harness import Bench, must
from scripted import Server


class AgentBench(Bench):
    """A bench whose runs use a scripted model. The model key is random, so a search for it finds only leaks."""

    def __init__(self, environment):
        super().__init__(environment)
        self.key = "sk-real-" + secrets.token_hex(20)
        self.server = Server({}, key=self.key).start()
        self.agents = os.path.join(os.path.dirname(self.state.rstrip("/")), "agents")
        self.sessions = 0
        self.installing = {}

    def close(self):
        self.server.close()
        super().close()

    def begin_installing(self, names):
        """Starts to install these agent programs in the background."""
        pool = concurrent.futures.ThreadPoolExecutor(2)
        self.installing = {name: pool.submit(install.ensure, name, self.agents) for name in names}
        pool.shutdown(wait=False)

    def install(self, name):
        if name in self.installing:
            return self.installing[name].result()
        return install.ensure(name, self.agents)

    def script(self, step):
        """Adds a session to the model server in which `step(asked)` answers every request; returns its name."""
        self.sessions += 1
        name = f"case-{self.sessions}"
        self.server.add(name, {"turns": [step], "after": "repeat"})
        return name

    def asked(self, name):
        """Returns the model requests that the server received in a session."""
        return self.server.of(name)

    def model(self, name, api="openai-chat"):
        return ["--model", "scripted-1", "--model-url", self.server.base(name, api=api), "--model-api", api,
                "--model-key-env", "OPENAI_API_KEY"]

    def in_project(self, directory, goal, *arguments):
        """Runs `wp-codebox GOAL` in a directory, with the key in its environment."""
        environment = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": self.key}
        return self.headline(directory, goal, "--agents-dir", self.agents, *arguments, environment=environment)

    def ask(self, *arguments, agents=None):
        """Runs `wp-codebox run` with the key in its environment and the agents directory `agents`."""
        environment = {"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": self.key}
        return self.call(*self.run_arguments("--agents-dir", agents or self.agents, *arguments), environment=environment)

    def plugin(self):
        """Creates a plugin whose function `sums_add()` subtracts; returns its path."""
        path = self.source("sums")
        with open(os.path.join(path, "plugin.php"), "w", encoding="utf-8") as file:
            file.write("<?php\n/* Plugin Name: Sums */\nfunction sums_add( $a, $b ) {\n\treturn $a - $b;\n}\n")
        return self.own(path)

    def check_key_arrived(self, rows):
        """Checks that every model request carried the real key and not the placeholder that the guest has."""
        wanted = hashlib.sha256(self.key.encode()).hexdigest()
        must(rows, "the model was not asked")
        for row in rows:
            must(row["key_sha256"] == wanted, f"another key, or none, arrived: {row['method']} {row['path']}")

    def check_key_not_stored(self, answer):
        """Checks that the model key is in no file of the site's state or of the test, and not in the output."""
        must(self.key not in answer.stdout + answer.stderr, "the key is in what the command said")
        searched = 0
        for root in (os.path.join(self.state, "sites", self.site), self.directory):
            for directory, _, files in os.walk(root):
                for name in files:
                    path = os.path.join(directory, name)
                    if os.path.islink(path) or not os.path.isfile(path):
                        continue
                    searched += 1
                    with open(path, "rb") as file:
                        must(self.key.encode() not in file.read(), f"the key is in {path}")
        must(searched > 10, f"only {searched} files were searched")
