"""Browser commands: probes, actions, sessions, and limits on hostile pages.

Most commands are steps of one recipe, so that one sandbox serves all of them. The cases read the
result of each step and the bundle.
"""

import json
import os
import shutil
import signal
import socket
import struct
import threading
import time
import urllib.parse
import zlib

import pytest

from harness import Failed, must, poll_until
from harness.previews import control_request, http_request
from harness.processes import descends_from

PAGES = "/wp-content/plugins/pages"
PROBE, ACTIONS = "wordpress.browser-probe", "wordpress.browser-actions"
COMMANDS = [PROBE, ACTIONS, "wordpress.browser-page-load", "wordpress.capture-html", "wordpress.export-browser-storage-state",
            "wordpress.browser-actions.evaluate", "wordpress.wp-cli", "inspect-mounted-inputs", "wordpress.run-php"]
MOBILE = "[innerWidth, Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.language, navigator.userAgent.includes('Pixel')]"


class Listener:
    """A server on the host's loopback interface, which no page in a sandbox may reach. Counts connections."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.connections = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            connection.close()


def policy(secrets="none", **network):
    return json.dumps({"network": network or "deny", "filesystem": "readwrite-mounts", "commands": COMMANDS, "secrets": secrets, "approvals": "never"})


def step(command, *args):
    return {"command": command, "args": list(args), "allowFailure": True}


def pages(bench, name="pages"):
    source = os.path.join(bench.directory, name)
    if not os.path.isdir(source):
        shutil.copytree(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), source)
        bench.own(source)
    return source


def targets(listener):
    """Returns the URLs that the page reach.html requests, and the expected result of each."""
    return [
        ("http://localhost/wp-includes/images/blank.gif", "200"),  # control: the page's own site
        ("http://allowed.test/hello", "opaque"),  # control: a host that the network policy allows
        ("https://other.test/", "failed"),
        ("http://10.1.2.3/", "opaque"),
        (f"http://127.0.0.1:{listener.port}/", "opaque"),
        (f"http://loop.test:{listener.port}/", "opaque"),
        (f"http://localhost:{listener.port}/", "opaque"),
        ("http://localhost:8080/", "opaque"),  # the web server of the guest with the site, by its own port
        ("http://127.0.0.1:3128/", "opaque"),  # the egress bridge (proxy) itself
        ("ws://localhost:8080/", "failed"),
    ]


def steps(listener):
    reach = ",".join(urllib.parse.quote(url, safe="") for url, _ in targets(listener))
    form = json.dumps([
        {"kind": "navigate", "url": "/wp-admin/options-general.php"},
        {"kind": "fill", "selector": "#blogname", "value": "Changed by a browser"},
        {"kind": "select", "selector": "#start_of_week", "value": "3"},
        {"kind": "check", "selector": "#users_can_register"},
        {"kind": "click", "selector": "#submit"},
        {"kind": "waitFor", "selector": "#setting-error-settings_updated"},
        {"kind": "expect", "assert": "attr:#blogname@value=Changed by a browser"},
        {"kind": "screenshot", "name": "saved"},
    ])
    holds = json.dumps([
        {"kind": "navigate", "url": "/wp-login.php", "waitFor": "selector:#loginform"},
        {"kind": "evaluate", "expression": "({b: [1, 2], a: 1})", "assert": {"a": 1.0, "b": [1, 2]}},
        {"kind": "evaluate", "expression": "undefined", "assert": None},
        {"kind": "waitFor", "waitFor": "networkidle", "timeout": "60s"},
        {"kind": "waitFor", "waitFor": "duration", "duration": "5ms"},
        {"kind": "waitFor", "selector": "#not-there", "state": "detached"},
        {"kind": "expect", "selector": "#rememberme", "state": "unchecked"},
        {"kind": "check", "selector": "#rememberme"},
        {"kind": "expect", "selector": "#rememberme", "state": "checked"},
        {"kind": "expect", "selector": "#wp-submit", "state": "enabled"},
        {"kind": "evaluate", "expression": "document.querySelector('#wp-submit').disabled = true", "assert": True},
        {"kind": "expect", "selector": "#wp-submit", "state": "disabled"},
    ])
    differs = [
        '[{"kind":"evaluate","expression":"1","assert":2},{"kind":"hover","selector":"body"}]',
        # The placeholder for a long or non-JSON value must not equal any expected value.
        '[{"kind":"evaluate","expression":"\'x\'.repeat(70000)","assert":{"truncated":true,"bytes":70002}}]',
        '[{"kind":"evaluate","expression":"0/0","assert":null}]',
    ]
    # A field that keeps the text, and what refuses it in other ways.
    fields = [
        {"kind": "fill", "selector": "#free", "value": "any text"},
        {"kind": "expect", "assert": "text:#free=any text"},
        {"kind": "fill", "selector": "#day", "value": "2026-01-31"},
        {"kind": "fill", "selector": "#short", "value": "abc"},
        {"kind": "fill", "selector": "#lines", "value": "a\r\nb"},
        {"kind": "fill", "selector": "#rich", "value": "rich"},
        {"kind": "fill", "selector": "#free", "value": ""},
        {"kind": "check", "selector": "#box"},
        {"kind": "click", "selector": "#open"},
    ]
    refused = {
        "read-only": {"kind": "fill", "selector": "#ro", "value": "new"},
        "typed read-only": {"kind": "type", "selector": "#ro", "text": "new"},
        "disabled": {"kind": "fill", "selector": "#off", "value": "new"},
        "number": {"kind": "fill", "selector": "#number", "value": "abc"},
        "maxlength": {"kind": "fill", "selector": "#short", "value": "abcdef"},
        "no date": {"kind": "fill", "selector": "#day", "value": "tomorrow"},
        "check box": {"kind": "fill", "selector": "#box", "value": "on"},
        "formatted": {"kind": "fill", "selector": "#upper", "value": "abc"},
        "covered": {"kind": "click", "selector": "#under"},
        "disabled button": {"kind": "click", "selector": "#stopped"},
        "disabled select": {"kind": "select", "selector": "#choice", "value": "b"},
        "stubborn": {"kind": "check", "selector": "#stubborn"},
    }
    acted = {f"refused {name}": step(ACTIONS, f"url={PAGES}/fields.html", "step-timeout=1s", "timeout=180s", "capture=none", "steps-json=" + json.dumps([one]))
             for name, one in refused.items()}
    faults = {
        "fatal": step(PROBE, "url=/?fault=fatal", "capture=none"),
        "fatal load": step("wordpress.browser-page-load", "url=/?fault=fatal", "capture=none"),
        "fatal html": step("wordpress.capture-html", "url=/?fault=fatal"),
        "fatal expected": step(PROBE, "url=/?fault=fatal", "capture=none", "expect-status=500"),
        "fatal asserted": step(PROBE, "url=/?fault=fatal", "capture=none", "assert=status:500"),
        "late": step(PROBE, "url=/?fault=late", "capture=none", "expect-status=200"),
        "busy": step(PROBE, "url=/?fault=busy", "capture=none"),
        "busy expected": step(PROBE, "url=/?fault=busy", "capture=none", "expect-status=503"),
        "other status": step(PROBE, "url=/?fault=busy", "capture=none", "expect-status=200"),
        "missing": step(PROBE, "url=/?p=98765", "capture=none"),
        "behind": step(PROBE, "url=/?fault=behind", "capture=none", "wait-for=selector:#done"),
        "behind advisory": step(PROBE, "url=/?fault=behind", "capture=none", "wait-for=selector:#done", "assert=advisory:no-php-errors"),
        "warns": step(PROBE, "url=/?fault=warn", "capture=none"),
        "warns asserted": step(PROBE, "url=/?fault=warn", "capture=none", "assert=no-php-errors"),
        "silent asserted": step(PROBE, "url=/", "capture=none", "assert=no-php-errors"),
        "throws": step(PROBE, f"url={PAGES}/errors.html", "capture=none", "duration=300ms"),
        "navigated": step(ACTIONS, "timeout=180s", "step-timeout=60s", "capture=none", "steps-json=" + json.dumps([{"kind": "navigate", "url": "/"}, {"kind": "navigate", "url": "/?fault=fatal"}])),
        "navigated expected": step(ACTIONS, "timeout=180s", "step-timeout=60s", "capture=none", "steps-json=" + json.dumps([{"kind": "navigate", "url": "/?fault=fatal", "expectStatus": 500}, {"kind": "navigate", "url": "/", "expectStatus": 200}])),
        "navigated other": step(ACTIONS, "timeout=180s", "step-timeout=60s", "capture=none", "steps-json=" + json.dumps([{"kind": "navigate", "url": "/", "expectStatus": 404}])),
        "images": step(PROBE, "url=/?fault=images", "capture=none", "duration=300ms", "assert=no-errors"),
        "own image": step(PROBE, "url=/?fault=own-image", "capture=none", "duration=300ms", "assert=no-errors"),
    }
    return {
        **faults,
        **acted,
        "fields": step(ACTIONS, f"url={PAGES}/fields.html", "step-timeout=60s", "timeout=180s", "capture=none", "steps-json=" + json.dumps(fields)),
        "holds": step(ACTIONS, "url=/", "step-timeout=60s", "timeout=180s", "steps-json=" + holds, "capture=none"),
        "differs": step(ACTIONS, "url=/", "timeout=180s", "step-timeout=60s", "steps-json=" + differs[0], "capture=none"),
        "long": step(ACTIONS, "url=/", "timeout=180s", "step-timeout=60s", "steps-json=" + differs[1], "capture=none"),
        "no number": step(ACTIONS, "url=/", "timeout=180s", "step-timeout=60s", "steps-json=" + differs[2], "capture=none"),
        "front": step(PROBE, "url=/", "capture=screenshot,html,console,errors,network,accessibility", "wait-for=networkidle",
                      "assert=exists:body", "assert=status:200", "assert=count:h1>=1", "assert=advisory:text:h1=not there"),
        "form": step(ACTIONS, "auth=wp-admin", "step-timeout=60s", "timeout=180s", "steps-json=" + form, "capture=none"),
        "option": step("wordpress.wp-cli", "command=option get blogname"),
        "errors": step(PROBE, f"url={PAGES}/errors.html", "capture=console,errors", "duration=300ms", "assert=advisory:no-errors",
                       "assert=frame:#inner >> text:.deep=inner text"),
        "failing": step(PROBE, "url=/", "capture=none", "assert=exists:#not-there", "assert=exists:body"),
        "reach": step(PROBE, f"url={PAGES}/reach.html#{reach}", "capture=none", "wait-for=selector:#done", "assert=title:Done",
                      "script=document.getElementById('out').textContent"),
        "narrowed": step(PROBE, f"url={PAGES}/reach.html#" + urllib.parse.quote("http://allowed.test/narrowed", safe=""), "capture=none",
                         "block-host=allowed.test", "wait-for=selector:#done", "assert=title:Done"),
        "forever": step(PROBE, f"url={PAGES}/forever.html", "capture=errors", "timeout=2s"),
        "hostile": step(PROBE, f"url={PAGES}/hostile.html", "capture=screenshot,console", "assert=count:i=100000",
                        "assert=visible:#end", "timeout=500s"),
        "export": step("wordpress.export-browser-storage-state", "storage-state=ed", 'user-json={"user":"ed","role":"editor"}'),
        "named": step(PROBE, "url=/wp-admin/profile.php", "storage-state=ed", "capture=none", "assert=attr:#user_login@value=ed"),
        "mobile": step(PROBE, "url=/?mobile", "capture=screenshot", "device=Pixel 7", "timezone=Asia/Tokyo", "locale=de-DE", "script=" + MOBILE),
        "hungry": step(PROBE, f"url={PAGES}/hungry.html", "capture=none", "duration=180s", "timeout=240s"),
        "after": step("wordpress.browser-page-load", "surface=admin", "assert=exists:#loginform"),
    }


class RecipeRun:
    """The run of the recipe with all browser commands: result of each step, and bundle."""

    def __init__(self, bench):
        self.listener = Listener()
        named = steps(self.listener)
        recipe = {"schema": "wp-codebox/workspace-recipe/v1", "workflow": {"steps": list(named.values())}, "inputs": {"mounts": [
            {"type": "directory", "source": pages(bench), "target": "/wordpress" + PAGES, "mode": "readonly"},
            {"type": "directory", "source": pages(bench, "mu-plugins"), "target": "/wordpress/wp-content/mu-plugins", "mode": "readonly"}]}}
        path = os.path.join(bench.directory, "recipe.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(recipe, file)
        self.before = leftovers()
        arguments = ["recipe-run", "--recipe", path, *bench.paths(), "--site", bench.site, "--json",
                     "--policy", policy(allowHosts=["allowed.test"])]
        # 1000 seconds: the recipe starts several browsers one after the other, and the machine may be busy.
        self.answer = bench.finish(arguments, bench.start(arguments), 1000)
        self.listener.socket.close()
        executions = [row for row in self.answer.json["executions"] if row["command"] != "browser-state"]
        must(len(executions) == len(named), f"{len(executions)} executions of {len(named)} steps\n{self.answer}")
        self.rows = dict(zip(named, executions))
        print("  " + ", ".join(f"{name} {row['durationMs']} ms" for name, row in self.rows.items()))
        self.directory = bundle(bench)

    def step(self, name, exit_code=0):
        row = self.rows[name]
        try:
            document = json.loads(row["stdout"])
        except ValueError as error:
            raise Failed(f"{name} printed no JSON: {row}") from error
        must(row["exitCode"] == exit_code, f"{name} ended with {row['exitCode']}: {json.dumps(document)[:2500]}")
        return document

    def file(self, document, kind):
        paths = [a["path"] for a in document["artifacts"] if a["kind"] == kind]
        must(paths, f"there is no {kind}: {document['artifacts']}")
        with open(os.path.join(self.directory, paths[0]), "rb") as file:
            return file.read()


@pytest.fixture(scope="session")
def recipe_run(bench):
    """Runs the recipe once for all cases that read its result; conftest.py assigns these cases to one process."""
    return RecipeRun(bench)


def bundle(bench):
    root = os.path.join(bench.state, "sites", bench.site, "artifacts")
    newest = max((os.path.join(root, name) for name in os.listdir(root) if name.startswith("run_")), key=os.path.getmtime)
    return newest


def browsers():
    """Returns pid and command line of the browser processes in guests, identified by their profile directory."""
    return [(pid, line) for pid, line in command_lines() if b"--user-data-dir=/tmp/profile" in line and b"--remote-debugging-pipe" in line]


def renderers():
    return [pid for pid, line in command_lines() if b"--type=renderer" in line]


def command_lines():
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                found.append((int(name), file.read()))
        except OSError:
            continue
    return found


def leftovers():
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = len(file.readlines())
    return mounts


def picture(data):
    """Returns width, height and the number of distinct byte values in a PNG's pixel data."""
    must(data.startswith(b"\x89PNG\r\n\x1a\n"), "no PNG")
    width, height = struct.unpack(">II", data[16:24])
    at, pixels = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        must(zlib.crc32(data[at + 4:at + 8 + size]) == struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0], "a checksum is wrong")
        if kind == b"IDAT":
            pixels += data[at + 8:at + 8 + size]
        at += 12 + size
    return width, height, len(set(zlib.decompress(pixels)))


