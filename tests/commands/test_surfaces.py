"""Commands on plugin tests, the database, content, inventories, pages, blocks, observations and state of the guest's site."""

import json

import pytest
from steps import Group, Step, cases, equal

from harness import must

SLUG = "surfaces-plugin"
SECRET = "surfaces-planted-secret"
DB = "wordpress.db-operation"
CRUD = "wordpress.crud-operation"
ADMIN_PAGE = "wordpress.simulated-admin-page-load"
PAGE = "wordpress.simulated-frontend-page-load"
SERVER = "wordpress.server-page-load"
HTTP = "wordpress.http-request"
PHPUNIT = "wordpress.phpunit"
INVALID = "wp_codebox_input_invalid"
FAILED = "wp_codebox_command_failed"
UNSUPPORTED = "wp_codebox_command_unsupported"


def printed(row):
    """Returns the document that a failed command printed in addition to its error."""
    return json.loads(row["stdout"])


def has(**wanted):
    """Returns a check that a document has these values; `a__b` names member b of member a."""
    def check(document):
        if "stdout" in document and "call" not in document and isinstance(document.get("stdout"), str):
            document = printed(document)
        for name, value in wanted.items():
            found = document
            for part in name.split("__"):
                found = found[int(part)] if isinstance(found, list) else found.get(part)
            equal(found, value, name)
    return check


def both(*checks):
    def check(document):
        for one in checks:
            one(document)
    return check


def named(items, name, key="name"):
    found = [item for item in items if item[key] == name]
    must(len(found) == 1, f"{len(found)} of {name} in {json.dumps(items)[:800]}")
    return found[0]


def sorted_by(items, *keys):
    values = [tuple(str(item.get(key) or "") for key in keys) for item in items]
    must(values == sorted(values), f"not sorted: {values[:20]}")


def no_secret(document):
    must(SECRET not in json.dumps(document), "the document contains a secret")


def db(operation, expect=None, **more):
    return Step(DB, {"operation-json": operation}, expect, **more)


def crud(operation, expect=None, **more):
    return Step(CRUD, {"operation-json": operation}, expect, **more)


def php(code, expect, name):
    return Step("wordpress.run-php", {"code": code}, expect, name=name)


def bytes_of_payload(document):
    equal(document["items"][1]["payload"]["base64"], "//4A", "bytes that are not UTF-8")
    equal(document["truncated"], {"rows": False, "bytes": False})


def bytes_bound(document):
    must(document["truncated"]["bytes"] and document["rowCount"] < 40, f"not cut: {document['rowCount']}")


ITEMS = [{"column": "id", "direction": "asc"}]

DATABASE = [
    db({"operation": "select", "table": "surfaces_items", "orderBy": ITEMS}, both(has(table="wp_surfaces_items", rowCount=2, items__0__name="plain"), bytes_of_payload)),
    db({"operation": "select", "sql": "SELECT post_title FROM {prefix}posts WHERE ID = %d AND post_title LIKE 'Hello%'", "values": [1]}, has(items__0__post_title="Hello world!"), name="SQL with placeholders and values returns rows"),
    db({"operation": "select", "sql": "SELECT ';' AS mark"}, has(items__0__mark=";"), name="a quoted semicolon in SQL is accepted"),
    db({"operation": "select", "sql": "SELECT 1; DELETE FROM wp_posts"}, fails=INVALID, says="semicolon", name="two SQL statements are refused"),
    db({"operation": "select", "sql": "DELETE FROM wp_posts"}, fails=INVALID, says="must begin with SELECT", name="a DELETE statement in a select operation is refused"),
    db({"operation": "select", "sql": "SELECT %d", "values": []}, fails=INVALID, says="1 placeholders", name="SQL placeholders without values are refused"),
    db({"operation": "select", "sql": "SELECT no_such FROM wp_posts"}, fails=FAILED, says="no such column", name="a select of an unknown column fails"),
    db({"operation": "insert", "table": "surfaces_items", "values": {"name": "it's 5% new"}}, has(affectedRows=1, insertId=3), name="insert adds a row"),
    db({"operation": "update", "table": "surfaces_items", "values": {"name": "changed"}, "where": {"id": 3}}, has(affectedRows=1), name="update changes a row"),
    db({"operation": "delete", "table": "surfaces_items", "where": {"id": 3}, "readOnly": True}, fails=INVALID, says="readOnly", name="delete with readOnly is refused"),
    db({"operation": "delete", "table": "surfaces_items"}, fails=INVALID, says="every row", name="delete without where is refused"),
    db({"operation": "select", "table": "surfaces_items", "where": {"id": 3}}, has(items__0__name="changed"), name="the refused deletes removed no row"),
    db({"operation": "delete", "table": "surfaces_items", "where": {"id": 3}}, has(affectedRows=1), name="delete removes a row"),
    db({"operation": "explain", "sql": "SELECT * FROM wp_posts WHERE ID = 1"}, lambda d: must("wp_posts" in json.dumps(d["items"]), f"plan: {d}"), name="explain returns the query plan"),
    db({"operation": "select", "table": "users", "columns": ["user_login", "user_pass"]}, has(items__0__user_pass="[redacted]"), name="a password hash in a row is redacted"),
    db({"operation": "select", "table": "no_such"}, fails=INVALID, says="available: wp_commentmeta", name="a select from an unknown table is refused"),
    db({"operation": "select", "sql": "SELECT a.ID FROM wp_posts a, wp_options b, wp_options c", "limit": 20}, has(rowCount=20, truncated={"rows": True, "bytes": False}), name="limit caps the number of rows"),
    db({"operation": "select", "sql": "SELECT '" + "y" * 4000 + "' AS big FROM wp_options LIMIT 40", "maxBytes": 20000}, bytes_bound, name="maxBytes caps the size of the result"),
    db({"operation": "select", "table": "surfaces_items", "order": ITEMS}, fails=INVALID, says='no member "order"', name="an unknown member of a select is refused"),
    db({"operation": "select", "sql": "SELECT 1", "offset": 1}, fails=INVALID, says='no member "offset"', name="offset beside sql is refused"),
    db({"operation": "update", "table": "surfaces_items", "values": {"name": "x"}, "where": {"id": 1}, "limit": 1}, fails=INVALID, says='no member "limit"', name="limit in an update is refused"),
    db({"operation": "select", "table": "surfaces_items", "where": {"id": {"op": ">", "value": 1, "not": True}}}, fails=INVALID, says='no member "not"', name="an unknown member of a where condition is refused"),
    db({"operation": "select", "table": "surfaces_items", "orderBy": [{"column": "id", "dir": "desc"}]}, fails=INVALID, says='no member "dir"', name="an unknown member of orderBy is refused"),
    db({"operation": "drop", "table": "posts"}, fails=INVALID, says="must be one of", name="an unknown database operation is refused"),
]

