"""`wp-codebox sync` into and out of a held sandbox."""

import json
import os
import threading
import time

from harness import must, previews, tree
from harness.previews import HeldPreview, control_request


def shared(bench):
    """Returns the shared held sandbox and its run id."""
    held = previews.shared("synced", lambda: HeldPreview(bench, "--mount", f"{bench.source('synced')}:/workspace/plugin", seconds=3000))
    held.address()
    return held, previews.shared("synced run", held.run_id)


def sync(bench, action, directory, *flags):
    _, run = shared(bench)
    e = bench.environment
    return bench.call("sync", run, action, directory, *flags, "--site", bench.site, "--state", e["CODEBOX_STATE"], "--json")


def live(bench, request):
    """Sends a request to the shared sandbox's supervisor and returns the final frame."""
    return control_request(bench, shared(bench)[1], request)


def php(bench, code):
    answer = live(bench, {"type": "command", "call": {"command": "wordpress.run-php", "args": [f"code={code}", "bootstrap=none"]}})
    must(answer["type"] == "answer" and answer["answer"]["status"] == "ok", str(answer))
    return answer["answer"].get("stdout", "")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_sync_pushes_and_pulls_changed_files(bench):
    directory = os.path.join(bench.directory, "work")
    os.makedirs(directory)
    empty = sync(bench, "push", directory).expect(0)
    must(empty.json["carried"] == [], "an empty directory deletes nothing")
    write(f"{directory}/lib/new.php", "<?php return 2;\n")
    write(f"{directory}/tool.sh", "#!/bin/sh\n")
    os.chmod(f"{directory}/tool.sh", 0o755)
    write(f"{directory}/.git/config", "[core]\n")
    dry = sync(bench, "push", directory, "--dry-run").expect(0).json
    must([p["path"] for p in dry["pending"]] == ["lib/new.php", "tool.sh"] and dry["carried"] == [], str(dry))
    pushed = sync(bench, "push", directory).expect(0).json
    must([c["path"] for c in pushed["carried"]] == ["lib/new.php", "tool.sh"], str(pushed))
    seen = php(bench, "echo json_encode([file_get_contents('/workspace/plugin/lib/new.php'), fileperms('/workspace/plugin/tool.sh') & 0777, file_exists('/workspace/plugin/.git')]);")
    must(json.loads(seen) == ["<?php return 2;\n", 0o755, False], seen)
    must(sync(bench, "push", directory).json["carried"] == [], "nothing changed since")
    # In the sandbox, one file is created, one is changed and one is deleted.
    php(bench, "$d='/workspace/plugin/'; file_put_contents($d.'lib/new.php', 'theirs'); file_put_contents($d.'made.txt', 'made'); unlink($d.'tool.sh');")
    # A pull without --write-back creates files, but overwrites and deletes none; exit status 3 says that it left changes out.
    held_back = sync(bench, "pull", directory)
    must(held_back.exit == 3, str(held_back))
    must([c["path"] for c in held_back.json["carried"]] == ["made.txt"], str(held_back))
    must(open(f"{directory}/lib/new.php", encoding="utf-8").read() == "<?php return 2;\n", "changed without --write-back")
    sync(bench, "pull", directory, "--write-back").expect(0)
    found = {name: content for name, (_, content) in tree(directory).items() if content is not None and ".git" not in name}
    must(found == {"lib/new.php": b"theirs", "made.txt": b"made"}, str(found))
    sync(bench, "status", directory).expect(0)
    os.unlink(f"{directory}/made.txt")
    sync(bench, "push", directory).expect(0)
    must(php(bench, "var_dump(file_exists('/workspace/plugin/made.txt'));").strip() == "bool(false)", "a deletion is carried")
    journal = bench.call("runs", "events", shared(bench)[1], "--state", bench.state, "--site", bench.site, "--limit", "1000", "--json").json["events"]
    synced = [(e["data"]["direction"], e["data"]["path"]) for e in journal if e["type"] == "runtime.files.synced"]
    must(("in", "/workspace/plugin/tool.sh") in synced and ("out", "/workspace/plugin/made.txt") in synced, str(synced))


