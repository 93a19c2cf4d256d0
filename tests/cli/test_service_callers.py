"""Requests of another user to a service that root started: what they name is never opened, executed or trusted as root.

The attacks on each field of a request are in test_request_fields.py.
"""

import json
import os
import secrets
import shutil
import subprocess
import tempfile

from harness import must, poll_until
from harness.callers import ask, code, connect_as, flipping, give, root_only
from harness.frames import SupervisorClient
from harness.service import Activator
from harness.templates import seed_template

# Requests while a name changes.
TRIES = 5


def path(name, value):
    return lambda request: request["paths"].__setitem__(name, value)


def test_launcher_of_the_services_configuration_is_used_unless_other_users_could_replace_it(bench):
    root_only()
    e = bench.environment
    # The values of the service itself may be repeated, and the service may be given others.
    copy = os.path.join(bench.directory, "other-launch")
    shutil.copy(e["CODEBOX_LAUNCH"], copy)
    with Activator(bench, e["CODEBOX"], "supervise", "--launcher", copy, "--php", "/opt/other/php") as service:
        must(code(ask(bench, service, path("launcher", copy), bench.owner)[1]) == "result", "a launcher of the service's configuration")
        must(code(ask(bench, service, lambda request: None, bench.owner)[1]) == "wp_codebox_forbidden", "a launcher that the service does not have")
    # A launcher that another user could replace is not started as root, even if the operator names it.
    shutil.chown(copy, bench.owner)
    with Activator(bench, e["CODEBOX"], "supervise", "--launcher", copy) as service:
        must(code(ask(bench, service, path("launcher", copy), bench.owner)[1]) == "wp_codebox_forbidden", "a launcher that its owner can replace")


def test_extension_and_service_have_the_same_default_programs(bench):
    """So the packaged service accepts the requests of PHP without any setting."""
    program = os.path.join(tempfile.mkdtemp(dir=bench.directory), "wp-codebox")
    shutil.copy(bench.environment["CODEBOX"], program)
    shown = subprocess.run([program, "config", "--json"], check=True, capture_output=True, env={"PATH": "/usr/bin:/bin"}, timeout=60).stdout
    service = {row["name"]: row["value"] for row in json.loads(shown)["settings"]}
    code_of = ";".join(f"echo ini_get('wp_codebox.{name}'), PHP_EOL" for name in ("launcher", "share_dir", "php_binary", "outer_sandbox_program"))
    sent = subprocess.run([bench.environment["CODEBOX_PHP"], "-n", "-d", f"extension={bench.environment['CODEBOX_SO']}", "-r", code_of + ";"],
                          check=True, capture_output=True, text=True, timeout=60).stdout.split("\n")
    must(sent[:4] == [service["launcher"], service["share"], service["php"], ""], f"{sent}: {service}")


def listing(directory):
    return sorted((os.path.join(at, name), os.lstat(os.path.join(at, name)).st_uid) for at, names, files in os.walk(directory) for name in names + files)


def private_state(parent, user):
    """Makes a state directory of this user."""
    state = os.path.join(parent, "state")
    os.makedirs(state)
    give(state, user)
    os.chmod(state, 0o700)
    return state


def test_state_directory_flipped_to_that_of_another_user_is_neither_used_nor_changed(bench):
    root_only()
    place = tempfile.mkdtemp(dir=bench.directory)
    shutil.chown(place, bench.owner)
    os.chmod(place, 0o755)
    mine, theirs, link = (os.path.join(place, name) for name in ("mine", "theirs", "link"))
    seed_template(private_state(mine, bench.owner))
    state = private_state(theirs, "nobody")
    # The record of a run that a process of root removes at the end, by a path in the state directory.
    with Activator(bench) as service:
        before = listing(state)
        with flipping(link, mine, theirs, user=bench.owner):
            for _ in range(TRIES):
                ask(bench, service, path("state_dir", os.path.join(link, "state")), bench.owner)
        must(listing(state) == before, "the state directory of another user changed")
        os.mkdir(os.path.join(state, "cgroups"))
        os.symlink(mine, link)
        run = SupervisorClient(bench, "echo ready; read x < /dev/zero || sleep 60; true")
        run.request["paths"]["state_dir"] = os.path.join(link, "state")
        run.socket = connect_as(service.address, bench.owner)
        run.begin().accepted().until("runtime.command.output", "ready")
        record = os.path.join(state, "cgroups", run.run_id)
        with open(record, "w", encoding="utf-8"):
            pass
        os.unlink(link)
        os.symlink(theirs, link)
        run.send({"type": "cancel"})
        run.last()
        run.close()
        poll_until(lambda: of_run(run.run_id), lambda left: not left)
        must(os.path.exists(record), "a process of root removed a file through the caller's link")