CONTENT = [
    crud({"operation": "create", "type": "post", "data": {"post_title": "It's \\ 5%", "post_status": "publish", "post_content": "known"}}, has(item__post_title="It's \\ 5%", item__post_status="publish")),
    crud({"operation": "update", "type": "post", "id": 1, "data": {"post_title": "Changed"}}, has(previous__post_title="Hello world!", item__post_title="Changed"), name="update a post"),
    crud({"operation": "list", "type": "post", "query": {"post_type": "post"}, "limit": 1}, has(count=1, truncated=True, items__0__ID=1), name="list posts"),
    crud({"operation": "read", "type": "post", "id": 99999}, fails=FAILED, says="no post 99999", name="reading an unknown post fails"),
    crud({"operation": "delete", "type": "post", "id": 1, "forced": True}, fails=INVALID, says='no member "forced"', name="an unknown member of a content delete is refused"),
    crud({"operation": "create", "type": "post", "taxonomy": "category", "data": {"post_title": "x"}}, fails=INVALID, says='no member "taxonomy"', name="taxonomy in a post operation is refused"),
    crud({"operation": "read", "type": "post"}, fails=INVALID, says="id is 0", name="read without an id is refused"),
    crud({"operation": "create", "type": "term", "taxonomy": "post_tag", "data": {"name": "one"}}, has(item__slug="one"), name="create a term"),
    crud({"operation": "create", "type": "term", "taxonomy": "post_tag", "data": {"name": "one"}}, fails=FAILED, says="term_exists", name="creating the same term again fails"),
    crud({"operation": "create", "type": "user", "data": {"user_login": "bob", "user_email": "bob@example.org", "role": "editor"}}, has(item__roles=["editor"], id=2), name="create a user"),
    crud({"operation": "create", "type": "comment", "data": {"comment_post_ID": 1, "comment_content": "hi"}}, has(item__comment_content="hi"), name="create a comment"),
    crud({"operation": "create", "type": "meta", "objectType": "post", "objectId": 1, "data": {"key": "mark", "value": "m"}}, has(item__values=["m"]), name="create meta"),
    crud({"operation": "create", "type": "option", "data": {"name": "surfaces_new", "value": {"a": 1, "password": SECRET}}}, both(has(item__value__a=1, item__value__password="[redacted]"), no_secret), name="create an option"),
    crud({"operation": "delete", "type": "option", "id": "surfaces_new"}, has(deleted=True, previous__value__a=1), name="delete an option"),
    crud({"operation": "read", "type": "option", "id": "surfaces_object"}, has(item__value__class="Surfaces_Trap", item__value__properties__left=1), name="a serialized object in an option is shown without creating it"),
    php("echo json_encode(['sprung' => file_exists(sys_get_temp_dir() . '/surfaces-trap')]);", has(sprung=False), "reading the option did not call __wakeup of the stored class"),
    php("unserialize('O:13:\"Surfaces_Trap\":0:{}'); echo json_encode(['sprung' => file_exists(sys_get_temp_dir() . '/surfaces-trap')]);", has(sprung=True), "control: unserialize() calls __wakeup"),
    crud({"operation": "rename", "type": "post"}, fails=INVALID, says="must be one of create", name="an unknown content operation is refused"),
]


def discovered(document):
    plugin = named(document["plugins"]["items"], f"{SLUG}/{SLUG}.php", "file")
    equal((plugin["version"], plugin["active"]), ("3.2.1", True), "the plugin")
    equal((document["runtime"]["wordpress"]["multisite"], document["runtime"]["database"]["engine"]), (False, "sqlite"))
    must("surfaces" in document["content"]["shortcodes"] and document["abilities"]["available"], "shortcode or abilities")


def surfaces(document):
    kinds = {row["kind"]: row for row in document["surfaces"]}
    equal(sorted(kinds), ["ability", "admin-ajax", "admin-post", "block-render", "cron", "rest", "shortcode", "xmlrpc"])
    equal(named(kinds["admin-post"]["items"], "surfaces_post")["loggedIn"], False)
    named(kinds["block-render"]["items"], "surfaces/box")
    named(kinds["shortcode"]["items"], "surfaces")


def routes(document):
    sorted_by(document["routes"], "route")
    must(document["cut"]["bytes"] > 100000 and document["total"] > 100 and document["cut"]["file"].endswith("rest-route-inventory.json"), f"cut: {document['cut']}")
    route = named(document["routes"], "/surfaces/v1/slow/(?P<id>\\d+)", "route")
    equal((route["methods"], route["endpoints"][0]["permission"], route["endpoints"][0]["arguments"]), (["GET"], "__return_true", [{"name": "depth", "required": False, "type": "integer"}]))


