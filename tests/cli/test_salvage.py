"""SIGKILL of the supervisor in each phase of a run: record, recovery bundle and leftovers."""

import json
import os
import shutil
import time

from harness import must, poll_until, skip_unless_root
from harness.bench import tree
from harness.disks import fill, small_disk
from harness.frames import SupervisorClient, runs

WORK = "for i in $(seq 300); do echo $i > file-$i.txt; done; echo four >> lib/a.txt; echo ready"
BASE = "/workspace/plugin/"


def settled_record(run):
    """Returns the record of a run whose supervisor was killed; checks that nothing else is left."""
    bench = run.bench
    view = run.look()
    must(view["status"] == "ended" and view["outcome"] and view["summary"], json.dumps(view))
    must(run.look() == view, "a second look sees something else")
    extra = set(os.listdir(run.directory)) - {"run.json", "events.jsonl", "lease", "result.json"}
    must(not extra, f"left in the run directory: {extra}")
    site = os.path.dirname(os.path.dirname(run.directory))
    must(run.run_id not in os.listdir(os.path.join(site, "active")), "the marker stays")
    artifacts = os.path.join(site, "artifacts")
    hidden = [name for name in os.listdir(artifacts) if name.startswith(".")] if os.path.isdir(artifacts) else []
    must(not hidden, f"left among the bundles: {hidden}")
    poll_until(lambda: processes(run), lambda left: not left, 60)
    must(("bundle_id" in view) == os.path.isdir(os.path.join(artifacts, run.run_id)), "record and bundle disagree")
    cgroups = os.path.join(bench.state, "cgroups")
    poll_until(lambda: [n for n in os.listdir(cgroups) if n == run.run_id] if os.path.isdir(cgroups) else [], lambda left: not left, 60)
    return view


