"""Published argument values of browser commands, the block editor, and comparisons of pictures.

All commands are steps of one recipe, so that one sandbox serves all of them; each row of the tables has the command, its
arguments and the check of its result.
"""

import json
import os

import pytest

from harness import Failed, must

from test_browsing import PAGES, bundle, pages, picture

PROBE, ACTIONS, LOAD = "wordpress.browser-probe", "wordpress.browser-actions", "wordpress.browser-page-load"
OPEN, EDIT, VALIDATE, CANVAS = (f"wordpress.editor-{name}" for name in ("open", "actions", "validate-blocks", "canvas-probe"))
COMPARE, EXPORT, EXERCISE = "wordpress.visual-compare", "wordpress.export-browser-storage-state", "wordpress.block-exercise"
COMMANDS = [PROBE, ACTIONS, LOAD, "wordpress.browser-scenario", OPEN, EDIT, VALIDATE, CANVAS, COMPARE, EXPORT, EXERCISE,
            "wordpress.browser-actions.evaluate", "wordpress.wp-cli", "wordpress.run-php"]
ELEMENTS = f"url={PAGES}/elements.html"
SLOW = ["timeout=240s"]
VALID = '<!-- wp:paragraph -->\n<p>Good</p>\n<!-- /wp:paragraph -->'
INVALID = '<!-- wp:paragraph -->\n<div>Bad</div>\n<!-- /wp:paragraph -->'
UNKNOWN = '<!-- wp:nobody/knows {"a":1} /-->'
HEADING = '<!-- wp:heading -->\n<h2 class="wp-block-heading">First</h2>\n<!-- /wp:heading -->'
POST = 4077
MAKE = f"echo wp_insert_post(['import_id' => {POST}, 'post_status' => 'publish', 'post_title' => 'Made', 'post_content' => {json.dumps(VALID + HEADING)}]);"
GROUP = f'<!-- wp:group -->\n<div class="wp-block-group">{VALID}</div>\n<!-- /wp:group -->'


def acts(*steps):
    return [ELEMENTS, "capture=none", "step-timeout=60s", *SLOW, "steps-json=" + json.dumps(list(steps))]


def passed(document, count):
    must([row["status"] for row in document["steps"]] == ["passed"] * count, str(document["steps"]))


def counted(number):
    return lambda document, run: passed(document, number)


def failed(*words):
    def check(document, run):
        must(all(word in document["error"]["message"] for word in words), str(document["error"]))
    return check


def profiles(document, run):
    rows = document["profiles"]
    must([(row["profile"], row["script"]) for row in rows] == [("desktop-chrome", 1280), ("mobile-chrome", 412)], str(rows))
    must({os.path.basename(a["path"]) for a in document["artifacts"]} == {"desktop-chrome-screenshot.png", "mobile-chrome-screenshot.png"}, str(document["artifacts"]))


def captures(document, run):
    names = {os.path.basename(a["path"]) for a in document["artifacts"]}
    must(names == {"console.jsonl", "websocket.jsonl", "performance.json", "memory.json", "dom-snapshot.json", "steps.jsonl"}, str(names))
    snapshot = json.loads(run.file(document, "browser-dom-snapshot"))
    box = next(row for row in snapshot["elements"] if row["selector"] == "#box")
    must((box["width"], box["height"]) == (60, 60), str(box))
    must(json.loads(run.file(document, "browser-performance"))["page"]["navigation"]["load"] > 0, "no timing")
    must(json.loads(run.file(document, "browser-memory"))["nodes"] > 10, "no number of nodes")


def page_load(document, run):
    must((document["schema"], document["mode"], document["source"], document["status"]) == ("wp-codebox/wordpress-page-load-result/v1", "browser", "browser", "ok"), str(document)[:600])
    must(document["target"] == {"kind": "admin", "path": "/wp-admin/", "url": "http://localhost/wp-admin/", "method": "GET"}, str(document["target"]))


