"""Programs, users and directories of this suite, and how each mode starts runs.

The attacks exhaust resources of users that exist only for one call of the suite, so the host's
own users and other suites' state directories are unaffected.
"""

import contextlib
import glob
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from vectors import IDENTITY_OF_ITS_OWN

from harness import Failed, must, poll_until
from harness.frames import SupervisorClient
from harness.reduced import POLICY, forbid_user_namespaces
from harness.service import Activator
from harness.users import temporary_user

HERE = os.path.dirname(os.path.abspath(__file__))
# Programs of this suite, which each guest can start.
PROGRAMS = ("neighbour", "allocate")
PATH = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
GUEST_IDS = "1800000000:64"
SUBORDINATE = (1810000000, 64)
# Open file limit of the web server neighbour: above the guest's own limit, below that of many servers.
FILES_OF_THE_SERVER = 2048
# Bytes of kernel memory per epoll watch: an item and its entry in the wait queue.
WATCH = 208
# Timeout in seconds of calls that normally take a fraction of a second; a disturbed neighbour may hang.
TIMEOUT_SECONDS = 30
# Modes whose caller is an unprivileged user, with and without a range in /etc/subuid.
AS_USER = ("subuid", "alone")
# Epoll watches of the suite's user that reserve() leaves for the attack.
WATCHES_LEFT = 1000000
PROFILE = """id: profile.neighbours
version: 1.0.0
extension: native
isolation: {{ level: {level} }}
workspace: {{ mode: mirror, access: rw, target: /workspace/attack }}
ttl: {{ default: 10m, max: 10m, idle_reap: null }}
"""


def owner(path):
    """Returns the uid of a /proc entry, None when the process has ended."""
    with contextlib.suppress(OSError):
        return os.stat(path).st_uid
    return None


class World:
    def __init__(self, environment):
        self.environment = environment
        self.directory = tempfile.mkdtemp(prefix="codebox-neighbours.")
        # At level `reduced` each run copies thousands of files: into memory if programs may be executed in /dev/shm.
        in_memory = subprocess.run(["findmnt", "-n", "-o", "OPTIONS", "-T", "/dev/shm"], capture_output=True, text=True, check=False).stdout
        self.quick = tempfile.mkdtemp(prefix="codebox-neighbours.", dir="/dev/shm") if in_memory and "noexec" not in in_memory else self.directory
        for path in (self.directory, self.quick):
            os.chmod(path, 0o755)
        self.template = None
        # A uid that no host user and no other call of this suite has.
        self.uid = 61000 + os.getpid() % 3000
        users = {uid for uid in map(owner, glob.glob("/proc/[0-9]*")) if uid is not None}
        must(self.uid not in users, f"processes of the user {self.uid} are alive")
        self.program = os.path.join(self.directory, "neighbour")
        for name in PROGRAMS:
            subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-static", "-o", os.path.join(self.directory, name), os.path.join(HERE, f"{name}.c")],
                           check=True)
        self.cap, self.stack = WATCHES_LEFT * 6 // 5, contextlib.ExitStack()
        self.knows_identity = "--identity" in subprocess.run([environment["CODEBOX"], "run", "--help"], capture_output=True, text=True,
                                                             check=True).stdout

    def reserve(self):
        """Takes most of the user's epoll watches, so that an attack exhausts the rest in a second instead of ten."""
        with open("/proc/sys/fs/epoll/max_user_watches", encoding="ascii") as file:
            surplus = int(file.read()) - WATCHES_LEFT
        holder = self.outside(self.uid, "attack", "epoll", "1000", str(surplus), cwd=self.directory)
        self.stack.callback(ended, holder)
        line = line_of(holder, "reached|full", 60)
        must(line and line.startswith("reached"), f"the reserve came to this: {line}")

    def close(self):
        self.stack.close()
        for path in (self.directory, self.quick):
            shutil.rmtree(path, ignore_errors=True)

    def fresh(self, name, uid, mode=0o755):
        path = os.path.join(self.directory, name)
        os.mkdir(path, mode)
        os.chown(path, uid, uid)
        return path

    def put(self, path, content, uid):
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, 0o755)
        os.chown(path, uid, uid)

    def outside(self, uid, *words, **options):
        """Starts the attack program outside any sandbox as this user."""
        return subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", self.program, *words],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=PATH, **options)

    def probe(self, uid, attack, *words, cwd=None):
        done = self.outside(uid, "probe", attack, *words, cwd=cwd or self.directory)
        try:
            return done.communicate(timeout=TIMEOUT_SECONDS)[0].strip()
        finally:
            done.kill()


def line_of(process, pattern, seconds):
    """Returns the first output line that matches, None after `seconds`."""
    end = time.monotonic() + seconds
    text = b""
    while (left := end - time.monotonic()) > 0 and select.select([process.stdout], [], [], left)[0]:
        piece = os.read(process.stdout.fileno(), 4096)
        text += piece
        for line in text.decode(errors="replace").splitlines():
            if re.match(pattern, line):
                return line
        if not piece:
            break
    return None


