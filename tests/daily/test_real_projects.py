"""Situations of real plugin and theme checkouts: missing dependencies, parent themes, subdirectories, several runs in turn."""

import json
import os
import signal
import subprocess

import pytest

from harness import must

NEEDS_VENDOR = "<?php\n/*\nPlugin Name: Broken\n*/\nrequire __DIR__ . '/vendor/autoload.php';\n"
ADD_A_LINE = ("Add a line", "--agent-command", "sh -c 'echo x >> notes.txt'")


def test_diff_and_apply_use_the_last_agent_task_and_not_a_later_wp_or_test_command(developer, project):
    root = project("looked-at", {"looked-at.php": "<?php\n/*\nPlugin Name: Looked at\n*/\n"})
    # A file that a command such as `test` writes is a change, but not the one that the user asked for.
    developer.call("php", "-r", "file_put_contents('cache.txt', 'x');", cwd=root)
    look = developer.call("diff", "--stat", cwd=root).stdout
    must("cache.txt" in look, f"the only change of the directory is not shown\n{look}")
    developer.call(*ADD_A_LINE, cwd=root)
    developer.call("wp", "option", "get", "home", cwd=root)
    developer.call("test", "touch cache.txt", cwd=root)
    stat = developer.call("diff", "--stat", cwd=root).stdout
    must(stat.split() == ["A", "+1", "-0", "notes.txt"], stat)
    applied = developer.call("apply", cwd=root)
    must(applied.stdout == "applied notes.txt\n" and not os.path.exists(os.path.join(root, "cache.txt")), applied.stdout)


def test_second_apply_of_a_run_says_that_its_change_was_applied_already(developer, project):
    root = project("twice", {"twice.php": "<?php\n/*\nPlugin Name: Twice\n*/\n"})
    developer.call(*ADD_A_LINE, cwd=root)
    developer.call("apply", cwd=root)
    again = json.loads(developer.call("apply", "--json", cwd=root, check=1).stdout)["error"]
    must(again["code"] == "wp_codebox_apply_conflict" and "applied already" in str(again["hints"]), str(again))
    developer.call("undo", cwd=root)
    # Without an earlier apply the hint is missing: this conflict comes from an edit of the user.
    with open(os.path.join(root, "notes.txt"), "w", encoding="utf-8") as file:
        file.write("mine\n")
    other = json.loads(developer.call("apply", "--json", cwd=root, check=1).stdout)["error"]
    must(other["code"] == "wp_codebox_apply_conflict" and "applied already" not in str(other), str(other))


def test_programs_start_in_the_current_subdirectory_and_checks_in_the_project_root(developer, project):
    root = project("deep", {"deep.php": "<?php\n/*\nPlugin Name: Deep\n*/\n", "src/part.php": "<?php\n"})
    below = os.path.join(root, "src")
    developer.call("php", "-l", "part.php", cwd=below)
    developer.call("php", "-l", "deep.php", cwd=root)
    developer.call("test", "php -l deep.php", cwd=below)


def test_child_theme_is_active_when_its_parent_is_mounted_too(developer, project):
    project("sky", {"style.css": "/* Theme Name: Sky */", "index.php": "<?php\n"})
    child = project("night", {"style.css": "/*\nTheme Name: Night\nTemplate: sky\n*/"})
    alone = developer.call("wp", "theme", "list", cwd=child)
    must("(mount the parent theme too: --mount DIR_OF_PARENT --mount .)" in alone.stderr and "parent theme is missing" in alone.stderr, alone.stderr)
    both = developer.call("wp", "--mount", ".", "--mount", "../sky", "theme", "list", "--status=active", "--field=name", cwd=child)
    must(both.stdout.split() == ["night"] and "DIR_OF_PARENT" not in both.stderr, f"{both.stdout}\n{both.stderr}")


def test_error_for_a_missing_required_plugin_names_the_mount_options_that_provide_it(developer, project):
    project("shop", {"shop.php": "<?php\n/*\nPlugin Name: Shop\n*/\n"})
    addon = project("addon", {"addon.php": "<?php\n/*\nPlugin Name: Add-on\nRequires Plugins: shop\n*/\n"})
    alone = developer.call("wp", "plugin", "list", cwd=addon)
    must("(mount the required plugins too, before this one: --mount DIR_OF_PLUGIN --mount .)" in alone.stderr, alone.stderr)
    both = developer.call("wp", "--mount", "../shop", "--mount", ".", "plugin", "list", "--status=active", "--field=name", cwd=addon)
    must(both.stdout.split() == ["addon", "shop"], both.stdout)