def test_sync_conflict_is_refused_without_the_on_conflict_option(bench):
    directory = os.path.join(bench.directory, "conflict")
    write(f"{directory}/both.txt", "one")
    write(f"{directory}/mine.txt", "one")
    sync(bench, "push", f"{directory}:/workspace/plugin/c").expect(0)
    php(bench, "file_put_contents('/workspace/plugin/c/both.txt', 'theirs');")
    write(f"{directory}/both.txt", "ours")
    write(f"{directory}/mine.txt", "ours")
    side = f"{directory}:/workspace/plugin/c"
    for action in ("push", "pull"):
        refused = sync(bench, action, side).expect(1, "wp_codebox_sync_conflict")
        rows = refused.json["error"]["data"]["conflicts"]
        must([r["path"] for r in rows] == ["both.txt"] and rows[0]["here"] != rows[0]["sandbox"], str(rows))
    must(php(bench, "echo file_get_contents('/workspace/plugin/c/mine.txt');") == "one", "a file was pushed in spite of the conflict")
    must(open(f"{directory}/both.txt", encoding="utf-8").read() == "ours", "overwritten")
    must(sync(bench, "status", side).exit == 1, "status shows it")
    sync(bench, "push", side, "--on-conflict", "ours").expect(0)
    must(php(bench, "echo file_get_contents('/workspace/plugin/c/both.txt'), file_get_contents('/workspace/plugin/c/mine.txt');") == "oursours", "ours")
    php(bench, "file_put_contents('/workspace/plugin/c/both.txt', 'theirs');")
    write(f"{directory}/both.txt", "again")
    sync(bench, "pull", side, "--write-back", "--on-conflict", "theirs").expect(0)
    must(open(f"{directory}/both.txt", encoding="utf-8").read() == "theirs", "theirs")
    # The supervisor checks `base_sha256` itself.
    answer = live(bench, {"type": "sync_in", "path": "/workspace/plugin/c/both.txt", "base64": "eA==", "base_sha256": "0" * 64})
    must(answer["type"] == "error" and answer["error"]["code"] == "wp_codebox_sync_conflict", str(answer))
    must(answer["error"]["data"]["expected"] == "0" * 64 and len(answer["error"]["data"]["found"]) == 64, str(answer))


def test_sync_writes_only_below_mounts_and_leaves_out_huge_files_and_symlinks(bench):
    for path in ("/etc/passwd", "/workspace/other/x", "/workspace/plugin/.git/hooks/x", "/wordpress/index.php"):
        answer = live(bench, {"type": "sync_in", "path": path, "base64": "eA=="})
        must(answer["type"] == "error" and answer["error"]["code"] == "wp_codebox_input_invalid", f"{path}: {answer}")
    directory = os.path.join(bench.directory, "big")
    write(f"{directory}/ok.txt", "ok")
    with open(f"{directory}/big.bin", "wb") as file:
        file.write(b"x" * (1408 * 1024 + 1))
    os.symlink("/etc/passwd", f"{directory}/link")
    pushed = sync(bench, "push", f"{directory}:/workspace/plugin/big")
    must(pushed.exit == 3, str(pushed))
    must(sorted(o["path"] for o in pushed.json["leftOut"]) == ["big.bin", "link"], str(pushed))
    must([c["path"] for c in pushed.json["carried"]] == ["ok.txt"], str(pushed))


def test_sync_reports_skipped_files_and_does_not_delete_them(bench):
    directory = os.path.join(bench.directory, "odd")
    for name in ("kept.txt", "sub/kept.txt", "gone.txt"):
        write(f"{directory}/{name}", "here")
    side = f"{directory}:/workspace/plugin/odd"
    sync(bench, "push", side).expect(0)
    php(bench, "$d='/workspace/plugin/odd/'; chmod($d.'kept.txt', 0); chmod($d.'sub', 0); unlink($d.'gone.txt'); posix_mkfifo($d.'pipe', 0600);"
        " foreach (array(\"b\\xffd\", \"two\\nlines\", 'back\\\\slash') as $n) { file_put_contents($d.$n, 'x'); } file_put_contents($d.'plain.txt', 'x');")
    for action, carried in (("status", []), ("pull", ["gone.txt", "plain.txt"])):
        answer = sync(bench, action, side, *(["--write-back"] if action == "pull" else []))
        must(answer.exit == 3 and [c["path"] for c in answer.json["carried"]] == carried, str(answer))
        left = {o["path"]: o["reason"] for o in answer.json["leftOut"]}
        must(set(left) == {"kept.txt", "sub", "pipe", "b\ufffdd", "two\nlines", "back\\slash"}, str(left))
    must(sorted(tree(directory)) == ["kept.txt", "plain.txt", "sub", "sub/kept.txt"], str(sorted(tree(directory))))


