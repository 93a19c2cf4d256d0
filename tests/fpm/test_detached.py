"""Detached runs over HTTP: handles, event pages, cancellation, limits, and servers that stop."""

import os
import signal
import time

import pytest
from calls import journal, check_settled, in_parallel, run_failing_request
from world import SLEEP, command, read

from harness import must, poll_until
from harness.processes import children, sockets
from harness.servers import can_listen

UNKNOWN = "run_" + "0" * 32
FOLLOWING = (("get-run", "GET"), ("list-run-events", "GET"), ("cancel-run", "POST"))


def detach(world, script, user="admin", **more):
    """Starts a run with wait=false and returns its id."""
    handle = world.run(script, user, wait=False, **more).expect(200).json
    must(handle["schema"] == "wp-codebox/run-handle/v1" and handle["status"] == "running" and handle["success"] is True, handle)
    return handle["run_id"]


def get(world, run, user="admin"):
    return world.ability("get-run", {"run_id": run}, user, "GET")


def await_end(world, run, seconds=60):
    """Waits until the run has ended and returns its view."""
    poll_until(lambda: get(world, run).expect(200).json["run"]["status"] == "ended", seconds=seconds, what=f"{run} did not end")
    return get(world, run).json


def test_detached_run_returns_its_handle_within_a_second(world):
    run = detach(world, "true")
    await_end(world, run)
    took = []
    for _ in range(3):
        began = time.monotonic()
        run = detach(world, f"echo x >x.txt; {SLEEP}")
        took.append(time.monotonic() - began)
        must(get(world, run).json["run"]["status"] == "running", "it can be found from the handle on")
        world.await_agents()
        world.wake()
        ended = await_end(world, run)
        must(ended["run"]["outcome"] == "succeeded" and ended["result"]["success"] is True, ended)
        must([row["relativePath"] for row in ended["result"]["changed_files"]] == ["x.txt"], ended["result"]["changed_files"])
    world.await_cleanup([run])
    must(min(took) < 1, f"a handle took {took}")


def test_long_run_returns_its_handle_after_20_seconds(world):
    answer = world.run(f"echo x >x.txt; {SLEEP}; echo late", sandbox_session_id="outer-1").expect(200)
    must(18 <= answer.seconds <= 40, f"it took {answer.seconds:.1f} s")
    handle = answer.json
    must(handle["schema"] == "wp-codebox/run-handle/v1" and handle["success"] is True, handle)
    must(handle.get("sandbox_session_id") == "outer-1", "the caller's own id is not echoed")
    must(get(world, handle["run_id"]).json["run"]["status"] == "running", "the run did not continue after the handle")
    world.wake()
    ended = await_end(world, handle["run_id"])
    must(ended["run"]["outcome"] == "succeeded", ended["run"])
    stored = read(os.path.join(world.site_directory(), "runs", handle["run_id"], "run.json"))
    must("outer-1" not in stored, "the caller's id was stored")
    world.await_cleanup([handle["run_id"]])


def test_event_pages_by_cursor_are_complete_and_in_order(world):
    # The agent sleeps until the test has read a line, so that the test reads while the run is alive.
    run = detach(world, f"i=0; while [ $i -lt 60 ]; do echo line-$i; i=$((i+1)); [ $i != 30 ] || {SLEEP}; sleep 0.03; done")
    seen, cursor, pages, live = [], 0, 0, False
    until = time.monotonic() + 120
    while time.monotonic() < until:
        page = world.ability("list-run-events", {"run_id": run, "after": cursor, "per_page": 7}, method="GET").expect(200).json
        must(len(page["events"]) <= 7 and page["cursor"] >= cursor, page)
        seen += page["events"]
        cursor, pages = page["cursor"], pages + 1
        if not live and page["status"] == "running" and any(event["type"] == "runtime.command.output" for event in page["events"]):
            live = True
            world.await_agents()
            world.wake()
        if page["status"] == "ended" and not page["more"]:
            break
        if not page["events"]:
            time.sleep(0.05)
    numbers = [event["seq"] for event in seen]
    must(numbers == list(range(1, len(numbers) + 1)), f"not each once and in order: {numbers}")
    must(numbers == [event["seq"] for event in journal(world, run)], "the pages are not the journal")
    output = "".join(event.get("data", {}).get("text", "") for event in seen if event["type"] == "runtime.command.output")
    # The shell prints "Killed" when the test kills its sleep.
    must([word for word in output.split() if word != "Killed"] == [f"line-{number}" for number in range(60)], output[-200:])
    must(live and pages > 8, f"the output was not read while it ran: {pages} pages")
    # After the last event, a request returns no event and an unchanged cursor.
    again = world.ability("list-run-events", {"run_id": run, "after": cursor}, method="GET").expect(200).json
    must(again["events"] == [] and again["cursor"] == cursor, again)


