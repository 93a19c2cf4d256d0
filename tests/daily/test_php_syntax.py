"""The syntax of changed PHP files is checked in a guest of the run, and an apply trusts the record by digest and version only."""

import json
import os

import pytest

from harness import must
from harness.developer import PLUGIN

CHANGE = "sh -c 'sed -i s/helo/hello/ hello.php; echo \"<?php return 1;\" > good.php; echo \"<?php return (;\" > bad.php; echo \"return (;\" > note.txt'"


def php(developer, version=None):
    """A PHP that writes its arguments into a log, and claims to have another version if one is given. Returns its path and a function that returns the calls."""
    path, log = os.path.join(developer.home, "php"), os.path.join(developer.home, "php.log")
    claim = f"case $* in *PHP_VERSION*) printf {version}; exit;; esac\n" if version else ""
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\necho \"$*\" >> {log}\n{claim}exec {os.environ['CODEBOX_PHP']} \"$@\"\n")
    os.chmod(path, 0o755)
    open(log, "w", encoding="utf-8").close()
    os.chmod(log, 0o666)

    def checks():
        with open(log, encoding="utf-8") as file:
            return sum(line.rstrip().endswith("-l") for line in file)
    return path, checks


def record(run):
    path = os.path.join(run["artifacts"]["directory"], "files", "runtime-evidence", "php-syntax.json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture
def run(developer):
    developer.write("hello.php", PLUGIN)

    def made(command, *words):
        return json.loads(developer.call("A change", "--agent-command", command, *words, "--json", check=None).stdout)
    return made


@pytest.mark.parametrize("checks", [[], ["--check", "true"]], ids=["without checks", "with a check"])
def test_changed_php_files_are_checked_in_a_guest_and_an_apply_checks_only_what_the_guest_did_not(developer, run, checks):
    result = run(CHANGE, *checks)
    must(result["success"], f"{result}")
    seen = record(result)
    must(len(seen["valid"]) == 2 and seen["unchecked"] == 0, f"{seen}")
    must([file["path"].rsplit("/", 1)[1] for file in seen["invalid"]] == ["bad.php"] and "in this file on line 1" in seen["invalid"][0]["message"], f"{seen}")
    must(any("bad.php: " in notice and "syntax error" in notice for notice in result["result"]["notices"]), f"{result['result']}")
    path, calls = php(developer)
    refused = developer.call("apply", "--json", check=1, WP_CODEBOX_PHP=path)
    must(json.loads(refused.stdout)["error"]["code"] == "wp_codebox_apply_syntax_invalid", refused.stdout)
    must(calls() == 1 and developer.read() == PLUGIN, f"{calls()} files were checked again")
    # Control: another version of PHP may refuse what this one accepts.
    other, others = php(developer, "8.1.0")
    chosen = ["--file", "hello.php", "--file", "good.php", "--file", "note.txt"]
    developer.call("apply", *chosen, WP_CODEBOX_PHP=other)
    must(others() == 2, f"{others()}")
    developer.call("undo")
    path, calls = php(developer)
    developer.call("apply", *chosen, WP_CODEBOX_PHP=path)
    must(calls() == 0 and "'hello'" in developer.read(), f"{calls()} files were checked again")
    developer.call("undo")


def test_run_that_changes_no_php_file_has_no_record(run):
    result = run("sh -c 'echo a > a.txt'")
    must(result["success"] and record(result) is None, f"{record(result)}")


def test_names_and_contents_of_a_hostile_change_reach_the_record_as_they_are(run):
    odd = "sh -c 'echo \"<?php\" > \"-l.php\"; echo \"<?php (\" > \"$(printf \"a\\nb\\033.php\")\"; ln -s /etc/passwd link.php; mkdir dir.php; echo x > dir.php/x; head -c 4000000 /dev/zero | tr \"\\\\0\" \";\" > big.php; sed -i \"1s/^/<?php /\" big.php'"
    result = run(odd)
    must(result["success"], f"{result}")
    seen = record(result)
    must(seen["unchecked"] == 0 and len(seen["valid"]) == 2 and len(seen["invalid"]) == 1, f"{seen}")
    must(seen["invalid"][0]["path"].endswith("/a\nb\x1b.php"), f"{seen}")
