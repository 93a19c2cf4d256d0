"""Snapshots of held sandboxes, and the lifecycle of a sandbox from its creation to the record that remains after its removal."""

import json
import os
import shutil
import subprocess
import time

from harness import kill_and_wait, must, poll_until, skip_unless_root, tree
from harness.frames import SupervisorClient
from harness.users import unprivileged_bench
from sandbox import CHANGE, HARM, Sandbox, call, profile, remove_snapshots, run_processes, snapshot_names, snapshots

CHANGED = {"plugin.php": b"changed\n", "lib": None, "lib/b.txt": b"b\n", "tool.sh": b"run\n"}


def applied(bench, source, result):
    """Returns the files of a copy of the source with the bundle's patch applied by git."""
    copy = os.path.join(bench.directory, "applied-" + result["run_id"][4:12])
    shutil.copytree(source, copy, symlinks=True)
    patch = os.path.join(result["artifacts"]["path"], "files/patch.diff")
    done = subprocess.run(["git", "apply", "--directory=" + os.path.basename(copy), "-p1", patch], cwd=bench.directory, capture_output=True,
                          text=True, check=False)
    must(done.returncode == 0, f"git apply: {done.stderr}")
    return {name: content for name, (_, content) in tree(copy).items()}


def events(bench, run_id):
    return bench.call("runs", "events", run_id, "--limit", "1000", "--state", bench.state, "--site", bench.site, "--json").expect(0).json["events"]


def test_sandbox_restored_from_a_snapshot_has_its_files_and_database_and_bundles_the_full_patch(bench):
    remove_snapshots(bench)
    box = Sandbox(bench)
    box.sh(CHANGE)
    box.wp("option update kept before")
    box.wp("post create --post_title=kept --post_status=publish")
    made = box.snapshot("good")
    must(made["schema"] == "wp-codebox/sandbox-snapshot/v1" and made["actor"] == "test:suite", f"{made}")
    must(snapshot_names(bench) == [made["id"]], f"{snapshot_names(bench)}")
    box.sh(HARM)
    box.wp("option update kept after")
    box.wp("post delete 1 --force")
    back = box.do("restore", "good").expect(0).json
    must(back["id"] == made["id"], f"{back}")
    seen = box.sh("cat plugin.php lib/b.txt tool.sh link /wordpress/wp-content/uploads-note.txt; test ! -e more.txt; test ! -e lib/a.txt; test -x tool.sh")
    must(seen == "changed\nb\nrun\nchanged\nkept\n", f"{seen!r}")
    must(box.wp("option get kept") == "before\n", "the option did not come back")
    must(sorted(box.wp("post list --field=post_title").split("\n"))[1:] == ["Hello world!", "kept"], "the posts did not come back")
    # A snapshot that is made after another snapshot was restored does not depend on the restored one.
    box.sh("echo later > later.txt; rm link; rm tool.sh")
    second = box.snapshot("second")
    reset = box.ask({"type": "reset"})
    must(reset["type"] == "answer", f"{reset}")
    must(box.sh("cat plugin.php; cat lib/a.txt") .startswith("<?php"), "a reset shows the source")
    box.do("restore", second["id"][:20]).expect(0)
    must(box.sh("cat later.txt plugin.php; test ! -e link; test ! -e lib/a.txt") == "later\nchanged\n", "the second snapshot")
    result = box.end()
    must(result["outcome"] == "succeeded", f"{result['outcome']} {result.get('error')}")
    wanted = {**{k: v for k, v in CHANGED.items() if k != "tool.sh"}, "later.txt": b"later\n"}
    found = applied(bench, box.source, result)
    must(found == wanted, f"{found}")
    kinds = [(e["type"], e["data"].get("actor")) for e in events(bench, box.id) if "snapshot" in e["type"]]
    must(kinds == [("runtime.snapshot.created", "test:suite"), ("runtime.snapshot.restored", "test:suite"), ("runtime.snapshot.created", "test:suite"),
                   ("runtime.snapshot.restored", "test:suite")], f"{kinds}")
    # A new sandbox starts from the snapshot, and its patch is complete as well.
    other = Sandbox(bench, box.source, "10m", "null", "--from-snapshot", made["id"])
    must(other.wp("option get kept") == "before\n", "a new sandbox begins with the database")
    must(other.sh("cat plugin.php lib/b.txt link") == "changed\nb\nchanged\n", "a new sandbox begins with the files")
    other.sh("rm link")
    found = applied(bench, box.source, other.end())
    must(found == CHANGED, f"{found}")


