"""A developer with a directory, an empty home and no configuration: from nothing to an applied and an undone change."""

import json
import os
import shutil
import zipfile

from harness import must
from harness.developer import PLUGIN, read_version

GOAL = ("Fix the greeting", "--agent-command", "sed -i s/helo/hello/ hello.php", "--check", "php -l hello.php")


def test_first_command_installs_wordpress_and_the_change_of_its_run_can_be_applied_and_undone(developer, origin):
    first = developer.call(*GOAL)
    must("Hello" in first.stderr and "/wordpress/wp-content/plugins/hello" in first.stderr, first.stderr)
    must(f"{origin.version}" in first.stderr, f"the installation of WordPress is not announced\n{first.stderr}")
    must("Next:" in first.stderr and developer.read() == PLUGIN, first.stderr)
    asked = len(origin.asked)
    patch = developer.call("diff").stdout
    must("+function hello_text() { return 'hello'; }" in patch, patch)
    applied = developer.call("apply")
    must("applied hello.php" in applied.stdout and developer.read() == PLUGIN.replace("helo", "hello"), applied.stdout)
    must("yes" in developer.call("log").stdout, "log does not show the applied change")
    undone = developer.call("undo")
    must("restored hello.php" in undone.stdout and developer.read() == PLUGIN, undone.stdout)
    must(len(origin.asked) == asked, f"WordPress was asked for again: {origin.asked[asked:]}")
    twice = developer.call("undo", "--json", check=1)
    must(json.loads(twice.stdout)["error"]["code"] == "wp_codebox_apply_undone", twice.stdout)


def test_apply_to_a_file_edited_after_the_run_is_a_conflict_and_keeps_the_edit(developer):
    developer.call(*GOAL)
    edited = PLUGIN.replace("helo", "mine")
    developer.write("hello.php", edited)
    refused = developer.call("apply", "--json", check=1)
    error = json.loads(refused.stdout)["error"]
    must(error["code"] == "wp_codebox_apply_conflict" and error["data"]["conflicts"][0]["path"].endswith("hello.php"), str(error))
    must(developer.read() == edited, developer.read())
    developer.write("hello.php", PLUGIN)
    developer.call("apply")
    developer.call("undo")


def test_again_command_continues_the_last_change_with_a_comment(developer):
    developer.call(*GOAL)
    bare = developer.call("again", "--json", check=1)
    must(json.loads(bare.stdout)["error"]["code"] == "wp_codebox_input_invalid", bare.stdout)
    developer.call("again", "--with", "Say it twice", "--agent-command", "sed -i s/hello/hello-hello/2 hello.php")
    patch = developer.call("diff").stdout
    must("-function hello_text() { return 'helo'; }" in patch and "'hello-hello'" in patch, patch)
    developer.call("apply")
    developer.call("undo")
    must(developer.read() == PLUGIN, developer.read())


def test_apply_with_file_option_applies_only_that_file(developer):
    developer.call("Two files", "--agent-command", "sh -c 'echo a > a.txt; echo b > b.txt'")
    developer.call("apply", "--file", "a.txt")
    must(developer.read("a.txt") == "a\n" and not os.path.exists(os.path.join(developer.plugin, "b.txt")), "wrong files")
    unknown = developer.call("apply", "--file", "c.txt", "--json", check=1)
    must(json.loads(unknown.stdout)["error"]["code"] == "wp_codebox_approved_files_invalid", unknown.stdout)
    developer.call("undo")


def test_change_with_a_php_syntax_error_is_not_applied(developer):
    developer.call("Break it", "--agent-command", "sed -i 's/return .*/return }/' hello.php", check=3)
    refused = developer.call("apply", "--json", "--despite-failed-checks", check=1)
    must(json.loads(refused.stdout)["error"]["code"] == "wp_codebox_apply_syntax_invalid", refused.stdout)
    must(developer.read() == PLUGIN, developer.read())


def test_apply_of_a_run_of_another_directory_is_refused_unless_a_target_directory_is_given(developer):
    developer.call(*GOAL)
    run = json.loads(developer.call("log", "--json").stdout)["runs"][0]["runId"]
    other = os.path.join(developer.home, "elsewhere")
    shutil.copytree(developer.plugin, other)
    developer.own(other)
    developer.write("hello.php", PLUGIN)
    refused = developer.call("apply", run, "--json", cwd=other, check=1)
    must(json.loads(refused.stdout)["error"]["code"] == "wp_codebox_apply_target_mismatch", refused.stdout)
    developer.call("apply", run, "--to", ".", cwd=other)
    with open(os.path.join(other, "hello.php"), encoding="utf-8") as file:
        must("'hello'" in file.read(), "not applied")
    must(developer.read() == PLUGIN, "the directory of the run was changed")
    shutil.rmtree(other)