def test_browser_probe_captures_screenshot_html_and_accessibility(recipe_run):
    front = recipe_run.step("front")
    must(front["httpStatus"] == 200 and front["title"], str(front)[:800])
    must([row["status"] for row in front["assertions"]] == ["passed", "passed", "passed", "advisory-failed"], str(front["assertions"]))
    width, height, colours = picture(recipe_run.file(front, "browser-screenshot"))
    must((width, height) == (1280, 720) and colours > 20, f"{width}x{height}, {colours} different bytes")
    must(b"</html>" in recipe_run.file(front, "browser-html") and b"wp-block" in recipe_run.file(front, "browser-html"), "no HTML of WordPress")
    roles = {node["role"] for node in json.loads(recipe_run.file(front, "browser-accessibility"))["nodes"]}
    must({"link", "heading"} <= roles, str(roles))
    print(f"  cold start {front['timings']['startMs']} ms, navigation {front['timings']['navigationMs']} ms, peak {front['memory']['peakBytes'] >> 20} MiB")


def test_browser_actions_submit_a_settings_form(recipe_run):
    form = recipe_run.step("form")
    must(len(form["steps"]) == 8 and all(row["status"] == "passed" for row in form["steps"]), str(form["steps"]))
    must([a for a in form["artifacts"] if a["path"].endswith("step-7-saved.png")], str(form["artifacts"]))
    must(recipe_run.rows["option"]["stdout"] == "Changed by a browser\n", str(recipe_run.rows["option"]))


