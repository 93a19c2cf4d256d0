"""Starts `wp-codebox serve` with a state directory of its own, and speaks HTTP to it over its unix socket or TLS."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import urllib.parse

from harness import Failed, kill_and_wait, must, poll_until

PROFILE = """
schema: wp-codebox/sandbox-profile/v1
id: profile.test
version: 1.0.0
{extension}workspace: {{ mode: mirror, access: rw, target: /workspace/plugin, source: {source} }}
ttl: {{ default: 10m, max: 20m }}
resources: {{ disk_mb: 128 }}
"""
#: Time limit for a sandbox to be ready; the first one of a state directory builds its template.
READY_SECONDS = 240


class Unix(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path, seconds):
        super().__init__("localhost", timeout=seconds)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Reply:
    """Status, headers and body of one answer."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __str__(self):
        return f"HTTP {self.status}\n{self.body[:3000].decode('utf-8', 'replace')}"

    @property
    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Failed(f"the body is not JSON: {error}\n{self}") from error

    @property
    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]

    def expect(self, *statuses, code=None):
        must(self.status in statuses, f"expected {statuses}\n{self}")
        if code is not None:
            must(self.json.get("code") == code, f"expected {code}\n{self}")
            must(self.headers.get("content-type") == "application/problem+json", f"{self.headers}")
        return self


