"""php-fpm with the extension, and programs and a state directory for this test only.

The workers run as www-data, which owns the state directory. The runner and the launcher are
copies in the scratch directory, so that the executable's path identifies their processes.
"""

import contextlib
import fcntl
import json
import os
import pwd
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
from harness import detectors

from harness import Failed, kill_and_wait, must, poll_until
from harness.fastcgi import Request
from harness.templates import seed_template

FPM = os.environ.get("CODEBOX_FPM", "/usr/sbin/php-fpm8.2")
USER = "www-data"
SITE = "site-1"
# Seconds until everything of a run must have disappeared after its caller ended, and the bound on the median over
# all cases. A single run may take longer when the processor or the disk stalls.
TIMEOUT_SECONDS = 30
MEDIAN_LIMIT_SECONDS = 2


class World:
    """Scratch directory, servers, and detection of processes, namespaces and mounts that a run left."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="wp-codebox-fpm.")
        os.chmod(self.home, 0o711)
        self.token = "fpm" + os.urandom(6).hex()
        self.owner = pwd.getpwnam(USER)
        os.mkdir(self.path("bin"))
        self.runner = self.copy("CODEBOX", "wp-codebox")
        self.launcher = self.copy("CODEBOX_LAUNCH", "wp-codebox-launch")
        self.extension = self.copy("CODEBOX_SO", "wp_codebox.so")
        self.state = self.owned("state", 0o700)
        seed_template(self.state)
        self.mount = self.owned("demo", 0o755)
        self.notes = self.owned("notes", 0o755)
        with open(os.path.join(self.mount, "demo.php"), "w", encoding="utf-8") as file:
            file.write("<?php // Plugin Name: Demo\n")
        os.chown(file.name, self.owner.pw_uid, self.owner.pw_gid)
        self.page = self.path("page.php")
        shutil.copy(os.path.join(HERE, "extension_page.php"), self.page)
        self.host = detectors.Host(self.home, self.state, SITE, self.token)
        self.servers = []
        self.services = []
        self.cleanup_seconds = []

    def path(self, *names):
        return os.path.join(self.home, *names)

    def copy(self, variable, name):
        target = self.path("bin", name)
        shutil.copy(os.environ[variable], target)
        os.chmod(target, 0o755)
        return target

    def owned(self, name, mode):
        path = self.path(name)
        os.mkdir(path)
        os.chown(path, self.owner.pw_uid, self.owner.pw_gid)
        os.chmod(path, mode)
        return path

    def close(self):
        for server in self.servers:
            server.stop(signal.SIGKILL)
        for service in self.services:
            service.kill()
            service.wait()
        self.end_runs()
        shutil.rmtree(self.home, ignore_errors=True)

    def check_cleanup_median(self):
        """Checks that the median cleanup time of all runs is at most MEDIAN_LIMIT_SECONDS."""
        if self.cleanup_seconds:
            middle = statistics.median(self.cleanup_seconds)
            must(middle <= MEDIAN_LIMIT_SECONDS, f"{len(self.cleanup_seconds)} cleanups: median {middle:.2f} s, slowest {max(self.cleanup_seconds):.2f} s")

    def end_runs(self):
        """Kills the processes that a failed case left."""
        for pid in detectors.pids():
            if detectors.program(pid).startswith(self.path("bin") + "/"):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def request(self, seconds, **more):
        """Writes a request file for extension_page.php. The agent prints the token, sleeps at most `seconds`, and creates a file."""
        host = {
            "site": SITE,
            "wordpress": os.environ["CODEBOX_WORDPRESS"],
            "mounts": [{"source": self.mount, "target": "/workspace/demo"}],
            "resolved_agent": {"argv": ["sh", "-c", f"echo {self.token}; sleep {seconds}; echo done >done.txt"]},
            **more,
        }
        handle, name = tempfile.mkstemp(suffix=".json", dir=self.notes)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump([{"goal": "Write a file."}, host], file)
        os.chmod(name, 0o644)
        return name

    def fpm(self, **settings):
        server = Fpm(self, settings)
        self.servers.append(server)
        return server

    def socket(self, user=USER):
        """Starts a socket-activated runner as this user; returns its process and socket path."""
        path = os.path.join(tempfile.mkdtemp(prefix="service.", dir=self.home), "runner.sock")
        os.chown(os.path.dirname(path), pwd.getpwnam(user).pw_uid, -1)
        os.chmod(os.path.dirname(path), 0o711)
        service = subprocess.Popen(
            ["setpriv", f"--reuid={user}", "--clear-groups", "systemd-socket-activate", "--accept", "-l", path, self.runner, "supervise", "--share", os.environ["CODEBOX_SHARE"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.services.append(service)
        # A test connection would start a supervisor, so this reads /proc/net/unix. The socket file exists before listen().
        listens = lambda line: line.endswith(path) and line.split()[3] == "00010000"  # noqa: E731
        poll_until(lambda: any(map(listens, detectors.read("/proc/net/unix").splitlines())), seconds=60, what="the service does not listen")
        os.chmod(path, 0o666)
        return service, path

    def processes(self):
        return [pid for pid in detectors.pids() if self.ours(pid) and not detectors.has_exited(pid)]

    def ours(self, pid):
        return detectors.program(pid).startswith(self.path("bin") + "/") or self.token in detectors.command(pid)

    def leftovers(self, since):
        """Returns processes, namespaces and mounts of runs that existed at time `since`. The kernel reuses namespace
        inode numbers, so processes started after `since` are ignored."""
        kept = [
            f"namespaces of process {pid}: {detectors.command(pid)[:80]}"
            for pid in detectors.pids()
            if self.host.in_recorded_guest(pid) and detectors.start_time(pid) < since
        ]
        return self.host.processes() + kept + self.host.new_mounts()

    def await_cleanup(self):
        """Waits until nothing of any run remains and returns the elapsed seconds."""
        since = time.clock_gettime(time.CLOCK_BOOTTIME)
        try:
            poll_until(lambda: not self.leftovers(since), seconds=TIMEOUT_SECONDS)
        except Failed:
            raise Failed(f"left after {TIMEOUT_SECONDS:g} s: " + "; ".join(self.leftovers(since))) from None
        took = time.clock_gettime(time.CLOCK_BOOTTIME) - since
        self.cleanup_seconds.append(took)
        return took

    def wake(self):
        """Kills the sleep of every agent, so that the agents continue."""
        poll_until(lambda: detectors.sleeping_commands(self.token), seconds=60, what="no agent sleeps")
        kill_and_wait(*detectors.sleeping_commands(self.token))

    def record(self, run):
        try:
            with open(os.path.join(self.state, "sites", SITE, "runs", run, "run.json"), encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}

    def lease_is_free(self, run):
        with open(os.path.join(self.state, "sites", SITE, "runs", run, "lease"), "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            return True

    def ended(self, run):
        return poll_until(lambda: self.record(run), lambda record: record.get("status") == "ended", 60, f"the record of {run} is not settled")


class Fpm:
    """One php-fpm server, which listens on a unix socket or a loopback port."""

    def __init__(self, world, settings):
        self.world = world
        self.directory = tempfile.mkdtemp(prefix="fpm.", dir=world.home)
        os.chmod(self.directory, 0o711)
        if settings.get("listen") == "tcp":
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.address = probe.getsockname()
            listen = f"127.0.0.1:{self.address[1]}"
        else:
            listen = self.address = os.path.join(self.directory, "socket")
        pool = {
            "user": USER,
            "group": USER,
            "listen": listen,
            "listen.owner": USER,
            "pm": "static",
            "pm.max_children": 4,
            "catch_workers_output": "yes",
            **settings.get("pool", {}),
        }
        self.log = os.path.join(self.directory, "log")
        config = ["[global]", f"error_log = {self.log}", f"pid = {self.directory}/pid", *settings.get("main", []), "[www]"]
        config += [f"{name} = {value}" for name, value in pool.items()]
        self.write("fpm.conf", config)
        ini = {
            "zend_extension": "opcache",
            "opcache.enable": 1,
            "memory_limit": "64M",
            "extension": settings.get("extension", world.extension),
            "wp_codebox.state_dir": world.state,
            "wp_codebox.share_dir": os.environ["CODEBOX_SHARE"],
            "wp_codebox.runner": world.runner,
            "wp_codebox.launcher": world.launcher,
            "wp_codebox.php_binary": os.environ["CODEBOX_PHP"],
            "log_errors": 0,
            **settings.get("ini", {}),
        }
        self.write("php.ini", [f'{name} = "{value}"' for name, value in ini.items()])
        self.process = subprocess.Popen(
            [FPM, "-F", "-c", f"{self.directory}/php.ini", "-y", f"{self.directory}/fpm.conf"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(os.path.join(self.directory, "stderr"), "wb"),
            env={"PATH": "/usr/bin:/bin", "PHP_INI_SCAN_DIR": ""},
        )
        poll_until(self.answers, seconds=60, what="php-fpm does not answer")

    def write(self, name, lines):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def answers(self):
        must(self.process.poll() is None, "php-fpm ended: " + detectors.read(self.log) + detectors.read(os.path.join(self.directory, "stderr")))
        try:
            return self.get(do="pid")
        except OSError:
            return None

    def send(self, **query):
        return Request(self.address, self.world.page, urllib.parse.urlencode(query))

    def get(self, **query):
        return self.send(**query).answer()

    def runs(self, verb, *arguments):
        """Calls `Runs::<verb>()` in a worker and returns its result."""
        text = self.get(do="runs", verb=verb, arguments=json.dumps(arguments))
        try:
            return json.loads(text)
        except (TypeError, ValueError):
            raise Failed(f"Runs::{verb} answered {text!r}") from None

    def workers(self):
        return [pid for pid in detectors.pids() if detectors.parent(pid) == self.process.pid]

    def stop(self, how):
        if self.process.poll() is None:
            # Read the workers first: after the master has died they are reparented and cannot be found.
            workers = self.workers()
            self.process.send_signal(how)
            if how == signal.SIGKILL:
                for worker in workers:
                    with contextlib.suppress(OSError):
                        os.kill(worker, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)


class Page:
    """A PHP page that starts a run, and the note file that the page writes."""

    def __init__(self, server, do, seconds=300, **more):
        self.world, self.server = server.world, server
        handle, self.note = tempfile.mkstemp(suffix=".note", dir=self.world.notes)
        os.close(handle)
        os.chmod(self.note, 0o666)
        self.request = server.send(do=do, note=self.note, request=self.world.request(seconds, **more))

    def count(self, line):
        return detectors.read(self.note).splitlines().count(line)

    def note_value(self, word):
        """Returns the value of the first note line that starts with this word."""
        for line in detectors.read(self.note).splitlines():
            if line.split(" ")[0] == word:
                return line[len(word) + 1 :] or "yes"
        return None

    def expect(self, word, seconds=60):
        text = lambda: detectors.read(self.note).replace("\n", " | ")  # noqa: E731
        try:
            return poll_until(lambda: self.note_value(word), seconds=seconds, what=f"no note `{word}`")
        except Failed as failed:
            raise Failed(f"{failed}; notes: {text()}; log: {detectors.read(self.server.log)[-300:]}") from None

    def await_agent(self):
        """Waits for the agent's first output, records its guest's namespaces and returns the run id."""
        self.run = self.expect("run")
        self.worker = int(self.expect("worker"))
        # The page blocks at the agent's first output until go(), and the agent sleeps until killed.
        def guest():
            found = [pid for pid in self.world.processes() if self.world.token in detectors.command(pid)]
            return [pid for pid in found if self.world.host.record_guest(pid)]

        poll_until(guest, seconds=60, what="no guest appeared")
        self.go()
        return self.run

    def go(self):
        with open(self.note, "a", encoding="utf-8") as file:
            file.write("go\n")

    def result(self):
        """Waits for the page to end and returns the run's outcome."""
        self.request.answer()
        return self.note_value("result")

    def check_cancelled(self):
        """Checks that nothing of the run remains, its lease is free and its record is `cancelled`."""
        took = self.world.await_cleanup()
        must(self.world.lease_is_free(self.run), "the lease is still held")
        record = self.world.ended(self.run)
        must(record.get("outcome") == "cancelled", f"the record says {record}")
        return took

    def check_succeeded(self):
        """Checks that the run continues without its caller and succeeds after its agent's sleep is killed."""
        must(self.world.processes(), "nothing of the run is alive")
        self.world.wake()
        record = self.world.ended(self.run)
        must(record.get("outcome") == "succeeded", f"the record says {record}")
        self.world.await_cleanup()
