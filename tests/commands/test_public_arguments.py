"""Arguments of the published command interface: each value has its documented effect. Each group runs in one guest."""

import pytest
from steps import Group, Step, cases, equal, refused

from harness import must

SLUG = "surfaces-plugin"
INVALID = "wp_codebox_input_invalid"
UNSUPPORTED = "wp_codebox_command_unsupported"
BOX = {"block-name": "surfaces/box", "attrs-json": {"size": 3}}


def has(**wanted):
    """Returns a check that a document has these values; `a__b` names member b of member a."""
    def check(document):
        for name, value in wanted.items():
            found = document
            for part in name.split("__"):
                found = found[int(part)] if isinstance(found, list) else found.get(part)
            equal(found, value, name)
    return check


def crud(name, expect, operation, resource, **members):
    return Step("wordpress.crud-operation", {"operation-json": {"operation": operation, "resource": resource, **members}}, expect, name=name)


def db(name, expect, operation, **members):
    return Step("wordpress.db-operation", {"operation-json": {"operation": operation, **members}}, expect, name=name)


def unsupported(command, args, says, name):
    return Step(command, args, fails=UNSUPPORTED, says=says, name=name)


ITEMS = {"table": "surfaces_items"}
SCHEMA = "wp-codebox/wordpress-crud-operation/v1"

CRUD = [
    crud("create sets the type of resource.type", has(operation__schema=SCHEMA, item__post_type="page", item__post_title="P", item__post_status="publish", metadata__case=7, effects__0__effect="created"),
         "create", {"kind": "post", "type": "page"}, data={"title": "P", "status": "publish", "slug": "p"}, metadata={"case": 7}),
    crud("the name of a post type is a kind", lambda d: must(d["items"] and all(item["post_type"] == "page" for item in d["items"]), str(d)[:500]), "list", {"kind": "page"}),
    crud("a text is an id", has(item__post_title="Hello world!"), "read", {"kind": "post", "id": "1"}),
    crud("an identifier selects the post", has(id=1), "read", {"kind": "post", "identifiers": {"slug": "hello-world"}}),
    crud("query.per_page caps a list", has(count=1, truncated=True), "list", {"kind": "post"}, query={"per_page": 1}),
    crud("options.offset skips objects", has(items__0__ID=2), "list", {"kind": "post"}, query={"post__in": [1, 2], "post_type": "any"}, options={"offset": 1}),
    crud("an unknown option is reported", has(diagnostics__0__code="option-without-effect"), "read", {"kind": "post", "id": 1}, options={"colour": "red"}),
    crud("update changes the post", has(previous__post_title="Hello world!", item__post_title="New", effects__0__effect="updated"), "update", {"kind": "post", "id": 1}, data={"title": "New"}),
    crud("delete moves a post to the trash", has(deleted=False, effects__0__effect="trashed"), "delete", {"kind": "post", "id": 1}),
    crud("options.force deletes the post", has(deleted=True, effects__0__effect="deleted"), "delete", {"kind": "post", "id": 1}, options={"force": True}),
    crud("resource.type is a taxonomy", has(item__taxonomy="post_tag"), "create", {"kind": "term", "type": "post_tag"}, data={"name": "t"}),
    crud("an identifier selects the term", has(item__name="t"), "read", {"kind": "taxonomy", "type": "post_tag", "identifiers": {"slug": "t"}}),
    crud("the id of an option is its name", has(item__value={"a": 1}), "create", {"kind": "option", "id": "public_o"}, data={"value": {"a": 1}}),
    crud("an option is updated by the names of its columns", has(item__value="x"), "update", {"kind": "option", "identifiers": {"option_name": "public_o"}}, data={"option_value": "x"}),
    crud("create a user with short names of fields", has(item__user_login="zed", operation__data__password="[redacted]"), "create", {"kind": "user"}, data={"login": "zed", "email": "z@example.org", "password": "secret"}),
    crud("metadata names its object by an identifier", has(item__values=["v"]), "create", {"kind": "meta", "type": "post", "identifiers": {"objectId": 2}}, data={"key": "m", "value": "v"}),
    crud("post-meta is a kind", has(item__values=["v"]), "read", {"kind": "post-meta", "id": "m", "identifiers": {"post_id": 2}}),
    crud("a REST resource is listed by its route", lambda d: must(d["items"] and d["http"]["status"] == 200, str(d)[:500]), "list", {"kind": "rest", "route": "/wp/v2/pages"}),
    crud("a REST resource is created by its route", has(item__title__raw="By route", http__method="POST", effects__0__effect="created"), "create", {"kind": "rest", "path": "/wp-json/wp/v2/posts"}, data={"title": "By route"}),
    Step("wordpress.crud-operation", {"operation-json": {"operation": "read", "resource": {"kind": "spaceship"}}}, fails=UNSUPPORTED, says="no kind", name="an unknown kind is not supported"),
    Step("wordpress.crud-operation", {"operation-json": {"operation": "read", "resource": {"kind": "post", "id": 1, "colour": 1}}}, fails=INVALID, says='no member "colour"', name="an unknown member of resource is refused"),
]

