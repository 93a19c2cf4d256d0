"""The frame socket of a supervisor, spoken to as the extension does: newline-delimited JSON."""

import json
import os
import secrets
import socket
import subprocess
import time

from .checks import Failed, must

PROTOCOL = 5


def task(goal):
    return {"schema": "wp-codebox/task-input/v1", "version": 1, "goal": goal}


class SupervisorClient:
    """A supervisor and the caller's end of its frame socket."""

    def __init__(self, bench, agent, **changes):
        self.bench = bench
        self.run_id = "run_" + secrets.token_hex(16)
        e = bench.environment
        source = bench.source(f"plugin-{self.run_id[4:12]}")
        self.request = {
            "schema": "wp-codebox/run-request/v1", "run_id": self.run_id, "site": bench.site,
            "paths": {"state_dir": bench.state, "share_dir": e["CODEBOX_SHARE"], "launcher": e["CODEBOX_LAUNCH"],
                      "php_binary": e["CODEBOX_PHP"], "wordpress": e["CODEBOX_WORDPRESS"]},
            "task": task("Run a command"), "agent": {"kind": "command", "argv": ["sh", "-c", agent]}, "limits": {"wall_clock_ms": 60000},
            "mounts": [{"source": source, "target": "/workspace/plugin", "mode": "readwrite"}],
            "provenance": {"requester": "the frames of a test"}, **changes}
        # Further members of the first frame.
        self.first = {}
        self.socket = self.buffer = self.process = None

    def spawn(self, **options):
        """Starts a supervisor as a child of this process."""
        self.socket, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [self.bench.environment["CODEBOX"], "supervise", f"--frames-fd={theirs.fileno()}"], pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={}, **options)
        theirs.close()
        return self.begin()

    def connect(self, address):
        """Meets a supervisor that a socket unit starts."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(address)
        return self.begin()

    def begin(self):
        self.buffer = b""
        self.socket.settimeout(120)
        return self.send({"type": "start", "protocol": PROTOCOL, "request": self.request, **self.first})

    def send(self, frame):
        self.socket.sendall(json.dumps(frame).encode() + b"\n")
        return self

    def frame(self):
        """The next frame, none at the end of the stream."""
        while b"\n" not in self.buffer:
            try:
                piece = self.socket.recv(1 << 20)
            except ConnectionResetError:
                piece = b""
            except TimeoutError:
                raise Failed("no frame for two minutes") from None
            if not piece:
                return None
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def accepted(self):
        frame = self.frame()
        must(frame and frame["type"] == "accepted" and frame["run_id"] == self.run_id, f"not accepted: {frame}")
        return self

    def until(self, kind, text=""):
        """Reads on to an event of this type, or to the last frame."""
        while True:
            frame = self.frame()
            if frame is None or frame["type"] != "event":
                raise Failed(f"no {kind} came: {json.dumps(frame)[:600]}")
            if frame["event"]["type"] == kind and text in json.dumps(frame):
                return frame["event"]

    def last(self):
        while True:
            frame = self.frame()
            if frame is None or frame["type"] != "event":
                return frame

    def close(self):
        self.socket.close()

    @property
    def directory(self):
        return os.path.join(self.bench.state, "sites", self.bench.site, "runs", self.run_id)

    def ended(self, seconds=120):
        """The supervisor's exit, which must come."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"the supervisor did not end within {seconds} s") from None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def look(self, *arguments):
        return runs(self.bench, "get", self.run_id, *arguments).expect(0).json

    def await_end(self, seconds=120):
        """What is known of the run once it has ended."""
        return poll_until(lambda: self.look(), lambda view: view["status"] == "ended", seconds)


def poll_until(look, holds, seconds=120):
    deadline = time.monotonic() + seconds
    while True:
        seen = look()
        if holds(seen):
            return seen
        must(time.monotonic() < deadline, f"not within {seconds} s: {json.dumps(seen, default=str)[:800]}")
        time.sleep(0.05)


def runs(bench, command, *arguments):
    """`wp-codebox runs` for the bench's site, in the words of the extension."""
    form = ["--form", "view"] if command in ("list", "cancel") else []
    return bench.call("runs", command, *form, *arguments, "--state", bench.state, "--site", bench.site, "--json")


def registry(bench, command, *arguments):
    """The same in the words of the run registry."""
    return bench.call("runs", command, *arguments, "--state", bench.state, "--site", bench.site, "--json")
