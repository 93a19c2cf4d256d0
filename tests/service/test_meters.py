"""Usage and credits: reserved before the start, metered at the end, settled once, and released when nothing started."""

import json
import os

from harness import must, poll_until
from service import Service, kill_supervisor

PRICES = {"schema": "wp-codebox/meter-prices/v1", "unit": "credit",
          "extensions": {"native": {"per_second": 10, "per_creation": 100, "gpu_per_second": 0, "written_per_gib": 1024, "usage_allowance": 50, "key": "own"}}}


MIB = 1024 * 1024


def ledger(service, *words):
    return service.bench.call("ledger", *words, "--state", service.state, "--json").expect(0).json


def balance(service, account="shop"):
    row = ledger(service, "balance", account)["accounts"][0]
    return {name: row[name] for name in ("granted", "reserved", "settled", "available")}


def settlement(service, sandbox):
    lines = service.bench.call("ledger", "export", "--state", service.state).expect(0).stdout.splitlines()
    found = [entry for entry in map(json.loads, lines) if entry.get("sandbox") == sandbox and entry["kind"] == "settle"]
    must(len(found) == 1, f"{lines[-3:]}")
    return found[0]


def write(service, sandbox, mib):
    service.sh(sandbox, f"head -c {mib * MIB} /dev/urandom > /workspace/plugin/noise")


def written_of(path):
    """Returns the written bytes that the supervisor stored last; 0 before its first write."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)["written_bytes"]
    except FileNotFoundError:
        return 0


def test_usage_is_metered_and_settled_and_a_failed_start_releases_the_reservation(bench, service):
    prices = os.path.join(bench.directory, "prices.json")
    with open(prices, "w", encoding="utf-8") as file:
        json.dump(PRICES, file)
    os.chmod(prices, 0o644)
    paid = Service(bench, "paid", "--prices", prices, "--credits", like=service)
    paid.start()
    try:
        token = paid.token("*", actor="atm:buyer", account="shop")
        # Ten minutes cost 6,100 credits; 50 more are set aside for what is measured at the end.
        paid.post("/v1/sandboxes", {"profile": "profile.test"}, token=token).expect(402, 409)
        ledger(paid, "grant", "shop", "10000", "--reason", "test", "--reference", "one")
        ledger(paid, "grant", "shop", "10000", "--reason", "test", "--reference", "one")
        must(balance(paid)["granted"] == 10000, f"{balance(paid)}")
        made = paid.create(token=token, ttl="10m")
        must(balance(paid)["reserved"] == 6150, f"{balance(paid)}")
        must(made["quote"]["amount"] == 6150, f"{made}")
        # The remaining credits do not suffice for a second sandbox.
        paid.post("/v1/sandboxes", {"profile": "profile.test"}, token=token).expect(402, 409)
        write(paid, made["id"], 4)
        # Holds 100 MiB for two seconds, because memory is sampled ten times a second.
        paid.sh(made["id"], "php -d memory_limit=-1 -r '$held = str_repeat(chr(1), 100 << 20); sleep(2);'")
        paid.delete(f"/v1/sandboxes/{made['id']}", token=token)
        paid.await_state(made["id"], "destroyed")
        after = poll_until(lambda: balance(paid), lambda row: row["reserved"] == 0, 30)
        must(100 < after["settled"] < 6150 and after["available"] == 10000 - after["settled"], f"{after}")
        usage = paid.get(f"/v1/sandboxes/{made['id']}", token=token).json["usage"]
        must(usage["alive_ms"] > 0 and usage["cpu_ms"] > 0, f"{usage}")
        must(usage["memory_mib_seconds"] >= 50 and usage["memory_samples"] > 0 and usage["memory_interval_ms"] == 100, f"{usage}")
        # The four MiB of the program, and what WordPress itself wrote: less than that.
        must(4 * MIB <= usage["written_bytes"] < 8 * MIB and usage["egress_bytes"] == 0, f"{usage}")
        settled = settlement(paid, made["id"])
        must(settled["usage"]["written_bytes"] == usage["written_bytes"], f"{settled}")
        priced = 100 + 10 * settled["usage"]["seconds_alive"] + -(-usage["written_bytes"] // MIB)
        must(settled["amount"] == priced and not settled["capped"], f"{settled}: {priced}")
        must(any(made["id"] in json.dumps(row) for row in paid.get("/v1/meters", token=token).expect(200).json["meters"]), "there is no meter")
        # A start that fails costs nothing.
        paid.profile("profile.broken", more="setup:\n  commands:\n    - { command: wordpress.run-php, args: ['code=exit(7);'] }\n")
        failed = paid.post("/v1/sandboxes", {"profile": "profile.broken", "ttl": "2m"}, token=token).expect(202).json["id"]
        paid.await_state(failed, "failed")
        must(poll_until(lambda: balance(paid), lambda row: row["reserved"] == 0, 30)["settled"] == after["settled"], f"{balance(paid)}")
        # The usage of a run whose supervisor died is computed from the clock and marked as estimated.
        dead = paid.create(token=token, ttl="3m")["id"]
        write(paid, dead, 2)
        stored = os.path.join(paid.directory_of(dead), "usage.json")
        poll_until(lambda: written_of(stored), lambda written: written >= 2 * MIB, 60)
        kill_supervisor(paid, dead)
        paid.await_state(dead, "failed")
        poll_until(lambda: balance(paid), lambda row: row["reserved"] == 0, 30)
        settled = settlement(paid, dead)
        must(settled["usage"]["estimated"] and settled["usage"]["written_bytes"] >= 2 * MIB, f"{settled}")
        must(ledger(paid, "verify")["valid"] is True, "the ledger contradicts itself")
    finally:
        paid.close()
