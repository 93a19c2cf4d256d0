"""Starts held sandboxes, which stay open after their setup, and sends them requests."""

import array
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import termios
import time

from harness import live, poll_until

SECRET = "correct-horse-battery-staple"


class Bench:
    """Starts held sandboxes and cancels them at the end of the suite."""

    def __init__(self, env):
        self.env = env
        self.runs = []
        self.work = tempfile.mkdtemp(prefix="codebox-live-")
        os.chmod(self.work, 0o755)
        self.mount = os.path.join(self.work, "plugin")
        os.mkdir(self.mount, 0o755)
        with open(os.path.join(self.mount, "a.txt"), "w") as file:
            file.write("first\n")
        self.shared = None

    def close(self):
        for run in self.runs:
            self.call("runs", "cancel", run)
        for run in self.runs:
            self.await_end(run)
        shutil.rmtree(self.work, ignore_errors=True)

    # Command line calls.

    def argv(self, *args):
        """Inserts `--state` before a `--`, because arguments after it belong to the guest program."""
        args = list(args)
        at = args.index("--") if "--" in args else len(args)
        return [self.env["CODEBOX"], *args[:at], "--state", self.env["CODEBOX_STATE"], *args[at:]]

    def call(self, *args, env=None, **more):
        more.setdefault("timeout", 120)
        return subprocess.run(self.argv(*args), capture_output=True, text=True, env=env and {**os.environ, **env}, **more)

    def start(self, *args, hold="90s", env=None):
        """Starts a held sandbox and returns its run id."""
        argv = self.argv(
            "run", "--share", self.env["CODEBOX_SHARE"], "--launcher", self.env["CODEBOX_LAUNCH"],
            "--wordpress", self.env["CODEBOX_WORDPRESS"], "--mount", f"{self.mount}:/workspace/plugin",
            "--hold", hold, "--detach", *args)
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, env=env and {**os.environ, **env})
        assert done.returncode == 0, done
        run = done.stdout.strip()
        self.runs.append(run)
        return run

    def sandbox(self):
        """Returns the run id of the held sandbox that many cases share; starts it at the first call."""
        if self.shared is None:
            # Long enough for all cases on a slow machine.
            self.shared = self.start("--hold-max", "40m", hold="40m")
        return self.shared

    def exec(self, *args, **more):
        more.setdefault("input", "")
        return self.call("exec", *args, **more)

    # Run registry.

    def directory(self, run):
        return os.path.join(self.env["CODEBOX_STATE"], "sites", "cli", "runs", run)

    def events(self, run):
        with open(os.path.join(self.directory(run), "events.jsonl")) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def record(self, run):
        with open(os.path.join(self.directory(run), "run.json")) as file:
            return json.load(file)

    def await_end(self, run, seconds=120):
        return poll_until(lambda: json.loads(self.call("runs", "get", run, "--json").stdout), lambda shown: shown.get("status") == "ended", seconds,
                          f"{run} did not end")

    def supervisor(self, run):
        """Returns the pid of the process that listens on the run's control socket (SO_PEERCRED)."""
        with self.connect(run) as client:
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int.from_bytes(credentials[:4], "little")

    # Direct access to the control socket.

    def connect(self, run):
        return live.connect(self.directory(run), 60)

    def raw(self, run, data, close_writing=True):
        """Sends raw bytes to the control socket and returns everything received until the end."""
        with self.connect(run) as client:
            try:
                client.sendall(data)
                if close_writing:
                    client.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return read_all(client)

    def ask(self, run, request, actor="test"):
        return live.ask(self.directory(run), request, actor, 60)


def read_all(client):
    pieces = []
    while True:
        try:
            piece = client.recv(65536)
        except ConnectionResetError:
            break
        if not piece:
            break
        pieces.append(piece)
    return b"".join(pieces)


def unread(fd):
    """Returns the unread bytes of a pipe or socket (FIONREAD)."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


def is_full(reader):
    """Whether a socket's number of unread bytes has stopped growing, i.e. its writer is blocked."""
    seen = []
    for _ in range(5):
        seen.append(unread(reader))
        # No interface shows the reader that the writer is blocked.
        time.sleep(0.1)
    return seen[0] > 0 and len(set(seen)) == 1


def sleep(seconds):
    """Returns a `sleep` command line that is unique to this process, because suites run side by side."""
    return f"sleep {seconds}.{os.getpid()}"


def guest_processes(pattern):
    """Returns host processes whose command line contains the pattern."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if pattern in line and "exec" not in line.split(" ")[1:2]:
            found.append(int(pid))
    return found


def kill(pid, number=signal.SIGKILL):
    os.kill(pid, number)


def open_exec(bench, run, *args):
    pipe = subprocess.PIPE
    return subprocess.Popen(bench.argv("exec", run, *args), stdin=pipe, stdout=pipe, stderr=pipe, text=True)
