"""Shares of a site: no user takes the places of the others, and no task more than the ceilings."""

from calls import in_parallel
from harness import must
from test_detached import await_end, detach
from world import SLEEP

GIB = 1 << 30


def ask(world, user, **more):
    return world.run(SLEEP, user, wait=False, **more)


def cancel(world, runs):
    for run in runs:
        world.ability("cancel-run", {"run_id": run}).expect(200)


def start_all(world, user):
    """Starts runs until one is refused; returns their ids and the refusal."""
    runs = []
    while True:
        answer = ask(world, user)
        if answer.status != 200:
            return runs, answer
        runs.append(answer.json["run_id"])


def test_two_users_who_always_ask_for_runs_each_get_half_of_the_places(world):
    """The first user asks first, after each end too. Without shares it gets every place and the second user none."""
    alive, started = [], {"runner": 0, "walker": 0}
    half = world.max_runs // 2
    most = {"runner": 0, "walker": 0}
    try:
        while sum(started.values()) < 6 * half:
            before = sum(started.values())
            for user in started:
                runs, refused = start_all(world, user)
                refused.expect(429, "wp_codebox_busy")
                alive += [(user, run) for run in runs]
                started[user] += len(runs)
                most[user] = max(most[user], sum(owner == user for owner, _ in alive))
            if sum(started.values()) == before:
                break
            # The oldest run ends, so one place is free.
            ended = alive.pop(0)[1]
            cancel(world, [ended])
            await_end(world, ended)
    finally:
        cancel(world, [run for _, run in alive])
    for _, run in alive:
        await_end(world, run)
    print(f"started: {started}; alive at once: {most}; places: {world.max_runs}")
    must(min(started.values()) >= sum(started.values()) // 2, f"started {started}")
    must(most == {"runner": half, "walker": half}, f"alive at once: {most}")
    world.await_cleanup()


def test_refusal_of_a_run_above_the_share_names_the_numbers_the_oldest_run_and_what_to_do(world):
    runs, refused = start_all(world, "runner")
    try:
        half = world.max_runs // 2
        must(len(runs) == half, f"{len(runs)} runs of {world.max_runs}")
        message = refused.expect(429, "wp_codebox_busy").json["message"]
        for part in (f"has {half} active runs", f"is {half}", runs[0]):
            must(part in message, f"{part}: {message}")
        must("Runs at once for one user" in str(refused.json["data"]["hints"]), refused)
        # Another user, and an administrator, still get the other places.
        others = [detach(world, SLEEP, "walker"), detach(world, SLEEP, "admin")]
        cancel(world, others)
        # The place of an ended run is free again.
        cancel(world, runs[:1])
        await_end(world, runs[0])
        runs = runs[1:] + [detach(world, SLEEP, "runner")]
    finally:
        cancel(world, runs)
    world.await_cleanup()


def test_of_concurrent_starts_of_one_user_exactly_its_share_starts(world):
    half = world.max_runs // 2
    answers = in_parallel(*[lambda: ask(world, "runner") for _ in range(2 * half)])
    runs = [answer.json["run_id"] for answer in answers if answer.status == 200]
    cancel(world, runs)
    world.await_cleanup(runs)
    statuses = sorted(answer.status for answer in answers)
    must(statuses == [200] * half + [429] * half, f"{statuses}")


def test_task_above_a_ceiling_is_refused_with_the_ceiling_and_a_task_at_the_ceiling_starts(world):
    ceilings = {"wall_clock_ms": 3600 * 1000, "memory_bytes": 2 * GIB, "disk_bytes": 2 * GIB}
    asked = {"wall_clock_ms": 24 * 3600 * 1000, "memory_bytes": 64 * GIB, "disk_bytes": 64 * GIB}
    for user in ("runner", "admin"):
        for field, value in asked.items():
            refused = ask(world, user, limits={field: value}).expect(400, "wp_codebox_limit_invalid")
            for number in (value, ceilings[field]):
                must(str(number) in refused.json["message"], refused)
            must("raise" in str(refused.json["data"]["hints"]), refused)
        run = ask(world, user, limits=ceilings).expect(200).json["run_id"]
        cancel(world, [run])
    world.await_cleanup()
