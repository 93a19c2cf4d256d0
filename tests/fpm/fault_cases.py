"""PHP that breaks in the middle of a run: nothing of the run may stay, and the next request works."""

import os
import signal
import threading

from harness import must
from world import SLEEP, Response, read

# How it breaks, and the statuses that the client may see: what php-fpm answers is not ours.
TROUBLES = {"exit": {200, 500}, "memory": {500}, "time": {500, 502}, "throw": {500, 502}, "type": {500}, "fatal": {500}, "segfault": {502}}


def trouble(world, how, where, script=f"echo begun; {SLEEP}", port=None, **more):
    """Runs a task through the route that breaks; answers response and run id."""
    note = world.path("tags", "run")
    if os.path.exists(note):
        os.remove(note)
    answer = world.request("POST", "/wp-json/test/v1/trouble", body={"how": how, "where": where, "task": world.task(script, **more)}, port=port)
    must(os.path.exists(note), f"no run was started: {answer}")
    return answer, read(note)


def the_route_itself_works(world):
    answer, run = trouble(world, "nothing", "event", "echo begun; sleep 0.2")
    must(answer.expect(200).json["run"]["outcome"] == "no_op", answer)
    world.gone([run])


def breaking(how, where):
    def case(world):
        answer, run = trouble(world, how, where)
        must(answer.status in TROUBLES[how], f"{how} answered {answer}")
        must(answer.seconds < 15, f"the request waited for the run: {answer.seconds:.1f} s")
        world.gone([run])
        settled(world, run)
    case.__name__ = f"{how}_{'in_the_event_callback' if where == 'event' else 'right_after_start'}_ends_the_run"
    return case


def settled(world, run, outcomes=("cancelled", "failed")):
    """The next call of the site finds an ended run that says why, and works itself."""
    world.run("true").expect(200)
    record = world.record(run)
    must(record.get("status") == "ended" and record.get("outcome") in outcomes, record)
    must(len(record.get("reason") or record.get("summary") or "") > 10, f"the record does not say why: {record}")
    must(run not in os.listdir(os.path.join(world.site_directory(), "active")), "the run is still marked")
    must(not os.path.exists(os.path.join(world.site_directory(), "runs", run, "scratch")), "scratch is left")


def waiting(world, tag, call):
    """Starts a request in a thread; answers the thread, the worker and where its answer will be."""
    answers = []

    def ask():
        try:
            answers.append(call())
        except OSError as error:
            answers.append(Response(0, str(error).encode(), 0.0))

    path = world.path("tags", tag)
    if os.path.exists(path):
        os.remove(path)
    thread = threading.Thread(target=ask)
    thread.start()
    return thread, world.tagged(tag), answers


def newest(world, before):
    new = world.runs() - before
    must(len(new) == 1, f"expected one new run, not {new}")
    return new.pop()


def a_killed_worker_takes_its_run_along(world):
    before = world.runs()
    thread, worker, answers = waiting(world, "kill", lambda: world.run(f"echo x >x.txt; {SLEEP}", headers={"X-Test-Tag": "kill"}))
    world.guest_is_up()
    run = newest(world, before)
    os.kill(worker, signal.SIGKILL)
    world.gone([run])
    thread.join()
    must(answers[0].status == 502, answers[0])
    settled(world, run)
    # What the agent had done is in the bundle.
    patch = read(os.path.join(world.site_directory(), "artifacts", run, "files", "patch.diff"))
    must("x.txt" in patch, f"the work so far is lost: {os.listdir(os.path.join(world.site_directory(), 'artifacts'))}")


def a_request_that_takes_too_long_is_ended_by_php_fpm(world):
    before = world.runs()
    answer = world.run(SLEEP, port=world.short_port)
    must(answer.status in (502, 504) and answer.seconds < 60, answer)
    run = newest(world, before)
    world.gone([run])
    settled(world, run)
    world.run("sleep 0.1", port=world.short_port).expect(200)


def the_time_limit_of_php_does_not_count_waiting(world):
    """max_execution_time counts processor time on Linux: a request that waits uses none."""
    answer, _run = trouble(world, "nothing", "event", "echo begun; sleep 3")
    answer.expect(200)
    must(answer.seconds > 3, answer)


CASES = [the_route_itself_works, *(breaking(how, where) for how in TROUBLES for where in ("event", "start")),
         a_killed_worker_takes_its_run_along, a_request_that_takes_too_long_is_ended_by_php_fpm,
         the_time_limit_of_php_does_not_count_waiting]
