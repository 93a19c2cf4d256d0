"""The extension in real php-fpm workers, over raw FastCGI. The end of a caller ends its attached run
and not a detached one, and no child of a worker inherits its sockets.

The panic case builds a debug version of the extension.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest
from extension_world import ROOT, SITE, Page, detectors

from harness import must, poll_until
from harness.processes import sockets


@pytest.fixture
def world(extension):
    return extension


@pytest.fixture
def fpm(extension):
    return extension.pool


def attached(fpm, do, act=None, finished=None, **more):
    """Ends the caller of an attached run with `act` and checks that the run ends, too."""
    page = Page(fpm, do, **more)
    page.await_agent()
    if act is not None:
        act(page)
    page.check_cancelled()
    if finished is not None:
        finished(page)
    # The pool still answers requests.
    poll_until(lambda: fpm.get(do="pid"), seconds=60, what="php-fpm does not answer any more")


def kill_worker(page):
    os.kill(page.worker, signal.SIGKILL)


def same_worker(page):
    must(page.worker in page.server.workers(), "the worker died")


def expects_note(word, text):
    def look(page):
        must(page.expect(word) == text, f"{word}: {page.note_value(word)} instead of {text}")
        same_worker(page)

    return look


def script_ended(page):
    """Waits until the script has ended and its shutdown functions run; the cleanup time starts here."""
    page.expect("shutdown")


@pytest.mark.parametrize(("how", "act", "finished"), (
    pytest.param("exit", script_ended, expects_note("shutdown", "0"), id="exit"),
    pytest.param("memory", script_ended, same_worker, id="memory_limit"),
    pytest.param("time", script_ended, same_worker, id="time_limit"),
    pytest.param("throw", script_ended, same_worker, id="exception"),
    pytest.param("wait", kill_worker, None, id="kill_of_the_worker"),
    # 1 is PHP's CONNECTION_ABORTED, which the shutdown function reads with connection_status().
    pytest.param("wait", lambda page: page.request.abort(), expects_note("shutdown", "1"), id="client_abort"),
))
def test_end_of_the_calling_php_request_ends_an_attached_run(fpm, how, act, finished):
    attached(fpm, how, act, finished)


def test_client_abort_over_tcp_ends_an_attached_run(world):
    fpm = world.fpm(listen="tcp")
    attached(fpm, "wait", lambda page: page.request.abort(), expects_note("shutdown", "1"))
    fpm.stop(signal.SIGTERM)


def test_half_closed_fastcgi_connection_does_not_cancel_the_run(world, fpm):
    page = Page(fpm, "wait")
    page.await_agent()
    page.request.half_close()
    world.wake()
    must(page.request.answer() == "end of page", "the page did not end well")
    must(page.note_value("result") == "succeeded", f"result {page.note_value('result')}")


def test_ignore_user_abort_keeps_the_run_after_client_abort(world, fpm):
    page = Page(fpm, "ignore-abort")
    page.await_agent()
    page.request.abort()
    world.wake()
    must(page.expect("result") == "succeeded", "the run was cancelled")


def test_run_continues_after_fastcgi_finish_request(world, fpm):
    page = Page(fpm, "finish")
    page.await_agent()
    # The worker continues only after its client has read the end of the response.
    must(page.request.answer() is not None, "no answer")
    page.expect("finished")
    must(page.note_value("result") is None, "the request was not finished while the run went on")
    world.wake()
    must(page.expect("result") == "succeeded", "the run was cancelled")


def test_php_fpm_request_terminate_timeout_ends_an_attached_run(world):
    fpm = world.fpm(pool={"request_terminate_timeout": "8s"})
    # The 8 s include the start of the run, and the building of the template if no earlier case of this process built it.
    page = Page(fpm, "wait")
    page.await_agent()
    must(page.request.answer() is None, "the page answered")
    page.check_cancelled()
    must("request_terminate" in open(fpm.log, encoding="utf-8").read() or "timed out" in open(fpm.log, encoding="utf-8").read(), "the log does not say so")
    fpm.stop(signal.SIGTERM)


def test_extension_panic_ends_the_run_and_not_the_worker(world):
    fpm = world.fpm(extension=debug_extension(world), pool={"pm.max_children": 1})
    page = Page(fpm, "panic", resolved_agent={"argv": ["sh", "-c", f"while sleep 0.3; do echo {world.token}; done"]})
    page.await_agent()
    must(page.expect("error") == "wp_codebox_internal", f"error {page.note_value('error')}")
    page.check_cancelled()
    page.request.answer()
    must(fpm.get(do="pid") == str(page.worker), "another worker answers")
    page = Page(fpm, "wait")
    page.await_agent()
    world.wake()
    must(page.result() == "succeeded", "the next run of this worker did not work")
    fpm.stop(signal.SIGTERM)


def debug_extension(world):
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    built = os.path.join(target, "debug", "libwp_codebox.so")
    # Reuses the build of the suite `rust`: with -p, cargo would build other dependency features.
    build = subprocess.run(["cargo", "build", "--quiet", "--all-targets"], cwd=ROOT, stderr=subprocess.PIPE, check=False)
    must(build.returncode == 0, "the debug build failed: " + build.stderr.decode()[-300:])
    path = world.path("bin", "debug.so")
    shutil.copy(built, path)
    return path


def test_waiting_for_a_run_uses_almost_no_processor_time(world, fpm):
    page = Page(fpm, "idle")
    page.run = page.expect("run")
    spent = int(page.expect("waited"))
    must(spent < 300_000, f"3 s of waiting used {spent} µs")
    page.request.answer()
    world.await_cleanup()


def test_no_run_process_inherits_a_socket_of_the_worker(world, fpm):
    page = Page(fpm, "wait")
    page.await_agent()
    held = sockets(page.worker)
    must(len(held) >= 3, f"the worker holds {held}; expected listener, client and runner")
    # Control: the master process holds the listening socket as well.
    must(held & sockets(fpm.process.pid), "the master shares nothing with its worker")
    family = world.processes()
    must(len(family) >= 3, "expected runner, launcher and guest")
    shared = {pid: held & sockets(pid) for pid in family if held & sockets(pid)}
    must(not shared, f"shared: {shared}")
    world.wake()
    must(page.result() == "succeeded", "the run did not end well")


def test_port_is_free_after_php_fpm_stops_during_a_detached_run(world):
    fpm = world.fpm(listen="tcp")
    page = Page(fpm, "wait", mode="detached")
    page.await_agent()
    # Control: the port is in use.
    must(not can_bind(fpm.address), "the port could be bound while php-fpm has it")
    fpm.stop(signal.SIGTERM)
    must(fpm.process.poll() is not None, "php-fpm did not stop")
    must(can_bind(fpm.address), "the port is not free")
    page.check_succeeded()


def can_bind(address):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen()
        except OSError:
            return False
        return True


@pytest.mark.parametrize(("how", "act", "pool"), (
    pytest.param("exit", script_ended, {}, id="exit"),
    pytest.param("memory", script_ended, {}, id="memory_limit"),
    pytest.param("time", script_ended, {}, id="time_limit"),
    pytest.param("throw", script_ended, {}, id="exception"),
    pytest.param("leave", script_ended, {}, id="end_of_its_request"),
    pytest.param("wait", lambda page: page.request.abort(), {}, id="client_abort"),
    pytest.param("wait", kill_worker, {}, id="kill_of_the_worker"),
    pytest.param("wait", lambda page: page.request.answer(), {"request_terminate_timeout": "8s"}, id="terminate_timeout"),
    pytest.param("wait", lambda page: page.server.process.send_signal(signal.SIGUSR2), {"pm.max_children": 2}, id="reload"),
))
def test_detached_run_survives_the_end_of_its_calling_php_request(world, fpm, how, act, pool):
    own = world.fpm(pool=pool) if pool else fpm
    page = Page(own, how, mode="detached")
    page.await_agent()
    act(page)
    page.check_succeeded()
    if pool:
        own.stop(signal.SIGTERM)


def test_run_detached_after_its_start_survives_the_end_of_its_request(world, fpm):
    page = Page(fpm, "detach")
    page.await_agent()
    page.expect("shutdown")
    page.check_succeeded()


def test_detached_run_survives_exit_of_its_idle_worker(world):
    fpm = world.fpm(pool={"pm": "ondemand", "pm.process_idle_timeout": "1s"})
    page = Page(fpm, "leave", mode="detached")
    page.await_agent()
    must(page.request.answer() == "end of page", "the page did not end")
    poll_until(lambda: page.worker not in fpm.workers(), seconds=60, what="the idle worker stays")
    page.check_succeeded()
    fpm.stop(signal.SIGTERM)


def test_stopping_php_fpm_ends_an_attached_run(world):
    fpm = world.fpm()
    page = Page(fpm, "wait")
    page.await_agent()
    fpm.process.send_signal(signal.SIGTERM)
    page.check_cancelled()
    fpm.stop(signal.SIGKILL)
    must(page.request.answer() is None, "the page answered after a stop")


def test_php_fpm_reload_ends_an_attached_run_and_graceful_reload_waits_for_it(world):
    # A reload kills the workers at once unless process_control_timeout is set.
    fpm = world.fpm()
    page = Page(fpm, "wait")
    page.await_agent()
    fpm.process.send_signal(signal.SIGUSR2)
    page.check_cancelled()
    poll_until(fpm.answers, seconds=60, what="php-fpm does not answer after a reload")
    fpm.stop(signal.SIGTERM)
    patient = world.fpm(main=["process_control_timeout = 60s"])
    page = Page(patient, "wait")
    page.await_agent()
    patient.process.send_signal(signal.SIGUSR2)
    world.wake()
    must(page.request.answer() == "end of page", "a graceful reload cut the page")
    must(page.note_value("result") == "succeeded", f"result {page.note_value('result')}")
    # A SIGTERM in the middle of the reload would be obeyed only after process_control_timeout.
    poll_until(patient.answers, seconds=60, what="php-fpm does not answer after a graceful reload")
    patient.stop(signal.SIGTERM)


def test_four_workers_run_four_agents_at_once(world, fpm):
    pages = [Page(fpm, "wait") for _ in range(4)]
    for page in pages:
        page.go()
    poll_until(lambda: len(detectors.sleeping_commands(world.token)) == 4, seconds=60, what="four agents do not work at once")
    world.wake()
    must([page.request.answer() for page in pages] == ["end of page"] * 4, "a page did not end well")
    must([page.note_value("result") for page in pages] == ["succeeded"] * 4, f"results {[page.note_value('result') for page in pages]}")
    must(len({page.note_value("worker") for page in pages}) == 4, "they did not run in four workers")


def test_site_at_max_runs_answers_busy_until_a_run_ends(world):
    fpm = world.fpm(ini={"wp_codebox.max_runs": 1})
    first = Page(fpm, "wait")
    first.await_agent()
    second = Page(fpm, "wait", seconds=1)
    must(second.expect("refused") == "wp_codebox_busy 429 125", f"refused {second.note_value('refused')}")
    world.wake()
    must(first.result() == "succeeded", "the first did not end well")
    third = Page(fpm, "wait")
    third.await_agent()
    world.wake()
    must(third.result() == "succeeded", "there is room again, and it was not used")
    fpm.stop(signal.SIGTERM)


def test_one_request_can_wait_for_several_runs_in_turn(world, fpm):
    page = Page(fpm, "many", seconds=1)
    must(page.request.answer() == "end of page", "the page did not end well")
    must(page.count("one succeeded") == 3, f"{page.count('one succeeded')} of 3 succeeded")
    must(page.count("seen all") == 3, f"events were lost or came twice: {page.note_value('seen')}")


def test_later_request_lists_follows_and_cancels_a_detached_run(world, fpm):
    page = Page(fpm, "leave", mode="detached")
    run = page.await_agent()
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
    page.check_cancelled()
    must(fpm.runs("cancel", SITE, run)["answer"] == "already_ended", "cancelled twice")
    view = fpm.runs("get", SITE, run)
    must((view["outcome"], view["success"], view["exit_status"]) == ("cancelled", False, 130), f"{view}")
    must(view["result"]["run_id"] == run, "there is no result")
    must(fpm.runs("get", SITE, "run_zz")["code"] == "wp_codebox_run_not_found", "an unknown run was found")
    must(fpm.runs("get", SITE, "run_")["code"] == "wp_codebox_run_ambiguous", "a common prefix named one run")
    must(fpm.runs("get", "site-2", run)["code"] == "wp_codebox_run_not_found", "another site found it")


def test_killed_supervisor_is_an_error_and_the_next_call_records_the_run_as_ended(world, fpm):
    page = Page(fpm, "wait")
    run = page.await_agent()
    supervisors = [pid for pid in world.processes() if "supervise" in detectors.command(pid)]
    must(len(supervisors) == 1, f"supervisors {supervisors}")
    os.kill(supervisors[0], signal.SIGKILL)
    world.await_cleanup()
    must(page.expect("error") == "wp_codebox_runner_unavailable", f"error {page.note_value('error')}")
    page.request.answer()
    must(world.record(run).get("status") != "ended", "the run was settled before the call that should settle it")
    view = fpm.runs("get", SITE, run)
    must(view["status"] == "ended" and not view["success"] and view["exit_status"] != 0, f"{view}")
    must(world.lease_is_free(run), "the lease is still held")


def test_with_a_runner_socket_the_supervisor_is_a_child_of_the_service_and_not_of_php_fpm(world):
    service, path = world.socket()
    fpm = world.fpm(ini={"wp_codebox.runner_socket": path})
    page = Page(fpm, "wait")
    page.await_agent()
    parents = {detectors.parent(pid) for pid in world.processes() if "supervise" in detectors.command(pid)}
    must(service.pid in parents, f"the runner's parent is {parents}, not the service {service.pid}")
    kill_worker(page)
    page.check_cancelled()
    page = Page(fpm, "wait", mode="detached")
    page.await_agent()
    fpm.stop(signal.SIGKILL)
    page.check_succeeded()
    # With wp_codebox.runner_socket set, the extension must not fall back to spawning a supervisor.
    service.kill()
    service.wait()
    fpm = world.fpm(ini={"wp_codebox.runner_socket": path})
    page = Page(fpm, "wait", seconds=1)
    must(page.expect("refused") == "wp_codebox_runner_unavailable 503 125", f"refused {page.note_value('refused')}")
    fpm.stop(signal.SIGTERM)


def test_root_runner_service_runs_guests_with_another_uid_for_identity_own_and_the_owners_uid_for_shared(world):
    owner = os.stat(world.state).st_uid
    _service, path = world.socket("root")
    for identity, other in (("own", True), ("shared", False)):
        fpm = world.fpm(ini={"wp_codebox.runner_socket": path, "wp_codebox.identity": identity})
        page = Page(fpm, "wait")
        page.await_agent()
        agents = [pid for pid in world.processes() if world.token in detectors.command(pid) and "supervise" not in detectors.command(pid)]
        uids = {re.search(r"^Uid:\s+(\d+)", detectors.read(f"/proc/{pid}/status"), re.M).group(1) for pid in agents}
        must(len(uids) == 1 and (uids != {str(owner)}) == other and "0" not in uids, f"{identity}: agents run as {uids}, the owner is {owner}")
        kill_worker(page)
        page.check_cancelled()
        fpm.stop(signal.SIGTERM)


def test_runner_socket_of_another_user_is_refused(world):
    _service, path = world.socket("nobody")
    fpm = world.fpm(ini={"wp_codebox.runner_socket": path})
    page = Page(fpm, "wait", seconds=1)
    must(page.expect("refused") == "wp_codebox_runner_unavailable 503 125", f"refused {page.note_value('refused')}")
    must("belongs to user" in page.expect("because"), f"because {page.note_value('because')}")
    fpm.stop(signal.SIGTERM)


def test_opcache_was_enabled_in_php_fpm_during_these_tests(world, fpm):
    must(json.loads(fpm.get(do="opcache")) is True, "opcache is off, so these cases did not test it")
