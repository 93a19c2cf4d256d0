"""Requests of another user to a service that root started: what they name is never opened, executed or trusted as root.

A second process of the caller flips each name between two files while the service handles requests. The controls send the same
request as root, whose names the service follows: they show what the flipped name would do with root's rights.
"""

import contextlib
import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile

from harness import must, poll_until, skip_unless_root
from harness.frames import SupervisorClient
from harness.service import Activator
from harness.templates import seed_template

# Requests per flipped name. The old check lost one race in four.
TRIES = 25
FLIPPER = """
import os, sys
link, *targets = sys.argv[1:]
print(flush=True)
while True:
    for target in targets:
        os.symlink(target, link + ".new")
        os.rename(link + ".new", link)
"""


def root_only():
    if os.geteuid() != 0:
        skip_unless_root("a service of root with callers of another user")


def setpriv(user):
    return ["setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}", "--clear-groups"]


def connect_as(address, user):
    """Returns a connection whose peer credentials, as the service reads them, are those of this user."""
    ours, theirs = socket.socketpair()
    program = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
               "socket.send_fds(socket.socket(fileno=0), [b'x'], [s.fileno()])\n")
    subprocess.run([*setpriv(user), sys.executable, "-c", program, address], stdin=theirs, check=True, timeout=60)
    theirs.close()
    _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    return socket.socket(fileno=descriptors[0])


def ask(bench, service, change, user, script="true"):
    """Sends a request as this user, as root if None. Returns the client and all frames of the answer."""
    run = SupervisorClient(bench, script)
    change(run.request)
    if user is None:
        run.connect(service.address)
    else:
        run.socket = connect_as(service.address, user)
        with contextlib.suppress(BrokenPipeError):
            run.begin()
    frames = []
    while (frame := run.frame()) is not None:
        frames.append(frame)
    run.close()
    must(frames, "the service sent no answer")
    return run, frames


def code(frames):
    return frames[-1].get("error", {}).get("code", frames[-1]["type"])


@contextlib.contextmanager
def flipping(link, *targets, user):
    """Keeps a link changing between the targets in a process of this user."""
    process = subprocess.Popen([*setpriv(user), sys.executable, "-c", FLIPPER, link, *targets], stdout=subprocess.PIPE)
    try:
        must(process.stdout.readline() == b"\n", "the flipping process did not start")
        yield
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    for path in (link, link + ".new"):
        if os.path.lexists(path):
            os.unlink(path)


class Trap:
    """A program of the caller that writes down the user that executes it."""

    def __init__(self, bench):
        self.place = tempfile.mkdtemp(dir=bench.directory)
        shutil.chown(self.place, bench.owner)
        os.chmod(self.place, 0o755)
        self.marks = os.path.join(self.place, "marks")
        os.mkdir(self.marks)
        os.chmod(self.marks, 0o1777)
        self.program = os.path.join(self.place, "trap")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexec /usr/bin/touch {self.marks}/$(/usr/bin/id -u)-$$\n")
        os.chmod(self.program, 0o755)
        shutil.chown(self.program, bench.owner)
        self.link = os.path.join(self.place, "name")

    def users(self):
        return sorted({int(name.split("-")[0]) for name in os.listdir(self.marks)})


def path(name, value):
    return lambda request: request["paths"].__setitem__(name, value)


def test_program_that_a_caller_names_is_never_executed_by_a_root_service(bench):
    """Launcher, PHP, browser, share directory and process wrapper come from the configuration of the service."""
    root_only()

    def wrapper(program):
        return lambda request: request.__setitem__("outer_sandbox", {"kind": "bubblewrap", "program": program, "need": "required"})

    e = bench.environment
    own = os.stat(bench.state).st_uid
    with Activator(bench) as service:
        # Control: the service executes what root names, and the trap notices it.
        trap = Trap(bench)
        os.symlink(trap.program, trap.link)
        ask(bench, service, path("launcher", trap.link), None)
        must(0 in trap.users(), f"control: the launcher of root's request ran as {trap.users()}")
        trap = Trap(bench)
        ask(bench, service, wrapper(trap.program), None)
        must([uid for uid in trap.users() if uid not in (0, own)], f"control: the wrapper of root's request ran as {trap.users()}")
        must(code(ask(bench, service, lambda request: None, bench.owner)[1]) == "result", "control: the caller's plain request")
        for field, change, real in (
                ("paths.launcher", lambda name: path("launcher", name), e["CODEBOX_LAUNCH"]),
                ("outer_sandbox.program", wrapper, "/usr/bin/bwrap"),
                ("paths.php_binary", lambda name: path("php_binary", name), e["CODEBOX_PHP"]),
                ("paths.browser", lambda name: path("browser", name), "/usr/bin/chromium"),
                ("paths.share_dir", lambda name: path("share_dir", name), e["CODEBOX_SHARE"])):
            trap = Trap(bench)
            with flipping(trap.link, real, trap.program, user=bench.owner):
                for _ in range(TRIES):
                    _, frames = ask(bench, service, change(trap.link), bench.owner)
                    must(not trap.users(), f"{field}: the caller's program ran as {trap.users()}")
                    must(code(frames) == "wp_codebox_forbidden" and frames[-1]["error"]["data"]["field"] == field, f"{field}: {frames[-1]}")
                    must(frames[-1]["error"]["hints"], f"{field}: the error does not say what to do")
    # The values of the service itself may be repeated, and the service may be given others.
    copy = os.path.join(bench.directory, "other-launch")
    shutil.copy(e["CODEBOX_LAUNCH"], copy)
    with Activator(bench, e["CODEBOX"], "supervise", "--launcher", copy, "--php", "/opt/other/php") as service:
        must(code(ask(bench, service, path("launcher", copy), bench.owner)[1]) == "result", "a launcher of the service's configuration")
        must(code(ask(bench, service, lambda request: None, bench.owner)[1]) == "wp_codebox_forbidden", "a launcher that the service does not have")
    # A launcher that another user could replace is not started as root, whoever configures it.
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