def test_wp_and_php_commands_run_in_a_sandbox_with_the_active_plugin(developer):
    active = developer.call("wp", "plugin", "list", "--status=active", "--field=name")
    must("hello" in active.stdout.split(), active.stdout + active.stderr)
    text = developer.call("php", "-r", "echo 6 * 7;")
    must(text.stdout == "42", text.stdout)
    status = developer.call("php", "-r", "exit(7);", check=7)
    must(status.returncode == 7, str(status))


def test_test_command_runs_the_given_checks_and_prints_how_many_passed(developer):
    none = developer.call("test", "--json", check=1)
    must(json.loads(none.stdout)["error"]["code"] == "wp_codebox_input_invalid", none.stdout)
    both = developer.call("test", "php -l hello.php", "false", check=1)
    must("1 of 2 checks passed" in both.stderr, both.stderr)


def test_config_and_doctor_commands_print_their_reports_without_a_configuration_file(developer):
    rows = {row["name"]: row for row in json.loads(developer.call("config", "--json").stdout)["settings"]}
    must(rows["state"]["origin"] == "default" and rows["state"]["value"].startswith(developer.home), str(rows["state"]))
    must(rows["wordpress"]["origin"] == "found", str(rows["wordpress"]))
    named = json.loads(developer.call("config", "--json", WP_CODEBOX_WORDPRESS="/srv/site").stdout)["settings"]
    must({"environment"} == {row["origin"] for row in named if row["name"] == "wordpress"}, str(named))
    state = developer.call("doctor", "--json", check=None)
    must({"state-dir"} <= {row["id"] for row in json.loads(state.stdout)["checks"]}, state.stdout)


def test_configuration_file_with_an_unknown_member_a_relative_path_or_an_array_is_refused(developer):
    path = os.path.join(developer.home, ".config/wp-codebox")
    os.makedirs(path)
    file = os.path.join(path, "config.json")
    for text, code in (('{"stat": "/x"}', 125), ('{"state": "relative"}', 125), ("[]", 125), ("{}", 0)):
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
        developer.own(os.path.join(developer.home, ".config"))
        answer = developer.call("config", "--json", check=code)
        if code:
            must(json.loads(answer.stdout)["error"]["code"] == "wp_codebox_config_invalid", answer.stdout)
    shutil.rmtree(path)


def test_second_wordpress_version_is_chosen_by_its_number(developer, environment):
    other = os.path.join(developer.home, "wordpress-6.9.9.zip")
    with zipfile.ZipFile(other, "w", zipfile.ZIP_STORED) as out:
        base = environment["CODEBOX_WORDPRESS"]
        for directory, _, files in os.walk(base):
            for name in files:
                path = os.path.join(directory, name)
                inner = os.path.relpath(path, base)
                if inner == "wp-config.php" or inner.startswith("wp-content/"):
                    continue
                with open(path, "rb") as file:
                    data = file.read()
                if inner == "wp-includes/version.php":
                    data = data.replace(read_version(base).encode(), b"6.9.9")
                out.writestr(f"wordpress/{inner}", data)
    developer.call("wordpress", "install", other)
    versions = json.loads(developer.call("wordpress", "list", "--json").stdout)
    must("6.9.9" in json.dumps(versions), str(versions))
    old = developer.call("wp", "--wp", "6.9", "core", "version")
    must(old.stdout.strip() == "6.9.9", old.stdout)
    recipe = os.path.join(developer.home, "recipe.json")
    for wanted, status in (("6.9", 0), ("5.0", 1)):
        with open(recipe, "w", encoding="utf-8") as out:
            json.dump({"schema": "wp-codebox/workspace-recipe/v1", "runtime": {"wp": wanted},
                       "workflow": {"steps": [{"command": "wordpress.wp-cli", "args": ["command=core version"]}]}}, out)
        os.chmod(recipe, 0o644)
        plan = json.loads(developer.call("recipe", "dry-run", "--recipe", recipe, "--json", cwd=developer.home, check=status).stdout)
        must(status or plan["plan"]["runtime"]["wordpressVersion"] == "6.9.9", str(plan))
    missing = developer.call("wp", "--wp", "5.0", "core", "version", check=125)
    must("wordpress install 5.0" in missing.stderr, missing.stderr)


def test_misspelled_command_is_refused_with_a_suggestion(developer):
    wrong = developer.call("aply", check=1)
    must("apply" in wrong.stderr, wrong.stderr)


def test_run_in_the_home_directory_is_refused(developer):
    refused = developer.call("Do something", "--agent-command", "true", "--json", cwd=developer.home, check=1)
    error = json.loads(refused.stdout)["error"]
    must(error["code"] == "wp_codebox_input_invalid" and "home directory" in error["message"], refused.stdout)


