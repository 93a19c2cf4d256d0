"""The units of packaging/systemd under a real systemd, which runs in namespaces of its own."""

import contextlib
import os
import shutil
import signal
import subprocess

import pytest

from .checks import Failed, must, skip_unless_root
from .processes import children

HERE = os.path.dirname(os.path.abspath(__file__))
UNITS = os.path.join(os.path.dirname(os.path.dirname(HERE)), "packaging", "systemd")


class Machine:
    """A booted systemd with `state` as /var/lib/wp-codebox/OWNER, where OWNER is its owner. Drop-ins name it.

    `drop_ins` has the texts of drop-ins by unit; each of these units is started. `network`: `own`, or that of the `host`.
    """

    def __init__(self, bench, name, state, drop_ins, network="own"):
        if os.geteuid() != 0:
            skip_unless_root("to boot systemd in namespaces")
        if not os.path.exists("/lib/systemd/systemd"):
            pytest.skip("systemd is not installed")
        work, self.log = os.path.join(bench.directory, name), os.path.join(bench.directory, f"{name}.log")
        units = f"{work}-units"
        os.makedirs(work)
        shutil.copytree(UNITS, units)
        # The service takes programs from its own configuration only.
        e = bench.environment
        programs = f"--launcher {e['CODEBOX_LAUNCH']} --share {e['CODEBOX_SHARE']} --php {e['CODEBOX_PHP']}"
        configured = {**drop_ins, "wp-codebox@.service": f"[Service]\nExecStart=\n{command('wp-codebox@.service')} {programs}\n"}
        # Of systemd's own units only the journal starts, because the tested units write to it.
        wanted = {"sysinit.target.wants": ["systemd-journald.service"], "multi-user.target.wants": list(drop_ins)}
        for target, names in wanted.items():
            os.makedirs(os.path.join(units, target))
            for unit in names:
                own = os.path.exists(os.path.join(units, unit))
                os.symlink(f"/etc/systemd/system/{unit}" if own else f"/usr/lib/systemd/system/{unit}", os.path.join(units, target, unit))
        for unit, text in configured.items():
            os.makedirs(os.path.join(units, f"{unit}.d"))
            with open(os.path.join(units, f"{unit}.d", "test.conf"), "w", encoding="utf-8") as file:
                file.write(text)
        home = os.path.dirname(os.path.dirname(bench.environment["CODEBOX"]))
        shared = {home, bench.directory, *(os.path.dirname(bench.environment[name]) for name in ("CODEBOX_WORDPRESS", "CODEBOX_SHARE", "CODEBOX_LAUNCH"))}
        with open(self.log, "wb") as log:
            words = [os.path.join(HERE, "boot-systemd"), work, units, bench.environment["CODEBOX"], state, *sorted(shared)]
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env={**os.environ, "BOOT_NETWORK": network})

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def systemd(self):
        """Returns the pid of the first process of the namespaces; None before it is systemd."""
        must(self.process.poll() is None, f"systemd ended: {self.output()}")
        pid = self.process.pid
        # A command of the script may end between two reads of /proc.
        with contextlib.suppress(OSError):
            while True:
                with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                    if file.read().strip() == "systemd":
                        return pid
                below = children(pid)
                if len(below) != 1:
                    return None
                (pid,) = below
        return None

    def control(self, *words):
        """Returns what `systemctl` prints in the namespaces."""
        return self.inside("systemctl", *words)

    def inside(self, *words):
        """Returns what a program of root prints in the namespaces."""
        words = ["nsenter", "--target", str(self.systemd()), "--mount", "--pid", "--net", *words]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
        return (done.stdout + done.stderr).strip()

    def close(self):
        """Kills systemd, and with it all that it started; the script then removes its cgroups."""
        with contextlib.suppress(Failed, OSError):
            os.kill(self.systemd() or self.process.pid, signal.SIGKILL)
        self.process.wait(60)


def state_of(owner):
    """Returns the lines of a drop-in of a service that uses the state of this user."""
    return f"[Service]\nEnvironment=WP_CODEBOX_STATE_DIR=/var/lib/wp-codebox/{owner}\n"


def command(unit):
    """Returns the line with the command of a unit."""
    with open(os.path.join(UNITS, unit), encoding="utf-8") as file:
        return next(line.strip() for line in file if line.startswith("ExecStart="))