def redirected(document, run):
    must(document["status"] == "redirect" and document["redirect"]["to"].startswith("http://localhost/wp-login.php"), str(document)[:600])


def opened(document, run):
    editor = document["editor"]
    must(editor["ready"] and editor["post"]["type"] == "page" and editor["blocks"] == [], str(editor))
    must(any(a["path"].endswith("/first/editor-state.json") for a in document["artifacts"]), str(document["artifacts"]))


def edited(document, run):
    passed(document, 11)
    editor = document["editor"]
    must([(row["name"], row["attributes"]["content"]) for row in editor["blocks"]] == [("core/paragraph", "Second"), ("core/heading", "First")], str(editor["blocks"]))
    must(editor["post"]["title"] == "Written by steps" and editor["post"]["status"] == "publish" and not editor["isDirty"], str(editor))


def stored(document, run):
    must("Written by steps" in document["raw"], document["raw"])


def typed(document, run):
    passed(document, 4)
    must("Typed by keys" in document["editor"]["content"], document["editor"]["content"])


def validated(*expected, provider="block-editor"):
    def check(document, run):
        must((document["schema"], document["validation_method"], document["validation_provider"]) == ("wp-codebox/editor-validate-blocks/v1", "wp.blocks.validateBlock", provider), str(document)[:400])
        rows = [(row["name"], row["isValid"]) for row in document["results"]]
        must(rows == list(expected), str(document["results"]))
        good = sum(valid for _, valid in expected)
        must((document["total_blocks"], document["valid_blocks"], document["invalid_blocks"]) == (len(rows), good, len(rows) - good), str(document)[:400])
        must(all(bool(row["issues"]) != row["isValid"] and all(isinstance(text, str) for text in row["issues"]) for row in document["results"]), str(document["results"]))
    return check


def nested(document, run):
    """Checks that a block and the block in it are valid although other blocks of the content are not."""
    rows = [(row["name"], row["isValid"], row["path"], row["issues"]) for row in document["results"]]
    must(rows[:2] == [("core/group", True, [0], []), ("core/paragraph", True, [0, 0], [])], str(document["results"]))


def exercised(document, run):
    must((document["schema"], document["command"], document["status"]) == ("wp-codebox/wordpress-block-exercise-result/v1", EXERCISE, "ok"), str(document)[:800])
    must((document["blockName"], document["mode"], document["source"], document["attrs"]) == ("core/heading", "editor-insert-save", "mine", {"content": "Exercised", "level": 3}), str(document)[:800])
    must(document["metadata"]["post"]["status"] == "draft" and document["metadata"]["post"]["id"] > 0, str(document["metadata"]))
    must('<h3 class="wp-block-heading">Exercised</h3>' in document["serialized"]["markup"] and document["errors"] == [], str(document)[:800])
    must([row["status"] for row in document["diagnostics"]] == ["passed"] * 4, str(document["diagnostics"]))
    must(any(file["path"].endswith("editor-state.json") for file in document["artifactRefs"]), str(document["artifactRefs"]))


def not_exercised(*words):
    def check(document, run):
        must(document["status"] == "error" and all(word in document["errors"][0]["message"] for word in words), str(document)[:800])
        must(document["errors"][0]["message"].startswith(EXERCISE), str(document["errors"]))
    return check


def canvas(document, run):
    found = document["canvas"]
    must(found["iframe"]["found"] and found["iframe"]["accessible"] and found["layout"]["found"], str(found))
    must([row["type"] for row in document["blocks"]["rows"]] == ["core/paragraph", "core/heading"], str(document["blocks"]))
    groups = {row["name"]: [selector["count"] for selector in row["selectors"]] for row in document["selectorGroups"]}
    must(groups == {"headings": [1], "1": [0]}, str(document["selectorGroups"]))


