"""A host plugin on the real site: an agent whose model answers through a connector of the site edits code in the sandbox.

The model plays a script. Its key is a secret of the site: it is in no request, page, file or audit record.
"""

import hashlib
import json
import os
import secrets
import shutil

import pytest
from page import BANNER, keep, open_banner, shot, visit
from parent import ROOT, Visitor
from scripted import Server, digest

from harness import must

ABILITIES = "/wp-json/wp-abilities/v1/abilities/wp-codebox/"
FILE = "wp-content/plugins/banner/banner.php"
TARGET = "/wordpress/wp-content/plugins/banner/banner.php"
GOAL = "Let the banner name the agent."


def call(name, *args):
    return {"calls": [{"tool": "run_terminal_command", "args": {"command": name, "args": list(args)}}]}


def script(word):
    """Returns the turns of an agent that reads the plugin, meets a command that does not exist, edits, and checks the edit."""
    edit = f"file_put_contents('banner.php', str_replace('Banner of the parent', 'Banner of the {word}', file_get_contents('banner.php'))) || exit(1);"
    return [
        {**call("cat", "banner.php"), "expect": {"tools": ["run_terminal_command"], "first": GOAL}},
        {**call("npm", "install"), "expect": {"last": "Banner of the parent"}},
        {**call("php", "-r", edit), "expect": {"last": "wp_codebox_browser_command_unsupported"}},
        {**call("grep", "-c", word, "banner.php"), "expect": {"last": "exitCode.{1,4}0"}},
        {"text": f"The banner names the {word}.", "expect": {"last": "stdout.{1,6}1"}},
    ]


class Host:
    """The parent with the two host plugins and the scripted model."""

    def __init__(self, keeper, words):
        self.parent, self.key = keeper, "sk-host-" + secrets.token_hex(16)
        scripts = {word: {"turns": script(word)} for word in words} | {"control": {"turns": [{"text": "Hello"}], "after": "repeat"}}
        self.model = Server(scripts, key=self.key).start()
        for name in ("host-connector", "host-browser-agent"):
            shutil.copytree(os.path.join(ROOT, "tests", "fixtures", name), keeper.path("site/wp-content/plugins", name))
            keeper.give(keeper.path("site/wp-content/plugins", name))
        # An operator sets this variable in the configuration of PHP-FPM.
        keeper.write("wp-content/mu-plugins/model-key.php", f"<?php putenv( 'EXAMPLE_AI_API_KEY={self.key}' );\n")
        keeper.wp("plugin", "activate", "host-connector", "host-browser-agent")

    def answer_with(self, word):
        self.parent.wp("option", "update", "host_connector_base_url", self.model.base(word))

    def close(self):
        self.parent.wp("plugin", "deactivate", "host-connector", "host-browser-agent")
        for name in ("host-connector", "host-browser-agent"):
            shutil.rmtree(self.parent.path("site/wp-content/plugins", name))
        os.unlink(self.parent.path("site/wp-content/mu-plugins/model-key.php"))
        self.model.close()


@pytest.fixture(scope="module")
def host(keeper):
    world = Host(keeper, ["workbench", "studio"])
    yield world
    world.close()


@pytest.fixture
def banner(keeper):
    """The code of the fixture plugin, which a case changes. Another case may have changed it before."""
    before = keeper.read(FILE)
    with open(os.path.join(os.path.dirname(__file__), "banner", "banner.php"), encoding="utf-8") as file:
        code = file.read()
    keeper.write(FILE, code)
    yield code
    keeper.write(FILE, before)


def run_agent(page, text):
    page.wait("document.querySelector('form.host-browser-agent') !== null")
    page.evaluate(f"""(() => {{ const form = document.querySelector('form.host-browser-agent'); form.querySelector('input').value = {GOAL!r};
        form.requestSubmit(); }})()""")
    page.wait(f"document.querySelector('form.host-browser-agent [role=status]').textContent === {text!r}")


def check_model(host, word, audited):
    """Fails unless the model got every turn with the key of the site, and each request is in the audit log without it."""
    asked = host.model.of(word)
    must([row["status"] for row in asked] == [200] * 5 and not any(row.get("mismatch") for row in asked), json.dumps(asked)[:2000])
    must({row["key_sha256"] for row in asked} == {digest(host.key)}, "another key")
    log = records(host.parent)
    must(host.key not in log, "the key is in the audit log")
    count = sum(row["event"] == "connector-request" for row in json.loads(log)["records"])
    must(count - audited == 10, f"{count - audited} records of 5 requests")


def records(parent):
    return parent.wp("--user=admin", "eval", "echo wp_json_encode( wp_get_ability( 'wp-codebox/list-audit-records' )->execute( [ 'per_page' => 1000 ] ) );")


def requests(parent):
    return sum(row["event"] == "connector-request" for row in json.loads(records(parent))["records"])


