"""The service stops and starts again: its sandboxes go on, and nothing that it acknowledged is lost."""

import contextlib
import http.client
import os
import random
import signal
import socket
import subprocess
import threading

from harness import copy_descriptors, must, poll_until, skip_unless_root
from service import Service, kill_supervisor, supervisor

#: How often the test kills the server or supervisors.
KILLS = int(os.environ.get("CODEBOX_KILLS") or 10)


def test_graceful_stop_leaves_sandboxes_running_and_a_restart_finds_them(bench, service):
    one = Service(bench, "graceful", like=prepared(service)).start()
    sandbox = one.create()["id"]
    one.sh(sandbox, "echo kept > new.txt")
    pid = supervisor(one, sandbox)
    must(one.stop() == 0, f"the exit status of a graceful stop: {one.output()}")
    must(pid and supervisor(one, sandbox) == pid, "the supervisor ended with the server")
    one.start()
    must(one.state_of(sandbox) in ("ready", "active"), "the restarted server lost the sandbox")
    must(one.sh(sandbox, "cat new.txt") == "kept\n", "the sandbox has another state")
    kill_supervisor(one, sandbox)
    must(one.await_state(sandbox, "failed") == "failed", "the dead supervisor is not noticed")
    one.close()


def test_command_line_and_service_see_the_same_sandboxes(service):
    sandbox = service.create()["id"]
    seen = service.cli("get", sandbox).expect(0).json
    must(seen["state"] in ("ready", "active") and seen["identity"]["profile"] == "profile.test", f"{seen}")
    must(seen["identity"]["actor"].startswith("adm:"), f"{seen}")
    must(sandbox in [row["id"] for row in service.cli("list").expect(0).json["sandboxes"]], "the list of the command line")
    snapshot = service.cli("snapshot", sandbox, "--name", "by-command").expect(0).json
    must(snapshot["id"] in [row["snapshot"]["id"] for row in service.get("/v1/snapshots").json["snapshots"]], "the service does not see the snapshot")
    service.cli("destroy", sandbox).expect(0)
    must(service.await_state(sandbox, "destroyed") == "destroyed", "the service does not see the end")
    service.delete(f"/v1/snapshots/{snapshot['id']}").expect(200)


def test_second_server_on_a_state_directory_is_refused_until_the_first_one_is_killed(bench, service):
    first, lock = Service(bench, "locked", like=prepared(service)).start(), os.path.join("service", "service.lock")
    try:
        refused = bench.call(*first.words()).expect(125)
        must("[wp_codebox_service_unavailable]" in refused.stderr and "stop the other server" in refused.stderr, f"{refused}")
        if os.geteuid() != 0:
            skip_unless_root("to copy a descriptor of the server")
        # A copy as in a child process of the killed server that has not yet executed its program.
        [copy] = copy_descriptors(first.process.pid, os.path.join(first.state, lock))
        try:
            first.stop(signal.SIGKILL)
            first.start()
        finally:
            os.close(copy)
    finally:
        first.close()


def prepared(service):
    """Builds a missing template by creating and deleting a sandbox. Returns the service."""
    if not os.path.isdir(os.path.join(service.state, "templates")):
        service.delete(f"/v1/sandboxes/{service.create()['id']}")
    return service


