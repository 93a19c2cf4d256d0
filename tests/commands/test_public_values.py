"""Every value that the published interface allows for an argument of a core command has its documented effect, and every result document has the published members."""

import json

import pytest
from steps import PLUGIN, PLUGINS, Group, Step, cases, equal, refused

from harness import must

INVALID = "wp_codebox_input_invalid"
FAILED = "wp_codebox_command_failed"
UNSUPPORTED = "wp_codebox_command_unsupported"
MAIN = "commands-plugin/commands-plugin.php"
STATE = "wordpress.plugin-state"
SETUP = "wordpress.plugin-setup"
THEME = "wordpress.theme-setup"
PHP = "wordpress.run-php"
WP = "wordpress.wp-cli"
INVOKE = "wordpress.invoke-wp-cli"
ABILITY = "wordpress.ability"
PHPUNIT = "wordpress.phpunit"
BENCH = "wordpress.bench"

# Types of the members of each public document; every document also names its schema, its command and a status.
MEMBERS = {
    "wordpress-session/v1": {"artifacts": dict},
    "wordpress-nonce/v1": {"artifacts": dict},
    "wordpress-action-auth/v1": {"artifacts": dict},
    "wordpress-execution-action-result/v1": {"target": dict, "safety": dict, "result": dict, "diagnostics": list},
    "wordpress-state-bundle-capture/v1": {"artifacts": dict},
    "wordpress-replay-export/v1": {"artifacts": dict},
    "typed-workload-artifact/v1": {},
    "bench-results/v1": {"scenarios": list, "diagnostics": list, "artifacts": dict, "provenance": dict},
    "plugin-check/v1": {"summary": dict, "findings": list},
    "wordpress-plugin-setup/v1": {"action": str, "target": (dict, type(None)), "plugins": list, "operations": list, "errors": list, "artifactRefs": list},
    "wordpress-plugin-state/v1": {"action": str, "target": dict, "activePluginsBefore": list, "activePluginsAfter": list, "networkActivePluginsBefore": list,
                                  "networkActivePluginsAfter": list, "multisite": dict, "diagnostics": list, "errors": list, "artifactRefs": list},
    "wordpress-theme-setup/v1": {"action": str, "target": (dict, type(None)), "themes": list, "operations": list, "errors": list, "artifactRefs": list},
    "command-agent-run/v1": {"target": dict, "exitCode": int, "stdout": str, "stderr": str, "diagnostics": dict, "artifactRefs": list},
    "runtime-checkpoint-result/v1": {"operation": str},
}


def public(schema, command, **wanted):
    """Returns a check that a document has the public members of its schema, and these values; `a__b` names member b of member a."""
    def check(document):
        if "stdout" in document and "call" not in document and not str(document.get("schema", "")).endswith("command-agent-run/v1"):
            document = json.loads(document["stdout"])
        equal((document["schema"], document["command"]), (f"wp-codebox/{schema}", command))
        must(isinstance(document["status"], str), f"status: {document['status']}")
        for name, kind in MEMBERS[schema].items():
            must(isinstance(document.get(name, "missing"), kind), f"{name} is {json.dumps(document.get(name))[:300]}")
        has(**wanted)(document)
    return check


def has(**wanted):
    def check(document):
        for name, value in wanted.items():
            found = document
            for part in name.split("__"):
                found = found[int(part)] if isinstance(found, list) else found.get(part)
            equal(found, value, name)
    return check


def php(code, expect, name):
    return Step(PHP, {"code": code}, expect, name=name)


class Words(Step):
    """A step whose arguments are given as a list of words instead of names and values."""

    def __init__(self, command, args, expect=None, **more):
        super().__init__(command, {}, expect, **more)
        self.args = args


def state(name, args, **wanted):
    return Step(STATE, args, public("wordpress-plugin-state/v1", STATE, **wanted), name=name)


