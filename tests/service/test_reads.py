"""Reads beside running sandboxes; the result goes to tests/bench/results/service-reads.json with CODEBOX_RECORD=1."""

import datetime
import http.client
import json
import os
import threading
import time

from harness import must
from harness.machine import commit, machine

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SANDBOXES, READERS = 8, 4
READS = 4000 if os.environ.get("CODEBOX_RECORD") else 400


def test_parallel_api_reads_return_200_while_programs_run_in_eight_sandboxes(service):
    made = [service.create(wait=None)["id"] for _ in range(SANDBOXES)]
    for sandbox in made:
        service.await_state(sandbox, "ready", "active")
    busy = [threading.Thread(target=service.sh, args=(sandbox, "while [ ! -e /tmp/enough ]; do sleep 0.2; done")) for sandbox in made]
    for thread in busy:
        thread.start()
    spent = []

    def read(number):
        connection = service.connection(30)
        for turn in range(number, READS, READERS):
            path = f"/v1/sandboxes/{made[turn % SANDBOXES]}" if turn % 2 else "/v1/sandboxes?limit=20"
            began = time.monotonic()
            answer = service.get(path, connection=connection)
            spent.append(time.monotonic() - began)
            must(answer.status == 200, f"{answer}")
        connection.close()

    failures = []

    def guarded(number):
        try:
            read(number)
        except (Exception, http.client.HTTPException) as error:
            failures.append(repr(error))

    readers = [threading.Thread(target=guarded, args=(number,)) for number in range(READERS)]
    began = time.monotonic()
    for thread in readers:
        thread.start()
    for thread in readers:
        thread.join()
    seconds = time.monotonic() - began
    for sandbox in made:
        service.sh(sandbox, "touch /tmp/enough")
    for thread in busy:
        thread.join()
    must(not failures, f"{failures[:3]}")
    must(len(spent) == READS, f"{len(spent)}")
    spent.sort()
    row = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "commit": commit(ROOT), "machine": machine(),
        "sandboxes": SANDBOXES, "clients": READERS, "reads": READS, "seconds": round(seconds, 2), "reads_per_second": round(READS / seconds, 1),
        "milliseconds": {name: round(1000 * spent[min(READS - 1, int(READS * share))], 2) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))},
        "build": os.environ.get("CODEBOX_BUILD", "unknown"),
    }
    print(json.dumps(row))
    if os.environ.get("CODEBOX_RECORD"):
        with open(os.path.join(ROOT, "tests", "bench", "results", "service-reads.json"), "w", encoding="utf-8") as file:
            file.write(json.dumps(row, indent=1) + "\n")
    for sandbox in made:
        service.delete(f"/v1/sandboxes/{sandbox}")