def test_snapshot_that_was_tampered_with_or_whose_source_changed_is_refused_and_the_sandbox_continues(bench):
    remove_snapshots(bench)
    box = Sandbox(bench)
    box.sh("echo first > plugin.php")
    made = box.snapshot("good")
    box.sh("echo second > plugin.php")
    file = os.path.join(snapshots(bench), made["id"], "mount-0", "plugin.php")
    with open(file, "r+b") as stream:
        stream.write(b"FIRST")
    box.do("restore", "good").expect(1, "wp_codebox_snapshot_invalid")
    must(box.sh("cat plugin.php") == "second\n", "the guest before the refused restore is not running")
    refused = call(bench, "create", "--profile", profile(bench), "--source", box.source, "--from-snapshot", made["id"])
    refused.expect(1, "wp_codebox_snapshot_invalid")
    with open(file, "r+b") as stream:
        stream.write(b"first")
    box.do("restore", "good").expect(0)
    must(box.sh("cat plugin.php") == "first\n", "control: put right, it is used")
    box.do("restore", "nothing").expect(1, "wp_codebox_snapshot_not_found")
    box.do("snapshot", "--name", "good").expect(1, "wp_codebox_input_invalid")
    # The mounted source has changed since the snapshot.
    with open(os.path.join(box.source, "new.txt"), "w", encoding="utf-8") as stream:
        stream.write("new\n")
    bench.own(box.source)
    refused = call(bench, "create", "--profile", profile(bench), "--source", box.source, "--from-snapshot", made["id"])
    refused.expect(1, "wp_codebox_snapshot_invalid")
    must("changed since" in refused.json["error"]["message"], refused.stdout)
    box.do("destroy").expect(0)


def test_snapshot_is_refused_while_a_program_runs_and_concurrent_snapshots_succeed(bench):
    remove_snapshots(bench)
    box = Sandbox(bench)
    here = os.open(box.directory, os.O_PATH | os.O_DIRECTORY)
    import socket
    talk = socket.socket(socket.AF_UNIX)
    talk.settimeout(120)
    talk.connect(f"/proc/self/fd/{here}/control.sock")
    os.close(here)
    talk.sendall(json.dumps({"live": 1, "actor": "test:other", "request": {"type": "exec", "argv": ["sleep", "60"]}}).encode() + b"\n")
    lines = talk.makefile("rb")
    must(json.loads(next(lines))["type"] == "started", "the program did not start")
    for refused in (box.do("snapshot", "--name", "a"), box.do("restore", "a")):
        refused.expect(1, "wp_codebox_sandbox_in_use")
        must("sleep" in refused.json["error"]["message"], refused.stdout)
    must(snapshot_names(bench) == [], f"{snapshot_names(bench)}")
    talk.sendall(json.dumps({"type": "signal", "signal": "KILL"}).encode() + b"\n")
    must(any(json.loads(line)["type"] == "exited" for line in lines), "the program did not end")
    talk.close()
    both = [bench.start(["sandbox", "snapshot", box.id, "--name", name, *bench.paths(), "--site", bench.site, "--json"]) for name in ("one", "two")]
    for process in both:
        bench.finish(["snapshot"], process).expect(0)
    must(len(snapshot_names(bench)) == 2, f"{snapshot_names(bench)}")
    box.do("destroy").expect(0)


