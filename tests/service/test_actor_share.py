"""Two clients that always ask for runs and sandboxes: each gets half of them, in whichever order they ask."""

import pytest

from harness import must, poll_until
from service import Service

CAPACITY, RUNS = 4, 8
#: Ends when it is cancelled.
TASK = {"goal": "wait", "agent_command": "sh -c 'sleep 600'"}
SCOPES = ("runs:*", "sandboxes:*")


@pytest.fixture
def small(bench, service, request):
    """A service for few sandboxes, beside the eight runs that each service has."""
    first = service.create()
    service.delete(f"/v1/sandboxes/{first['id']}")
    one = Service(bench, request.function.__name__[5:9], "--capacity", str(CAPACITY), like=service).start()
    yield one
    for run in one.get("/v1/runs").json["runs"]:
        if run["status"] == "running":
            cancel(one, run["run_id"])
    one.close()


def cancel(service, run, **options):
    service.delete(f"/v1/runs/{run}", **options)
    poll_until(lambda: service.get(f"/v1/runs/{run}").expect(200).json["status"], lambda status: status == "ended", 120)


def start_all(service, path, body, token):
    """Starts runs or sandboxes until the service refuses one. Returns their ids and the refusal."""
    started = []
    while True:
        answer = service.post(path, body, token=token)
        if answer.status not in (201, 202):
            return started, answer
        started.append(answer.json.get("run_id") or answer.json["id"])
        must(len(started) <= CAPACITY + RUNS, "the service refuses nothing")


def test_two_actors_who_always_ask_each_get_half_of_the_runs_and_of_the_sandboxes(small):
    tokens = {name: small.token(*SCOPES, actor=f"agt:{name}") for name in ("greedy", "other")}
    sandboxes = {name: start_all(small, "/v1/sandboxes", {"profile": "profile.test"}, token) for name, token in tokens.items()}
    for ids, _ in sandboxes.values():
        for sandbox in ids:
            small.await_state(sandbox, "ready", "active", "failed")
    alive, started, refusals = [], dict.fromkeys(tokens, 0), {}
    while sum(started.values()) < 2 * RUNS:
        before = dict(started)
        # The greedy one asks first, after each end too.
        for name, token in tokens.items():
            runs, refusals[name] = start_all(small, "/v1/runs", TASK, token)
            alive += [(name, run) for run in runs]
            started[name] += len(runs)
        if started == before:
            break
        cancel(small, alive.pop(0)[1])
    counts = {name: len(ids) for name, (ids, _) in sandboxes.items()}
    print(f"sandboxes: {counts} of {CAPACITY}; started runs: {started}, {RUNS} at once")
    for name, refused in refusals.items():
        refused.expect(429, code="wp_codebox_busy")
        must(f"agt:{name} has {RUNS // 2} active runs" in refused.json["detail"], f"{refused}")
        oldest = next(run for owner, run in alive if owner == name) if len(alive) == RUNS else None
        must(oldest is None or refused.json["data"]["oldest_run_id"] == oldest, f"{refused}")
    must(counts == dict.fromkeys(tokens, CAPACITY // 2), f"sandboxes: {counts}")
    must(started == dict.fromkeys(tokens, RUNS), f"started runs: {started}")
    for name, (ids, refused) in sandboxes.items():
        states = [small.state_of(sandbox) for sandbox in ids]
        must(set(states) <= {"ready", "active"}, f"{name}: {states}")
        if name == "greedy":
            refused.expect(429, code="wp_codebox_busy")
            must(ids[0] in refused.json["detail"] and refused.json["data"]["limit"] == CAPACITY // 2, f"{refused}")


def test_only_actor_of_a_service_gets_all_runs_and_sandboxes(small):
    only = small.token(*SCOPES, actor="agt:only")
    sandboxes, refused = start_all(small, "/v1/sandboxes", {"profile": "profile.test"}, only)
    must(len(sandboxes) == CAPACITY, f"{sandboxes} {refused}")
    refused.expect(503, code="wp_codebox_route_no_capacity")
    runs, refused = start_all(small, "/v1/runs", TASK, only)
    must(len(runs) == RUNS, f"{runs} {refused}")
    refused.expect(429, code="wp_codebox_busy")
    must(f"the limit is {RUNS}" in refused.json["detail"], f"{refused}")
