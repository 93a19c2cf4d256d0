#!/usr/bin/env python3
"""The extension in real php-fpm workers, over raw FastCGI: what ends a caller ends its attached run
and leaves a detached one alone, and no child of a worker holds its sockets.

Prints `ok <name>` or `FAIL <name>: why` for each case and exits 1 on a failure. Takes CODEBOX,
CODEBOX_LAUNCH, CODEBOX_SO, CODEBOX_SHARE, CODEBOX_WORDPRESS and CODEBOX_PHP from `tests/env`. The
case of a panic needs a debug build of the extension and makes one.
Arguments: parts of names; only those cases run.
"""

import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
import traceback

from extension_world import PROMISED, ROOT, SITE, Failed, Page, World, detectors, eventually, must, sockets

CASES = []


def case(function):
    CASES.append((function.__name__, function))
    return function


def attached(do, act=None, finished=None, **more):
    """A case in which something ends the caller of an attached run."""

    def run(world, fpm):
        page = Page(fpm, do, **more)
        page.working()
        if act is not None:
            act(page)
        took = page.gone()
        if finished is not None:
            finished(page)
        # The pool still works.
        eventually(lambda: fpm.get(do="pid"), 60, "php-fpm does not answer any more")
        return f"{took:.2f} s"

    return run


def named(name, function):
    function.__name__ = name
    return case(function)


def kill_worker(page):
    os.kill(page.worker, signal.SIGKILL)


def same_worker(page):
    must(page.worker in page.server.workers(), "the worker died")


def noted(word, text):
    def look(page):
        must(page.expect(word) == text, f"{word}: {page.noted(word)} instead of {text}")
        same_worker(page)

    return look


def script_ended(page):
    """The script is over; its shutdown functions run. From here the time counts."""
    page.expect("shutdown")


named("exit_ends_an_attached_run", attached("exit", script_ended, noted("shutdown", "0")))
named("memory_limit_ends_an_attached_run", attached("memory", script_ended, same_worker))
named("time_limit_ends_an_attached_run", attached("time", script_ended, same_worker))
named("an_exception_ends_an_attached_run", attached("throw", script_ended, same_worker))
named("kill_of_the_worker_ends_an_attached_run", attached("wait", kill_worker))
# 1 is PHP's CONNECTION_ABORTED: its shutdown functions still run, and can tell.
named("client_abort_ends_an_attached_run", attached("wait", lambda page: page.request.abort(), noted("shutdown", "1")))


@case
def client_abort_over_tcp_ends_an_attached_run(world, _fpm):
    fpm = world.fpm(listen="tcp")
    took = attached("wait", lambda page: page.request.abort(), noted("shutdown", "1"))(world, fpm)
    fpm.stop(signal.SIGTERM)
    return took


@case
def client_that_ends_its_writing_is_still_there(world, fpm):
    page = Page(fpm, "wait")
    page.working()
    page.request.half_close()
    world.wake()
    must(page.request.answer() == "end of page", "the page did not end well")
    must(page.noted("result") == "succeeded", f"result {page.noted('result')}")


@case
def ignore_user_abort_is_honoured(world, fpm):
    page = Page(fpm, "ignore-abort")
    page.working()
    page.request.abort()
    world.wake()
    must(page.expect("result") == "succeeded", "the run was cancelled")


@case
def a_finished_request_has_no_client_to_lose(world, fpm):
    page = Page(fpm, "finish")
    page.working()
    # The worker goes on only when its client has read the end.
    must(page.request.answer() is not None, "no answer")
    page.expect("finished")
    must(page.noted("result") is None, "the request was not finished while the run went on")
    world.wake()
    must(page.expect("result") == "succeeded", "the run was cancelled")


@case
def terminate_timeout_ends_an_attached_run(world, _fpm):
    fpm = world.fpm(pool={"request_terminate_timeout": "8s"})
    # Its own template and first start are not to count.
    page = Page(fpm, "wait")
    page.working()
    must(page.request.answer() is None, "the page answered")
    took = page.gone()
    must("request_terminate" in open(fpm.log, encoding="utf-8").read() or "timed out" in open(fpm.log, encoding="utf-8").read(), "the log does not say so")
    fpm.stop(signal.SIGTERM)
    return f"{took:.2f} s"


