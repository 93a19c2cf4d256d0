"""Starts runs whose sandboxes stay open for a preview, and sends HTTP requests to the preview."""

import contextlib
import http.client
import json
import os
import random
import re
import signal
import socket
import threading

from . import live
from .bench import Answer
from .checks import Failed, must

SETUP = """
update_option( 'permalink_structure', '/%postname%/' );
flush_rewrite_rules( false );
$user = get_user_by( 'id', 1 );
wp_set_password( 'visitor-pass', $user->ID );
wp_insert_post( array( 'post_title' => 'A pretty page', 'post_name' => 'a-pretty-page', 'post_status' => 'publish', 'post_type' => 'page', 'post_content' => 'Sturmvogel' ) );
wp_insert_post( array( 'post_title' => 'A guide', 'post_name' => 'wp-config-guide', 'post_status' => 'publish', 'post_type' => 'page', 'post_content' => 'Basstoelpel' ) );
wp_mkdir_p( WP_CONTENT_DIR . '/uploads/wp-config-old' );
file_put_contents( WP_CONTENT_DIR . '/uploads/notes.sql', 'rows' );
file_put_contents( WP_CONTENT_DIR . '/uploads/wp-config-old/a.txt', 'text' );
file_put_contents( WP_CONTENT_DIR . '/uploads/a.txt', 'text' );
symlink( '/no/such/place', WP_CONTENT_DIR . '/uploads/gone.log' );
echo $user->user_login;
"""


def free_port():
    """Returns a free port below the ephemeral range, which the kernel does not hand out for port 0."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        lowest = int(file.read().split()[0])
    for port in random.sample(range(lowest // 2, lowest), 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise Failed("no port is free")


class HeldPreview:
    """A `wp-codebox` command in the background whose sandbox stays open for a preview. A thread collects its standard error."""

    def __init__(self, bench, *arguments, seconds=40):
        self.bench = bench
        self.arguments = bench.run_arguments("--preview-hold", f"{seconds}s", *arguments)
        self.process = bench.start(self.arguments)
        self.stderr = ""
        self.changed = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stderr:
            with self.changed:
                self.stderr += line.decode("utf-8", "replace")
                self.changed.notify_all()
        with self.changed:
            self.stderr += "\0"
            self.changed.notify_all()

    def address(self, seconds=150):
        """Waits for the printed preview link and returns it."""
        found = lambda: re.search(r"^preview (\S+) until ", self.stderr, re.M)  # noqa: E731
        with self.changed:
            self.changed.wait_for(lambda: found() or "\0" in self.stderr, seconds)
        must(found(), f"the run printed no preview link: {self.stderr!r}")
        return found().group(1)

    @property
    def port(self):
        return int(re.search(r":(\d+)/", self.address()).group(1))

    def run_id(self):
        """Returns the id of the run whose preview has this port."""
        answer = self.bench.call("runs", "list", "--state", self.bench.state, "--site", self.bench.site, "--status", "running", "--json")
        for row in answer.json["runs"]:
            events = self.bench.call("runs", "events", (row.get("run_id") or row["runId"]), "--state", self.bench.state, "--site", self.bench.site, "--json").json["events"]
            if any(e["data"].get("type") == "preview" and f":{self.port}" in e["data"].get("localUrl", "") for e in events):
                return (row.get("run_id") or row["runId"])
        raise Failed("no run has this preview")

    def supervisor(self):
        """Returns the pid of the process that listens on the preview's port."""
        wanted = f"{self.port:04X}"
        inodes = set()
        with open("/proc/net/tcp", encoding="ascii") as table:
            for row in table.read().splitlines()[1:]:
                fields = row.split()
                if fields[1].endswith(":" + wanted) and fields[3] == "0A":
                    inodes.add(f"socket:[{fields[9]}]")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                names = os.listdir(f"/proc/{pid}/fd")
            except OSError:
                continue
            for name in names:
                # The process may close a descriptor during the scan.
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{name}") in inodes:
                        return int(pid)
        raise Failed("no process listens on the preview's port")

    def end(self, seconds=120):
        """Waits for the command to end and returns its output."""
        output = self.process.stdout.read()
        self.process.wait(timeout=seconds)
        return Answer(self.arguments, self.process, output, self.stderr.encode())

    def cancel(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.end()


def control_request(bench, run, request):
    """Sends a request to a run's control socket and returns the final frame."""
    return live.ask(os.path.join(bench.state, "sites", bench.site, "runs", run), request)


class Page:
    """One HTTP response of the preview."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def header(self, name):
        return [value for key, value in self.headers if key.lower() == name]

    def __str__(self):
        return f"{self.status} {self.headers} {self.body[:300]!r}"


def http_request(port, path, method="GET", host=None, headers=None, body=None, address="127.0.0.1"):
    connection = http.client.HTTPConnection(address, port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host or f"{address}:{port}")
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
            connection.putheader("Content-Type", "application/x-www-form-urlencoded")
        connection.endheaders(body)
        answer = connection.getresponse()
        return Page(answer.status, answer.getheaders(), answer.read())
    finally:
        connection.close()


SECURITY_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-robots-tag": "noindex, nofollow",
}


def check_security_headers(page):
    for name, value in SECURITY_HEADERS.items():
        must(page.header(name) == [value], f"{name} is {page.header(name)} in {page}")
    policies = page.header("content-security-policy")
    must(any(p.startswith("sandbox allow-scripts allow-forms allow-same-origin; default-src 'self'") for p in policies), str(page))
    return page


def connection_refused(port, address="127.0.0.1"):
    """Whether the kernel refuses connections to the port because no process listens."""
    try:
        socket.create_connection((address, port), timeout=60).close()
        return False
    except ConnectionRefusedError:
        return True


def document(answer, name):
    """Returns the JSON document with this file name in the bundle of a run."""
    with open(os.path.join(answer.json["artifacts"]["directory"], name), encoding="utf-8") as file:
        return json.load(file)


#: Held sandboxes and other values that several cases share, by name.
_SHARED = {}


def shared(name, make):
    """Returns the value that `make` returned at the first call with this name."""
    if name not in _SHARED:
        _SHARED[name] = make()
    return _SHARED[name]


def close_shared():
    """Ends the shared sandboxes of this process."""
    for made in _SHARED.values():
        if isinstance(made, HeldPreview) and made.process.poll() is None:
            made.cancel()