def test_supervisor_killed_during_snapshot_leaves_no_partial_snapshot(bench):
    remove_snapshots(bench)
    whole = none = 0
    # At least four kills, then further ones until one came before the snapshot was complete.
    for number, wait in enumerate([0.0, 0.05, 0.15, 0.4] + [0.0] * 16):
        if number >= 4 and none:
            break
        box = Sandbox(bench)
        box.sh("mkdir many; i=0; while [ $i -lt 1500 ]; do echo $i > many/$i; i=$((i+1)); done")
        before = set(snapshot_names(bench))
        asked = bench.start(["sandbox", "snapshot", box.id, "--name", "x", *bench.paths(), "--site", bench.site, "--json"])
        poll_until(lambda: snapshot_names(bench), lambda names: any(name.startswith(".new-") for name in names) or set(names) - before)
        time.sleep(wait)
        kill_and_wait(box.supervisor())
        answer = bench.finish(["snapshot"], asked)
        new = [name for name in set(snapshot_names(bench)) - before if not name.startswith(".")]
        must(len(new) <= 1 and (answer.exit != 0 or len(new) == 1), f"acknowledged and not there: {answer} {new}")
        told = call(bench, "get", box.id).expect(0).json
        must(told["state"] == "destroyed" and told["tombstone"]["how"] == "died" and told["tombstone"]["reason"], f"{told}")
        if new:
            whole += 1
            again = Sandbox(bench, box.source, "10m", "null", "--from-snapshot", new[0])
            must(again.sh("cat many/1499") == "1499\n", "a snapshot that has its name is whole")
            again.do("destroy").expect(0)
        else:
            none += 1
        poll_until(lambda box=box: run_processes(box.id), lambda pids: not pids)
        bench.call("gc", "--state", bench.state, "--site", bench.site, "--json").expect(0)
        must(not any(name.startswith(".") for name in snapshot_names(bench)), f"leftovers stay: {snapshot_names(bench)}")
    must(none > 0, f"no kill came early enough: {whole} whole")


def test_snapshot_on_full_disk_fails_and_the_sandbox_continues(bench):
    if os.geteuid() != 0:
        skip_unless_root("a small file system")
    remove_snapshots(bench)
    owner = bench.owner
    for path in (os.path.dirname(snapshots(bench)), snapshots(bench)):
        os.makedirs(path, mode=0o700, exist_ok=True)
        shutil.chown(path, owner, owner)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=2m,mode=0700,uid={owner}", "tmpfs", snapshots(bench)], capture_output=True, text=True, check=False)
    must(done.returncode == 0, done.stderr)
    try:
        # The sandbox is created after the mount: its supervisor's mount namespace does not get later mounts.
        box = Sandbox(bench)
        box.sh("head -c 4000000 /dev/urandom > big.bin")
        refused = box.do("snapshot", "--name", "big").expect(125, "wp_codebox_state_dir_invalid")
        must("space" in json.dumps(refused.json["error"]), refused.stdout)
        must(snapshot_names(bench) == [], f"{snapshot_names(bench)}")
        box.sh("rm big.bin; echo small > plugin.php")
        box.snapshot("small")
        box.sh("echo other > plugin.php")
        box.do("restore", "small").expect(0)
        must(box.sh("cat plugin.php") == "small\n", "control: what fits is kept")
        box.do("destroy").expect(0)
    finally:
        subprocess.run(["umount", snapshots(bench)], check=False)