PLUGIN_STEPS = [
    Step("wordpress.ensure-plugin-active", {"plugin": "commands-plugin"}, public("wordpress-plugin-state/v1", "wordpress.ensure-plugin-active", action="activate", activePluginsBefore=[], activePluginsAfter=[MAIN], target__active=True)),
    state("report names the plugin and the active plugins", {"action": "report", "plugin": "commands-plugin"}, action="report", target__plugin=MAIN, activePluginsAfter=[MAIN], multisite={"enabled": False, "network": False}),
    state("status reports", {"action": "status", "slug": "commands-plugin"}, action="status", target__active=True),
    state("report without a plugin lists the active plugins", {"action": "report"}, target={}, activePluginsAfter=[MAIN]),
    state("a blank action reports", {"action": "", "plugin": "commands-plugin"}, target__plugin=MAIN),
    state("file alone names the plugin", {"file": MAIN}, target__plugin=MAIN),
    state("file beside the slug names a file of the plugin", {"slug": "commands-plugin", "file": "commands-plugin.php"}, target__plugin=MAIN),
    state("file and slug may both have the directory", {"slug": "commands-plugin", "file": MAIN}, target__plugin=MAIN),
    state("file of another plugin is not this plugin", {"slug": "no-such", "file": MAIN}, target__installed=False),
    state("path names the main file", {"path": f"{PLUGINS}/{MAIN}"}, target__plugin=MAIN),
    state("path relative to the site names the plugin", {"path": "wp-content/plugins/commands-plugin"}, target__plugin=MAIN),
    state("path of the link below /workspace names the mounted plugin", {"path": "/workspace/commands-plugin"}, target__plugin=MAIN),
    Step(STATE, {"path": "/etc/passwd"}, public("wordpress-plugin-state/v1", STATE, status="error"), fails=INVALID, says="below /wordpress/wp-content/plugins", name="a path outside the plugins directory is refused"),
    Step(STATE, {"action": "activate", "plugin": "no-such"}, public("wordpress-plugin-state/v1", STATE, errors__0__code="plugin-missing"), fails="plugin-missing", name="activation of a missing plugin lists the error"),
    state("deactivate lists the active plugins before and after", {"action": "deactivate", "file": MAIN}, activePluginsBefore=[MAIN], activePluginsAfter=[]),

    Step(SETUP, {"action": "install", "plugin": "commands-plugin"}, public("wordpress-plugin-setup/v1", SETUP, operations=[{"operation": "install", "plugin": MAIN, "status": "unchanged"}], target__active=False), name="install of a present plugin does not activate it"),
    Step(SETUP, {"action": "install", "slug": "commands-plugin", "activate": "TRUE"}, public("wordpress-plugin-setup/v1", SETUP, operations__1__operation="activate", target__active=True, plugins__0__plugin=MAIN), name="install with activate activates the plugin"),
    Step(SETUP, {"action": "install", "slug": "hello-world-of-nobody"}, public("wordpress-plugin-setup/v1", SETUP, status="error", errors__0__code="plugin-missing"), fails="plugin-missing", says="downloads.wordpress.org", name="install of a missing plugin without network is refused"),
    Step(SETUP, {"action": "list"}, public("wordpress-plugin-setup/v1", SETUP, target=None, operations=[]), name="list has no target"),

    Step(THEME, {"action": "list"}, public("wordpress-theme-setup/v1", THEME, target=None)),
    Step(THEME, {"action": "install", "theme": "twentytwentyfive"}, public("wordpress-theme-setup/v1", THEME, operations=[{"operation": "install", "theme": "twentytwentyfive", "status": "unchanged"}]), name="install of a present theme"),
    Step(THEME, {"action": "install", "slug": "no-such"}, public("wordpress-theme-setup/v1", THEME, errors__0__code="theme-missing"), fails="theme-missing", says="downloads.wordpress.org", name="install of a missing theme without network is refused"),
    Step(THEME, {"action": "switch", "theme": "twentytwentyfive"}, public("wordpress-theme-setup/v1", THEME, action="switch", target__active=True, operations__0__operation="switch"), name="switch activates a theme"),
    Step(THEME, {"action": "switch", "theme": "no-such"}, fails="theme-missing", name="switch to a missing theme is refused"),
]

SESSION_STEPS = [
    Step("wordpress.session", {"session": "shop.editor_1", "role": "editor", "output-dir": "auth/editor"}, public("wordpress-session/v1", "wordpress.session", session="shop.editor_1", artifacts__summary="/tmp/codebox-artifacts/auth/editor/wordpress-session.json"), name="a session name with a dot, and a relative output directory"),
    Step("wordpress.rest-request", {"path": "/commands/v1/private", "session": "shop.editor_1"}, has(status=200, command="wordpress.rest-request"), name="the session with a dot in its name is usable"),
    Step("wordpress.session", {"session": "a.storage-state"}, fails="session-invalid", says=".storage-state", name="a session name that is another session's file is refused"),
    Step("wordpress.session", {"output-dir": "../x"}, fails=INVALID, says="..", name="an output directory outside the bundle is refused"),
    Step("wordpress.nonce", {"session": "shop.editor_1"}, public("wordpress-nonce/v1", "wordpress.nonce", artifacts__storageState="/tmp/codebox-sessions/shop.editor_1.storage-state.json")),
    Step("wordpress.action-auth", {"action": "x", "output-dir": "/tmp/out"}, public("wordpress-action-auth/v1", "wordpress.action-auth", artifacts__summary="/tmp/out/wordpress-action-auth.json")),
]

