"""Direct apply and roll back on a site under nginx and php-fpm. The site's answers decide whether a change stays."""

import contextlib
import json
import os
import re
import shlex
import sqlite3
import time

import pytest

from calls import in_parallel, start_tagged_request
from harness import must, poll_until
from harness.detectors import command, has_exited, pids, program
from world import Response

PLUGIN = "/wordpress/wp-content/plugins/sample/"
OTHER = "sample_other.php"
RECOVER = "/?wp_codebox_recovery="

#: Changes after which the site does not work any more: the page that shows it, and the PHP code that the agent appends.
BROKEN = {
    "fatal error on every page": ("front page", "no_such_function();"),
    "empty front page": ("front page", "add_action( 'template_redirect', static function () { ob_end_clean(); exit; } );"),
    "redirect loop": ("front page", "add_action( 'template_redirect', static function () { wp_safe_redirect( add_query_arg( 'n', (int) ( $_GET['n'] ?? 0 ) + 1 ) ); exit; } );"),
    "fatal error in admin-ajax only": ("admin-ajax", "if ( wp_doing_ajax() ) { no_such_function(); }"),
    "fatal error in REST only": ("REST index", "add_action( 'rest_api_init', static function () { no_such_function(); } );"),
    "fatal error in the login page only": ("login page", "add_action( 'login_init', static function () { no_such_function(); } );"),
    "fatal error in cron only": ("cron", "if ( wp_doing_cron() ) { no_such_function(); }"),
    "fatal error in the dashboard only": ("dashboard", "add_action( 'admin_menu', static function () { no_such_function(); } );"),
}


@pytest.fixture(scope="module")
def site(world):
    """The site without a host plugin, with direct apply."""
    world.wp("plugin", "deactivate", "host-plugin")
    world.wp("option", "update", "wp_codebox_direct_apply", "1")
    yield world
    world.wp("option", "delete", "wp_codebox_direct_apply")
    world.wp("plugin", "activate", "host-plugin")


@pytest.fixture(scope="module")
def mails(site):
    """File with the mails of the site, one JSON document a line."""
    file, plugin = site.path("tags", "mails"), site.path("site", "wp-content", "mu-plugins", "mails.php")
    with open(plugin, "w", encoding="utf-8") as code:
        code.write(f"<?php\nadd_filter( 'pre_wp_mail', static fn( $sent, array $mail ): bool => (bool) file_put_contents( '{file}', json_encode( $mail ) . \"\\n\", FILE_APPEND ), 10, 2 );\n")
    yield file
    os.remove(plugin)


@pytest.fixture(autouse=True)
def unchanged_plugin(site):
    """Restores the plugin after a case."""
    before = read(site)
    yield
    with open(path(site, "sample.php"), "w", encoding="utf-8") as file:
        file.write(before)
    for name in (OTHER, ".htaccess", "readme.txt"):
        if os.path.exists(path(site, name)):
            os.remove(path(site, name))


def path(site, name):
    return site.path("site", "wp-content", "plugins", "sample", name)


def read(site, name="sample.php"):
    with open(path(site, name), encoding="utf-8") as file:
        return file.read()


def changed(site, script, user="admin"):
    """Runs an agent; returns the id of the run and the changed files."""
    answer = site.run(script, user).expect(200).json
    return answer["run"]["run_id"], [row["path"] for row in answer["changed_files"]]


def apply(site, run, files, user="admin", headers=None, **more):
    return site.ability("apply-approved-artifact", {"artifact_id": run, "approved_files": files, **more}, user, headers=headers)


def roll_back(site, run, user="admin", headers=None, **more):
    return site.ability("rollback-artifact", {"artifact_id": run, **more}, user, headers=headers)


def when_free(call):
    """Repeats a call while a killed request has not ended, or its process changes the site."""
    answers = []

    def free():
        answers.append(call())
        # Compares the status, because a killed request has no code; only `wp_codebox_busy` has the status 429.
        return getattr(answers[-1], "status", None) != 429

    poll_until(free, seconds=30, what="the locks are not released")
    return answers[-1]


def until_process(site, call, tag):
    """Starts a call in a thread and waits for its `change-site` process. Returns the thread, the worker and the list that
    receives the answer. If the call ends before that process is seen, returns the answer instead."""
    thread, worker, answers = start_tagged_request(site, tag, lambda: call(headers={"X-Test-Tag": tag}))
    # Uses the first scan that finds a process: a second one could run while `wp-codebox detach change-site` becomes `wp-codebox change-site`.
    seen = []
    poll_until(lambda: seen.extend(changers(site)) or seen or not thread.is_alive(), seconds=30, what="no process changes the site")
    if seen:
        return thread, worker, answers
    thread.join()
    return answers[0]


def apply_when_free(site, run, files):
    return when_free(lambda: apply(site, run, files))


def roll_back_when_free(site, run):
    return when_free(lambda: roll_back(site, run)).expect(200)


def appended(code):
    return f"echo {shlex.quote(code)} >> sample.php"


#: Number of kills of each kind; `tests/run --all` sets more.
KILLS = int(os.environ.get("CODEBOX_KILLS", "2"))


def changers(site):
    """Returns the processes that change files of the site."""
    return [pid for pid in pids() if program(pid).startswith(site.path("bin")) and "change-site" in command(pid) and not has_exited(pid)]


def audited(site, count):
    records = site.ability("list-audit-records", {"per_page": 20}, method="GET").expect(200).json["records"]
    return [(row["event"], row["status"]) for row in records[-count:]]


