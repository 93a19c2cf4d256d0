"""The generated runner in a real sandbox: started by a page of the site with the client module, and from the terminal."""

import json
import os

import jsonschema
import pytest
from page import command

from harness import must
from parent import ROOT

ABILITIES = "/wp-json/wp-abilities/v1/abilities/wp-codebox/"
RUNNER = "/tmp/wp-codebox/runner.php"
#: Does the task in the sandbox. Its variable is global only when WordPress was loaded outside of a function.
TASK = """<?php
$runner_case = 'global';
add_filter( 'runner_case', static function ( $result, $input ) {
	global $runner_case;
	if ( is_file( '/tmp/refuse' ) ) {
		throw new RuntimeException( 'The task broke.' );
	}
	file_put_contents( WP_CONTENT_DIR . '/runner-case.txt', $input['goal'] );
	return [ 'goal' => $input['goal'], 'variable' => $runner_case, 'administrator' => current_user_can( 'manage_options' ) ];
}, 10, 2 );
"""
#: Payloads of the events that a command causes, as docs/browser-page.md has them.
EVENTS = {
    "RUNTIME_OUTPUT": {"executionId": {"type": "string", "minLength": 1}, "stream": {"enum": ["stdout", "stderr"]}, "data": {"type": "string", "minLength": 1}},
    "RUNTIME_EXIT": {"executionId": {"type": "string", "minLength": 1}, "exitCode": {"type": "integer"}},
}


def result(text, success):
    """Returns a result that is valid by its schema."""
    document = json.loads(text)
    with open(os.path.join(ROOT, "dist", "wp-codebox", "abilities", "schemas", "browser-runner-result.v1.schema.json"), encoding="utf-8") as file:
        found = [f"{list(error.path)}: {error.message}" for error in jsonschema.Draft4Validator(json.load(file)).iter_errors(document)]
    must(found == [], f"{found} in {text}")
    must(document["success"] is success and ("error" in document) is not success, text)
    return document


def check_events(events):
    """Fails unless the envelopes are valid and their times do not fall."""
    for envelope in events:
        must(set(envelope) == {"id", "time", "event"} and set(envelope["event"]) == {"type", "payload"} and envelope["id"], str(envelope))
        payload = EVENTS[envelope["event"]["type"]]
        schema = {"type": "object", "properties": payload, "required": sorted(payload), "additionalProperties": False}
        jsonschema.validate(envelope["event"]["payload"], schema)
    must(len({envelope["id"] for envelope in events}) == len(events), "an id occurs twice")
    times = [envelope["time"] for envelope in events]
    must(times == sorted(times), str(times))


@pytest.fixture(scope="module")
def sandbox(browser, request):
    """A page of the parent on which the client module runs a session with a task, and the answer that created the session."""
    parent = request.getfixturevalue("parent")
    parent.install_runtime()
    visitor = parent.login("admin")
    nonce = visitor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text
    created = visitor.run({"url": ABILITIES + "create-browser-playground-session/run", "nonce": nonce}, {
        "goal": "Count to three",
        "roots": [{"kind": "plugin", "slug": "banner"}],
        "runtime": {"mu_plugins": [{"slug": "runner-case", "content": TASK}]},
        "browser_runner": {
            "invocation": {"type": "task", "hook": "runner_case"},
            "result_path": "/tmp/case/result.json",
            "capture_paths": [{"path": "wp-content/runner-case.txt", "name": "case", "max_bytes": 100}, {"path": "/tmp/none.txt"},
                              {"path": "wp-content/plugins/banner/banner.php", "max_bytes": 5}],
        },
    })
    must(created.status == 200 and created.json["status"] == "ready", created)
    session = created.json
    hydrated = visitor.run({"url": ABILITIES + "hydrate-browser-blueprint-ref/run", "nonce": nonce}, {"ref": session["blueprint_ref"]["ref"]})
    must(hydrated.status == 200, hydrated)
    page = browser.page()
    page.cookies(parent.url, visitor.cookies)
    page.go(parent.url + "/wp-admin/index.php")
    boot = session["preview_boot"]
    page.evaluate(f"""(async () => {{
        const iframe = document.createElement('iframe');
        document.body.append(iframe);
        const module = await import({json.dumps(boot["client_module_url"])});
        window.client = await module.startPlaygroundWeb({{ iframe, remoteUrl: {json.dumps(boot["remote_url"])}, scope: {json.dumps(boot["scope"])},
            blueprint: {json.dumps(hydrated.json["blueprint"])} }});
    }})()""")
    yield page, session
    page.close()


