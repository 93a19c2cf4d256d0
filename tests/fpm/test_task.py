"""Runs for which the HTTP request waits."""

import json
import os
import re
import signal
import subprocess
import threading

from calls import in_parallel, journal
from world import SLEEP, WORKERS, command, program

from harness import must, poll_until
from harness.processes import children, parent, sockets
from harness.servers import accept_queue


def test_curl_command_of_the_quick_start_returns_the_changed_file(world):
    with open(os.path.join(os.path.dirname(__file__), "../../docs/quick-start.md"), encoding="utf-8") as file:
        block = re.search(r"```bash\n(curl .*?)```", file.read(), re.S)[1]
    call = {"LOGIN": "admin", "PASSWORD": world.passwords["admin"], "SITE": f"http://127.0.0.1:{world.port}"}
    done = subprocess.run(["bash", "-c", block], env={"PATH": os.environ["PATH"], **call}, capture_output=True, text=True, check=False)
    must(done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}")
    answer = json.loads(done.stdout)
    must([row["path"] for row in answer["changed_files"]] == ["/wordpress/wp-content/plugins/sample/sample.php"], done.stdout[:800])
    wrong = subprocess.run(["bash", "-c", block], env={"PATH": os.environ["PATH"], **call, "PASSWORD": "wrong"}, capture_output=True, text=True, check=False)
    must(wrong.returncode == 22, f"control: a wrong password: {wrong}")


def test_leak_detectors_find_a_running_run(world):
    """Control for every case that finds no leftovers: the detectors find a live run."""
    before, answers = world.runs(), []
    thread = threading.Thread(target=lambda: answers.append(world.run(SLEEP)))
    thread.start()
    try:
        world.await_agents()
        run = (world.runs() - before).pop()
        found = world.leftovers([run])
        for what in ("supervise", "wp-codebox-launch", SLEEP, "namespaces of process", f"lease of {run}"):
            must(any(what in finding for finding in found), f"{what} is not seen: {found}")
        world.wake()
    finally:
        thread.join()
    answers[0].expect(200)
    world.await_cleanup([run])


def test_administrator_run_returns_changed_files_and_bundle(world):
    answer = world.run("echo new >new.txt", checks=["test -f new.txt"]).expect(200).json
    must(answer["success"] is True and answer["schema"] == "wp-codebox/agent-task-run/v1", answer)
    must([row["path"] for row in answer["changed_files"]] == ["/wordpress/wp-content/plugins/sample/new.txt"], answer["changed_files"])
    must(not os.path.exists(world.path("site/wp-content/plugins/sample/new.txt")), "the site was changed")
    world.await_cleanup([answer["run"]["run_id"]])
    bundle = world.ability("get-artifact", {"artifact_id": answer["run"]["run_id"]}, method="GET")
    if bundle.status != 200:
        bundle = world.ability("get-artifact", {"artifact_id": answer["evidence_refs"]["artifact_bundle_id"]}, method="GET")
    bundle.expect(200)


def test_failed_run_returns_200_with_success_false(world):
    answer = world.run("exit 7").expect(200).json
    must(answer["success"] is False and answer["run"]["outcome"] == "failed", answer)


def test_fifth_request_waits_for_one_of_four_workers(world):
    before, answers = world.runs(), []
    calls = [lambda user=user: world.run(f"{SLEEP}; echo x >x.txt", user) for user in ("admin", "second", "admin", "second", "admin")]
    asking = threading.Thread(target=lambda: answers.extend(in_parallel(*calls)))
    asking.start()
    try:
        # All four agents are alive, and the fifth request is in the accept queue of php-fpm until one ends.
        world.await_agents(count=WORKERS)
        poll_until(lambda: accept_queue(world.pool_port) == 1, seconds=60, what="the fifth request does not wait for a worker")
        must(len(world.runs() - before) == WORKERS, f"{len(world.runs() - before)} runs, there are {WORKERS} workers")
        world.wake()
        poll_until(lambda: len(world.runs() - before) == WORKERS + 1, seconds=60, what="the fifth did not begin")
        world.await_agents()
        world.wake()
    finally:
        asking.join()
    for answer in answers:
        must(answer.expect(200).json["success"] is True, answer)
    must(len({answer.json["run"]["run_id"] for answer in answers}) == 5, "two requests share a run")
    world.await_cleanup()


