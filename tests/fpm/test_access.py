"""HTTP methods, permissions and validation of the abilities' REST routes."""

from harness import must

# The HTTP method that WordPress core derives from an ability's annotations.
VERBS = {
    "run-agent-task": "POST",
    "list-artifacts": "GET",
    "get-artifact": "GET",
    "inspect-artifact": "GET",
    "apply-artifact-preflight": "POST",
    "apply-approved-artifact": "POST",
    "rollback-artifact": "POST",
    "discard-artifact": "POST",
    "list-runs": "GET",
    "get-run": "GET",
    "list-run-events": "GET",
    "cancel-run": "POST",
}


def test_ability_with_wrong_http_method_returns_405(world):
    for name, verb in VERBS.items():
        for other in {"GET", "POST", "DELETE"} - {verb}:
            answer = world.ability(name, method=other).expect(405)
            must(answer.code == "rest_ability_invalid_method", answer)
        right = world.ability(name, method=verb)
        must(right.status not in (404, 405), f"{name}: {right}")


def test_requests_of_editors_subscribers_and_anonymous_visitors_are_refused(world):
    for name, verb in VERBS.items():
        for user, status in ((None, 401), ("editor", 403), ("subscriber", 403)):
            # Core validates the input before the permission, so the input must be valid for every ability.
            value = {"goal": "x", "plugin": "sample", "agent_command": "true"} if name == "run-agent-task" else {}
            answer = world.ability(name, value, user, verb)
            if answer.status == 400:
                answer = world.ability(name, REFERENCE.get(name, {}), user, verb)
            must(answer.status == status, f"{name} as {user}: {answer}")
    before = world.runs()
    world.run("true", "editor").expect(403)
    must(world.runs() == before, "a refused request made a run")
    world.run("true", "admin").expect(200)
    must(world.runs() != before, "control: an administrator's request starts a run")


REFERENCE = {name: {"run_id": "run_" + "0" * 32, "artifact_id": "artifact-bundle-sha256-" + "0" * 64} for name in VERBS}
for name in ("get-run", "list-run-events", "cancel-run"):
    REFERENCE[name] = {"run_id": "run_" + "0" * 32}
for name in ("get-artifact", "inspect-artifact"):
    REFERENCE[name] = {"artifact_id": "artifact-bundle-sha256-" + "0" * 64}


def test_wrong_application_password_is_refused(world):
    right = world.passwords["admin"]
    try:
        world.passwords["admin"] = "aaaa bbbb cccc dddd eeee ffff"
        world.ability("list-artifacts", method="GET").expect(401)
    finally:
        world.passwords["admin"] = right
    world.ability("list-artifacts", method="GET").expect(200)


def test_invalid_request_bodies_are_refused_without_a_run(world):
    path = "/wp-json/wp-abilities/v1/abilities/wp-codebox/run-agent-task/run"
    before = world.runs()
    world.request("POST", path, body=b'{"input": {"goal": ').expect(400, "rest_invalid_json")
    world.request("POST", path, body=b"\xff\xfe\x00").expect(400)
    answer = world.ability("run-agent-task", {**world.task("true"), "surprise": 1}).expect(400)
    must(b"surprise" in answer.body, f"the unknown field is not named: {answer}")
    world.ability("run-agent-task", {**world.task("true"), "plugin": ["sample"]}).expect(400)
    # Errors of the plugin have the HTTP status of their code.
    world.ability("run-agent-task", {"plugin": "sample", "agent_command": "true"}).expect(400, "wp_codebox_task_missing")
    world.ability("run-agent-task", {**world.task("true"), "code": "<?php"}).expect(400)
    world.ability("run-agent-task", {**world.task("true"), "plugin": "no-such"})
    must(world.runs() == before, "a request that is not valid made a run")
    world.ability("run-agent-task", world.task("true")).expect(200)


def test_query_string_numbers_are_parsed_and_other_text_is_refused(world):
    answer = world.ability("list-artifacts", {"page": 1, "per_page": 2}, method="GET").expect(200).json
    must((answer["page"], answer["per_page"]) == (1, 2), answer)
    world.ability("list-artifacts", {"page": "x"}, method="GET").expect(400)
    # A request in the form that sites without pretty permalinks use.
    plain = "/?rest_route=/wp-abilities/v1/abilities/wp-codebox/list-artifacts/run&input%5Bper_page%5D=2"
    must(world.request("GET", plain).expect(200).json["per_page"] == 2, "plain permalinks")


def test_direct_request_of_a_php_file_has_an_empty_body_and_anonymous_requests_get_no_list_of_abilities(world):
    front = world.request("GET", "/", None)
    must(front.status == 200, front)
    for path in ("/wp-content/plugins/wp-codebox/abilities/manifest.php", "/wp-content/plugins/wp-codebox/includes/Plugin.php"):
        answer = world.request("GET", path, None)
        must(answer.body.strip() == b"", f"{path}: {answer}")
    index = world.request("GET", "/wp-json/wp-abilities/v1/abilities", None)
    must(index.status == 401, index)