class Service:
    """A running `wp-codebox serve`. Requests go over its unix socket unless a case asks for TLS."""

    def __init__(self, bench, name, *arguments, like=None):
        self.bench, self.name, self.arguments = bench, name, arguments
        self.directory = os.path.join(bench.directory, f"service-{name}")
        self.state = os.path.join(self.directory, "state")
        self.socket = os.path.join(self.directory, "api.sock")
        self.log = os.path.join(bench.directory, f"service-{name}.log")
        self.process = None
        #: User and groups of the process, as `subprocess.Popen` takes them; empty: those of this process.
        self.rights = {}
        os.makedirs(os.path.join(self.state, "profiles"), mode=0o700)
        os.chmod(self.state, 0o700)
        self.source = bench.source(f"plugin-{name}")
        if like is not None:
            # A template is built once for all state directories.
            shutil.copytree(os.path.join(like.state, "templates"), os.path.join(self.state, "templates"), symlinks=True)
        bench.own(self.directory)
        self.profile("profile.test")

    def profile(self, name, extension="native", more="", source=None):
        """Writes a profile with this id; without an extension the service chooses one (routing)."""
        path = os.path.join(self.state, "profiles", f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            pinned = f"extension: {extension}\n" if extension else ""
            file.write(PROFILE.format(extension=pinned, source=source or self.source).replace("id: profile.test", f"id: {name}") + more)
        self.bench.own(self.state) if os.geteuid() == 0 else None
        return name

    def words(self):
        paths = self.bench.paths(self.state)
        return ["serve", "--socket", self.socket, *paths, *self.arguments]

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([self.bench.environment["CODEBOX"], *self.words()], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={"PATH": "/usr/bin:/bin"}, start_new_session=True, **self.rights)
        poll_until(self.is_ready, bool, 60, f"{self.name} is not ready: {self.output()}")
        return self

    def output(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-3000:]

    def is_ready(self):
        must(self.process.poll() is None, f"wp-codebox serve ended: {self.output()}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.get("/readyz").status == 204
        return False

    def stop(self, number=signal.SIGTERM, seconds=60):
        """Stops the server; its sandboxes go on. Returns its exit status."""
        if self.process is None or self.process.poll() is not None:
            return None
        self.process.send_signal(number)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"the server did not stop within {seconds} s: {self.output()}") from None

    def close(self):
        """Destroys the sandboxes and stops the server."""
        with contextlib.suppress(Exception):
            for row in self.sandboxes():
                if row["state"] not in ("destroyed", "failed"):
                    self.delete(f"/v1/sandboxes/{row['id']}")
        with contextlib.suppress(Failed):
            self.stop()

    # Requests

    def connection(self, seconds=READY_SECONDS):
        return Unix(self.socket, seconds)

    def call(self, method, path, body=None, token=None, headers=None, connection=None):
        """Sends one request. A body that is not bytes is sent as JSON."""
        own = connection is None
        connection = connection or self.connection()
        sent = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        if token:
            sent["Authorization"] = f"Bearer {token}"
        try:
            connection.request(method, path, body=body, headers=sent)
            answer = connection.getresponse()
            return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            if own:
                connection.close()

    def get(self, path, **options):
        return self.call("GET", path, **options)

    def post(self, path, body=None, **options):
        return self.call("POST", path, body=body, **options)

    def put(self, path, body, **options):
        return self.call("PUT", path, body=body, **options)

    def delete(self, path, **options):
        return self.call("DELETE", path, **options)

    def sandboxes(self, **options):
        """Returns all rows of the list, page by page."""
        rows, path = [], "/v1/sandboxes?limit=50"
        while path:
            page = self.get(path, **options).expect(200).json
            rows += page["sandboxes"]
            path = f"/v1/sandboxes?limit=50&after={urllib.parse.quote(str(page['next']))}" if page.get("next") else None
        return rows

    def create(self, profile="profile.test", wait=READY_SECONDS, token=None, key=None, **body):
        """Creates a sandbox and, with `wait`, waits until it is ready."""
        headers = {"Prefer": f"wait={wait}"} if wait else {}
        if key:
            headers["Idempotency-Key"] = key
        answer = self.post("/v1/sandboxes", {"profile": profile, **body}, token=token, headers=headers)
        answer.expect(201 if wait else 202)
        if wait:
            must(answer.json["state"] in ("ready", "active"), f"{answer}")
        return answer.json

    def state_of(self, sandbox, **options):
        return self.get(f"/v1/sandboxes/{sandbox}", **options).expect(200).json["state"]

    def await_state(self, sandbox, *states, seconds=READY_SECONDS):
        return poll_until(lambda: self.state_of(sandbox), lambda state: state in states, seconds)

    def exec(self, sandbox, *argv, **body):
        """Runs a program and returns its lines; the last one is `exited` or `error`."""
        return self.post(f"/v1/sandboxes/{sandbox}/exec", {"argv": list(argv), **body}).expect(200).lines

    def sh(self, sandbox, script, **body):
        """Runs a script and returns its standard output; fails unless it exits with 0."""
        lines = self.exec(sandbox, "sh", "-c", script, **body)
        must(lines and lines[-1].get("code") == 0, f"{script}: {lines}")
        return "".join(line.get("text", "") for line in lines if line["type"] == "output" and line["stream"] == "stdout")

    def token(self, *scopes, actor="atm:test", **options):
        """Creates a token with the command line and returns it."""
        words = ["token", "create", "--actor", actor, "--state", self.state, "--json"]
        for scope in scopes:
            words += ["--scope", scope]
        for name, value in options.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return self.bench.call(*words).expect(0).json["token"]

    def directory_of(self, sandbox, site="cli"):
        return os.path.join(self.state, "sites", site, "runs", sandbox)

    def cli(self, command, *arguments):
        return self.bench.call("sandbox", command, *arguments, *self.bench.paths(self.state), "--json")


class Tls:
    """A self-signed certificate for loopback, and a connection that trusts only it."""

    def __init__(self, bench, name):
        self.certificate = os.path.join(bench.directory, f"{name}-cert.pem")
        self.key = os.path.join(bench.directory, f"{name}-key.pem")
        configuration = os.path.join(bench.directory, f"{name}-openssl.cnf")
        with open(configuration, "w", encoding="utf-8") as file:
            # CA:FALSE, because clients refuse a CA certificate as a server certificate.
            file.write("[req]\ndistinguished_name=dn\nx509_extensions=v3\nprompt=no\n[dn]\nCN=localhost\n"
                       "[v3]\nbasicConstraints=critical,CA:FALSE\nsubjectAltName=DNS:localhost,IP:127.0.0.1\n")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-config", configuration, "-keyout", self.key, "-out", self.certificate], check=True, capture_output=True)
        os.chmod(self.key, 0o600)
        if os.geteuid() == 0:
            shutil.chown(self.key, bench.owner)

    def connection(self, port, seconds=READY_SECONDS):
        return http.client.HTTPSConnection("127.0.0.1", port, timeout=seconds, context=ssl.create_default_context(cafile=self.certificate))


def supervisor(service, sandbox):
    """Returns the pid of the process that holds the lock on the run's lease file, or None."""
    try:
        lease = os.stat(os.path.join(service.directory_of(sandbox), "lease"))
    except FileNotFoundError:
        return None
    with open("/proc/locks", encoding="ascii") as table:
        rows = [line.split() for line in table]
    held = [int(row[-4]) for row in rows if "->" not in row and row[-3].split(":")[-1] == str(lease.st_ino)]
    return held[0] if len(held) == 1 else None


def kill_supervisor(service, sandbox):
    """Kills the supervisor of a sandbox, if it has one."""
    pid = supervisor(service, sandbox)
    if pid:
        with contextlib.suppress(ProcessLookupError):
            kill_and_wait(pid)
    return pid
