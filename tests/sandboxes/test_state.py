"""State of sandboxes: snapshot removal, killed supervisors, races, full disks."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import time

from harness import copy_descriptors, kill_and_wait, must, poll_until, skip_unless_root
from harness.detectors import read
from harness.disks import fill, small_disk
from harness.reduced import forbid_user_namespaces
from harness.repositories import MARKED, TOKEN, history_repository, repository
from sandbox import Sandbox, call, profile, remove_snapshots, run_processes, snapshot_names, snapshots


def site(bench, name=None):
    return os.path.join(bench.state, "sites", name or bench.site)


def files_of_other_owners(bench, *names):
    """Returns the paths below the state directory that do not belong to the owner of the state directory."""
    owner = os.stat(bench.state).st_uid
    found = []
    for directory, directories, files in os.walk(os.path.join(bench.state, "sites", *names)):
        for path in (os.path.join(directory, name) for name in directories + files):
            # A file that is renamed during the scan no longer exists under its old name.
            with contextlib.suppress(FileNotFoundError):
                found += [path] if os.lstat(path).st_uid != owner else []
    return found


def test_recreate_with_missing_wordpress_or_damaged_snapshot_keeps_the_old_sandbox(bench):
    remove_snapshots(bench)
    box = Sandbox(bench)
    box.sh("echo kept > plugin.php")
    good = box.snapshot("good")
    second = Sandbox(bench, box.source, "10m", "null", "--from-snapshot", good["id"])
    # Without a WordPress no sandbox can be created.
    paths = bench.paths()
    bare = ["sandbox", "recreate", box.id, *paths[paths.index("--state"):], "--site", bench.site, "--json"]
    bench.call(*bare, environment=bench.without_wordpress()).expect(125, "wp_codebox_wordpress_unavailable")
    must(box.sh("cat plugin.php") == "kept\n", "the sandbox was ended although it could not be recreated")
    # The snapshot is tampered with.
    file = os.path.join(snapshots(bench), good["id"], "mount-0", "plugin.php")
    with open(file, "r+b") as stream:
        stream.write(b"KEPT")
    second.do("recreate").expect(1, "wp_codebox_snapshot_invalid")
    must(second.do("get").expect(0).json["state"] in ("ready", "active"), "the sandbox was ended although it could not be recreated")
    with open(file, "r+b") as stream:
        stream.write(b"kept")
    again = second.do("recreate").expect(0).json
    must(again["identity"]["insteadOf"] == second.id, f"control: {again}")
    for name in (box.id, again["id"]):
        call(bench, "destroy", name).expect(0)


def test_recreate_as_root_leaves_no_files_owned_by_root(bench):
    if os.geteuid() != 0:
        skip_unless_root("to be root")
    box = Sandbox(bench)
    kill_and_wait(box.supervisor())
    again = box.do("recreate").expect(0).json
    must(files_of_other_owners(bench, bench.site) == [], f"{files_of_other_owners(bench, bench.site)}")
    call(bench, "destroy", again["id"]).expect(0)
    fresh = f"{bench.site}-fresh"
    try:
        refused = bench.call("sandbox", "recreate", "run_00", *bench.paths(), "--site", fresh, "--json")
        refused.expect(1, "wp_codebox_sandbox_not_found")
        must(files_of_other_owners(bench, fresh) == [], f"{files_of_other_owners(bench, fresh)}")
    finally:
        subprocess.run(["rm", "-rf", site(bench, fresh)], check=False)


def snapshot_removals(bench):
    """Returns the `sandbox.snapshot.removed` records of the site's audit log."""
    try:
        with open(os.path.join(site(bench), "audit.jsonl"), encoding="utf-8") as file:
            return [row for row in map(json.loads, file) if row["event"] == "sandbox.snapshot.removed"]
    except FileNotFoundError:
        return []


