"""`apply` says whose change it takes and how that run ended; the change of a run that did not succeed needs a confirmation."""

import json
import os
import pty
import subprocess

import pytest

from harness import must

PLUGIN = "<?php\n/*\nPlugin Name: Judged\n*/\n"
ADD = ("Add a line", "--agent-command", "sh -c 'echo x >> notes.txt'")


def answered(developer, root, answer):
    """Runs `apply` on a terminal, answers its question and returns exit status and output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*developer.prefix, "env", "-C", root, developer.program, "apply"], env=developer.environment,
                               stdin=theirs, stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    seen = b""
    while b"[y/N]" not in seen:
        piece = os.read(ours, 4096)
        must(piece, f"there was no question: {seen}")
        seen += piece
    os.write(ours, answer)
    process.communicate(timeout=60)
    os.close(ours)
    return process.returncode, seen.decode()


@pytest.mark.parametrize("failure, why", [(("--check", "false"), "check `false`"), (("--agent-success-codes", "7"), "sh exited with 0")], ids=["check", "agent"])
def test_change_of_a_run_that_did_not_succeed_is_applied_only_after_a_confirmation(developer, project, failure, why):
    root = project("judged", {"judged.php": PLUGIN})
    notes = os.path.join(root, "notes.txt")
    developer.call(*ADD, *failure, cwd=root, check=None)
    refused = developer.call("apply", cwd=root, check=126)
    must("wp_codebox_apply_checks_unconfirmed" in refused.stderr and why in refused.stderr and not os.path.exists(notes), refused.stderr)
    code = json.loads(developer.call("apply", "--json", cwd=root, check=126).stdout)["error"]["code"]
    must(code == "wp_codebox_apply_checks_unconfirmed", code)
    status, seen = answered(developer, root, b"n\n")
    must(status == 126 and why in seen and not os.path.exists(notes), seen)
    status, seen = answered(developer, root, b"y\n")
    must(status == 0 and os.path.exists(notes), seen)
    developer.call("undo", cwd=root)
    developer.call("apply", "--despite-failed-checks", cwd=root)
    must(os.path.exists(notes), "it is not applied")


def test_change_of_an_older_failed_run_is_not_taken_in_silence(developer, project):
    root = project("judged", {"judged.php": PLUGIN})
    developer.call(*ADD, "--check", "false", cwd=root, check=3)
    developer.call("Fail", "--agent-command", "false", cwd=root, check=1)
    refused = developer.call("apply", cwd=root, check=126).stderr
    must("one later run failed without a change" in refused and "check `false`" in refused, refused)


def test_apply_names_the_run_and_its_outcome_also_when_it_succeeded(developer, project):
    root = project("judged", {"judged.php": PLUGIN})
    developer.call(*ADD, "--check", "true", cwd=root)
    applied = developer.call("apply", cwd=root).stderr
    must("change of run_" in applied and "The agent succeeded (1 file changed: 1 added, 0 modified, 0 deleted; 1 of 1 check passed)." in applied, applied)
    must("1 file in " in applied, applied)