@case
def a_panic_ends_the_run_and_not_the_worker(world, _fpm):
    fpm = world.fpm(extension=debug_extension(world), pool={"pm.max_children": 1})
    page = Page(fpm, "panic", resolved_agent={"argv": ["sh", "-c", f"while sleep 0.3; do echo {world.token}; done"]})
    page.working()
    must(page.expect("error") == "wp_codebox_internal", f"error {page.noted('error')}")
    took = page.gone()
    page.request.answer()
    must(fpm.get(do="pid") == str(page.worker), "another worker answers")
    page = Page(fpm, "wait")
    page.working()
    world.wake()
    must(page.result() == "succeeded", "the next run of this worker did not work")
    fpm.stop(signal.SIGTERM)
    return f"{took:.2f} s"


def debug_extension(world):
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    built = os.path.join(target, "debug", "libwp_codebox.so")
    build = subprocess.run(["cargo", "build", "--quiet", "-p", "wp-codebox-ext"], cwd=ROOT, stderr=subprocess.PIPE, check=False)
    must(build.returncode == 0, "the debug build failed: " + build.stderr.decode()[-300:])
    path = world.path("bin", "debug.so")
    shutil.copy(built, path)
    return path


@case
def a_wait_is_not_bounded_by_the_time_limit_and_costs_nothing(world, fpm):
    page = Page(fpm, "idle")
    page.run = page.expect("run")
    spent = int(page.expect("waited"))
    must(spent < 300_000, f"3 s of waiting used {spent} µs")
    page.request.answer()
    world.nothing_left()
    return f"{spent / 1000:.0f} ms of processor time in 3 s"


@case
def no_process_of_a_run_holds_a_socket_of_the_worker(world, fpm):
    page = Page(fpm, "wait")
    page.working()
    held = sockets(page.worker)
    must(len(held) >= 3, f"the worker holds {held}; expected listener, client and runner")
    # Positive control: the master holds the listener as well.
    must(held & sockets(fpm.process.pid), "the master shares nothing with its worker")
    family = world.processes()
    must(len(family) >= 3, "expected runner, launcher and guest")
    shared = {pid: held & sockets(pid) for pid in family if held & sockets(pid)}
    must(not shared, f"shared: {shared}")
    world.wake()
    must(page.result() == "succeeded", "the run did not end well")
    return f"{len(family)} processes"


@case
def the_port_is_free_after_php_fpm_stops_during_a_detached_run(world, _fpm):
    fpm = world.fpm(listen="tcp")
    page = Page(fpm, "wait", mode="detached")
    page.working()
    # Positive control: now it is taken.
    must(not can_bind(fpm.address), "the port could be bound while php-fpm has it")
    fpm.stop(signal.SIGTERM)
    must(fpm.process.poll() is not None, "php-fpm did not stop")
    must(can_bind(fpm.address), "the port is not free")
    page.survived()


def can_bind(address):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen()
        except OSError:
            return False
        return True


def survives(do, act=script_ended, **pool):
    """A case in which something ends the caller of a detached run."""

    def run(world, fpm):
        own = world.fpm(pool=pool) if pool else fpm
        page = Page(own, do, mode="detached")
        page.working()
        act(page)
        page.survived()
        if pool:
            own.stop(signal.SIGTERM)

    return run


named("a_detached_run_survives_exit", survives("exit"))
named("a_detached_run_survives_the_memory_limit", survives("memory"))
named("a_detached_run_survives_the_time_limit", survives("time"))
named("a_detached_run_survives_an_exception", survives("throw"))
named("a_detached_run_survives_the_end_of_its_request", survives("leave"))
named("a_detached_run_survives_its_client", survives("wait", lambda page: page.request.abort()))
named("a_detached_run_survives_kill_of_the_worker", survives("wait", kill_worker))
named("a_detached_run_survives_a_terminate_timeout", survives("wait", lambda page: page.request.answer(), request_terminate_timeout="8s"))
named("a_detached_run_survives_a_reload", survives("wait", lambda page: page.server.process.send_signal(signal.SIGUSR2), **{"pm.max_children": 2}))


@case
def a_run_detached_while_it_works_survives(world, fpm):
    page = Page(fpm, "detach")
    page.working()
    page.expect("shutdown")
    page.survived()


@case
def a_detached_run_survives_its_idle_worker(world, _fpm):
    fpm = world.fpm(pool={"pm": "ondemand", "pm.process_idle_timeout": "1s"})
    page = Page(fpm, "leave", mode="detached")
    page.working()
    must(page.request.answer() == "end of page", "the page did not end")
    eventually(lambda: page.worker not in fpm.workers(), 60, "the idle worker stays")
    page.survived()
    fpm.stop(signal.SIGTERM)


def stopping(how, word):
    def run(world, _fpm):
        fpm = world.fpm()
        page = Page(fpm, "wait")
        page.working()
        fpm.process.send_signal(how)
        took = page.gone()
        fpm.stop(signal.SIGKILL)
        must(page.request.answer() is None, f"the page answered after {word}")
        return f"{took:.2f} s"

    return run


