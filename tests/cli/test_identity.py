"""Kernel uid of guests, observed from the host, and its effect on mounts, limits and services.

Root can give a guest its own kernel uid, and so can a user with ids in /etc/subuid. The controls make the same calls with
`--identity shared`.
"""

import contextlib
import grp
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import zipfile

import pytest

from harness import alive, await_count, kill_and_wait, must, poll_until, running, skip_unless_root, sleeper
from harness.bundles import mount_views
from harness.frames import PROTOCOL, SupervisorClient
from harness.idmaps import FIRST, without_idmapped_mounts
from harness.processes import children, descends_from, parent
from harness.service import Activator, first_reply
from harness.templates import seed_template
from harness.users import NEWUIDMAP, PATH, unprivileged_bench

POLICY = {"network": "deny", "filesystem": "readwrite-mounts", "commands": ["command-agent-run"], "secrets": "none",
          "approvals": "never"}


def root_only():
    if os.geteuid() != 0:
        skip_unless_root("a kernel uid of its own")


def status(pid, field):
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        return next(line for line in file if line.startswith(field)).split()[1:]


def processes_of(uid):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(status(pid, "Uid:")[0]) == uid:
                found.append(int(pid))
        except (OSError, StopIteration):
            continue
    return found


def ancestors(pid, count):
    """Returns the pids of a guest program and its ancestors in this order: guest's pid 1, launcher, spawner, supervisor."""
    chain = [pid]
    while len(chain) < count:
        chain.append(parent(chain[-1]))
    return chain


def identity(answer):
    rows = answer.result["isolation"]["axes"]
    return next(row for row in rows if row["axis"] == "identity")


def attested(bench, answer):
    """Returns the axis `identity` of each guest of a run from the bundle's attestation: first the agent's guest, then the checks'."""
    path = os.path.join(bench.state, "sites", bench.site, "artifacts", answer.result["run_id"],
                        "files/runtime-evidence/run-attestation.json")
    with open(path, encoding="utf-8") as file:
        text = json.load(file)
    reports = []

    def walk(value):
        if isinstance(value, dict):
            if "axes" in value and "landlockAbi" in value:
                reports.append(next(row for row in value["axes"] if row["axis"] == "identity"))
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(text)
    return reports


def started(bench, script, *arguments):
    """Starts a run and waits for its program; returns arguments, client process and the program's host pid."""
    asked = bench.run_arguments("--mount", f"{bench.source()}:/workspace/plugin", "--agent-command", script, *arguments)
    process = bench.start(asked)
    poll_until(lambda: len(alive(script)) == 1 or process.poll() is not None, bool, 120, f"the program {script!r} was not started")
    pids = alive(script)
    must(len(pids) == 1, pids or bench.finish(asked, process))
    return asked, process, pids[0]


def test_concurrent_guests_have_distinct_kernel_uids(bench):
    root_only()
    owner = os.stat(bench.state).st_uid
    first, second = sleeper(300), sleeper(301)
    runs = [started(bench, first, "--identity", "own"), started(bench, second, "--identity", "own")]
    try:
        ids = [{int(value) for field in ("Uid:", "Gid:") for value in status(pid, field)} for _, _, pid in runs]
        must(all(len(one) == 1 for one in ids), f"real, effective and saved ids differ: {ids}")
        uids = [one.pop() for one in ids]
        must(uids[0] != uids[1] and owner not in uids and 0 not in uids, str(uids))
        must(all(status(pid, "Groups:") == [] for _, _, pid in runs), "a guest has further groups")
        shared = sleeper(302)
        _, control, pid = started(bench, shared, "--identity", "shared")
        must(int(status(pid, "Uid:")[0]) == owner, "the control has another uid")
        kill_and_wait(pid)
        control.communicate()
    finally:
        kill_and_wait(*[pid for _, _, pid in runs])
        for asked, process, _ in runs:
            bench.finish(asked, process)
    must(not processes_of(uids[0]) and not processes_of(uids[1]), "processes of an ended guest are alive")