def test_apply_writes_only_the_approved_file_and_roll_back_restores_it(site):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php; echo '<?php' > " + OTHER)
    must(len(files) == 2, str(files))
    preflight = site.ability("apply-artifact-preflight", {"artifact_id": run, "approved_files": [PLUGIN + "sample.php"]}).expect(200).json
    must((preflight["adapter"], preflight["confirm_files"]) == ("codebox-direct", []), json.dumps(preflight)[:500])
    result = apply(site, run, [PLUGIN + "sample.php"]).expect(200).json["result"]
    must((result["adapter"], result["status"], result["applied_files"]) == ("codebox-direct", "applied", [PLUGIN + "sample.php"]), json.dumps(result))
    names = [page["name"] for page in result["health"]["pages"]]
    must(result["health"]["status"] == "unchanged" and names == ["front page", "login page", "REST index", "admin-ajax", "cron", "dashboard"], json.dumps(result["health"]))
    must(all(page["before"] == page["after"] for page in result["health"]["pages"]), json.dumps(result["health"]))
    must(read(site) == before.replace("helo", "hello") and not os.path.exists(path(site, OTHER)), read(site))
    must(audited(site, 2) == [("apply-approved", "started"), ("apply", "success")], str(audited(site, 2)))
    undone = roll_back(site, run).expect(200).json
    must(undone["success"] is True and undone["result"]["status"] == "restored" and read(site) == before, json.dumps(undone["result"]))
    must(audited(site, 2) == [("rollback", "started"), ("rollback", "success")], str(audited(site, 2)))
    roll_back(site, run).expect(409, "wp_codebox_apply_undone")


@pytest.mark.parametrize("name", BROKEN)
def test_change_that_breaks_the_site_is_taken_back_at_once(site, name):
    seen_by, code = BROKEN[name]
    before = read(site)
    run, files = changed(site, appended(code))
    must(files == [PLUGIN + "sample.php"], str(files))
    answer = apply(site, run, files).expect(200).json
    result = answer["result"]
    must(answer["success"] is False and result["status"] == "failed" and result["applied_files"] == [], json.dumps(result))
    must(result["health"]["status"] == "worse" and "every file was restored" in result["message"], json.dumps(result))
    must([page["name"] for page in result["health"]["pages"] if page["worse"]][0] == seen_by, json.dumps(result["health"]))
    must(read(site) == before and site.path("site") not in json.dumps(result), "not restored, or a host path is told")
    # The running PHP uses the restored file.
    site.request("GET", "/", None).expect(200)
    roll_back(site, run).expect(409, "wp_codebox_apply_undone")


def test_broken_change_is_detected_and_taken_back_although_opcache_caches_code_for_an_hour(site):
    before = read(site)
    cache = site.path("site", "wp-content", "mu-plugins", "cache.php")
    with open(cache, "w", encoding="utf-8") as file:
        file.write("<?php ini_set( 'opcache.revalidate_freq', '3600' );")

    def write(text):
        with open(path(site, "sample.php"), "w", encoding="utf-8") as file:
            file.write(text)
        # An old modification time, because OPcache does not cache a file that changed within the last two seconds.
        os.utime(path(site, "sample.php"), (1_000_000_000, 1_000_000_000))

    try:
        write(before)
        site.request("GET", "/", None).expect(200)
        write(before + "echo 'FRESH';\n")
        must(b"FRESH" not in site.request("GET", "/", None).body, "control: PHP does not cache code")
        write(before)
        run, files = changed(site, appended(BROKEN["fatal error on every page"][1]))
        result = apply(site, run, files).expect(200).json["result"]
        must(result["status"] == "failed" and result["health"]["status"] == "worse", json.dumps(result))
        site.request("GET", "/", None).expect(200)
    finally:
        # OPcache keeps the hour for each file that it cached, so later tests could not change these files.
        with open(cache, "w", encoding="utf-8") as file:
            file.write("<?php opcache_reset(); echo 'RESET';")
        poll_until(lambda: b"RESET" in site.request("GET", "/", None).body, what="the cache is not reset")
        os.remove(cache)


def test_roll_back_leaves_a_file_that_changed_since_and_restores_the_other(site):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php; echo '<?php' > " + OTHER)
    apply(site, run, files).expect(200)
    with open(path(site, "sample.php"), "a", encoding="utf-8") as file:
        file.write("// mine\n")
    edited = read(site)
    undone = roll_back(site, run).expect(200).json
    must(undone["success"] is False and undone["result"]["status"] == "restored-in-part", json.dumps(undone["result"]))
    must([row["path"] for row in undone["result"]["conflicts"]] == ["sample.php"] and undone["result"]["files"] == [OTHER], json.dumps(undone["result"]))
    must(read(site) == edited and not os.path.exists(path(site, OTHER)), "the edited file was touched, or the other is left")


def test_file_that_changed_since_the_run_is_a_conflict_and_keeps_its_text(site):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    with open(path(site, "sample.php"), "a", encoding="utf-8") as file:
        file.write("// mine\n")
    apply(site, run, files).expect(409, "wp_codebox_apply_conflict")
    must(read(site) == before + "// mine\n", read(site))
    with open(path(site, "sample.php"), "w", encoding="utf-8") as file:
        file.write(before)
    apply(site, run, files).expect(200)
    roll_back(site, run).expect(200)


def test_apply_of_a_changed_htaccess_file_is_refused_without_confirm_sensitive(site):
    run, files = changed(site, "echo deny > .htaccess; echo text > readme.txt")
    must(sorted(files) == [PLUGIN + ".htaccess", PLUGIN + "readme.txt"], str(files))
    refused = apply(site, run, files).expect(403, "wp_codebox_apply_confirmation_missing").json
    must(refused["data"]["files"] == [PLUGIN + ".htaccess"] and not os.path.exists(path(site, "readme.txt")), json.dumps(refused))
    must(apply(site, run, files, confirm_sensitive=True).expect(200).json["result"]["status"] == "applied", "confirmed")
    roll_back(site, run).expect(200)
    must(not os.path.exists(path(site, ".htaccess")), ".htaccess is left")