def test_browser_probe_records_console_and_errors(recipe_run):
    seen = recipe_run.step("errors")
    must([line["text"] for line in seen["console"]] == ["a warning 3", "it went wrong"], str(seen["console"]))
    must(any("nobody catches this" in row["text"] for row in seen["errors"]), str(seen["errors"]))
    must(any("missing.png" in row["url"] for row in seen["network"]), str(seen["network"]))
    must([row["status"] for row in seen["assertions"]] == ["advisory-failed", "passed"], str(seen["assertions"]))


def fault(recipe_run, name, *words, reason="page-error"):
    document = recipe_run.step(name, 1)
    must(document["error"]["reason"] == reason and all(word in document["error"]["message"] for word in words), f"{name}: {document['error']}")
    return document


@pytest.mark.parametrize("name", ["fatal", "fatal load", "fatal html", "late", "behind"])
def test_page_whose_request_ends_with_a_fatal_php_error_fails_and_the_result_has_file_and_line(recipe_run, name):
    document = fault(recipe_run, name, "fatal error", "/mu-plugins/faults.php:")
    row = document["phpErrors"][-1]
    must((row["level"], row["file"], row["request"]) == ("fatal", "/wordpress/wp-content/mu-plugins/faults.php", "GET /") and row["line"] > 3, str(row))
    must(document["phpErrorsTotal"] == 1 and document["status"] in ("failed", "error"), str(document)[:500])


