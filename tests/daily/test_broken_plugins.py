"""A plugin that does not work is repaired by the first command: it is not active while the agent works, and active in the checks."""

import json
import os

import pytest

from harness import must

HEADER = "<?php\n/*\nPlugin Name: Broken\n%s*/\n"
FIXED = HEADER % "" + "function broken_ok() { return 'ok'; }\n"
# What the agent gets and repairs: the file of the plugin, a part of the error, or None if WordPress activates it.
BROKEN = {
    "parse error": (HEADER % "" + "function broken_ok( {\n", "syntax error, unexpected token"),
    "fatal error while it is loaded": (HEADER % "" + "no_such_function();\n", "Call to undefined function no_such_function() in broken.php:5"),
    "fatal error in its activation": (HEADER % "" + "register_activation_hook( __FILE__, static function () { throw new LogicException( 'not ready' ); } );\n", "not ready in broken.php:5"),
    "exit in its activation": (HEADER % "" + "register_activation_hook( __FILE__, static function () { die( 'no licence' ); } );\n", "PHP ended with exit code 0: no licence"),
    "missing vendor directory": (HEADER % "" + "require __DIR__ . '/vendor/autoload.php';\n", "vendor/autoload.php is missing: run composer install"),
    "requires another plugin": (HEADER % "Requires Plugins: shop\n", "mount the required plugins too"),
    "requires a newer PHP": (HEADER % "Requires PHP: 99.0\n", "choose another PHP program for the sandbox"),
    "endless loop": (HEADER % "" + "while ( true ) {}\n", "Maximum execution time of 15 seconds exceeded"),
    "needs too much memory": (HEADER % "" + "$a = array();\nwhile ( true ) { $a[] = str_repeat( 'x', 1 << 20 ); }\n", "Allowed memory size of 268435456 bytes exhausted"),
    "prints while it is activated": (HEADER % "" + "echo 'debug';\n", None),
    "exit in a hook": (HEADER % "" + "add_action( 'init', static function () { die( 'stop' ); } );\n", None),
}
# The scripted agent keeps what it was told about the plugin.
AGENT = ("--agent-command", "sh -c 'printf %s \"$CODEBOX_INACTIVE\" > told.txt; cp fixed.txt broken.php'")
ACTIVE = "wp eval 'echo broken_ok();'"


@pytest.mark.parametrize("name", BROKEN)
def test_first_command_repairs_a_plugin_that_cannot_be_activated_or_that_breaks_the_site(developer, project, name):
    broken, error = BROKEN[name]
    root = project("broken", {"broken.php": broken, "fixed.txt": FIXED})
    ran = developer.call("Repair the plugin", *AGENT, "--check", ACTIVE, cwd=root)
    diff = developer.call("diff", cwd=root).stdout
    told = [line[1:] for line in diff.split("told.txt")[-1].splitlines() if line.startswith("+") and not line.startswith("++")]
    said = ran.stderr
    must("check passed" in said and "+function broken_ok()" in diff, f"{said}\n{diff}")
    if error is None:
        must("cannot be activated" not in said and told == [], f"{said}\n{told}")
    else:
        must(f"the plugin broken/broken.php cannot be activated: " in said and error in said, said)
        must("with the change, the plugin broken/broken.php can be activated" in said, said)
        must(len(told) == 1 and told[0].startswith("the plugin broken/broken.php cannot be activated: "), str(told))
    developer.call("apply", cwd=root)
    must("broken" in developer.call("wp", "plugin", "list", "--status=active", "--field=name", cwd=root).stdout.split(), "it is not active")


def test_plugin_that_prints_while_it_is_activated_is_active_and_the_run_says_so(developer, project):
    root = project("broken", {"broken.php": BROKEN["prints while it is activated"][0]})
    ran = developer.call("Look", "--agent-command", "sh -c 'wp plugin is-active broken'", cwd=root)
    must("the plugin broken/broken.php is active, but it printed 5 bytes while it was activated" in ran.stderr, ran.stderr)