PHP_STEPS = [
    Step(PHP, {"code": "<?php echo json_encode(['a' => 1]);"}, has(a=1), name="code with an opening tag runs"),
    Step(PHP, {"code": "\n<?php\ndeclare(strict_types=1);\necho json_encode(['b' => strlen('x')]);"}, has(b=1), name="a tag after blank lines may be followed by declare"),
    Step(PHP, {"code": "echo json_encode(['c' => function_exists('add_action')]);", "bootstrap": "", "capture-diagnostics": "", "diagnostics-max-items": ""}, has(c=True), name="blank options count as not given"),
    Step(PHP, {"code": "<?php echo json_encode(['d' => function_exists('add_action')]);", "bootstrap": "none"}, has(d=False), name="code with a tag runs without WordPress"),
    Step(PHP, {"code": "echo json_encode(['n' => count(get_posts())]);", "capture-diagnostics": "wpdb-queries", "diagnostics-max-items": "100000", "diagnostics-max-bytes": "99999999"}, has(n=1), name="diagnostics above the limit"),
    Words(WP, ["command=wp option get active_plugins --format=json"], lambda d: equal(d, [MAIN]), name="a leading wp is left out"),
    Words(WP, ["command=wp", "option", "get", "active_plugins", "--format=json"], lambda d: equal(d, [MAIN]), name="further arguments are words of the command line"),
    Step(INVOKE, {"command": "wp option get active_plugins --format=json", "mutates": ""}, public("wordpress-execution-action-result/v1", INVOKE, result__json=[MAIN], result__exitCode=0)),
    Words(INVOKE, ["command=option", "get", "blogname", "mutates=no"], public("wordpress-execution-action-result/v1", INVOKE, result__stdout="Codebox\n"), name="words of invoke-wp-cli"),
    Step(INVOKE, {"command": "no-such"}, public("wordpress-execution-action-result/v1", INVOKE, result__exitCode=1, status="error"), fails="exit-status", name="a failed command has the public document"),
    Step("command-agent-run", {"command": WP, "args-json": ["command=option get blogname"], "session-id": "s", "parse-json": "no"}, public("command-agent-run/v1", "command-agent-run", status="ok", target__command=WP, exitCode=0, stdout="Codebox\n", sessionId="s"), name="command-agent-run executes a command of the registry"),
    Step("command-agent-run", {"command": PHP, "args-json": ["code=echo json_encode(['a' => 1]);"], "parse-json": "1"}, public("command-agent-run/v1", "command-agent-run", result__a=1), name="parse-json returns the output of the target"),
    Step("command-agent-run", {"command": WP, "args-json": ["command=no-such"]}, lambda row: public("command-agent-run/v1", "command-agent-run", status="error", exitCode=1)(json.loads(row["stdout"])), fails="wp_codebox_run_failed", name="a failed target fails command-agent-run"),
    Step("inspect-mounted-inputs", {}, lambda d: equal((d["mounts"][0]["target"], d["mounts"][0]["source"], d["mounts"][0]["exists"]), (PLUGIN, PLUGIN, True))),
]