def test_identity_axis_is_enforced_only_if_the_guest_has_an_own_uid_and_a_policy_can_require_it(bench):
    demand = ("--policy", json.dumps({**POLICY, "isolation_floors": {"identity": "enforced"}}))
    refused = bench.agent("true", "--identity", "shared", *demand).expect(125, "wp_codebox_isolation_unavailable")
    must(refused.json["error"]["data"]["missed"][0]["axis"] == "identity", str(refused))
    row = identity(bench.agent("true", "--identity", "shared").expect(0))
    must(row["enforced"] == "best-effort" and "asks for" in row["evidence"], str(row))
    root_only()
    answer = bench.agent("true", "--check", "true", *demand).expect(0)
    row = identity(answer)
    must(row["enforced"] == "enforced" and answer.result["isolation"]["level"] == "full", str(row))
    rows = attested(bench, answer)
    must(len(rows) >= 2 and all(row["enforced"] == "enforced" for row in rows), f"a later guest has another identity: {rows}")


def test_runs_with_own_and_shared_guest_uid_have_equal_content_digest_and_changed_files(bench):
    script = ("mkdir -p closed/deep gone && echo x > closed/deep/a && chmod 0 closed/deep/a && chmod 0700 closed && "
              "echo y > none && chmod 0 none && rm lib/a.txt && rm -rf lib && mkdir lib && echo z > lib/b.txt && "
              "printf '#!/bin/sh\\n' > run.sh && chmod 0755 run.sh && ln -s plugin.php link && echo '// more' >> plugin.php")
    seen = []
    for choice in ("own", "shared") if os.geteuid() == 0 else ("auto", "shared"):
        answer = bench.agent(script, "--identity", choice).expect(0)
        seen.append((answer.result["artifacts"]["contentDigest"] if "contentDigest" in answer.result["artifacts"]
                     else answer.result["artifacts"]["bundle_id"],
                     sorted((row["path"], row["status"]) for row in answer.result["changed_files"])))
    must(seen[0] == seen[1], f"{seen[0]}\n{seen[1]}")
    must(len(seen[0][1]) >= 6, str(seen))


def test_mount_source_readable_only_by_root_is_overlay_mounted_and_not_modified(bench):
    root_only()
    source = bench.source("roots")
    for directory, _, files in os.walk(source):
        os.chown(directory, 0, 0)
        os.chmod(directory, 0o700)
        for name in files:
            os.chown(os.path.join(directory, name), 0, 0)
            os.chmod(os.path.join(directory, name), 0o600)
    before = {path: os.stat(os.path.join(source, path)) for path in ("plugin.php", "lib/a.txt", "lib")}
    script = "test $(stat -c %u:%a lib) = 1000:700 && grep -q two lib/a.txt && echo four >> lib/a.txt"
    answer = bench.agent(script, "--identity", "own", source=source).expect(0)
    must(mount_views(bench, answer) == ["overlay"], str(mount_views(bench, answer)))
    must([row["status"] for row in answer.result["changed_files"]] == ["modified"], str(answer))
    for path, was in before.items():
        now = os.stat(os.path.join(source, path))
        must((now.st_uid, now.st_mode, now.st_mtime_ns) == (was.st_uid, was.st_mode, was.st_mtime_ns), f"{path} changed")
    # Control: with the shared identity the supervisor may not read the source.
    bench.agent(script, "--identity", "shared", source=source).expect(1, "wp_codebox_mount_unreadable")


def test_mount_source_with_files_of_several_owners_is_copied(bench):
    root_only()
    source = bench.source("mixed")
    os.chown(os.path.join(source, "lib", "a.txt"), 64_998, 64_998)
    answer = bench.agent("echo four >> lib/a.txt", "--identity", "own", source=source).expect(0)
    must(mount_views(bench, answer) == ["copy"], str(mount_views(bench, answer)))
    must(os.stat(os.path.join(source, "lib", "a.txt")).st_uid == 64_998, "the source changed")
    one = bench.source("one-owner")
    must(mount_views(bench, bench.agent("echo four >> lib/a.txt", "--identity", "own", source=one).expect(0)) == ["overlay"], "control")


def test_mount_source_on_file_system_without_idmapped_mounts_is_copied(bench):
    root_only()
    with without_idmapped_mounts(bench, bench.source("lower")) as source:
        answer = bench.agent("echo four >> lib/a.txt", "--identity", "own", source=source).expect(0)
    must(mount_views(bench, answer) == ["copy"] and identity(answer)["enforced"] == "enforced", str(mount_views(bench, answer)))
    must([row["status"] for row in answer.result["changed_files"]] == ["modified"], str(answer))


