"""Event streams of the control socket: JSON lines and server-sent events."""

import json
import subprocess

from held_sandbox import read_all

from harness import poll_until


def curl(bench, run, target, *args, timeout=90):
    """Runs curl in the run's directory, because the absolute socket path may exceed 107 bytes."""
    return subprocess.run(["curl", "-sN", "--max-time", "60", "--unix-socket", "control.sock", *args, f"http://sandbox{target}"],
                          cwd=bench.directory(run), capture_output=True, text=True, timeout=timeout)


def messages(text):
    found = []
    for block in text.split("\n\n"):
        message = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and not line.startswith(":"))
        if message:
            found.append(message)
    return found


def test_events_stream_as_json_lines_and_server_sent_events(bench):
    run = bench.sandbox()
    bench.exec(run, "--", "echo", "for the journal")
    # The client learns of a program's end before the journal records it.
    kinds = lambda: [event["type"] for event in bench.events(run)]  # noqa: E731
    poll_until(lambda: kinds().count("runtime.command.finished") == kinds().count("runtime.command.started"), what="still waiting for the end in the journal")
    journal = bench.events(run)
    call = {"live": 1, "actor": "x", "request": {"type": "events", "follow": "now"}}
    lines = [json.loads(line) for line in bench.raw(run, json.dumps(call).encode() + b"\n").splitlines()]
    assert [line["event"] for line in lines[:-1]] == journal, "the lines are the journal"
    assert lines[-1]["answer"]["cursor"] == journal[-1]["seq"]
    sent = messages(curl(bench, run, "/events?follow=now").stdout)
    assert [json.loads(m["data"]) for m in sent if "data" in m] == journal
    half = journal[len(journal) // 2]["seq"]
    rest = messages(curl(bench, run, "/events?follow=now", "-H", f"Last-Event-ID: {half}").stdout)
    assert [int(m["id"]) for m in rest if "id" in m] == list(range(half + 1, journal[-1]["seq"] + 1)), rest
    bus = [json.loads(m["data"]) for m in messages(curl(bench, run, "/events?projection=bus&follow=now").stdout) if "data" in m]
    assert {"AGENT_EXEC_CMD", "RUNTIME_OUTPUT", "RUNTIME_EXIT", "RUNTIME_READY", "SYSTEM_FILE_SYNC"} == {e["type"] for e in bus}
    # Start, output and exit of one program share an execution id.
    ids = [e["executionId"] for e in bus if e["payload"].get("text") == "for the journal\n"]
    assert len(ids) == 1 and {e["type"] for e in bus if e.get("executionId") == ids[0]} == {"AGENT_EXEC_CMD", "RUNTIME_OUTPUT", "RUNTIME_EXIT"}


def test_event_stream_ends_with_the_run(bench):
    run = bench.start()
    with bench.connect(run) as client:
        client.sendall(b"GET /events?projection=journal HTTP/1.1\r\nHost: sandbox\r\n\r\n")
        assert bench.exec(run, "--", "echo", "heard").returncode == 0
        bench.ask(run, {"type": "close"})
        text = read_all(client).decode()
    assert text.startswith("HTTP/1.1 200 OK\r\n") and "Access-Control" not in text
    bench.await_end(run)
    heard = [m["event"] for m in messages(text) if "event" in m]
    assert heard == [e["type"] for e in bench.events(run)], heard
    assert heard[-1] == "runtime.artifacts.collected"


def test_control_socket_refuses_http_requests_except_get_events_for_its_host(bench):
    run = bench.sandbox()
    for request, status in [
        ("GET / HTTP/1.1\r\nHost: sandbox", 404),
        ("POST /events HTTP/1.1\r\nHost: sandbox\r\nContent-Length: 0", 405),
        ("GET /events HTTP/1.1\r\nHost: evil.example", 421),
        ("GET /events HTTP/1.1", 400),
        ("GET /../events HTTP/1.1\r\nHost: sandbox", 404),
        ("CONNECT example.org:443 HTTP/1.1\r\nHost: sandbox", 405),
    ]:
        answer = bench.raw(run, request.encode() + b"\r\n\r\n", close_writing=False).decode()
        assert answer.startswith(f"HTTP/1.1 {status} ") and "Access-Control" not in answer, (request, answer)
    # A request head that stays unfinished is answered with 400 when its time limit is over.
    assert bench.raw(run, b"GET /events HTTP/1.1\r\nHost: sandbox\r\n", close_writing=False).startswith(b"HTTP/1.1 400 ")
    head = "GET /events HTTP/1.1\r\nHost: sandbox\r\n" + "X: y\r\n" * 200
    assert bench.raw(run, head.encode()).startswith(b"HTTP/1.1 400 ")