def test_large_output_can_be_read_in_event_pages(world):
    run = detach(world, "head -c 1048576 /dev/zero | tr '\\0' 'o'; echo")
    await_end(world, run)
    text, cursor, more = "", 0, True
    while more:
        page = world.ability("list-run-events", {"run_id": run, "after": cursor, "per_page": 1000}, method="GET").expect(200).json
        text += "".join(event.get("data", {}).get("text", "") for event in page["events"])
        cursor, more = page["cursor"], page["more"]
    must(text.count("o") >= 1 << 20, f"{len(text)} bytes arrived")


def test_repeated_cancellation_of_a_run_is_accepted_and_cancels_it_once(world):
    run = detach(world, f"echo x >x.txt; {SLEEP}")
    world.await_agents()
    first = world.ability("cancel-run", {"run_id": run}).expect(200).json
    second = world.ability("cancel-run", {"run_id": run}).expect(200).json
    must(first["answer"] == "requested" and second["answer"] in ("requested", "already_ended"), (first, second))
    world.await_cleanup([run])
    ended = await_end(world, run)
    must(ended["run"]["outcome"] == "cancelled", ended["run"])
    must([row["relativePath"] for row in ended["result"]["changed_files"]] == ["x.txt"], "the work so far is lost")
    must(world.ability("cancel-run", {"run_id": run}).expect(200).json["answer"] == "already_ended", "a third time")


def test_only_owner_and_administrators_can_access_a_run(world):
    run = detach(world, SLEEP)
    must(get(world, run, "second").expect(200).json["run"]["run_id"] == run, "another administrator")
    listed = world.ability("list-runs", {"status": "running"}, "second", "GET").expect(200).json
    must(run in [row["run_id"] for row in listed["runs"]], listed)
    for name, verb in FOLLOWING:
        # The user `runner` may run tasks, so it gets 404 for other users' runs; the other users get 401 or 403.
        for user, status in (("runner", 404), ("subscriber", 403), ("editor", 403), (None, 401)):
            guessed = world.ability(name, {"run_id": run}, user, verb)
            none = world.ability(name, {"run_id": UNKNOWN}, user, verb)
            must(guessed.status == status, f"{name} as {user}: {guessed}")
            must((guessed.status, guessed.body.replace(run.encode(), b"")) == (none.status, none.body.replace(UNKNOWN.encode(), b"")), f"{guessed} {none}")
        world.ability(name, {"run_id": run[:12]}, "runner", verb).expect(404, "wp_codebox_run_not_found")
        world.ability(name, {"run_id": UNKNOWN}, "second", verb).expect(404, "wp_codebox_run_not_found")
    must(get(world, run).json["run"]["status"] == "running", "a refused request cancelled the run")
    # The user `runner` can see and cancel its own run, and its list contains no other user's run.
    own = detach(world, SLEEP, "runner")
    must([row["run_id"] for row in world.ability("list-runs", None, "runner", "GET").expect(200).json["runs"]] == [own], "the list")
    for name, verb in FOLLOWING:
        world.ability(name, {"run_id": own}, "runner", verb).expect(200)
    world.ability("cancel-run", {"run_id": run}, "second").expect(200)
    for ended in (run, own):
        await_end(world, ended)
    world.await_cleanup([run, own])


def test_run_over_max_runs_of_the_site_is_refused_with_429(world):
    runs = [detach(world, SLEEP) for _ in range(world.max_runs)]
    try:
        for more in ({"wait": False}, {}):
            refused = world.run("true", **more).expect(429, "wp_codebox_busy")
            must(refused.seconds < 20, refused)
    finally:
        for run in runs[1:]:
            world.ability("cancel-run", {"run_id": run})
    await_end(world, runs[1])
    world.run("true").expect(200)
    world.ability("cancel-run", {"run_id": runs[0]})
    world.await_cleanup(runs)