def test_guest_uid_is_shared_if_the_state_file_system_has_no_idmapped_mounts(bench):
    root_only()
    lower = os.path.join(bench.directory, "of-state")
    os.makedirs(os.path.join(lower, "state"), mode=0o700)
    shutil.chown(os.path.join(lower, "state"), bench.owner, bench.owner)
    seed_template(os.path.join(lower, "state"))
    with without_idmapped_mounts(bench, lower) as merged:
        state = os.path.join(merged, "state")
        row = identity(bench.agent("true", state=state).expect(0))
        must(row["enforced"] == "best-effort" and "the state directory's file system" in row["evidence"], str(row))
        refused = bench.agent("true", "--identity", "own", state=state).expect(125, "wp_codebox_isolation_unavailable")
        must("the state directory's file system" in refused.json["error"]["message"], str(refused))


def test_guest_that_builds_a_site_template_has_its_own_uid(bench):
    root_only()
    state = os.path.join(bench.directory, "fresh-state")
    os.mkdir(state, 0o700)
    shutil.chown(state, bench.owner, bench.owner)
    asked = bench.run_arguments("--agent-command", "true", "--mount", f"{bench.source()}:/workspace/plugin", state=state)
    seen = set()
    # Repeat when the install process ended before this process saw it.
    for _ in range(5):
        if seen:
            break
        shutil.rmtree(os.path.join(state, "templates"), ignore_errors=True)
        process = bench.start(asked)

        def seen_or_ended(process=process):
            for pid in alive(f"{bench.environment['CODEBOX_PHP']} /opt/codebox/guest/install.php"):
                # Another suite may build its own template at the same time.
                with contextlib.suppress(OSError, StopIteration):
                    uid = int(status(pid, "Uid:")[0])
                    if pid != process.pid and descends_from(pid, process.pid):
                        seen.add(uid)
            return seen or process.poll() is not None
        poll_until(seen_or_ended)
        bench.finish(asked, process).expect(0)
    must(len(seen) == 1 and not seen & {0, os.stat(state).st_uid}, f"WordPress was installed by {seen}")


def test_guest_uid_is_reusable_after_any_process_of_its_run_is_killed(bench):
    """With a range of one id, the next run can start only after every process with the id has ended."""
    root_only()
    only = ("--identity", "own", "--guest-ids", f"{FIRST}:1")

    for number, victim in enumerate(("program", "pid 1", "launcher", "spawner", "supervisor")):
        script = sleeper(310 + number)
        asked, process, pid = started(bench, script, *only)
        must(int(status(pid, "Uid:")[0]) == FIRST, "another id than the only one")
        kill_and_wait(ancestors(pid, 5)[number])
        bench.finish(asked, process)
        await_count(0, script)
        # Remaining processes must end before the id is allocated again.
        answer = bench.agent("true", *only)
        deadline = 200
        while answer.exit == 125 and answer.code == "wp_codebox_guest_ids_exhausted" and deadline:
            deadline -= 1
            answer = bench.agent("true", *only)
        answer.expect(0)
        must(not processes_of(FIRST), f"after the {victim} was killed: {processes_of(FIRST)}")


def test_only_the_cgroup_reaper_process_of_a_run_keeps_running_as_root(bench):
    root_only()
    owner = os.stat(bench.state).st_uid
    script = sleeper(340)
    asked, process, pid = started(bench, script, "--identity", "own")
    try:
        uid = int(status(pid, "Uid:")[0])
        chain = ancestors(pid, 5)
        must([int(status(one, "Uid:")[0]) for one in chain] == [uid, uid, uid, owner, owner], f"{chain}")
        with open(f"/proc/{chain[3]}/uid_map", encoding="utf-8") as file:
            rows = [line.split() for line in file]
        must(rows == [["0", str(owner), "1"], ["1", str(uid), "1"]], f"the spawner's namespace maps {rows}")
        roots = [one for one in children(chain[4]) if int(status(one, "Uid:")[0]) == 0]
        names = [open(f"/proc/{one}/cmdline", encoding="utf-8").read().split("\0")[1] for one in roots]
        must(names in ([], ["keep-cgroups"]), f"processes of root: {names}")
    finally:
        kill_and_wait(pid)
        bench.finish(asked, process)