def test_snapshot_in_use_is_not_removed_and_removal_of_an_unused_one_is_audited(bench):
    remove_snapshots(bench)
    box = Sandbox(bench)
    box.sh("echo one > plugin.php")
    one, two = box.snapshot("one"), box.snapshot("two")
    other = Sandbox(bench, box.source, "10m", "null", "--from-snapshot", one["id"])
    box.do("restore", "two").expect(0)
    for snapshot in (one, two):
        refused = call(bench, "remove-snapshot", snapshot["id"]).expect(1, "wp_codebox_sandbox_in_use")
        must(snapshot["id"] in refused.json["error"]["message"], refused.stdout)
    # A reset or recreate of a sandbox that was created from a snapshot starts from it again, so the snapshot stays in use.
    before = len(snapshot_removals(bench))
    other.ask({"type": "reset"})
    call(bench, "remove-snapshot", one["id"]).expect(1, "wp_codebox_sandbox_in_use")
    must(other.do("recreate").expect(0).json["identity"]["insteadOf"] == other.id, "it is recreated from it")
    must(len(snapshot_removals(bench)) == before and len(snapshot_names(bench)) == 2, f"{snapshot_names(bench)} {snapshot_removals(bench)}")
    # Snapshot names are unique per sandbox only, so a name needs --of.
    call(bench, "remove-snapshot", "two").expect(1, "wp_codebox_snapshot_not_found")
    box.ask({"type": "reset"})
    gone = call(bench, "remove-snapshot", "two", "--of", box.id).expect(0).json
    must(gone["removed"] is True and gone["id"] == two["id"], f"{gone}")
    must(snapshot_names(bench) == [one["id"]], f"{snapshot_names(bench)}")
    record = snapshot_removals(bench)[before:]
    must(len(record) == 1 and record[0]["snapshot"] == two["id"] and record[0]["actor"] == "test:suite" and record[0]["digest"] == two["digest"], f"{record}")
    again = call(bench, "remove-snapshot", two["id"]).expect(0).json
    must(again["removed"] is False and len(snapshot_removals(bench)) == before + 1, f"{again} {snapshot_removals(bench)}")
    call(bench, "remove-snapshot", two["id"][:12]).expect(1, "wp_codebox_snapshot_not_found")
    box.do("snapshot", "--name", "snap_" + "0" * 32).expect(1, "wp_codebox_input_invalid")
    # A snapshot with an edited document is listed as damaged and can be removed.
    bad = box.snapshot("bad")
    with open(os.path.join(snapshots(bench), bad["id"], "snapshot.json"), "a", encoding="utf-8") as stream:
        stream.write(" x")
    listed = call(bench, "snapshots").expect(0).json
    must(listed["damaged"] == [bad["id"]] and [row["id"] for row in listed["snapshots"]] == [one["id"]], f"{listed}")
    must(call(bench, "remove-snapshot", bad["id"]).expect(0).json["removed"] is True, "a damaged one goes")
    for row in call(bench, "list").expect(0).json["sandboxes"]:
        call(bench, "destroy", row["id"]).expect(0)
    must(call(bench, "remove-snapshot", one["id"]).expect(0).json["removed"] is True, "control: the unused snapshot was not removed")
    must(snapshot_names(bench) == [], f"{snapshot_names(bench)}")


def test_cost_estimate_prefers_past_runs_of_the_same_profile_version(bench):
    path = profile(bench)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    other = os.path.join(bench.directory, "profile-other.yaml")
    with open(other, "w", encoding="utf-8") as file:
        file.write(text.replace("version: 1.0.0", "version: 9.0.0"))
    told = call(bench, "estimate-cost", "--profile", path).expect(0).json
    must(told["basis"] == "profile" and told["samples"] >= 3 and told["measured"]["peakMemoryBytes"] > 0, f"{told}")
    # No sandbox of this profile version has run.
    less = call(bench, "estimate-cost", "--profile", other).expect(0).json
    must(less["basis"] == "site" and less["samples"] >= told["samples"], f"{less}")
    arguments = ["sandbox", "estimate-cost", "--profile", path, *bench.paths(), "--site", f"{bench.site}-none", "--json"]
    none = bench.call(*arguments).expect(0).json
    must(none["basis"] == "limits" and none["samples"] == 0 and none["measured"] is None, f"{none}")
    subprocess.run(["rm", "-rf", site(bench, f"{bench.site}-none")], check=False)


def document(path, *names):
    with open(os.path.join(path, *names), encoding="utf-8") as file:
        return json.load(file)