def test_names_flipped_to_files_of_root_show_nothing_of_them(bench):
    """Sources of mounts, staged files, components and bundles, agents and WordPress are opened with the caller's rights."""
    root_only()
    secret = "secret-" + secrets.token_hex(8)
    place = tempfile.mkdtemp(dir=bench.directory)
    os.chmod(place, 0o755)
    closed, link = os.path.join(place, "closed"), os.path.join(place, "links", "name")
    os.mkdir(os.path.dirname(link))
    shutil.chown(os.path.dirname(link), bench.owner)
    shutil.copytree(bench.source(), os.path.join(closed, "directory"))
    for name in ("directory/lib/a.txt", "directory/plugin.php", "file.json"):
        with open(os.path.join(closed, name), "w", encoding="utf-8") as file:
            file.write(json.dumps(secret) if name.endswith("json") else f"<?php\n/* Plugin Name: Sample */\n// {secret}\n")
    core = os.path.join(closed, "directory", "wp-includes")
    os.mkdir(core)
    with open(os.path.join(core, "version.php"), "w", encoding="utf-8") as file:
        file.write(f"<?php\n$wp_version = '{secret}';\n")
    os.chmod(closed, 0o700)
    open_directory = bench.source("open")
    open_file = os.path.join(open_directory, "bundle.json")
    with open(open_file, "w", encoding="utf-8") as file:
        file.write("{}")
    script = "cat lib/a.txt; cat /run/codebox/staged/x /run/codebox/staged/agent-bundles/* /wordpress/wp-content/*plugins/*/*.php; true"

    def mount(name):
        return lambda request: request["mounts"][0].__setitem__("source", name)

    def staged(name):
        return lambda request: request["task"].__setitem__("staged_files", [{"source": name, "target": "/run/codebox/staged/x"}])

    def component(name):
        return lambda request: request.__setitem__("components", [{"slug": "sample", "source": name, "load_as": "plugin"}])

    def bundle(name):
        return lambda request: request.__setitem__("agent_bundles", [{"source": name}])

    with Activator(bench) as service:
        shows = lambda frames: secret in json.dumps(frames)  # noqa: E731
        for field, change, kind, own in (
                ("mounts.source", mount, "directory", open_directory), ("staged_files.source", staged, "file.json", open_file),
                ("components.source", component, "directory", open_directory), ("agent_bundles.source", bundle, "file.json", open_file),
                ("wordpress", lambda name: path("wordpress", name), "directory", bench.environment["CODEBOX_WORDPRESS"]),
                ("agents_dir", lambda name: path("agents_dir", name), "directory", open_directory)):
            foreign = os.path.join(closed, kind)
            if field in ("mounts.source", "staged_files.source"):
                _, frames = ask(bench, service, change(foreign), None, script)
                must(shows(frames), f"control: {field} of root's request shows nothing: {json.dumps(frames)[-1500:]}")
            with flipping(link, own, foreign, user=bench.owner):
                for _ in range(TRIES // 5):
                    _, frames = ask(bench, service, change(link), bench.owner, script)
                    must(not shows(frames), f"{field}: a file of root's was read")


def listing(directory):
    return sorted((os.path.join(at, name), os.lstat(os.path.join(at, name)).st_uid) for at, names, files in os.walk(directory) for name in names + files)


def private_state(parent, user):
    """Makes a state directory of this user."""
    state = os.path.join(parent, "state")
    os.makedirs(state)
    ids = pwd.getpwnam(user)
    subprocess.run(["chown", "-Rh", f"{ids.pw_uid}:{ids.pw_gid}", state], check=True)
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
            for _ in range(TRIES // 5):
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