def pages(document):
    sorted_by(document["pages"], "path", "title")
    equal((document["adminUrl"], document["menuLoaded"]), ("http://localhost/wp-admin/", True))
    equal(named(document["pages"], "/wp-admin/admin.php?page=surfaces-page", "path")["source"], "plugin")
    equal(named(document["pages"], "/wp-admin/options-general.php", "path")["capability"], "manage_options")


def actions(document):
    form = [row for row in document["actions"] if row["kind"] == "form" and row["action"] == "surfaces_post"]
    equal([(row["method"], row["target"], row["nonce"], "title" in row["fields"]) for row in form], [("POST", "/wp-admin/admin-post.php", True, True)], "the form")
    equal([row["status"] for row in document["pages"]][:2], ["loaded", "skipped"])
    equal(named([row for row in document["actions"] if row["kind"] == "ajax"], "surfaces_do")["loggedIn"], True)
    equal(document["redaction"]["values"], "omitted")


def tables(document):
    sorted_by(document["tables"], "name")
    own = named(document["tables"], "wp_surfaces_items")
    equal((own["core"], own["rows"], [c["name"] for c in own["columns"]], own["indexes"][0]["columns"]), (False, 2, ["id", "name", "payload"], ["id"]))
    equal(named(document["tables"], "wp_options")["core"], True)
    equal(document["totals"]["tables"], len(document["tables"]))


def owned(document):
    file = f"{SLUG}/{SLUG}.php"
    plugin = named(document["plugins"], file, "plugin")
    equal((plugin["options"][:2], plugin["tables"]), (["surfaces_api_key", "surfaces_object"], ["wp_surfaces_items"]))
    key = named(document["options"], "surfaces_api_key")
    equal((key["value"], key["plugins"]), ("[redacted]", [file]))
    equal(document["tables"], [{"name": "wp_surfaces_items", "rows": 2, "plugins": [file]}])
    no_secret(document)


def urls(document):
    sorted_by(document["urls"], "kind", "url")
    must("p" in document["publicQueryVars"] and isinstance(document["rewriteRules"], list), "query variables and rules")
    must({"home", "singular", "author", "feed", "search"} <= {row["kind"] for row in document["urls"]}, f"kinds: {document}")


#: A workload whose first run sends 20 queries and caches their result.
CACHED = "global $wpdb; if ( false === wp_cache_get( 'cached', 'surfaces' ) ) { for ( $i = 0; $i < 20; $i++ ) { $wpdb->get_var( 'SELECT 1' ); } wp_cache_set( 'cached', 1, 'surfaces' ); }"


def failed_page(status, message="surfaces_is_not_defined"):
    """Returns a check that a page ended with this status, and that phpErrors has its fatal error with file and line."""
    def check(found):
        document = printed(found) if "stdout" in found else found
        equal(document["http"]["status"] if "http" in document else document["status"], status)
        row = document["phpErrors"][-1]
        must(row["level"] == "fatal" and message in row["message"] and row["file"].endswith(f"/{SLUG}.php") and row["line"] > 50, f"phpErrors: {document['phpErrors']}")
    return check


INVENTORIES = [
    Step("wordpress.runtime-discovery", {}, discovered),
    Step("wordpress.runtime-discovery", {"surface": "users"}, lambda d: must("plugins" not in d and d["users"]["total"] == 2, f"users: {d}"), name="runtime-discovery of one surface returns only that surface"),
    Step("wordpress.execution-surfaces", {}, surfaces),
    Step("wordpress.rest-route-inventory", {}, routes),
    php("$d = json_decode(file_get_contents('/tmp/codebox-artifacts/wordpress-rest-route-inventory.json'), true); echo json_encode(['whole' => $d['total'] === count($d['routes'])]);", has(whole=True), "an inventory too large to print is saved whole to a file"),
    Step("wordpress.admin-page-inventory", {}, pages),
    Step("wordpress.admin-action-inventory", {"max-pages": "1"}, actions),
    Step("wordpress.inventory-database", {}, tables),
    Step("wordpress.inventory-plugin-module-options-tables", {}, owned),
    Step("wordpress.inventory-plugin-module-options-tables", {"read_only": "false"}, has(readOnly=True, diagnostics__0__code="read-only"), name="an inventory with read_only=false only reads and says so"),
    Step("wordpress.inventory-plugin-module-options-tables", {"secret_placeholders_only": "false"}, fails=INVALID, says="never shows a value", name="an inventory with secret_placeholders_only=false is refused"),
    Step("wordpress.frontend-url-inventory", {}, urls),
]


def page(kind, name, **wanted):
    return Step(PAGE, {"path": f"/?surfaces={kind}"}, has(**wanted), name=name)


def warned(document):
    equal((document["status"], document["http"]["status"]), ("ok", 200))
    equal(document["notices"][0]["message"], "careful")
    must(document["notices"][0]["file"].endswith(f"/{SLUG}.php"), "where")


def fatal(document):
    equal((document["status"], document["http"]["status"], document["outcome"]), ("error", 500, "fatal"))
    must("surfaces_is_not_defined" in document["errors"][0]["message"], f"errors: {document['errors']}")


def as_user(document):
    equal((document["http"]["status"], document["target"]["userSession"], document["identity"]["user"]["login"]), (200, {"user": "admin"}, "admin"))
    must(document["title"].startswith("Posts ") and document["diagnostics"]["queries"]["count"] > 5 and document["diagnostics"]["queries"]["fingerprints"], f"page: {json.dumps(document)[:600]}")