@pytest.mark.parametrize("name, status", [("fatal expected", 500), ("fatal asserted", 500), ("busy expected", 503), ("missing", 404), ("behind advisory", 200)])
def test_page_with_a_fault_that_the_caller_expects_passes(recipe_run, name, status):
    document = recipe_run.step(name)
    must(document["httpStatus"] == status and document["status"] == "ok", str(document)[:500])
    must(len(document["phpErrors"]) == (0 if name in ("missing", "busy expected") else 1), str(document["phpErrors"]))


def test_page_that_answers_503_or_another_status_than_the_expected_one_fails(recipe_run):
    must(fault(recipe_run, "busy", "answered with 503", "expect-status=503")["phpErrors"] == [], "PHP errors")
    fault(recipe_run, "other status", "status:200", "the status is 503", reason="assertion-failed")


def test_page_with_an_exception_that_nothing_catches_fails_unless_no_errors_is_advisory(recipe_run):
    fault(recipe_run, "throws", "nobody catches this", "errors.html", "advisory:no-errors")
    recipe_run.step("errors")


def test_php_warning_is_listed_and_fails_only_the_assertion_no_php_errors(recipe_run):
    for document in (recipe_run.step("warns"), fault(recipe_run, "warns asserted", "no-php-errors", "warning: careful in /wordpress/", reason="assertion-failed")):
        must([(row["level"], row["message"]) for row in document["phpErrors"]] == [("warning", "careful")], str(document["phpErrors"]))
    must(recipe_run.step("silent asserted")["phpErrors"] == [], "PHP errors of a page without a fault")


