"""Commands that act on the guest's site: sessions, requests, abilities, actions, workloads."""

import json
import os

import pytest
from steps import PLUGIN, Group, Step, cases, equal, refused

from harness import contents, must

INVALID = "wp_codebox_input_invalid"

ADMIN = {"id": 1, "login": "admin", "roles": ["administrator"]}
NAMES = ("wordpress_logged_in_", "wordpress_")


def session(document):
    equal(document["schema"], "wp-codebox/wordpress-session/v1")
    equal(document["user"]["login"], "codebox-editor")
    equal(document["user"]["roles"], ["editor"])
    equal(document["storageState"], "/tmp/codebox-sessions/writer.storage-state.json")
    must(len(document["cookies"]) == 2 and all(c.startswith(NAMES) for c in document["cookies"]), f"cookies: {document['cookies']}")
    equal(document["origins"], ["http://localhost"])
    equal((document["command"], document["status"]), ("wordpress.session", "ok"))
    files = {"auth": "/tmp/codebox-sessions/writer.json", "storageState": document["storageState"], "summary": "/tmp/codebox-artifacts/wordpress-session.json"}
    equal({name: path for name, path in document["artifacts"].items() if name != "files"}, files)


def state(document):
    """Checks the session cookies that PHP read from a file in the guest. The session command's own result does not contain them."""
    values = [cookie["value"] for cookie in document["cookies"]]
    must(len(values) == 3 and all(v.startswith("codebox-editor|") for v in values), f"cookies: {document}")


def nonce(document):
    """Checks that the result describes a nonce and names its file, but does not contain the nonce's value."""
    equal((document["nonce"], document["action"], document["lifetimeSeconds"]), ({"present": True}, "commands-save", 43200))
    must(document["artifacts"]["auth"].startswith("/tmp/codebox-auth/"), f"no file: {document}")
    must("value" not in document and set(document["artifacts"]) <= {"auth", "storageState", "summary", "files"}, f"more than it may show: {document}")


# Checks that the stored nonces are valid. Prints dots between their characters, so that no output contains a nonce.
NONCES = """
$rows = array();
foreach ( glob( '/tmp/codebox-auth/*.json' ) as $file ) {
    $kept = json_decode( file_get_contents( $file ), true );
    $mode = decoct( fileperms( $file ) & 07777 ) . ' ' . decoct( fileperms( dirname( $file ) ) & 07777 );
    unset( $_COOKIE[ LOGGED_IN_COOKIE ] );
    if ( isset( $kept['session'] ) ) {
        foreach ( json_decode( file_get_contents( "/tmp/codebox-sessions/$kept[session].storage-state.json" ), true )['cookies'] as $cookie ) {
            $_COOKIE[ $cookie['name'] ] = $cookie['value'];
        }
    }
    wp_set_current_user( $kept['user']['id'] ?? 0 );
    $rows[] = array(
        'for' => $kept['session'] ?? $kept['user']['login'] ?? 'visitor',
        'mode' => $mode,
        'holds' => wp_verify_nonce( $kept['nonce'], $kept['action'] ),
        'other' => wp_verify_nonce( $kept['nonce'], 'another' ),
        'value' => implode( '.', str_split( $kept['nonce'] ) ),
    );
}
echo json_encode( $rows );
"""


def kept_nonces(rows):
    shown = sorted([row["for"], row["mode"], row["holds"], row["other"], len(row["value"])] for row in rows)
    equal(shown, [[holder, "600 700", 1, False, 19] for holder in ("admin", "boss", "visitor", "writer")])


def nonces_stay_in_the_guest(bench, result):
    """Checks that no nonce value is in the result, the bundle or any other file of the run."""
    rows = next(json.loads(row["stdout"]) for row in result["workflow"]["executions"] if '"holds"' in row["stdout"])
    values = [row["value"].replace(".", "") for row in rows]
    files = 0
    for path, content in contents(os.path.join(bench.state, "sites", bench.site)):
        files += b"/tmp/codebox-auth/" in content
        must(not any(value.encode() in content for value in values), f"{path} has a nonce")
    must(files > 0, "no file names where the nonces are: the scan read nothing")
    must(not any(value in json.dumps(result) for value in values), "the result has a nonce")


