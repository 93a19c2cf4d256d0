"""Temporary users for one case, with or without subordinate ids in /etc/subuid and /etc/subgid."""

import contextlib
import os
import shutil
import subprocess

from .bench import Bench
from .checks import must, skip_unless_root
from .templates import seed_template

PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
NAME = "somebody"
# Set-uid programs that write uid_map and gid_map for a user.
NEWUIDMAP, NEWGIDMAP = "/usr/bin/newuidmap", "/usr/bin/newgidmap"


@contextlib.contextmanager
def temporary_user(uid, ids, directory, covered=""):
    """Yields a command prefix that runs a command as this user, in a mount namespace whose /etc/passwd contains the
    user. `ids`: first subordinate id and count, or None. `covered`: a program replaced by /bin/false there."""
    tables = {"passwd": f"{NAME}:x:{uid}:{uid}::/nonexistent:/bin/sh\n", "group": f"{NAME}:x:{uid}:\n"}
    for name in ("passwd", "group", "subuid", "subgid"):
        text = tables.get(name) or (f"{NAME}:{ids[0]}:{ids[1]}\n" if ids else "")
        if name in tables:
            with open(f"/etc/{name}", encoding="utf-8") as file:
                text = file.read() + text
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o644)
    script = ("for n in passwd group subuid subgid; do [ ! -e /etc/$n ] || mount --bind \"$0/$n\" /etc/$n || exit 1; done; "
              "[ -z \"$1\" ] || mount --bind /bin/false \"$1\" || exit 1; echo ready; exec cat")
    holder = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", script, directory, covered],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=PATH)
    try:
        must(holder.stdout.readline() == b"ready\n", "the mount namespace with the user's /etc/passwd could not be created")
        yield ["/usr/bin/nsenter", "-m", "-t", str(holder.pid), "/usr/bin/setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    finally:
        holder.kill()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()


class UnprivilegedBench(Bench):
    """A bench that runs every command as an unprivileged user."""

    def __init__(self, bench, uid, prefix):
        self.environment, self.site, self.owner, self.prefix = bench.environment, bench.site, uid, prefix
        self.directory = os.path.join(bench.directory, "user")
        self.state = os.path.join(self.directory, "state")
        if not os.path.exists(self.state):
            os.makedirs(self.state, mode=0o700)
            os.chown(self.state, uid, uid)
            seed_template(self.state)

    def own(self, path):
        subprocess.run(["chown", "-Rh", f"{self.owner}:{self.owner}", path], check=True)
        return path

    def start(self, arguments, environment=None):
        return subprocess.Popen([*self.prefix, self.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment if environment is not None else PATH,
                                umask=0o077)


@contextlib.contextmanager
def unprivileged_bench(bench, ids, covered=""):
    """Yields a bench whose commands run as an unprivileged user with these subordinate ids. Later calls reuse the state
    directory of the user."""
    if os.geteuid() != 0:
        skip_unless_root("another user")
    if ids:
        must(os.path.exists(NEWUIDMAP) and os.path.exists(NEWGIDMAP) and os.path.exists("/etc/subuid"), "needs newuidmap and /etc/subuid (package uidmap)")
    uid = 57_000 + os.getpid() % 3000
    tables = os.path.join(bench.directory, "tables")
    shutil.rmtree(tables, ignore_errors=True)
    os.mkdir(tables)
    with temporary_user(uid, ids, tables, covered) as prefix:
        yield UnprivilegedBench(bench, uid, prefix)