def test_commands_that_start_no_guest_need_no_wordpress(developer):
    nothing = {"WP_CODEBOX_CACHE_DIR": os.path.join(developer.home, "no-cache"), "WP_CODEBOX_WORDPRESS_ORIGIN": "http://127.0.0.1:9"}
    recipe = os.path.join(developer.home, "recipe.json")
    with open(recipe, "w", encoding="utf-8") as file:
        json.dump({"schema": "wp-codebox/workspace-recipe/v1", "runtime": {"wp": "6.8"}, "workflow": {"steps": [{"command": "wordpress.wp-cli", "args": ["command=option get home"]}]}}, file)
    answer = json.loads(developer.call("recipe", "validate", "--recipe", recipe, "--json", **nothing).stdout)
    must(answer["success"] is True, str(answer))
    for words in (["commands"], ["schema", "--list"], ["config"], ["wordpress", "list"], ["agents"]):
        developer.call(*words, **nothing)
    checks = json.loads(developer.call("doctor", "--json", check=None, **nothing).stdout)["checks"]
    must([row["status"] for row in checks if row["id"] == "guest-wordpress"] == ["ok"], str(checks))
    refused = developer.call("wp", "core", "version", check=125, **nothing)
    must("wordpress install" in refused.stderr or "--wordpress" in refused.stderr, refused.stderr)


def test_guest_program_starts_in_the_guest_path_of_the_callers_directory(developer):
    below = os.path.join(developer.plugin, "lib")
    os.makedirs(below)
    developer.write("lib/part.php", "<?php echo 'part';")
    where = developer.call("php", "-r", "echo getcwd();", cwd=below).stdout
    must(where == "/wordpress/wp-content/plugins/hello/lib", where)
    must(developer.call("php", "part.php", cwd=below).stdout == "part", "part.php")
    shutil.rmtree(below)


def test_diff_and_apply_use_the_last_run_that_changed_files_and_name_it(developer):
    developer.call(*GOAL, "--json")
    run = json.loads(developer.call("log", "--json").stdout)["runs"][0]["runId"]
    developer.call("Fail at it", "--agent-command", "false", check=1)
    developer.call("Fail again", "--agent-command", "false", check=1)
    shown = developer.call("diff")
    must("'hello'" in shown.stdout, "a failed run without a change took the place of the change")
    must(run in shown.stderr and "2 later runs failed without a change" in shown.stderr, shown.stderr)
    last = json.loads(developer.call("log", "--json").stdout)["runs"][0]["runId"]
    must(last != run and "changed nothing" in developer.call("diff", last).stderr, "a named run is shown also without a change")
    applied = developer.call("apply", "--json")
    must(json.loads(applied.stdout)["runId"] == run and run in applied.stderr, applied.stderr)
    developer.call("undo")
    developer.call(*GOAL)
    shown = developer.call("diff")
    must("later" not in shown.stderr and run not in shown.stderr, "the newest change is not the last one")


def test_wp_db_query_on_sqlite_names_the_service_mysql(developer):
    refused = developer.call("wp", "db", "query", "SELECT 1", check=1)
    must("is SQLite, and `wp db query`" in refused.stderr and "--service mysql" in refused.stderr, refused.stderr)
    must("wp_options" in developer.call("wp", "db", "tables").stdout, "control: a command that uses $wpdb works")


def test_failed_program_without_a_network_names_the_option_that_allows_its_host(developer):
    for words in (["wp", "core", "check-update"], ["wp", "plugin", "install", "sample"], ["php", "-r", "exit( false === file_get_contents( 'https://api.wordpress.org/' ) ? 1 : 0 );"]):
        refused = developer.call(*words, check=1)
        must("hint: the sandbox denied requests to api.wordpress.org: " in refused.stderr and "wp-codebox run --allow-host api.wordpress.org`" in refused.stderr, refused.stderr)
        must("latest version" not in refused.stdout and "Success" not in refused.stdout, refused.stdout)
    quiet = developer.call("php", "-r", "@file_get_contents( 'https://api.wordpress.org/' ); exit( 0 );")
    must("hint:" not in quiet.stderr, quiet.stderr)


def test_diff_ignores_a_later_wp_command_and_a_second_apply_names_undo(developer):
    developer.call(*GOAL)
    developer.call("wp", "option", "get", "home")
    must("'hello'" in developer.call("diff").stdout, "the run of wp took the place of the change")
    developer.call("apply")
    twice = json.loads(developer.call("apply", "--json", check=1).stdout)["error"]
    must(twice["code"] == "wp_codebox_apply_conflict" and any("wp-codebox undo takes it back" in hint for hint in twice["hints"]), str(twice))
    developer.call("undo")
    must(developer.read() == PLUGIN, developer.read())
