"""Usage and credits: reserved before the start, metered at the end, settled once, and released when nothing started."""

import json
import os

from harness import must, poll_until
from service import Service, kill_supervisor

PRICES = {"schema": "wp-codebox/meter-prices/v1", "unit": "credit",
          "extensions": {"native": {"per_second": 10, "per_creation": 100, "gpu_per_second": 0, "key": "own"}}}


def ledger(service, *words):
    return service.bench.call("ledger", *words, "--state", service.state, "--json").expect(0).json


def balance(service, account="shop"):
    row = ledger(service, "balance", account)["accounts"][0]
    return {name: row[name] for name in ("granted", "reserved", "settled", "available")}


def test_usage_is_metered_and_settled_and_a_failed_start_releases_the_reservation(bench, service):
    prices = os.path.join(bench.directory, "prices.json")
    with open(prices, "w", encoding="utf-8") as file:
        json.dump(PRICES, file)
    os.chmod(prices, 0o644)
    paid = Service(bench, "paid", "--prices", prices, "--credits", like=service)
    paid.start()
    try:
        token = paid.token("*", actor="atm:buyer", account="shop")
        # Ten minutes cost 6,100 credits.
        paid.post("/v1/sandboxes", {"profile": "profile.test"}, token=token).expect(402, 409)
        ledger(paid, "grant", "shop", "10000", "--reason", "test", "--reference", "one")
        ledger(paid, "grant", "shop", "10000", "--reason", "test", "--reference", "one")
        must(balance(paid)["granted"] == 10000, f"{balance(paid)}")
        made = paid.create(token=token, ttl="10m")
        must(balance(paid)["reserved"] == 6100, f"{balance(paid)}")
        must(made["quote"]["amount"] == 6100, f"{made}")
        # The rest does not suffice for a second one.
        paid.post("/v1/sandboxes", {"profile": "profile.test"}, token=token).expect(402, 409)
        paid.delete(f"/v1/sandboxes/{made['id']}", token=token)
        paid.await_state(made["id"], "destroyed")
        after = poll_until(lambda: balance(paid), lambda row: row["reserved"] == 0, 30)
        must(100 < after["settled"] < 6100 and after["available"] == 10000 - after["settled"], f"{after}")
        usage = paid.get(f"/v1/sandboxes/{made['id']}", token=token).json["usage"]
        must(usage["alive_ms"] > 0 and usage["cpu_ms"] > 0, f"{usage}")
        must(any(made["id"] in json.dumps(row) for row in paid.get("/v1/meters", token=token).expect(200).json["meters"]), "there is no meter")
        # A start that fails costs nothing.
        paid.profile("profile.broken", more="setup:\n  commands:\n    - { command: wordpress.run-php, args: ['code=exit(7);'] }\n")
        failed = paid.post("/v1/sandboxes", {"profile": "profile.broken", "ttl": "2m"}, token=token).expect(202).json["id"]
        paid.await_state(failed, "failed")
        must(poll_until(lambda: balance(paid), lambda row: row["reserved"] == 0, 30)["settled"] == after["settled"], f"{balance(paid)}")
        # A dead supervisor is settled by the clock, marked as estimated.
        dead = paid.create(token=token, ttl="3m")["id"]
        kill_supervisor(paid, dead)
        paid.await_state(dead, "failed")
        poll_until(lambda: balance(paid), lambda row: row["reserved"] == 0, 30)
        entries = [json.loads(line) for line in bench.call("ledger", "export", "--state", paid.state).expect(0).stdout.splitlines()]
        settled = [entry for entry in entries if entry.get("sandbox") == dead and "settle" in json.dumps(entry)]
        must(settled and '"estimated": true' in json.dumps(settled), f"{entries[-3:]}")
        must(ledger(paid, "verify")["valid"] is True, "the ledger contradicts itself")
    finally:
        paid.close()