DB = [
    db("schema describes the columns of a table", has(item__columns__0__name="id", operation__operation="schema"), "schema", resource=ITEMS),
    db("schema without a table describes all", lambda d: must("wp_posts" in [row["name"] for row in d["items"]], "tables"), "schema"),
    db("inspect counts the rows of a table", has(item__rows=2, item__core=False), "inspect", resource=ITEMS),
    db("read selects columns and conditions", has(items=[{"name": "plain"}]), "read", resource=ITEMS, query={"columns": ["name"], "where": {"id": 1}, "limit": 5}),
    db("identifiers are conditions", has(rowCount=1), "read", resource={**ITEMS, "identifiers": {"id": 2}}),
    db("read runs a statement", has(items=[{"one": "1"}]), "read", query={"sql": "SELECT 1 AS one"}),
    db("query-summary returns plan and fingerprint", lambda d: must(d["item"]["plan"] and "?" in d["item"]["query"], str(d)[:300]), "query-summary", query={"sql": "SELECT ID FROM wp_posts WHERE ID = 5"}),
    db("write inserts values", has(affectedRows=1, insertId=3), "write", resource=ITEMS, query={"values": {"name": "x"}}),
    db("write updates the rows of where", has(affectedRows=1), "write", resource=ITEMS, query={"values": {"name": "y"}, "where": {"id": 3}}),
    db("write runs a statement", has(affectedRows=1), "write", query={"sql": "UPDATE wp_surfaces_items SET name = 'z' WHERE name = 'y'"}),
    db("the writes are stored", has(items=[{"name": "z"}]), "read", resource=ITEMS, query={"columns": ["name"], "where": {"id": 3}}),
    db("write deletes the rows of where", has(affectedRows=1), "write", resource=ITEMS, query={"where": {"id": 3}}),
    Step("wordpress.db-operation", {"operation-json": {"operation": "write", "query": {"sql": "DROP TABLE wp_posts"}}}, fails=INVALID, says="must begin with INSERT", name="a write that drops a table is refused"),
    Step("wordpress.db-operation", {"operation-json": {"operation": "write", "resource": ITEMS, "query": {"values": {"name": "x"}}, "options": {"readOnly": True}}}, fails=INVALID, says="readOnly", name="a write with readOnly is refused"),
]

BLOCKS = [
    Step("wordpress.block-exercise", {**BOX, "mode": "serialize-parse", "source": "mine"}, has(mode="serialize-parse", source="mine", validation__valid=True, parsed__blocks__0__attrs={"size": 3}, serialized__markup='<!-- wp:surfaces/box {"size":3} /-->')),
    Step("wordpress.block-exercise", {**BOX, "mode": "render"}, has(mode="render", render__html='<div class="box">3</div>'), name="mode render renders the block"),
    Step("wordpress.block-render", {"block-name": "paragraph", "content": "<p>a</p>"}, has(blockName="core/paragraph"), name="a name without namespace is a block of core"),
]