def has(**wanted):
    def check(document):
        for name, value in wanted.items():
            found = document
            for part in name.split("__"):
                found = found[int(part)] if isinstance(found, list) else found.get(part)
            equal(found, value, name)
    return check


def queries(row):
    must(any(ref["role"] == "wpdb-queries" for ref in row.get("artifactRefs", [])), f"no diagnostics: {json.dumps(row)[:800]}")


def php(code):
    return {"code": code}


REST = "wordpress.rest-request"
HTTP = "wordpress.http-request"
HOOK = "wordpress.invoke-hook"
CRON = "wordpress.invoke-cron-event"
ACTION = "wordpress.admin-action"

BASIC = Group("core", [
    Step("wordpress.ensure-plugin-active", {"plugin": "commands-plugin"}, has(active=True, changed=True, version="1.2.3")),
    Step("wordpress.ensure-plugin-active", {"plugin": "commands-plugin/commands-plugin.php"}, has(active=True, changed=False), name="activating an active plugin changes nothing"),
    Step("wordpress.plugin-state", {"plugin": "no-such"}, has(installed=False, active=False)),
    Step("wordpress.plugin-state", {"plugin": "no-such", "action": "activate"}, fails="plugin-missing", says="mount its directory"),
    Step("wp-codebox.agent-runtime-probe", {"component": f"{PLUGIN},loadAs=plugin", "provider-plugin-slugs": "no-such"},
         has(ready=False, status="missing", missing=["no-such"], component__slug="commands-plugin", component__installed=True), name="a probe names the provider plugin that is missing"),
    Step("wp-codebox.agent-runtime-probe", {}, has(ready=True, status="ready", component=None, missing=[])),
    Step("wp-codebox.agent-runtime-probe", {"component": "x,version=1"}, fails=INVALID, says='component has no member "version"', name="an unknown member of a component is refused"),
    Step("wordpress.plugin-state", {"plugin": "../../wp-config.php"}, fails="wp_codebox_input_invalid", name="a plugin path outside the plugins directory is refused"),
    Step("wordpress.plugin-state", {"path": PLUGIN, "action": "deactivate"}, has(active=False, changed=True), name="a plugin is deactivated by its path"),
    Step("wordpress.plugin-setup", {"slug": "commands-plugin"}, has(active=True, action="activate", status="ok")),
    Step("wordpress.plugin-setup", {}, lambda d: must(any(p["plugin"] == "commands-plugin/commands-plugin.php" and p["active"] for p in d["plugins"]), "not in the list"), name="plugin-setup without arguments lists plugins"),
    Step("wordpress.theme-setup", {}, lambda d: equal([t["active"] for t in d["themes"]].count(True), 1, "active themes"), name="theme-setup without arguments lists themes"),
    Step("wordpress.theme-setup", {"theme": "no-such"}, fails="theme-missing"),

    Step("wordpress.session", {"session": "writer", "role": "editor"}, session),
    Step("wordpress.run-php", php("echo file_get_contents('/tmp/codebox-sessions/writer.storage-state.json');"), state, name="the storage state of a session has cookies"),
    Step("wordpress.session", {"user": "nobody"}, fails="user-missing"),
    Step("wordpress.session", {"role": "no-such"}, fails="role-missing", says="administrator"),
    Step("wordpress.session", {"session": "../x"}, fails="session-invalid"),
    Step("wordpress.nonce", {"action": "commands-save", "session": "writer"}, nonce),
    Step("wordpress.nonce", {"action": "commands-save", "user": "admin", "output-dir": "/tmp/auth"}, lambda d: (nonce(d), has(user=ADMIN, file="/tmp/auth/wordpress-nonce.json")(d)), name="a nonce is created for a user"),
    Step("wordpress.nonce", {"action": "commands-save"}, lambda d: (nonce(d), has(user=None)(d)), name="a nonce is created for a visitor"),
    Step("wordpress.action-auth", {"action": "commands-save", "user": "admin", "session": "boss"}, lambda d: (nonce(d), has(schema="wp-codebox/wordpress-action-auth/v1", session="boss", user=ADMIN)(d))),
    Step("wordpress.run-php", php(NONCES), kept_nonces, name="nonces saved in the guest are valid for their action only"),

    Step(REST, {"path": "/wp-json/commands/v1/echo?a=1", "params-json": {"b": 2}, "headers-json": {"X-Asked": "yes"}},
         has(status=200, data__params__a="1", data__params__b=2, data__user=0, data__header="yes", user=None)),
    Step(REST, {"path": "/commands/v1/private"}, has(status=401), name="a private REST route answers 401 without a user"),
    Step(REST, {"path": "/commands/v1/private", "user": "admin"}, has(status=200, data__secret="for editors"), name="a private REST route answers 200 to an authorized user"),
    Step(REST, {"path": "/commands/v1/private", "session": "writer"}, has(status=200, user__login="codebox-editor"), name="a private REST route answers 200 to a session"),
    Step(REST, {"path": "/commands/v1/private", "session": "writer", "user": "admin"}, fails="session-differs"),
    Step(REST, {"path": "/commands/v1/private", "session": "nobodys"}, fails="session-missing"),
    Step("wordpress.run-php", php("$s = json_decode(file_get_contents('/tmp/codebox-sessions/boss.json'), true); $s['token'] .= 'x'; file_put_contents('/tmp/codebox-sessions/ended.json', json_encode($s));"), name="setup: copy a session with an altered token"),
    Step(REST, {"path": "/commands/v1/private", "session": "ended"}, fails="session-missing", name="a session with an altered token is refused"),
    Step(REST, {"path": "/commands/v1/private", "session": "boss"}, has(status=200, user__login="admin"), name="the session with the original token still works"),
    Step(REST, {"path": "/wp/v2/posts", "method": "POST", "body-json": {"title": "By REST", "status": "publish"}, "user": "admin"}, has(status=201, data__title__raw="By REST"), name="a POST request creates a post"),
    Step(REST, {"path": "/no/such"}, has(status=404, data__code="rest_no_route"), name="an unknown REST route answers 404"),

    Step("wordpress.ability", {"name": "commands/add", "input": {"a": 2, "b": 3}, "expected-result-schema": "commands/sum/v1"},
         has(status="completed", result__sum=5, user=ADMIN)),
    Step("wordpress.ability", {"name": "commands/add", "input": {"a": 2, "b": 3}, "expected-result-schema": "other/v1"}, fails="result-schema"),
    Step("wordpress.ability", {"name": "commands/add", "input": {"a": "two"}}, fails="ability_invalid_input"),
    Step("wordpress.ability", {"name": "commands/add", "principal-json": {"rol": "subscriber"}}, fails=INVALID, says='principal-json has no member "rol"', name="an unknown member of principal-json is refused"),
    Step("wordpress.export-browser-storage-state", {"storage-state": "x", "user-json": {"nick": "ed"}}, fails=INVALID, says='user-json has no member "nick"', name="an unknown member of user-json is refused"),
    Step("wordpress.ability", {"name": "commands/add", "input": {"a": 1, "b": 1}, "principal-json": {"role": "subscriber"}}, fails="ability_invalid_permissions", name="an ability that the user may not run is refused"),
    Step("wordpress.ability", {"name": "no/such"}, fails="ability-missing", says="commands/add"),

    Step(HTTP, {"url": "/?rest_route=/commands/v1/echo", "expect-status": "200"}, has(via="site", status=200, json__user=0)),
    Step(HTTP, {"url": "http://localhost/wp-login.php"}, lambda d: must(d["status"] == 200 and "loginform" in d["body"], f"no login form: {d['status']}"), name="a page of the site is fetched by its full URL"),
    Step(HTTP, {"url": "/?p=99999", "expect-status": "200"}, fails="expect-status", says="404"),
    Step(HTTP, {"url": "https://example.org/"}, fails="egress-denied", says="policy"),
    Step(HTTP, {"url": "file:///etc/passwd"}, fails="wp_codebox_input_invalid"),
    Step(HTTP, {"url": "/x y"}, fails="wp_codebox_input_invalid", name="a URL with a space is refused"),

    Step(HOOK, {"hook": "commands_read", "mutates": "0"}, has(output="Codebox", mutation__observed=False, mutation__declared=False, action__callbacks=1)),
    Step(HOOK, {"hook": "commands_write", "args-json": ["y"], "capability": "manage_options"},
         has(output="wrote y", mutation__observed=True, capability__required="manage_options", destructiveBoundary__kind="sandbox")),
    Step(HOOK, {"hook": "commands_write", "args-json": ["z"], "mutates": "0"}, fails="mutated", says="wrote to the database"),
    Step(HOOK, {"hook": "commands_write", "destructive-boundary": "none"}, fails="destructive-boundary"),
    Step(HOOK, {"hook": "commands_read", "mutates": "0", "capability": "fly"}, fails="capability", says="fly"),
    Step("wordpress.run-php", php("echo json_encode([get_option('commands_written')]);"), lambda d: equal(d, ["z"]), name="a hook that is refused before it runs writes nothing"),
    Step(HOOK, {"hook": "commands_die"}, fails="died", says="not like this"),
    Step(HOOK, {"hook": "commands_exit"}, fails="wp_codebox_command_failed", says="ended PHP"),
    Step(HOOK, {"hook": "commands_noise"}, lambda d: must("forged" not in d["schema"] and d["status"] == "ok", "forged"), name="JSON printed by a hook is not taken for the result document"),
    Step(HOOK, {"hook": "commands_stuck", "mutates": "0"}, has(status="ok", output="stuck"), name="an output buffer that cannot be closed does not fail the hook"),
    Step(HOOK, {"hook": "commands_forge"}, fails="wp_codebox_command_failed", says="signal 9", name="a forged result document of a killed PHP process is not accepted"),

    Step(CRON, {"hook": "commands_tick", "operation": "schedule", "timestamp": "4102444800"}, has(status="ok", action__scheduled=None, result__next=4102444800)),
    Step(CRON, {"hook": "commands_tick", "operation": "run"}, has(action__scheduled__timestamp=4102444800, result__next=False, mutation__observed=True), name="running a cron event removes it from the schedule"),
    Step(CRON, {"hook": "commands_tick", "operation": "unschedule"}, fails="event-missing"),
    Step("wordpress.run-php", php("echo json_encode([get_option('commands_ticks')]);"), lambda d: equal([str(d[0])], ["1"]), name="the cron event ran once"),

    Step("wordpress.invoke-wp-cli", {"command": "option get blogname", "mutates": "no"}, has(output="Codebox\n", exitCode=0, mutation__observed=False, action__name="option get")),
    Step("wordpress.invoke-wp-cli", {"command": "option update blogname 'A b'"}, has(mutation__observed=True, mutation__writes__tables=["wp_options"])),
    Step("wordpress.invoke-wp-cli", {"command": "option update blogname x", "mutates": "no"}, fails="mutated"),
    Step("wordpress.invoke-wp-cli", {"command": "no-such"}, fails="exit-status", says="exited with 1"),
    Step("wordpress.invoke-wp-cli", {"command": "option get 'x"}, fails="wp_codebox_input_invalid", says="unclosed"),
    *(Step("wordpress.invoke-wp-cli", {"command": f"db {command}"}, fails="exit-status", says="is SQLite, and `wp db", name=f"wp db {command} on SQLite names the service mysql")
      for command in ("query 'SELECT 1'", "export -", "check", "size", "size --tables", "reset --yes", "drop --yes", "create", "import x.sql", "optimize", "repair", "cli")),
    *(Step("wordpress.invoke-wp-cli", {"command": f"db {command}"}, has(exitCode=0), name=f"wp db {command} works on SQLite") for command in ("tables", "prefix", "columns wp_users", "search Codebox")),
    Step("wordpress.wp-cli", {"command": "db query 'SELECT 1'"}, lambda row: must("--service mysql" in row["stderr"], row["stderr"]), fails="wp_codebox_run_failed", name="wordpress.wp-cli says that the database is SQLite"),

    Step(ACTION, {"action-json": {"kind": "ajax", "action": "commands_who", "user": "admin"}}, has(httpStatus=200, result__data__login="admin")),
    Step(ACTION, {"action-json": {"kind": "ajax", "action": "commands_who", "session": "writer"}}, has(result__data__login="codebox-editor"), name="an AJAX action runs as the user of its session"),
    Step(ACTION, {"action-json": {"kind": "ajax", "action": "commands_who"}}, has(httpStatus=400, status="error", errors__0__code="http-status"), name="an AJAX action without a user is refused"),
    Step(ACTION, {"action-json": {"action": "commands_save", "user": "admin", "nonce": "commands-save", "params": {"value": "kept"}}},
         has(httpStatus=302, redirect="http://localhost/wp-admin/index.php?saved=1"), name="an admin action with a valid nonce succeeds"),
    Step(ACTION, {"action-json": {"action": "commands_save", "user": "admin", "params": {"value": "lost"}}}, has(httpStatus=403), name="an admin action without a nonce answers 403"),
    Step(ACTION, {"action-json": {"kind": "ajax", "action": "commands_who"}, "destructive-boundary-json": {"disposable": True, "name": "mine"}}, has(disposableDestructiveBoundary={"satisfied": True, "disposable": True, "name": "mine", "kind": "sandbox"}), name="destructive-boundary-json is repeated in the result"),
    Step(ACTION, {"action-json": {"action": "commands_save"}, "destructive-boundary-json": {"kind": "none"}}, fails="destructive-boundary"),
    Step(ACTION, {"action-json": {"act": "x"}}, fails="wp_codebox_input_invalid", says='no member "act"'),
    Step("wordpress.run-php", php("echo json_encode([get_option('commands_saved')]);"), lambda d: equal(d, ["kept"]), name="only the admin action with a valid nonce saved its value"),

    Step("wordpress.run-php", {"code": "echo json_encode(['n' => count(get_posts())]);", "capture-diagnostics": "wpdb-queries", "diagnostics-max-items": "5"},
         has(n=2), name="run-php with query diagnostics prints its output"),
    Step("wordpress.run-php", php("exit(3);"), fails="wp_codebox_run_failed", says="exited with 3"),
    Step("command-agent-run", {"command": "sh", "args-json": ["-c", "echo \"{\\\"s\\\":\\\"$CODEBOX_SESSION_ID\\\"}\""], "session-id": "s-1", "parse-json": "yes"}, has(s="s-1")),
    Step("command-agent-run", {"command": "echo", "args-json": ["text"], "parse-json": "yes"}, fails="output-invalid"),
    Step("inspect-mounted-inputs", {}, lambda d: equal(d["mounts"][0]["target"], PLUGIN)),
], after=nonces_stay_in_the_guest)