def compared(pixels, same_size=True):
    def check(document, run):
        summary = document["summary"]
        must(document["schema"] == "wp-codebox/visual-compare/v1" and document["status"] == "ok" and document["command"] == COMPARE, str(document)[:400])
        must(pixels(summary["mismatchPixels"]), str(summary))
        must(summary["dimensionMismatch"] is not same_size, str(summary))
        must(summary["mismatchRatio"] == summary["mismatchPixels"] / summary["totalPixels"], str(summary))
        must((summary["regions"] > 0) is (summary["mismatchPixels"] > 0), str(summary))
        for name in ("source", "candidate", "diff"):
            with open(os.path.join(run.directory, document["artifacts"][name]), "rb") as file:
                picture(file.read())
    return check


def blue(document, run):
    compared(lambda count: 3000 < count <= 3600)(document, run)
    region = document["regions"][0]
    must((region["width"], region["height"]) == (60, 60), str(document["regions"]))
    must(region["candidateElements"][0]["selector"] == "#box", str(region))
    must(document["explanation"]["selectors"][0]["same"], str(document["explanation"]))
    must((document["source"]["label"], document["candidate"]["label"]) == ("blue", "red"), str(document["source"]))


def exported(document, run):
    must(document["status"] == "ok" and document["command"] == EXPORT and document["artifacts"]["storageState"].endswith(".storage-state.json"), str(document))
    must("theme" in document["cookies"] and "dark" not in json.dumps(document), str(document))


def error(code, *words):
    """Returns a check of a step that was refused before a browser started."""
    def check(row, run):
        must(row["error"]["code"] == "wp_codebox_step_failed" and all(word in row["error"]["message"] for word in (f"[{code}]", *words)), str(row["error"]))
    check.refusal = True
    return check


