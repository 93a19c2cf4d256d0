"""A WordPress site under nginx and php-fpm, its users, and the processes of its runs.

Programs are copied into a scratch directory, so that the executable's path identifies every
process of this site's runs. A token in the arguments identifies guest processes.
"""

import base64
import contextlib
import fcntl
import glob
import http.client
import json
import os
import pwd
import shutil
import statistics
import subprocess
import tempfile
import time
from urllib.parse import urlencode

from harness import Failed, kill_and_wait, must, poll_until
from harness.detectors import Host, command, has_exited, list_directory, parent, pids, program, read, sleeping_commands
from harness.servers import free_ports, nginx, php_fpm
from harness.templates import seed_template

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OWNER = "www-data"
ABILITIES = "/wp-json/wp-abilities/v1/abilities/wp-codebox"
ROLES = {"admin": "administrator", "second": "administrator", "editor": "editor", "subscriber": "subscriber", "runner": "subscriber", "walker": "subscriber"}
# pm.max_children of the pool that most cases use.
WORKERS = 4
# Longer than any case: the agent continues only when the case kills this sleep.
SLEEP = "sleep 300"
# Seconds until everything of an ended run must have disappeared, and the bound on the median over all runs of
# the suite. A single run may take longer when the processor or the disk stalls.
TIMEOUT_SECONDS = 30
MEDIAN_LIMIT_SECONDS = 2


class Response:
    """Status, body and duration of one HTTP response."""

    def __init__(self, status, body, seconds):
        self.status, self.body, self.seconds = status, body, seconds

    @property
    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Failed(f"no JSON: {self}") from error

    @property
    def code(self):
        value = self.json
        return value.get("code") if isinstance(value, dict) else None

    def expect(self, status, code=None):
        must(self.status == status, f"expected {status}: {self}")
        if code is not None:
            must(self.code == code, f"expected {code}: {self}")
        return self

    def __str__(self):
        return f"{self.status} after {self.seconds:.2f} s: {self.body[:1500].decode('utf-8', 'replace')}"


