"""Two clients of one service: neither reaches a sandbox, run, bundle or preview of the other, on any road."""

import json
import urllib.parse

from harness import must, poll_until
from harness.previews import http_request

TASK = {"goal": "write a file", "agent_command": "sh -c 'echo $$ > /workspace/plugin/made.txt'"}


def ended(service, run, **options):
    """Waits for the end of a run and returns its document."""
    return poll_until(lambda: service.get(f"/v1/runs/{run}", **options).expect(200).json, lambda view: view["status"] == "ended", 240)


def test_run_and_bundle_of_a_sandbox_are_hidden_from_another_actor_whose_groups_contain_no_all(service):
    mine = service.token("sandboxes:*", "files:*", "runs:*", "artifacts:*", actor="agt:shop")
    other = service.token("sandboxes:*", "files:*", "runs:*", "artifacts:*", "*", actor="agt:other")
    sandbox = service.create(token=mine)["id"]
    service.post(f"/v1/sandboxes/{sandbox}/exec", {"argv": ["sh", "-c", "echo secret-of-shop > /workspace/plugin/a"]}, token=mine).expect(200)
    unknown = "run_" + "0" * 32

    def hidden(method, path, body=None):
        there = service.call(method, path, body, token=other)
        absent = service.call(method, path.replace(sandbox, unknown), body and json.loads(json.dumps(body).replace(sandbox, unknown)), token=other)
        must(there.status == absent.status == 404, f"{method} {path}: {there} {absent}")
        must(there.body == absent.body, f"{method} {path}: {there} {absent}")

    for method, path, body in (("POST", f"/v1/sandboxes/{sandbox}/exec", {"argv": ["true"]}), ("GET", f"/v1/sandboxes/{sandbox}", None),
                               ("GET", f"/v1/runs/{sandbox}", None), ("GET", f"/v1/runs/{sandbox}/events", None), ("DELETE", f"/v1/runs/{sandbox}", None),
                               ("GET", f"/v1/artifacts/{sandbox}", None), ("POST", "/v1/runs", {**TASK, "follow_up_of": {"artifact_id": sandbox}})):
        hidden(method, path, body)
    must(service.state_of(sandbox) in ("ready", "active"), "another actor ended the sandbox")
    events = service.get(f"/v1/runs/{sandbox}/events", token=mine).expect(200)
    must("secret-of-shop" in str(events.json), "control: the owner does not see the command in the journal")
    service.delete(f"/v1/sandboxes/{sandbox}", token=mine).expect(200)
    bundle = service.get(f"/v1/artifacts/{sandbox}", token=mine).expect(200).json["artifact"]["id"]
    service.get(f"/v1/artifacts/{bundle}/verify", token=mine).expect(200)
    for path in (f"/v1/artifacts/{sandbox}", f"/v1/artifacts/{bundle}", f"/v1/artifacts/{bundle}/verify"):
        must(service.get(path, token=other).status == 404, path)
    for earlier in ({"artifact_id": bundle}, {"run_id": sandbox}):
        refused = service.post("/v1/runs", {**TASK, "follow_up_of": earlier}, token=other)
        refused.expect(404, code="wp_codebox_artifact_not_found")
    for path, rows in (("/v1/runs", "runs"), ("/v1/artifacts", "artifacts")):
        empty = service.get(path, token=other).expect(200).json
        must(empty["total"] == 0 and empty[rows] == [], f"{path}: {empty}")
        must(sandbox in str(service.get(path, token=mine).json), f"control: {path}")
    # Control: a task of the owner may continue the bundle.
    task = {**TASK, "follow_up_of": {"artifact_id": bundle}}
    run = service.post("/v1/runs?profile=profile.test", task, token=mine).expect(202).json["run_id"]
    ended(service, run, token=mine)
    must(service.get(f"/v1/runs/{run}", token=other).status == 404, "another actor sees the new run")


