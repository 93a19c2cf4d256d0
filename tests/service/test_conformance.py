"""What every extension does: a sandbox from its request to its end, over the HTTP API with real sandboxes."""

import hashlib
import json
import urllib.parse

import pytest

from harness import must, poll_until

FILE = "/workspace/plugin/new.txt"


@pytest.fixture(params=["native", "remote"])
def api(request):
    """A service with sandboxes of this machine, and one with sandboxes of another service."""
    return request.getfixturevalue("service" if request.param == "native" else "remote")


def files(sandbox, path=FILE):
    return f"/v1/sandboxes/{sandbox}/files{urllib.parse.quote(path)}"


def test_sandbox_runs_a_program_and_its_second_deletion_is_accepted(api):
    made = api.create(consumer={"actor": "atm", "harness": "suite", "job_id": "7"}, scope="agent", ttl="9m")
    must(made["schema"] == "wp-codebox/service-sandbox/v1" and made["scope"] == "agent", f"{made}")
    must(made["consumer"]["job_id"] == "7", f"{made}")
    must(made["reachability"]["kind"] == "control-api" and made["expires_at"], f"{made}")
    sandbox = made["id"]
    seen = api.get(f"/v1/sandboxes/{sandbox}").expect(200).json
    must("consumer" not in seen and seen["profile"]["id"] == "profile.test", f"{seen}")
    lines = api.exec(sandbox, "sh", "-c", "echo out; echo err >&2; cat; exit 3", stdin="typed\n")
    must([line["type"] for line in lines][0] == "started" and lines[-1]["type"] == "exited" and lines[-1]["code"] == 3, f"{lines}")
    said = {name: "".join(line["text"] for line in lines if line.get("stream") == name) for name in ("stdout", "stderr")}
    must(said == {"stdout": "out\ntyped\n", "stderr": "err\n"}, f"{lines}")
    first = api.delete(f"/v1/sandboxes/{sandbox}").expect(200)
    api.await_state(sandbox, "destroyed")
    api.delete(f"/v1/sandboxes/{sandbox}").expect(200)
    must(api.state_of(sandbox) == "destroyed", f"{first}")
    api.post(f"/v1/sandboxes/{sandbox}/exec", {"argv": ["true"]}).expect(409)


def test_file_is_written_read_and_deleted_and_a_write_with_a_stale_digest_is_refused(api):
    sandbox = api.create()["id"]
    put = api.put(files(sandbox), b"one\0two\xff", headers={"Content-Type": "application/octet-stream"}).expect(200)
    got = api.get(files(sandbox)).expect(200)
    must(got.body == b"one\0two\xff", f"{put} {got}")
    must(api.sh(sandbox, f"wc -c < {FILE}").strip() == "8", "the program sees another file")
    listed = api.get(f"/v1/sandboxes/{sandbox}/files").expect(200).json
    must([row["path"] for row in listed["files"]] == [FILE], f"{listed}")
    digest = hashlib.sha256(b"one\0two\xff").hexdigest()
    stale = hashlib.sha256(b"other").hexdigest()
    api.put(files(sandbox), b"three", headers={"If-Match": f'"{stale}"'}).expect(409, 412)
    must(api.get(files(sandbox)).body == b"one\0two\xff", "the stale write had an effect")
    api.put(files(sandbox), b"three", headers={"If-Match": f'"{digest}"'}).expect(200)
    must(api.get(files(sandbox)).body == b"three", "control: the write with the right digest had no effect")
    api.delete(files(sandbox)).expect(200)
    api.get(files(sandbox)).expect(404)
    api.get(files(sandbox, "/etc/shadow")).expect(400, 403, 404)
    api.delete(f"/v1/sandboxes/{sandbox}")