ACTIONS = [
    Step("wordpress.invoke-hook", {"hook": "surfaces_slow", "destructive-boundary": "disposable-wordpress"}, has(safety__destructiveBoundary="disposable-wordpress", target__name="surfaces_slow", result={"value": None}), name="destructive-boundary is a name of the caller"),
    Step("wordpress.invoke-cron-event", {"hook": "surfaces_slow", "operation": "schedule-single", "timestamp": "4102444800"}, has(result__next=4102444800, target__operation="schedule-single"), name="schedule-single schedules the event"),
    Step("wordpress.invoke-cron-event", {"hook": "surfaces_slow", "operation": "run-hook"}, has(result__next=4102444800, status="ok"), name="run-hook leaves the schedule alone"),
    Step("wordpress.invoke-cron-event", {"hook": "surfaces_slow"}, has(target__operation="run-hook"), name="run-hook is the default"),
    Step("wordpress.invoke-cron-event", {"hook": "surfaces_slow", "operation": "run"}, has(result__next=False), name="control: run unschedules the event"),
    Step("wordpress.admin-action", {"action-json": {"family": "ajax", "action": "surfaces_do", "user": "admin"}}, has(action__family="ajax", executed__path="/wp-admin/admin-ajax.php"), name="family ajax sends an AJAX action"),
    Step("wordpress.admin-action", {"action-json": {"family": "admin-post", "action": "surfaces_post"}}, has(status="ok", executed__path="/wp-admin/admin-post.php"), name="family admin-post sends a form action"),
    Step("wordpress.admin-action", {"action-json": {"family": "admin-hook", "action": "surfaces_slow"}}, has(executed__target__callbacks=1, user__login="admin"), name="family admin-hook fires a hook"),
    unsupported("wordpress.admin-action", {"action-json": {"family": "editor"}}, "wordpress.editor-actions", "family editor is not supported"),
    unsupported("wordpress.admin-action", {"action-json": {"family": "browser-random-walk"}}, "not implemented", "family browser-random-walk is not supported"),
]

PAGES = [
    Step("wordpress.server-page-load", {"url": "http://localhost/wp-login.php?x=1", "method": "HEAD"}, has(target__path="/wp-login.php?x=1", target__method="HEAD", http__status=200), name="a page is named by its URL"),
    Step("wordpress.simulated-frontend-page-load", {"url": "/", "query-json": {"p": 2}}, has(target__query={"p": "2"}, target__url="http://localhost/?p=2"), name="url is a path too"),
    Step("wordpress.simulated-frontend-page-load", {"path": "/", "method": "POST", "body-json": {"a": 1}}, has(target__method="POST", target__body={"a": 1}), name="a page is posted"),
    Step("wordpress.simulated-admin-page-load", {"path": "edit.php", "capture-diagnostics": "wpdb-queries"}, lambda d: must(d["diagnostics"]["queries"]["fingerprints"], "queries"), name="capture-diagnostics is a list"),
]

DISCOVERY = [
    Step("wordpress.runtime-discovery", {"surface": "rest,auth"}, lambda d: must(d["surfaces"] == ["rest", "auth"] and d["rest"]["routes"] and d["auth"]["roles"] and "admin" not in d, str(d)[:300]), name="surface is a list"),
    *[Step("wordpress.runtime-discovery", {"surface": name}, lambda d, name=name: must(d[name] and d["surfaces"] == [name], str(d)[:300]), name=f"surface {name} is described") for name in ("admin", "database", "frontend", "blocks", "execution")],
    Step("wordpress.admin-action-inventory", {"max_pages": "1"}, lambda d: equal([page["status"] for page in d["pages"]].count("loaded"), 1), name="max_pages caps the rendered pages"),
]