def test_navigate_step_to_a_page_with_a_fatal_error_fails_unless_it_expects_the_status(recipe_run):
    rows = fault(recipe_run, "navigated", "steps[1] navigate", "fatal error")["steps"]
    must([row["status"] for row in rows] == ["passed", "failed"], str(rows))
    must([row["status"] for row in recipe_run.step("navigated expected")["steps"]] == ["passed", "passed"], "expected status")
    fault(recipe_run, "navigated other", "answered with 200, but 404 was expected", reason="step-failed")


def test_request_that_the_policy_refuses_is_listed_apart_and_is_no_error_of_the_page(recipe_run):
    document = recipe_run.step("images")
    must([row["url"] for row in document["denied"]] == ["https://denied.test/avatar.png"], str(document["denied"]))
    must(document["errors"] == [] and document["networkFailed"] == [], str(document["errors"]))
    must(any(row["host"] == "denied.test" and row["decision"] == "denied" for row in document["external"]["requests"]), str(document["external"]))
    own = fault(recipe_run, "own image", "no-errors", "503", reason="assertion-failed")
    must(own["denied"] == [] and len(own["networkFailed"]) == 1, str(own["networkFailed"]))


def test_field_that_accepts_the_text_passes(recipe_run):
    rows = recipe_run.step("fields")["steps"]
    must([row["status"] for row in rows] == ["passed"] * 9, str(rows))


@pytest.mark.parametrize("name, words", [
    ("read-only", ["read-only", 'keeps "kept"', '<input id="ro"']),
    ("typed read-only", ["read-only"]),
    ("disabled", ["is disabled", '<input id="off"']),
    ("number", ['keeps "" instead of "abc"', 'type="number"']),
    ("maxlength", ['keeps "abc" instead of "abcdef"', "maxlength is 3"]),
    ("no date", ['keeps "" instead of "tomorrow"']),
    ("check box", ["takes no text", 'type="checkbox"']),
    ("formatted", ['keeps "ABC" instead of "abc"']),
    ("covered", ['covered by <div id="banner" class="over wide">']),
    ("disabled button", ["is disabled", '<button id="stopped">']),
    ("disabled select", ["is disabled", '<select id="choice">']),
    ("stubborn", ["stayed unchecked"]),
])
def test_step_on_an_element_that_refuses_it_fails_and_names_the_cause(recipe_run, name, words):
    document = fault(recipe_run, f"refused {name}", *words, reason="step-failed")
    must("did not finish" not in document["error"]["message"], str(document["error"]))


