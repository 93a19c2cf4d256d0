"""Creates held sandboxes, which stay open after their setup, and sends them requests."""

import json
import os
import shutil

from harness import live, must, poll_until

PROFILE = """
id: profile.test
version: 1.0.0
extension: native
workspace: {{ mode: mirror, access: rw, target: /workspace/plugin }}
ttl: {{ default: {ttl}, max: 20m, idle_reap: {idle} }}
resources: {{ disk_mb: 128 }}
"""

CHANGE = """
echo changed > plugin.php
rm -rf lib; mkdir lib; echo b > lib/b.txt
echo run > tool.sh; chmod 755 tool.sh
ln -s plugin.php link
rm -rf /tmp/seen; echo kept > /wordpress/wp-content/uploads-note.txt
"""
HARM = """
rm -rf lib link tool.sh
echo harm > plugin.php
echo more > more.txt
rm /wordpress/wp-content/uploads-note.txt
"""


def profile(bench, ttl="10m", idle="null", more=""):
    path = os.path.join(bench.directory, f"profile-{ttl}-{idle}.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PROFILE.format(ttl=ttl, idle=idle) + more)
    return path


def call(bench, command, *arguments):
    """Calls `wp-codebox sandbox <command>` for the bench's site."""
    return bench.call("sandbox", command, *arguments, *bench.paths(), "--site", bench.site, "--actor", "test:suite", "--json")


class Sandbox:
    def __init__(self, bench, source=None, ttl="10m", idle="null", *arguments):
        self.bench = bench
        self.source = source or bench.source("sandbox-plugin")
        if "--profile" not in arguments:
            arguments = ("--profile", profile(bench, ttl, idle), *arguments)
        self.made = made = call(bench, "create", "--source", self.source, *arguments).expect(0).json
        self.id = made["id"]
        must(made["state"] == "ready", f"{made}")

    @classmethod
    def of(cls, bench, run_id):
        """Returns an object for an existing sandbox."""
        box = cls.__new__(cls)
        box.bench, box.id = bench, run_id
        return box

    @property
    def directory(self):
        return os.path.join(self.bench.state, "sites", self.bench.site, "runs", self.id)

    def open_request(self, request, seconds=120):
        """Sends a request; returns the open connection and its line reader."""
        stream = live.send(self.directory, request, "test:socket", seconds)
        return stream, stream.makefile("rb")

    def ask(self, request, seconds=120):
        """Sends a request and returns its final frame."""
        return live.ask(self.directory, request, "test:socket", seconds)

    def command(self, command, *args):
        reply = self.ask({"type": "command", "call": {"command": command, "args": list(args)}})
        must(reply["type"] == "answer" and reply["answer"]["status"] == "ok", f"{command} {args}: {json.dumps(reply)[:1500]}")
        return reply["answer"].get("stdout", "")

    def sh(self, script):
        return self.command("command-agent-run", "command=sh", "args-json=" + json.dumps(["-ec", script]))

    def wp(self, line):
        return self.command("wordpress.wp-cli", f"command={line}")

    def do(self, command, *arguments):
        return call(self.bench, command, self.id, *arguments)

    def snapshot(self, name):
        return self.do("snapshot", "--name", name).expect(0).json

    def end(self):
        """Destroys the sandbox and returns its result."""
        self.do("destroy").expect(0)
        with open(os.path.join(self.directory, "result.json"), encoding="utf-8") as file:
            return json.load(file)

    def supervisor(self):
        """Returns the pid of the process that holds the lock on the lease file."""
        lease = os.stat(os.path.join(self.directory, "lease"))
        whole = f"{os.major(lease.st_dev):02x}:{os.minor(lease.st_dev):02x}:{lease.st_ino}"

        def holder():
            with open("/proc/locks", encoding="ascii") as table:
                rows = [line.split() for line in table]
            held = {row[-3]: int(row[-4]) for row in rows if "->" not in row and row[-3].split(":")[-1] == str(lease.st_ino)}
            # Rows are matched by device and inode. Some file systems show a different device in /proc/locks than in
            # stat; then a single row with this inode is accepted.
            return held.get(whole) or (held.popitem()[1] if len(held) == 1 else None)

        # /proc/locks may omit a row when it changes during the read.
        return poll_until(holder, seconds=20, what="no process holds the lease")


def snapshots(bench):
    return os.path.join(bench.state, "sites", bench.site, "snapshots")


def snapshot_names(bench):
    """Returns the names in the snapshot store, hidden ones included."""
    return sorted(os.listdir(snapshots(bench))) if os.path.isdir(snapshots(bench)) else []


def remove_snapshots(bench):
    shutil.rmtree(snapshots(bench), ignore_errors=True)


def run_processes(run_id):
    """Returns processes whose command line contains the run id."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read()
            except OSError:
                continue
            if run_id.encode() in words:
                found.append((name, words))
    return found
