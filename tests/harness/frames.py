"""Client of a supervisor's frame socket: newline-delimited JSON, as the PHP extension sends it."""

import json
import os
import secrets
import socket
import subprocess

from .checks import Failed, must, poll_until

PROTOCOL = 5


def task(goal):
    return {"schema": "wp-codebox/task-input/v1", "version": 1, "goal": goal}


class SupervisorClient:
    """A supervisor process and the caller's end of its frame socket."""

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
        # Additional members of the `start` frame.
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
        """Connects to a socket unit, which starts a supervisor for the connection."""
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
        """Returns the next frame, None at the end of the stream."""
        while b"\n" not in self.buffer:
            try:
                piece = self.socket.recv(1 << 20)
            except ConnectionResetError:
                piece = b""
            except TimeoutError:
                raise Failed("the supervisor sent no frame for two minutes") from None
            if not piece:
                return None
            self.buffer += piece
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def accepted(self):
        frame = self.frame()
        must(frame and frame["type"] == "accepted" and frame["run_id"] == self.run_id, f"the supervisor did not accept the run: {frame}")
        return self

    def until(self, kind, text=""):
        """Reads frames until an event of this type with this text arrives. Fails when the run's last frame arrives before it."""
        while True:
            frame = self.frame()
            if frame is None or frame["type"] != "event":
                raise Failed(f"no {kind} event arrived: {json.dumps(frame)[:600]}")
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
        """Waits for the supervisor and returns its exit status; kills it and fails after `seconds`."""
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
        """Waits until the run has ended and returns its record."""
        return poll_until(lambda: self.look(), lambda view: view["status"] == "ended", seconds)


def runs(bench, command, *arguments):
    """Calls `wp-codebox runs` for the bench's site. `list` and `cancel` print the documents that PHP gets from the extension."""
    form = ["--form", "view"] if command in ("list", "cancel") else []
    return bench.call("runs", command, *form, *arguments, "--state", bench.state, "--site", bench.site, "--json")


def registry(bench, command, *arguments):
    """Calls `wp-codebox runs` for the bench's site. `list` and `cancel` print their default documents."""
    return bench.call("runs", command, *arguments, "--state", bench.state, "--site", bench.site, "--json")