def ended(process):
    """Kills a child process and waits until it has ended."""
    process.kill()
    process.wait(60)
    if process.stdout:
        process.stdout.close()


class Site:
    """The attributes of a bench that `frames.SupervisorClient` uses, for one site of a mode."""

    def __init__(self, mode, site):
        self.environment, self.state, self.site = mode.world.environment, mode.state, site
        self.mount = mode.mount

    def source(self, _name):
        return self.mount


class Mode:
    """One way to start runs: by root, through a socket-activated service, or by a user; the guest has its own kernel uid or shares one."""

    def __init__(self, world, name):
        self.world, self.name = world, name
        self.uid = world.uid
        self.base = world.fresh(name, self.uid)
        self.state = self.state_directory()
        self.mount = world.fresh(f"{name}/mount", self.uid)
        self.live = world.fresh(f"{name}/live", self.uid)
        for name in PROGRAMS:
            with open(os.path.join(world.directory, name), "rb") as file:
                world.put(f"{self.mount}/{name}", file.read(), self.uid)
        for number in range(5):
            world.put(f"{self.live}/part-{number}.php", b"<?php return 1;\n", self.uid)
        self.stack = contextlib.ExitStack()
        self.prefix, self.options, self.activator, self.number = [], [], None, 0

    def state_directory(self):
        """Returns the mode's state directory; creates it at the first call. Modes share one directory, except level reduced
        and the modes of an unprivileged user. A new directory gets a copy of the template if it exists already."""
        name = f"state-{self.name}" if self.name in ("reduced", *AS_USER) else "state"
        path = os.path.join(self.world.quick if self.name == "reduced" else self.world.directory, name)
        if not os.path.exists(path):
            path = self.world.fresh(path, self.uid, 0o700)
            if self.world.template:
                shutil.copytree(self.world.template, f"{path}/templates", symlinks=True)
                subprocess.run(["chown", "-Rh", f"{self.uid}:{self.uid}", path], check=True)
        return path

    def __enter__(self):
        try:
            return self.open()
        except BaseException:
            self.__exit__()
            raise

    def open(self):
        world = self.world
        if self.name in ("own", "shared", "reduced") and world.knows_identity:
            self.options = ["--identity", "own" if self.name == "own" else "shared", *(["--guest-ids", GUEST_IDS] if self.name == "own" else [])]
        if self.name in AS_USER:
            ids = SUBORDINATE if self.name == "subuid" else None
            self.prefix = self.stack.enter_context(temporary_user(self.uid, ids, self.base))
        if self.name == "socket":
            # As in the unit, the process starts as root; systemd-socket-activate passes an empty environment.
            self.activator = self.stack.enter_context(Activator(
                Service(world, self), "env", f"WP_CODEBOX_GUEST_IDS={GUEST_IDS}", world.environment["CODEBOX"], "supervise"))
        self.server = self.serve()
        self.held = self.hold("other")
        world.template = world.template or f"{self.state}/templates"
        return self

    def __exit__(self, *_):
        for path in glob.glob(f"{self.state}/sites/*/active/*"):
            self.cancel(path.split("/")[-3], os.path.basename(path))
        self.settle(30)
        self.stack.close()
        # A mode may be used again.
        shutil.rmtree(self.base, ignore_errors=True)

    def serve(self):
        """Starts the web server and returns its port."""
        server = self.world.outside(self.uid, "serve", cwd=self.world.directory,
                                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES_OF_THE_SERVER,) * 2))
        self.stack.callback(ended, server)
        return int(line_of(server, r"\d+", TIMEOUT_SECONDS) or must(False, "the web server did not start"))

    # The command line.

    def limits(self):
        """Returns memory and disk limits of an attacker in MiB. With a shared uid, the kernel memory limit is reached long
        before the watches run out: a fast processor makes a quarter of them between two polls of the supervisor. The
        cgroup limit of memory plus disk is not reached."""
        shares = (20, 5) if self.name in IDENTITY_OF_ITS_OWN else (4, 9)
        return tuple((WATCHES_LEFT * WATCH >> 20) * share // 10 for share in shares)

    def paths(self):
        e = self.world.environment
        return ["--wordpress", e["CODEBOX_WORDPRESS"], "--state", self.state, "--share", e["CODEBOX_SHARE"], "--launcher", e["CODEBOX_LAUNCH"],
                "--php", e["CODEBOX_PHP"]]

    def start(self, *words):
        return subprocess.Popen([*self.prefix, self.world.environment["CODEBOX"], *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, env=PATH, cwd=self.base, preexec_fn=self.prepare)

    def prepare(self):
        """Runs in the child: sets the soft limit on open files that logins and services have, whatever this suite's own limit is."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        if self.name == "reduced":
            forbid_user_namespaces()

    def call(self, *words, seconds=TIMEOUT_SECONDS):
        """Returns the output of a call that must succeed within `seconds`."""
        process = self.start(*words)
        try:
            text = process.communicate(timeout=seconds)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            raise Failed(f"did not end within {seconds} s: {' '.join(words[:2])}") from None
        finally:
            ended(process)
        must(process.returncode == 0, f"exit {process.returncode} of {' '.join(words[:2])}: {text.strip()[-300:]}")
        return text

    def run_words(self, site, command, *more):
        reduced = ["--policy", json.dumps(POLICY)] if self.name == "reduced" else []
        return ["run", *self.paths(), "--site", site, *self.options, "--mount", f"{self.mount}:/workspace/attack",
                "--mount", f"{self.live}:/workspace/live:readonly", *reduced, *more, "--agent-command", command]

    def converse(self, site, command, **changes):
        """Runs a command through the socket as the state's owner."""
        run = SupervisorClient(Site(self, site), command)
        run.request.update({"agent": {"kind": "command", "argv": command.split()}, **changes})
        run.request["mounts"] = [{"source": self.mount, "target": "/workspace/attack", "mode": "readwrite"},
                                 {"source": self.live, "target": "/workspace/live", "mode": "readonly"}]
        os.setegid(self.uid)
        os.seteuid(self.uid)
        try:
            run.connect(self.activator.address)
        finally:
            os.seteuid(0)
            os.setegid(0)
        run.socket.settimeout(30)
        return run.accepted()

    # Actions of neighbours; each raises Failed when it is refused.

    def hold(self, site):
        """Starts a held sandbox and returns its id."""
        if self.activator:
            run = self.converse(site, "true", mode="detached", hold={"ttl_ms": 600000, "max_ttl_ms": 600000})
            run.close()
            poll_until(lambda: glob.glob(f"{self.state}/sites/{site}/runs/{run.run_id}/held.json"), seconds=60, what="the sandbox was not held")
            return run.run_id
        profile = f"{self.base}/profile.yaml"
        with open(profile, "w", encoding="utf-8") as file:
            file.write(PROFILE.format(level="reduced" if self.name == "reduced" else "full"))
        os.chmod(profile, 0o644)
        return json.loads(self.call("sandbox", "create", *self.paths(), *self.options, "--profile", profile, "--source", self.mount, "--site",
                                    site, "--json", seconds=60))["id"]

    def exec(self, word="true"):
        return self.call("exec", "--state", self.state, "--site", "other", self.held, "--", "/bin/echo", word)

    @property
    def gone(self):
        """Whether an earlier attack has ended the held sandbox."""
        return not glob.glob(f"{self.state}/sites/other/active/{self.held}")

    def new_run(self, *more, seconds=TIMEOUT_SECONDS):
        command = "cat /workspace/live/part-0.php"
        if not self.activator:
            return self.call(*self.run_words("third", command, *more), seconds=seconds)
        run = self.converse("third", command)
        try:
            run.socket.settimeout(seconds)
            last = run.last()
        finally:
            run.close()
        must(last and last["type"] == "result" and last["result"]["outcome"] in ("succeeded", "no_op"), f"through the socket: {json.dumps(last)[:300]}")
        return json.dumps(last)

    def web(self):
        with socket.create_connection(("127.0.0.1", self.server), TIMEOUT_SECONDS) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b""
            while piece := client.recv(4096):
                answer += piece
        must(b"200 OK" in answer, "the web server lacks " + answer.decode().strip().split("\n")[-1])

    def follow(self):
        """Checks that a client that starts to follow the events of a held sandbox after the attack receives an event."""
        word = f"word-{time.monotonic_ns()}"
        follower = self.start("runs", "events", self.held, "--state", self.state, "--site", "other", "--follow", "--json")
        try:
            self.exec(word)
            must(line_of(follower, f".*{word}", TIMEOUT_SECONDS), "the follower ended or did not print the event")
        finally:
            ended(follower)

    def host(self):
        for number in range(5):
            answer = self.world.probe(0, "locks", f"{self.live}/part-{number}.php")
            must(answer == "ok", f"a host program's open and lock of a live plugin file: {answer}")

    def sync(self):
        with open(f"{self.base}/own", "wb") as file:
            file.write(os.urandom(4096))
            file.flush()
            os.fsync(file.fileno())

    # Cleanup.

    def cancel(self, site, run):
        with contextlib.suppress(Failed):
            self.call("runs", "cancel", run, "--state", self.state, "--site", site, seconds=20)

    def unsettled(self, site="*"):
        return glob.glob(f"{self.state}/sites/{site}/active/*")

    def settle(self, seconds, site="*"):
        """Waits until no run of the site is alive; kills the holders of the remaining leases."""
        try:
            poll_until(lambda: self.unsettled(site), lambda left: not left, seconds)
            return True
        except Failed:
            for path in self.unsettled(site):
                kill_supervisor(path)
            return False


class Service:
    """The attributes of a bench that `service.Activator` uses."""

    def __init__(self, world, mode):
        self.environment, self.directory = world.environment, mode.base


def kill_supervisor(marker):
    """Kills the process that holds the lock of a marker in `active/`."""
    with contextlib.suppress(OSError, ValueError):
        inode = str(os.stat(marker).st_ino)
        with open("/proc/locks", encoding="ascii") as table:
            for row in map(str.split, table):
                if "->" not in row and row[-3].endswith(f":{inode}"):
                    os.kill(int(row[-4]), signal.SIGKILL)
