"""A run that is ended during a model response ends at once and keeps its changes."""

import concurrent.futures
import json
import signal
import time

from harness import poll_until
from loop import ANTHROPIC, OPENAI, call, changed, must

WRITE = call("workspace.write", path="added.txt", content="x\n")
#: Seconds within which the supervisor must close the model connection, which would otherwise last at least a minute.
HANGUP_SECONDS = 50.0
#: Seconds within which the whole run must end, guest and bundle included, on a busy machine.
TOTAL_SECONDS = 55.0
#: Timeout of the run in seconds: enough for a busy machine to start the guest and execute the first turn.
DEADLINE = 20


def hangup_delay(answer, since):
    """Returns the seconds from `since` until the client closed the connection of the unfinished response."""
    return poll_until(lambda: answer.requests[-1].get("ended"), what="the client did not close the connection") - since


def await_silence(bench, name, number):
    """Waits until the model server has sent all that it sends in response to this request."""
    def silent():
        rows = bench.server.of(name)
        return len(rows) >= number and (rows[number - 1].get("silent") or rows[number - 1].get("ended"))

    poll_until(silent, what=f"the model did not respond to request {number}")


def test_cancellation_aborts_a_pending_model_response(bench):
    for fault, api in (({"fault": "never"}, OPENAI), ({"fault": "stall"}, ANTHROPIC), ({"fault": "status", "status": 429, "headers": {"Retry-After": "60"}}, OPENAI)):
        full, environment, name, key = bench.arguments([WRITE, fault, fault, fault], api=api)
        process = bench.start(full, environment)
        await_silence(bench, name, 2)
        began = time.time()
        process.send_signal(signal.SIGINT)
        answer = bench.known(bench.finish(full, process), name, key)
        took = time.time() - began
        bench.good(answer, "cancelled", 130, "wp_codebox_run_cancelled")
        must(hangup_delay(answer, began) <= HANGUP_SECONDS and took <= TOTAL_SECONDS, f"it took {hangup_delay(answer, began):.1f} s, {took:.1f} s in all")
        must(changed(answer) == ["added.txt"] and len(answer.requests) == 2, str(answer))


def test_run_deadline_aborts_a_pending_model_response(bench):
    def one(fault, api):
        began = time.time()
        answer = bench.play([WRITE, fault], "--timeout", f"{DEADLINE}s", api=api)
        took = time.time() - began
        bench.good(answer, "timed_out", 124, "wp_codebox_run_timeout")
        heard = hangup_delay(answer, began)
        must(DEADLINE - 0.5 <= heard <= DEADLINE + HANGUP_SECONDS and took <= DEADLINE + TOTAL_SECONDS, f"it took {heard:.1f} s, {took:.1f} s in all")
        outcome = answer.result["completion_outcome"]
        must(changed(answer) == ["added.txt"] and outcome["status"] == "partial", json.dumps(outcome))

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(one, fault, api) for fault, api in (
                ({"fault": "never"}, ANTHROPIC), ({"fault": "stall"}, OPENAI),
                ({"text": "slow " * 2000, "pace": {"characters": 5, "milliseconds": 50}}, OPENAI))]:
            done.result()


def test_tool_timeout_ends_the_tool_and_not_the_run(bench):
    answer = bench.play([
        call("terminal.run", command="echo before; sleep 90", timeout_seconds=10),
        {"expect": {"last": "before"}, **call("terminal.run", command="echo alive")},
        {"expect": {"last": "alive"}, **WRITE},
        call("task.finish", summary="x"),
    ], "--timeout", "120s")
    bench.good(answer)
    must(changed(answer) == ["added.txt"], str(answer))
