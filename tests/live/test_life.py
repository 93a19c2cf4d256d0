"""Lifetime of held sandboxes: expiry, idle timeout, extension, cancellation, death."""

import json
import os

from held_sandbox import guest_processes, kill, open_exec, sleep

from harness import poll_until


def states(bench, run):
    changes = [e["data"] for e in bench.events(run) if e["type"] == "runtime.state.changed"]
    return [change["to"] for change in changes], changes


def test_expired_hold_ends_the_sandbox_with_a_bundle(bench):
    run = bench.start(hold="12s")
    assert bench.exec(run, "--", "sh", "-c", "echo made >made.txt").returncode == 0
    client = open_exec(bench, run, "--", *sleep(73).split())
    shown = bench.await_end(run)
    assert client.wait(120) != 0 and not guest_processes(sleep(73))
    assert shown["outcome"] == "succeeded", shown
    names, changes = states(bench, run)
    assert names == ["provisioning", "ready", "active", "expired", "destroying", "destroyed"], names
    assert changes[3]["actor"] == "supervisor" and changes[3]["reason"] == "its lifetime is over", changes
    assert "made.txt" in json.dumps(shown), shown
    done = bench.exec(run, "--json", "--", "true")
    assert json.loads(done.stdout)["error"]["code"] == "wp_codebox_sandbox_not_held", done


def test_idle_sandbox_ends_after_hold_idle(bench):
    run = bench.start("--hold-idle", "15s", hold="5m")
    # A running program counts as use even without output.
    assert bench.exec(run, "--", "sleep", "17").returncode == 0
    shown = bench.await_end(run)
    assert shown["outcome"] == "succeeded", shown
    assert states(bench, run)[1][3]["reason"] == "it was idle for too long"


def test_control_request_with_an_unknown_member_is_refused(bench):
    run = bench.start(hold="5m")
    assert bench.ask(run, {"type": "status"})["type"] == "answer", "the control"
    for request, member in (
        ({"type": "exec", "argv": ["true"], "timeout": 5}, "timeout"),
        ({"type": "status", "verbose": True}, "verbose"),
        ({"type": "command", "call": {"command": "wordpress.wp-cli", "arg": []}}, "arg"),
    ):
        refused = bench.ask(run, request)
        assert refused["type"] == "error" and refused["error"]["code"] == "wp_codebox_input_invalid", refused
        assert f"`{member}`" in refused["error"]["message"], refused


def test_extend_ttl_extends_a_hold_but_not_beyond_hold_max(bench):
    run = bench.start("--hold-max", "5m", hold="10s")
    first = bench.ask(run, {"type": "status"})["answer"]
    refused = bench.ask(run, {"type": "extend_ttl", "ttl_ms": 400_000})
    assert refused["error"]["code"] == "wp_codebox_input_invalid", refused
    longer = bench.ask(run, {"type": "extend_ttl", "ttl_ms": 200_000}, actor="cli:extender")["answer"]
    assert longer["schema"] == "wp-codebox/sandbox/v1"
    # A sandbox that was started later with the same hold ends first.
    bench.await_end(bench.start(hold="10s"))
    now = bench.ask(run, {"type": "status"})["answer"]
    assert now["state"] in ("ready", "active") and now["maxExpiresAt"] == longer["maxExpiresAt"], (first, now)
    assert bench.ask(run, {"type": "extend_ttl", "ttl_ms": 1000})["type"] == "answer", "and shorter"
    shown = bench.await_end(run, seconds=120)
    changes = states(bench, run)[1]
    assert any(c["actor"] == "cli:extender" for c in changes) and shown["outcome"] == "succeeded", changes


