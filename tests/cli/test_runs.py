"""Run registry, detached runs, cancellation by other processes, and event streams."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time

from harness import must, poll_until, skip_unless_root, sleeper, wake
from harness.frames import SupervisorClient, registry, runs, task
from harness.processes import read_until

SLOW = "echo early > early.txt; echo ready; sleep {}; echo late > late.txt"


def paths(view):
    return sorted(entry["path"] for entry in view["result"]["changed_files"])


def test_run_registry_shows_an_accepted_run_and_then_its_result(bench):
    run = SupervisorClient(bench, f"{sleeper(65)}; true").spawn().accepted()
    view = run.look()
    wake(sleeper(65))
    must(view["status"] == "running" and view["mode"] == "attached" and view["goal"] == "Run a command", json.dumps(view))
    must(view["provenance"] == {"requester": "the frames of a test"} and "result" not in view, json.dumps(view))
    last = run.last()
    must(last["type"] == "result" and last["result"]["outcome"] == "no_op", json.dumps(last)[:400])
    # The supervisor sends the last frame after it has written the record.
    view = run.look()
    must(view["status"] == "ended" and view["outcome"] == "no_op", json.dumps(view)[:400])
    must(view["result"] == last["result"], "the stored result is another than the one that was sent")
    must(stat.S_IMODE(os.stat(os.path.join(run.directory, "result.json")).st_mode) == 0o600, "result.json is not private")
    must(run.ended() == 0, "exit")
    must(sorted(os.listdir(run.directory)) == ["events.jsonl", "lease", "result.json", "run.json"], str(os.listdir(run.directory)))


def test_secret_is_redacted_in_the_run_record(bench):
    secret = "hunter2-hunter2-hunter2"
    run = SupervisorClient(bench, "true", task=task(f"Use {secret} well"), redact=[secret],
                       provenance={"requester": f"x {secret}"}).spawn().accepted()
    run.last()
    with open(os.path.join(run.directory, "run.json"), encoding="utf-8") as file:
        record = file.read()
    must(secret not in record and "Use " in record, record)


def test_detached_run_continues_after_its_caller_closes_the_connection(bench):
    run = SupervisorClient(bench, f"echo early > early.txt; {sleeper(66)}; echo late > late.txt", mode="detached").spawn().accepted()
    run.close()
    view = run.look()
    wake(sleeper(66))
    must(view["status"] == "running" and view["mode"] == "detached", json.dumps(view))
    view = run.await_end()
    must(view["outcome"] == "succeeded" and view["bundle_id"].startswith("artifact-bundle-"), json.dumps(view)[:600])
    must(paths(view) == ["/workspace/plugin/early.txt", "/workspace/plugin/late.txt"], str(paths(view)))
    bench.call("artifacts", "verify", "--bundle", view["result"]["artifacts"]["path"], "--state", bench.state, "--json").expect(0)
    must(run.ended() == 0, "exit")


def test_attached_run_is_cancelled_when_its_caller_closes_the_connection(bench):
    run = SupervisorClient(bench, SLOW.format(30)).spawn().accepted()
    run.until("runtime.command.output", "ready")
    run.close()
    view = run.await_end()
    must(view["outcome"] == "cancelled" and paths(view) == ["/workspace/plugin/early.txt"], json.dumps(view)[:600])
    must("caller" in view["error"]["message"], json.dumps(view["error"]))


def test_attached_run_continues_after_a_detach_frame_and_a_closed_connection(bench):
    run = SupervisorClient(bench, SLOW.format(sleeper(64).removeprefix("sleep "))).spawn().accepted()
    run.until("runtime.command.output", "ready")
    run.send({"type": "detach"}).close()
    poll_until(run.look, lambda view: view["mode"] == "detached")
    wake(sleeper(64))
    must(run.await_end()["outcome"] == "succeeded", "the detached run did not continue")


def test_cancel_frame_of_the_caller_ends_its_detached_run_with_outcome_cancelled(bench):
    run = SupervisorClient(bench, SLOW.format(30), mode="detached").spawn().accepted()
    run.until("runtime.command.output", "ready")
    last = run.send({"type": "cancel"}).last()
    must(last["result"]["outcome"] == "cancelled", json.dumps(last)[:400])
    must(run.ended() == 130, "exit")


def test_sighup_ends_attached_runs_and_sigterm_also_ends_detached_runs(bench):
    """SIGHUP ends an attached run only, because a detached run has left the caller's session. SIGTERM ends both."""
    sleep = sleeper(67)
    for mode, number in (("attached", signal.SIGHUP), ("detached", signal.SIGHUP), ("detached", signal.SIGTERM)):
        run = SupervisorClient(bench, SLOW.format(sleep.removeprefix("sleep ")), mode=mode).spawn().accepted()
        run.until("runtime.command.output", "ready")
        run.process.send_signal(number)
        if (mode, number) == ("detached", signal.SIGHUP):
            wake(sleep)
            last = run.last()
            must(last["result"]["outcome"] == "succeeded" and run.ended() == 0, f"a hang-up ended a detached run: {json.dumps(last)[:600]}")
            continue
        last = run.last()
        must(last["result"]["outcome"] == "cancelled" and "received a signal to stop" in last["result"]["summary"] + json.dumps(last["result"]["error"]),
             json.dumps(last)[:600])
        must(run.ended() == 130, "exit")


