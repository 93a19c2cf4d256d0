"""The supervisor as a socket-activated service: connections, permitted peers and unit files."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

from harness import must, poll_until, skip_unless_root
from harness.frames import PROTOCOL, SupervisorClient
from harness.service import Activator, first_reply

UNITS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "systemd")
FORBIDDEN = ("RestrictNamespaces", "PrivateUsers", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectProc", "ProcSubset",
             "PrivateDevices", "ProtectControlGroups", "SystemCallFilter", "RestrictSUIDSGID", "RestrictAddressFamilies",
             "MemoryDenyWriteExecute", "ProtectHome", "ProtectSystem", "PrivateTmp")


def test_socket_activated_supervisor_serves_attached_and_detached_runs(bench):
    with Activator(bench) as service:
        run = SupervisorClient(bench, "echo x > x.txt; echo ready", checks=["test -f x.txt"]).connect(service.address).accepted()
        last = run.last()
        must(last["type"] == "result" and last["result"]["outcome"] == "succeeded", json.dumps(last)[:600])
        # The supervisor reads the limits of the group back as the owner of the state, below the umask of the unit.
        memory = next(row for row in last["result"]["isolation"]["axes"] if row["axis"] == "memory")
        must(memory["enforced"] == "enforced" or os.geteuid() != 0, json.dumps(memory))
        must(last["result"]["cost"]["group"]["memory_peak_bytes"] > 0 or os.geteuid() != 0, json.dumps(last["result"]["cost"]))
        # Two callers close their connections: the caller of an attached run and the caller of a detached run.
        left = SupervisorClient(bench, "echo ready; sleep 60").connect(service.address).accepted()
        stays = SupervisorClient(bench, "echo ready; sleep 2; echo y > y.txt", mode="detached").connect(service.address).accepted()
        for one in (left, stays):
            one.until("runtime.command.output", "ready")
            one.close()
        must(left.await_end()["outcome"] == "cancelled", "the attached run continued without its caller")
        must(stays.await_end()["outcome"] == "succeeded", "the detached run ended with its caller")


def test_service_starts_runs_only_for_its_own_user_and_root(bench):
    """Independent of the socket's mode, only peers with uid 0 or the service's uid may start runs."""
    if os.geteuid() != 0:
        skip_unless_root("other users")
    with Activator(bench, user=bench.owner) as service:
        for user, allowed in ((None, True), (bench.owner, True), ("nobody", False)):
            run = SupervisorClient(bench, "true")
            shutil.copytree(run.request["mounts"][0]["source"], os.path.join(bench.directory, "open"), dirs_exist_ok=True)
            frame = first_reply(service.address, {"type": "start", "protocol": PROTOCOL, "request": run.request}, user)
            if allowed:
                must(frame["type"] == "accepted", f"{user}: {frame}")
            else:
                must(frame["type"] == "error" and frame["error"]["code"] == "wp_codebox_forbidden", f"{user}: {frame}")
                must(not os.path.exists(run.directory), "a refused peer's run has a directory")


def test_service_that_gets_a_listening_socket_instead_of_a_connection_exits_with_an_error(bench):
    """With Accept=no systemd passes the listening socket; the service reports that and exits."""
    note = os.path.join(bench.directory, "exit-status")
    with Activator(bench, "sh", "-c", f"{bench.environment['CODEBOX']} supervise; echo $? > {note}", accept=False) as service:
        run = SupervisorClient(bench, "true")
        try:
            run.connect(service.address)
        except OSError:
            pass
        poll_until(lambda: os.path.exists(note) and os.path.getsize(note), bool, 60)
        with open(note, encoding="utf-8") as file:
            must(file.read().strip() == "126", "the supervisor accepted a listening socket as connection")
        run.close()


def test_sigterm_to_the_service_cancels_its_run_and_returns_the_changes(bench):
    """Stopping the unit sends SIGTERM to the supervisor only."""
    with Activator(bench) as service:
        run = SupervisorClient(bench, "echo x > x.txt; echo ready; sleep 60", mode="detached").connect(service.address).accepted()
        run.until("runtime.command.output", "ready")
        supervisors = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if parent(pid) == service.process.pid]
        must(len(supervisors) == 1, str(supervisors))
        began = time.monotonic()
        os.kill(int(supervisors[0]), signal.SIGTERM)
        last = run.last()
        must(last["result"]["outcome"] == "cancelled" and len(last["result"]["changed_files"]) == 1, json.dumps(last)[:400])
        must(time.monotonic() - began < 30, "too slow for a stop")


def parent(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


def test_systemd_units_pass_systemd_analyze_verify_and_set_no_key_that_breaks_guests(bench):
    socket, service = (os.path.join(UNITS, name) for name in ("wp-codebox.socket", "wp-codebox@.service"))
    with open(socket, encoding="utf-8") as file:
        socket_text = file.read()
    with open(service, encoding="utf-8") as file:
        service_text = file.read()
    for key in FORBIDDEN:
        must(not re.search(rf"^{key}=", service_text, re.MULTILINE), f"{key} breaks the guest")
    for text, lines in ((socket_text, ("Accept=yes", "SocketGroup=wp-codebox", "SocketMode=0660", "TriggerLimitIntervalSec=0")),
                        (service_text, ("KillMode=mixed", "Delegate=memory pids cpu", "OOMPolicy=continue", "NoNewPrivileges=yes"))):
        for line in lines:
            must(re.search(rf"^{line}$", text, re.MULTILINE), f"{line} is missing")
    must(not re.search(r"^(User|SocketUser)=", socket_text + service_text, re.MULTILINE), "the socket is root's, and the service starts as root")
    if not shutil.which("systemd-analyze"):
        skip_unless_root("systemd-analyze")
    place = os.path.join(bench.directory, "units")
    os.makedirs(place, exist_ok=True)
    shutil.copy(socket, place)
    # The unit names /usr/bin; the test program has another path.
    with open(os.path.join(place, "wp-codebox@.service"), "w", encoding="utf-8") as file:
        file.write(service_text.replace("/usr/bin/wp-codebox", bench.environment["CODEBOX"]))
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", os.path.join(place, "wp-codebox.socket"),
                              os.path.join(place, "wp-codebox@.service")], capture_output=True, text=True, check=False)
    said_of_us = [line for line in checked.stderr.splitlines() if place in line and "DelegateSubgroup" not in line]
    must(not said_of_us, "\n".join(said_of_us))
