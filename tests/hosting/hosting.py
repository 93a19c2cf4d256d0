"""Three WordPress sites, each of a user of its own, on one php-fpm and one runner socket of root.

Everything is in a mount namespace of this process: a copy-on-write /etc with the users, an empty /var/lib/wp-codebox, and the places
of the service. The kernel removes it with the process, so the users never exist on the machine.
"""

import contextlib
import ctypes
import grp
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import must, poll_until
from harness.callers import connect_as, setpriv
from harness.detectors import command, has_exited, pids, program
from harness.frames import SupervisorClient
from harness.servers import nginx, php_fpm
from harness.service import Activator
from harness.templates import seed_template

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fpm"))
import world as fpm  # noqa: E402

UNIT = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "packaging", "systemd", "wp-codebox.socket")
STATES = "/var/lib/wp-codebox"
GROUP = "wp-codebox"
USERS = ("site-one", "site-two", "site-three")
#: A user without the right to use the socket.
OUTSIDER = "outsider"
CLONE_NEWNS = 0x20000
#: What the service lets users have: three places, of which one user may have two, and a gigabyte of memory for a run.
SHARES = {"max_runs": 3, "user_max_runs": 2, "max_limits": {"memory_bytes": 1 << 30}}
# Each user of a site costs two processes of WP-CLI.
fpm.ROLES = {"admin": "administrator"}


def call(*words, **options):
    """Calls a program; returns it with its output as text."""
    return subprocess.run(words, capture_output=True, text=True, errors="replace", check=False, timeout=120, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, **options)


def unit_value(name):
    """Returns a value of the socket unit."""
    with open(UNIT, encoding="utf-8") as file:
        return re.search(rf"^{name}=(.*)$", file.read(), re.M).group(1)