named("stopping_php_fpm_ends_an_attached_run", stopping(signal.SIGTERM, "a stop"))


@case
def reloading_php_fpm_leaves_no_attached_run(world, _fpm):
    # Without process_control_timeout a reload ends the workers at once; with it they finish.
    fpm = world.fpm()
    page = Page(fpm, "wait")
    page.working()
    fpm.process.send_signal(signal.SIGUSR2)
    took = page.gone()
    eventually(fpm.answers, 60, "php-fpm does not answer after a reload")
    fpm.stop(signal.SIGTERM)
    patient = world.fpm(main=["process_control_timeout = 60s"])
    page = Page(patient, "wait")
    page.working()
    patient.process.send_signal(signal.SIGUSR2)
    world.wake()
    must(page.request.answer() == "end of page", "a graceful reload cut the page")
    must(page.noted("result") == "succeeded", f"result {page.noted('result')}")
    patient.stop(signal.SIGTERM)
    return f"{took:.2f} s"


@case
def four_at_once_in_four_workers(world, fpm):
    pages = [Page(fpm, "wait") for _ in range(4)]
    for page in pages:
        page.go()
    eventually(lambda: len(detectors.asleep(world.token)) == 4, 60, "four agents do not work at once")
    world.wake()
    must([page.request.answer() for page in pages] == ["end of page"] * 4, "a page did not end well")
    must([page.noted("result") for page in pages] == ["succeeded"] * 4, f"results {[page.noted('result') for page in pages]}")
    must(len({page.noted("worker") for page in pages}) == 4, "they did not run in four workers")


@case
def over_the_limit_a_site_is_busy(world, _fpm):
    fpm = world.fpm(ini={"wp_codebox.max_runs": 1})
    first = Page(fpm, "wait")
    first.working()
    second = Page(fpm, "wait", seconds=1)
    must(second.expect("refused") == "wp_codebox_busy 429 125", f"refused {second.noted('refused')}")
    world.wake()
    must(first.result() == "succeeded", "the first did not end well")
    third = Page(fpm, "wait")
    third.working()
    world.wake()
    must(third.result() == "succeeded", "there is room again, and it was not used")
    fpm.stop(signal.SIGTERM)


@case
def several_runs_are_waited_for_in_turn(world, fpm):
    page = Page(fpm, "many", seconds=1)
    must(page.request.answer() == "end of page", "the page did not end well")
    must(page.count("one succeeded") == 3, f"{page.count('one succeeded')} of 3 succeeded")
    must(page.count("seen all") == 3, f"events were lost or came twice: {page.noted('seen')}")


@case
def another_request_finds_follows_and_cancels_a_detached_run(world, fpm):
    page = Page(fpm, "leave", mode="detached")
    run = page.working()
    must(page.request.answer() == "end of page", "the page did not end")
    rows = fpm.runs("list", SITE, {"status": "running"})["runs"]
    must([row["run_id"] for row in rows] == [run], f"running: {rows}")
    view = fpm.runs("get", SITE, run[:12])
    must((view["status"], view["mode"]) == ("running", "detached") and "success" not in view, f"{view}")
    seen, cursor = [], 0
    while (events := fpm.runs("events", SITE, run, cursor, 2))["events"]:
        seen += [event["seq"] for event in events["events"]]
        cursor = events["cursor"]
    must(seen == list(range(1, len(seen) + 1)) and len(seen) > 3, f"events {seen}")
    must(fpm.runs("cancel", SITE, run)["answer"] == "requested", "not cancelled")
    page.gone()
    must(fpm.runs("cancel", SITE, run)["answer"] == "already_ended", "cancelled twice")
    view = fpm.runs("get", SITE, run)
    must((view["outcome"], view["success"], view["exit_status"]) == ("cancelled", False, 130), f"{view}")
    must(view["result"]["run_id"] == run, "there is no result")
    must(fpm.runs("get", SITE, "run_zz")["code"] == "wp_codebox_run_not_found", "an unknown run was found")
    must(fpm.runs("get", SITE, "run_")["code"] == "wp_codebox_run_ambiguous", "a common prefix named one run")
    must(fpm.runs("get", "site-2", run)["code"] == "wp_codebox_run_not_found", "another site found it")


