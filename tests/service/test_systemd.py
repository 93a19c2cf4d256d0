"""The units of packaging/systemd for a service, under a real systemd."""

import os
import pwd

from harness import must, poll_until
from harness.systemd import Machine, command, state_of
from service import Service, supervisor

#: Connects 300 times, more often than systemd's default limit of triggers.
CONNECTIONS = """
import socket
for number in range(300):
    with socket.socket(socket.AF_UNIX) as one:
        one.connect("/run/wp-codebox/runner.sock")
print(number + 1)
"""


def test_systemd_service_starts_sandboxes_as_units_of_their_own_that_survive_its_restart(bench, service):
    service.delete(f"/v1/sandboxes/{service.create()['id']}")
    one = Service(bench, "booted", like=service)
    one.socket = os.path.join(one.state, "service", "api.sock")
    # The command and the owner of docs/service.md; only the paths of this checkout are added.
    paths = bench.paths("/")
    at = paths.index("--state")
    machine = Machine(bench, "systemd", one.state, {
        "wp-codebox.socket": "",
        "wp-codebox-serve.service": f"{state_of(bench.owner)}ExecStart=\n{command('wp-codebox-serve.service')} {' '.join(paths[:at] + paths[at + 2:])}\n",
    })
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
        # A user who connects often does not stop the socket for the others.
        must(machine.inside("setpriv", f"--reuid={bench.owner}", f"--regid={bench.owner}", "--clear-groups", "/usr/bin/python3", "-c", CONNECTIONS) == "300", "not connected")
        must(machine.control("is-active", "wp-codebox.socket") == "active", "the socket stopped")
        runs = lambda: machine.control("list-units", "--no-legend", "--plain", "wp-codebox@*").splitlines()
        poll_until(lambda: len(runs()) == 1, bool, 120, "the services of the connections do not end")
        later = one.create()["id"]
        must(one.sh(later, "echo still") == "still\n", "no sandbox after many connections")
        one.delete(f"/v1/sandboxes/{later}").expect(200)
        one.delete(f"/v1/sandboxes/{sandbox}").expect(200)
        must(machine.control("list-units", "--failed", "--no-legend", "--plain") == "", machine.control("list-units", "--failed"))
    finally:
        one.process = None
        machine.close()