def of_run(run_id):
    """Returns the processes with the id of the run in their command line: the reaper of its cgroups."""
    return [pid for pid in filter(str.isdigit, os.listdir("/proc")) if run_id in command_line(pid)]


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def test_root_service_trusts_no_record_and_no_directory_in_the_state_directory_of_a_caller(bench):
    root_only()
    place = tempfile.mkdtemp(dir=bench.directory)
    os.chmod(place, 0o755)
    state = private_state(place, bench.owner)
    seed_template(state)
    # A cgroup that belongs to another run, named in a record of the caller's.
    run_id = "run_" + secrets.token_hex(16)
    with open("/proc/self/cgroup", encoding="ascii") as file:
        memory = next((line.strip().split(":")[2] for line in file if ":memory:" in line), None)
    group = f"/sys/fs/cgroup/memory{memory}" if memory else "/sys/fs/cgroup"
    group = os.path.join(group, f"wp-codebox-{run_id}")
    os.mkdir(group)
    try:
        records = os.path.join(state, "cgroups")
        os.mkdir(records)
        record = os.path.join(records, run_id)
        with open(record, "w", encoding="utf-8") as file:
            file.write(group + "\n")
        for name in (records, record):
            shutil.chown(name, bench.owner)
        with Activator(bench) as service:
            _, frames = ask(bench, service, path("state_dir", state), bench.owner)
            must(code(frames) == "result", str(frames[-1]))
            must(os.path.isdir(group), "root removed a cgroup that a record of the caller's names")
            # Control: for a request of root's, the record is followed.
            ask(bench, service, path("state_dir", state), None)
            must(not os.path.isdir(group), "control: the record is not followed for root")
            # A directory of root's with the name that the service uses.
            shutil.rmtree(records)
            os.mkdir(records, 0o700)
            _, frames = ask(bench, service, path("state_dir", state), bench.owner)
            must(os.stat(records).st_uid == 0, "root gave a directory of its own to the caller")
    finally:
        if os.path.isdir(group):
            os.rmdir(group)


def test_caller_that_disconnects_leaves_no_process_of_root_and_no_record(bench):
    """The reaper of the cgroups, which keeps root, removes the record of the cgroups as the caller, and ends."""
    root_only()
    with Activator(bench) as service:
        run = SupervisorClient(bench, "echo ready; sleep 60")
        run.socket = connect_as(service.address, bench.owner)
        run.begin().accepted().until("runtime.command.output", "ready")
        run.close()
        poll_until(lambda: of_run(run.run_id), lambda left: not left)
        must(not os.path.exists(os.path.join(bench.state, "cgroups", run.run_id)), "the record of the cgroups is left")


def test_serve_reads_the_price_table_of_the_state_directory_with_the_rights_of_its_owner(bench):
    root_only()
    place = tempfile.mkdtemp(dir=bench.directory)
    os.chmod(place, 0o755)
    state = private_state(place, bench.owner)
    secret = os.path.join(place, "secret")
    with open(secret, "w", encoding="utf-8") as file:
        file.write("not a price table\n")
    os.symlink(secret, os.path.join(state, "meter-prices.json"))
    serve = lambda: bench.call("serve", *bench.paths(state), "--credits").stderr  # noqa: E731
    must("Permission denied" not in serve(), "control: the link leads to a file that everybody may read")
    os.chmod(secret, 0o600)
    must("Permission denied" in serve(), "root read a file of its own through the owner's link")


def test_node_creates_the_directory_of_layers_only_where_no_other_user_chooses_the_place(bench):
    root_only()
    place = tempfile.mkdtemp(dir=bench.directory)
    os.chmod(place, 0o755)
    home, closed = os.path.join(place, "home"), os.path.join(place, "of-root")
    state = private_state(home, bench.owner)
    os.mkdir(closed, 0o755)
    os.symlink(closed, os.path.join(home, "link"))
    give(home, bench.owner)

    def made(layers):
        # No message server answers, so the node ends after it has opened the directory.
        bench.call("node", "--name", "one", "--nats", "nats://127.0.0.1:9", *bench.paths(state)[2:], "--layers", layers)
        return os.stat(layers).st_uid if os.path.isdir(layers) else None

    owner = os.stat(state).st_uid
    must(made(os.path.join(home, "layers")) == owner, "control: no directory in one of the owner's")
    must(made(os.path.join(closed, "layers")) == owner, "control: no directory in one of root's")
    must(made(os.path.join(home, "link", "more")) is None, "root created a directory through a link of the owner")
    # A directory of root's in which the owner may not create, but in a place where other users can rename it.
    os.chmod(closed, 0o775)
    must(made(os.path.join(closed, "again")) is None, "root created a directory where a group may replace it")
