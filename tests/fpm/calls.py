"""Helpers for HTTP requests that start runs: in parallel, in a thread, or through a route that ends in a PHP failure."""

import json
import os
import threading

from world import SLEEP, Response, read

from harness import must

# Fault name and the HTTP statuses that the client may see. Which one it sees depends on php-fpm and nginx.
FAULT_STATUSES = {"exit": {200, 500}, "memory": {500}, "time": {500, 502}, "throw": {500, 502}, "type": {500}, "fatal": {500}, "segfault": {502}}


def run_failing_request(world, how, where, script=f"echo begun; {SLEEP}", port=None, **more):
    """Calls the test route that starts a run and fails with the fault `how`. Returns the response and the run id."""
    note = world.path("tags", "run")
    if os.path.exists(note):
        os.remove(note)
    answer = world.request("POST", "/wp-json/test/v1/trouble", body={"how": how, "where": where, "task": world.task(script, **more)}, port=port)
    must(os.path.exists(note), f"no run was started: {answer}")
    return answer, read(note)


def check_settled(world, run, outcomes=("cancelled", "failed")):
    """Checks that the site's next run succeeds, and that the record of this run says that and why it ended."""
    world.run("true").expect(200)
    record = world.record(run)
    must(record.get("status") == "ended" and record.get("outcome") in outcomes, record)
    must(len(record.get("reason") or record.get("summary") or "") > 10, f"the record does not say why: {record}")
    must(run not in os.listdir(os.path.join(world.site_directory(), "active")), "the run is still marked")
    must(not os.path.exists(os.path.join(world.site_directory(), "runs", run, "scratch")), "scratch is left")


def start_tagged_request(world, tag, call):
    """Starts a request in a thread; returns the thread, the worker's pid and the list that receives the response."""
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
    return thread, world.tagged_worker(tag), answers


def new_run(world, before):
    new = world.runs() - before
    must(len(new) == 1, f"expected one new run, not {new}")
    return new.pop()


def in_parallel(*calls):
    """Makes the calls in parallel and returns their results in order."""
    answers = [None] * len(calls)

    def one(index, call):
        answers[index] = call()

    threads = [threading.Thread(target=one, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def journal(world, run):
    with open(os.path.join(world.site_directory(), "runs", run, "events.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]
