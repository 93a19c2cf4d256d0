"""PHP failures during a run: nothing of the run stays, and the next request works."""

import os
import signal

import pytest
from calls import FAULT_STATUSES, new_run, check_settled, run_failing_request, start_tagged_request
from world import SLEEP, read

from harness import must


def test_fault_injection_route_without_a_fault_completes_the_run(world):
    answer, run = run_failing_request(world, "nothing", "event", "echo begun; sleep 0.2")
    must(answer.expect(200).json["run"]["outcome"] == "no_op", answer)
    world.await_cleanup([run])


@pytest.mark.parametrize("where", ("event", "start"))
@pytest.mark.parametrize("how", FAULT_STATUSES)
def test_failing_request_ends_its_attached_run(world, how, where):
    """The request fails in the event callback, or right after the start."""
    answer, run = run_failing_request(world, how, where)
    must(answer.status in FAULT_STATUSES[how], f"{how} answered {answer}")
    must(answer.seconds < 15, f"the request waited for the run: {answer.seconds:.1f} s")
    world.await_cleanup([run])
    check_settled(world, run)


def test_killed_worker_ends_its_attached_run_and_saves_changes(world):
    before = world.runs()
    thread, worker, answers = start_tagged_request(world, "kill", lambda: world.run(f"echo x >x.txt; {SLEEP}", headers={"X-Test-Tag": "kill"}))
    world.await_agents()
    run = new_run(world, before)
    os.kill(worker, signal.SIGKILL)
    world.await_cleanup([run])
    thread.join()
    must(answers[0].status == 502, answers[0])
    check_settled(world, run)
    # The agent's changes so far are in the bundle.
    patch = read(os.path.join(world.site_directory(), "artifacts", run, "files", "patch.diff"))
    must("x.txt" in patch, f"the work so far is lost: {os.listdir(os.path.join(world.site_directory(), 'artifacts'))}")


def test_request_terminate_timeout_ends_the_attached_run(world):
    before = world.runs()
    answer = world.run(SLEEP, port=world.short_port)
    must(answer.status == 502 and answer.seconds < 60, answer)
    run = new_run(world, before)
    world.await_cleanup([run])
    check_settled(world, run)
    world.run("sleep 0.1", port=world.short_port).expect(200)
