"""nginx and php-fpm stop, reload or die during runs; clients disconnect."""

import signal

from calls import new_run, check_settled, start_tagged_request
from world import SLEEP, WORKERS

from harness import must, poll_until
from harness.processes import children
from harness.servers import can_listen


def begin(world, tag, script=f"echo x >x.txt; {SLEEP}"):
    before = world.runs()
    thread, worker, answers = start_tagged_request(world, tag, lambda: world.run(script, headers={"X-Test-Tag": tag}))
    world.await_agents()
    return thread, worker, answers, new_run(world, before)


def test_ports_are_free_after_php_fpm_stops_during_a_run(world):
    must(not can_listen(world.pool_port), "positive control: php-fpm holds its port")
    thread, _worker, answers, run = begin(world, "stop")
    took = world.fpm.stop(signal.SIGTERM)
    try:
        must(took < 15, f"php-fpm needed {took:.1f} s")
        for port in (world.pool_port, world.short_pool_port):
            must(can_listen(port), f"port {port} is still held after php-fpm stopped")
        world.await_cleanup([run])
        thread.join()
        must(answers[0].status == 502, answers[0])
    finally:
        world.fpm.start()
    check_settled(world, run)


def test_no_run_continues_after_php_fpm_master_and_workers_are_killed(world):
    thread, _worker, answers, run = begin(world, "master")
    workers = children(world.fpm.pid)
    world.fpm.send(signal.SIGKILL)
    world.fpm.process.wait()
    for worker in workers:
        signal_quietly(worker, signal.SIGKILL)
    try:
        world.await_cleanup([run])
        # Each killed worker holds the port of its pool until the process has ended.
        poll_until(lambda: can_listen(world.pool_port) and can_listen(world.short_pool_port), seconds=30, what="the ports were not free")
        thread.join()
        must(answers[0].status == 502, answers[0])
    finally:
        world.fpm.start()
    check_settled(world, run)


def test_no_attached_run_continues_after_a_graceful_reload(world):
    thread, worker, answers, run = begin(world, "reload", f"echo x >x.txt; {SLEEP} & sleep 3")
    world.fpm.send(signal.SIGUSR2)
    thread.join()
    poll_until(lambda: len(children(world.fpm.pid)) == WORKERS + 2 and worker not in children(world.fpm.pid), seconds=30, what="no new workers")
    world.await_cleanup([run])
    if answers[0].status == 200:
        must(answers[0].json["success"] is True, answers[0])
        check_settled(world, run, ("succeeded",))
    else:
        # The agent may end by itself before the supervisor learns that the caller has gone.
        check_settled(world, run, ("cancelled", "failed", "succeeded"))
    world.run("true").expect(200)


def test_nginx_stop_ends_the_attached_run(world):
    thread, _worker, answers, run = begin(world, "nginx")
    world.nginx.stop(signal.SIGTERM)
    try:
        must(can_listen(world.port), "the port of nginx is held")
        world.await_cleanup([run])
        thread.join()
    finally:
        world.nginx.start()
    check_settled(world, run)


def test_disconnected_http_client_cancels_the_run(world):
    before = world.runs()
    connection = world.connect()
    import json
    body = json.dumps({"input": world.task(f"echo x >x.txt; {SLEEP}")}).encode()
    connection.request("POST", "/wp-json/wp-abilities/v1/abilities/wp-codebox/run-agent-task/run", body,
                       world.headers("admin", {"Content-Type": "application/json"}))
    world.await_agents()
    run = new_run(world, before)
    connection.close()
    world.await_cleanup([run])
    check_settled(world, run)


def signal_quietly(pid, number):
    import contextlib
    import os
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
