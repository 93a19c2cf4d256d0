"""Tools that the calling process executes for the agent (parent tools): requests and results over the frame socket."""

import contextlib
import json
import secrets
import time

from loop import MODEL, OPENAI, call, calls, finish, must

from harness.frames import SupervisorClient, task

TICKET = {"id": "host.read-ticket", "description": "Reads a ticket.",
          "input_schema": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}}


class ParentToolRun(SupervisorClient):
    """A run of the built-in loop whose caller executes parent tools."""

    def __init__(self, bench, steps, timeout_ms=20000, **changes):
        self.name = f"parent-{secrets.token_hex(4)}"
        self.key = "sk-test-" + secrets.token_hex(16)
        bench.server.add(self.name, {"key": self.key, "models": [MODEL], "turns": steps})
        super().__init__(bench, "true", task=task("Read ticket 4."), **changes)
        self.request |= dict(
            agent={"kind": "model"},
            model={"provider": "scripted", "model": MODEL, "api": OPENAI, "base_url": bench.server.base(self.name, api=OPENAI), "private": True, "secret": "MODEL_KEY"},
            secrets=[{"env": "MODEL_KEY", "value": self.key, "hosts": []}],
            parent_tools={"tools": [TICKET], "timeout_ms": timeout_ms})

    def request_of_tool(self):
        while True:
            frame = self.frame()
            must(frame and frame["type"] in ("event", "tool_request"), f"no request came: {json.dumps(frame)[:600]}")
            if frame["type"] == "tool_request":
                return frame["request"]

    def answer(self, request, **members):
        return self.send({"type": "tool_result", "result": {
            "schema": "wp-codebox/parent-tool-result/v1", "version": 1, "request_id": request["request_id"], "tool": request["tool"],
            "operation": request["operation"], **members}})

    def result(self, outcome="no_op"):
        frame = self.last()
        must(frame and frame["type"] == "result", f"no result: {json.dumps(frame)[:800]}")
        mismatches = [row["mismatch"] for row in self.bench.server.of(self.name) if row.get("mismatch")]
        must(not mismatches, f"the model requests differ from the script: {mismatches}")
        must(frame["result"]["outcome"] == outcome, f"expected {outcome}: {json.dumps(frame['result'])[:1500]}")
        self.close()
        self.ended()
        return frame["result"]


def rows(result):
    return [(row["tool_name"], row["tool_type"], row["status"]) for row in calls(result["artifacts"]["path"])]


def test_tool_of_the_parent_site_is_called_through_the_calling_process(bench):
    run = ParentToolRun(bench, [
        {"expect": {"tools": ["host_read_ticket"]}, **call("host.read-ticket", id=4)},
        {"expect": {"last": "Settings are not saved"}, **finish()},
    ]).spawn().accepted()
    request = run.request_of_tool()
    must(request["schema"] == "wp-codebox/parent-tool-request/v1" and request["version"] == 1, json.dumps(request))
    must(request["tool"] == "host.read-ticket" and request["input"] == {"id": 4}, json.dumps(request))
    must(request["authorization"]["allowed_tools"] == ["host.read-ticket"], json.dumps(request))
    must(request["sandbox_session"]["task_id"] == run.run_id, json.dumps(request))
    must(run.key not in json.dumps(request), "the key is in the request")
    # The supervisor drops results for unknown requests and uses the first result for this one.
    run.answer({**request, "request_id": "another"}, status="succeeded", output="not this one")
    run.send({"type": "tool_result", "result": "nonsense"})
    run.answer(request, status="succeeded", output={"title": "Settings are not saved"})
    # The run may have ended after the first result.
    with contextlib.suppress(ConnectionError):
        run.answer(request, status="failed", error={"code": "late", "message": "a second answer"})
    must(rows(run.result()) == [("host.read-ticket", "parent", "ok"), ("task.finish", "sandbox", "ok")], "the transcript")


def test_each_result_status_of_a_parent_site_tool_reaches_the_model(bench):
    answers = [({"status": "denied", "error": {"code": "forbidden", "message": "Not your ticket.", "retryable": False}}, "denied by the host: Not your ticket", "denied"),
               ({"status": "failed", "error": {"code": "gone", "message": "It is closed."}}, "It is closed", "failed"),
               ({"status": "unavailable"}, "unavailable", "failed"), ({"status": "excellent"}, "no known status", "failed")]
    steps = [call("host.read-ticket", id=1)]
    for number, (_, told, _) in enumerate(answers[:-1]):
        steps.append({"expect": {"last": told}, **call("host.read-ticket", id=number + 2)})
    steps.append({"expect": {"last": answers[-1][1]}, **finish()})
    run = ParentToolRun(bench, steps).spawn().accepted()
    for members, _, _ in answers:
        run.answer(run.request_of_tool(), **members)
    must([row[2] for row in rows(run.result())] == [status for _, _, status in answers] + ["ok"], "the transcript")


def test_parent_site_tool_fails_after_its_timeout_and_is_unavailable_in_a_detached_run(bench):
    steps = [call("host.read-ticket", id=4), {"expect": {"last": "timeout"}, **finish()}]
    run = ParentToolRun(bench, steps, timeout_ms=700).spawn().accepted()
    request = run.request_of_tool()
    began = time.monotonic()
    run.result()
    # Well below the default timeout of 60 s, also on a busy machine.
    must(time.monotonic() - began < 45, "it waited for longer than it should")
    must(request["input"] == {"id": 4}, json.dumps(request))
    steps = [call("host.read-ticket", id=4), {"expect": {"last": "unavailable"}, **finish()}]
    run = ParentToolRun(bench, steps, timeout_ms=60000, mode="detached").spawn().accepted()
    began = time.monotonic()
    frames = []
    while (frame := run.frame()) and frame["type"] != "result":
        frames.append(frame["type"])
    must("tool_request" not in frames, "a detached run asked its caller")
    must(frame["result"]["outcome"] == "no_op" and time.monotonic() - began < 50, json.dumps(frame)[:600])
    run.close()
    run.ended()


def test_parent_tool_that_the_task_does_not_list_is_never_requested_from_the_caller(bench):
    run = ParentToolRun(bench, [
        {"expect": {"no_tools": ["host_delete_site"]}, **call("host.delete-site", id=1)},
        {"expect": {"last": "wp_codebox_tool_not_allowed"}, **call("host.read-ticket", id=4)},
        {"expect": {"last": "Settings"}, **finish()},
    ]).spawn().accepted()
    request = run.request_of_tool()
    must(request["tool"] == "host.read-ticket", "the control asks, the other does not")
    run.answer(request, status="succeeded", output="Settings")
    must([row[1:] for row in rows(run.result())] == [("unknown", "denied"), ("parent", "ok"), ("sandbox", "ok")], "the transcript")


def test_invalid_frame_from_the_caller_cancels_an_attached_run(bench):
    run = ParentToolRun(bench, [call("host.read-ticket", id=4), finish()]).spawn().accepted()
    run.request_of_tool()
    run.send({"type": "tool_request", "request": {}})
    frame = run.last()
    must(frame and frame["type"] == "result" and frame["result"]["outcome"] == "cancelled", json.dumps(frame)[:800])
    run.close()
    run.ended()
