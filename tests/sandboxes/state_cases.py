"""What may happen to the state of sandboxes: removed snapshots, deaths, races, and who is asked first."""

import json
import os
import signal
import socket
import subprocess
import threading
import time

from harness import NotHere, must
from sandbox import Sandbox, call, forget, kept, profile, snapshots


def site(bench, name=None):
    return os.path.join(bench.state, "sites", name or bench.site)


def foreign(bench, *names):
    """What lies below the state directory and does not belong to its owner."""
    owner = os.stat(bench.state).st_uid
    found = []
    for directory, directories, files in os.walk(os.path.join(bench.state, "sites", *names)):
        found += [os.path.join(directory, name) for name in directories + files if os.lstat(os.path.join(directory, name)).st_uid != owner]
    return found


def a_sandbox_is_not_ended_when_it_cannot_be_made_again(bench):
    forget(bench)
    box = Sandbox(bench)
    box.sh("echo kept > plugin.php")
    good = box.snapshot("good")
    second = Sandbox(bench, box.source, "10m", "null", "--from-snapshot", good["id"])
    # Without WordPress there is nothing to make one on.
    paths = bench.paths()
    bare = ["sandbox", "recreate", box.id, *paths[paths.index("--state"):], "--site", bench.site, "--json"]
    bench.call(*bare).expect(125, "wp_codebox_config_invalid")
    must(box.sh("cat plugin.php") == "kept\n", "it was ended, and could not be made again")
    # Its snapshot is not what was kept any more.
    file = os.path.join(snapshots(bench), good["id"], "mount-0", "plugin.php")
    with open(file, "r+b") as stream:
        stream.write(b"KEPT")
    second.do("recreate").expect(1, "wp_codebox_snapshot_invalid")
    must(second.do("get").expect(0).json["state"] in ("ready", "active"), "it was ended, and could not be made again")
    with open(file, "r+b") as stream:
        stream.write(b"kept")
    again = second.do("recreate").expect(0).json
    must(again["identity"]["insteadOf"] == second.id, f"control: {again}")
    for name in (box.id, again["id"]):
        call(bench, "destroy", name).expect(0)


def whoever_recreates_as_root_leaves_nothing_of_root_s(bench):
    if os.geteuid() != 0:
        raise NotHere("to be root")
    box = Sandbox(bench)
    os.kill(box.supervisor(), signal.SIGKILL)
    again = box.do("recreate").expect(0).json
    must(foreign(bench, bench.site) == [], f"{foreign(bench, bench.site)}")
    call(bench, "destroy", again["id"]).expect(0)
    fresh = f"{bench.site}-fresh"
    try:
        refused = bench.call("sandbox", "recreate", "run_00", *bench.paths(), "--site", fresh, "--json")
        refused.expect(1, "wp_codebox_sandbox_not_found")
        must(foreign(bench, fresh) == [], f"{foreign(bench, fresh)}")
    finally:
        subprocess.run(["rm", "-rf", site(bench, fresh)], check=False)


def audited(bench):
    """The records of the site's audit log about snapshots."""
    try:
        with open(os.path.join(site(bench), "audit.jsonl"), encoding="utf-8") as file:
            return [row for row in map(json.loads, file) if row["event"] == "sandbox.snapshot.removed"]
    except FileNotFoundError:
        return []


def a_snapshot_is_removed_once_nothing_needs_it_and_the_audit_log_says_by_whom(bench):
    forget(bench)
    box = Sandbox(bench)
    box.sh("echo one > plugin.php")
    one, two = box.snapshot("one"), box.snapshot("two")
    other = Sandbox(bench, box.source, "10m", "null", "--from-snapshot", one["id"])
    box.do("restore", "two").expect(0)
    for snapshot in (one, two):
        refused = call(bench, "remove-snapshot", snapshot["id"]).expect(1, "wp_codebox_sandbox_in_use")
        must(snapshot["id"] in refused.json["error"]["message"], refused.stdout)
    # What it began with it may have to begin with again.
    other.ask({"type": "reset"})
    call(bench, "remove-snapshot", one["id"]).expect(1, "wp_codebox_sandbox_in_use")
    must(other.do("recreate").expect(0).json["identity"]["insteadOf"] == other.id, "it is made again from it")
    must(audited(bench) == [] and len(kept(bench)) == 2, f"{kept(bench)} {audited(bench)}")
    # A name counts only among those of one sandbox.
    call(bench, "remove-snapshot", "two").expect(1, "wp_codebox_snapshot_not_found")
    box.ask({"type": "reset"})
    gone = call(bench, "remove-snapshot", "two", "--of", box.id).expect(0).json
    must(gone["removed"] is True and gone["id"] == two["id"], f"{gone}")
    must(kept(bench) == [one["id"]], f"{kept(bench)}")
    record = audited(bench)
    must(len(record) == 1 and record[0]["snapshot"] == two["id"] and record[0]["actor"] == "test:suite" and record[0]["digest"] == two["digest"], f"{record}")
    again = call(bench, "remove-snapshot", two["id"]).expect(0).json
    must(again["removed"] is False and len(audited(bench)) == 1, f"{again} {audited(bench)}")
    call(bench, "remove-snapshot", two["id"][:12]).expect(1, "wp_codebox_snapshot_not_found")
    box.do("snapshot", "--name", "snap_" + "0" * 32).expect(1, "wp_codebox_input_invalid")
    # One whose document was edited is listed apart, and goes like any other.
    bad = box.snapshot("bad")
    with open(os.path.join(snapshots(bench), bad["id"], "snapshot.json"), "a", encoding="utf-8") as stream:
        stream.write(" x")
    listed = call(bench, "snapshots").expect(0).json
    must(listed["damaged"] == [bad["id"]] and [row["id"] for row in listed["snapshots"]] == [one["id"]], f"{listed}")
    must(call(bench, "remove-snapshot", bad["id"]).expect(0).json["removed"] is True, "a damaged one goes")
    for row in call(bench, "list").expect(0).json["sandboxes"]:
        call(bench, "destroy", row["id"]).expect(0)
    must(call(bench, "remove-snapshot", one["id"]).expect(0).json["removed"] is True, "control: nobody needs it any more")
    must(kept(bench) == [], f"{kept(bench)}")


