"""The units of packaging/systemd under a real systemd, which runs in namespaces of its own."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess

import pytest
from harness import Failed, must, poll_until, skip_unless_root
from service import Service, supervisor

HERE = os.path.dirname(os.path.abspath(__file__))
UNITS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "packaging", "systemd")
#: Of systemd itself only the journal, to which the units write.
WANTS = {"sysinit.target.wants": ("systemd-journald.service",), "multi-user.target.wants": ("wp-codebox.socket", "wp-codebox-serve.service")}


class Machine:
    """A booted systemd, with the sandboxes of a service in its namespaces."""

    def __init__(self, bench, one):
        self.work, self.log = os.path.join(bench.directory, "systemd"), os.path.join(bench.directory, "systemd.log")
        units, boot = os.path.join(bench.directory, "systemd-units"), os.path.join(HERE, "boot-systemd")
        os.makedirs(self.work)
        shutil.copytree(UNITS, units)
        for target, names in WANTS.items():
            os.makedirs(os.path.join(units, target))
            for name in names:
                own = os.path.exists(os.path.join(units, name))
                os.symlink(f"/etc/systemd/system/{name}" if own else f"/usr/lib/systemd/system/{name}", os.path.join(units, target, name))
        # The command and the owner of docs/service.md; only the paths of this checkout are added.
        with open(os.path.join(UNITS, "wp-codebox-serve.service"), encoding="utf-8") as file:
            command = next(line.strip() for line in file if line.startswith("ExecStart="))
        paths = bench.paths("/var/lib/wp-codebox")
        at = paths.index("--state")
        self.drop_in(units, "wp-codebox-serve.service", f"[Service]\nExecStart=\n{command} {' '.join(paths[:at] + paths[at + 2:])}\n")
        self.drop_in(units, "wp-codebox.socket", f"[Socket]\nSocketUser={bench.owner}\n")
        home = os.path.dirname(os.path.dirname(bench.environment["CODEBOX"]))
        shared = {home, bench.directory, *(os.path.dirname(bench.environment[name]) for name in ("CODEBOX_WORDPRESS", "CODEBOX_SHARE", "CODEBOX_LAUNCH"))}
        with open(self.log, "wb") as log:
            words = [boot, self.work, units, bench.environment["CODEBOX"], one.state, *sorted(shared)]
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    @staticmethod
    def drop_in(units, unit, text):
        os.makedirs(os.path.join(units, f"{unit}.d"))
        with open(os.path.join(units, f"{unit}.d", "test.conf"), "w", encoding="utf-8") as file:
            file.write(text)

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def systemd(self):
        """Returns the pid of the first process of the namespaces; None before it is systemd."""
        must(self.process.poll() is None, f"systemd ended: {self.output()}")
        pid = self.process.pid
        while True:
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                if file.read().strip() == "systemd":
                    return pid
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                children = file.read().split()
            if len(children) != 1:
                return None
            pid = int(children[0])

    def control(self, *words):
        inside = ["nsenter", "--target", str(self.systemd()), "--mount", "--pid", "--net", "systemctl", *words]
        done = subprocess.run(inside, capture_output=True, text=True, timeout=120, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        return (done.stdout + done.stderr).strip()

    def close(self):
        """Kills systemd, and with it all that it started; the script then removes its cgroups."""
        with contextlib.suppress(Failed, OSError):
            os.kill(self.systemd() or self.process.pid, signal.SIGKILL)
        self.process.wait(60)


def test_units_start_sandboxes_as_units_of_their_own_that_survive_a_restart_of_the_service(bench, service):
    if os.geteuid() != 0:
        skip_unless_root("to boot systemd in namespaces")
    if not os.path.exists("/lib/systemd/systemd"):
        pytest.skip("systemd is not installed")
    service.delete(f"/v1/sandboxes/{service.create()['id']}")
    one = Service(bench, "booted", like=service)
    one.socket = os.path.join(one.state, "service", "api.sock")
    machine = Machine(bench, one)
    try:
        one.process, one.log = machine.process, machine.log
        poll_until(one.is_ready, bool, 120, f"the service is not ready: {machine.output()}")
        state = machine.control("is-active", "wp-codebox-serve.service")
        must(state == "active", f"{state}: {machine.output()}")
        server = machine.control("show", "--property=MainPID", "--value", "wp-codebox-serve.service")
        user = machine.control("show", "--property=User", "--value", "wp-codebox-serve.service")
        must(server.isdigit() and user == "", f"{server} {user}")
        sandbox = one.create()["id"]
        must(one.sh(sandbox, "echo booted") == "booted\n", "no program runs")
        pid = supervisor(one, sandbox)
        with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
            must("wp-codebox@" in file.read(), "the supervisor is not a unit of its own")
        owner = pwd.getpwnam(bench.owner).pw_uid
        must(os.stat(f"/proc/{pid}").st_uid == owner, "the supervisor kept root")
        with open(os.path.join(one.directory_of(sandbox), "run.json"), encoding="utf-8") as file:
            must(sandbox in file.read(), "no record")
        machine.control("restart", "wp-codebox-serve.service")
        poll_until(one.is_ready, bool, 60, f"the service did not restart: {machine.output()}")
        again = machine.control("show", "--property=MainPID", "--value", "wp-codebox-serve.service")
        must(again.isdigit() and again != server, f"it did not restart: {server} {again}")
        must(one.state_of(sandbox) == "ready" and supervisor(one, sandbox) == pid, "the sandbox ended with the service")
        one.delete(f"/v1/sandboxes/{sandbox}").expect(200)
        must(machine.control("list-units", "--failed", "--no-legend", "--plain") == "", machine.control("list-units", "--failed"))
    finally:
        one.process = None
        machine.close()
