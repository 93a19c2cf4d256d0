"""One message server with nodes, proxies and the submitter `team`, and runs that are sent to it."""

import json
import os
import shutil

from .checks import must, poll_until
from .faults import Proxy
from .nats import Nats
from .nodes import SMALL, Nodes
from .records import Records

#: Seconds after which the server delivers an unanswered message again: longer than a run of these tests, shorter than the 60 s that `cluster setup` sets.
ANSWER_WAIT = 10


class World:
    """A server with queues for these capabilities. `server`: a server to use, not started yet; by default a new one."""

    def __init__(self, bench, environment, capabilities=("default",), server=None):
        self.bench, self.capabilities = bench, capabilities
        self.server = server or Nats(environment["CODEBOX_NATS_SERVER"], "faults")
        self.server.start()
        self.set_up()
        self.nodes = Nodes(environment, self.server.url)
        self.records = Records(self.server)
        self.records.answer_wait(ANSWER_WAIT)
        self.proxies, self.sites, self.directories = [], {}, set()

    def place(self, run, state=None):
        """Returns the directory of the site of a run on the submitting host."""
        return os.path.join(state or self.bench.state, "sites", self.sites.get(run, self.bench.site))

    def set_up(self, *arguments):
        """Creates the streams, or changes bounds."""
        words = [word for name in self.capabilities for word in ("--capability", name)]
        small = [word for option in zip(SMALL[::2], SMALL[1::2]) if option[0] not in arguments for word in option]
        self.bench.call("cluster", "setup", "--nats", self.server.url, "--submitter", "team", *words, *small, *arguments, "--json").expect(0)

    def reconnect(self):
        """Connects the operator again after a new start of the server."""
        self.records.close()
        self.records = Records(self.server)

    def proxy(self, fault=None):
        self.proxies.append(Proxy(self.server, fault))
        return self.proxies[-1]

    def all_hit(self):
        for proxy in self.proxies:
            must(proxy.hit.wait(120), f"no message was {proxy.fault.subject.pattern}")

    def source(self, name):
        """Returns a source directory, which is created by the first call."""
        name = f"source-{name}"
        path = os.path.join(self.bench.directory, name)
        return path if os.path.isdir(path) else self.bench.source(name)

    def submit(self, name, script, *arguments, url=None, state=None, keys=None):
        """Runs a script on the cluster. `name` is the name of its source directory and of a site of its own, because a site has few runs at a time."""
        bench = self.bench
        source, site = self.source(name), f"{bench.site}-{name}"
        answer = bench.call("run", *bench.paths(state), "--site", site, "--json", "--mount", f"{source}:/workspace/plugin", "--agent-command", f"sh -c '{script}'",
                            *self.nodes.placement(url=url, keys=keys), *arguments)
        row = answer.json
        run = row.get("run_id") or (row.get("result") or {}).get("run_id")
        if run:
            self.sites[run] = site
        self.directories.add(os.path.join(state or bench.state, "sites", site))
        return answer

    def detached(self, name, script, *arguments, **options):
        """Starts a run that goes on when the caller ends, and returns its id."""
        return self.submit(name, script, "--detach", *arguments, **options).expect(0).json["run_id"]

    def local(self, run, state=None):
        """Returns the record of the run on the submitting host."""
        with open(os.path.join(self.place(run, state), "runs", run, "run.json"), encoding="utf-8") as file:
            return json.load(file)

    def ended(self, run):
        """Waits until the run has ended on the submitting host."""
        return poll_until(lambda: self.local(run), lambda row: row["status"] == "ended", what=f"{run} has not ended on the submitting host")

    def delivered(self, run):
        """Waits until the submitting host has the bundle of a successful run, and verifies it."""
        row = self.ended(run)
        must(row["outcome"] == "succeeded", json.dumps(row))
        self.verified(run)

    def verified(self, run, state=None):
        bundle = os.path.join(self.place(run, state), "artifacts", run)
        answer = self.bench.call("artifacts", "verify", "--bundle", bundle, "--state", state or self.bench.state, "--json").expect(0)
        must("signed-by-this-host" in answer.stdout, answer.stdout)

    def close(self):
        for proxy in self.proxies:
            proxy.close()
        self.nodes.close()
        self.records.close()
        self.server.close()
        for directory in self.directories:
            shutil.rmtree(directory, ignore_errors=True)