def costs_are_told_of_the_profile_first(bench):
    path = profile(bench)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    other = os.path.join(bench.directory, "profile-other.yaml")
    with open(other, "w", encoding="utf-8") as file:
        file.write(text.replace("version: 1.0.0", "version: 9.0.0"))
    told = call(bench, "estimate-cost", "--profile", path).expect(0).json
    must(told["basis"] == "profile" and told["samples"] >= 3 and told["measured"]["peakMemoryBytes"] > 0, f"{told}")
    # Of this version none has ever been made.
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


def talk(box, request):
    """A conversation that stays open; answers it and its lines."""
    here = os.open(box.directory, os.O_PATH | os.O_DIRECTORY)
    try:
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(60)
        stream.connect(f"/proc/self/fd/{here}/control.sock")
    finally:
        os.close(here)
    stream.sendall(json.dumps({"live": 1, "actor": "test:talk", "request": request}).encode() + b"\n")
    return stream, stream.makefile("rb")


def killed_while_it_is_held_it_leaves_a_bundle_of_what_was_done(bench):
    forget(bench)
    box = Sandbox(bench)
    box.sh("echo before the reset")
    box.ask({"type": "reset"})
    told = box.ask({"type": "step", "action": {"command": "command-agent-run", "args": ["command=sh", 'args-json=["-c","echo seen; echo bad >&2; exit 3"]']},
                    "observation": {"type": "runtime-info"}})["answer"]
    box.wp("option update kept held")
    made = box.snapshot("one")
    stream, answers = talk(box, {"type": "exec", "argv": ["sh", "-c", "echo running; sleep 60"]})
    must(any(json.loads(line)["type"] == "output" for line in answers), "control: it runs")
    trace = box.ask({"type": "trace"})["answer"]
    os.kill(box.supervisor(), signal.SIGKILL)
    stream.close()
    dead = box.do("get").expect(0).json
    must(dead["tombstone"]["how"] == "died" and dead["tombstone"]["salvaged"] is True and "held" in dead["tombstone"]["reason"], f"{dead}")
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
    # The trace is the one that was told while it went on, up to its cut.
    kept_trace = document(path, "files", "runtime-episode-trace.json")
    must(kept_trace["runtime"]["status"] == "interrupted", f"{kept_trace['runtime']}")
    for part in ("reset", "steps", "snapshots"):
        must(kept_trace[part] == trace[part], f"{part}: {kept_trace[part]}\n{trace[part]}")
    must(len(kept_trace["steps"]) == 2 and kept_trace["steps"][0] == told and len(kept_trace["snapshots"]) == 1, f"{kept_trace}")
    records = [row["type"] for row in lines(path, "files", "runtime-episode.jsonl")]
    must(records == ["episode.reset", "episode.step", "episode.reset", "episode.step", "episode.step", "episode.snapshot"], f"{records}")
    notes = document(path, "files", "completion-outcome.json")["riskNotes"]
    must(any("exec-" in note for note in notes) and any("cut" in note for note in notes), f"{notes}")
    review = document(path, "files", "review.json")
    must(bench.state not in json.dumps(review) and box.source not in open(os.path.join(path, "metadata.json"), encoding="utf-8").read(), "a path of the host")
    must(sorted(os.listdir(box.directory)) == ["events.jsonl", "lease", "run.json"], f"{os.listdir(box.directory)}")
    # Control: one that ends orderly has a trace that is whole, and nothing of this is left.
    other = Sandbox(bench, box.source)
    other.sh("true")
    result = other.end()
    whole = document(result["artifacts"]["path"], "files", "runtime-episode-trace.json")
    must(whole["runtime"]["status"] == "destroyed" and len(whole["steps"]) == 1, f"{whole['runtime']}")
    must("held.json" not in os.listdir(other.directory) and "episode.jsonl" not in os.listdir(other.directory), f"{os.listdir(other.directory)}")


CASES = [
    killed_while_it_is_held_it_leaves_a_bundle_of_what_was_done,
    a_snapshot_is_removed_once_nothing_needs_it_and_the_audit_log_says_by_whom,
    costs_are_told_of_the_profile_first,
    a_sandbox_is_not_ended_when_it_cannot_be_made_again,
    whoever_recreates_as_root_leaves_nothing_of_root_s,
]