def test_sandbox_ends_at_idle_limit_or_ttl_and_its_final_record_gives_the_reason(bench):
    idle = Sandbox(bench, None, "10m", "15s")
    long = Sandbox(bench, idle.source, "20s")
    first = long.do("get").expect(0).json["expiresAt"]
    told = long.do("extend-ttl", "5m").expect(0).json
    short = Sandbox(bench, idle.source, "20s")
    must(first < short.do("get").expect(0).json["expiresAt"] < told["expiresAt"], f"{first} {told}")
    long.do("extend-ttl", "9h").expect(1, "wp_codebox_input_invalid")
    for box, reason in ((idle, "it was idle for too long"), (short, "its lifetime is over")):
        dead = poll_until(lambda box=box: box.do("get").expect(0).json, lambda told: told["state"] == "destroyed")
        must(dead["tombstone"]["how"] == "expired" and dead["tombstone"]["reason"] == reason, f"{dead}")
        box.do("extend-ttl", "1m").expect(1, "wp_codebox_sandbox_not_held")
        box.do("destroy").expect(0)
    # `short` expired later than the first expiry of `long`.
    must(long.do("get").expect(0).json["state"] in ("ready", "active"), "control: the one that was extended lives")
    again = long.do("recreate").expect(0).json
    must(again["id"] != long.id and again["identity"]["insteadOf"] == long.id, f"{again}")
    listed = {row["id"]: row for row in call(bench, "list").expect(0).json["sandboxes"]}
    must(listed[long.id]["tombstone"]["actor"] == "test:suite" and listed[long.id]["tombstone"]["how"] == "destroyed", f"{listed[long.id]}")
    must(listed[again["id"]]["state"] == "ready" and listed[idle.id]["state"] == "destroyed", f"{listed}")
    for _ in range(2):
        gone = call(bench, "destroy", again["id"]).expect(0).json
        must(gone["state"] == "destroyed", f"{gone}")
    call(bench, "get", "run_000000000000").expect(1, "wp_codebox_sandbox_not_found")
    changes = [(e["data"]["to"], e["data"]["actor"]) for e in events(bench, long.id) if e["type"] == "runtime.state.changed"]
    must(all(actor for _, actor in changes) and ("destroying", "test:suite") in changes, f"{changes}")


def test_sandbox_reset_runs_the_setup_of_its_profile_again(bench):
    setup = "setup:\n  commands:\n    - { command: wordpress.wp-cli, args: [command=option add set_up yes] }\n"
    made = call(bench, "create", "--profile", profile(bench, "9m", more=setup), "--source", bench.source("sandbox-plugin")).expect(0).json
    box = Sandbox.of(bench, made["id"])
    box.wp("option update set_up changed")
    box.wp("option add stray 1")
    must(box.ask({"type": "reset"})["type"] == "answer", "it is reset")
    must(box.wp("option get set_up") == "yes\n", "a fresh guest is set up")
    gone = box.ask({"type": "command", "call": {"command": "wordpress.wp-cli", "args": ["command=option get stray"]}})
    must(gone["answer"]["status"] == "error", f"a fresh guest holds nothing else: {gone}")
    box.end()


def test_sandbox_reset_imports_the_site_seeds_again(bench):
    fixture = {"schema": "wp-codebox/site-seed-fixture/v1", "options": {"seeded": "yes"}}
    seed = {"name": "parent", "scopes": {"options": {"names": ["seeded"]}}, "content": json.dumps(fixture)}
    client = SupervisorClient(bench, "true", task=None, seeds=[seed], hold={"ttl_ms": 540_000, "max_ttl_ms": 540_000})
    client.request["agent"] = None
    client.spawn().accepted().until("runtime.state.changed", '"ready"')
    box = Sandbox.of(bench, client.run_id)
    must(box.wp("option get seeded") == "yes\n", "control: the seed was not created at the start")
    box.wp("option update seeded changed")
    must(box.ask({"type": "reset"})["type"] == "answer", "the sandbox was not reset")
    must(box.wp("option get seeded") == "yes\n", "the seed was not created after the reset")
    bench.call("runs", "cancel", client.run_id, "--state", bench.state, "--site", bench.site, "--json").expect(0)
    client.ended()


def test_invalid_profile_is_refused_and_the_cost_of_a_valid_one_is_estimated(bench):
    path = profile(bench)
    judged = bench.call("profile", "validate", path, "--json").expect(0).json
    must(judged["valid"] and judged["id"] == "profile.test", f"{judged}")
    bad = os.path.join(bench.directory, "bad.yaml")
    with open(bad, "w", encoding="utf-8") as file:
        file.write("id: a\nversion: 1.0.0\nextension: ext.compose-ssh\nx: &a [1]\ny: [*a, *a]\n")
    refused = bench.call("profile", "validate", bad, "--json").expect(1, "wp_codebox_profile_invalid")
    must("anchors" in refused.json["error"]["message"], refused.stdout)
    with open(bad, "w", encoding="utf-8") as file:
        file.write("id: a\nversion: 1.0.0\nextension: Ext\n")
    refused = call(bench, "create", "--profile", bad).expect(1, "wp_codebox_profile_invalid")
    must(refused.json["error"]["data"]["issues"][0]["path"] == "$.extension", refused.stdout)
    call(bench, "create", "--profile", "profile.none").expect(1, "wp_codebox_profile_not_found")
    told = call(bench, "estimate-cost", "--profile", path, "--duration", "5m").expect(0).json
    must(told["durationMs"] == 300000 and told["basis"] in ("profile", "site", "limits") and told["atMost"]["diskBytes"] == 128 << 20, f"{told}")