@case
def a_killed_supervisor_is_told_and_settled_by_the_next_call(world, fpm):
    page = Page(fpm, "wait")
    run = page.working()
    supervisors = [pid for pid in world.processes() if "supervise" in detectors.command(pid)]
    must(len(supervisors) == 1, f"supervisors {supervisors}")
    os.kill(supervisors[0], signal.SIGKILL)
    took = world.nothing_left()
    must(page.expect("error") == "wp_codebox_runner_unavailable", f"error {page.noted('error')}")
    page.request.answer()
    must(world.record(run).get("status") != "ended", "somebody settled it already: nothing was shown")
    view = fpm.runs("get", SITE, run)
    must(view["status"] == "ended" and not view["success"] and view["exit_status"] != 0, f"{view}")
    must(world.lease_is_free(run), "the lease is still held")
    return f"{took:.2f} s"


@case
def a_runner_behind_a_socket_is_no_child_of_php_fpm(world, _fpm):
    service, path = world.socket()
    fpm = world.fpm(ini={"wp_codebox.runner_socket": path})
    page = Page(fpm, "wait")
    page.working()
    parents = {detectors.parent(pid) for pid in world.processes() if "supervise" in detectors.command(pid)}
    must(service.pid in parents, f"the runner's parent is {parents}, not the service {service.pid}")
    kill_worker(page)
    took = page.gone()
    page = Page(fpm, "wait", mode="detached")
    page.working()
    fpm.stop(signal.SIGKILL)
    page.survived()
    # Never a spawned one instead: the same settings without the service.
    service.kill()
    service.wait()
    fpm = world.fpm(ini={"wp_codebox.runner_socket": path})
    page = Page(fpm, "wait", seconds=1)
    must(page.expect("refused") == "wp_codebox_runner_unavailable 503 125", f"refused {page.noted('refused')}")
    fpm.stop(signal.SIGTERM)
    return f"{took:.2f} s"


@case
def a_runner_that_root_serves_gives_guests_a_user_of_their_own(world, _fpm):
    owner = os.stat(world.state).st_uid
    _service, path = world.socket("root")
    for identity, other in (("own", True), ("shared", False)):
        fpm = world.fpm(ini={"wp_codebox.runner_socket": path, "wp_codebox.identity": identity})
        page = Page(fpm, "wait")
        page.working()
        agents = [pid for pid in world.processes() if world.token in detectors.command(pid) and "supervise" not in detectors.command(pid)]
        uids = {re.search(r"^Uid:\s+(\d+)", detectors.read(f"/proc/{pid}/status"), re.M).group(1) for pid in agents}
        must(len(uids) == 1 and (uids != {str(owner)}) == other and "0" not in uids, f"{identity}: agents run as {uids}, the owner is {owner}")
        kill_worker(page)
        page.gone()
        fpm.stop(signal.SIGTERM)


@case
def a_socket_of_another_user_is_refused(world, _fpm):
    _service, path = world.socket("nobody")
    fpm = world.fpm(ini={"wp_codebox.runner_socket": path})
    page = Page(fpm, "wait", seconds=1)
    must(page.expect("refused") == "wp_codebox_runner_unavailable 503 125", f"refused {page.noted('refused')}")
    must("belongs to user" in page.expect("because"), f"because {page.noted('because')}")
    fpm.stop(signal.SIGTERM)


@case
def what_is_left_of_a_run_goes_in_time(world, _fpm):
    """The promise of two seconds, held against every ending of these cases."""
    if not world.endings:
        return "no endings"
    middle = statistics.median(world.endings)
    said = f"{len(world.endings)} endings: median {middle:.2f} s, slowest {max(world.endings):.2f} s"
    must(middle <= PROMISED, said)
    return said


@case
def the_byte_code_cache_was_on(world, fpm):
    must(json.loads(fpm.get(do="opcache")) is True, "opcache is off: these cases said nothing about it")


def main():
    wanted = sys.argv[1:]
    if os.geteuid() != 0:
        print("FAIL extension_cases: php-fpm's workers get their user from root; run this as root")
        return 1
    world, failed = World(), 0
    try:
        fpm = world.fpm()
        for name, function in CASES:
            if wanted and not any(part in name for part in wanted):
                continue
            began = time.monotonic()
            world.host.forget()
            try:
                said = function(world, fpm)
                print(f"ok {name}" + (f" ({said})" if said else ""), flush=True)
            except Failed as error:
                failed += 1
                print(f"FAIL {name}: {error}", flush=True)
                world.kill()
            except Exception:  # A defect of the case itself.
                failed += 1
                print(f"FAIL {name}: {traceback.format_exc()}", flush=True)
                world.kill()
            if os.environ.get("CODEBOX_TIMES"):
                print(f"   {time.monotonic() - began:.1f} s", file=sys.stderr)
    finally:
        world.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