def test_of_four_concurrent_starts_only_one_gets_the_last_free_place_for_a_run(world):
    runs = [detach(world, SLEEP) for _ in range(world.max_runs - 1)]
    answers = in_parallel(*[lambda user=user: world.run(SLEEP, user, wait=False) for user in ("admin", "second", "admin", "second")])
    statuses = sorted(answer.status for answer in answers)
    for answer in answers:
        if answer.status == 200:
            runs.append(answer.json["run_id"])
    for run in runs:
        world.ability("cancel-run", {"run_id": run})
    world.await_cleanup(runs)
    must(statuses == [200, 429, 429, 429], f"one fits, of four at once: {statuses}")


# --- events that a detached run survives ------------------------------------------------------


@pytest.mark.parametrize("how", ("exit", "memory", "time", "throw", "segfault"))
def test_detached_run_survives_failure_of_its_request(world, how):
    answer, run = run_failing_request(world, how, "detached", f"echo begun; {SLEEP}; echo x >x.txt")
    must(answer.seconds < 20, answer)
    world.await_agents()
    must(get(world, run).expect(200).json["run"]["status"] == "running", "it was ended with its caller")
    world.wake()
    must(await_end(world, run)["run"]["outcome"] == "succeeded", "the run did not succeed")
    world.await_cleanup([run])


def test_detached_run_survives_its_killed_worker(world):
    note = world.path("tags", "detached")
    answer = world.run(f"{SLEEP}; echo x >x.txt", headers={"X-Test-Tag": "detached"}, wait=False).expect(200)
    world.await_agents()
    worker = int(read(note))
    os.kill(worker, signal.SIGKILL)
    poll_until(lambda: worker not in children(world.fpm.pid), seconds=60, what="the worker is still there")
    world.wake()
    must(await_end(world, answer.json["run_id"])["run"]["outcome"] == "succeeded", "the run did not succeed")
    world.await_cleanup()


def test_detached_run_survives_php_fpm_stop_and_holds_no_port(world):
    run = detach(world, f"{SLEEP}; echo x >x.txt")
    world.await_agents()
    theirs = set().union(*(sockets(pid) for pid in [world.fpm.pid, *children(world.fpm.pid), world.nginx.pid, *children(world.nginx.pid)]))
    for pid in world.processes():
        must(not sockets(pid) & theirs, f"{command(pid)[:60]} has a socket of the web server")
    world.nginx.stop(signal.SIGTERM)
    world.fpm.stop(signal.SIGTERM)
    try:
        for port in (world.port, world.pool_port, world.short_pool_port):
            must(can_listen(port), f"port {port} is held by the run")
        must(world.processes(), "the run was ended with php-fpm")
        world.wake()
    finally:
        world.fpm.start()
        world.nginx.start()
    must(await_end(world, run)["run"]["outcome"] == "succeeded", "the run did not succeed")
    world.await_cleanup([run])


def test_detached_run_survives_a_php_fpm_reload(world):
    run = detach(world, f"{SLEEP}; echo x >x.txt")
    world.await_agents()
    before = set(children(world.fpm.pid))
    world.fpm.send(signal.SIGUSR2)
    poll_until(lambda: len(set(children(world.fpm.pid)) - before) >= len(before), seconds=60, what="no new workers")
    world.wake()
    must(await_end(world, run)["run"]["outcome"] == "succeeded", "the run did not succeed")
    world.await_cleanup([run])


def test_detached_run_with_a_killed_supervisor_is_recorded_as_failed(world):
    run = detach(world, f"echo x >x.txt; {SLEEP}")
    family = world.await_agents()
    runner = next(pid for pid in family if " supervise" in command(pid))
    os.kill(runner, signal.SIGKILL)
    world.await_cleanup([run])
    ended = get(world, run).expect(200).json
    must(ended["run"]["status"] == "ended" and ended["run"]["outcome"] == "failed" and "result" not in ended, ended)
    check_settled(world, run, ("failed",))