def processes(run):
    """Returns processes whose command line names the run or its plugin."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                line = file.read().decode(errors="replace")
        except OSError:
            continue
        if run.run_id in line or f"plugin-{run.run_id[4:12]}" in line:
            found.append(line.replace("\0", " ")[:120])
    return found


def check_recovery_bundle(run, view, changed):
    """Checks that the recovery bundle of a killed run has the changed files, verifies, is unsigned, and cannot be approved or applied."""
    bench = run.bench
    must(view["salvaged"] is True and view["outcome"] == "failed", json.dumps(view))
    must(view["error"]["code"] == "wp_codebox_runner_unavailable" and "result" not in view, json.dumps(view))
    path = os.path.join(os.path.dirname(os.path.dirname(run.directory)), "artifacts", run.run_id)
    answer = bench.call("artifacts", "verify", "--bundle", path, "--state", bench.state, "--json").expect(0).json
    must(answer["attestation"]["status"] == "unsigned" if isinstance(answer.get("attestation"), dict) else "unsigned" in json.dumps(answer),
         json.dumps(answer)[:600])
    with open(os.path.join(path, "manifest.json"), encoding="utf-8") as file:
        must(json.load(file)["id"] == view["bundle_id"], "another bundle than the record's")
    with open(os.path.join(path, "files", "review.json"), encoding="utf-8") as file:
        review = json.load(file)
    must(review["approval"]["approvable"] is False and review["approval"]["code"] == "wp_codebox_runner_unavailable", json.dumps(review["approval"]))
    with open(os.path.join(path, "files", "changed-files.json"), encoding="utf-8") as file:
        found = sorted(entry["path"] for entry in json.load(file)["files"])
    must(found == sorted(changed), f"{len(found)} changed: {found[:5]}")
    refused = bench.call("artifacts", "apply-preflight", "--bundle", path, "--approved-file", found[0], "--state", bench.state, "--json")
    must(refused.exit == 1 and "wp_codebox_artifact_untrusted" in refused.stdout + refused.stderr
         or refused.exit == 1 and "wp_codebox_runner_unavailable" in refused.stdout, str(refused))
    return path


EVERYTHING = [f"{BASE}file-{n}.txt" for n in range(1, 301)] + [f"{BASE}lib/a.txt"]


def test_supervisor_killed_during_start_leaves_no_running_record(bench):
    """A kill before or around `accepted` leaves no record or a terminal one, never a record that stays `running`."""
    seen = set()
    # Independent of the machine's speed: the first kill comes before the start frame, the last after `accepted`.
    moments = [None, *(step * 0.004 for step in range(24)), "accepted"]
    for moment in moments:
        run = SupervisorClient(bench, "sleep 60", mode="detached")
        if moment is None:
            run.begin = lambda run=run: run
        run.spawn()
        if moment == "accepted":
            run.accepted()
        elif moment is not None:
            time.sleep(moment)
        run.kill()
        known = runs(bench, "get", run.run_id)
        if known.exit == 0:
            view = settled_record(run)
            must(view["outcome"] == "failed" and not view["salvaged"], json.dumps(view))
            seen.add(view["summary"])
        else:
            must(known.code == "wp_codebox_run_not_found", str(known))
            seen.add("nothing")
    must("nothing" in seen and len(seen) > 1, f"only one kind of moment was met: {seen}")
    must(runs(bench, "list", "--status", "running").json["total"] == 0, "a run without supervisor is listed as running")


def test_supervisor_killed_during_agent_leaves_only_the_journal(bench):
    run = SupervisorClient(bench, "echo half > half.txt; echo ready; sleep 60").spawn().accepted()
    run.until("runtime.command.output", "ready")
    run.kill()
    view = settled_record(run)
    must(view["outcome"] == "failed" and not view["salvaged"] and "bundle_id" not in view, json.dumps(view))
    must("only the journal of the run is left" in view["summary"] and view["last_event"] > 2, json.dumps(view))
    must("ready" in json.dumps(runs(bench, "events", run.run_id).json["events"]), "the journal is gone")


def test_supervisor_killed_during_checks_leaves_a_recovery_bundle(bench):
    for mode in ("attached", "detached"):
        run = SupervisorClient(bench, WORK, mode=mode, checks=["sh -c 'echo checking; sleep 60'"]).spawn().accepted()
        run.until("runtime.command.output", "checking")
        must(os.path.isdir(os.path.join(run.directory, "salvage", run.run_id)), "no recovery bundle exists before the kill")
        run.kill()
        check_recovery_bundle(run, settled_record(run), EVERYTHING)


def test_supervisor_killed_during_bundle_write_leaves_a_valid_bundle(bench):
    """A kill after the guests have ended leaves the signed bundle or the recovery bundle."""
    kinds = []
    # At least eight kills, then further ones until one has interrupted the write of the bundle.
    for number, delay in enumerate([0, 0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1] + [0] * 24):
        if number >= 8 and True in kinds:
            break
        run = SupervisorClient(bench, WORK).spawn().accepted()
        run.until("runtime.destroyed")
        time.sleep(delay)
        run.kill()
        view = settled_record(run)
        if view["salvaged"]:
            check_recovery_bundle(run, view, EVERYTHING)
        else:
            must(view["outcome"] == "succeeded" and view["bundle_id"], json.dumps(view))
            path = os.path.join(os.path.dirname(os.path.dirname(run.directory)), "artifacts", run.run_id)
            verified = bench.call("artifacts", "verify", "--bundle", path, "--state", bench.state, "--json").expect(0)
            must("unsigned" not in json.dumps(verified.json), str(verified))
        kinds.append(view["salvaged"])
    must(True in kinds, f"no kill met the writing: {kinds}")


def test_secret_is_not_in_the_recovery_bundle(bench):
    token = "ghp_" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3d"
    run = SupervisorClient(bench, f"echo harmless > a.txt; echo 'token={token}' > b.txt",
                       checks=["sh -c 'echo checking; sleep 60'"]).spawn().accepted()
    run.until("runtime.command.output", "checking")
    run.kill()
    view = settled_record(run)
    must(view["salvaged"] and view["outcome"] == "blocked" and "secret" in view["summary"], json.dumps(view))
    path = os.path.join(os.path.dirname(os.path.dirname(run.directory)), "artifacts", run.run_id)
    bench.call("artifacts", "verify", "--bundle", path, "--state", bench.state, "--json").expect(0)
    for directory, _, files in os.walk(path):
        for name in files:
            with open(os.path.join(directory, name), encoding="utf-8", errors="replace") as file:
                must(token not in file.read(), f"{name} holds the secret")


def test_recovery_bundle_is_removed_after_success(bench):
    run = SupervisorClient(bench, WORK, checks=["true"]).spawn().accepted()
    last = run.last()
    must(last["result"]["outcome"] == "succeeded", json.dumps(last)[:300])
    must(not os.path.exists(os.path.join(run.directory, "salvage")), "the recovery bundle was not removed")
    view = run.look()
    must(view["salvaged"] is False and view["bundle_id"] == last["result"]["artifacts"]["bundle_id"], json.dumps(view)[:400])


def test_run_with_a_newer_or_damaged_record_is_reported_by_lists_and_gc_and_stays(bench):
    killed = [SupervisorClient(bench, "sleep 60").spawn().accepted() for _ in range(3)]
    for run in killed:
        run.kill()
        os.makedirs(os.path.join(run.directory, "scratch", "change-0"), exist_ok=True)
        with open(os.path.join(run.directory, "scratch", "change-0", "only-copy"), "w", encoding="utf-8") as file:
            file.write("a change")
        bench.own(run.directory)
    newer, damaged, control = killed
    with open(os.path.join(newer.directory, "run.json"), "r+", encoding="utf-8") as file:
        record = {**json.load(file), "version": 1000, "status": "ended", "outcome": "improved"}
        file.seek(0)
        json.dump(record, file)
        file.truncate()
    os.truncate(os.path.join(damaged.directory, "run.json"), 100)
    stay = {newer: "use the newer wp-codebox", damaged: "restore it from a backup"}
    before = {run: tree(run.directory) for run in stay}
    place = ["--state", bench.state, "--site", bench.site, "--json"]
    for _ in range(2):
        listed = runs(bench, "list").expect(1).json
        collected = bench.call("gc", *place, "--max-age", "0s").expect(1).json
        for run, advice in stay.items():
            rows = [row for row in listed["unreadable"] if row["data"]["run_id"] == run.run_id]
            must(len(rows) == 1 and advice in rows[0]["message"], json.dumps(listed))
            rows = [row for row in collected["failed"] if row["id"] == run.run_id]
            must(len(rows) == 1 and advice in rows[0]["message"], json.dumps(collected))
            must(advice in str(runs(bench, "get", run.run_id).expect(125, "wp_codebox_state_dir_invalid")), "the cause is missing")
            must(tree(run.directory) == before[run], "the run was changed")
        must(not os.path.exists(control.directory), "control: a dead run with a readable record was not collected")
    human = bench.call("gc", "--state", bench.state, "--site", bench.site)
    must(human.exit == 1 and all(f"run {run.run_id}: the run stays as it is" in human.stderr for run in stay), str(human))
    for run in stay:
        shutil.rmtree(run.directory)
        os.remove(os.path.join(bench.state, "sites", bench.site, "active", run.run_id))
    runs(bench, "list").expect(0)


def artifacts_of(bench):
    path = os.path.join(bench.state, "sites", bench.site, "artifacts")
    os.makedirs(path, mode=0o700, exist_ok=True)
    bench.own(os.path.dirname(path))
    return path


def test_run_whose_bundle_could_not_be_written_is_refused_before_its_agent_starts(bench):
    artifacts = artifacts_of(bench)
    os.chmod(artifacts, 0o500)
    try:
        run = SupervisorClient(bench, "echo worked").spawn().accepted()
        last = run.last()
    finally:
        os.chmod(artifacts, 0o700)
    must(last["type"] == "error" and last["error"]["code"] == "wp_codebox_bundle_write_failed"
         and "the run was not started" in last["error"]["message"], json.dumps(last))
    events = runs(bench, "events", run.run_id).json["events"]
    must(not any(event["type"].startswith("runtime.command") for event in events), f"the agent started: {events}")
    must("scratch" not in os.listdir(run.directory), "a run that did nothing keeps its scratch directory")
    must(runs(bench, "get", run.run_id).json["error"]["code"] == "wp_codebox_bundle_write_failed", "the record has another error")
    control = SupervisorClient(bench, "echo worked > new.txt").spawn().accepted().last()
    must(control["type"] == "result" and control["result"]["outcome"] == "succeeded", json.dumps(control)[:600])


def test_recover_makes_an_unsigned_bundle_of_a_run_whose_end_failed(bench):
    artifacts = artifacts_of(bench)
    run = SupervisorClient(bench, WORK, checks=["sh -c 'echo checking; sleep 2'"]).spawn().accepted()
    run.until("runtime.command.output", "checking")
    running = bench.call("recover", run.run_id, "--state", bench.state, "--json").expect(125, "wp_codebox_busy")
    must(run.run_id in str(running), "the error does not name the run")
    os.chmod(artifacts, 0o500)
    try:
        last = run.last()
        run.ended()
        must(last["type"] == "error" and f"wp-codebox recover {run.run_id}" in json.dumps(last["error"]["hints"]), json.dumps(last))
        before = run.look()
        must(before["outcome"] == "failed" and "bundle_id" not in before and os.path.isdir(os.path.join(run.directory, "salvage", run.run_id)), json.dumps(before))
        # The cause persists, so nothing is moved or recorded.
        kept = tree(run.directory)
        bench.call("recover", run.run_id, "--state", bench.state, "--json").expect(125, "wp_codebox_state_dir_invalid")
        must(tree(run.directory) == kept, "a failed attempt changed the run")
    finally:
        os.chmod(artifacts, 0o700)
    view = bench.call("recover", run.run_id, "--state", bench.state, "--json").expect(0).json
    must(view["error"] == before["error"] and view["outcome"] == "failed" and view["salvaged"] is True, json.dumps(view))
    path = os.path.join(artifacts, run.run_id)
    with open(os.path.join(path, "files", "review.json"), encoding="utf-8") as file:
        review = json.load(file)
    must(review["approval"]["approvable"] is False and "recovery bundle" in review["approval"]["reason"] and "signature" in review["approval"]["reason"],
         json.dumps(review["approval"]))
    with open(os.path.join(path, "files", "changed-files.json"), encoding="utf-8") as file:
        must(sorted(entry["path"] for entry in json.load(file)["files"]) == sorted(EVERYTHING), "another change")
    verified = bench.call("artifacts", "verify", "--bundle", path, "--state", bench.state, "--json").expect(0)
    must("unsigned" in verified.stdout, str(verified))
    must(bench.call("recover", run.run_id, "--state", bench.state, "--json").expect(0).json == view, "a second call changed something")
    # Control: a run that was killed before the capture has nothing to recover.
    dead = SupervisorClient(bench, "echo ready; sleep 60").spawn().accepted()
    dead.until("runtime.command.output", "ready")
    dead.kill()
    bench.call("recover", dead.run_id, "--state", bench.state, "--json").expect(1, "wp_codebox_artifact_not_found")


def test_run_whose_disk_fills_up_while_the_agent_works_still_writes_its_bundle(bench):
    if os.geteuid() != 0:
        skip_unless_root("a small file system")
    usual, bench.site = bench.site, f"{bench.site}-full"
    at = os.path.join(bench.state, "sites", bench.site)
    try:
        with small_disk(at, bench.owner, "64m"):
            run = SupervisorClient(bench, f"{WORK}; sleep 600").spawn().accepted()
            run.until("runtime.command.output", "ready")
            fill(os.path.join(at, "filler"))
            # The end of a cancelled run keeps its change like any other.
            last = run.send({"type": "cancel"}).last()
            run.ended()
            must(last["type"] == "result" and last["result"]["outcome"] == "cancelled", json.dumps(last)[:600])
            path = os.path.join(at, "artifacts", run.run_id)
            with open(os.path.join(path, "files", "changed-files.json"), encoding="utf-8") as file:
                must(sorted(entry["path"] for entry in json.load(file)["files"]) == sorted(EVERYTHING), "another change")
            verified = bench.call("artifacts", "verify", "--bundle", path, "--state", bench.state, "--json").expect(0)
            must(verified.json["signature"]["status"] == "signed-by-this-host", str(verified))
            must("salvage" not in os.listdir(run.directory), "space is still reserved")
            # Control: on the full disk no other run starts.
            fill(os.path.join(at, "filler"))
            refused = bench.agent("true", state=bench.state)
            must(refused.exit == 125 and "No space left" in refused.stdout, str(refused))
    finally:
        bench.site = usual