MAKE = """
@mkdir('/tmp/codebox-artifacts');
file_put_contents('/tmp/codebox-artifacts/result.json', json_encode(['schema' => 'commands/made/v1', 'n' => 7]));
file_put_contents('/tmp/codebox-artifacts/bad.json', '{');
file_put_contents('/tmp/large.json', str_repeat(' ', 1100000));
file_put_contents('/tmp/steps.json', json_encode(['steps' => [
  ['command' => 'wordpress.wp-cli', 'args' => ['command' => 'option get blogname']],
  ['command' => 'wordpress.rest-request', 'args' => ['path=/commands/v1/echo', 'params-json={"q":1}']],
  ['command' => 'wordpress.run-php', 'args' => ['code' => 'exit(4);'], 'allowFailure' => true],
  ['command' => 'wordpress.run-php', 'args' => ['code' => 'echo json_encode(wp_get_environment_type());']],
]]));
file_put_contents('/tmp/broken.json', json_encode([['command' => 'wordpress.run-php', 'args' => ['code' => 'exit(5);']], ['command' => 'wordpress.wp-cli', 'args' => []]]));
foreach (['{"steps":[{"command":"wordpress.wp-cli"}],"repeat":2}', '[{"command":"wordpress.wp-cli","args":{"command":"option get blogname"},"allowfailure":true}]', '[{"command":"wordpress.run-php","args":["cod=exit(1);"]}]'] as $i => $text) { file_put_contents("/tmp/extra-$i.json", $text); }
file_put_contents('/tmp/strange.json', json_encode([['command' => 'wordpress.browser-probe', 'args' => ['url' => '/']]]));
file_put_contents('/tmp/work.php', '<?php echo json_encode(["home" => home_url()]);');
"""