def plan_version():
    """Returns PLAN_VERSION of this checkout's launcher."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../ext/core/contracts/src/plan.rs")
    with open(source, encoding="utf-8") as file:
        return int(re.search(r"PLAN_VERSION: u32 = (\d+);", file.read())[1])


class Spawner:
    """A spawner to which the test sends requests, in the role of a compromised runner."""

    def __init__(self, bench, views=()):
        plan, written = os.pipe()
        self.lifetime_read, self.lifetime = os.pipe()
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        owner = os.stat(bench.state)
        given = (plan, theirs.fileno(), self.lifetime_read)
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import os,sys\nhigh=[os.dup(int(n)+0) for n in sys.argv[2:]]\nhigh=[__import__('fcntl').fcntl(n,0,20) for n in high]\n"
             "[os.dup2(n,t) for n,t in zip(high,(3,4,5))]\nos.execv(sys.argv[1],['wp-codebox-launch','spawner'])",
             bench.environment["CODEBOX_LAUNCH"], *map(str, given)], pass_fds=given, stdin=subprocess.DEVNULL)
        theirs.close()
        os.close(plan)
        document = {"version": plan_version(), "owner": {"uid": owner.st_uid, "gid": owner.st_gid}, "guest_id": 1000,
                    "ids": {"first": FIRST + 40, "count": 4}, "locks": "/run/wp-codebox/ids", "place": "/run/wp-codebox/views",
                    "views": [{"name": f"view-{n}", "owner": {"uid": uid, "gid": uid}, "access": "read", "covered": ["lib"]} for n, (_, uid) in enumerate(views)]}
        os.write(written, json.dumps(document).encode())
        os.close(written)
        for index, (path, _) in enumerate(views):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            self.send({"type": "source", "index": index}, fd)
            os.close(fd)
        self.views = [self.receive()[0] for _ in views]
        self.ready = self.receive()[0]

    def send(self, message, *fds):
        socket.send_fds(self.channel, [json.dumps(message).encode()], fds)

    def receive(self):
        self.channel.settimeout(60)
        data, fds, _, _ = socket.recv_fds(self.channel, 1 << 18, 4)
        return (json.loads(data) if data else None), fds

    def run(self, *argv):
        """Asks the spawner to launch this program and returns what the program writes to descriptor 4."""
        ours, theirs = socket.socketpair()
        self.send({"type": "launch", "wrapper": list(argv)}, self.lifetime_read, theirs.fileno(), self.lifetime_read)
        theirs.close()
        answer, fds = self.receive()
        for fd in fds:
            os.close(fd)
        said = b""
        while piece := ours.recv(65536):
            said += piece
        ours.close()
        while answer["type"] != "ended":
            answer, _ = self.receive()
        return said.decode()

    def close(self):
        os.close(self.lifetime)
        must(self.process.wait(60) == 0, "the spawner did not end well")
        self.channel.close()
        os.close(self.lifetime_read)


def test_spawner_started_by_root_can_neither_read_files_of_root_nor_mount_nor_change_owners(bench):
    """The spawner, which starts the guests, gives up the rights of root before it reports `ready`."""
    root_only()
    secret = os.path.join(bench.directory, "of-root")
    with open(secret, "w", encoding="utf-8") as file:
        file.write("secret\n")
    os.chmod(secret, 0o600)
    shown = bench.source("shown")
    for directory, _, files in os.walk(shown):
        for name in (directory, *(os.path.join(directory, name) for name in files)):
            os.chown(name, 0, 0)
    os.chmod(os.path.join(shown, "plugin.php"), 0o600)
    spawner = Spawner(bench, [(shown, 0)])
    try:
        must(spawner.ready["type"] == "ready" and FIRST + 40 <= spawner.ready["id"] < FIRST + 44, str(spawner.ready))
        must(spawner.views[0]["errno"] == 0, str(spawner.views))
        # Control: the view that was mounted before the spawner dropped root is readable.
        view = "/run/wp-codebox/views/view-0/plugin.php"
        must("Sample" in spawner.run("/bin/sh", "-c", f"cat {view} >&4"), "the view does not show its source")
        must(spawner.run("/bin/sh", "-c", f"(echo x >> {view} && echo written >&4) 2>/dev/null") == "", "a view can be written")
        must(os.listdir(os.path.join(shown, "lib")) == ["a.txt"] and spawner.run("/bin/sh", "-c", f"ls {os.path.dirname(view)}/lib >&4") == "",
             "a covered directory is seen")
        for attempt in (f"cat {secret} >&4", "cat /etc/shadow >&4", f"cat {bench.state}/keys/host.ed25519 >&4",
                        "grep -v '^0*$' /proc/self/status | grep 'CapEff:.*[1-9a-f]' >&4", "echo x > /proc/sys/kernel/hostname && echo set >&4",
                        f"touch {bench.state}/x && echo made >&4", "mount -t tmpfs none /mnt && echo mounted >&4"):
            must(spawner.run("/bin/sh", "-c", f"({attempt}) 2>/dev/null") == "", attempt)
        # The spawner must not change owners in a directory that is not a scratch directory.
        for path in (bench.directory, "/", shown):
            fd = os.open(path, os.O_RDONLY)
            spawner.send({"type": "expose"}, fd)
            os.close(fd)
            answer, _ = spawner.receive()
            must(answer["type"] == "exposed" and answer["errno"] != 0, f"{path}: {answer}")
    finally:
        spawner.close()


def test_run_without_a_free_guest_uid_is_refused_and_doctor_reports_it(bench):
    root_only()
    only = ("--identity", "own", "--guest-ids", f"{FIRST + 10}:1")
    script = sleeper(320)
    asked, process, pid = started(bench, script, *only)
    try:
        for choice in ("own", "auto"):
            refused = bench.agent("true", *only[2:], "--identity", choice).expect(125, "wp_codebox_guest_ids_exhausted")
            must("--guest-ids" in " ".join(refused.json["error"]["hints"]), str(refused))
        doctor = bench.call("doctor", *bench.paths(), *only, "--json")
        rows = {row["id"]: row for row in doctor.json["checks"]}
        must(rows["guest-ids"]["status"] == "error", str(rows.get("guest-ids")))
    finally:
        kill_and_wait(pid)
        bench.finish(asked, process)
    bench.agent("true", *only).expect(0)
    doctor = bench.call("doctor", *bench.paths(), *only, "--json")
    rows = {row["id"]: row for row in doctor.json["checks"]}
    must("guest-ids" not in rows and rows["axis-identity"]["message"].startswith("enforced"), str(rows.get("axis-identity")))


def test_guest_uid_used_by_a_host_process_is_not_allocated(bench):
    root_only()
    only = ("--identity", "own", "--guest-ids", f"{FIRST + 20}:1")
    squatter = subprocess.Popen(["setpriv", f"--reuid={FIRST + 20}", f"--regid={FIRST + 20}", "--clear-groups", "cat"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        squatter.stdin.write(b"x")
        squatter.stdin.flush()
        must(squatter.stdout.read(1) == b"x", "the control process does not run")
        bench.agent("true", *only).expect(125, "wp_codebox_guest_ids_exhausted")
    finally:
        squatter.kill()
        squatter.wait()
        squatter.stdin.close()
        squatter.stdout.close()
    bench.agent("true", *only).expect(0)


def test_guest_uid_range_that_is_malformed_or_includes_system_users_and_an_unknown_identity_are_refused(bench):
    for ids in ("0:10", "33:1", "1000:0", "1000:99999", "x", "2147483647:2"):
        bench.agent("true", "--guest-ids", ids).expect(1, "wp_codebox_input_invalid")
    unknown = bench.agent("true", "--identity", "theirs").expect(1)
    must("auto, own, shared" in unknown.stdout + unknown.stderr, str(unknown))
    if os.geteuid() == 0:
        owner = os.stat(bench.state).st_uid
        if owner >= 1000:
            bench.agent("true", "--identity", "own", "--guest-ids", f"{owner}:1").expect(125)


def test_guest_inside_bubblewrap_has_its_own_uid(bench):
    root_only()
    if not shutil.which("bwrap"):
        skip_unless_root("bubblewrap")
    answer = bench.agent("echo x > x.txt", "--identity", "own", "--outer-sandbox", "bubblewrap", "--check", "test -f x.txt").expect(0)
    must(identity(answer)["enforced"] == "enforced", str(identity(answer)))


def test_guest_can_open_its_output_pipes_by_path(bench):
    """Opening `/dev/stderr` by path needs permission on the pipe, which a process with another kernel uid created."""
    answer = bench.agent("echo out > /dev/stdout; echo err > /dev/stderr; echo more > /proc/self/fd/2").expect(0)
    must(answer.result["outcome"] == "no_op", str(answer))


def test_root_service_opens_requested_paths_with_rights_of_the_connecting_user(bench):
    """As in the Debian unit: the service runs as root and the peer is the owner of the state directory."""
    root_only()
    secret = os.path.join(bench.directory, "secret")
    shutil.rmtree(secret, ignore_errors=True)
    os.makedirs(os.path.join(secret, "closed", "plugin"))
    os.chmod(os.path.join(secret, "closed"), 0o700)
    roots = os.path.join(secret, "roots")
    os.makedirs(roots)
    with open(os.path.join(roots, "key.php"), "w", encoding="utf-8") as file:
        file.write("secret\n")
    os.chmod(os.path.join(roots, "key.php"), 0o600)
    with Activator(bench) as service:
        def ask(change):
            run = SupervisorClient(bench, "true")
            change(run.request)
            frame = first_reply(service.address, {"type": "start", "protocol": PROTOCOL, "request": run.request}, bench.owner)
            return frame.get("error", {}).get("code", frame["type"]), run

        def mount(source):
            def change(request):
                request["mounts"][0]["source"] = source
            return change

        def path(name, value):
            def change(request):
                request["paths"][name] = value
            return change

        # Control: a source that the owner may read is accepted.
        must(ask(lambda request: None)[0] == "accepted", "the owner may not start a run")
        must(ask(mount(os.path.join(secret, "closed", "plugin")))[0] == "wp_codebox_mount_source_invalid"
             or ask(mount(os.path.join(secret, "closed", "plugin")))[0] == "wp_codebox_mount_unreadable", "below a 0700 directory of root")
        code, run = ask(mount(roots))
        if code == "accepted":
            must("secret" not in json.dumps(run.await_end()) and run.await_end()["outcome"] == "failed", "a file of root's was read")
        link = os.path.join(bench.directory, "link")
        if os.path.lexists(link):
            os.unlink(link)
        os.symlink(os.path.join(secret, "closed", "plugin"), link)
        must(ask(mount(link))[0] != "accepted", "through a link")
        mine = os.path.join(bench.directory, "launch")
        shutil.copy(bench.environment["CODEBOX_LAUNCH"], mine)
        shutil.chown(mine, bench.owner)
        for name, value in (("launcher", mine), ("cgroup", "/sys/fs/cgroup/memory"), ("guest_ids", {"first": 200_000, "count": 1})):
            must(ask(path(name, value))[0] == "wp_codebox_forbidden", name)
        # The caller is not in the group `adm`, which a state directory inherits from its set-gid parent, and which may read a file of a mount.
        foreign = grp.getgrnam("adm").gr_gid
        inherits = os.path.join(bench.directory, "inherits")
        shutil.rmtree(inherits, ignore_errors=True)
        os.mkdir(inherits)
        os.chown(inherits, 0, foreign)
        os.chmod(inherits, 0o2777)
        theirs = os.path.join(inherits, "state")
        subprocess.run(["setpriv", f"--reuid={bench.owner}", f"--regid={bench.owner}", "--clear-groups", "mkdir", "-m", "0700", theirs], check=True)
        must(os.stat(theirs).st_gid == foreign, "control: the group is inherited")
        must(ask(path("state_dir", theirs))[0] == "wp_codebox_forbidden", "a run became a group that its caller is not in")
        grouped = bench.source("grouped")
        os.chown(grouped, os.stat(bench.state).st_uid, foreign)
        with open(os.path.join(grouped, "key.php"), "w", encoding="utf-8") as file:
            file.write("secret\n")
        os.chown(os.path.join(grouped, "key.php"), 0, foreign)
        os.chmod(os.path.join(grouped, "key.php"), 0o640)
        code, run = ask(mount(grouped))
        must(code != "accepted" or run.await_end()["outcome"] == "failed", "a file of a foreign group was read")
        run = SupervisorClient(bench, "id > id.txt").connect(service.address)
        last = run.accepted().last()
        must(last["type"] == "result", json.dumps(last)[:400])


def test_root_service_gives_guests_their_own_uids(bench):
    root_only()
    script = sleeper(330)
    with Activator(bench) as service:
        run = SupervisorClient(bench, "true")
        run.request["agent"] = {"kind": "command", "argv": script.split(), "env": {}, "success_codes": [0]} \
            if run.request.get("agent", {}).get("kind") == "command" else {**run.request["agent"], "argv": script.split()}
        frame_of = subprocess.Popen(
            ["setpriv", f"--reuid={bench.owner}", f"--regid={bench.owner}", "--init-groups", sys.executable, "-c",
             "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.sendall(sys.stdin.buffer.read())\n"
             "for line in s.makefile(): pass\n", service.address],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        frame_of.stdin.write(json.dumps({"type": "start", "protocol": PROTOCOL, "request": run.request}).encode() + b"\n")
        frame_of.stdin.close()
        await_count(1, script)
        pid = alive(script)[0]
        uid = int(status(pid, "Uid:")[0])
        kill_and_wait(pid)
        frame_of.wait(60)
    must(uid not in (0, os.stat(bench.state).st_uid), f"the guest runs as uid {uid}")
    must(running(script) == 0, "it is still there")


def test_guest_of_an_unprivileged_user_has_a_subordinate_uid_and_copied_mounts(bench):
    with unprivileged_bench(bench, (FIRST, 64)) as user:
        source = user.source("private")
        os.chmod(os.path.join(source, "lib"), 0o700)
        os.chmod(os.path.join(source, "lib", "a.txt"), 0o600)
        script = sleeper(345)
        asked, process, pid = started(user, script)
        try:
            uid = int(status(pid, "Uid:")[0])
            must(FIRST <= uid < FIRST + 64 and status(pid, "Gid:")[0] == str(uid), f"the guest runs as {status(pid, 'Uid:')}")
        finally:
            kill_and_wait(pid)
            user.finish(asked, process)
        # Without --identity the guests have own uids too: they read a private staged file, run WP-CLI, and run the check.
        script = "test $(stat -c %u:%a lib/a.txt) = 1000:600 && echo four >> lib/a.txt && wp option update blogname changed"
        uncopied = "test $(stat -c %u /wordpress/wp-includes/version.php) = 65534"
        check = "sh -c 'grep -q four lib/a.txt && wp option get home'"
        staged = os.path.join(user.directory, "staged.txt")
        with open(staged, "w", encoding="utf-8") as file:
            file.write("staged\n")
        user.own(staged)
        os.chmod(staged, 0o600)
        read = "grep -q staged /run/codebox/staged/one.txt"
        answer = user.agent(f"{uncopied} && {read} && {script}", "--check", check, "--staged-file", f"{staged}:/run/codebox/staged/one.txt",
                            source=source).expect(0)
        rows = attested(user, answer)
        must(len(rows) >= 2 and all(row["enforced"] == "enforced" for row in rows), str(rows))
        must(mount_views(user, answer) == ["copy"], str(mount_views(user, answer)))
        must([row["relativePath"] for row in answer.result["changed_files"]] == ["lib/a.txt"], str(answer))
        with open(os.path.join(source, "lib", "a.txt"), encoding="utf-8") as file:
            must(file.read() == "one\ntwo\nthree\n", "the source changed")
        # With /run/user/<uid>, id locks are shared, so two state directories cannot allocate the same id.
        runtime = f"/run/user/{user.owner}"
        os.makedirs(runtime, mode=0o700)
        try:
            os.chown(runtime, user.owner, user.owner)
            os.unlink(os.path.join(user.state, "guest-ids"))
            user.agent("true").expect(0)
            must(os.listdir(runtime) == ["wp-codebox-ids"] and not os.path.exists(os.path.join(user.state, "guest-ids")), "the place of the locks")
        finally:
            shutil.rmtree(runtime)
        control = user.agent(script, "--identity", "shared", source=source).expect(0)
        must(mount_views(user, control) == ["overlay"] and identity(control)["enforced"] == "best-effort", str(control))


def test_guest_with_subordinate_uid_can_use_its_users_private_programs_and_archives(bench):
    with unprivileged_bench(bench, (FIRST, 64)) as user:
        # A stand-in for the preset's program that prints the preset's output format.
        agents = os.path.join(user.directory, "agents")
        programs = os.path.join(agents, "opencode", "node_modules", ".bin")
        os.makedirs(programs, mode=0o700)
        with open(os.path.join(programs, "opencode"), "w", encoding="utf-8") as file:
            file.write("""#!/bin/sh
                echo four >> lib/a.txt
                echo '{"type":"text","part":{"text":"it is '$(stat -c %u:%a "$0")'"}}'
                ! echo x >> "$0"
            """)
        user.own(agents)
        # In the second run the program is world-readable, but its path lies below the spawner's mount point for copies.
        subprocess.run([*user.prefix[:4], "/usr/bin/mount", "--bind", user.directory, "/media"], check=True, env=PATH)
        for place, mode in ((agents, "700"), ("/media/agents", "755")):
            subprocess.run(["chmod", "-R", mode, agents], check=True)
            asked = ("--mount", f"{user.source()}:/workspace/plugin", "--agent", "opencode", "--agents-dir", place, "--goal", "Add a line", "--model", "any",
                     "--model-url", "http://127.0.0.1:9/v1", "--model-api", "openai-chat", "--model-key-env", "MODEL_KEY")
            answer = user.call(*user.run_arguments(*asked), environment={**PATH, "MODEL_KEY": "a key that is not asked for"}).expect(0)
            must(identity(answer)["enforced"] == "enforced", str(identity(answer)))
            must([row["relativePath"] for row in answer.result["changed_files"]] == ["lib/a.txt"], str(answer))
            must(f"it is 1000:{mode}" in answer.stdout, str(answer))
        # A recipe with a private archive beside it.
        directory = os.path.join(user.directory, "brought")
        os.makedirs(directory)
        with zipfile.ZipFile(os.path.join(directory, "packed.zip"), "w") as file:
            file.writestr("packed/packed.php", "<?php\n/* Plugin Name: Packed */\n")
        with open(os.path.join(directory, "recipe.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "wp-codebox/workspace-recipe/v1", "inputs": {"extra_plugins": [{"source": "./packed.zip", "slug": "packed"}]},
                       "workflow": {"steps": [{"command": "wordpress.wp-cli", "args": ["command=plugin is-active packed"]}]}}, file)
        for name in os.listdir(directory):
            os.chmod(os.path.join(directory, name), 0o600)
        os.chmod(user.own(directory), 0o700)
        recipe = ("recipe-run", "--recipe", os.path.join(directory, "recipe.json"), *user.paths(), "--site", user.site, "--json")
        must(user.call(*recipe, "--identity", "own").expect(0).json["success"] is True, "the archive")


def test_identity_auto_shares_the_uid_when_over_5000_files_would_be_copied(bench):
    with unprivileged_bench(bench, (FIRST, 64)) as user:
        source = user.source("many")
        # Together with the existing two directories and files, one entry over the limit of 5000.
        for number in range(4_998):
            open(os.path.join(source, f"{number}.txt"), "w", encoding="utf-8").close()
        user.own(source)
        row = identity(user.agent("true", source=source).expect(0))
        must(row["enforced"] == "best-effort" and "more than 5000 files" in row["evidence"], str(row))
        answer = user.agent("echo x > 7.txt", "--identity", "own", source=source).expect(0)
        must(identity(answer)["enforced"] == "enforced" and len(answer.result["changed_files"]) == 1, str(answer))
        os.unlink(os.path.join(source, "0.txt"))
        must(identity(user.agent("true", source=source).expect(0))["enforced"] == "enforced", "the control")


def test_without_usable_subordinate_ids_the_guest_uid_is_shared_and_the_report_says_why(bench):
    nothing = "no common ids for this user"
    for ids, option, covered, why in ((None, (), "", nothing), ((500, 100), (), "", nothing), ((FIRST, 64), (), NEWUIDMAP, "uid_map"),
                                      ((FIRST, 64), ("--guest-ids", f"{FIRST + 64}:5"), "", "none of the guest ids")):
        with unprivileged_bench(bench, ids, covered) as user:
            row = identity(user.agent("true", *option).expect(0))
            must(row["enforced"] == "best-effort" and why in row["evidence"], str(row))
            refused = user.agent("true", *option, "--identity", "own").expect(125, "wp_codebox_isolation_unavailable")
            must("/etc/subuid" in " ".join(refused.json["error"]["hints"]), str(refused))


@pytest.mark.parametrize("case", (
    test_concurrent_guests_have_distinct_kernel_uids,
    test_runs_with_own_and_shared_guest_uid_have_equal_content_digest_and_changed_files,
    test_guest_uid_is_reusable_after_any_process_of_its_run_is_killed,
    test_only_the_cgroup_reaper_process_of_a_run_keeps_running_as_root,
    test_run_without_a_free_guest_uid_is_refused_and_doctor_reports_it,
    test_guest_uid_used_by_a_host_process_is_not_allocated,
    test_guest_inside_bubblewrap_has_its_own_uid,
    test_guest_can_open_its_output_pipes_by_path,
), ids=lambda case: case.__name__.removeprefix("test_"))
def test_identity_case_also_passes_for_a_user_with_subordinate_ids(bench, case):
    with unprivileged_bench(bench, (FIRST, 64)) as user:
        case(user)
