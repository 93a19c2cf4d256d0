"""Command lines of agents and checks: no shell runs them, files of the host that they name are put into the sandbox, and they run at the plugin's place in WordPress."""

import os

import pytest

from harness import must

PLUGIN = "<?php\n/*\nPlugin Name: Lines\n*/\nfunction lines_answer() { return 42; }\n"
#: Works only in the directory of the active plugin.
PLACE = ("<?php\nrequire_once __DIR__ . '/lines.php';\nrequire __DIR__ . '/../../../wp-load.php';\nrequire_once __DIR__ . '/lines.php';\n"
         "echo plugin_basename( __FILE__ ), ' ', __DIR__, ' ', getcwd(), ' ', lines_answer();\n")
EXPECTED = "lines/place.php /wordpress/wp-content/plugins/lines /wordpress/wp-content/plugins/lines 42"


@pytest.mark.parametrize("line", ["touch a && touch b", "touch a; touch b", "ls | wc", "ls > a", "ls 2>&1", "echo $HOME", "CI=1 touch a"])
def test_unquoted_shell_syntax_is_refused_with_the_command_line_to_type_which_works(developer, project, line):
    root = project("lines", {"lines.php": PLUGIN})
    for words in (["Do it", "--agent-command", line], ["Do it", "--agent-command", "touch c", "--check", line], ["test", line]):
        refused = developer.call(*words, cwd=root, check=1).stderr
        must("needs a shell, but none runs it" in refused and f"sh -c '{line}'" in refused, refused)
    developer.call("Do it", "--agent-command", f"sh -c '{line}'", "--check", f"sh -c '{line}'", cwd=root)


def test_script_of_the_host_is_put_into_the_sandbox_and_a_secret_is_refused(developer, project):
    root = project("lines", {"lines.php": PLUGIN, "tool.sh": "pwd > here.txt\n"})
    other = project("elsewhere", {"agent.sh": "echo done > done.txt\n", "check.sh": "grep -q done done.txt\n", "id_key": "secret\n"})
    ran = developer.call("Do it", "--agent-command", f"bash {other}/agent.sh", "--check", f"sh {other}/check.sh", cwd=root)
    must("plugins/lines/done.txt" in ran.stderr and "check passed" in ran.stderr, ran.stderr)
    refused = developer.call("Do it", "--agent-command", f"cat {other}/id_key", cwd=root, check=126)
    must("looks like that of a secret" in refused.stderr, refused.stderr)
    # A file of the mounted directory is used where it is mounted.
    developer.call("Do it", "--agent-command", f"sh {root}/tool.sh", cwd=root)
    must("+/wordpress/wp-content/plugins/lines" in developer.call("diff", cwd=root).stdout, "the script ran elsewhere")


def test_agent_checks_and_programs_run_at_the_place_of_the_plugin_in_wordpress(developer, project):
    root = project("lines", {"lines.php": PLUGIN, "place.php": PLACE})
    developer.call("Look", "--agent-command", "sh -c 'php place.php > agent.txt; ls -ld /workspace/lines >> agent.txt'", "--check", f"sh -c 'php place.php; test \"$(php place.php)\" = \"{EXPECTED}\"'", cwd=root)
    diff = developer.call("diff", cwd=root).stdout
    must(f"+{EXPECTED}" in diff and "/workspace/lines -> /wordpress/wp-content/plugins/lines" in diff, diff)
    must(EXPECTED in developer.call("php", "place.php", cwd=root).stdout, "php runs elsewhere")
    must(EXPECTED in developer.call("test", "php place.php", cwd=root).stdout, "test runs elsewhere")
    must("lines" in developer.call("wp", "eval", "echo basename( getcwd() );", cwd=root).stdout, "wp runs elsewhere")