def run(page, session):
    """Runs the runner as its contract says; returns what it printed."""
    return page.evaluate(f"window.client.run({{ scriptPath: {json.dumps(session['session']['runner']['path'])} }}).then((answer) => answer.text)")


def test_browser_runner_executes_the_task_in_the_sandbox_and_returns_a_valid_result(sandbox):
    page, session = sandbox
    must(session["session"]["runner"]["path"] == RUNNER, str(session["session"]))
    text = run(page, session)
    document = result(text, True)
    must(document["session_id"] == session["session_id"], text)
    must(document["result"] == {"goal": "Count to three", "variable": "global", "administrator": True}, text)
    must([(row["status"], row["bytes"]) for row in document["captures"]][:2] == [("captured", 14), ("missing", 0)], text)
    must(document["captures"][2]["status"] == "too-large" and "content_base64" not in document["captures"][2], text)
    must(page.evaluate("window.client.readFileAsText('/tmp/case/result.json')") == text, "the file has another result")


def test_browser_runner_reports_an_exception_of_its_task_in_output_with_the_execution_id(sandbox):
    page, session = sandbox
    page.evaluate("window.client.writeFile('/tmp/refuse', '1')")
    pieces, ended = page.evaluate(f"""(async () => {{ const pieces = [];
        const ended = await window.client.exec('php', [{RUNNER!r}], {{ executionId: 'case-broken', onOutput: (piece) => pieces.push(piece) }});
        return [pieces, ended]; }})()""")
    page.evaluate("window.client.unlink('/tmp/refuse')")
    must(ended == {"executionId": "case-broken", "exitCode": 0} and pieces and {piece["executionId"] for piece in pieces} == {"case-broken"}, f"{ended} {pieces}")
    must({piece["stream"] for piece in pieces} == {"stdout"}, str(pieces))
    document = result("".join(piece["data"] for piece in pieces), False)
    must(document["error"] == {"code": "wp_codebox_browser_runner_exception", "message": "RuntimeException: The task broke."}, str(document["error"]))
    must(result(run(page, session), True)["result"]["variable"] == "global", "positive control")


def test_browser_runner_refuses_the_task_of_another_session(sandbox):
    page, session = sandbox
    path = session["session"]["runner"]["task_path"]
    task = page.evaluate(f"window.client.readFileAsText({path!r})")
    page.evaluate("window.client.unlink('/wordpress/wp-content/runner-case.txt').catch(() => {})")
    page.evaluate(f"window.client.writeFile({path!r}, {json.dumps(task.replace(session['session_id'], 'browser-session-of-another'))})")
    document = result(run(page, session), False)
    must(document["error"]["code"] == "wp_codebox_browser_runner_principal_invalid", str(document))
    must(page.evaluate("window.client.fileExists('/wordpress/wp-content/runner-case.txt')") is False, "the task ran")
    page.evaluate(f"window.client.writeFile({path!r}, {json.dumps(task)})")
    must(result(run(page, session), True)["captures"][0]["status"] == "captured", "positive control")


def test_browser_runner_without_a_task_reports_the_missing_task_and_emits_valid_events(opened):
    opened.evaluate("""(() => { window.seen = []; for (const type of ['RUNTIME_OUTPUT', 'RUNTIME_EXIT'])
        window.wpCodeboxBrowser.events.subscribe(type, (envelope) => window.seen.push(envelope)); })()""")
    code, text = command(opened, ["php", RUNNER])
    must(code == 0, text)
    document = result(text, False)
    must(document["error"]["code"] == "wp_codebox_browser_task_unavailable", text)
    events = opened.evaluate("window.seen")
    check_events(events)
    must([envelope["event"]["type"] for envelope in events][-1] == "RUNTIME_EXIT" and len(events) >= 2, str(events))
    must("".join(envelope["event"]["payload"].get("data", "") for envelope in events) == text, "the events have another output")
    log = opened.evaluate("document.querySelector('.wp-codebox-log').textContent")
    must(f"$ php {RUNNER}" in log and "wp_codebox_browser_task_unavailable" in log, log)