def test_snapshot_is_restored_into_the_same_and_into_a_new_sandbox(api):
    sandbox = api.create()["id"]
    api.sh(sandbox, f"echo kept > {FILE}")
    snapshot = api.post(f"/v1/sandboxes/{sandbox}/snapshots", {"name": "one"}).expect(201).json
    must(snapshot["id"] in snapshots(api), f"{snapshot}")
    api.sh(sandbox, f"echo lost > {FILE}")
    api.post(f"/v1/sandboxes/{sandbox}/restore", {"snapshot": snapshot["id"]}).expect(200)
    must(api.sh(sandbox, f"cat {FILE}") == "kept\n", "restored into the same sandbox")
    second = api.create(snapshot=snapshot["id"])["id"]
    must(api.sh(second, f"cat {FILE}") == "kept\n", "restored into a new sandbox")
    api.delete(f"/v1/sandboxes/{sandbox}")
    # A sandbox that started from the snapshot uses it until its end.
    api.delete(f"/v1/snapshots/{snapshot['id']}").expect(409)
    api.delete(f"/v1/sandboxes/{second}")
    api.await_state(second, "destroyed")
    api.delete(f"/v1/snapshots/{snapshot['id']}").expect(200)
    must(snapshots(api) == [], "the removed snapshot is still listed")


def test_recreate_gives_a_fresh_sandbox_of_the_same_profile(api):
    sandbox = api.create()["id"]
    api.sh(sandbox, f"echo lost > {FILE}")
    again = api.post(f"/v1/sandboxes/{sandbox}/recreate", headers={"Prefer": "wait=240"}).expect(200, 201, 202).json
    must(again["id"] != sandbox and again["profile"]["id"] == "profile.test", f"{again}")
    api.await_state(again["id"], "ready", "active")
    must(api.sh(again["id"], f"test -e {FILE} || echo fresh") == "fresh\n", "the old file is there")
    must(api.state_of(sandbox) == "destroyed", "the old sandbox still runs")
    api.delete(f"/v1/sandboxes/{again['id']}")


def test_extend_ttl_moves_the_expiry_and_more_than_the_profile_allows_is_refused(api):
    made = api.create(ttl="5m")
    path = f"/v1/sandboxes/{made['id']}/extend-ttl"
    api.post(path, {"ttl": "15m"}).expect(200)
    later = api.get(f"/v1/sandboxes/{made['id']}").json["expires_at"]
    must(later > made["expires_at"], f"{made['expires_at']} {later}")
    api.post(path, {"ttl": "3h"}).expect(400, 409)
    must(api.get(f"/v1/sandboxes/{made['id']}").json["expires_at"] == later, "the refused extension had an effect")
    api.delete(f"/v1/sandboxes/{made['id']}")


def test_setup_that_fails_makes_the_sandbox_fail_with_the_reason(api):
    broken = "setup:\n  commands:\n    - { command: wordpress.run-php, args: ['code=exit(7);'] }\n"
    far = getattr(api, "far", None)
    for one in (api, far) if far else (api,):
        one.profile("profile.broken", extension=None if far else "native", more=broken, source=(far or api).source)
    answer = api.post("/v1/sandboxes", {"profile": "profile.broken"}, headers={"Prefer": "wait=240"})
    sandbox = answer.json.get("id") or answer.json.get("sandbox")
    must(sandbox, f"{answer}")
    api.await_state(sandbox, "failed")
    seen = api.get(f"/v1/sandboxes/{sandbox}").json
    must("exited with 7" in seen["reason"], f"{seen}")


def test_events_contain_every_state_change_of_a_sandbox_in_order(api):
    sandbox = api.create()["id"]
    api.delete(f"/v1/sandboxes/{sandbox}")
    api.await_state(sandbox, "destroyed")
    rows = poll_until(lambda: events(api, sandbox), lambda rows: any(row["type"] == "sandbox.destroyed" for row in rows), 30)
    kinds = [row["type"] for row in rows]
    for kind in ("sandbox.requested", "route.decided", "sandbox.provisioning", "sandbox.ready", "sandbox.destroyed"):
        must(kind in kinds, f"{kind} is missing: {kinds}")
    must(all(row["actor"].split(":")[0] in ("adm", "agt", "atm") for row in rows if row.get("actor")), f"{rows}")
    must(rows == sorted(rows, key=lambda row: int(row["id"])), "the order of the ids")


def events(api, sandbox):
    """Reads the stored events of a sandbox."""
    answer = api.get(f"/v1/events?sandbox={sandbox}&follow=now", headers={"Accept": "text/event-stream", "Last-Event-ID": "0"}).expect(200)
    return [json.loads(line[5:]) for line in answer.body.splitlines() if line.startswith(b"data:")]


def snapshots(api):
    return [row["snapshot"]["id"] for row in api.get("/v1/snapshots").expect(200).json["snapshots"]]