def test_user_at_max_groups_gets_429_while_other_users_batches_and_runs_start(world):
    """A batch occupies its php-fpm worker until its tasks end; four batches of one user would block the site."""
    def batch(script, user="admin", headers=None):
        return world.ability("run-agent-task-batch", {"tasks": [world.task(script)]}, user, headers=headers)

    def fanout(script):
        return world.ability("run-agent-task-fanout", {"workers": [{"id": "one", **world.task(script)}]})

    answers = []
    asking = [threading.Thread(target=lambda: answers.append(batch(SLEEP))),
              threading.Thread(target=lambda: batch(SLEEP, headers={"X-Test-Tag": "slot"}))]
    for thread in asking:
        thread.start()
    try:
        world.await_agents(count=2)
        for refused in (batch("true"), fanout("true")):
            refused.expect(429, "wp_codebox_busy")
            must("wp_codebox.max_groups" in refused.json["message"], refused)
        # One user's open batches do not limit another user, single runs or visitors.
        batch("true", "second").expect(200)
        world.run("true").expect(200)
        world.request("GET", "/", None).expect(200)
        # A worker that dies frees its slot.
        os.kill(world.tagged_worker("slot"), signal.SIGKILL)
        asking[1].join()
        fanout("true").expect(200)
        world.wake()
    finally:
        for thread in asking:
            thread.join()
    answers[0].expect(200)
    for _ in range(3):
        batch("true").expect(200)
    world.await_cleanup()


def test_large_input_and_output_pass_through_http_and_a_body_over_the_nginx_limit_returns_413(world):
    context = {"notes": ["x" * 1024] * 512, "text": "ä\u2028\U0001f642\"\\\n" * 64}
    script = "head -c 1048576 /dev/zero | tr '\\0' 'o'; echo; wc -c </run/codebox/task.json"
    answer = world.run(script, context=context).expect(200).json
    must(answer["run"]["outcome"] == "no_op", answer["run"])
    events = journal(world, answer["run"]["run_id"])
    output = "".join(event["data"].get("text", "") for event in events if event["type"] == "runtime.command.output")
    must(output.count("o") >= 1 << 20, f"the output is not whole: {len(output)} bytes")
    must(int(output.split()[-1]) > 512 * 1024, f"the guest did not get the whole task: {output[-80:]}")
    # nginx refuses a body by its Content-Length, before PHP, and may close the connection while the client still sends.
    connection = world.connect()
    connection.putrequest("POST", "/wp-json/wp-abilities/v1/abilities/wp-codebox/run-agent-task/run")
    connection.putheader("Content-Length", str(9 << 20))
    connection.endheaders()
    refused = connection.getresponse().status
    connection.close()
    must(refused == 413, f"too long a body was answered {refused}")


def test_no_run_process_inherits_a_socket_of_the_web_server(world):
    """A child that inherits the worker's sockets would keep the listener and the client's connection open."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(world.run(SLEEP, headers={"X-Test-Tag": "sockets"})))
    thread.start()
    try:
        worker = world.tagged_worker("sockets")
        family = world.await_agents()
        roles = {os.path.basename(program(pid)) for pid in family}
        must({"wp-codebox", "wp-codebox-launch"} <= roles, f"not all of the run was seen: {roles}")
        servers = [world.fpm.pid, world.nginx.pid, *children(world.fpm.pid), *children(world.nginx.pid)]
        theirs = set().union(*(sockets(pid) for pid in servers))
        # Control: the worker has a listening socket, a client connection and a frame socket.
        must(len(sockets(worker)) >= 3, f"the worker's sockets are not seen: {sockets(worker)}")
        for pid in family:
            shared = sockets(pid) & theirs
            must(not shared, f"{command(pid)[:60]} has {shared} of the web server")
            must(parent(pid) not in servers, f"{command(pid)[:60]} is a child of the web server")
        world.wake()
    finally:
        thread.join()
    answers[0].expect(200)