SUM = {"name": "commands/add", "input": {"a": 2, "b": 3}}
SCHEMA = {"type": "object", "properties": {"sum": {"const": 5}, "schema": {"type": "string"}}, "required": ["sum"]}
REQUEST_STEPS = [
    Step(ABILITY, {**SUM, "expected-result-schema": '"commands/sum/v1"'}, has(result__sum=5, command=ABILITY), name="an expected schema id as a JSON string"),
    Step(ABILITY, {**SUM, "expected-result-schema": SCHEMA}, has(result__sum=5), name="an expected JSON Schema that the result has"),
    Step(ABILITY, {**SUM, "expected-result-schema": {**SCHEMA, "properties": {"sum": {"type": "string"}}}}, fails="result-schema", says="sum", name="an expected JSON Schema that the result has not"),
    Step(ABILITY, {**SUM, "principal": {"user": "admin"}}, has(user__login="admin"), name="principal is an object"),
    Step(ABILITY, {**SUM, "principal": {"role": "editor"}}, has(user__roles=["editor"]), name="principal names a role"),
    Step(ABILITY, {**SUM, "principal-json": {"user_id": 1}}, has(user__login="admin"), name="principal-json names an id"),
    Step(ABILITY, {**SUM, "principal": "admin"}, has(user__login="admin"), name="principal is a login"),
    Step(ABILITY, {**SUM, "principal": {"rol": "editor"}}, fails=INVALID, says='no member "rol"', name="an unknown member of principal is refused"),
    Step("wordpress.http-request", {"url": "wp-login.php", "method": "HEAD", "expect-status": ""}, has(status=200), name="a path without its slash"),
    Step("wordpress.collect-workload-result", {"artifact": "none.json"}, fails="artifact-missing"),
    php("@mkdir('/tmp/codebox-artifacts'); file_put_contents('/tmp/codebox-artifacts/r.json', '{\"n\":1}'); echo '{}';", None, "setup: a workload result"),
    Step("wordpress.collect-workload-result", {"artifact": "r.json", "schema": ""}, public("typed-workload-artifact/v1", "wordpress.collect-workload-result", payload={"n": 1})),
    Step("wordpress.capture-state-bundle", {"label": "Ä label: with / everything", "snapshot-include-wp-content": "plugins/commands-plugin"}, public("wordpress-state-bundle-capture/v1", "wordpress.capture-state-bundle", label="Ä label: with / everything", artifacts__runtimeSnapshot="/tmp/codebox-artifacts/wordpress-state.json", artifacts__manifest="/tmp/codebox-artifacts/wordpress-state-manifest.json")),
    Step("wordpress.export-replay-package", {"output-dir": "replay/one", "landing-page": "wp-admin/", "import-ms": "100000000000", "snapshot-include-wp-content": "plugins/commands-plugin"},
         public("wordpress-replay-export/v1", "wordpress.export-replay-package", landingPage="/wp-admin/", artifacts__manifest="/tmp/codebox-artifacts/replay/one/manifest.json", artifacts__runtimeSnapshot="/tmp/codebox-artifacts/replay/one/files/runtime-snapshot.json")),
    Step("wp-codebox.checkpoint-create", {"name": "a b: c", "metadata-json": "", "snapshot-database-tables": ""}, public("runtime-checkpoint-result/v1", "wp-codebox.checkpoint-create", status="created", operation="create", checkpoint__name="a b: c")),
    Step("wp-codebox.checkpoint-create", {"name": "part", "snapshot-database-tables": "wp_posts"}, lambda row: equal(json.loads(row["stdout"])["command"], "wp-codebox.checkpoint-create"), fails=INVALID, says="snapshot-database-tables is not supported", name="a filter of a checkpoint is refused by name"),
    Step("wp-codebox.checkpoint-list", {}, public("runtime-checkpoint-result/v1", "wp-codebox.checkpoint-list", operation="list", checkpoints__0__name="a b: c")),
    Step("wp-codebox.checkpoint-restore", {"name": "a b: c"}, public("runtime-checkpoint-result/v1", "wp-codebox.checkpoint-restore", operation="restore", checkpoint__name="a b: c")),
]

SLUG = "surfaces-plugin"
OWN = "final class OwnTest extends PHPUnit\\Framework\\TestCase { public function test_one(): void { $this->assertTrue( defined( 'preloaded' ) ); } }"
LIBRARY = """
foreach (array('/tmp/library/vendor', '/tmp/loose', WP_PLUGIN_DIR . '/needed') as $d) { mkdir($d, 0755, true); }
file_put_contents('/tmp/library/vendor/autoload.php', '<?php define("library_loaded", 1);');
file_put_contents('/tmp/loose/loose.php', "<?php\\n/* Plugin Name: Loose */\\ndefine('loose_loaded', function_exists('add_action'));");
file_put_contents(WP_PLUGIN_DIR . '/needed/main.php', "<?php\\n/* Plugin Name: Needed */\\ndefine('needed_loaded', 1);");
file_put_contents('/tmp/preload.php', '<?php define("preloaded", ! function_exists("add_action"));');
file_put_contents('/tmp/suite.xml', '<phpunit><testsuites><testsuite name="one"><file>' . WP_PLUGIN_DIR . '/surfaces-plugin/tests/AddTest.php</file></testsuite></testsuites></phpunit>');
mkdir(WP_PLUGIN_DIR . '/surfaces-plugin/tests/bench');
file_put_contents(WP_PLUGIN_DIR . '/surfaces-plugin/tests/bench/product.php', '<?php return fn() => 6 * 7;');
echo '{}';
"""