ROWS = {
    # Locators, frames and steps. Above each row that must fail, the same step with another value is the control.
    "locators": (ACTIONS, acts(
        {"kind": "fill", "selector": "label=E-mail address", "value": "a@b"},
        {"kind": "expect", "assert": "text:#mail=a@b"},
        {"kind": "click", "selector": "role=button[name=\"Save draft\"]"},
        {"kind": "expect", "assert": "title:Saved"},
        {"kind": "expect", "selector": "text=manual"},
        {"kind": "expect", "assert": "text:role=heading[level=2]=Form"},
        {"kind": "expect", "assert": "count:#from >> role=listitem=1"},
        {"kind": "click", "text": "manual"},
        {"kind": "expect", "assert": "url:#more"},
    ), 0, counted(9)),
    "no locator": (ACTIONS, acts({"kind": "click", "selector": "role=button[nam=\"x\"]"}), 1, failed("not a valid selector")),
    "frame": (ACTIONS, acts(
        {"kind": "fill", "frameSelector": "#inner", "selector": "label=Name", "value": "Ada"},
        {"kind": "click", "frameUrl": "inner.html", "text": "Greet"},
        {"kind": "expect", "frame": "#inner", "selector": "text=Hello Ada", "state": "visible"},
        {"kind": "expect", "selector": "text=Hello Ada", "state": "detached"},
        {"kind": "screenshot", "frameSelector": "#inner", "name": "inner"},
        {"kind": "screenshot", "selector": "#box"},
    ), 0, counted(6)),
    "drag": (ACTIONS, acts(
        {"kind": "expect", "assert": "exists:#from #apple"},
        {"kind": "drag", "from": "#apple", "to": "#to"},
        {"kind": "expect", "assert": "exists:#to #apple"},
        {"kind": "drag", "selector": "#box", "x": 40, "y": 10},
        {"kind": "evaluate", "expression": "[box.style.left, box.style.top]", "assert": ["40px", "10px"]},
    ), 0, counted(5)),
    "observation": (ACTIONS, acts(
        {"kind": "assertObservation", "observation": "errorsTotal", "equals": 0},
        {"kind": "assertObservation", "observation": "console.0.text", "contains": "ready"},
        {"kind": "assertObservation", "path": "/title", "equals": "Elements"},
        {"kind": "assertObservation", "observation": "nothing", "exists": False},
        {"kind": "select", "selector": "#colours", "values": ["Red", "Blue"]},
        {"kind": "evaluate", "expression": "[...colours.selectedOptions].map((one) => one.value)", "assert": ["Red", "Blue"]},
        {"kind": "press", "selector": "#mail", "key": "Shift+A"},
        {"kind": "capture", "capture": "html,console", "name": "then"},
    ), 0, counted(8)),
    "other observation": (ACTIONS, acts({"kind": "assertObservation", "observation": "consoleTotal", "max": 0}), 1, failed("consoleTotal", "it is 1")),
    "disabled": (ACTIONS, acts({"kind": "expect", "selector": "#first", "state": "enabled", "timeout": "2s"}), 1, failed("enabled")),
    "scenario": ("wordpress.browser-scenario", ["scenario-json=" + json.dumps({"name": "sized", "url": f"{PAGES}/elements.html", "viewport": {"width": 500, "height": 400}, "capture": [
        "console", "websocket", "performance", "memory", "dom-snapshot", "steps"], "steps": [{"kind": "evaluate", "expression": "innerWidth", "assert": 500}]}), "step-timeout=60s", *SLOW], 0, captures),
    "file": (ACTIONS, [ELEMENTS, "steps-json=@steps.json", "capture=none", "step-timeout=60s", *SLOW], 0, counted(1)),
    # Values of other arguments.
    "profiles": (PROBE, [ELEMENTS, "profiles=desktop-chrome,mobile-chrome", "script=innerWidth", "capture=screenshot", "assert=exists:#box", *SLOW], 0, profiles),
    "environment": (PROBE, [ELEMENTS, "device=Pixel 5", "capture=none", "script=innerWidth", "observe=#box,role=button,#none", "network-policy=record", "preview-mode=local", *SLOW], 0,
                    lambda document, run: must((document["script"], [row["count"] for row in document["observed"]]) == (393, [1, 2, 0]), str(document)[:500])),
    "stalled": (PROBE, [f"url={PAGES}/forever.html", "stall-timeout=2s", "timeout=200s", "capture=none"], 1, failed("stall-timeout")),
    "admin": (LOAD, ["surface=admin", "auth=wordpress-admin", *SLOW], 0, page_load),
    "visitor": (LOAD, ["surface=admin", *SLOW], 0, redirected),
    "export": (EXPORT, ['storage-state={"cookies":[{"name":"theme","value":"dark","domain":"localhost","path":"/"}],"origins":[]}'], 0, exported),
    # The block editor.
    "made": ("wordpress.run-php", ["code=" + MAKE], 0, lambda document, run: must(document == POST, str(document))),
    "open": (OPEN, ["post-type=page", "artifact-prefix=first", "wait-selector=role=textbox[name=\"Add title\"]", "wait-timeout=120s"], 0, opened),
    "edit": (EDIT, ["wait-timeout=120s", "step-timeout=60s", *SLOW, "steps-json=" + json.dumps([
        {"kind": "insertBlock", "name": "core/heading", "content": "First"},
        {"kind": "insertBlock", "blockName": "core/paragraph", "attributes": {"content": "2"}, "index": 0},
        {"kind": "updateBlock", "index": 0, "attributes": {"content": "Second"}},
        {"kind": "expectBlock", "name": "core/paragraph", "attributes": {"content": "Second"}},
        {"kind": "insertBlock", "name": "core/separator"},
        {"kind": "removeBlock", "blockName": "core/separator"},
        {"kind": "setTitle", "title": "Written by steps"},
        {"kind": "validateBlocks"},
        {"kind": "publish"},
        {"kind": "expect", "assert": "exists:text=Second"},
        {"kind": "capture", "capture": "editor-state,editor-validity"},
    ])], 0, edited),
    "published": ("wordpress.wp-cli", ["command=post list --post_status=publish --field=post_title"], 0, stored),
    "typed": (EDIT, ["wait-timeout=120s", "step-timeout=60s", *SLOW, "steps-json=" + json.dumps([
        {"kind": "setContent", "content": VALID},
        {"kind": "click", "selector": "[data-type=\"core/paragraph\"]"},
        {"kind": "press", "key": "Enter"},
        {"kind": "type", "text": "Typed by keys"},
    ])], 0, typed),
    "no block": (EDIT, ["wait-timeout=120s", "step-timeout=60s", *SLOW, 'steps-json=[{"kind":"insertBlock","name":"nobody/knows"}]'], 1, failed("no block type nobody/knows")),
    "invalid": (VALIDATE, ["content=" + GROUP + INVALID + UNKNOWN, "validation-provider=mine", "wait-timeout=120s"], 0,
                validated(("core/group", True), ("core/paragraph", True), ("core/paragraph", False), ("nobody/knows", False), provider="mine")),
    "from a file": (VALIDATE, ["content-file=blocks.html", "wait-timeout=120s"], 0, validated(("core/paragraph", False))),
    "of the post": (VALIDATE, [f"post-id={POST}", "wait-timeout=120s"], 0, validated(("core/paragraph", True), ("core/heading", True))),
    "exercised": (EXERCISE, ["block-name=core/heading", 'attrs-json={"content":"Exercised","level":3}', "mode=editor-insert-save", "source=mine"], 0, exercised),
    "exercised content": (EXERCISE, ["block-name=paragraph", "content=<p>Good</p>", "mode=editor-insert-save"], 0, lambda document, run: must(document["validation"] == {"valid": True, "issues": []} and "<p>Good</p>" in document["serialized"]["markup"], str(document)[:800])),
    "exercised invalid": (EXERCISE, ["block-name=core/paragraph", "markup=" + INVALID, "mode=editor-insert-save"], 1, not_exercised("not valid", "validateBlocks")),
    "exercised unknown": (EXERCISE, ["block-name=nobody/knows", "mode=editor-insert-save"], 1, not_exercised("no block type nobody/knows")),
    "exercised twice": (EXERCISE, ["block-name=core/paragraph", "markup=" + VALID + HEADING, "mode=editor-insert-save"], 1, not_exercised("must be one block")),
    "exercised posts": ("wordpress.run-php", ["code=echo json_encode( array_column( get_posts( [ 'post_status' => 'draft', 'numberposts' => -1 ] ), 'post_content' ) );"], 0,
                        lambda document, run: must(any('{"level":3}' in text and "Exercised" in text for text in document), str(document))),
    "canvas": (CANVAS, [f"url=/wp-admin/post.php?post={POST}&action=edit", "timeout-ms=120000", 'selector-groups-json=[{"name":"headings","selectors":["h2"]},"#none"]'], 0, canvas),
    "no canvas": (CANVAS, ["url=/", "timeout-ms=3000"], 1, failed("waiting for")),
    "no editor": (OPEN, ["url=/", "wait-timeout=20s"], 1, failed("block editor", "http://localhost/")),
    # Comparisons.
    "same": (COMPARE, [f"source-url={PAGES}/elements.html", f"candidate-url={PAGES}/elements.html", "frozen-time=2026-01-31T12:00:00Z"], 0, compared(lambda count: count == 0)),
    "blue and red": (COMPARE, [f"source-url={PAGES}/elements.html", f"candidate-url={PAGES}/elements.html?red", "source-label=blue", "candidate-label=red", "full-page=true",
                               "frozen-time=2026-01-31T12:00:00Z", "explain-selector=#box"], 0, blue),
    "stored": (COMPARE, ["source-screenshot=shot.png", f"candidate-url={PAGES}/elements.html", "viewport=500x400"], 0, compared(lambda count: count > 100000, same_size=False)),
    "no picture": (COMPARE, ["source-screenshot=steps.json", f"candidate-url={PAGES}/elements.html"], 1, failed("not a readable PNG")),
    # Refusals.
    "no file": (COMPARE, ["source-screenshot=files/browser/exec-1/none.png", f"candidate-url={PAGES}/elements.html"], None, error("wp_codebox_input_invalid", "no command of this run")),
    "faults": (ACTIONS, [ELEMENTS, "transport-faults-json={}"], None, error("wp_codebox_command_unsupported", "transport-faults-json", "block-host")),
    "public": (PROBE, [ELEMENTS, "preview-mode=public"], None, error("wp_codebox_command_unsupported", "preview-mode", "local")),
    "matrix": (COMPARE, ["source-url=/", "candidate-url=/", "matrix-json={}"], None, error("wp_codebox_command_unsupported", "matrix-json")),
}


