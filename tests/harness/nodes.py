"""Nodes of a cluster: `wp-codebox node` processes with directories of their own, and runs that are sent to them."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

from .checks import must, poll_until, remove_tree

SMALL = ("--task-space", "16", "--record-space", "16", "--object-space", "512", "--object-size", "256")


class Node:
    """One node. `prefix` are words before its command line, such as those of a network namespace."""

    def __init__(self, nodes, name, options=(), prefix=(), url=None):
        self.nodes, self.name, self.options, self.prefix, self.url = nodes, name, options, prefix, url
        self.directory = os.path.join(nodes.directory, name)
        self.state = nodes.own(os.path.join(self.directory, "state"))
        self.layers = nodes.own(os.path.join(self.directory, "layers"))
        self.log = os.path.join(self.directory, "events.jsonl")
        self.process, self.key, self.starts = None, None, 0

    def start(self):
        """Starts the process and waits until it has joined; it keeps its directories."""
        return self.spawn().joined()

    def argv(self):
        return [*self.prefix, self.nodes.environment["CODEBOX"], "node", "--name", self.name, *self.nodes.server(self.url), "--state", self.state,
                "--layers", self.layers, "--launcher", self.nodes.environment["CODEBOX_LAUNCH"], "--share", self.nodes.environment["CODEBOX_SHARE"],
                "--php", self.nodes.environment["CODEBOX_PHP"], "--json", *self.options]

    def spawn(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.starts += 1
        return self

    def joined(self):
        poll_until(lambda: self.process.poll() is not None or len(self.events("joined")) == self.starts, seconds=60, what=f"{self.name} has not joined")
        must(self.process.poll() is None, f"{self.name} ended: {self.text()}")
        self.key = self.events("joined")[-1]["key"]
        return self

    def learn_key(self):
        """Starts and stops the process, so that runs can list the node before it serves them."""
        self.start()
        must(self.drain() == 0, f"{self.name} did not stop: {self.text()}")
        return self

    def like(self, other, submitter="team"):
        """Copies template and layers of the node `other`, which has run a task of `team`, so that this node need not create its own."""
        shares = os.stat(other.state).st_dev == os.stat(self.state).st_dev
        # A built template never changes, so hard links to its files suffice on the same file system.
        form = "-al" if shares else "-a"
        subprocess.run(["cp", form, f"{other.state}/templates", self.state], check=True)
        if shares and submitter == "team":
            # Several processes may use one directory of layers.
            self.layers = other.layers
            return self
        subprocess.run(["cp", form, f"{other.layers}/team", f"{self.layers}/{submitter}"], check=True)
        return self

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-3000:]

    def events(self, kind=None):
        """Returns what the node said, oldest first."""
        rows = []
        with open(self.log, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("{") and line.endswith("\n"):
                    rows.append(json.loads(line))
        return [row for row in rows if kind in (None, row.get("event"))]

    def kill(self):
        """Kills the process; its supervisors notice that and end their guests."""
        self.process.kill()
        self.process.wait()

    def drain(self, seconds=120):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)


class Nodes:
    """The nodes of one message server, and the options with which a run is sent to them."""

    def __init__(self, environment, url, ca=None):
        self.environment, self.url, self.ca, self.nodes = environment, url, ca, {}
        # Outside of pytest's directories, whose mode 0700 keeps out the user that owns the state directories.
        self.directory = tempfile.mkdtemp(prefix="codebox-nodes.")
        os.chmod(self.directory, 0o755)

    def own(self, path):
        os.makedirs(path, mode=0o700)
        os.chmod(os.path.dirname(path), 0o755)
        if os.geteuid() == 0:
            shutil.chown(path, self.environment["CODEBOX_OWNER"], self.environment["CODEBOX_OWNER"])
        return path

    def server(self, url=None):
        return [word for one in (url or self.url).split(",") for word in ("--nats", one)] + (["--nats-ca", self.ca] if self.ca else [])

    def make(self, name, *options, prefix=(), url=None):
        """Returns a node that has not started. `url`: address at which only this node reaches the server, such as that of a proxy."""
        node = self.nodes[name] = Node(self, name, options, prefix, url)
        return node

    def add(self, name, *options, prefix=()):
        return self.make(name, *options, prefix=prefix).start()

    def placement(self, submitter="team", keys=None, url=None):
        """Options of a command that sends its runs to the cluster."""
        keys = keys or {name: node.key for name, node in self.nodes.items()}
        return ["--placement", "cluster", *self.server(url), "--submitter", submitter, *(f"--node-key={name}={key}" for name, key in keys.items())]

    def close(self):
        for node in self.nodes.values():
            if node.process and node.process.poll() is None:
                node.kill()
        remove_tree(self.directory)