def tests(name, args, expect=None, **more):
    return Step(PHPUNIT, {"plugin-slug": SLUG, **args}, expect, name=name, **more)


def passed(count):
    return has(status="passed", command=PHPUNIT, summary__passed=count, rawLogReferences=[{"kind": "test-results", "path": "/tmp/codebox-artifacts/wp-codebox-result.txt"}])


TEST_STEPS = [
    Step("wordpress.ensure-plugin-active", {"plugin": SLUG}),
    php(LIBRARY, None, "setup: libraries and plugins that tests need"),
    tests("blank options count as not given", {"discovery-only": "", "changed-tests-json": "", "phpunit-xml": "", "cwd": "", "test-root": "", "env-json": "", "database-type": "", "bootstrap-mode": "", "multisite": "", "project-bootstrap": ""}, passed(2)),
    tests("an empty list of changed tests selects none", {"changed-tests-json": []}, passed(2)),
    tests("an empty path of a changed test is refused", {"changed-tests-json": [""]}, fails=INVALID, says="none of them empty"),
    tests("bootstrap-mode managed loads WordPress", {"bootstrap-mode": "managed", "test-file": "tests/AddTest.php"}, passed(2)),
    tests("database-type sqlite", {"database-type": "sqlite", "test-file": "tests/AddTest.php"}, passed(2)),
    tests("database-type mysql is refused with the reason", {"database-type": "mysql"}, fails=UNSUPPORTED, says="SQLite only"),
    tests("code with an opening tag on the line of its class", {"code": "<?php " + OWN, "preload-files-json": ["/tmp/preload.php"]}, passed(1)),
    tests("preload files run before WordPress", {"code": "$this->assertTrue( preloaded );", "preload-files-json": ["/tmp/preload.php"]}, passed(1)),
    tests("code without a class is the body of a test", {"code": "<?php $this->assertTrue( is_plugin_active( 'surfaces-plugin/surfaces-plugin.php' ) );"}, passed(1)),
    tests("a failing body of a test fails", {"code": "$this->assertTrue( false );"}, fails=FAILED, says="1 of 1"),
    tests("dependency-mounts loads plugins and libraries", {"dependency-mounts": f"/tmp/library, /tmp/loose, {PLUGINS}/needed", "code": "$this->assertSame( array( 1, true, 1 ), array( library_loaded, loose_loaded, needed_loaded ) );"}, passed(1)),
    tests("dependency-mounts without code is refused", {"dependency-mounts": "/tmp"}, fails=INVALID, says="neither a plugin nor"),
    tests("dependency-plugins-json activates plugins", {"dependency-plugins-json": [{"slug": "needed"}, "surfaces-plugin/surfaces-plugin.php"], "code": "$this->assertSame( 1, needed_loaded );"}, passed(1)),
    tests("dependency-plugins-json of a missing plugin is refused", {"dependency-plugins-json": ["no-such"]}, fails=INVALID, says="no plugin"),
    tests("the named configuration is used", {"phpunit-xml": "/tmp/suite.xml", "phpunit-xml-default": "1"}, passed(2)),
    tests("a missing default configuration is not an error", {"phpunit-xml": "phpunit.xml.dist", "phpunit-xml-default": "true"}, passed(2)),
    tests("a missing configuration that is no default is refused", {"phpunit-xml": "phpunit.xml.dist"}, fails=INVALID, says="phpunit-xml"),
    tests("the role of the autoloader", {"autoload-file": "/tmp/library/vendor/autoload.php", "autoload-file-role": "project", "code": "$this->assertSame( 1, library_loaded );"}, passed(1)),
    tests("constants with small letters and lists", {"wp-config-defines-json": {"preloaded": [1, 2]}, "env-json": {"NOTHING": None}, "code": "$this->assertSame( array( 1, 2 ), preloaded );"}, passed(1)),
    tests("discovery-only with a boolean in capitals", {"discovery-only": "TRUE"}, has(total=3, summary__unknown=3, suites=[])),

    Step(BENCH, {"plugin-slug": SLUG, "iterations": "2", "warmup": "", "lifecycle-json": "", "reset-policy-json": {"mode": "none"}}, public("bench-results/v1", BENCH, scenarios__0__id="sum", scenarios__1__id="product", provenance__plugin=SLUG, diagnostics=[]), name="workloads of bench and tests/bench"),
    Step(BENCH, {"plugin-slug": SLUG, "iterations": "1001", "warmup": "0", "workloads-json": [{"id": "one", "code": "<?php 1;"}]}, public("bench-results/v1", BENCH, scenarios__0__iterations=1001), name="more than a thousand iterations"),
    Step(BENCH, {"plugin-slug": SLUG, "iterations": "1", "warmup": "0", "workloads-json": [
        {"id": "cli", "type": "wp-cli", "command": "wp option get blogname"}, {"id": "rest", "type": "rest-request", "path": "/wp/v2/types"},
        {"id": "both", "run": [{"type": "php", "code": "1;"}, {"type": "db-operation", "operation": {"operation": "select", "sql": "SELECT 1"}}]},
        {"id": "named", "command": "wordpress.wp-cli", "args": ["command=option get home"]}], "lifecycle-json": {"setup": [{"type": "wp-cli", "command": "option update bench_setup 1"}]}},
        public("bench-results/v1", BENCH, scenarios__3__status="ok", scenarios__2__status="ok", scenarios__0__status="ok"), name="workloads that are commands and lists of steps"),
    php("echo json_encode(['setup' => get_option('bench_setup')]);", has(setup="1"), "the setup of the workloads ran"),
    Step(BENCH, {"plugin-slug": SLUG, "iterations": "1", "workloads-json": [{"id": "no", "type": "wp-cli", "command": "no-such"}]}, public("bench-results/v1", BENCH, status="error", diagnostics__0__scenario="no"), fails=FAILED, says="no", name="a workload that is a failing command"),
    Step(BENCH, {"plugin-slug": SLUG, "workloads-json": [{"id": "x", "type": "browser"}]}, fails=INVALID, says="the types are", name="an unknown type of workload is refused"),
    php("echo json_encode(['network' => is_multisite()]);", has(network=False), "the site is no network"),
    tests("multisite needs WordPress", {"multisite": "1", "bootstrap-mode": "none"}, fails=INVALID, says="multisite needs WordPress"),
    tests("multisite tests run on a network", {"multisite": "1", "code": "$this->assertTrue( is_multisite() );"}, passed(1)),
    Step(BENCH, {"plugin-slug": SLUG, "reset-policy-json": {"mode": "checkpoint-per-case"}}, fails=INVALID, says="use checkpoints", name="a reset policy that a benchmark cannot do is refused"),
]