def test_failed_browser_assertion_fails_the_step(recipe_run):
    failing = recipe_run.step("failing", 1)
    must(failing["error"]["reason"] == "assertion-failed" and failing["error"]["code"] == "wp_codebox_command_failed", str(failing["error"]))
    must([row["status"] for row in failing["assertions"]] == ["failed", "passed"], str(failing["assertions"]))


def test_assertion_on_an_evaluated_script_decides_the_browser_action_result(recipe_run):
    rows = recipe_run.step("holds")["steps"]
    must(len(rows) == 12 and all(row["status"] == "passed" for row in rows), str(rows))
    must(rows[1]["assertion"] == {"expected": {"a": 1.0, "b": [1, 2]}, "actual": {"a": 1, "b": [1, 2]}, "passed": True}, str(rows[1]))
    rows = recipe_run.step("differs", 1)["steps"]
    must([row["status"] for row in rows] == ["failed"] and rows[0]["assertion"] == {"expected": 2, "actual": 1, "passed": False}, str(rows))
    must("returned 1, but assert expects 2" in rows[0]["error"], str(rows))
    for name, word in (("long", "70002 bytes"), ("no number", "NaN")):
        rows = recipe_run.step(name, 1)["steps"]
        must(rows[0]["assertion"]["passed"] is False and word in rows[0]["error"], str(rows))


def test_page_reaches_only_its_site_and_allowed_hosts(bench, recipe_run):
    reach = recipe_run.step("reach")
    wanted = targets(recipe_run.listener)
    # The egress bridge refuses with an HTTP response, which a no-cors request sees as `opaque`.
    must(json.loads(reach["script"]) == [seen for _, seen in wanted], f"{reach['script']} of {wanted}")
    must(recipe_run.listener.connections == 0, "a page reached the host's loopback")
    must(len(bench.world.seen(path="/hello")) == 1, "the host that the policy names was not reached")
    must(not bench.world.seen(host="other.test"), "a host that no rule names was reached")
    decided = {(row["host"], row["port"]): row["decision"] for row in reach["external"]["requests"]}
    must(decided.get(("allowed.test", 80)) == "allowed" and decided.get(("other.test", 443)) == "denied", str(decided))
    # The bridge refuses invalid addresses before it parses the host, so such rows name no host.
    refused = [row for row in reach["external"]["requests"] if row["decision"] == "denied"]
    must(len(refused) >= 8 and {row["reason"] for row in refused} >= {"private-address", "host-invalid"}, str(refused))
    with open(os.path.join(recipe_run.directory, "files/runtime-evidence/egress.jsonl"), encoding="utf-8") as file:
        kept = [json.loads(line) for line in file]
    must(any(row["phase"] == "browser" and row["host"] == "other.test" and row["decision"] == "denied" for row in kept), str(kept)[:1500])


def test_block_host_argument_narrows_the_egress_policy_of_a_browser(bench, recipe_run):
    narrowed = recipe_run.step("narrowed")
    must([row["decision"] for row in narrowed["external"]["requests"]] == ["denied"], str(narrowed["external"]))
    must(not bench.world.seen(path="/narrowed"), "a blocked host was reached")


def test_secret_returned_by_another_host_does_not_reach_a_page(bench):
    """The run's key is bound to allowed.test; other.test, also allowed, sends the key to a page."""
    key = f"stored{os.urandom(12).hex()}"
    bench.world.kept, bench.world.stored = key, lambda text: [text.encode(), b"no secret"]
    # Code points, because command output is redacted even when the page saw the key.
    seen = "script=JSON.stringify([...document.body.innerText].map((c) => c.codePointAt(0)))"
    look = ["--command", PROBE, "--arg", "url=http://other.test/stored", "--arg", "capture=none", "--arg", seen,
            "--policy", policy("connector-scoped", allowHosts=["allowed.test", "other.test"])]
    for bound, first in [([], f"form {key}"), (["--secret-env", "API_KEY=allowed.test"], None)]:
        answer = bench.call(*bench.run_arguments(*look, *bound), environment={"PATH": "/usr/bin:/bin", "API_KEY": key}).expect(0)
        document = json.loads(next(row["stdout"] for row in answer.result["transcript"]["executions"] if row["command"] == PROBE))
        lines = "".join(map(chr, json.loads(document["script"]))).splitlines()
        must(lines[1:] == ["form no secret"], f"control: the rest of the answer: {lines}")
        must(lines[0] == first if first else lines[0].startswith("form ") and key not in lines[0], f"{bound}: the page saw {lines}")