def test_request_to_a_stopped_sync_helper_fails_when_the_hold_expires(bench):
    """With the guest's sync helper stopped, a sync request waits at most until the hold expires."""
    run = bench.start(hold="5m")
    tree = {"type": "sync_out", "path": "/workspace/plugin", "everything": True}
    assert bench.ask(run, tree)["type"] == "answer", "the control"
    halt = "for p in /proc/[0-9]*; do grep -q guest.[s]ync.php $p/cmdline && kill -STOP ${p#/proc/} && echo halted; done; true"
    assert bench.exec(run, "--", "sh", "-c", halt).stdout == "halted\n"
    assert bench.ask(run, {"type": "extend_ttl", "ttl_ms": 15000})["type"] == "answer"
    assert bench.ask(run, tree)["error"]["code"] == "wp_codebox_run_failed"
    assert bench.await_end(run, seconds=60)["outcome"] == "succeeded"


def test_close_request_is_recorded_with_its_actor_and_reason(bench):
    run = bench.start()
    answer = bench.ask(run, {"type": "close", "reason": "enough for today"}, actor="cli:closer")
    assert answer["type"] == "answer", answer
    assert bench.await_end(run)["outcome"] == "succeeded"
    last = [c for c in states(bench, run)[1] if c["to"] == "destroying"][0]
    assert (last["actor"], last["reason"]) == ("cli:closer", "enough for today"), last


def test_cancellation_ends_the_sandbox_and_its_programs(bench):
    run = bench.start()
    client = open_exec(bench, run, "--", "sh", "-c", f"echo up; {sleep(74)}")
    assert client.stdout.readline() == "up\n"
    assert bench.call("runs", "cancel", run).returncode == 0
    assert client.wait(120) not in (0, None)
    shown = bench.await_end(run)
    assert shown["outcome"] == "cancelled" and not guest_processes(sleep(74)), shown


def test_guest_dies_with_its_killed_supervisor(bench):
    run = bench.start()
    client = open_exec(bench, run, "--", "sh", "-c", f"echo up; {sleep(75)}")
    assert client.stdout.readline() == "up\n"
    assert guest_processes(sleep(75))
    kill(bench.supervisor(run))
    poll_until(lambda: not guest_processes(sleep(75)), what="still waiting for the end of the guest")
    assert client.wait(120) == 125
    shown = bench.await_end(run)
    assert shown["outcome"] == "failed" and shown["error"]["data"]["supervisor"]["cause"] == "killed", shown
    assert "its process was killed by a signal" in shown["error"]["message"], shown


def test_held_sandbox_over_its_memory_limit_ends_as_failed(bench):
    run = bench.start("--memory", "200M")
    done = bench.exec(run, "--", "php", "-d", "memory_limit=-1", "-r",
                      "$a = []; while (true) { $a[] = str_repeat('x', 1 << 20); }")
    assert done.returncode != 0, done
    # A single process at its own limit fails alone; several processes together exceed the run's limit.
    bench.exec(run, "--", "sh", "-c", "for i in 1 2 3; do php -d memory_limit=-1 -r '$a=str_repeat(\"x\",120<<20);sleep(20);' & done; wait")
    shown = bench.await_end(run)
    assert shown["outcome"] == "failed", shown
    assert states(bench, run)[0][-3:] == ["failed", "destroying", "destroyed"]


def test_error_after_a_killed_guest_process_names_the_process_and_signal(bench):
    """Kills pid 1 of the guest, its launcher and its spawner, each in its own sandbox."""
    started = []
    for seconds in (83, 84, 85):
        run = bench.start()
        client = open_exec(bench, run, "--", "sh", "-c", f"echo up; {sleep(seconds)}")
        assert client.stdout.readline() == "up\n"
        first = guest_processes(sleep(seconds))[0]
        while not is_first(first):
            first = parent(first)
        started.append((run, client, [first, parent(first), parent(parent(first))]))
    chain = started[0][2]
    # With the shared identity there is no spawner: the launcher's parent is the supervisor.
    with open(f"/proc/{chain[2]}/cmdline", "rb") as file:
        processes = ["first", "launcher", "spawner"] if b"spawner" in file.read() else ["first", "launcher"]
    for at, (run, client, pids) in enumerate(started[:len(processes)]):
        kill(pids[at])
        shown = bench.await_end(run)
        death = shown["error"]["data"]["death"]
        death.pop("hostOomKills", None)
        assert shown["outcome"] == "failed" and death == {"process": processes[at], "signal": 9}, shown
        assert client.wait(120) == 1
        change = next(c for c in states(bench, run)[1] if c["to"] == "failed")
        told = {"exec": client.stderr.read(), "error": shown["error"]["message"], "event": change["reason"]}
        assert all("signal 9 (SIGKILL)" in text for text in told.values()), told
        with open(os.path.join(bench.directory(run), "result.json")) as file:
            assert "signal 9 (SIGKILL)" in file.read(), run
    late = json.loads(bench.exec(started[0][0], "--json", "--", "true").stdout)["error"]
    assert late["code"] == "wp_codebox_sandbox_not_held" and "signal 9 (SIGKILL)" in late["message"], late