class World:
    """One WordPress site: its files, servers, HTTP requests, and the processes of its runs."""

    def __init__(self, environment, owner=OWNER):
        self.environment, self.owner = environment, owner
        self.directory = tempfile.mkdtemp(prefix="codebox-fpm.")
        os.chmod(self.directory, 0o755)
        self.token = f"fpm{os.getpid()}-{owner}"
        self.account = pwd.getpwnam(owner)
        self.passwords = {}
        self.max_runs = WORKERS + 2
        self.cleanup_seconds = []
        self.port, self.short_port, self.pool_port, self.short_pool_port = free_ports(4)
        for name in ("bin", "db", "tags", "servers", "opcache"):
            os.mkdir(self.path(name))
        self.install()
        self.give(self.path("db"), self.path("tags"), self.path("opcache"))
        self.servers = self.make_servers()
        self.host = None

    def install(self):
        """Copies the programs and makes the state directory."""
        for source, name in (("CODEBOX", "wp-codebox"), ("CODEBOX_PLATFORM", "wp-codebox-platform"), ("CODEBOX_LAUNCH", "wp-codebox-launch"), ("CODEBOX_SO", "wp_codebox.so")):
            shutil.copy2(self.environment[source], self.path("bin", name))
        self.state = self.path("state")
        os.mkdir(self.state, 0o700)
        self.give(self.state)
        seed_template(self.state)

    def make_servers(self):
        """Returns the servers of the site, in the order in which they are started."""
        self.fpm = php_fpm(self.path("servers"), {
            "site": {"port": self.pool_port, "max_children": WORKERS},
            # A pool with a short request_terminate_timeout.
            "short": {"port": self.short_pool_port, "max_children": 2, "directives": {"request_terminate_timeout": "8s"}},
        }, self.settings(), self.owner)
        self.nginx = nginx(self.path("servers"), self.path("site"), {self.port: self.pool_port, self.short_port: self.short_pool_port})
        return self.fpm, self.nginx

    # --- building ---------------------------------------------------------------------------

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def give(self, *paths):
        for path in paths:
            for directory, names, files in os.walk(path):
                for name in [directory] + [os.path.join(directory, n) for n in names + files]:
                    os.lchown(name, self.account.pw_uid, self.account.pw_gid)

    def settings(self):
        """Returns the ini settings of the extension."""
        return {"extension": self.path("bin", "wp_codebox.so"), "wp_codebox.state_dir": self.state,
                "wp_codebox.share_dir": self.environment["CODEBOX_SHARE"], "wp_codebox.runner": self.path("bin", "wp-codebox"),
                "wp_codebox.launcher": self.path("bin", "wp-codebox-launch"), "wp_codebox.php_binary": self.environment["CODEBOX_PHP"],
                "wp_codebox.max_runs": str(self.max_runs)}

    def build(self):
        """Creates the site, owned by the owner of the state directory, and starts the servers."""
        site, share = self.path("site"), self.environment["CODEBOX_SHARE"]
        shutil.copytree(self.environment["CODEBOX_WORDPRESS"], site, symlinks=True)
        content = os.path.join(site, "wp-content")
        sqlite = os.path.join(content, "mu-plugins", "sqlite-database-integration")
        shutil.copytree(os.path.join(share, "sqlite-database-integration"), sqlite)
        dropin = read(os.path.join(sqlite, "db.copy"))
        dropin = dropin.replace("{SQLITE_IMPLEMENTATION_FOLDER_PATH}", sqlite).replace("{SQLITE_PLUGIN}", "sqlite-database-integration/load.php")
        with open(os.path.join(content, "db.php"), "w", encoding="utf-8") as file:
            file.write(dropin)
        self.plugin(os.path.join(content, "plugins", "wp-codebox"))
        shutil.copytree(os.path.join(ROOT, "tests/fixtures/host-plugin"), os.path.join(content, "plugins", "host-plugin"))
        shutil.copytree(os.path.join(ROOT, "tests/wordpress/fixtures/sample"), os.path.join(content, "plugins", "sample"))
        shutil.copy(os.path.join(HERE, "fixtures", "faults.php"), os.path.join(content, "mu-plugins", "faults.php"))
        with open(os.path.join(site, "wp-config.php"), "w", encoding="utf-8") as file:
            file.write(self.configuration())
        self.give(site)
        url = f"http://127.0.0.1:{self.port}"
        self.wp("core", "install", f"--url={url}", "--title=Test", "--admin_user=admin", "--admin_email=admin@example.org",
                "--admin_password=" + base64.b16encode(os.urandom(16)).decode(), "--skip-email")
        self.wp("rewrite", "structure", "/%postname%/")
        self.wp("plugin", "activate", "wp-codebox", "host-plugin", "sample")
        for name, role in ROLES.items():
            if name != "admin":
                self.wp("user", "create", name, f"{name}@example.org", f"--role={role}")
            self.passwords[name] = self.wp("user", "application-password", "create", name, "test", "--porcelain").strip()
        for server in self.servers:
            server.start()
        # Mounts and processes after this point were created by a request.
        self.host = Host(self.directory, self.state, "", self.token)

    def plugin(self, target):
        """Copies the plugin: from CODEBOX_PLUGIN, or assembled from its sources and the generated files of dist/, which equals dist/ when dist/ is current."""
        if os.environ.get("CODEBOX_PLUGIN"):
            shutil.copytree(os.environ["CODEBOX_PLUGIN"], target)
            print(f"the plugin is {os.environ['CODEBOX_PLUGIN']}")
            return
        shutil.copytree(os.path.join(ROOT, "plugin-php"), target)
        shipped = os.path.join(ROOT, "dist", "wp-codebox")
        shutil.copytree(os.path.join(ROOT, "abilities"), os.path.join(target, "abilities"), ignore=shutil.ignore_patterns("schemas"))
        shutil.copytree(os.path.join(shipped, "abilities", "schemas"), os.path.join(target, "abilities", "schemas"))
        shutil.copytree(os.path.join(shipped, "languages"), os.path.join(target, "languages"))
        shutil.copytree(os.path.join(ROOT, "wp-cli"), os.path.join(target, "wp-cli"))
        current = subprocess.run(["diff", "-rq", "--exclude=browser", shipped, target], stdout=subprocess.DEVNULL, check=False).returncode == 0
        print("the plugin is dist/wp-codebox" if current else "dist/wp-codebox is old; the plugin is assembled from its sources and the generated files of dist/wp-codebox")

    def configuration(self):
        constants = {"DB_NAME": "wordpress", "DB_DIR": self.path("db") + "/", "DB_FILE": "test.sqlite", "DB_USER": "", "DB_PASSWORD": "",
                     "DB_HOST": "", "DB_CHARSET": "utf8mb4", "DB_COLLATE": "", "WP_ENVIRONMENT_TYPE": "local", "WP_DEBUG": True,
                     "WP_DEBUG_DISPLAY": False, "WP_DEBUG_LOG": self.path("servers", "debug.log"), "DISABLE_WP_CRON": True,
                     "WP_HTTP_BLOCK_EXTERNAL": True, "AUTOMATIC_UPDATER_DISABLED": True, "CODEBOX_TEST_TAGS": self.path("tags")}
        for name in ("AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE"):
            constants[f"{name}_KEY"] = base64.b16encode(os.urandom(24)).decode()
            constants[f"{name}_SALT"] = base64.b16encode(os.urandom(24)).decode()
        with open(self.path("servers", "debug.log"), "w", encoding="utf-8"):
            self.give(self.path("servers", "debug.log"))
            os.lchown(self.path("servers", "debug.log"), self.account.pw_uid, self.account.pw_gid)
        rows = "".join(f"define( '{name}', {json.dumps(value)} );\n" for name, value in constants.items())
        return ("<?php\n" + rows + "$table_prefix = 'wp_';\ndefined( 'ABSPATH' ) || define( 'ABSPATH', __DIR__ . '/' );\n"
                "require_once ABSPATH . 'wp-settings.php';\n")

    def wp(self, *arguments):
        """Runs WP-CLI on the site, as the web server's user and with the extension."""
        # With a file cache of opcodes, each process takes a third of the processor time.
        compiled = {"opcache.enable_cli": 1, "opcache.file_cache": self.path("opcache"), "opcache.file_cache_only": 1}
        call = [self.environment["CODEBOX_PHP"]]
        for key, value in (compiled | self.settings()).items():
            call += ["-d", f"{key}={value}"]
        call += [self.environment["CODEBOX_WP_CLI"], "--path=" + self.path("site"), *arguments]
        done = subprocess.run(call, capture_output=True, text=True, check=False, user=self.owner, group=self.owner, extra_groups=[], cwd="/",
                              env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "WP_CLI_CONFIG_PATH": "/dev/null", "WP_CLI_DISABLE_AUTO_CHECK_UPDATE": "1"})
        if done.returncode != 0:
            raise RuntimeError(f"wp {arguments[:2]} ended with {done.returncode}: {done.stdout[-500:]} {done.stderr[-1500:]}")
        return done.stdout

    def close(self):
        for server in reversed(self.servers):
            with contextlib.suppress(Exception):
                server.stop()
        self.end_runs()
        if os.environ.get("CODEBOX_KEEP") != "1":
            shutil.rmtree(self.directory, ignore_errors=True)

    def end_runs(self):
        """Ends what a failed case left: supervisors, and with each its guest."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)

    # --- requests ---------------------------------------------------------------------------

    def connect(self, port=None, timeout=90):
        return http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=timeout)

    def headers(self, user, more=None):
        headers = {"Accept": "application/json", **(more or {})}
        if user is not None:
            secret = base64.b64encode(f"{user}:{self.passwords[user]}".encode()).decode()
            headers["Authorization"] = "Basic " + secret
        return headers

    def request(self, method, path, user="admin", body=None, headers=None, port=None):
        """Sends one request; `body` is encoded as JSON unless it is bytes."""
        headers = self.headers(user, headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection = self.connect(port)
        began = time.monotonic()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Response(answer.status, answer.read(), time.monotonic() - began)
        finally:
            connection.close()

    def ability(self, name, value=None, user="admin", method="POST", headers=None, port=None):
        """Calls an ability through WordPress core's REST route `…/run`. Core reads the input of a GET from the query string."""
        path = f"{ABILITIES}/{name}/run"
        if method in ("GET", "DELETE"):
            path += query(value)
            return self.request(method, path, user, None, headers, port)
        return self.request(method, path, user, {"input": value or {}}, headers, port)

    def task(self, script, **more):
        """Returns the input of a run whose agent is a shell script with this site's token in its command line."""
        quoted = f"{script}; : {self.token}".replace("'", "'\\''")
        return {"goal": "Test", "plugin": "sample", "agent_command": f"sh -c '{quoted}'", **more}

    def run(self, script, user="admin", headers=None, port=None, **more):
        return self.ability("run-agent-task", self.task(script, **more), user, headers=headers, port=port)

    def tagged_worker(self, tag):
        """Returns the pid of the worker that serves the request with this X-Test-Tag header."""
        path = self.path("tags", tag)
        poll_until(lambda: os.path.exists(path) and read(path), seconds=60, what=f"no worker took the request {tag}")
        return int(read(path))

    # --- processes and files of runs on the host ---------------------------------------------

    def site_directory(self):
        found = glob.glob(os.path.join(self.state, "sites", "site-*"))
        must(len(found) <= 1, f"more than one site: {found}")
        return found[0] if found else os.path.join(self.state, "sites", "none")

    def runs(self):
        return set(list_directory(os.path.join(self.site_directory(), "runs")))

    def processes(self):
        """Returns every process of this site's runs."""
        found = []
        for pid in pids():
            if pid != os.getpid() and (program(pid).startswith(self.path("bin")) or self.token in command(pid)) and not has_exited(pid):
                found.append(pid)
        return found

    def await_agents(self, what=SLEEP, count=1):
        """Waits until `count` agents have reached their `sleep`, records their namespaces, and returns the processes
        of their runs."""
        agents = set()

        def up():
            agents.update(parent(pid) for pid in sleeping_commands(self.token) if command(pid).strip() == what)
            return len(agents - {0}) >= count

        poll_until(up, seconds=60, what=f"not {count} agents at {what}")
        for pid in agents:
            self.host.record_guest(pid)
        return self.processes()

    def wake(self):
        """Kills the `sleep` of every agent, so that the agents continue."""
        poll_until(lambda: sleeping_commands(self.token), seconds=60, what="no agent sleeps")
        kill_and_wait(*sleeping_commands(self.token))

    def lease_is_free(self, run):
        with open(os.path.join(self.site_directory(), "runs", run, "lease"), "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def record(self, run):
        try:
            return json.loads(read(os.path.join(self.site_directory(), "runs", run, "run.json")) or "{}")
        except ValueError:
            return {}

    def leftovers(self, runs=()):
        """Returns processes, mounts, namespaces and locks that remain of ended runs."""
        found = [f"process {pid}: {command(pid)[:100]}" for pid in self.processes()]
        found += self.host.new_mounts() + self.host.live_namespaces()
        found += [f"lease of {run} is held" for run in runs if not self.lease_is_free(run)]
        return found

    def await_cleanup(self, runs=()):
        """Waits until nothing of any run remains; records the duration."""
        began = time.monotonic()
        try:
            poll_until(lambda: self.leftovers(runs), lambda left: not left, TIMEOUT_SECONDS, "something of a run is left")
        except Failed:
            self.end_runs()
            raise
        self.cleanup_seconds.append(time.monotonic() - began)

    def check_cleanup_median(self):
        """Checks that the median cleanup time of this process is within the bound."""
        if self.cleanup_seconds:
            middle = statistics.median(self.cleanup_seconds)
            said = f"{len(self.cleanup_seconds)} cleanups: median {middle:.2f} s, slowest {max(self.cleanup_seconds):.2f} s"
            must(middle <= MEDIAN_LIMIT_SECONDS, f"{said}: more than {MEDIAN_LIMIT_SECONDS} s")


def query(value):
    """Returns nested data as a PHP query string: `?input[name]=value`."""
    if not value:
        return ""
    return "?" + urlencode({f"input[{key}]": item for key, item in value.items()})
