"""The result document of every command is valid by its own schema and, under a public schema id, by the public schema.

The steps of a group run in one guest. Each step is a case of its own, which validates the document that the command
printed. A document under a public schema id also has the main members of that schema. `INVALID` lists the documents
that are known not to be valid; a listed document that is valid fails its case, so that its row is removed.
"""

import json
import os
import subprocess

import jsonschema
import pytest
from steps import Group, Step, cases

from harness import must

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCHEMAS = os.path.join(os.path.dirname(TESTS), "dist", "wp-codebox", "abilities", "schemas")
SLUG = "surfaces-plugin"


def public_commands():
    with open(os.path.join(TESTS, "conformance", "public", "commands.json"), encoding="utf-8") as file:
        return {row["id"]: row for row in json.load(file)}


COMMANDS = public_commands()
PUBLIC = {row["output"]["$id"]: row["output"] for row in COMMANDS.values() if (row.get("output") or {}).get("$id")}

# Documents that are not valid, by the name of the step, each with the reason. A row is removed once its document is valid.
INVALID = {}

# Commands that no step here runs, each with the reason.
NOT_RUN = {
    "wordpress.plugin-check": "needs the plugin Plugin Check; test_surfaces.py runs it with a stand-in",
    "wordpress.theme-check": "needs the plugin Theme Check; test_surfaces.py runs it with a stand-in",
    "wordpress.core-phpunit": "needs a checkout of WordPress with its tests",
    "command-agent-run": "prints what its program prints; its document is no part of the step's row",
    "wordpress.run-workload": "needs a workload file; test_core.py runs it",
    "wordpress.collect-workload-result": "needs a result file; test_core.py runs it",
    "wordpress.editor-validate-blocks": "needs the block editor; tests/browsing/test_contract.py runs it",
    "wp-codebox.agent-sandbox-run": "needs an agent; tests/agent/test_recipe_step.py runs it",
    "wordpress.visual-compare": "needs pictures; tests/browsing/test_contract.py runs it",
}