def lines(path, *names):
    with open(os.path.join(path, *names), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_killed_supervisor_of_a_held_sandbox_leaves_a_recovery_bundle(bench):
    remove_snapshots(bench)
    box = Sandbox(bench)
    box.sh("echo before the reset")
    box.ask({"type": "reset"})
    told = box.ask({"type": "step", "action": {"command": "command-agent-run", "args": ["command=sh", 'args-json=["-c","echo seen; echo bad >&2; exit 3"]']},
                    "observation": {"type": "runtime-info"}})["answer"]
    box.wp("option update kept held")
    made = box.snapshot("one")
    stream, answers = box.open_request({"type": "exec", "argv": ["sh", "-c", "echo running; sleep 60"]})
    must(any(json.loads(line)["type"] == "output" for line in answers), "control: it runs")
    trace = box.ask({"type": "trace"})["answer"]
    kill_and_wait(box.supervisor())
    stream.close()
    dead = box.do("get").expect(0).json
    must(dead["tombstone"]["how"] == "died" and dead["tombstone"]["salvaged"] is True and "kept open" in dead["tombstone"]["reason"], f"{dead}")
    path = os.path.join(site(bench), "artifacts", box.id)
    judged = bench.call("artifacts", "verify", "--bundle", path, "--state", bench.state, "--json")
    must(judged.json["valid"] is True, f"{judged}")
    commands = lines(path, "commands.jsonl")
    must([(row["command"], row["exitCode"]) for row in commands]
         == [("command-agent-run", 0), ("command-agent-run", 3), ("wordpress.wp-cli", 0), ("command-agent-run", None)], f"{commands}")
    must(commands[1]["stdout"] == "seen\n" and commands[1]["stderr"] == "bad\n" and commands[3]["stdout"] == "running\n", f"{commands}")
    must(commands[1]["args"] == told["action"]["args"], f"{commands[1]}")
    events = lines(path, "events.jsonl")
    must(any(e["type"] == "runtime.snapshot.created" and e["data"]["id"] == made["id"] for e in events), f"{[e['type'] for e in events]}")
    # The recovered trace equals the trace before the kill.
    kept_trace = document(path, "files", "runtime-episode-trace.json")
    must(kept_trace["runtime"]["status"] == "interrupted", f"{kept_trace['runtime']}")
    for part in ("reset", "steps", "snapshots"):
        must(kept_trace[part] == trace[part], f"{part}: {kept_trace[part]}\n{trace[part]}")
    must(len(kept_trace["steps"]) == 2 and kept_trace["steps"][0] == told and len(kept_trace["snapshots"]) == 1, f"{kept_trace}")
    records = [row["type"] for row in lines(path, "files", "runtime-episode.jsonl")]
    must(records == ["episode.reset", "episode.step", "episode.reset", "episode.step", "episode.step", "episode.snapshot"], f"{records}")
    notes = document(path, "files", "completion-outcome.json")["riskNotes"]
    must(any("exec-" in note for note in notes) and any("trace of the episode is incomplete" in note for note in notes), f"{notes}")
    review = document(path, "files", "review.json")
    must(bench.state not in json.dumps(review) and box.source not in open(os.path.join(path, "metadata.json"), encoding="utf-8").read(), "a path of the host")
    # The supervisor writes its usage every five seconds, so maybe before the kill.
    must(sorted(set(os.listdir(box.directory)) - {"usage.json"}) == ["events.jsonl", "lease", "run.json"], f"{os.listdir(box.directory)}")
    # Control: a sandbox that ends normally has a complete trace and no recovery files.
    other = Sandbox(bench, box.source)
    other.sh("true")
    result = other.end()
    whole = document(result["artifacts"]["path"], "files", "runtime-episode-trace.json")
    must(whole["runtime"]["status"] == "destroyed" and len(whole["steps"]) == 1, f"{whole['runtime']}")
    must("held.json" not in os.listdir(other.directory) and "episode.jsonl" not in os.listdir(other.directory), f"{os.listdir(other.directory)}")


def test_sandbox_state_is_provisioning_at_start_and_destroyed_after_a_killed_supervisor(bench):
    remove_snapshots(bench)
    setup = "setup:\n  commands:\n    - { command: wordpress.run-php, args: ['code=sleep(60);'] }\n"
    making = bench.start(["sandbox", "create", "--profile", profile(bench, "8m", more=setup), "--source", bench.source("sandbox-plugin"), *bench.paths(),
                          "--site", bench.site, "--json"])
    rows = poll_until(lambda: [row for row in call(bench, "list").expect(0).json["sandboxes"] if row.get("state") != "destroyed"], lambda rows: rows)
    must(len(rows) == 1 and rows[0].get("state") in ("requested", "provisioning"), f"{rows}")
    call(bench, "destroy", rows[0]["id"]).expect(0)
    answer = bench.finish(["create"], making)
    must(answer.exit != 0, f"it was made although it was ended before: {answer}")
    box = Sandbox(bench)
    # Copies of the lock descriptors simulate a kernel that releases the killed supervisor's locks late.
    if os.geteuid() != 0:
        skip_unless_root("to copy descriptors of a supervisor")
    with contextlib.ExitStack() as dying:
        for copy in locks_of(bench, box):
            dying.callback(os.close, copy)
        kill_and_wait(box.supervisor())
        told = box.do("get").expect(0).json
        must(told["state"] == "provisioning" and "tombstone" not in told, f"control: its locks are held: {told}")
        asked_of, process = start_command(bench, "get", box.id)
        # `get` has found the control socket closed and the locks held, and sleeps until it looks again.
        poll_until(lambda: read(f"/proc/{process.pid}/wchan"), lambda function: "nanosleep" in function, 4, "`get` does not wait for the locks")
    told = bench.finish(asked_of, process).expect(0).json
    # `get` waits five seconds for the locks; this process may have held them longer.
    if told["state"] == "provisioning":
        told = poll_until(lambda: box.do("get").expect(0).json, lambda told: told["state"] != "provisioning")
    must(told["state"] == "destroyed" and told["tombstone"]["how"] == "died", f"{told}")


def locks_of(bench, box):
    """Returns copies of a supervisor's descriptors of its lease and its active marker."""
    return copy_descriptors(box.supervisor(), os.path.join(box.directory, "lease"), os.path.join(site(bench), "active", box.id))


def test_unwritable_journal_fails_the_run_and_keeps_changes(bench):
    remove_snapshots(bench)
    words = ["sandbox", "create", "--profile", profile(bench), "--source", bench.source("sandbox-plugin"), *bench.paths(), "--site", bench.site, "--json"]
    # RLIMIT_FSIZE simulates a full disk: with SIGXFSZ ignored, a write past the limit fails with EFBIG.
    process = subprocess.Popen(["env", "--ignore-signal=XFSZ", bench.environment["CODEBOX"], *words], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PATH": "/usr/bin:/bin"})
    box = Sandbox.of(bench, bench.finish(words, process).expect(0).json["id"])
    # Makes the journal the largest file of the run.
    for _ in range(400):
        must(box.ask({"type": "extend_ttl", "ttl_ms": 600000})["type"] == "answer", "its time is changed")
    told = box.ask({"type": "sync_in", "path": "/workspace/plugin/later.txt", "base64": "bGF0ZXIK"})
    must(told["type"] == "answer", f"{told}")
    journal = os.path.join(box.directory, "events.jsonl")
    size = os.path.getsize(journal)
    owner = os.stat(bench.state)
    become = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    subprocess.run(["prlimit", f"--pid={box.supervisor()}", f"--fsize={size}"], check=True, **become)
    refused = box.ask({"type": "extend_ttl", "ttl_ms": 600000})
    must(refused.get("error", {}).get("code") == "wp_codebox_run_failed" and os.path.getsize(journal) == size, f"control: nothing more is written: {refused}")
    told = box.do("destroy").expect(0).json["tombstone"]
    must(told["outcome"] == "failed" and any("scratch" in hint for hint in told["error"]["hints"]), f"{told}")
    with open(os.path.join(box.directory, "scratch", "change-0", "later.txt"), encoding="utf-8") as file:
        must(file.read() == "later\n", "the work is lost")


MANY = "mkdir -p many; i=0; while [ $i -lt 1200 ]; do echo $i > many/$i; i=$((i+1)); done"


def await_snapshot_start(bench, before, seconds=120):
    """Waits until a new snapshot is being written or complete."""
    poll_until(lambda: snapshot_names(bench), lambda names: any(name.startswith(".new-") for name in names) or set(names) - set(before), seconds)


@contextlib.contextmanager
def stopped_process(pid):
    """Stops a process and waits until every thread is stopped, because SIGSTOP acts asynchronously."""
    def states():
        found = set()
        for name in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{name}/stat", encoding="utf-8") as file:
                found.add(file.read().rsplit(")", 1)[1].split()[0])
        return sorted(found)

    os.kill(pid, signal.SIGSTOP)
    try:
        poll_until(states, lambda seen: seen == ["T"])
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def start_command(bench, *arguments):
    """Starts a `sandbox` command in the background."""
    words = ["sandbox", *arguments, *bench.paths(), "--site", bench.site, "--actor", "test:beside", "--json"]
    return words, bench.start(words)


def collected(bench, *arguments):
    return bench.call("gc", "--state", bench.state, "--site", bench.site, *arguments, "--json").expect(0).json


def check_snapshot_complete(bench, source, snapshot, file, content):
    """Checks that a sandbox created from the snapshot has this file content."""
    again = Sandbox(bench, source, "10m", "null", "--from-snapshot", snapshot)
    must(again.sh(f"cat {file}") == content, f"{snapshot} is not whole")
    again.do("destroy").expect(0)


def test_destroy_during_snapshot_waits_for_the_snapshot(bench):
    remove_snapshots(bench)
    box = Sandbox(bench)
    box.sh(MANY)
    keeping = start_command(bench, "snapshot", box.id, "--name", "x")
    await_snapshot_start(bench, [])
    gone = box.do("destroy").expect(0).json
    must(gone["state"] == "destroyed" and gone["tombstone"]["actor"] == "test:suite", f"{gone}")
    made = bench.finish(*keeping).expect(0).json
    must(snapshot_names(bench) == [made["id"]], f"{snapshot_names(bench)}")
    check_snapshot_complete(bench, box.source, made["id"], "many/1199", "1199\n")


def test_hold_expiry_during_snapshot_waits_for_the_snapshot(bench):
    """The supervisor finishes a snapshot past the hold's expiry, and honours an extension requested meanwhile."""
    remove_snapshots(bench)
    for more in (False, True):
        box = Sandbox(bench)
        box.sh(MANY)
        for number in range(20):
            before = snapshot_names(bench)
            must(box.ask({"type": "extend_ttl", "ttl_ms": 10000})["type"] == "answer", "control: it lives")
            up = time.monotonic() + 10
            keeping, kept_answers = box.open_request({"type": "snapshot", "name": f"x{number}"})
            await_snapshot_start(bench, before)
            # The supervisor is stopped during the snapshot until after the expiry.
            with stopped_process(box.supervisor()):
                within = not {name for name in set(snapshot_names(bench)) - set(before) if not name.startswith(".")}
                if within:
                    longer, longer_answers = box.open_request({"type": "extend_ttl", "ttl_ms": 300000}) if more else (keeping, None)
                    # Only the clock shows the expiry: the process that would report it is stopped.
                    time.sleep(max(0.0, up - time.monotonic()) + 0.2)
            made = json.loads(next(kept_answers))
            must(made["type"] == "answer" and made["answer"]["id"] in snapshot_names(bench), f"{made} {snapshot_names(bench)}")
            if within:
                break
            keeping.close()
        must(within, "control: no attempt stopped the supervisor during a snapshot")
        if more:
            reply = json.loads(next(longer_answers))
            must(reply["type"] == "answer", f"{reply}")
            must(box.sh("cat many/7") == "7\n", "it lives")
            box.do("destroy").expect(0)
        else:
            dead = poll_until(lambda box=box: box.do("get").expect(0).json, lambda told: told["state"] == "destroyed", 300)
            must(dead["tombstone"]["reason"] == "its lifetime is over", f"{dead}")
            check_snapshot_complete(bench, box.source, made["answer"]["id"], "many/1199", "1199\n")
        keeping.close()
        longer.close()


def test_snapshot_removal_gc_and_destroy_at_the_same_time_keep_all_other_snapshots_intact(bench):
    remove_snapshots(bench)
    box, other = Sandbox(bench), Sandbox(bench)
    for one in (box, other):
        one.sh("echo one > plugin.php")
    first = box.snapshot("first")
    calls = [start_command(bench, "snapshot", one.id, "--name", f"s{n}") for one in (box, other) for n in range(3)]
    calls += [start_command(bench, "restore", box.id, first["id"]), start_command(bench, "remove-snapshot", first["id"]), start_command(bench, "remove-snapshot", first["id"])]
    words = ["gc", "--state", bench.state, "--site", bench.site, "--snapshots-max-bytes", "1500K", "--json"]
    calls.append((words, bench.start(words)))
    calls += [start_command(bench, "destroy", box.id), start_command(bench, "destroy", box.id), start_command(bench, "extend-ttl", other.id, "9m")]
    answers = [bench.finish(*one) for one in calls]
    known = (None, "wp_codebox_sandbox_not_held", "wp_codebox_sandbox_in_use", "wp_codebox_snapshot_not_found", "wp_codebox_busy")
    must(all(answer.exit == 0 or answer.code in known for answer in answers), "\n".join(map(str, answers)))
    must([answer.exit for answer in answers[-4:]] == [0, 0, 0, 0], "\n".join(map(str, answers[-4:])))
    must(sum(answer.exit == 0 and answer.json["removed"] for answer in answers[7:9]) <= 1, "one snapshot was removed twice")
    made = {answer.json["id"] for answer in answers[:6] if answer.exit == 0}
    taken = {item["id"] for item in answers[9].json["removed"]}
    must(made - taken == set(snapshot_names(bench)) - {first["id"]}, f"{made} {taken} {snapshot_names(bench)}")
    must(other.sh("cat plugin.php") == "one\n", "control: the other one lives")
    listed = call(bench, "snapshots").expect(0).json
    must(listed["damaged"] == [] and {row["id"] for row in listed["snapshots"]} == set(snapshot_names(bench)), f"{listed}")
    other.do("destroy").expect(0)


def test_supervisor_killed_during_restore_leaves_the_snapshot_intact(bench):
    remove_snapshots(bench)
    source = bench.source("sandbox-plugin")
    ended = 0
    for tries, wait in enumerate(itertools.chain((0.0, 0.05, 0.2), itertools.repeat(0.0, 17)), 1):
        box = Sandbox(bench, source)
        box.sh("echo kept > plugin.php; mkdir many; for i in 1 2 3 4 5 6 7 8 9; do head -c 300000 /dev/urandom > many/$i; done")
        made = box.snapshot("good")
        box.sh("echo other > plugin.php")
        victim = box.supervisor()
        back = start_command(bench, "restore", box.id, "good")
        # A kill at any moment of the restore must be safe, so no event is awaited.
        time.sleep(wait)
        kill_and_wait(victim)
        answer = bench.finish(*back)
        ended += answer.exit == 0
        must(answer.exit in (0, 125) or answer.code in ("wp_codebox_sandbox_not_held", "wp_codebox_sandbox_not_found"), f"{answer}")
        told = box.do("get").expect(0).json
        must(told["state"] == "destroyed" and told["tombstone"]["how"] == "died", f"{told}")
        must(not os.path.exists(os.path.join(box.directory, "scratch")), "scratch is left")
        poll_until(lambda: run_processes(box.id), lambda pids: not pids)
        check_snapshot_complete(bench, source, made["id"], "plugin.php", "kept\n")
        # No sandbox uses the snapshot any more.
        must(call(bench, "remove-snapshot", made["id"]).expect(0).json["removed"] is True, "it stays locked")
        if tries >= 3 and ended < tries:
            break
    must(ended < tries, "no kill came before the restore finished")


def test_restore_on_full_disk_fails_and_the_sandbox_continues(bench):
    if os.geteuid() != 0:
        skip_unless_root("a small file system")
    name = f"{bench.site}-full"
    at = site(bench, name)
    usual, bench.site = bench.site, name
    filler = os.path.join(at, "filler")
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, bench, "site", usual)
        stack.enter_context(small_disk(at, bench.owner, "64m"))
        box = Sandbox(bench)
        box.sh("echo one > plugin.php")
        box.snapshot("one")
        box.do("restore", "one").expect(0)
        box.sh("echo two > plugin.php")
        supervisor = box.supervisor()
        merged = os.path.join(box.directory, "scratch", "merged")
        must(box.do("restore", "one").expect(0) and os.listdir(merged) == [], f"files were copied needlessly: {os.listdir(merged)}")

        def restore_on_full_disk():
            fill(filler)
            return box.do("restore", "one")

        # The first restores may succeed: the journal fits into its last allocated page, then the space is used that the run reserved.
        poll_until(restore_on_full_disk, lambda answer: answer.exit != 0, 400)
        before = len(os.listdir(f"/proc/{supervisor}/fd"))
        for _ in range(8):
            refused = restore_on_full_disk().expect(1, "wp_codebox_run_failed")
            must("space" in refused.json["error"]["message"], refused.stdout)
        # One descriptor left by each restore would be eight. The supervisor closes sockets of clients asynchronously, so single ones do not count.
        after = len(os.listdir(f"/proc/{supervisor}/fd"))
        must(abs(after - before) < 4, f"{before} descriptors, then {after}")
        refused = box.ask({"type": "command", "call": {"command": "command-agent-run", "args": ["command=sh", 'args-json=["-c","echo ran > ran"]']}})
        must(refused["type"] == "error", f"it ran without a record: {refused}")
        os.unlink(filler)
        must(box.sh("test ! -e ran; cat plugin.php") == "one\n", "control: it lives")
        box.sh("echo three > plugin.php")
        box.do("restore", "one").expect(0)
        must(box.sh("cat plugin.php") == "one\n", "control: with space it is brought back")
        result = box.end()
        must(result["outcome"] == "succeeded", f"{result}")
        seen = lines(result["artifacts"]["path"], "observations.jsonl")
        told = [e["data"]["id"] for e in lines(result["artifacts"]["path"], "events.jsonl") if e["type"] == "runtime.observed"]
        must([row["id"] for row in seen if row["id"] in told] == told and len(seen) == len(told), f"{[row['id'] for row in seen]} {told}")


def test_snapshot_and_restore_are_refused_at_isolation_level_reduced(bench):
    remove_snapshots(bench)
    path = os.path.join(bench.directory, "profile-reduced.yaml")
    with open(profile(bench), encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "isolation: { level: reduced }\n")
    source = bench.source("sandbox-plugin")
    words = ["sandbox", "create", "--profile", path, "--source", source, *bench.paths(), "--site", bench.site, "--json"]
    full = bench.call(*words).expect(0).json
    must(full["isolation"] == "full", f"control: {full}")
    made = call(bench, "snapshot", full["id"], "--name", "x").expect(0).json
    call(bench, "restore", full["id"], "x").expect(0)

    def reduced(*more):
        process = subprocess.Popen([bench.environment["CODEBOX"], *words, *more], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env={"PATH": "/usr/bin:/bin"}, preexec_fn=forbid_user_namespaces)
        return bench.finish(words, process)

    low = reduced().expect(0).json
    must(low["isolation"] == "reduced", f"{low}")
    refused = [call(bench, "snapshot", low["id"], "--name", "y"), call(bench, "restore", low["id"], made["id"]), reduced("--from-snapshot", made["id"])]
    for answer in refused:
        must(answer.exit != 0 and answer.code == "wp_codebox_command_unsupported" and "full" in answer.json["error"]["message"], f"{answer}")
    must(call(bench, "get", low["id"]).expect(0).json["state"] in ("ready", "active"), "the reduced sandbox was ended by the refusals")
    must(snapshot_names(bench) == [made["id"]], f"{snapshot_names(bench)}")
    again = call(bench, "recreate", low["id"]).expect(0).json
    must(again["isolation"] == "full", f"control: made again by one that may, it is full: {again}")
    for name in (full["id"], again["id"]):
        call(bench, "destroy", name).expect(0)


def test_snapshot_contains_only_workspace_and_wp_content(bench):
    """A snapshot holds the workspace and wp-content, and nothing of /tmp, the home directory or other paths."""
    remove_snapshots(bench)
    box = Sandbox(bench)
    box.sh("""
for at in /tmp "$HOME" /var/tmp /run /dev/shm; do { echo marker-outside > $at/outside; } 2>/dev/null || true; done
test -e /tmp/outside
echo marker-inside > /wordpress/wp-content/inside.txt; echo marker-inside > inside.txt
""")
    box.sh("! { echo marker-outside > /wordpress/wp-login.php; } 2>/dev/null; ! { echo marker-outside > /wordpress/new.php; } 2>/dev/null")
    made = box.snapshot("x")
    must(sorted(layer["name"] for layer in made["layers"]) == ["content", "mount-0"], f"{made['layers']}")
    at = os.path.join(snapshots(bench), made["id"])
    must(sorted(os.listdir(at)) == ["content", "content.jsonl", "mount-0", "mount-0.jsonl", "snapshot.json"], f"{os.listdir(at)}")
    found = {"marker-outside": [], "marker-inside": []}
    for directory, _, files in os.walk(at):
        for name in files:
            with open(os.path.join(directory, name), "rb") as file:
                text = file.read()
            for marker, places in found.items():
                if marker.encode() in text:
                    places.append(os.path.relpath(os.path.join(directory, name), at))
    must(found["marker-outside"] == [], f"{found}")
    must(sorted(found["marker-inside"]) == ["content/inside.txt", "mount-0/inside.txt"], f"control: {found}")
    box.do("restore", "x").expect(0)
    seen = box.sh("cat /wordpress/wp-content/inside.txt inside.txt; for at in /tmp $HOME /var/tmp /run /dev/shm; do test ! -e $at/outside; done")
    must(seen == "marker-inside\nmarker-inside\n", f"{seen!r}")
    box.do("destroy").expect(0)


def test_sandbox_create_returns_its_preview_url(bench):
    path = os.path.join(bench.directory, "profile-preview.yaml")
    with open(profile(bench), encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + "reachability: { preview: true }\n")
    box = Sandbox(bench, None, "10m", "null", "--profile", path)
    must(box.made["state"] == "ready" and box.made["preview"]["url"].startswith("http://"), f"{box.made}")
    human = bench.call("sandbox", "get", box.id, *bench.paths(), "--site", bench.site).expect(0).stdout
    for part in (box.made["preview"]["url"], "full", "deny"):
        must(part in human, f"{part}: {human}")
    # Rounding gives either value, depending on the machine's speed.
    must("in 9 min" in human or "in 10 min" in human, human)
    box.do("destroy").expect(0)


def test_guest_restored_from_a_snapshot_sees_its_own_git_directory_and_none_of_the_source(bench):
    remove_snapshots(bench)
    source = repository(bench)
    box = Sandbox(bench, source)
    box.sh("echo kept >> nested/marked.txt; git diff | grep -c '^+kept'; rm .git; mkdir .git && echo mine > .git/own")
    shown = box.snapshot("one")["id"]
    box.sh("rm -rf nested .git")
    box.do("restore", "one").expect(0)
    other = Sandbox(bench, source, "10m", "null", "--from-snapshot", shown)
    for guest in (box, other):
        seen = guest.sh(f"! grep -rl {TOKEN} .; grep -c {MARKED} nested/deep/marked.txt; cat .git/own; tail -n 1 nested/marked.txt")
        must(seen == "1\nmine\nkept\n", seen)
        guest.do("destroy").expect(0)


def test_profile_git_setting_selects_history_baseline_or_no_repository(bench):
    remove_snapshots(bench)
    work_tree, plain = history_repository(bench, "profile-real"), bench.source("profile-plain")
    with open(profile(bench), encoding="utf-8") as file:
        text = file.read()

    def of(choice):
        path = os.path.join(bench.directory, f"profile-git-{choice}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("target:", f"git: {choice}, target:"))
        return ("--profile", path)
    real_commits = "change 2\nchange 1\nchange 0\n"
    for source, choice, expected in ((work_tree, "auto", "What was mounted\n"), (work_tree, "history", real_commits), (work_tree, "none", "none\n"),
                                     (plain, "auto", "none\n"), (plain, "baseline", "What was mounted\n")):
        box = Sandbox(bench, source, "10m", "null", *of(choice))
        ask = "git log --format=%s 2>/dev/null || echo none"
        must(box.sh(ask) == expected, f"{choice} of {source}")
        if choice == "history":
            must(box.ask({"type": "reset"})["type"] == "answer" and box.sh(ask) == expected, "after a reset")
        result = box.end()
        must(result["mounts"][0]["git"] == {"auto": "baseline" if source == work_tree else "none"}.get(choice, choice), f"{result['mounts']}")
    call(bench, "create", "--source", plain, *of("history")).expect(1, "wp_codebox_git_unavailable")
    refused = call(bench, "create", "--source", plain, *of("clone"))
    must(refused.exit == 1 and "$.workspace.git" in refused.stdout + refused.stderr, f"{refused}")
