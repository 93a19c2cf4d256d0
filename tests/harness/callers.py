"""Requests of other users to a runner service that root started, and names that such a user changes while the service works."""

import contextlib
import os
import pwd
import socket
import subprocess
import sys
import tempfile

from .checks import must, skip_unless_root
from .frames import SupervisorClient

FLIPPER = """
import os, sys
link, *targets = sys.argv[1:]
def turn():
    for target in targets:
        os.symlink(target, link + ".new")
        os.rename(link + ".new", link)
turn()
print(flush=True)
while True:
    turn()
"""


def root_only():
    if os.geteuid() != 0:
        skip_unless_root("a service of root with callers of another user")


def setpriv(user):
    return ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--init-groups"]


def give(path, user):
    """Gives a tree to this user; a link itself, not what it leads to."""
    ids = pwd.getpwnam(user)
    subprocess.run(["chown", "-Rh", f"{ids.pw_uid}:{ids.pw_gid}", path], check=True)


def connect_as(address, user):
    """Returns a connection whose peer credentials, as the service reads them, are those of this user."""
    ours, theirs = socket.socketpair()
    program = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
               "socket.send_fds(socket.socket(fileno=0), [b'x'], [s.fileno()])\n")
    subprocess.run([*setpriv(user), sys.executable, "-c", program, address], stdin=theirs, check=True, timeout=60)
    theirs.close()
    _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    return socket.socket(fileno=descriptors[0])


def ask(bench, service, change, user, script="true"):
    """Sends a request as this user, as root if None. Returns the client and all frames of the answer."""
    run = SupervisorClient(bench, script)
    change(run.request)
    if user is None:
        run.connect(service.address)
    else:
        run.socket = connect_as(service.address, user)
        with contextlib.suppress(BrokenPipeError):
            run.begin()
    frames = []
    while (frame := run.frame()) is not None:
        frames.append(frame)
    run.close()
    must(frames, "the service sent no answer")
    return run, frames


def code(frames):
    """Returns the code of the error that ended a request, else the type of its last frame."""
    return frames[-1].get("error", {}).get("code", frames[-1]["type"])


@contextlib.contextmanager
def flipping(link, *targets, user):
    """Keeps a link changing between the targets in a process of this user."""
    process = subprocess.Popen([*setpriv(user), sys.executable, "-c", FLIPPER, link, *targets], stdout=subprocess.PIPE)
    try:
        must(process.stdout.readline() == b"\n", "the flipping process did not start")
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    for path in (link, link + ".new"):
        if os.path.lexists(path):
            os.unlink(path)


class Trap:
    """A program of the caller that writes down the user that executes it."""

    def __init__(self, bench):
        self.place = tempfile.mkdtemp(dir=bench.directory)
        os.chmod(self.place, 0o755)
        self.marks = os.path.join(self.place, "marks")
        os.mkdir(self.marks)
        self.program = os.path.join(self.place, "trap")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec /usr/bin/touch {self.marks}/$(/usr/bin/id -u)-$$\n")
        os.chmod(self.program, 0o755)
        give(self.place, bench.owner)
        os.chmod(self.marks, 0o1777)
        self.link = os.path.join(self.place, "name")

    def users(self):
        return sorted({int(name.split("-")[0]) for name in os.listdir(self.marks)})