def test_page_that_never_loads_times_out(recipe_run):
    forever = recipe_run.step("forever", 1)
    must(forever["error"]["reason"] == "timeout", str(forever["error"]))
    must(forever["timings"]["totalMs"] < 60000, str(forever["timings"]))


def test_dialogs_and_console_messages_of_a_hostile_page_are_limited(recipe_run):
    hostile = recipe_run.step("hostile")
    must(hostile["dialogsTotal"] == 200 and len(hostile["dialogs"]) == 20, str(hostile["dialogsTotal"]))
    must(hostile["consoleTotal"] == 100000 and len(hostile["console"]) == 50, str(hostile["consoleTotal"]))
    must(hostile["windowsClosed"] >= 1 and hostile["downloadsRefused"] <= 1, f"{hostile['windowsClosed']} {hostile['downloadsRefused']}")
    must(len(recipe_run.rows["hostile"]["stdout"]) < 100000, "the result has no bound")


def test_browser_that_loads_a_saved_storage_state_is_logged_in_and_no_cookie_value_is_recorded(recipe_run):
    exported = recipe_run.step("export")
    must(exported["schema"] == "wp-codebox/browser-storage-state-export/v1" and exported["cookies"], str(exported))
    must(recipe_run.step("named")["status"] == "ok", "the browser did not use the session")
    # Control: a browser without session gets the login form.
    must(recipe_run.step("after")["finalUrl"].startswith("http://localhost/wp-login.php"), str(recipe_run.step("after"))[:600])
    whole = json.dumps(list(recipe_run.rows.values()))
    must("wordpress_logged_in" in whole and "%7C" not in whole, "a value of a cookie is in the record")


def test_device_timezone_and_locale_are_emulated(recipe_run):
    mobile = recipe_run.step("mobile")
    must(mobile["script"] == [412, "Asia/Tokyo", "de-DE", True], str(mobile["script"]))
    # 412 by 839 CSS pixels with 2.625 device pixels each; Chromium rounds up or down.
    size = picture(recipe_run.file(mobile, "browser-screenshot"))[:2]
    must(size in ((1081, 2202), (1082, 2202)) and size == (mobile["screenshots"][0]["width"], mobile["screenshots"][0]["height"]), f"{size} {mobile['screenshots']}")


def test_page_over_the_memory_limit_ends_only_its_browser_guest(recipe_run):
    hungry = recipe_run.step("hungry", 1)
    must(hungry["error"]["reason"] == "limit-reached" and hungry["error"]["code"] == "wp_codebox_memory_limit", str(hungry["error"]))
    must(hungry["memory"]["peakBytes"] < 3 << 30, str(hungry["memory"]))
    print(f"  {hungry['error']['reason']} at {hungry['memory']['peakBytes'] >> 20} MiB")
    # Control: the run's main guest continued.
    must(recipe_run.rows["after"]["exitCode"] == 0, str(recipe_run.rows["after"])[:600])


def test_bundle_of_a_run_with_a_browser_passes_verification(bench, recipe_run):
    verified = bench.call("artifacts", "verify", "--bundle", recipe_run.directory, "--state", bench.state, "--json")
    must(verified.exit == 0, str(verified))


def test_killed_browser_fails_the_command_and_leaves_no_process(bench):
    # The page sends a request when it is open, and the command then stays there.
    page = f"url={PAGES}/reach.html#" + urllib.parse.quote("http://allowed.test/opened", safe="")
    arguments = bench.run_arguments("--mount", f"{pages(bench)}:/wordpress{PAGES}", "--policy", policy(allowHosts=["allowed.test"]),
                                    "--command", PROBE, "--arg", page, "--arg", "duration=60s", "--arg", "capture=none")
    process = bench.start(arguments)
    poll_until(lambda: bench.world.seen(path="/opened") or process.poll() is not None, seconds=90, what="the page was not opened")
    mine = [pid for pid, line in browsers() if b"--type=" not in line and descends_from(pid, process.pid)]
    if not mine:
        raise Failed(f"no browser was seen\n{bench.finish(arguments, process, 240)}")
    # This suite runs as root, so guests have their own uid.
    uid = os.stat(f"/proc/{mine[0]}").st_uid
    os.kill(mine[0], signal.SIGKILL)
    answer = bench.finish(arguments, process, 240)
    must(uid not in (0, os.stat(bench.state).st_uid), f"the browser ran as uid {uid}")
    answer.expect(1, "wp_codebox_command_failed")
    must("browser-lost" in answer.stdout, str(answer))
    must(not os.path.exists(f"/proc/{mine[0]}"), "the browser is still there")