def own_schema(schema):
    must(os.path.isdir(SCHEMAS), f"{SCHEMAS} is missing; run: cargo xtask dist plugin")
    path = os.path.join(SCHEMAS, f"{schema.split('/')[1]}.v1.schema.json") if schema.count("/") == 2 else ""
    if not os.path.isfile(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def violations(validator, document, whose):
    return [f"{whose} schema, {'/'.join(map(str, error.path)) or 'document'}: {error.message[:300]}" for error in validator.iter_errors(document)]


def public_schema(command, schema):
    """Returns the public schema of this id: that of the command, because commands of one id may differ, else any of the id."""
    output = COMMANDS.get(command, {}).get("output") or {}
    return output if output.get("$id") == schema else PUBLIC.get(schema)


def problems(command, document):
    """Returns what is wrong with a document: violations of both schemas, and missing main members of the public one."""
    schema = document.get("schema")
    if schema is None and ("error" in document or not (COMMANDS.get(command) or {}).get("output")):
        return []
    if not isinstance(schema, str):
        return ["the document names no schema"]
    found = []
    if own := own_schema(schema):
        found += violations(jsonschema.Draft4Validator(own), document, "own")
    if public := public_schema(command, schema):
        found += violations(jsonschema.Draft7Validator(public), document, "public")
        found += [f"public schema: no member {name}" for name in ("schema", "command", "status") if name in public["properties"] and name not in document]
    return found


class Document(Step):
    """A step whose document is validated, whether the command succeeds or fails."""

    def judge(self, row):
        document = printed(row)
        must(isinstance(document, dict), f"no document: {json.dumps(row, ensure_ascii=False)[:1500]}")
        found = problems(self.command, document)
        reason = INVALID.get(self.name)
        if reason:
            must(found, f"the document is valid, so remove its row from INVALID ({reason}): {json.dumps(document)[:300]}")
            return
        must(not found, f"{'; '.join(found)}: {json.dumps(document, ensure_ascii=False)[:1500]}")


def printed(row):
    """Returns the document of a step: the one that the command printed, or else the one that the runner made for it."""
    try:
        return json.loads(row["stdout"])
    except ValueError:
        return row.get("json")


def step(command, args=None, name=None):
    return Document(command if "." in command else f"wordpress.{command}", args, name=name)


def operation(command, name, **members):
    return step(command, {"operation-json": members}, name=name)


SITE = [
    Step("wordpress.ensure-plugin-active", {"plugin": SLUG}),
    step("plugin-setup", {"slug": SLUG}),
    step("plugin-state", {"plugin": SLUG}),
    step("ensure-plugin-active", {"plugin": SLUG}, name="ensuring that a plugin is active"),
    step("theme-setup"),
    step("session", {"session": "writer", "role": "editor"}),
    step("nonce", {"action": "surfaces", "user": "admin"}),
    step("action-auth", {"action": "surfaces", "user": "admin", "session": "boss"}),
    step("ability", {"name": "core/get-environment-info", "user": "admin"}),
    step("rest-request", {"path": "/"}),
    step("http-request", {"url": "/"}),
    step("invoke-wp-cli", {"command": "option get blogname"}),
    step("bench", {"plugin-slug": SLUG, "iterations": "1"}),
    step("phpunit", {"plugin-slug": SLUG, "test-file": "tests/AddTest.php"}),
    step("capture-state-bundle", {"snapshot-include-wp-content": f"plugins/{SLUG}"}),
    step("export-replay-package", {"snapshot-include-wp-content": f"plugins/{SLUG}"}),
    step("wp-codebox.checkpoint-create", {"name": "first"}),
    step("wp-codebox.checkpoint-list"),
    step("wp-codebox.checkpoint-restore", {"name": "first"}),
    step("wp-codebox.checkpoint-restore", {"name": "none"}, name="restoring an unknown checkpoint"),
    step("invoke-hook", {"hook": "surfaces_slow", "mutates": "0"}),
    step("invoke-hook", {"hook": "surfaces_slow", "capability": "fly"}, name="a hook without the capability"),
    step("invoke-cron-event", {"hook": "surfaces_slow"}),
    step("server-page-load", {"path": "/"}),
    step("server-page-load", {"surface": "admin"}, name="a page that the web server redirects"),
    step("server-page-load", {"path": "/?surfaces=fatal", "expect-status": "200"}, name="a page with another status than expect-status"),
    step("simulated-frontend-page-load", {"path": "/"}),
    step("simulated-frontend-page-load", {"path": "/?surfaces=redirect"}, name="a page that redirects"),
    step("simulated-frontend-page-load", {"path": "/?surfaces=die"}, name="a page that calls wp_die"),
    step("simulated-admin-page-load", {"path": "index.php"}),
    step("simulated-admin-page-load", {"path": "edit.php?surfaces=fatal"}, name="an admin page with a fatal error"),
    operation("crud-operation", "creating a post", operation="create", resource={"kind": "post", "type": "page"}, data={"title": "One"}),
    operation("crud-operation", "reading an unknown post", operation="read", resource={"kind": "post", "id": 99999}),
    operation("crud-operation", "an unknown kind of objects", operation="read", resource={"kind": "spaceship", "id": 1}),
    operation("crud-operation", "a REST resource", operation="list", resource={"kind": "rest", "route": "/wp/v2/types"}),
    operation("crud-operation", "the short form of a content operation", operation="list", type="user"),
    operation("db-operation", "the schema of a table", operation="schema", resource={"table": "posts"}),
    operation("db-operation", "reading rows", operation="read", query={"table": "posts", "limit": 1}),
    operation("db-operation", "a refused statement", operation="read", query={"sql": "SELECT none FROM wp_posts"}),
    operation("db-operation", "writing a row", operation="write", query={"sql": "UPDATE wp_posts SET menu_order = 1 WHERE ID = 1"}),
    operation("db-operation", "the short form of a database operation", operation="select", table="posts", where={"ID": [1, 2]}, limit=500),
    step("block-render", {"block-name": "surfaces/box"}),
    step("block-render", {"block-name": "core/html", "content": "x" * 70000}, name="a block that is too large to print"),
    step("block-render", {"block-name": "surfaces/none"}, name="an unknown block"),
    step("block-exercise", {"block-name": "surfaces/box"}),
    step("admin-action", {"action-json": {"family": "ajax", "action": "surfaces_do", "user": "admin"}}),
    step("admin-action", {"action-json": {"family": "admin-hook", "action": "surfaces_slow"}}, name="a hook of wp-admin"),
    step("admin-action", {"action-json": {"family": "editor"}}, name="an action of the editor"),
    step("runtime-discovery"),
    step("execution-surfaces"),
    step("rest-route-inventory"),
    step("admin-page-inventory"),
    step("admin-action-inventory", {"max-pages": "1"}),
    step("inventory-database"),
    step("inventory-plugin-module-options-tables"),
    step("frontend-url-inventory"),
    step("rest-performance-observation", {"path": "/surfaces/v1/slow/1"}),
    step("cache-churn-observation", {"path": "/surfaces/v1/slow/1"}),
    step("fuzz-admin-pages", {"max-pages": "1"}),
    step("fuzz-plugin-module-state"),
    step("fuzz-plugin-module-state", {"execute_mutations": "true", "connected_state_required_for_mutation": "false"}, name="executed changes of options"),
]

BROWSER = [
    Step("wordpress.session", {"session": "boss", "user": "admin"}),
    step("export-browser-storage-state", {"storage-state": "boss"}),
    step("browser-page-load", {"path": "/"}),
    step("browser-probe", {"url": "/"}),
    step("capture-html", {"url": "/"}),
    step("browser-actions", {"url": "/", "step-timeout": "60s", "steps-json": [{"kind": "navigate", "url": "/"}]}),
]

GROUPS = [Group("documents", SITE, fixture=SLUG), Group("browser documents", BROWSER, fixture=SLUG)]


@pytest.mark.parametrize("case", cases(GROUPS))
def test_result_document_of_each_command_is_valid_by_the_commands_schema_and_by_the_published_schema_of_its_id(bench, case):
    case(bench)


def test_every_supported_command_with_an_output_schema_is_run_by_a_step_or_listed_in_not_run():
    listed = json.loads(subprocess.run([os.environ["CODEBOX"], "commands", "--json"], check=True, capture_output=True, text=True).stdout)["commands"]
    documented = {row["id"] for row in listed if row["supported"] and row.get("outputSchema")}
    ran = {one.command for group in GROUPS for one in group.steps}
    must(documented <= ran | set(NOT_RUN), f"neither run nor named: {sorted(documented - ran - set(NOT_RUN))}")
    must(not ran & set(NOT_RUN), f"named, but run: {sorted(ran & set(NOT_RUN))}")


def test_keys_of_the_table_invalid_are_names_of_existing_steps():
    names = {one.name for group in GROUPS for one in group.steps}
    must(set(INVALID) <= names, f"no such steps: {sorted(set(INVALID) - names)}")