def test_run_has_the_limits_network_and_directory_of_its_profile(service):
    tenant = service.token("runs:*@profile.test", "artifacts:read@profile.test", actor="agt:bounded")
    start = "/v1/runs?profile=profile.test"
    for body, status, code in (
            ({**TASK, "limits": {"disk_bytes": 256 << 20}}, 400, "wp_codebox_limit_invalid"),
            ({**TASK, "limits": {"memory_bytes": 32 << 30}}, 400, "wp_codebox_limit_invalid"),
            ({**TASK, "task_timeout_seconds": 24 * 3600}, 400, "wp_codebox_limit_invalid"),
            ({**TASK, "network": {"default": "deny", "allow_hosts": ["example.org"]}}, 400, "wp_codebox_input_invalid"),
            ({"workload": {"task": "t", "policy": {}}, **TASK, "policy": {"network": "deny"}}, 400, "wp_codebox_input_invalid"),
            ({**TASK, "mounts": [{"source": service.source, "target": "/workspace/plugin"}]}, 403, "wp_codebox_service_scope_missing"),
            ({**TASK, "site_seeds": [{"type": "parent_site"}]}, 403, "wp_codebox_service_scope_missing")):
        service.post(start, body, token=tenant).expect(status, code=code)
    service.post("/v1/runs", TASK, token=tenant).expect(403, code="wp_codebox_service_scope_missing")
    service.post("/v1/runs?profile=profile.other", TASK, token=tenant).expect(403, code="wp_codebox_service_scope_missing")
    # Without a profile there is a ceiling.
    free = service.token("runs:*", actor="agt:free")
    for limits in ({"memory_bytes": 32 << 30}, {"wall_clock_ms": 24 * 3600 * 1000}):
        service.post("/v1/runs", {**TASK, "limits": limits}, token=free).expect(400, code="wp_codebox_limit_invalid")
    run = service.post(start, TASK, token=tenant).expect(202).json["run_id"]
    view = ended(service, run, token=tenant)
    must(view["outcome"] == "succeeded" and view["provenance"]["profile"]["id"] == "profile.test", f"{view}")
    bundle = service.get(f"/v1/artifacts/{run}", token=tenant).expect(200).json["artifact"]
    must("made.txt" in json.dumps(bundle["changed_files"]), f"the directory of the profile is not mounted: {bundle['changed_files']}")
    must(service.get("/v1/runs", token=service.token("runs:*", actor="agt:bounded")).json["total"] == 1, "control: the list of the actor")


def test_preview_of_a_service_sandbox_needs_the_token_of_its_link(service):
    service.profile("profile.shown", more="reachability: { exec: true, preview: true }\n")
    made = service.create("profile.shown")
    url = urllib.parse.urlsplit(made["reachability"]["preview_url"])
    token = urllib.parse.parse_qs(url.query)["preview_token"][0]
    must(url.hostname == "127.0.0.1" and len(token) == 64, f"{url}")
    must(http_request(url.port, "/").status == 401, "a visitor without the token is let in")
    must(http_request(url.port, "/?preview_token=" + "0" * 64).status == 403, "a visitor with another token is let in")
    with_token = http_request(url.port, f"/?preview_token={token}")
    must(with_token.status in (302, 303), f"control: {with_token}")
    # Neither the run's files nor an event has the token.
    events = service.get("/v1/events?after=0&follow=now").expect(200).body.decode()
    journal = str(service.get(f"/v1/runs/{made['id']}/events").json) + str(service.get(f"/v1/runs/{made['id']}").json)
    must(made["id"] in events and token not in events + journal, "an event has the token")
    # A preview that is opened again needs the same token.
    shown = service.cli("preview", made["id"]).expect(0).json
    must(shown["access"] == "token" and token in shown["accessUrl"], f"{shown}")
    service.delete(f"/v1/sandboxes/{made['id']}").expect(200)


def test_role_of_a_tenant_is_a_set_of_scopes_without_all_and_without_the_machine(service):
    words = ["token", "create", "--actor", "agt:tenant", "--state", service.state, "--json", "--role"]
    made = service.bench.call(*words, "tenant@profile.test").expect(0).json
    must(made["scopes"] and all(scope.endswith("@profile.test") for scope in made["scopes"]), f"{made['scopes']}")
    sandbox = service.create(token=made["token"])["id"]
    service.get(f"/v1/sandboxes/{sandbox}", token=made["token"]).expect(200)
    for path in ("/v1/hosts", "/metrics", "/v1/webhooks"):
        service.get(path, token=made["token"]).expect(403, code="wp_codebox_service_scope_missing")
    refused = service.bench.call(*words, "owner@profile.test")
    must(refused.exit == 1 and "tenant@" in refused.stdout + refused.stderr, f"{refused}")
    service.delete(f"/v1/sandboxes/{sandbox}", token=made["token"]).expect(200)