def test_browser_result_is_recorded_as_an_episode_observation(bench):
    """Observes a page alone and as part of a step. The preview answers visitors while the browser works."""
    begun = bench.call("episode", "start", "--mount", f"{pages(bench)}:/wordpress{PAGES}", "--ttl", "3m", "--policy", policy(),
                       *bench.paths(), "--site", bench.site, "--json").expect(0).json
    episode = lambda verb, *arguments: bench.call(  # noqa: E731
        "episode", verb, begun["id"], *arguments, "--state", bench.state, "--site", bench.site, "--json")
    seen = episode("observe", json.dumps({"type": "browser-result", "url": f"{PAGES}/errors.html"})).expect(0).json
    data = seen["data"]
    must(seen["type"] == "browser-result" and data["status"] == "failed" and data["error"]["reason"] == "page-error" and data["finalUrl"] == f"http://localhost{PAGES}/errors.html", json.dumps(seen)[:1500])
    must(data["errors"] and data["artifacts"], "what the page did wrong, and what was kept of it: " + json.dumps(seen)[:1500])
    step = episode("step", "--command", "wordpress.wp-cli", "--arg", "command=option update blogname Seen", "--observe",
                   json.dumps({"type": "browser-result", "url": "/"})).expect(0).json
    must(step["observation"]["data"]["title"].startswith("Seen") and step["observation"]["data"]["status"] == "ok", json.dumps(step["observation"])[:900])
    # For a host that the policy does not allow, the egress bridge answers, and its refusal becomes the page.
    before = len(bench.world.requests)
    elsewhere = episode("observe", json.dumps({"type": "browser-result", "url": "http://allowed.test/hello"})).expect(0).json["data"]
    must(elsewhere["external"]["requests"][0]["decision"] == "denied", json.dumps(elsewhere)[:1500])
    must(len(bench.world.requests) == before, "the host was asked")
    live = lambda request: control_request(bench, begun["id"], request)  # noqa: E731
    port = int(live({"type": "preview"})["answer"]["localUrl"].rsplit(":", 1)[1])
    ends, visits = [], []
    # The browser waits for an element that never appears; it sends no further request and leaves the processor to the visitors.
    probe = {"type": "command", "call": {"command": PROBE, "args": [f"url={PAGES}/errors.html", "wait-for=selector:#none", "timeout=20s", "capture=none"]}}
    looking = threading.Thread(target=lambda: ends.append(live(probe)["answer"]["status"]))
    looking.start()
    while looking.is_alive():
        began = time.monotonic()
        must(http_request(port, f"{PAGES}/forever.html").status == 200, "a visitor was not answered")
        visits.append(time.monotonic() - began)
        # Leaves processor time to the browser.
        time.sleep(0.2)
    # If the probe blocked visitors, they would get one or two answers in its twenty seconds.
    must(ends == ["error"] and len(visits) > 4, f"visitors waited for the browser: {visits}")
    closed = episode("close").expect(0).json
    directory = closed["bundle"]["directory"]
    for kept in data["artifacts"]:
        must(os.path.getsize(os.path.join(directory, kept["path"])) == kept["bytes"], f"{kept}")
    with open(os.path.join(directory, "files", "runtime-episode-trace.json"), encoding="utf-8") as file:
        trace = json.load(file)
    must(trace["steps"][0]["observation"] == step["observation"], json.dumps(trace["steps"])[:900])
    with open(os.path.join(directory, "observations.jsonl"), encoding="utf-8") as file:
        digests = [row.get("digest") for row in map(json.loads, file) if row["type"] == "browser-result"]
    must(seen["digest"] in digests, f"{digests}")
    bench.call("artifacts", "verify", "--bundle", directory, "--state", bench.state, "--json").expect(0)


def test_error_for_a_missing_browser_names_the_package_to_install(bench):
    answer = bench.run("--command", PROBE, "--arg", "url=/", "--browser", "/nonexistent/chromium")
    answer.expect(125, "wp_codebox_browser_unavailable")
    must("apt-get install chromium" in answer.stdout, str(answer))
    doctor = bench.call("doctor", *bench.paths(), "--browser", "/nonexistent/chromium", "--json").json
    row = next(row for row in doctor["checks"] if row["id"] == "browser")
    must(row["status"] == "warning" and "--browser" in row["fix"], str(row))


def test_no_mount_or_browser_process_remains_after_the_run(recipe_run):
    must(leftovers() == recipe_run.before, "a mount is left")
    mine = [pid for pid, _ in browsers() if descends_from(pid, os.getpid())]
    must(not mine, f"browsers are left: {mine}")