def test_supervisor_has_its_own_session_and_process_group(bench):
    """A terminal sends Ctrl-C to the foreground process group; the supervisor must not be in the caller's."""
    run = SupervisorClient(bench, SLOW.format(1), mode="detached").spawn(process_group=0)
    run.accepted().until("runtime.command.output", "ready")
    with open(f"/proc/{run.process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    # A supervisor that is started as a process group leader cannot call setsid(); it keeps its own group.
    must(int(fields[2]) == run.process.pid, f"group {fields[2]} of {run.process.pid}")
    must(run.last()["type"] == "result", "no result")
    run = SupervisorClient(bench, SLOW.format(1), mode="detached").spawn()
    run.accepted().until("runtime.command.output", "ready")
    must(os.getsid(run.process.pid) == run.process.pid, "it is in the session of its caller")
    must(run.last()["type"] == "result", "no result")


FLOOD = "head -c 16000000 /dev/zero | tr '\\0' x; echo > done.txt"
LIMITS = {"wall_clock_ms": 300000, "output_bytes": 64 * 1024 * 1024}


def test_caller_that_stops_reading_does_not_block_the_run(bench):
    """The run writes 16 MB while its caller keeps the socket open and never reads."""
    run = SupervisorClient(bench, FLOOD, mode="detached", limits=LIMITS).spawn().accepted()
    view = run.await_end(240)
    must(view["outcome"] == "succeeded" and view["last_event"] > 40, json.dumps(view)[:300])
    # Reading later yields the events sent so far, then the last frame with a notice about the missing events.
    seen, last = 0, run.frame()
    while last and last["type"] == "event":
        must(last["event"]["seq"] == seen + 1, "a gap before the end")
        seen, last = seen + 1, run.frame()
    must(last["type"] == "result" and seen < view["last_event"], f"{seen} of {view['last_event']}")
    must(any("stopped reading" in notice for notice in last["result"]["notices"]), str(last["result"]["notices"]))
    must(run.ended() == 0, "exit")
    # Control: a caller that reads receives every event.
    run = SupervisorClient(bench, FLOOD, limits=LIMITS).spawn().accepted()
    count, last = 0, run.frame()
    while last and last["type"] == "event":
        count, last = count + 1, run.frame()
    must(last["type"] == "result" and not last["result"].get("notices"), str(last["result"].get("notices")))
    must(count == run.look()["last_event"], "events were lost")


def test_run_over_the_run_limit_is_refused_as_busy_until_another_run_ends(bench):
    one, two = (SupervisorClient(bench, "sleep 60", max_runs=2).spawn().accepted() for _ in range(2))
    third = SupervisorClient(bench, "true", max_runs=2).spawn()
    frame = third.frame()
    must(frame["type"] == "error" and frame["error"]["code"] == "wp_codebox_busy", json.dumps(frame))
    must(frame["error"]["data"] == {"active": 2, "limit": 2} and third.ended() == 125, json.dumps(frame))
    must(not os.path.exists(third.directory), "a refused run left a directory")
    runs(bench, "get", third.run_id).expect(1, "wp_codebox_run_not_found")
    runs(bench, "cancel", one.run_id).expect(0)
    must(one.last()["result"]["outcome"] == "cancelled", "not cancelled")
    # A run whose supervisor was killed does not count against the limit.
    two.kill()
    for _ in range(2):
        must(SupervisorClient(bench, "true", max_runs=1).spawn().accepted().last()["type"] == "result", "no place")
    must(two.look()["outcome"] == "failed", "the dead run")


def test_runs_cancel_command_ends_a_detached_run(bench):
    run = SupervisorClient(bench, SLOW.format(60), mode="detached").spawn().accepted()
    run.until("runtime.command.output", "ready")
    run.close()
    answer = runs(bench, "cancel", run.run_id[:14]).expect(0).json
    must(answer["schema"] == "wp-codebox/run-cancellation/v1" and answer["answer"] == "requested", json.dumps(answer))
    again = runs(bench, "cancel", run.run_id).expect(0).json
    must(again["answer"] in ("requested", "already_ended"), json.dumps(again))
    view = run.await_end()
    must(view["outcome"] == "cancelled" and paths(view) == ["/workspace/plugin/early.txt"], json.dumps(view)[:600])
    must(runs(bench, "cancel", run.run_id).expect(0).json == {**answer, "answer": "already_ended", "status": "ended"}, "after the end")
    # `runs cancel` detects a killed supervisor and records the end of its run.
    run = SupervisorClient(bench, "sleep 60", mode="detached").spawn().accepted()
    run.kill()
    answer = runs(bench, "cancel", run.run_id).expect(0).json
    must(answer["answer"] == "already_ended" and answer["status"] == "ended", json.dumps(answer))
    must(not os.path.exists(os.path.join(run.directory, "control.sock")), "a dead run's socket stays")


def test_registry_entry_follows_a_run_from_start_to_cancellation(bench):
    """The entry shows lifecycle, canceller, reason and artifacts. A second or late cancellation changes nothing."""
    secret = "hunter2-hunter2-hunter2"
    run = SupervisorClient(bench, SLOW.format(60), mode="detached", redact=[secret]).spawn().accepted()
    run.until("runtime.command.output", "ready")
    entry = registry(bench, "status", run.run_id).expect(0).json
    life = entry["lifecycle"]
    must(entry["schema"] == "wp-codebox/run-registry-entry/v1" and life["schema"] == "wp-codebox/run-lifecycle/v1", json.dumps(entry))
    must(entry["status"] == "running" and life["phase"] == "active" and life["cancellable"] and not life["cancelRequested"], json.dumps(entry))
    must(bench.directory not in json.dumps(entry) and bench.state not in json.dumps(entry), "a host path")
    none = registry(bench, "artifacts", run.run_id).expect(0).json
    must(none["schema"] == "wp-codebox/run-artifacts/v1" and not none["terminal"] and "bundle" not in none, json.dumps(none))
    why = f"the issue was closed with {secret}"
    asked = registry(bench, "cancel", run.run_id, "--reason", why, "--actor", "janitor").expect(0).json
    must(asked["schema"] == "wp-codebox/run-cancellation-request/v1" and asked["cancellationRequested"]
         and not asked["alreadyRequested"], json.dumps(asked))
    again = registry(bench, "cancel", run.run_id, "--reason", "another").expect(0).json
    must(again["alreadyRequested"], json.dumps(again))
    must(run.last()["result"]["outcome"] == "cancelled", "not cancelled")
    for asked in (registry(bench, "cancel", run.run_id).expect(0).json, again):
        note = asked["record"]["lifecycle"]["cancellation"]
        must(note["requestedBy"] == "janitor" and note["reason"].startswith("the issue was closed") and secret not in json.dumps(asked),
             json.dumps(asked))
    late = registry(bench, "cancel", run.run_id).expect(0).json
    must(late["terminal"] and late["alreadyRequested"] and not late["cancellationRequested"] and late["status"] == "cancelled", json.dumps(late))
    # The supervisor removes the scratch directory after it has sent the result.
    deadline = time.monotonic() + 120
    while (entry := registry(bench, "status", run.run_id).expect(0).json)["lifecycle"]["cleanup"]["status"] == "running":
        must(time.monotonic() < deadline, "its cleanup does not end: " + json.dumps(entry))
    must(entry["lifecycle"]["terminal"] and entry["lifecycle"]["cleanup"]["status"] == "succeeded", json.dumps(entry))
    left = registry(bench, "artifacts", run.run_id).expect(0).json
    must(left["bundle"]["id"] == entry["artifactRefs"][0]["id"] == left["artifactRefs"][0]["id"], json.dumps(left)[:600])
    must("files/patch.diff" in [file["path"] for file in left["bundle"]["files"]], json.dumps(left)[:600])
    bench.call("artifacts", "verify", "--bundle", left["bundle"]["directory"], "--state", bench.state, "--json").expect(0)
    for command, word in (("status", "cancelled (terminal)"), ("artifacts", "files/patch.diff")):
        human = bench.call("runs", command, run.run_id, "--state", bench.state, "--site", bench.site)
        must(human.exit == 0 and word in human.stdout, str(human))
    # Control: a run without a cancellation request has no cancellation entry.
    plain = SupervisorClient(bench, "true").spawn().accepted()
    plain.last()
    entry = registry(bench, "status", plain.run_id).expect(0).json
    must(entry["status"] == "succeeded" and "cancellation" not in entry["lifecycle"], json.dumps(entry))


def follower(bench, run, *arguments):
    """Starts `runs events --follow`."""
    return bench.start(["runs", "events", run.run_id, "--follow", *arguments, "--state", bench.state, "--site", bench.site])


def test_event_streams_match_the_journal_in_each_format(bench):
    """Reads the formats `journal` and `bus`, as JSON lines and server-sent events. Resuming at a cursor skips and repeats no event."""
    run = SupervisorClient(bench, "for i in 1 2 3; do echo line-$i; sleep 0.3; done", mode="detached").spawn().accepted()
    formats = {"lines": ["--format", "json-lines"], "sse": ["--format", "sse", "--projection", "bus"]}
    streams = {name: follower(bench, run, *flags) for name, flags in formats.items()}
    answers = {name: bench.finish([name], process) for name, process in streams.items()}
    with open(os.path.join(run.directory, "events.jsonl"), encoding="utf-8") as file:
        journal = [json.loads(line) for line in file]
    must([json.loads(line) for line in answers["lines"].stdout.splitlines()] == journal, answers["lines"].stdout[:800])
    must(all(answer.exit == 0 for answer in answers.values()), str(answers["sse"]))
    frames = [frame for frame in answers["sse"].stdout.split("\n\n") if frame.startswith("id: ")]
    must([int(frame.split("\n")[0][4:]) for frame in frames] == [event["seq"] for event in journal], answers["sse"].stdout[:800])
    names = [line[7:] for frame in frames for line in frame.split("\n") if line.startswith("event: ")]
    must(names[0] == "SYSTEM_FILE_SYNC" and names[-1] == "RUNTIME_EXIT" and "RUNTIME_OUTPUT" in names, str(names))
    # Output lines that arrive close together form one event.
    outputs = [event["type"] for event in journal].count("runtime.command.output")
    must(names.count("RUNTIME_OUTPUT") == outputs and all(f"line-{n}" in answers["sse"].stdout for n in (1, 2, 3)), answers["sse"].stdout[:800])
    middle = len(journal) // 2
    rest = bench.call("runs", "events", run.run_id, "--follow", "--format", "json-lines", "--after", str(middle),
                      "--state", bench.state, "--site", bench.site)
    must([json.loads(line) for line in rest.stdout.splitlines()] == journal[middle:], rest.stdout[:400])
    bench.call("runs", "events", run.run_id, "--projection", "bus", "--state", bench.state).exit == 1 or must(False, "a projection of a table")


def test_event_follower_ends_with_the_run_or_on_sigint(bench):
    """SIGINT ends the follower and not the run; a killed supervisor ends the follower; an idle follower uses no CPU."""
    run = SupervisorClient(bench, "echo ready; sleep 60", mode="detached").spawn().accepted()
    run.until("runtime.command.output", "ready")
    first = follower(bench, run)
    second = follower(bench, run, "--format", "json-lines")
    read_until(first, b"ready")
    read_until(second, b"ready")
    before = ticks(second.pid)
    # The time in which the follower has nothing to do is what is measured.
    time.sleep(2)
    used = ticks(second.pid) - before
    must(used < 40, f"{used} ticks in two silent seconds")
    first.send_signal(signal.SIGINT)
    answer = bench.finish(["follow"], first)
    must(answer.exit == 130 and answer.stderr == "", str(answer))
    must(run.look()["status"] == "running", "Ctrl-C of a follower ended the run")
    run.kill()
    began = time.monotonic()
    answer = bench.finish(["follow"], second)
    must(answer.exit == 0 and time.monotonic() - began < 45, f"{time.monotonic() - began} s, {answer}")
    entry = registry(bench, "status", run.run_id).expect(0).json
    must(entry["status"] == "failed" and entry["error"]["code"] == "wp_codebox_runner_unavailable", json.dumps(entry))


def ticks(pid):
    """Returns the CPU time of a process in ticks of 10 ms."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def control(run, data, user=None):
    """Sends data to the control socket as this user, through a directory descriptor that root opened."""
    directory = os.open(run.directory, os.O_PATH | os.O_DIRECTORY)
    program = ("import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(30)\n"
               f"s.connect('/proc/self/fd/{directory}/control.sock')\n"
               "try:\n s.sendall(eval(sys.argv[1]))\n sys.stdout.write(s.makefile().readline())\n"
               "except (BrokenPipeError, ConnectionResetError): pass\n")
    try:
        return subprocess.run([sys.executable, "-c", program, repr(data)], pass_fds=[directory], user=user, capture_output=True,
                              text=True, timeout=60, check=False)
    finally:
        os.close(directory)


def test_control_socket_gives_other_users_no_reply_even_with_open_file_modes(bench):
    if os.geteuid() != 0:
        skip_unless_root("another user")
    run = SupervisorClient(bench, "sleep 60", mode="detached").spawn().accepted()
    sock = os.path.join(run.directory, "control.sock")
    status = os.stat(sock)
    must(stat.S_IMODE(status.st_mode) == 0o600 and status.st_uid == os.stat(bench.state).st_uid, oct(status.st_mode))
    cancel = b'{"type":"cancel","actor":"foreign"}\n'
    refused = control(run, cancel, user="nobody")
    must("PermissionError" in refused.stderr, f"the modes did not hold: {refused}")
    # With open file modes, only the SO_PEERCRED check can refuse the user.
    os.chmod(run.directory, 0o711)
    os.chmod(sock, 0o777)
    silent = control(run, cancel, user="nobody")
    must(silent.returncode == 0 and silent.stdout == "", f"a foreign user was answered: {silent}")
    heard = control(run, cancel.replace(b"foreign", b"owner"), user=bench.owner)
    must(json.loads(heard.stdout)["answer"] == "requested", str(heard))
    must(run.last()["result"]["outcome"] == "cancelled", "the owner did not cancel it")
    # The record names the first of all accepted requests.
    status = registry(bench, "status", run.run_id).expect(0).json
    must(status["lifecycle"]["cancellation"]["requestedBy"] == "owner", json.dumps(status))


def test_control_socket_still_accepts_a_cancellation_after_malformed_and_idle_clients(bench):
    run = SupervisorClient(bench, "sleep 60", mode="detached").spawn().accepted()
    for data in (b"x\n", b"\n", b'{"type":"detach"}\n', b'{"type":"start"}\n', b"\xff" * 6000, b"{" * 5000 + b"\n"):
        answer = control(run, data)
        must(not answer.stdout or json.loads(answer.stdout)["error"]["code"] == "wp_codebox_input_invalid", str(answer))
    # Idle connections must block neither the run nor another client.
    directory = os.open(run.directory, os.O_PATH | os.O_DIRECTORY)
    idle = []
    for _ in range(120):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(30)
        client.connect(f"/proc/self/fd/{directory}/control.sock")
        idle.append(client)
    os.close(directory)
    must(run.look()["status"] == "running", "malformed input ended the run")
    began = time.monotonic()
    must(runs(bench, "cancel", run.run_id).expect(0).json["answer"] == "requested", "the cancellation was not accepted")
    must(time.monotonic() - began < 30, "the cancellation took more than 30 s")
    for client in idle:
        client.close()
    must(run.last()["result"]["outcome"] == "cancelled", "not cancelled")


def test_event_pages_by_cursor_have_no_gap(bench):
    run = SupervisorClient(bench, "for i in 1 2 3 4 5 6; do echo line-$i; sleep 0.2; done", mode="detached").spawn().accepted()
    seen, cursor = [], 0
    while True:
        page = runs(bench, "events", run.run_id, "--after", str(cursor), "--limit", "3").expect(0).json
        must(len(page["events"]) <= 3 and page["cursor"] >= cursor, json.dumps(page))
        seen += page["events"]
        cursor = page["cursor"]
        if page["status"] == "ended" and not page["more"]:
            break
    must([event["seq"] for event in seen] == list(range(1, len(seen) + 1)), "a gap")
    with open(os.path.join(run.directory, "events.jsonl"), encoding="utf-8") as file:
        must(seen == [json.loads(line) for line in file], "other events than in the journal")
    must(all(f"line-{n}" in json.dumps(seen) for n in range(1, 7)), "output is missing")
    # Appends an incomplete line to the journal, like the one that an interrupted writer leaves.
    with open(os.path.join(run.directory, "events.jsonl"), "a", encoding="utf-8") as file:
        file.write('{"id":"evt-99","seq":99,"ty')
    page = runs(bench, "events", run.run_id, "--after", str(cursor)).expect(0).json
    must(page["events"] == [] and page["cursor"] == cursor and not page["more"], json.dumps(page))


def test_runs_events_command_with_follow_prints_pages_until_the_run_ends(bench):
    run = SupervisorClient(bench, f"for i in 1 2 3; do echo line-$i; sleep 1; [ $i = 2 ] && {sleeper(67)}; done; true", mode="detached").spawn().accepted()
    words = ["runs", "events", run.run_id, "--follow", "--state", bench.state, "--site", bench.site, "--json"]
    following = bench.start(words)
    # The run continues only after the follower has printed its first page.
    first = read_until(following, b"\n")
    wake(sleeper(67))
    answer = bench.finish(words, following)
    answer.stdout = first.decode() + answer.stdout
    must(answer.exit == 0, str(answer))
    pages = [json.loads(line) for line in answer.stdout.splitlines()]
    must(pages[-1]["status"] == "ended" and pages[0]["status"] == "running" and "line-3" in answer.stdout, str(answer))
    text = bench.call("runs", "events", run.run_id, "--state", bench.state, "--site", bench.site).stdout
    must("runtime.command.output" in text and "line-2" in text, text)


def test_runs_list_filters_by_status_and_pages_and_runs_get_accepts_only_an_unambiguous_id(bench):
    for _ in range(3):
        SupervisorClient(bench, "true").spawn().accepted().last()
    alive = SupervisorClient(bench, "sleep 60", mode="detached").spawn().accepted()
    listed = runs(bench, "list").expect(0).json
    # Runs of earlier cases are listed, too; a page has fifty rows.
    must(listed["schema"] == "wp-codebox/run-list/v1" and listed["total"] >= 4 and len(listed["runs"]) == min(50, listed["total"]),
         json.dumps(listed)[:300])
    must(listed["runs"][0]["run_id"] == alive.run_id and "result" not in listed["runs"][1], "order, or results in a list")
    only = runs(bench, "list", "--status", "running").expect(0).json
    must([row["run_id"] for row in only["runs"]] == [alive.run_id], json.dumps(only)[:400])
    page = runs(bench, "list", "--limit", "2", "--offset", "1").expect(0).json
    must(page["runs"] == listed["runs"][1:3] and page["total"] == listed["total"], "the page")
    everywhere = bench.call("runs", "list", "--state", bench.state, "--status", "running", "--json").expect(0).json
    must(everywhere["schema"] == "wp-codebox/run-registry/v1", "the words")
    must(alive.run_id in [row["runId"] for row in everywhere["runs"]], "all sites")
    human = bench.call("runs", "list", "--state", bench.state, "--site", bench.site)
    must(human.exit == 0 and alive.run_id in human.stdout and "detached" in human.stdout, str(human))
    human = bench.call("runs", "get", alive.run_id, "--state", bench.state, "--site", bench.site)
    must("status   running, detached" in human.stdout, str(human))
    runs(bench, "get", "run_").expect(1, "wp_codebox_run_ambiguous")
    runs(bench, "get", "run_" + "0" * 32).expect(1, "wp_codebox_run_not_found")
    runs(bench, "get", "../../../etc").expect(1, "wp_codebox_run_not_found")
    runs(bench, "get", "").expect(1, "wp_codebox_input_invalid")
    bench.call("runs", "list", "--state", bench.state, "--site", "../x", "--json").expect(1, "wp_codebox_input_invalid")
    bench.call("runs", "list", "--state", bench.directory + "/none", "--json").expect(125, "wp_codebox_state_dir_invalid")
    bench.call("runs", "list", "--limit", "0", "--json").expect(1)
    runs(bench, "cancel", alive.run_id).expect(0)
    must(alive.last()["type"] == "result", "the end")


def test_runs_list_command_called_by_another_user_is_refused(bench):
    if os.geteuid() != 0:
        skip_unless_root("another user")
    asked = subprocess.run([bench.environment["CODEBOX"], "runs", "list", "--state", bench.state, "--json"], user="nobody",
                           capture_output=True, text=True, env={}, check=False)
    must(asked.returncode == 125 and "wp_codebox_state_dir_invalid" in asked.stdout, str(asked))


def test_detached_run_without_hold_completes_and_its_events_can_be_followed(bench):
    source = bench.source()
    place = ["--site", bench.site, "--state", bench.state]
    answer = bench.run("--mount", f"{source}:/workspace/plugin", "--agent-command", "sh -c 'echo one > one.txt'", "--detach").expect(0)
    run = answer.json["run_id"]
    bench.call("runs", "events", run, *place, "--follow").expect(0)
    told = bench.call("runs", "get", run, *place, "--json").expect(0)
    must("one.txt" in told.stdout and answer.json["schema"] == "wp-codebox/run-handle/v1", str(told))
    refused = bench.run("--mount", f"{source}:/workspace/plugin", "--agent-command", "true", "--detach", "--artifacts", bench.directory)
    must(refused.exit == 1 and "--artifacts" in refused.stdout, str(refused))