class Hosting:
    """The host: its users, servers and sites."""

    def __init__(self, environment):
        self.environment = environment
        self.directory = tempfile.mkdtemp(prefix="codebox-hosting.")
        os.chmod(self.directory, 0o755)
        self.separate()
        os.mkdir(self.path("bin"))
        for source, name in (("CODEBOX", "wp-codebox"), ("CODEBOX_PLATFORM", "wp-codebox-platform"), ("CODEBOX_LAUNCH", "wp-codebox-launch"), ("CODEBOX_SO", "wp_codebox.so")):
            shutil.copy2(environment[source], self.path("bin", name))
        self.program = self.path("bin", "wp-codebox")
        for user in (*USERS, OUTSIDER):
            done = call("useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", user)
            must(done.returncode == 0, f"useradd: {done}")
        config = self.path("config.json")
        with open(config, "w", encoding="utf-8") as file:
            json.dump(SHARES, file)
        for user in USERS:
            self.users("add", user)
            seed_template(os.path.join(STATES, user))
        # systemd-socket-activate passes no environment on.
        self.service = Activator(self, "env", f"WP_CODEBOX_CONFIG={config}", self.program, "supervise", *self.programs())
        group, mode = (unit_value(name) for name in ("SocketGroup", "SocketMode"))
        os.chown(self.service.address, 0, grp.getgrnam(group).gr_gid)
        os.chmod(self.service.address, int(mode, 8))
        self.sites = [Site(self, user) for user in USERS]
        pools = {site.owner: {"port": site.pool_port, "max_children": 4, "user": site.owner} for site in self.sites}
        os.mkdir(self.path("servers"))
        self.fpm = php_fpm(self.path("servers"), pools, self.sites[0].settings(), USERS[0])

    def separate(self):
        """Moves this process into a mount namespace with an /etc and state directories of its own."""
        must(ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0, "no mount namespace")
        for name in ("etc", "etc-work", "states"):
            os.mkdir(self.path(name), 0o755)
        os.makedirs(STATES, exist_ok=True)
        os.makedirs("/run/wp-codebox/places", mode=0o700, exist_ok=True)
        for words in (("--make-rprivate", "/"),
                      ("-t", "overlay", "-o", f"lowerdir=/etc,upperdir={self.path('etc')},workdir={self.path('etc-work')}", "overlay", "/etc"),
                      ("--bind", self.path("states"), STATES),
                      ("-t", "tmpfs", "-o", "mode=0700", "tmpfs", "/run/wp-codebox/places")):
            subprocess.run(["mount", *words], check=True)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def programs(self):
        e = self.environment
        return ["--launcher", self.path("bin", "wp-codebox-launch"), "--share", e["CODEBOX_SHARE"], "--php", e["CODEBOX_PHP"]]

    def users(self, *words, user=None, expect=0):
        """Calls `wp-codebox users`, as root or as this user; returns the call."""
        done = call(*(setpriv(user) if user else []), self.program, "users", *words)
        must(done.returncode == expect, f"users {words}: {done}")
        return done

    def build(self):
        self.fpm.start()
        for site in self.sites:
            site.build()
            site.wp("plugin", "deactivate", "host-plugin")
            site.wp("option", "update", "wp_codebox_direct_apply", "1")

    def close(self):
        with contextlib.suppress(AttributeError):
            for site in self.sites:
                site.close()
            self.fpm.stop()
        with contextlib.suppress(AttributeError):
            self.service.__exit__()
        self.end_runs()
        # Its own mounts are busy until the process ends.
        for place in ("/etc", STATES, "/run/wp-codebox/places"):
            subprocess.run(["umount", "--lazy", place], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def end_runs(self):
        for pid in pids():
            if program(pid).startswith(self.path("bin") + "/"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)


class Site(fpm.World):
    """A site, its user and its state directory, which the extension finds by the name of the user."""

    def __init__(self, hosting, owner):
        self.hosting = hosting
        super().__init__(hosting.environment, owner)
        self.secret = f"secret-of-{owner}"
        # What no other user may read: a plugin, programs of agents and a file.
        self.private = self.path("private")
        source = os.path.join(self.private, "plugin")
        os.makedirs(source)
        agent = os.path.join(self.private, "opencode", "node_modules", ".bin", "opencode")
        os.makedirs(os.path.dirname(agent))
        self.write(os.path.join(source, "plugin.php"), f"<?php\n/* Plugin Name: Plugin */\n// {self.secret}\n")
        self.write(agent, "#!/bin/sh\necho '" + json.dumps({"type": "text", "part": {"text": f"{self.secret} of an agent"}}) + "'\n")
        self.write(os.path.join(self.private, "file"), f"{self.secret} in a file")
        os.chmod(agent, 0o755)
        self.give(self.private)
        os.chmod(self.private, 0o700)

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def install(self):
        self.state = os.path.join(STATES, self.owner)

    def settings(self):
        """No setting names the state directory."""
        settings = super().settings() | {"wp_codebox.runner_socket": self.hosting.service.address}
        del settings["wp_codebox.state_dir"]
        for name, file in (("extension", "wp_codebox.so"), ("wp_codebox.runner", "wp-codebox"), ("wp_codebox.launcher", "wp-codebox-launch")):
            settings[name] = self.hosting.path("bin", file)
        return settings

    def make_servers(self):
        self.nginx = nginx(self.path("servers"), self.path("site"), {self.port: self.pool_port})
        return (self.nginx,)

    def processes(self):
        """Returns the processes of this user's runs."""
        found = []
        for pid in pids():
            of_user = program(pid).startswith(self.hosting.path("bin")) and owner_of(pid) == self.account.pw_uid
            if (of_user or self.token in command(pid)) and not has_exited(pid):
                found.append(pid)
        return found

    def supervisors(self):
        return [pid for pid in self.processes() if "supervise" in command(pid)]

    def as_user(self, *words):
        """Calls a program as the user of this site."""
        return call(*setpriv(self.owner), *words)

    def may_read(self, path):
        """Whether the user of this site can read a file or list a directory."""
        return self.as_user("cat" if os.path.isfile(path) else "ls", path).returncode == 0

    def ask(self, change, script="cat plugin.php /run/codebox/staged/x; true"):
        """Sends a request of this user to the runner socket, as a program of the user can. Returns the frames of the answer."""
        run = self.client(change, script)
        frames = []
        while (frame := run.frame()) is not None:
            frames.append(frame)
        run.close()
        must(frames, "the service sent no answer")
        return frames

    def client(self, change=None, script="true"):
        """Returns a client whose request this user has sent."""
        run = SupervisorClient(Requests(self), script)
        if change:
            change(run.request)
        run.socket = connect_as(self.hosting.service.address, self.owner)
        with contextlib.suppress(BrokenPipeError):
            run.begin()
        return run

    def free_places(self):
        """Waits until no run of this user has a place."""
        poll_until(lambda: not self.supervisors(), seconds=60, what=f"runs of {self.owner} are left")

    def close(self):
        self.end_runs()
        super().close()


class Requests:
    """What a `SupervisorClient` takes from a bench, for requests of a site's user."""

    def __init__(self, site):
        self.environment = site.environment | {"CODEBOX_LAUNCH": site.hosting.path("bin", "wp-codebox-launch")}
        self.site, self.state, self.place = "raw", site.state, site

    def source(self, _name):
        return os.path.join(self.place.private, "plugin")


def owner_of(pid):
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None