def steps(document):
    equal([row["status"] for row in document["steps"]], ["ok", "ok", "error", "ok"])
    equal(document["steps"][0]["output"], "Codebox\n")
    equal(document["steps"][1]["result"]["data"]["params"], {"q": 1})
    equal(document["steps"][3]["output"], '"development"')


def kept(bench, result):
    """Checks that a file that a command wrote is in the bundle."""
    rows = [row for row in result["workflow"]["executions"] if row.get("artifactRefs")]
    must(rows, "no step refers to a file")
    paths = [ref["path"] for row in rows for ref in row["artifactRefs"]]
    must(any(path.endswith("/result.json") for path in paths), f"paths: {paths}")
    bundle = os.path.join(bench.state, "sites", bench.site, "artifacts")
    for path in paths:
        found = [os.path.join(d, path) for d in [os.path.join(bundle, name) for name in os.listdir(bundle)] if os.path.isfile(os.path.join(d, path))]
        must(found, f"{path} is in no bundle")


SECRET = "codebox-known-secret-4711"


def clean(bench, result):
    """Checks that a value named as secret is in no result and no bundle file."""
    must(SECRET not in json.dumps(result), "the result shows the secret")
    artifacts = os.path.join(bench.state, "sites", bench.site, "artifacts")
    seen = 0
    for directory, _, files in os.walk(artifacts):
        for name in files:
            with open(os.path.join(directory, name), "rb") as file:
                content = file.read()
            must(SECRET.encode() not in content, f"{name} shows the secret")
            seen += content.count(b"[redacted]") + content.count(b"REDACTED")
    must(seen > 0, "nothing was redacted: the secret was never there")