PAGES = [
    Step(PAGE, {"path": "/"}, both(has(http__status=200, outcome="rendered", title="Codebox", diagnostics__php__total=0), lambda d: must(d["body"]["bytes"] > 10000, "body"))),
    page("none", "a page without a plugin fault is rendered", http__status=200),
    Step(PAGE, {"path": "/?p=98765"}, has(http__status=404, outcome="rendered"), name="an unknown page answers 404"),
    Step(PAGE, {"path": "/wp-login.php"}, fails=INVALID, says="not a front-end page", name="wp-login.php is refused as a front-end page"),
    Step(PAGE, {"url": "http://example.org/"}, fails=INVALID, says="page of this sandbox", name="a URL of another site is refused"),
    Step(PAGE, {"path": "/?surfaces=warn"}, warned, name="a PHP warning of a page is reported with message and file"),
    Step(PAGE, {"path": "/?surfaces=fatal"}, lambda row: fatal(printed(row)), fails=FAILED, says="surfaces_is_not_defined", name="a fatal error of a page fails the command"),
    Step(PAGE, {"path": "/?surfaces=fatal", "expect-status": "500"}, fatal, name="a fatal error of a page with expect-status 500 succeeds"),
    Step(PAGE, {"path": "/?surfaces=memory", "expect-status": "500"}, has(http__status=500, outcome="fatal"), name="a page over the PHP memory limit is reported as fatal"),
    Step(PAGE, {"path": "/?surfaces=busy"}, lambda row: equal((printed(row)["http"]["status"], printed(row)["phpErrors"]), (503, [])), fails=FAILED, says="set expect-status=503", name="a page that answers 503 fails the command"),
    Step(PAGE, {"path": "/?surfaces=busy", "expect-status": "503"}, has(http__status=503), name="a page that answers 503 with expect-status 503 succeeds"),
    page("exit", "the output of a page that exits early is returned", http__status=200, body__bytes=7),
    page("letters", "the excerpt of a page ends before a character that exceeds its limit", title="ü", body__bytes=6017, body__excerpt="<title>ü</title>" + 2039 * "ä"),
    page("bytes", "a page that is not UTF-8 is reported as base64", title="\ufffd!", body__excerpt__base64="PHRpdGxlPv8hPC90aXRsZT4="),
    page("shutdown", "an exit in a shutdown function does not lose the page", http__status=200, title="Codebox"),
    page("redirect", "a redirect of a page is reported, not followed", http__status=301, outcome="redirected", status="redirect", redirect__location="http://localhost/elsewhere"),
    page("die", "a wp_die call of a page is reported with its message", http__status=403, outcome="died", metadata__died__message="no entry"),
    page("unbuffered", "the output of a page that ends all output buffers is returned", schema="wp-codebox/wordpress-page-load-result/v1", body__bytes=33),
    Step(PAGE, {"path": "/?surfaces=kill"}, fails=FAILED, says="signal 9", name="a page that kills its PHP process fails the command"),
    Step(ADMIN_PAGE, {"path": "edit.php", "user": "admin", "capture-diagnostics": "true"}, as_user),
    Step(ADMIN_PAGE, {"path": "options-general.php", "user": "bob"}, has(http__status=403, outcome="died", identity__user__login="bob"), name="an admin page answers 403 to a user without its capability"),
    Step(ADMIN_PAGE, {"path": "edit.php?surfaces=session", "user": "admin", "capture-diagnostics": "wpdb-queries"}, as_user, name="an admin page loads when a plugin reads the current user while the session is created"),
    Step(ADMIN_PAGE, {"path": "edit.php?surfaces=session"}, has(http__status=200, identity__user__login="admin"), name="such an admin page also loads as the default administrator"),
    Step(ADMIN_PAGE, {"path": "options-general.php", "user": "bob", "expect-status": "200"}, lambda row: equal(printed(row)["http"]["status"], 403), fails=FAILED, says="answered with 403, but 200", name="an admin page with a status other than expect-status fails"),
    Step(ADMIN_PAGE, {"path": "edit.php?surfaces=fatal"}, lambda row: fatal(printed(row)), fails=FAILED, says="surfaces_is_not_defined", name="a fatal error of an admin page fails the command"),
    Step(ADMIN_PAGE, {"path": "edit.php?surfaces=fatal", "expect-status": "500"}, fatal, name="a fatal error of an admin page with expect-status 500 succeeds"),
    Step(PAGE, {"path": "/?p=98765", "expect-status": "404"}, has(http__status=404), name="an unknown page with expect-status 404 succeeds"),
    Step(PAGE, {"path": "/?surfaces=fatal", "expect-status": "200"}, lambda row: equal(printed(row)["http"]["status"], 500), fails=FAILED, says="answered with 500, but 200", name="a front-end page with a status other than expect-status fails"),
    Step("wordpress.session", {"session": "boss", "user": "admin"}),
    Step(ADMIN_PAGE, {"path": "edit.php?surfaces=session", "session": "boss"}, has(http__status=200, identity__user__login="admin"), name="such an admin page also loads in an existing session"),
    Step(ADMIN_PAGE, {"path": "edit.php?surfaces=nobody", "user": "admin"}, lambda row: equal((printed(row)["http"]["status"], printed(row)["identity"]["user"]), (403, None)), fails="not-logged-in", says="as admin, but WordPress refused access to a visitor", name="an admin page that refuses a visitor instead of the requested user fails"),
    Step(ADMIN_PAGE, {"path": "edit.php?surfaces=ended", "user": "admin"}, lambda row: equal((printed(row)["http"]["status"], printed(row)["identity"]["user"]), (302, None)), fails="not-logged-in", says="as admin, but WordPress refused access to a visitor", name="an admin page that redirects to the login fails"),
    Step(PAGE, {"path": "/?surfaces=nobody", "user": "admin"}, has(http__status=200, identity__user=None), name="a front-end page shown to a visitor reports no user"),
    Step(ADMIN_PAGE, {"path": "/wp-admin/no-such.php"}, fails=INVALID, says="no page", name="an unknown admin page is refused"),
    Step(ADMIN_PAGE, {"path": "edit.php", "user": "nobody"}, fails="user-missing", name="an unknown user is refused"),
    Step(SERVER, {"path": "/", "expect-status": "200"}, both(has(mode="server-http", source="server-http", target__kind="frontend", title="Codebox"), lambda d: must(d["diagnostics"]["queries"]["count"] > 5 and "content-type" in d["http"]["headers"], f"server: {json.dumps(d)[:600]}"))),
    Step(SERVER, {"surface": "admin"}, has(http__status=302, outcome="redirected"), name="the web server redirects a visitor away from the admin area"),
    Step(SERVER, {"path": "/?surfaces=fatal", "expect-status": "200"}, lambda row: equal(printed(row)["http"]["status"], 500), fails=FAILED, says="answered with 500", name="a web server page with a status other than expect-status fails"),
    Step(SERVER, {"path": "/?surfaces=fatal"}, failed_page(500), fails="page-error", says="surfaces_is_not_defined", name="a web server page with a fatal error fails the command"),
    Step(SERVER, {"path": "/?surfaces=fatal", "expect-status": "500"}, both(fatal, failed_page(500)), name="a web server page with a fatal error and expect-status 500 succeeds"),
    Step(SERVER, {"path": "/?surfaces=late", "expect-status": "200"}, failed_page(200, "Uncaught LogicException: too late"), fails="page-error", says="too late", name="an exception after the response has begun fails the command although the status is the expected one"),
    Step(SERVER, {"path": "/?surfaces=busy"}, fails="page-error", says="answered with 503", name="a web server page that answers 503 fails the command"),
    Step(SERVER, {"path": "/wp-includes/images/blank.gif"}, has(http__status=200, phpErrors=[], status="ok"), name="a static file of the web server has no PHP errors"),
    Step(SERVER, {"path": "/?surfaces=warn"}, both(has(http__status=200, status="ok"), lambda d: equal([row["message"] for row in d["phpErrors"]], ["careful"])), name="a PHP warning is listed in phpErrors and does not fail the command"),
    Step(HTTP, {"url": "/?surfaces=fatal"}, failed_page(500), fails="page-error", says="surfaces_is_not_defined", name="a request that ends with a fatal error fails the command"),
    Step(HTTP, {"url": "/?surfaces=fatal", "expect-status": "500"}, failed_page(500), name="a request that ends with a fatal error and expect-status 500 succeeds"),
    Step(HTTP, {"url": "/?surfaces=late"}, failed_page(200, "Uncaught LogicException: too late"), fails="page-error", says="too late", name="a request whose script throws after the response has begun fails the command"),
    Step(HTTP, {"url": "/?surfaces=busy"}, fails="page-error", says="set expect-status=503", name="a request that is answered with 503 fails the command"),
    Step(HTTP, {"url": "/?surfaces=busy", "expect-status": "503"}, has(status=503, phpErrors=[]), name="a request that is answered with 503 and expect-status 503 succeeds"),
    Step(HTTP, {"url": "/?p=98765"}, has(status=404), name="a request that is answered with 404 succeeds without expect-status"),
    Step(SERVER, {"path": "/wp-content/database/.ht.sqlite"}, has(http__status=403), name="the web server does not serve the database file"),
]