def parent(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def is_first(pid):
    with open(f"/proc/{pid}/status") as file:
        return next(line for line in file if line.startswith("NSpid:")).split()[-1] == "1"


def test_control_requests_wait_for_the_run_command_and_are_refused_if_it_fails(bench):
    run = bench.start("--command", "wordpress.run-php", "--arg", "code=sleep(8); echo 1;")
    assert bench.ask(run, {"type": "status"})["answer"]["state"] in ("requested", "provisioning")
    assert bench.exec(run, "--", "echo", "waited").stdout == "waited\n"
    bench.ask(run, {"type": "close"})
    plain = bench.start("--command", "wordpress.run-php", "--arg", "code=sleep(8); exit(4);")
    refused = bench.ask(plain, {"type": "snapshots"})
    # The command fails, so the sandbox is never held and the waiting request is refused.
    assert refused["error"]["code"] == "wp_codebox_sandbox_not_held", refused
    assert bench.await_end(plain)["outcome"] == "failed"


def test_malformed_control_requests_do_not_disturb_the_sandbox(bench):
    run = bench.sandbox()
    call = {"live": 1, "actor": "x", "request": {"type": "status"}}
    for data in [
        b"\n", b"{}\n", b"[]\n", b"null\n", b"\xff\xfe\n", b"{" * 10_000 + b"\n", b"x" * 3_000_000,
        json.dumps({**call, "live": 2}).encode() + b"\n",
        json.dumps({**call, "actor": " \n"}).encode() + b"\n",
        json.dumps({**call, "request": {"type": "nonsense"}}).encode() + b"\n",
        json.dumps({**call, "request": {"type": "exec", "argv": []}}).encode() + b"\n",
        json.dumps({**call, "request": {"type": "exec", "argv": ["a\0b"]}}).encode() + b"\n",
        json.dumps({**call, "request": {"type": "exec", "argv": ["x" * 300_000]}}).encode() + b"\n",
    ]:
        answer = bench.raw(run, data)
        assert b'"error"' in answer, (data[:60], answer[:200])
    # Unknown and invalid messages between valid input.
    exec_call = {**call, "request": {"type": "exec", "argv": ["cat"]}}
    lines = [exec_call, {"type": "signal", "signal": "WINCH"}, {"type": "resize", "columns": 1, "rows": 1}, {"type": "resize", "columns": -1},
             {"type": "of-tomorrow"}, {"type": "stdin", "base64": "b2s="}, {"type": "stdin_end"}]
    answer = bench.raw(run, "".join(json.dumps(line) + "\n" for line in lines).encode(), close_writing=False)
    replies = [json.loads(line) for line in answer.splitlines()]
    assert [r.get("text") for r in replies if r["type"] == "output"] == ["ok"] and replies[-1]["code"] == 0, replies
    # Idle connections must not block other clients.
    silent = [bench.connect(run) for _ in range(70)]
    try:
        assert bench.ask(run, {"type": "status"})["type"] == "answer"
    finally:
        for client in silent:
            client.close()
    assert bench.exec(run, "--", "echo", "alive").stdout == "alive\n"