COLLECT = "wordpress.collect-workload-result"
WORK = "wordpress.run-workload"

WORKLOADS = Group("workloads", [
    Step("wordpress.ensure-plugin-active", {"plugin": "commands-plugin"}),
    Step("wordpress.run-php", php(MAKE + "echo '{}';"), name="setup: create the workload files"),
    Step(COLLECT, {"artifact": "result.json", "schema": "commands/made/v1"}, has(payloadSchema="commands/made/v1", payload={"schema": "commands/made/v1", "n": 7}, name="result.json")),
    Step(COLLECT, {"artifact": "result.json", "schema": "other/v1"}, fails="artifact-schema"),
    Step(COLLECT, {"artifact": "bad.json"}, fails="artifact-invalid"),
    Step(COLLECT, {"artifact": "/tmp/large.json"}, fails="artifact-too-large"),
    Step(COLLECT, {}, fails="artifact-missing"),
    Step(WORK, {"path": "/tmp/work.php"}, has(type="php", steps__0__result={"home": "http://localhost"})),
    Step(WORK, {"path": "/tmp/steps.json"}, steps, name="a workload file with several steps runs them in order"),
    Step(WORK, {"path": "/tmp/broken.json"}, fails="workload-failed", says="step 0"),
    Step(WORK, {"path": "/tmp/strange.json"}, fails="wp_codebox_command_unsupported"),
    Step(WORK, {"path": "/tmp/extra-0.json"}, fails=INVALID, says='no member "repeat"', name="an unknown member of a workload file is refused"),
    Step(WORK, {"path": "/tmp/extra-1.json"}, fails=INVALID, says='step 0 has no member "allowfailure"', name="an unknown member of a workload step is refused"),
    Step(WORK, {"path": "/tmp/extra-2.json"}, fails=INVALID, says='no member "cod"', name="an unknown argument of a workload step is refused"),
    Step(WORK, {"file": "/tmp/none.json"}, fails="workload-missing"),
    Step(WORK, {}, fails="wp_codebox_input_invalid"),
    Step(REST, {"path": "/commands/v1/huge"}, fails="wp_codebox_output_limit", says="request less"),
    Step(REST, {"path": "/commands/v1/echo", "params-json": {"token": SECRET}}, lambda d: must(d["data"]["params"]["token"] != SECRET, "the secret is shown"), name="a secret in a REST response is redacted"),
    Step("wordpress.run-php", {"code": f"file_put_contents('/tmp/codebox-artifacts/secret.json', json_encode(['at' => '{SECRET}']));"}, name="setup: write a secret to a file"),
    Step(COLLECT, {"artifact": "secret.json"}, lambda d: must(d["payload"]["at"] != SECRET, "the secret is shown"), name="a secret in a collected file is redacted"),
], after=lambda bench, result: (kept(bench, result), clean(bench, result)), redact=[SECRET])

