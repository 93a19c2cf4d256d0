"""Starts a socket-activated supervisor with `systemd-socket-activate` instead of a systemd unit."""

import json
import os
import pwd
import shutil
import subprocess
import sys

from .checks import must, skip_unless_root
from .frames import poll_until

# Of the systemd unit (UMask=).
UMASK = 0o077


class Activator:
    """A listening socket that starts the program for each connection, as a systemd socket unit does."""

    def __init__(self, bench, *program, user=None, accept=True, environment=None):
        if not shutil.which("systemd-socket-activate"):
            skip_unless_root("systemd-socket-activate")
        place = os.path.join(bench.directory, "service")
        shutil.rmtree(place, ignore_errors=True)
        os.mkdir(place, 0o755)
        if user:
            shutil.chown(place, user)
        self.address = os.path.join(place, "runner.sock")
        program = program or (bench.environment["CODEBOX"], "supervise")
        # systemd-socket-activate passes only the variables that it is told to.
        passed = [f"--setenv={name}" for name in environment or {}]
        # `setpriv --no-new-privs` has the effect of NoNewPrivileges= in the systemd unit.
        self.process = subprocess.Popen(
            ["systemd-socket-activate", *passed, *(["--accept"] if accept else []), "-l", self.address,
             "setpriv", "--no-new-privs", *program],
            user=user, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={"PATH": "/usr/bin:/bin", **(environment or {})},
            start_new_session=True, umask=UMASK)
        # The socket file exists before listen(); a connection in between gets ECONNREFUSED.
        poll_until(lambda: listens(self.address), bool)
        os.chmod(self.address, 0o777)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)


def listens(path):
    """Whether a unix socket at this path is listening, according to /proc/net/unix."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
        rows = [line.split() for line in table]
    return any(len(row) > 7 and row[7] == path and int(row[3], 16) & 0x10000 for row in rows[1:])


def first_reply(address, frame, user):
    """Sends a frame as this user and returns the first reply."""
    program = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(20)\ns.connect(sys.argv[1])\n"
               "try: s.sendall(sys.stdin.buffer.read())\nexcept BrokenPipeError: pass\nsys.stdout.write(s.makefile().readline())\n")
    rights = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []} if user else {}
    done = subprocess.run([sys.executable, "-c", program, address], input=json.dumps(frame).encode() + b"\n", check=False, capture_output=True,
                          timeout=30, **rights)
    must(done.returncode == 0 and done.stdout, f"{user}: {done}")
    return json.loads(done.stdout)