def written(bench, result):
    """Checks that the files of a relative output directory are in the bundle below that directory."""
    paths = [ref["path"] for row in result["workflow"]["executions"] for ref in row.get("artifactRefs", [])]
    for end in ("auth/editor/wordpress-session.json", "replay/one/blueprint.json", "replay/one/files/runtime-snapshot.json"):
        must(any(path.startswith("files/commands/") and path.endswith(end) for path in paths), f"no {end}: {paths}")


GROUPS = [
    Group("values", [*PLUGIN_STEPS, *SESSION_STEPS, *PHP_STEPS, *REQUEST_STEPS], after=written),
    Group("tests-and-benchmarks", TEST_STEPS, fixture=SLUG),
]

ALLOWED = {"network": "deny", "filesystem": "readwrite-mounts", "commands": ["command-agent-run"], "secrets": "none", "approvals": "never"}
TARGET = {"command": "command-agent-run", "args": [f"command={WP}", 'args-json=["command=option list"]']}

CASES = [
    ("wp without a command is refused", refused({"command": WP, "args": ["command=wp "]}, INVALID, "plugin list")),
    ("a target of command-agent-run that the policy does not allow is refused", refused(TARGET, "runtime-command-disallowed", WP, policy=ALLOWED)),
    ("command-agent-run cannot run itself", refused({"command": "command-agent-run", "args": ["command=command-agent-run"]}, INVALID, "names this command itself")),
]


@pytest.mark.parametrize("case", cases(GROUPS, CASES))
def test_argument_value_allowed_by_the_published_interface_has_its_documented_effect_or_is_refused(bench, case):
    case(bench)