GROUPS = [BASIC, WORKLOADS]


def call(command, *args):
    return {"command": command, "args": list(args)}


POLICY = {"network": "deny", "filesystem": "readwrite-mounts", "commands": ["wordpress.ensure-plugin-active"], "secrets": "none", "approvals": "never"}

CASES = [
    ("a command that the policy does not allow is refused", refused(call("wordpress.nonce"), "runtime-command-disallowed", "wordpress.nonce", policy=POLICY)),
    ("a command is refused if the policy does not allow the command it calls", refused(call("wordpress.ensure-plugin-active", "plugin=x"), "runtime-command-disallowed", "wordpress.plugin-state", policy=POLICY)),
    ("an unknown command is refused", refused(call("wordpress.no-such"), "wp_codebox_command_unknown", "wp-codebox commands")),
    ("a command without an implementation is refused", refused(call("wp-codebox/run-fuzz-suite"), "wp_codebox_command_unsupported", "fuzz engine")),
    ("a policy permission used as a command is refused", refused(call("wordpress.browser-actions.evaluate"), "wp_codebox_command_unsupported", "right")),
    ("an argument of the wrong JSON type is refused", refused(call("wordpress.rest-request", "path=/", "params-json=[]"), "wp_codebox_input_invalid", "JSON object")),
    ("a missing required argument is refused", refused(call("wordpress.ability"), "wp_codebox_input_invalid", "required")),
    ("auth-required without auth-context-json is refused", refused(call("command-agent-run", "command=true", "auth-required=1"), "wp_codebox_input_invalid", "auth-context-json")),
]


@pytest.mark.parametrize("case", cases(GROUPS, CASES))
def test_site_command_prints_the_expected_document_or_fails_with_the_expected_code(bench, case):
    case(bench)