def slow(document):
    equal((document["status"], document["response"]["status"]), ("ok", 200))
    hook = document["hooks"]["slowest"][0]
    must(hook["hook"] == "surfaces_slow" and hook["selfMs"] >= 40, f"hooks: {document['hooks']}")
    repeated = [row for row in document["database"]["fingerprints"] if "COUNT(*) FROM wp_surfaces_items WHERE name <> ?" in row["query"]]
    equal([row["count"] for row in repeated], [7], "the query in the loop")
    must(document["timing"]["wallMs"] >= 40 and document["memory"]["peakBytes"] > 0, "time and memory")


def churned(document):
    equal(document["transients"], {"hit": 1, "miss": 1, "set": 1, "delete": 1})
    equal(document["options"]["update"] + document["options"]["add"] > 0, True)
    equal(named(document["rewritten"], "surfaces:a", "key")["writes"], 3)
    equal((document["correlation"]["caseId"], len(document["samples"]), document["truncated"]), ("c-1", 5, True))


BLOCKS = [
    Step("wordpress.block-render", {"block-name": "surfaces/box", "attrs-json": {"size": 3}}, has(render__html='<div class="box">3</div>', dynamic=True, blockName="surfaces/box")),
    Step("wordpress.block-render", {"block-name": "surfaces/none"}, lambda row: equal(printed(row)["registered"], False), fails=FAILED, says="no block", name="rendering an unknown block fails"),
    Step("wordpress.block-render", {"block-name": "surfaces/box", "markup": "<!-- wp:paragraph --><p>a</p><!-- /wp:paragraph -->"}, fails=INVALID, says="core/paragraph", name="markup of another block is refused"),
    Step("wordpress.block-exercise", {"block-name": "surfaces/box", "attrs-json": {"size": 3}}, lambda d: equal([c["status"] for c in d["checks"]], ["passed"] * 3)),
    Step("wordpress.block-exercise", {"block-name": "surfaces/box", "attrs-json": {"size": "big", "other": 1}}, fails=FAILED, says="attributes-known, attributes-valid", name="attributes that violate the block's schema fail its checks"),
    Step("wordpress.rest-performance-observation", {"path": "/wp-json/surfaces/v1/slow/1"}, slow),
    Step("wordpress.rest-performance-observation", {"path": "/surfaces/v1/none"}, has(status="error", response__status=404), name="an unknown REST route is measured with status 404"),
    Step("wordpress.rest-performance-observation", {"path": "/surfaces/v1/slow/1", "user": "nobody"}, fails="user-missing", name="a measurement as an unknown user fails"),
    Step("wordpress.cache-churn-observation", {"path": "/surfaces/v1/slow/1", "sample-limit": "5", "case-id": "c-1"}, churned),
    Step("wordpress.cache-churn-observation", {"path": "/surfaces/v1/none"}, has(response__status=404, transients__set=0), name="a request without cache writes counts none"),
]