OBSERVATIONS = [
    Step("wordpress.rest-performance-observation", {"path": "/surfaces/v1/slow/1", "query-fingerprint-limit": "0", "hook-sample-limit": "0"}, has(database__fingerprints=[], hooks__measured=0), name="limits of zero list nothing"),
    Step("wordpress.rest-performance-observation", {"path": "/surfaces/v1/slow/1", "query-fingerprint-limit": "1000000", "hook-limit": "1"}, lambda d: equal((d["metadata"]["limits"]["queryFingerprints"], len(d["hooks"]["slowest"])), (500, 1)), name="a limit above the highest uses the highest"),
    Step("wordpress.cache-churn-observation", {"path": "/surfaces/v1/slow/1", "session": "admin", "case-id": "c", "action-id": "a"}, has(artifactKind="cache-churn-observation", request__user__login="admin", correlation={"caseId": "c", "actionId": "a"}), name="session of a cache observation names a user too"),
]

FUZZ = [
    Step("wordpress.fuzz-admin-pages", {"max_pages": "2", "safe_methods": "GET,HEAD"}, lambda d: equal(([row["method"] for row in d["coverage"]], d["coverage"][0]["path"], d["status"]), (["GET", "HEAD"] * 2, "/wp-admin/admin.php?page=surfaces-page", "ok"))),
    Step("wordpress.fuzz-plugin-module-state", {}, has(executeMutations=False, skipReasons__0__code="execution-not-requested", plannedActions__0__status="planned")),
    Step("wordpress.fuzz-plugin-module-state", {"execute_mutations": "yes"}, has(executeMutations=True, skipReasons__0__code="connected-state-missing", safeguards__disposableSandbox={"required": True, "satisfied": True}), name="a change that needs a connected plugin is skipped"),
    Step("wordpress.fuzz-plugin-module-state", {"execute_mutations": "yes", "connected_state_required_for_mutation": "no", "mutation_mode": "round-trip", "external_dispatch": "no"}, lambda d: must(d["totals"]["executed"] >= 1 and not d["diagnostics"], str(d)[:800]), name="options are changed and restored"),
    Step("wordpress.crud-operation", {"operation-json": {"operation": "read", "resource": {"kind": "option", "id": "surfaces_settings"}}}, has(item__value={"colour": "red", "api_key": "[redacted]"}), name="a changed option has its old value"),
]

ACTIVE = Step("wordpress.ensure-plugin-active", {"plugin": SLUG})
GROUPS = [
    Group("public content", [ACTIVE, *CRUD, *DB, *BLOCKS], fixture=SLUG),
    Group("public actions", [ACTIVE, *ACTIONS, *PAGES, *DISCOVERY, *OBSERVATIONS, *FUZZ], fixture=SLUG),
]


def call(command, *args):
    return {"command": command, "args": list(args)}


CASES = [
    ("an unknown word of capture-diagnostics is refused", refused(call("wordpress.simulated-admin-page-load", "path=edit.php", "capture-diagnostics=wpdb-queries,colour"), INVALID, "wpdb-queries")),
    ("an unsafe method of fuzz-admin-pages is refused", refused(call("wordpress.fuzz-admin-pages", "safe_methods=GET,POST"), INVALID, "OPTIONS")),
    ("an unknown surface is refused", refused(call("wordpress.runtime-discovery", "surface=rest,colour"), INVALID, "execution")),
    ("a suite of generated inputs is refused with the reason", refused(call("wp-codebox/run-fuzz-suite", "suite-json={}"), UNSUPPORTED, "fuzz engine")),
]


@pytest.mark.parametrize("case", cases(GROUPS, CASES))
def test_argument_of_the_published_command_interface_has_its_documented_effect_or_is_refused(bench, case):
    case(bench)