class Runner:
    """The socket of `--runner-socket`. The case decides when a supervisor reads the request of each connection."""

    def __init__(self, bench):
        self.bench, self.path, self.started = bench, os.path.join(bench.directory, "runner.sock"), []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        # The server runs as another user than this process when root runs the suite.
        os.chmod(self.path, 0o666)
        self.listener.listen()
        self.listener.settimeout(60)

    def request(self):
        """Returns the next connection after its whole request has arrived."""
        connection, _ = self.listener.accept()
        connection.settimeout(60)
        poll_until(lambda: connection.recv(1 << 20, socket.MSG_PEEK), lambda seen: b"\n" in seen, 60, "no request")
        return connection

    def supervise(self, connection):
        os.set_inheritable(connection.fileno(), True)
        words = [self.bench.environment["CODEBOX"], "supervise", f"--frames-fd={connection.fileno()}"]
        process = subprocess.Popen(words, pass_fds=[connection.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env={"PATH": "/usr/bin:/bin"}, start_new_session=True)
        connection.close()
        self.started.append(process)
        return process

    def close(self):
        self.listener.close()
        for process in self.started:
            process.wait(60)


def test_sandbox_whose_server_was_killed_before_its_supervisor_read_the_request_runs_once(bench, service):
    runner = Runner(bench)
    one = Service(bench, "caught", "--runner-socket", runner.path, like=prepared(service)).start()
    try:
        sandbox = one.create(wait=None)["id"]
        first = runner.request()
        one.stop(signal.SIGKILL)
        one.start()
        # The restarted server requests the run again, because it cannot know that a supervisor will read the first request.
        second = runner.request()
        runner.supervise(first)
        poll_until(lambda: supervisor(one, sandbox), bool, 60, "the first supervisor did not start the run")
        refused = runner.supervise(second)
        must(one.await_state(sandbox, "ready", "failed") == "ready", f"{one.get(f'/v1/sandboxes/{sandbox}')}")
        must(refused.wait(60) != 0 and runner.started[0].poll() is None, "two supervisors run, or the wrong one")
        must(one.sh(sandbox, "echo once") == "once\n", "the sandbox cannot be used")
        # Its parameters are stored, so it can be recreated.
        must(os.path.exists(os.path.join(one.state, "sites", "cli", "sandboxes", f"{sandbox}.json")), "its parameters are not stored")
    finally:
        one.close()
        runner.close()


class Client(threading.Thread):
    """Creates and destroys sandboxes, and notes what the service acknowledged."""

    def __init__(self, service, number, stop):
        super().__init__(daemon=True)
        self.service, self.number, self.ending = service, number, stop
        self.acknowledged, self.destroyed, self.lost = {}, set(), []

    def run(self):
        count = 0
        while not self.ending.is_set():
            key = f"client-{self.number}-{count}"
            count += 1
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = self.service.post("/v1/sandboxes", {"profile": "profile.test"}, headers={"Idempotency-Key": key})
                if answer.status not in (201, 202):
                    continue
                sandbox = answer.json["id"]
                # A repeated request has the same answer, also after a crash in between.
                self.acknowledged[sandbox] = key
                poll_until(lambda sandbox=sandbox: self.ending.is_set() or self.seen(sandbox) in ("ready", "active", "failed", "destroyed"), bool, 240)
                gone = self.service.delete(f"/v1/sandboxes/{sandbox}")
                if gone.status == 200:
                    self.destroyed.add(sandbox)

    def seen(self, sandbox):
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = self.service.get(f"/v1/sandboxes/{sandbox}")
            if answer.status == 404:
                self.lost.append(sandbox)
                self.ending.set()
            return answer.json.get("state") if answer.status == 200 else None
        return None


def test_no_acknowledged_creation_or_deletion_of_a_sandbox_is_lost_when_server_and_supervisors_are_killed(bench, service):
    one = Service(bench, "killed", like=prepared(service)).start()
    try:
        choice, stop = random.Random(4711), threading.Event()
        clients = [Client(one, number, stop) for number in range(2)]
        for client in clients:
            client.start()
        for number in range(KILLS):
            # Waits for an acknowledged request since the last kill, so that each kill interrupts work.
            before = sum(len(client.acknowledged) for client in clients)
            poll_until(lambda before=before: stop.is_set() or sum(len(client.acknowledged) for client in clients) > before, bool, 240, "no request succeeds")
            if stop.is_set():
                break
            living = [sandbox for client in clients for sandbox in list(client.acknowledged) if sandbox not in client.destroyed]
            if number % 3 == 2 and living:
                kill_supervisor(one, choice.choice(living))
            else:
                one.stop(signal.SIGKILL)
                one.start()
        stop.set()
        for client in clients:
            client.join(300)
            must(not client.is_alive(), "a client did not end")
            must(not client.lost, f"acknowledged and lost: {client.lost}")
        rows = {row["id"]: row["state"] for row in one.sandboxes()}
        for client in clients:
            for sandbox, key in client.acknowledged.items():
                must(sandbox in rows, f"{sandbox} was acknowledged and is lost")
                again = one.post("/v1/sandboxes", {"profile": "profile.test"}, headers={"Idempotency-Key": key}).expect(201, 202, 200)
                must(again.json["id"] == sandbox, f"the key {key} made a second sandbox")
            for sandbox in client.destroyed:
                must(rows[sandbox] in ("destroyed", "failed"), f"{sandbox} was destroyed and is {rows[sandbox]}")
        # No sandbox runs that the service does not know.
        known = set(rows)
        running = {row["id"] for row in one.cli("list", "--limit", "200").expect(0).json["sandboxes"] if row["state"] != "destroyed"}
        must(running <= known, f"sandboxes without a record: {running - known}")
        for sandbox in running:
            one.delete(f"/v1/sandboxes/{sandbox}")
    finally:
        # A failed case leaves no sandboxes.
        one.close()