def tested(document):
    equal(document["summary"], {"total": 3, "passed": 2, "failed": 0, "skipped": 1, "unknown": 0})
    equal((document["status"], document["runner"]["name"], document["exitCode"]), ("passed", "phpunit", 0))


def wrong(row):
    failure = printed(row)["failures"][0]
    equal((failure["test"], failure["file"], failure["line"]), ("test_is_wrong", "bad/WrongTest.php", 15))
    equal(printed(row)["summary"]["failed"], 1)


OWN_TEST = """final class OwnTest extends PHPUnit\\Framework\\TestCase {
	public function test_given(): void { $this->assertSame( array( 'from outside', 'e' ), array( SURFACES_DEFINED, getenv( 'SURFACES_ENV' ) ) ); }
}"""

TESTS = [
    Step(PHPUNIT, {"plugin-slug": SLUG}, tested),
    Step(PHPUNIT, {"plugin-slug": SLUG, "test-file": "bad/WrongTest.php"}, wrong, fails=FAILED, says="1 of 1 tests failed", name="a failing PHPUnit test fails the command"),
    Step(PHPUNIT, {"plugin-slug": SLUG, "test-file": "bad/FatalTest.php"}, fails=FAILED, says="before its log was complete", name="a PHPUnit test that exits with status 0 fails the command"),
    Step(PHPUNIT, {"plugin-slug": SLUG, "phpunit-args-json": ["--filter", "nothing"]}, fails=FAILED, says="no tests ran", name="a PHPUnit call that runs no test fails"),
    Step(PHPUNIT, {"plugin-slug": SLUG, "discovery-only": "true"}, has(tests=["AddTest::test_adds", "AddTest::test_has_wordpress", "AddTest::test_skips"]), name="discovery-only lists the tests"),
    Step(PHPUNIT, {"plugin-slug": SLUG, "code": OWN_TEST, "wp-config-defines-json": {"SURFACES_DEFINED": "from outside"}, "env-json": {"SURFACES_ENV": "e"}}, has(summary__passed=1), name="test code passed by the caller runs"),
    Step(PHPUNIT, {"plugin-slug": SLUG, "changed-tests-json": ["tests/AddTest.php", "bad/WrongTest.php"]}, lambda row: equal(printed(row)["summary"]["total"], 4), fails=FAILED, says="1 of 4", name="changed-tests-json selects the test files"),
    Step(PHPUNIT, {"plugin-slug": "no-such"}, fails=INVALID, says="mount it at", name="PHPUnit for an unknown plugin is refused"),
    Step(PHPUNIT, {"plugin-slug": SLUG, "phpunit-args-json": ["--log-junit=/tmp/x"]}, fails=INVALID, says="sets itself", name="a PHPUnit argument that the command sets itself is refused"),
    Step(PHPUNIT, {"plugin-slug": SLUG, "env-json": {"LD_PRELOAD": "x"}}, fails=INVALID, says="LD_PRELOAD", name="LD_PRELOAD in the environment is refused"),
    Step("wordpress.core-phpunit", {}, fails=UNSUPPORTED, says="core-root"),
    Step("wordpress.bench", {"plugin-slug": SLUG, "iterations": "3", "workloads-json": [{"id": "cached", "code": CACHED}]},
         lambda d: equal([d["scenarios"][0]["metrics"]["queries"][name] for name in ("first", "min", "max")], [20, 0, 0]), name="a benchmark reports the queries of the first run, whose results the warm-up caches"),
    Step("wordpress.bench", {"plugin-slug": SLUG, "iterations": "3", "warmup": "0", "workloads-json": [{"id": "uncached", "code": "global $wpdb; $wpdb->query( 'SELECT 1' );"}]},
         lambda d: equal([d["scenarios"][0]["metrics"]["queries"][name] for name in ("first", "min", "max")], [1, 1, 1]), name="a benchmark without a cache has the same number of queries in the first run"),
    Step("wordpress.bench", {"plugin-slug": SLUG, "iterations": "5"}, lambda d: must(d["scenarios"][0]["id"] == "sum" and len(d["scenarios"][0]["samples"]["wallMs"]) == 5 and d["scenarios"][0]["metrics"]["wallMs"]["p95"] >= d["scenarios"][0]["metrics"]["wallMs"]["p50"], f"bench: {d}")),
    Step("wordpress.bench", {"plugin-slug": SLUG, "workloads-json": [{"id": "boom", "code": "throw new Exception('boom');"}]}, fails=FAILED, says="boom", name="a bench workload that throws fails the command"),
    Step("wordpress.bench", {"plugin-slug": SLUG, "workloads-json": [{"id": "one", "code": "1;", "iterations": 3}]}, fails=INVALID, says='no member "iterations"', name="an unknown member of a bench workload is refused"),
    Step("wordpress.bench", {"plugin-slug": SLUG, "lifecycle-json": {"setup": {"code": "1;", "once": True}}}, fails=INVALID, says='lifecycle-json.setup has no member "once"', name="an unknown member of a bench setup is refused"),
    Step("wordpress.bench", {"plugin-slug": SLUG, "scenario-ids-json": ["none"]}, fails=INVALID, says="the workloads are sum", name="an unknown bench scenario is refused"),
]