def test_change_with_a_file_that_php_may_not_write_is_refused_as_a_whole_with_a_hint(site):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php; echo '<?php' > inc/other.php")
    # PHP may write inc/other.php, because PHP's user owns inc. It may not write sample.php: root owns that directory.
    os.chown(path(site, ""), 0, 0)
    try:
        refused = apply(site, run, files).expect(507, "wp_codebox_apply_failed").json
        must(any("access to the target directory" in hint for hint in refused["data"]["hints"]), json.dumps(refused))
        must(read(site) == before and not os.path.exists(path(site, "inc/other.php")), "half of the change was written")
    finally:
        site.give(path(site, ""))
    apply(site, run, files).expect(200)
    roll_back(site, run).expect(200)


def test_invalid_php_is_refused_and_nothing_is_written(site):
    before = read(site)
    run, files = changed(site, "echo 'function (' >> sample.php; echo '<?php' > " + OTHER)
    apply(site, run, files).expect(422, "wp_codebox_apply_syntax_invalid")
    must(read(site) == before and not os.path.exists(path(site, OTHER)), "a part was written")
    must(apply(site, run, [PLUGIN + OTHER]).expect(200).json["result"]["status"] == "applied", "the other file alone")
    roll_back(site, run).expect(200)


def test_four_eyes_setting_refuses_an_approval_by_the_user_who_started_the_run(site):
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    site.wp("option", "update", "wp_codebox_four_eyes", "1")
    try:
        apply(site, run, files).expect(403, "wp_codebox_apply_own_change")
        apply(site, run, files, "second").expect(200)
    finally:
        site.wp("option", "delete", "wp_codebox_four_eyes")
    roll_back(site, run).expect(200)


def test_of_two_concurrent_applies_to_one_file_one_is_refused_and_the_other_is_written(site):
    before = read(site)
    runs = [changed(site, f"sed -i s/helo/hello{number}/ sample.php") for number in range(2)]
    answers = in_parallel(*(lambda run=run, files=files, user=user: apply(site, run, files, user) for (run, files), user in zip(runs, ("admin", "second"))))
    codes = sorted(str(answer.code) for answer in answers if answer.status != 200)
    must(len(codes) == 1 and codes[0] in ("wp_codebox_busy", "wp_codebox_apply_conflict"), "\n".join(map(str, answers)))
    winner = [answer.status for answer in answers].index(200)
    must(read(site) == before.replace("helo", f"hello{winner}"), read(site))
    roll_back(site, runs[winner][0]).expect(200)


def test_with_the_option_direct_apply_off_nothing_is_written_and_the_preflight_reports_no_adapter(site):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    site.wp("option", "update", "wp_codebox_direct_apply", "0")
    try:
        preflight = site.ability("apply-artifact-preflight", {"artifact_id": run, "approved_files": files}).expect(200).json
        must(preflight["adapter"] == "none", preflight["adapter"])
        apply(site, run, files).expect(501, "wp_codebox_apply_adapter_missing")
        roll_back(site, run).expect(404, "wp_codebox_apply_not_found")
        must(read(site) == before, read(site))
        site.wp("plugin", "activate", "host-plugin")
        preflight = site.ability("apply-artifact-preflight", {"artifact_id": run, "approved_files": files}).expect(200).json
        must(preflight["adapter"] == "plugin", preflight["adapter"])
    finally:
        site.wp("plugin", "deactivate", "host-plugin")
        site.wp("option", "update", "wp_codebox_direct_apply", "1")


def test_wp_cli_applies_a_change_and_rolls_it_back(site):
    before = read(site)
    run, _ = changed(site, "sed -i s/helo/hello/ sample.php")
    site.wp("codebox", "artifacts", "apply", run, "--all")
    must(read(site) == before.replace("helo", "hello"), read(site))
    must(site.wp("codebox", "artifacts", "rollback", run, "--porcelain") == "restored\n" and read(site) == before, read(site))