def test_change_after_which_the_plugin_cannot_be_activated_fails_a_check_and_keeps_the_change(developer, project):
    root = project("broken", {"broken.php": FIXED})
    failed = developer.call("Break it", "--agent-command", "sh -c 'echo \"no_such_function();\" >> broken.php'", cwd=root, check=3)
    must("check failed: activate the plugin broken/broken.php" in failed.stderr, failed.stderr)
    must("+no_such_function();" in developer.call("diff", cwd=root).stdout, "no change")
    # A failing plugin that the change did not cause is no failed check.
    root = project("vendorless", {"vendorless.php": BROKEN["missing vendor directory"][0], "readme.txt": "old\n", "part.php": "<?php\n"})
    ran = developer.call("Edit the readme", "--agent-command", "sh -c 'echo new > readme.txt; echo // >> part.php'", cwd=root)
    must("also with the change, the plugin vendorless/vendorless.php cannot be activated" in ran.stderr, ran.stderr)


@pytest.mark.parametrize("words", [["wp", "option", "get", "home"], ["php", "-l", "fixed.php"], ["test", "true"], ["up", "--for", "1s"]], ids=" ".join)
def test_every_command_works_with_a_broken_plugin_and_says_what_is_wrong(developer, project, words):
    root = project("broken", {"broken.php": BROKEN["fatal error while it is loaded"][0], "fixed.php": FIXED})
    ran = developer.call(*words, cwd=root)
    must("the plugin broken/broken.php cannot be activated: Call to undefined function no_such_function() in broken.php:5" in ran.stderr, ran.stderr)
    failed = developer.call(words[0], "--activate", "required", *words[1:], cwd=root, check=1)
    must("cannot be activated" in failed.stderr and "--activate try" in failed.stderr, failed.stderr)
    silent = developer.call(words[0], "--activate", "never", *words[1:], cwd=root)
    must("cannot be activated" not in silent.stderr, silent.stderr)


def test_required_activation_that_fails_ends_the_run_before_its_agent(developer, project):
    root = project("broken", {"broken.php": BROKEN["parse error"][0], "fixed.txt": FIXED})
    failed = json.loads(developer.call("Repair it", *AGENT, "--activate", "required", "--json", cwd=root, check=1).stdout)
    must(failed["error"]["code"] == "wp_codebox_run_failed" and "syntax error" in failed["error"]["message"], str(failed["error"]))
    must(failed["result"]["changedFiles"] == [] if "changedFiles" in failed.get("result", {}) else True, str(failed))


def test_broken_theme_is_repaired_too(developer, project):
    root = project("sky", {"style.css": "/* Theme Name: Sky */", "index.php": "<?php\n", "functions.php": "<?php\nno_such_function();\n"})
    ran = developer.call("Repair it", "--agent-command", "sh -c 'echo \"<?php\" > functions.php'", "--check", "wp theme is-active sky", cwd=root)
    must("the theme sky cannot be activated: Call to undefined function no_such_function() in functions.php:2" in ran.stderr, ran.stderr)
    must("with the change, the theme sky can be activated" in ran.stderr and "check passed" in ran.stderr, ran.stderr)


def test_result_names_what_an_agent_changed_beside_the_mounts(developer, project):
    root = project("beside", {"beside.php": FIXED, "part.php": "<?php\n"})
    script = "wp option update blogname Mine; wp post create --post_title=x; mkdir -p /wordpress/wp-content/uploads/a; echo x > /wordpress/wp-content/uploads/a/b.txt"
    ran = developer.call("Look at it", "--agent-command", f"sh -c '{script}'", cwd=root)
    must("changed no file" in ran.stderr, ran.stderr)
    must("the sandbox's database changed (options blogname" in ran.stderr and "wp_posts" in ran.stderr, ran.stderr)
    must("not in the result: uploads/a/b.txt" in ran.stderr, ran.stderr)
    quiet = developer.call("Edit it", "--agent-command", "sh -c 'wp option get home; echo x > new.txt'", cwd=root)
    must("database changed" not in quiet.stderr and "outside of the mounts" not in quiet.stderr, quiet.stderr)