#: Cases that check more of the result of another row, because opening the editor takes seconds: the row, and the check.
MORE = {
    "valid": ("invalid", nested),
}


class ContractRun:
    """The run of the recipe with all rows: result of each step, and bundle."""

    def __init__(self, bench):
        with open(os.path.join(bench.directory, "steps.json"), "w", encoding="utf-8") as file:
            json.dump([{"kind": "expect", "selector": "text=manual"}], file)
        with open(os.path.join(bench.directory, "blocks.html"), "w", encoding="utf-8") as file:
            file.write(INVALID)
        with open(os.path.join(bench.directory, "shot.png"), "wb") as file:
            file.write(white(700, 300))
        steps = [{"command": command, "args": args, "allowFailure": True} for command, args, _, _ in ROWS.values()]
        recipe = {"schema": "wp-codebox/workspace-recipe/v1", "workflow": {"steps": steps}, "inputs": {"mounts": [
            {"type": "directory", "source": pages(bench), "target": "/wordpress" + PAGES, "mode": "readonly"}]}}
        path = os.path.join(bench.directory, "contract.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(recipe, file)
        policy = {"network": "deny", "filesystem": "readwrite-mounts", "commands": COMMANDS, "secrets": "none", "approvals": "never"}
        arguments = ["recipe-run", "--recipe", path, *bench.paths(), "--site", bench.site, "--json", "--policy", json.dumps(policy)]
        # 2400 seconds: more than thirty browsers start one after the other, and the machine may be busy.
        self.answer = bench.finish(arguments, bench.start(arguments), 2400)
        self.rows = {}
        for name, index in zip(ROWS, range(len(ROWS))):
            found = [row for row in self.answer.json["executions"] + (self.answer.json.get("stepFailures") or []) if row.get("recipeStepIndex", row.get("index")) == index]
            must(found, f"step {name} has no row\n{self.answer}")
            self.rows[name] = found[0]
        self.directory = bundle(bench)

    def file(self, document, kind):
        paths = [a["path"] for a in document["artifacts"] if a["kind"] == kind]
        must(paths, f"there is no {kind}: {document['artifacts']}")
        with open(os.path.join(self.directory, paths[0]), "rb") as file:
            return file.read()


def white(width, height):
    """Returns a white picture as PNG."""
    import struct
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff" * (3 * width)) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(scope="session")
def contract_run(bench):
    """Runs the recipe once for all cases; conftest.py assigns these cases to one process."""
    return ContractRun(bench)


@pytest.mark.parametrize("name", [*ROWS, *MORE])
def test_public_browser_command_returns_its_expected_document_or_refusal(contract_run, name):
    name, more = MORE.get(name, (name, None))
    _, _, exit_code, check = ROWS[name]
    row = contract_run.rows[name]
    if getattr(check, "refusal", False):
        check(row, contract_run)
        return
    text = row.get("stdout", "")
    try:
        document = json.loads(text)
    except ValueError as problem:
        must(text, f"no output: {row}")
        document = {"raw": text}
        must(ROWS[name][0] == "wordpress.wp-cli", f"no JSON: {problem}: {row}")
    if row["exitCode"] != exit_code:
        raise Failed(f"{name} ended with {row['exitCode']}: {json.dumps(document)[:3000]}")
    (more or check)(document, contract_run)


def test_bundle_of_a_run_with_all_public_browser_commands_passes_verification(bench, contract_run):
    bench.call("artifacts", "verify", "--bundle", contract_run.directory, "--state", bench.state, "--json").expect(0)