def test_guest_swapping_directories_during_sync_reaches_no_host_file(bench):
    shared(bench)
    outside = os.path.join(bench.directory, "outside")
    os.makedirs(outside, mode=0o777)
    os.chmod(outside, 0o777)
    before = tree(outside)
    # During the pushes, the guest keeps replacing a directory of the mount with a symlink.
    # Each rename uses a new target name, because rename cannot replace a non-empty directory.
    racer = ("$d='/workspace/plugin/race'; $i=0; $end=microtime(true)+60; while(!file_exists('/workspace/plugin/over') && microtime(true)<$end){"
             " clearstatcache(); @mkdir($d); @rename($d,$d.'.'.$i++);"
             f" @symlink(mt_rand(0,1)?'/etc':'{outside}',$d); usleep(mt_rand(0,2000)); @unlink($d); }}")
    thread = threading.Thread(target=live, args=(bench, {"type": "exec", "argv": ["php", "-r", racer]}))
    thread.start()
    outcomes = {"answer": 0, "error": 0}
    began = time.monotonic()
    while thread.is_alive():
        if min(outcomes.values()) > 20 and time.monotonic() - began > 2:
            live(bench, {"type": "sync_in", "path": "/workspace/plugin/over", "base64": "eA=="})
            break
        name = f"codebox-race-{sum(outcomes.values())}"
        answer = live(bench, {"type": "sync_in", "path": f"/workspace/plugin/race/{name}", "base64": "eA=="})
        outcomes[answer["type"]] += 1
    thread.join()
    must(outcomes["answer"] > 5 and outcomes["error"] > 5, f"there was no race: {outcomes}")
    must(tree(outside) == before and not [name for name in os.listdir("/etc") if name.startswith("codebox-race-")], "something of the host changed")


def test_sync_push_carries_two_thousand_files(bench):
    directory = os.path.join(bench.directory, "many")
    for index in range(2000):
        write(f"{directory}/{index % 100:02d}/{index}.txt", f"{index}\n")
    side = f"{directory}:/workspace/plugin/many"
    pushed = sync(bench, "push", side).expect(0).json
    must(len(pushed["carried"]) == 2000, str(len(pushed["carried"])))
    must(sync(bench, "push", side).expect(0).json["carried"] == [], "all of it is known")


def test_sync_requested_before_the_sandbox_is_ready_waits_for_the_run_command(bench):
    """Sends the request while the run's own command is still running."""
    def running():
        rows = bench.call("runs", "list", "--state", bench.state, "--site", bench.site, "--status", "running", "--json").json["runs"]
        return {row.get("run_id") or row["runId"] for row in rows}

    before = running()
    slow = HeldPreview(bench, "--mount", f"{bench.source('early')}:/workspace/plugin", "--command", "wordpress.run-php",
                "--arg", "code=sleep(3); echo file_exists('/workspace/plugin/early.txt') ? 'there' : 'not yet';", seconds=300)
    directory = os.path.join(bench.directory, "early-push")
    write(f"{directory}/early.txt", "early")
    run = None
    while run is None:
        must(slow.process.poll() is None, slow.stderr)
        run = next((run for run in running() - before
                    if os.path.exists(os.path.join(bench.state, "sites", bench.site, "runs", run, "control.sock"))), None)
    answer = bench.call("sync", run, "push", directory, "--site", bench.site, "--state", bench.state, "--json")
    answer.expect(0)
    must([c["path"] for c in answer.json["carried"]] == ["early.txt"], str(answer))
    done = slow.cancel()
    must("not yet" in json.dumps(done.json), "it did not wait")
    changed = [f["path"] for f in done.result["changed_files"]]
    must(any(path.endswith("early.txt") for path in changed), f"what was synced is part of the change: {changed}")