def post(site, token):
    connection = site.connect()
    try:
        connection.request("POST", RECOVER + token, b"", {"Content-Type": "application/x-www-form-urlencoded"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def last_mail(mails):
    with open(mails, encoding="utf-8") as lines:
        return json.loads(lines.readlines()[-1])


def applied_with_link(site, mails):
    """Applies a change. Returns the id of the run, the changed files and the token of the link in the mail."""
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    reference = apply(site, run, files).expect(200).json["result"]["audit_reference"]
    mail = last_mail(mails)
    must(mail["to"] == "admin@example.org" and all(part in mail["message"] for part in (*files, reference, run)), json.dumps(mail))
    link = next(line for line in mail["message"].split() if "wp_codebox_recovery=" in line)
    must(link.startswith(f"http://127.0.0.1:{site.port}{RECOVER}"), link)
    return run, files, link.split("=")[1]


@contextlib.contextmanager
def code_of(file, code):
    """Sets the contents of a file, and restores the file, or its absence."""
    before = None
    if os.path.exists(file):
        with open(file, encoding="utf-8") as old:
            before = old.read()
    with open(file, "w", encoding="utf-8") as new:
        new.write(code)
    try:
        yield
    finally:
        if before is None:
            os.remove(file)
        else:
            with open(file, "w", encoding="utf-8") as old:
                old.write(before)


@contextlib.contextmanager
def audit_log_unwritable(site):
    """Makes appending to the audit log fail, as on a full disk."""
    log = os.path.join(site.site_directory(), "audit.jsonl")
    os.chown(log, 0, 0)
    os.chmod(log, 0o444)
    try:
        yield
    finally:
        os.chmod(log, 0o600)
        os.chown(log, site.account.pw_uid, site.account.pw_gid)


def notes(site, method):
    """Returns the notes of the dashboard: about the recovery link (`all`), or about changes (`changes`)."""
    return site.wp("eval", f"foreach ( WPCodebox\\Admin\\RecoveryNotes::{method}( new WPCodebox\\Settings() ) as $note ) {{ echo implode( ' ', array_filter( $note, 'is_string' ) ), \"\\n\"; }}")


def roll_backs(site, run):
    """Returns who rolled back which files, and with which end, from the records of the audit log."""
    history = site.ability("get-artifact", {"artifact_id": run}, method="GET").expect(200).json["history"]
    return [(row["status"], row["who"].get("login", row["who"]["kind"]), row.get("files", [])) for row in history if row["event"] == "rollback"]


def until_status(site, status):
    poll_until(lambda: site.request("GET", "/", None).status, lambda seen: seen == status, seconds=30, what=f"the front page does not answer {status}")


@pytest.fixture(scope="module")
def parts_that_fail(site):
    """Files that WordPress loads on every page, by the name of the part of the site: each gets a parse error."""
    first = site.path("site", "wp-content", "plugins", "0-first.php")
    with open(first, "w", encoding="utf-8") as code:
        code.write("<?php\n/* Plugin Name: First */\n")
    site.wp("plugin", "activate", "0-first")
    theme = site.wp("eval", "echo get_template_directory();")
    yield {"plugin": first, "theme": os.path.join(theme, "functions.php"), "must-use plugin": site.path("site", "wp-content", "mu-plugins", "0-other.php")}
    site.wp("plugin", "deactivate", "0-first")
    os.remove(first)


def recovery_file(site):
    return site.path("site", "wp-content", "mu-plugins", "0-codebox-recovery.php")


@pytest.mark.parametrize("contents", (None, "<?php // Of an older version."), ids=("missing", "old"))
def test_page_of_the_dashboard_and_an_apply_write_the_file_of_the_recovery_link_again(site, contents):
    with open(site.path("site", "wp-content", "plugins", "wp-codebox", "must-use", "0-codebox-recovery.php"), encoding="utf-8") as file:
        shipped = file.read()

    def spoil():
        os.remove(recovery_file(site))
        if contents is not None:
            with open(recovery_file(site), "w", encoding="utf-8") as file:
                file.write(contents)

    def written():
        with open(recovery_file(site), encoding="utf-8") as file:
            return file.read() == shipped

    spoil()
    site.request("GET", "/", None).expect(200)
    must(not os.path.exists(recovery_file(site)) or not written(), "control: another page writes it")
    # Fires `admin_init` like every page of the dashboard, without a login.
    site.request("GET", "/wp-admin/admin-ajax.php?action=none", None)
    must(written(), "not written by a page of the dashboard")
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    spoil()
    # The pages that the check requests fire `admin_init`, too, so the file must be there when the first one is requested.
    log = site.path("tags", "first")
    code = f"<?php if ( '/' === $_SERVER['REQUEST_URI'] && ! is_file( '{log}' ) ) {{ file_put_contents( '{log}', (string) @file_get_contents( __DIR__ . '/0-codebox-recovery.php' ) ); }}"
    with code_of(site.path("site", "wp-content", "mu-plugins", "first.php"), code):
        apply(site, run, files).expect(200)
    with open(log, encoding="utf-8") as file:
        seen = file.read()
    os.remove(log)
    must(seen == shipped, "not written by the apply")
    roll_back(site, run).expect(200)


@pytest.mark.parametrize("part", ("plugin", "theme", "must-use plugin"))
def test_recovery_link_takes_the_change_back_while_a_part_of_the_site_has_a_parse_error(site, mails, parts_that_fail, part):
    before = read(site)
    run, files, token = applied_with_link(site, mails)
    with code_of(parts_that_fail[part], "<?php function ("):
        until_status(site, 500)
        # Opening the link only shows a button.
        page = site.request("GET", RECOVER + token, None).expect(200)
        must(b"<button>" in page.body and read(site) != before, str(page))
        must(post(site, "0" * 64)[0] == 403 and read(site) != before, "a wrong token was accepted")
        status, text = post(site, token)
        must(status == 200 and "Every file is as before" in text and read(site) == before, f"{status} {text}")
        must(post(site, token)[0] == 403, "the token was accepted twice")
    until_status(site, 200)
    bundle = site.ability("get-artifact", {"artifact_id": run}, method="GET").expect(200).json
    last = bundle["history"][-1]
    must((bundle["state"], last["event"], last["status"], last["who"], last["files"]) == ("rolled-back", "rollback", "success", {"kind": "none"}, files), json.dumps(last))


def test_recovery_link_stays_valid_until_it_took_the_change_back(site, mails):
    before = read(site)
    run, _, token = applied_with_link(site, mails)
    os.chown(path(site, ""), 0, 0)
    try:
        status, text = post(site, token)
        must(status >= 400 and "the link stays valid" in text and read(site) != before, f"{status} {text}")
    finally:
        site.give(path(site, ""))
    status, text = post(site, token)
    must(status == 200 and "Every file is as before" in text and read(site) == before, f"{status} {text}")
    must(post(site, token)[0] == 403, "the token was accepted twice")


def test_mail_and_page_of_the_recovery_link_show_no_hidden_character_of_a_file_name(site, mails):
    directory, hidden = "in\u202ec", re.compile("[\u0080-\u009f\u200b\u202e]")
    run, files = changed(site, f"mkdir '{directory}'; echo text > '{directory}/x\u200b.txt'")
    must(any(hidden.search(name) for name in files), str(files))
    apply(site, run, files).expect(200)
    mail = last_mail(mails)["message"]
    must(not hidden.search(mail) and "in\\342\\200\\256c/x" in mail, mail)
    token = mail.split("wp_codebox_recovery=")[1].split()[0]
    os.chown(path(site, directory), 0, 0)
    try:
        status, text = post(site, token)
        must(status >= 400 and "the link stays valid" in text and ".txt" in text and not hidden.search(text), f"{status} {text!r}")
    finally:
        site.give(path(site, directory))
    must(post(site, token)[0] == 200 and not os.path.exists(path(site, directory)), "control: the change is taken back")


def test_recovery_link_works_while_audit_log_and_database_cannot_be_written(site, mails):
    before = read(site)
    run, files, token = applied_with_link(site, mails)
    read_only = "<?php add_filter( 'query', static fn( $query ) => 1 === preg_match( '/^\\s*(INSERT|UPDATE|DELETE|REPLACE)/i', $query ) ? 'SELECT * FROM no_such_table' : $query );"
    other = changed(site, "sed -i s/hello/hullo/ sample.php")
    with audit_log_unwritable(site):
        apply(site, *other).expect(500, "wp_codebox_audit_failed")
        with code_of(site.path("site", "wp-content", "mu-plugins", "!read-only.php"), read_only):
            status, text = post(site, token)
            must(status == 200 and "Every file is as before" in text and read(site) == before, f"{status} {text}")
            status, text = post(site, token)
            must(status == 200 and "taken back already" in text and read(site) == before, f"{status} {text}")


def test_roll_back_by_the_link_is_recorded_when_the_audit_log_can_be_written_again(site, mails):
    earlier, earlier_files = changed(site, "echo '<?php' > " + OTHER)
    apply(site, earlier, earlier_files).expect(200)
    run, files, token = applied_with_link(site, mails)
    with audit_log_unwritable(site):
        # Another record waits already.
        roll_back(site, earlier).expect(200)
        must(post(site, token)[0] == 200, "not taken back")
        site.request("GET", "/", None).expect(200)
        must(roll_backs(site, run) == [("success", "none", files)] and audited(site, 1) == [("apply", "success")], str(roll_backs(site, run)))
    site.request("GET", "/", None).expect(200)
    must(audited(site, 2) == [("rollback", "success")] * 2, str(audited(site, 2)))
    must(roll_backs(site, run) == [("success", "none", files)], str(roll_backs(site, run)))
    must(roll_backs(site, earlier) == [("success", "admin", earlier_files)], str(roll_backs(site, earlier)))


def test_roll_backs_restore_their_files_while_the_audit_log_cannot_be_written_and_a_later_request_records_each(site, options_of_change):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php; echo '<?php' > " + OTHER)
    apply(site, run, files).expect(200)
    other = changed(site, "sed -i s/hello/hullo/ sample.php")
    with audit_log_unwritable(site):
        apply(site, *other).expect(500, "wp_codebox_audit_failed")
        for user, name in (("admin", OTHER), ("second", "sample.php")):
            answer = roll_back(site, run, user, files=[name]).expect(200).json
            must((answer["success"], answer["result"]["files"]) == (True, [name]) and "audit" not in answer, json.dumps(answer))
            must("a later request writes the record" in answer["result"]["message"], answer["result"]["message"])
        must(read(site) == before and not os.path.exists(path(site, OTHER)), "not restored")
        roll_back(site, run).expect(409, "wp_codebox_apply_undone")
        site.request("GET", "/", None).expect(200)
        must(options_of_change() == ["wp_codebox_unrecorded_changes"], str(options_of_change()))
        # The bundle says what was done; the log does not have it yet, and the administrator is told why.
        expected = [("success", user, [PLUGIN + name]) for user, name in (("admin", OTHER), ("second", "sample.php"))]
        bundle = site.ability("get-artifact", {"artifact_id": run}, method="GET").expect(200).json
        must(bundle["state"] == "rolled-back" and "not in the audit log yet" in bundle["history"][-1]["message"], json.dumps(bundle["history"]))
        must(roll_backs(site, run) == expected and audited(site, 1) == [("apply", "success")], f"{roll_backs(site, run)} {audited(site, 1)}")
        must("2 changes were taken back" in notes(site, "changes") and "Permission denied" in notes(site, "changes"), notes(site, "changes"))
    site.request("GET", "/", None).expect(200)
    must(roll_backs(site, run) == expected and options_of_change() == [], f"{roll_backs(site, run)} {options_of_change()}")
    must(audited(site, 2) == [("rollback", "success")] * 2 and notes(site, "changes") == "", f"{audited(site, 2)} {notes(site, 'changes')}")
    chain = site.ability("list-audit-records", {"per_page": 1}, method="GET").expect(200).json["chain"]
    must(chain["valid"] is True, json.dumps(chain))


def test_roll_back_that_finds_the_audit_log_unwritable_only_at_its_end_is_recorded_once_by_a_later_request(site):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    apply(site, run, files).expect(200)
    log = os.path.join(site.site_directory(), "audit.jsonl")
    # The front page, requested after the files were restored, takes the right to write the log.
    code = f"<?php if ( ! str_contains( (string) file_get_contents( '{path(site, 'sample.php')}' ), 'hello' ) ) {{ chmod( '{log}', 0444 ); }}"
    with code_of(site.path("site", "wp-content", "mu-plugins", "unwritable.php"), code):
        answer = roll_back(site, run)
        marks = site.wp("eval", "echo base64_encode( serialize( get_option( 'wp_codebox_unrecorded_changes' ) ) );", "--skip-plugins")
    mode = os.stat(log).st_mode & 0o777
    os.chmod(log, 0o600)
    must(mode == 0o444, "control: the log can be written")
    answer = answer.expect(200).json
    must(answer["success"] is True and "audit" not in answer and read(site) == before, json.dumps(answer))
    for _ in range(2):
        site.request("GET", "/", None).expect(200)
        must(roll_backs(site, run) == [("success", "admin", files)] and audited(site, 2) == [("rollback", "started"), ("rollback", "success")], str(audited(site, 3)))
        # As if the request had been killed after it wrote the record.
        site.wp("eval", f"update_option( 'wp_codebox_unrecorded_changes', unserialize( base64_decode( '{marks}' ) ) );", "--skip-plugins")
    site.request("GET", "/", None).expect(200)


def test_wp_cli_rolls_back_while_the_audit_log_cannot_be_written_and_a_later_request_records_it(site):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    apply(site, run, files).expect(200)
    with audit_log_unwritable(site):
        must(site.wp("codebox", "artifacts", "rollback", run, "--porcelain") == "restored\n" and read(site) == before, read(site))
    site.request("GET", "/", None).expect(200)
    must(roll_backs(site, run) == [("success", "operator", files)], str(roll_backs(site, run)))


def test_recovery_link_in_the_mail_is_valid_for_one_hour_and_refused_afterwards(site, mails):
    began = int(time.time())
    run, _, token = applied_with_link(site, mails)
    ends = int(site.wp("eval", "echo get_option( 'wp_codebox_recovery' )['ends'];"))
    must(began <= ends - 3600 <= time.time(), f"{began} {ends}")
    site.request("GET", RECOVER + token, None).expect(200)
    site.wp("eval", "$r = get_option( 'wp_codebox_recovery' ); $r['ends'] = time() - 1; update_option( 'wp_codebox_recovery', $r );")
    site.request("GET", RECOVER + token, None).expect(403)
    must(post(site, token)[0] == 403, "an old token was accepted")
    roll_back(site, run).expect(200)


@pytest.mark.parametrize("victim", ("process", "worker"))
@pytest.mark.parametrize("operation", ("apply", "rollback"))
def test_kill_during_a_change_leaves_the_old_or_the_new_files_and_a_later_request_records_its_end(site, operation, victim):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php; echo '<?php' > " + OTHER)
    after = before.replace("helo", "hello")
    state = lambda: (read(site), os.path.exists(path(site, OTHER)))
    old, new = (before, False), (after, True)
    for number in range(KILLS):
        if operation == "rollback" and state() == old:
            apply_when_free(site, run, files).expect(200)
        call = (lambda **more: apply(site, run, files, **more)) if operation == "apply" else (lambda **more: roll_back(site, run, **more))
        started = when_free(lambda: until_process(site, call, f"{operation}-{victim}-{number}"))
        if not isinstance(started, Response):
            thread, worker, answers = started
            # The kills are spread over the duration of a change; a kill at any moment must be safe.
            time.sleep(0.8 * number / KILLS)
            for pid in changers(site) if victim == "process" else [worker]:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            thread.join()
            poll_until(lambda: not changers(site), seconds=30, what="the process did not end")
            # php-fpm may lose one more request after SIGKILL of a worker.
            poll_until(lambda: site.request("GET", "/", None).status == 200, seconds=30, what="the site does not answer")
            must(state() in (old, new), f"{number}: {state()} {answers}")
        if operation == "apply" and state() == new:
            roll_back_when_free(site, run)
            must(state() == old, f"{number}: {state()}")
    if state() == old:
        apply_when_free(site, run, files).expect(200)
    roll_back_when_free(site, run)
    bundle = site.ability("get-artifact", {"artifact_id": run}, method="GET").expect(200).json
    unended = [row for row in bundle["history"] if row["status"] == "started"]
    must((state(), bundle["state"], unended) == (old, "rolled-back", []), json.dumps(bundle["history"]))


@pytest.fixture(scope="module")
def held_check(site):
    """Holds the check of a changed site: the first request of the front page after the change creates the file
    `held` and waits until the file `go` exists. Returns both files."""
    held, go = site.path("tags", "held"), site.path("tags", "go")
    plugin = site.path("site", "wp-content", "mu-plugins", "hold.php")
    with open(plugin, "w", encoding="utf-8") as code:
        code.write(
            f"<?php\nif ( is_file( '{site.path('tags', 'hold')}' ) && '/' === $_SERVER['REQUEST_URI'] && str_contains( (string) file_get_contents( WP_PLUGIN_DIR . '/sample/sample.php' ), 'hello' ) && ! is_file( '{held}' ) ) {{\n"
            f"touch( '{held}' ); for ( $n = 0; $n < 6000 && ! is_file( '{go}' ); $n++ ) {{ clearstatcache(); usleep( 10000 ); }}\n}}\n"
        )
    yield held, go
    os.remove(plugin)


@pytest.mark.parametrize("victims", (("process",), ("worker",), ("worker", "process"), ("worker", "process", "edit")), ids="+".join)
def test_kill_during_the_health_check_keeps_the_change_only_if_the_checking_process_survives(site, mails, held_check, victims):
    held, go = held_check
    hold = site.path("tags", "hold")
    before = read(site)
    run, files = changed(site, f"sed -i s/helo/hello/ sample.php; echo '<?php' > {OTHER}")
    open(hold, "w", encoding="utf-8").close()
    try:
        call = lambda **more: apply(site, run, files, **more)
        thread, worker, _ = when_free(lambda: until_process(site, call, "held-" + "-".join(victims)))
        poll_until(lambda: os.path.exists(held), seconds=30, what="the changed site is not checked")
        must("hello" in read(site), "control: the file is not written")
        for pid in ([worker] if "worker" in victims else []) + (changers(site) if "process" in victims else []):
            os.kill(pid, 9)
        if "edit" in victims:
            with open(path(site, OTHER), "a", encoding="utf-8") as file:
                file.write("// edited\n")
        open(go, "w", encoding="utf-8").close()
        thread.join()
        poll_until(lambda: not changers(site), seconds=60, what="the process did not end")
    finally:
        for file in (hold, held, go):
            if os.path.exists(file):
                os.remove(file)
    must(victims != ("process",) or read(site) == before, "the request that waited for the process did not take the change back")
    checked = victims == ("worker",)
    bundle = lambda: site.ability("get-artifact", {"artifact_id": run}, method="GET").expect(200).json
    # A killed worker has recorded no end; the first request after its death records it.
    poll_until(lambda: bundle()["history"][-1]["status"] != "started", seconds=30, what="the end is not recorded")
    last = bundle()["history"][-1]
    must((read(site) != before) == checked, read(site))
    must((last["event"], last["status"], bundle()["state"]) == ("apply", *(("success", "applied") if checked else ("failure", "open"))), json.dumps(bundle()["history"]))
    must(last["who"]["kind"] == ("user" if "worker" not in victims else "recovery"), json.dumps(last))
    if "worker" in victims:
        # The killed request sent no mail; the one that recorded the end did.
        message = last_mail(mails)["message"]
        wanted = ("every file was written", *files, last["reference"], RECOVER) if checked else (f"changed again since: {OTHER}",) if "edit" in victims else ("every file is as before",)
        must(all(part in message for part in (run, *wanted)), message)
    must(os.path.exists(path(site, OTHER)) == (checked or "edit" in victims), "the new file is not in the state that the record says")
    if "edit" in victims:
        os.remove(path(site, OTHER))
    if checked:
        roll_back_when_free(site, run)
        must(read(site) == before and bundle()["state"] == "rolled-back", json.dumps(bundle()["history"]))


def test_change_that_fails_before_plugins_load_is_taken_back_by_the_next_request_after_worker_and_process_were_killed(site, held_check):
    held, go = held_check
    hold = site.path("tags", "hold")
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    open(hold, "w", encoding="utf-8").close()
    # The site fails as long as the change is there, before any plugin is loaded; also the request that `held_check` holds.
    fails = f"<?php if ( str_contains( (string) file_get_contents( '{path(site, 'sample.php')}' ), 'hello' ) && ! is_file( '{hold}' ) ) {{ no_such_function(); }}"
    with code_of(site.path("site", "wp-content", "mu-plugins", "z-fails.php"), fails):
        try:
            thread, worker, _ = when_free(lambda: until_process(site, lambda **more: apply(site, run, files, **more), "held-fails"))
            poll_until(lambda: os.path.exists(held), seconds=30, what="the changed site is not checked")
            must("hello" in read(site), "control: the file is not written")
            for pid in [worker, *changers(site)]:
                os.kill(pid, 9)
            thread.join()
            poll_until(lambda: not changers(site), seconds=60, what="the process did not end")
        finally:
            for file in (hold, held):
                if os.path.exists(file):
                    os.remove(file)
        open(go, "w", encoding="utf-8").close()
        try:
            must("hello" in read(site), "control: the change is not there after the kill")
            until_status(site, 200)
        finally:
            os.remove(go)
    must(read(site) == before, read(site))
    bundle = site.ability("get-artifact", {"artifact_id": run}, method="GET").expect(200).json
    must((bundle["state"], bundle["history"][-1]["status"]) == ("open", "failure"), json.dumps(bundle["history"]))


def test_mail_that_cannot_be_sent_is_told_to_the_administrator_until_a_mail_was_sent(site, mails):
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    fails = "<?php add_filter( 'pre_wp_mail', static function () { do_action( 'wp_mail_failed', new WP_Error( 'no', 'Could not instantiate mail function.' ) ); return false; }, 99 );"
    with code_of(site.path("site", "wp-content", "mu-plugins", "no-mail.php"), fails):
        apply(site, run, files).expect(200)
        must("admin@example.org (Could not instantiate mail function)." in notes(site, "all"), notes(site, "all"))
    roll_back(site, run).expect(200)
    apply(site, run, files).expect(200)
    must(notes(site, "all") == "", notes(site, "all"))
    roll_back(site, run).expect(200)


def test_request_that_is_slow_to_record_its_result_is_not_taken_for_a_dead_one(site, held_check):
    held, go = held_check
    hold, late, record = site.path("tags", "hold"), site.path("tags", "late"), site.path("tags", "record")
    plugin = site.path("site", "wp-content", "mu-plugins", "late.php")
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    with open(plugin, "w", encoding="utf-8") as code:
        code.write(f"<?php\nadd_filter( 'wp_codebox_apply_approved_artifact', static function ( $result ) {{ touch( '{late}' ); for ( $n = 0; $n < 6000 && ! is_file( '{record}' ); $n++ ) {{ clearstatcache(); usleep( 10000 ); }} return $result; }}, 99 );\n")
    open(hold, "w", encoding="utf-8").close()
    try:
        thread, _, answers = until_process(site, lambda **more: apply(site, run, files, **more), "late")
        poll_until(lambda: os.path.exists(held), seconds=30, what="the changed site is not checked")
        open(go, "w", encoding="utf-8").close()
        poll_until(lambda: os.path.exists(late) and not changers(site), seconds=30, what="the process did not end")
        site.request("GET", "/", None).expect(200)
        roll_back(site, run).expect(429, "wp_codebox_busy")
        open(record, "w", encoding="utf-8").close()
        thread.join()
    finally:
        for file in (plugin, hold, held, go, late, record):
            if os.path.exists(file):
                os.remove(file)
    answers[0].expect(200)
    history = site.ability("get-artifact", {"artifact_id": run}, method="GET").expect(200).json["history"]
    applies = [(row["status"], row["who"]["kind"]) for row in history if row["event"] == "apply"]
    must(applies == [("success", "user")], json.dumps(history))
    roll_back(site, run).expect(200)


@pytest.fixture(scope="module")
def options_of_change(site):
    """Kills a request with the header `X-Kill: n` before its n-th query that writes the mark of a running change or an updater lock.
    Returns a function that returns which of these options there are."""
    plugin = site.path("site", "wp-content", "mu-plugins", "kill.php")
    with open(plugin, "w", encoding="utf-8") as code:
        code.write(
            "<?php\nif ( isset( $_SERVER['HTTP_X_KILL'] ) ) {\n"
            "add_filter( 'query', static function ( $query ) { static $count = 0;\n"
            "if ( 1 === preg_match( '/^\\s*(INSERT|UPDATE|DELETE).*(wp_codebox_unrecorded_changes|_updater\\.lock)/s', $query ) && ++$count === (int) $_SERVER['HTTP_X_KILL'] ) { exec( 'kill -9 ' . getmypid() ); }\n"
            "return $query; } );\n}\n"
        )
    names = ("wp_codebox_unrecorded_changes", "core_updater.lock", "auto_updater.lock")

    def present():
        with contextlib.closing(sqlite3.connect(f"file:{site.path('db', 'test.sqlite')}?mode=ro", uri=True)) as database:
            return [row[0] for row in database.execute("SELECT option_name FROM wp_options WHERE option_name IN (?, ?, ?)", names)]

    yield present
    os.remove(plugin)


@pytest.mark.parametrize("operation", ("apply", "rollback"))
def test_running_change_mark_and_updater_locks_of_a_killed_request_are_removed_by_the_next_request(site, options_of_change, operation):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    call = {"apply": apply, "rollback": lambda site, run, files, **more: roll_back(site, run, **more)}[operation]
    left = []
    for number in range(1, 30):
        if operation == "rollback" and read(site) == before:
            apply_when_free(site, run, files).expect(200)
        answer = when_free(lambda number=number: call(site, run, files, headers={"X-Kill": str(number)}))
        if answer.status == 200:
            break
        must(answer.status == 502, f"{number}: {answer}")
        left.append(options_of_change())
        poll_until(lambda: not changers(site), seconds=30, what="the process did not end")
        # php-fpm may lose one more request after SIGKILL of a worker, and nginx may answer before the worker has ended.
        settled = lambda: site.request("GET", "/", None).status == 200 and not options_of_change()
        poll_until(settled, seconds=30, what=f"{number}: left behind: {left[-1]}")
        if operation == "apply" and read(site) != before:
            roll_back_when_free(site, run)
    must(number >= 7 and any(len(names) == 3 for names in left), f"control: the request is killed {number - 1} times: {left}")
    must(all("wp_codebox_unrecorded_changes" in names for names in left if names), f"locks without a mark: {left}")
    if operation == "apply":
        roll_back_when_free(site, run)
    bundle = site.ability("get-artifact", {"artifact_id": run}, method="GET").expect(200).json
    unended = [row for row in bundle["history"] if row["status"] == "started"]
    must((read(site), bundle["state"], unended) == (before, "rolled-back", []), json.dumps(bundle["history"]))


def test_lock_of_an_update_that_began_after_a_killed_request_stays(site, options_of_change):
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    # The request is killed before it takes the second lock; then an update of WordPress replaces the first lock by its own.
    must(apply(site, run, files, headers={"X-Kill": "5"}).status == 502, "control: the request is not killed")
    must(sorted(options_of_change()) == ["core_updater.lock", "wp_codebox_unrecorded_changes"], str(options_of_change()))
    update = "require_once ABSPATH . 'wp-admin/includes/class-wp-upgrader.php'; WP_Upgrader::release_lock( 'core_updater' ); echo (int) WP_Upgrader::create_lock( 'core_updater' );"
    must(site.wp("eval", update, "--skip-plugins") == "1", "control: no lock")
    try:
        settled = lambda: site.request("GET", "/", None).status == 200 and "wp_codebox_unrecorded_changes" not in options_of_change()
        poll_until(settled, seconds=30, what="the change is not settled")
        must(options_of_change() == ["core_updater.lock"], str(options_of_change()))
        apply(site, run, files).expect(429, "wp_codebox_busy")
    finally:
        site.wp("eval", "delete_option( 'core_updater.lock' );", "--skip-plugins")
    apply(site, run, files).expect(200)
    roll_back(site, run).expect(200)


def test_result_that_a_killed_request_did_not_record_is_recorded_by_a_later_one(site):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    plugin = site.path("site", "wp-content", "mu-plugins", "kill-late.php")
    with open(plugin, "w", encoding="utf-8") as code:
        code.write("<?php\nadd_filter( 'wp_codebox_apply_approved_artifact', static function ( $result ) { exec( 'kill -9 ' . getmypid() ); return $result; }, 99 );\n")
    try:
        must(apply(site, run, files).status == 502, "control: the worker is not killed")
    finally:
        os.remove(plugin)
    must("hello" in read(site), "control: the file is not written")
    get = lambda: site.ability("get-artifact", {"artifact_id": run}, method="GET").expect(200).json
    poll_until(lambda: get()["history"][-1]["status"] != "started", seconds=30, what="the end is not recorded")
    bundle = get()
    last = bundle["history"][-1]
    must((bundle["state"], last["event"], last["status"], last["who"]["kind"]) == ("applied", "apply", "success", "recovery"), json.dumps(bundle["history"]))
    roll_back(site, run).expect(200)
    bundle = site.ability("get-artifact", {"artifact_id": run}, method="GET").expect(200).json
    must(read(site) == before and bundle["state"] == "rolled-back", json.dumps(bundle["history"]))


def test_applied_change_of_a_discarded_bundle_can_still_be_rolled_back(site):
    before = read(site)
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    apply(site, run, files).expect(200)
    site.ability("discard-artifact", {"artifact_id": run}).expect(200)
    roll_back(site, "run_" + "0" * 32).expect(404, "wp_codebox_artifact_not_found")
    must(roll_back(site, run).expect(200).json["result"]["status"] == "restored" and read(site) == before, read(site))
    must(audited(site, 2) == [("rollback", "started"), ("rollback", "success")], str(audited(site, 2)))


def test_uninstalling_the_plugin_deletes_journals_of_applied_changes_only_if_the_option_forget_changes_is_on(site):
    run, files = changed(site, "sed -i s/helo/hello/ sample.php")
    apply(site, run, files).expect(200)
    journal = os.path.join(site.site_directory(), "applies", str(site.account.pw_uid), "done")
    kept = len(os.listdir(journal))

    def uninstall():
        # As WordPress does it: the plugin is not loaded.
        site.wp("eval", "define( 'WP_UNINSTALL_PLUGIN', '' ); require WP_PLUGIN_DIR . '/wp-codebox/uninstall.php';", "--skip-plugins")
        must(not os.path.exists(recovery_file(site)), "the file of the recovery link is left")
        site.wp("option", "update", "wp_codebox_direct_apply", "1")
        must(os.path.exists(recovery_file(site)), "control: the file of the recovery link is not written")

    uninstall()
    must(kept >= 1 and len(os.listdir(journal)) == kept, "old files were deleted without the setting")
    site.wp("option", "update", "wp_codebox_forget_changes", "1")
    uninstall()
    must(os.listdir(journal) == [], str(os.listdir(journal)))