def test_profile_whose_requirements_this_host_does_not_meet_is_valid_and_refused_by_sandbox_create(bench):
    """`sandbox create` starts native sandboxes on this host, which has the id `local` and no region."""
    source = bench.source("sandbox-plugin")
    base = "id: a\nversion: 1.0.0\nworkspace: { access: rw, target: /workspace/plugin }\n"
    for name, text, code in (
        ("pinned", "extension: ext.compose-ssh\n", "extension-not-pinned"),
        ("explicit", "route: { strategy: explicit, fallback: [remote] }\n", "extension-not-listed"),
        ("microvm", "route: { constraints: { require_isolation: microvm } }\n", "isolation-too-weak"),
        ("level", "isolation: { level: microvm }\n", "isolation-too-weak"),
        ("region", "route: { constraints: { region: eu } }\n", "region-outside"),
        ("placed", "placement: { prefer: [sandboxer01], fallback: [core-2] }\n", "host-not-placed"),
    ):
        path = os.path.join(bench.directory, f"profile-route-{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(base + text)
        bench.call("profile", "validate", path, "--json").expect(0)
        refused = call(bench, "create", "--profile", path, "--source", source).expect(125, "wp_codebox_route_unsatisfied")
        decision = refused.json["error"]["data"]["decision"]
        must([row["code"] for row in decision["reasons"]] == ["none-accepted", code], f"{name}: {decision}")
    # Requirements that this host meets: a route without an extension, no cost, isolation, and a host list with the id of this host.
    path = os.path.join(bench.directory, "profile-route-met.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(base + "placement: { prefer: [sandboxer01], fallback: [local] }\nroute: { strategy: lowest-cost, constraints: { max_cost_per_hour: 0, require_isolation: container } }\n")
    shown = bench.call("profile", "show", path, "--json").expect(0).json
    must("extension" not in shown and shown["route"]["strategy"] == "lowest-cost" and shown["placement"] == {"prefer": ["sandboxer01"], "fallback": ["local"]}, f"{shown}")
    Sandbox(bench, source, "10m", "null", "--profile", path).end()


def test_guest_keeps_its_own_or_shared_uid_after_restore_and_reset(bench):
    """The outer uid in a guest's uid_map is 1 (own identity) or the owner's kernel uid (shared identity)."""
    if os.geteuid() != 0:
        skip_unless_root("a kernel uid of its own")
    with unprivileged_bench(bench, (1_912_346_000, 64)) as user:
        for somebody in (bench, user):
            owner = str(os.stat(somebody.state).st_uid)
            for choice, expected in (("own", "1"), ("shared", owner)):
                replaced(somebody, choice, expected)


def replaced(bench, choice, expected):
    """Checks uid_map and earlier changes in the guest before and after restore, and uid_map after reset."""
    box = Sandbox(bench, None, "10m", "null", "--identity", choice)
    box.sh("wp option update blogname changed && echo one > /workspace/plugin/one && rm -r /workspace/plugin/lib")
    look = "cat /proc/self/uid_map; wp option get blogname; cat /workspace/plugin/one; test ! -e /workspace/plugin/lib"
    seen = [box.sh(look).split()]
    box.snapshot("one")
    box.do("restore", "one").expect(0)
    seen.append(box.sh(look).split())
    must(seen == [["1000", expected, "1", "changed", "one"]] * 2, f"{choice}: {seen}")
    must(box.ask({"type": "reset"})["type"] == "answer", "no reset")
    must(box.sh("cat /proc/self/uid_map").split() == ["1000", expected, "1"], choice)
    box.end()