def test_check_that_lacks_dependencies_says_what_is_missing(developer, project):
    lib = "require '/tmp/wordpress-tests-lib/includes/functions.php';"
    root = project("tested", {"tested.php": "<?php\n/*\nPlugin Name: Tested\n*/\n", "suite.php": f"<?php {lib}\n", "deps.php": NEEDS_VENDOR, "wrong.php": "<?php exit(4);\n",
                               "composer.json": "{}"})
    for file, hints in (("suite.php", "WordPress test suite"), ("deps.php", "run composer install"), ("wrong.php", None)):
        failed = developer.call("test", f"php {file}", cwd=root, check=None)
        must(failed.returncode not in (0, 125) and "0 of 1 checks passed" in failed.stderr, failed.stderr)
        hint = failed.stderr.partition("checks passed")[2]
        must(hints in hint if hints else "hint:" not in hint, f"{file}\n{failed.stderr}")
    # Composer cannot install anything without its file.
    os.remove(os.path.join(root, "composer.json"))
    failed = developer.call("test", "php deps.php", cwd=root, check=None)
    must("Failed opening required" in failed.stdout + failed.stderr and "hint:" not in failed.stderr, failed.stderr)


def test_run_that_changed_nothing_cannot_be_applied_and_undo_prints_what_it_removed_and_restored(developer, project):
    root = project("steps", {"steps.php": "<?php\n/*\nPlugin Name: Steps\n*/\n"})
    developer.call("Add a line", "--agent-command", "sh -c 'echo x > notes.txt; echo // >> steps.php'", cwd=root)
    developer.call("apply", cwd=root)
    undone = developer.call("undo", cwd=root).stdout
    must(sorted(undone.split("\n")) == ["", "removed notes.txt", "restored steps.php"], undone)
    developer.call("Look around", "--agent-command", "true", cwd=root)
    error = json.loads(developer.call("apply", "--json", cwd=root, check=1).stdout)["error"]
    must(error["code"] == "wp_codebox_approved_files_invalid" and "changed nothing" in error["message"] and "wp-codebox log" in str(error["hints"]), str(error))


def test_up_command_ended_with_ctrl_c_does_not_advise_to_start_the_task_again(developer, project):
    root = project("visited", {"visited.php": "<?php\n/*\nPlugin Name: Visited\n*/\n"})
    site = subprocess.Popen([*developer.prefix, "env", "-C", root, developer.program, "up"], env=developer.environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    printed = ""
    for line in site.stdout:
        printed += line
        if "login, works once" in line:
            site.send_signal(signal.SIGINT)
    must(site.wait(60) == 0 and "cancelled" in printed and "start the task again" not in printed, printed)


def test_single_word_that_is_not_a_command_is_refused_and_the_error_names_the_goal_option_or_a_similar_command(developer):
    for word, tip in (("Refactor", 'run --goal "Refactor"'), ("Polish", 'run --goal "Polish"'), ("aply", "'apply'")):
        refused = developer.call(word, check=1)
        must(tip in refused.stderr, refused.stderr)
        error = json.loads(developer.call(word, "--json", check=1).stdout)["error"]
        must(any(tip in hint and "tip:" not in hint for hint in error["hints"]), str(error))
    below = developer.call("artifacts", "Refactor", check=1)
    must("--goal" not in below.stderr, below.stderr)


def test_test_command_without_checks_runs_phpcs_and_names_the_file_that_suggested_it(developer, project):
    root = project("checked", {"checked.php": "<?php\n/*\nPlugin Name: Checked\n*/\n", "vendor/bin/phpcs": "#!/bin/sh\nexit 3\n", "phpcs.xml": "<ruleset/>\n"})
    os.chmod(os.path.join(root, "vendor/bin/phpcs"), 0o755)
    failed = developer.call("test", cwd=root, check=3)
    must("== vendor/bin/phpcs (the project has phpcs.xml)" in failed.stderr and "0 of 1 checks passed" in failed.stderr, failed.stderr)