# The plugins Plugin Check and Theme Check are not available here. The steps test the error for a missing plugin, then use stand-ins.
STAND_INS = """
$dir = WP_PLUGIN_DIR;
mkdir("$dir/plugin-check"); mkdir("$dir/theme-check");
file_put_contents("$dir/plugin-check/plugin.php", <<<'X'
<?php
/* Plugin Name: Plugin Check
 * Version: 0.0.1 */
if (defined('WP_CLI')) { WP_CLI::add_command('plugin check', function ($args, $options) {
	$checks = $options['checks'] ?? '';
	if ('none' === $checks) { return; }
	if (class_exists('Early_Stand_In', false)) { Early_Stand_In::check($checks); }
	WP_CLI::line('FILE: a.php'); WP_CLI::line('[{"line":4,"column":2,"type":"' . (in_array($checks, array('warn', 'static'), true) ? 'WARNING' : 'ERROR') . '","code":"c","message":"m"}]');
	if ('odd' === $checks) { WP_CLI::line('something else'); }
}); }
X);
file_put_contents("$dir/theme-check/checkbase.php", <<<'X'
<?php
global $themechecks;
class Stand_In { function getError() { return get_option('surfaces_theme') ? array() : array('<span>REQUIRED</span>: no readme'); } }
$themechecks = array(new Stand_In());
function run_themechecks_against_theme($theme, $slug) { return (bool) get_option('surfaces_theme'); }
X);
echo '{"made":true}';
"""
# A stand-in that behaves like Plugin Check: loads early, recognizes its command by the first two arguments, and
# installs a drop-in during a check.
EARLY = """
$tool = WP_PLUGIN_DIR . '/plugin-check';
mkdir("$tool/vendor"); file_put_contents("$tool/vendor/autoload.php", '<?php');
file_put_contents("$tool/cli.php", <<<'X'
<?php
define('EARLY_STAND_IN', ! function_exists('did_action') || ! did_action('muplugins_loaded'));
WP_CLI::add_hook('after_wp_config_load', function () { Early_Stand_In::drop_in(true); });
final class Early_Stand_In {
	static function drop_in($put) {
		$file = ABSPATH . 'wp-content/object-cache.php';
		$ours = "<?php define('WP_PLUGIN_CHECK_OBJECT_CACHE_DROPIN_VERSION', 1);";
		if ($put && ! file_exists($file)) { file_put_contents($file, $ours); }
		if (! $put && file_get_contents($file) === $ours) { unlink($file); }
	}
	static function check($checks) {
		if ('fatal' === $checks) { WP_CLI::error('it broke'); }
		self::drop_in(false);
		$known = array('plugin', 'check') === array_slice($_SERVER['argv'], 1, 2);
		if (EARLY_STAND_IN && $known && defined('WP_PLUGIN_CHECK_OBJECT_CACHE_DROPIN_VERSION') && 'static' !== $checks) { WP_CLI::line('Setting up runtime environment.'); }
	}
}
X);
echo '{"made":true}';
"""
LEFT = "echo json_encode(array('left' => file_exists(WP_CONTENT_DIR . '/object-cache.php')));"


def left_out(why):
    def judge(document):
        equal(document["status"], "passed")
        must(document["runtime"]["ran"] is False and why in document["runtime"]["reason"], f"runtime: {document['runtime']}")
    return judge


def kept(row):
    refs = row.get("artifactRefs", [])
    must(any(ref["role"] == "plugin-check" for ref in refs), f"no file: {json.dumps(row)[:800]}")


def finding(row):
    equal(printed(row)["findings"], [{"file": "a.php", "line": 4, "column": 2, "type": "ERROR", "code": "c", "message": "m"}])