def apply_confirmed(parent, artifact, text):
    """Applies a bundle over REST as the logged-in user: refused without the confirmation, applied with it."""
    visitor = parent.login("admin")
    nonce = visitor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text
    apply = {"url": ABILITIES + "apply-approved-artifact/run", "nonce": nonce}
    value = {"artifact_id": artifact, "approved_files": [TARGET]}
    before = parent.read(FILE)
    refused = visitor.run(apply, value)
    must(refused.status == 403 and refused.json["code"] == "wp_codebox_apply_browser_origin_unconfirmed", refused)
    must(parent.read(FILE) == before, "the site changed")
    applied = visitor.run(apply, {**value, "confirm_browser_origin": True})
    must(applied.status == 200 and applied.json["result"]["status"] == "applied", applied)
    must(parent.read(FILE) == text, "the site has other code")


def test_agent_on_the_sandbox_page_edits_code_that_is_stored_as_a_bundle_and_applied(keeper, host, banner, browser):
    host.answer_with("workbench")
    audited = requests(keeper)
    page = browser.page()
    page.cookies(keeper.url, keeper.login("admin").cookies)
    try:
        open_banner(page, keeper)
        page.frame("/site/", BANNER)
        run_agent(page, "The banner names the workbench.")
        log = page.evaluate("document.querySelector('.wp-codebox-log').textContent")
        must("$ cat banner.php" in log and "$ npm install" in log and "$ grep -c workbench banner.php\n1\n" in log, log)
        visit(page, "/?agent")
        page.frame("/site/", BANNER + " === 'Banner of the workbench'")
        shot(page, "agent-workbench")
        page.wait("[...document.querySelectorAll('[role=tab]')].some((tab) => tab.textContent.includes('(1)'))")
        artifact = keep(page)
        must(host.key not in page.evaluate("document.documentElement.outerHTML"), "the key is in the page")
    finally:
        page.close()
    check_model(host, "workbench", audited)
    must(keeper.read(FILE) == banner, "the site changed before the apply")
    apply_confirmed(keeper, artifact, banner.replace("Banner of the parent", "Banner of the workbench"))


def test_agent_on_an_admin_page_of_another_plugin_edits_code_that_is_stored_as_a_bundle_and_applied(keeper, host, banner, browser):
    host.answer_with("studio")
    audited = requests(keeper)
    page = browser.page()
    page.cookies(keeper.url, keeper.login("admin").cookies)
    try:
        page.go(keeper.url + "/wp-admin/tools.php?page=host-browser-agent&plugin=banner")
        page.wait("document.querySelector('.host-browser-agent-state')?.textContent === 'The sandbox runs.'", 180)
        run_agent(page, "The banner names the studio.")
        log = page.evaluate("document.querySelector('.host-browser-agent-terminal').textContent")
        must("$ cat banner.php\n" in log and "$ npm install" in log and "$ grep -c studio banner.php\n1\n" in log, log)
        page.evaluate("document.querySelector('.host-browser-agent-keep').click()")
        page.wait("document.querySelector('.host-browser-agent-kept').textContent !== ''", 180)
        artifact = page.evaluate("document.querySelector('.host-browser-agent-kept').textContent")
        must(artifact.startswith("artifact-bundle-sha256-"), artifact)
        shot(page, "agent-own-page")
        must(host.key not in page.evaluate("document.documentElement.outerHTML"), "the key is in the page")
    finally:
        page.close()
    check_model(host, "studio", audited)
    text = banner.replace("Banner of the parent", "Banner of the studio")
    found = json.loads(keeper.wp("--user=admin", "codebox", "artifacts", "get", artifact, "--format=json"))
    changed = found["artifact"]["changed_files"]["files"]
    must([row["relativePath"] for row in changed] == ["banner.php"] and changed[0]["afterSha256"] == hashlib.sha256(text.encode()).hexdigest(), str(changed))
    must(found["artifact"]["metadata"]["provenance"]["claims"]["provenance"] == {"agent": "host-browser-agent"}, str(found["artifact"]["metadata"]["provenance"]))
    apply_confirmed(keeper, artifact, text)


def test_connector_refuses_requests_without_login_valid_nonce_or_capability(keeper, host):
    value = {"connector": "primary-ai", "operation": "chat.completions", "payload": {"messages": [{"role": "user", "content": "Hello"}]}}
    host.answer_with("control")
    route = ABILITIES + "browser-connector-request/run"
    asked = len(host.model.requests)
    admin, editor = keeper.login("admin"), keeper.login("editor")
    nonce = editor.get("/wp-admin/admin-ajax.php?action=rest-nonce").text
    for visitor, token in ((Visitor(keeper), "none"), (admin, ""), (admin, nonce), (editor, nonce)):
        answer = visitor.run({"url": route, "nonce": token}, value)
        must(answer.status in (401, 403), answer)
    must(len(host.model.requests) == asked, "a request reached the model")
    # Positive control.
    token = admin.get("/wp-admin/admin-ajax.php?action=rest-nonce").text
    answer = admin.run({"url": route, "nonce": token}, value)
    must(answer.status == 200 and answer.json["success"] and len(host.model.requests) == asked + 1, answer)
