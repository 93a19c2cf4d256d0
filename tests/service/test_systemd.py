"""The units of packaging/systemd for a service, under a real systemd."""

import os
import pwd

from harness import must, poll_until
from harness.systemd import Machine, command
from service import Service, supervisor


def test_systemd_service_starts_sandboxes_as_units_of_their_own_that_survive_its_restart(bench, service):
    service.delete(f"/v1/sandboxes/{service.create()['id']}")
    one = Service(bench, "booted", like=service)
    one.socket = os.path.join(one.state, "service", "api.sock")
    # The command and the owner of docs/service.md; only the paths of this checkout are added.
    paths = bench.paths("/var/lib/wp-codebox")
    at = paths.index("--state")
    machine = Machine(bench, "systemd", one.state, {
        "wp-codebox.socket": f"[Socket]\nSocketUser={bench.owner}\n",
        "wp-codebox-serve.service": f"[Service]\nExecStart=\n{command('wp-codebox-serve.service')} {' '.join(paths[:at] + paths[at + 2:])}\n",
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
        one.delete(f"/v1/sandboxes/{sandbox}").expect(200)
        must(machine.control("list-units", "--failed", "--no-legend", "--plain") == "", machine.control("list-units", "--failed"))
    finally:
        one.process = None
        machine.close()