ACTIVE = Step("wordpress.ensure-plugin-active", {"plugin": SLUG}, has(active=True))
THEME = "wordpress.theme-check"
CHECK = "wordpress.plugin-check"
CHECKS = [
    Step(CHECK, {"plugin-slug": SLUG}, fails=UNSUPPORTED, says="plugins/plugin-check", name="plugin-check is unsupported if Plugin Check is not installed"),
    Step(THEME, {"theme": "twentytwentyfive"}, fails=UNSUPPORTED, says="plugins/theme-check", name="theme-check is unsupported if Theme Check is not installed"),
    Step(THEME, {"theme": "no-such"}, fails=INVALID, says="twentytwentyfive", name="theme-check of an unknown theme is refused"),
    php(STAND_INS, has(made=True), "setup: install stand-ins for Plugin Check and Theme Check"),
    Step(CHECK, {"plugin-slug": SLUG}, finding, fails=FAILED, says="found 1 errors", name="errors from Plugin Check fail the command"),
    Step(CHECK, {"plugin-slug": SLUG, "checks": "warn"}, has(status="passed", summary={"errors": 0, "warnings": 1}), name="warnings from Plugin Check do not fail the command"),
    Step(CHECK, {"plugin-slug": SLUG, "checks": "warn"}, left_out("has no cli.php"), name="runtime checks are skipped if Plugin Check has no cli.php"),
    Step(CHECK, {"plugin-slug": SLUG, "checks": "odd"}, fails=FAILED, says="did not finish", name="unexpected output of Plugin Check fails the command"),
    Step(CHECK, {"plugin-slug": "no-such"}, fails=INVALID, says="mount it", name="plugin-check of an unknown plugin is refused"),
    php("touch(WP_PLUGIN_DIR . '/plugin-check/composer.json'); echo '{}';", None, "setup: make Plugin Check a source checkout with composer.json"),
    Step(CHECK, {"plugin-slug": SLUG, "checks": "warn"}, fails=UNSUPPORTED, says="composer install --no-dev", name="a Plugin Check checkout without Composer libraries is unsupported"),
    php(EARLY, has(made=True), "setup: add Composer libraries and cli.php to Plugin Check"),
    Step(CHECK, {"plugin-slug": SLUG, "checks": "warn"}, has(status="passed", runtime={"ran": True}), name="runtime checks run if cli.php is loaded before WordPress"),
    Step("wordpress.plugin-setup", {"slug": SLUG, "action": "deactivate"}, has(active=False), name="setup: deactivate the plugin"),
    Step(CHECK, {"plugin-slug": SLUG, "checks": "static"}, left_out("is not active"), name="runtime checks are skipped for an inactive plugin"),
    Step(CHECK, {"plugin-slug": SLUG, "checks": "fatal"}, fails=FAILED, says="it broke (checks that run the plugin were left out: the plugin is not active", name="the error of a failed check says that runtime checks were skipped"),
    ACTIVE,
    Step(CHECK, {"plugin-slug": SLUG, "checks": "static"}, left_out("none of the named checks"), name="the result says when none of the named checks is a runtime check"),
    Step(CHECK, {"plugin-slug": SLUG, "checks": "fatal"}, fails=FAILED, says="it broke", name="an error of Plugin Check itself fails the command"),
    php(LEFT, has(left=False), "the object-cache.php of a failed Plugin Check is removed"),
    php("file_put_contents(WP_CONTENT_DIR . '/object-cache.php', '<?php // mine'); echo '{}';", None, "setup: the guest has its own object-cache.php"),
    Step(CHECK, {"plugin-slug": SLUG, "checks": "warn"}, left_out("belongs to something else"), name="runtime checks are skipped if object-cache.php is not from Plugin Check"),
    php(LEFT, has(left=True), "the guest's own object-cache.php is kept"),
    Step(THEME, {"theme": "twentytwentyfive"}, lambda row: equal(printed(row)["summary"]["required"], 1), fails=FAILED, says="1 required", name="errors from Theme Check fail the command"),
    php("update_option('surfaces_theme', 1); echo '{}';", None, "setup: let the Theme Check stand-in pass"),
    Step(THEME, {"theme": "twentytwentyfive"}, has(status="passed", checks=1), name="a theme without errors passes"),
]

CAPTURE = {"snapshot-include-wp-content": f"plugins/{SLUG}", "snapshot-exclude-wp-content": "*/bad"}


def captured(document):
    paths = [item["path"] for item in document["files"]["items"]]
    must(f"plugins/{SLUG}/{SLUG}.php" in paths and not any("/bad/" in path for path in paths), f"files: {paths}")
    must(all(len(item["sha256"]) == 64 for item in document["files"]["items"]), "digests")
    equal(named(document["database"]["tables"], "wp_surfaces_items")["rows"], 2)
    must(document["options"]["masked"] >= 1, f"options: {document['options']}")
    no_secret(document)


def replay(document):
    equal(document["steps"]["importWxr"], 1)
    must(document["steps"]["writeFile"] >= 3 and document["id"] == "replay-export-package-sha256-" + document["digest"]["value"], f"package: {document}")


STATE = [
    Step("wordpress.capture-state-bundle", CAPTURE, captured),
    php("echo json_encode(['planted' => str_contains(file_get_contents('/tmp/codebox-artifacts/wordpress-state.json'), 'surfaces-planted' . '-secret'), 'hash' => str_contains(file_get_contents('/tmp/codebox-artifacts/wordpress-state.json'), get_userdata(1)->user_pass), 'object' => str_contains(file_get_contents('/tmp/codebox-artifacts/wordpress-state.json'), 'Surfaces_Trap')]);",
        has(planted=False, hash=False, object=True), "the state file contains no secret and no password hash"),
    Step("wordpress.capture-state-bundle", {"snapshot-database-tables": "no_such"}, fails=INVALID, says="no such table", name="capturing an unknown table is refused"),
    Step("wordpress.capture-state-bundle", {"snapshot-include-wp-content": "../wp-config.php"}, fails=INVALID, says="below wp-content", name="capturing files outside wp-content is refused"),
    Step("wordpress.export-replay-package", {**CAPTURE, "label": "mine", "landing-page": "/wp-admin/"}, replay),
    Step("wordpress.export-replay-package", {"landing-page": "http://example.org/"}, fails=INVALID, says="path of the site", name="a landing page on another site is refused"),
]

GROUPS = [
    Group("surfaces", [ACTIVE, *DATABASE, *CONTENT, *INVENTORIES, *BLOCKS, *STATE], fixture=SLUG),
    Group("pages", [ACTIVE, crud({"operation": "create", "type": "user", "data": {"user_login": "bob", "user_email": "bob@example.org", "role": "subscriber"}}, name="setup: create a subscriber"), *PAGES], fixture=SLUG),
    Group("tests", [*TESTS, *CHECKS], fixture=SLUG),
]


@pytest.mark.parametrize("case", cases(GROUPS))
def test_inspection_command_prints_the_expected_document_or_fails_with_the_expected_code(bench, case):
    case(bench)
