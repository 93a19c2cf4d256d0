"""Files that programs of the host run by themselves are listed with their reason, and an apply needs a confirmation of its own."""

import os
import shutil
import subprocess

import pytest

from harness import must, tree

#: A bare repository in a directory of the plugin: git takes the directory for a repository and runs the program that it names.
REPOSITORY = r"""
mkdir -p docs/example/objects docs/example/refs
echo 'ref: refs/heads/main' > docs/example/HEAD
printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = "touch \\"$PWD/ran\\"; false"\n' > docs/example/config
touch docs/example/objects/kept docs/example/refs/kept
echo note > docs/note.txt
"""


@pytest.fixture
def change(bench):
    """Runs an agent and returns the source, the run and a function that calls a command on it."""
    def made(script):
        source = bench.source("risky")
        run = bench.agent(script, source=source).expect(0).result["run_id"]

        def call(command, *words):
            words = [bench.environment["CODEBOX"], command, *words, "--site", bench.site, "--state", bench.state]
            return subprocess.run(words, cwd=source, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "HOME": bench.directory}, check=False)
        return source, run, call
    return made


def git_runs_the_program(directory):
    """Whether `git status` in the directory runs what the embedded repository names."""
    subprocess.run(["git", "-C", directory, "status"], capture_output=True, env={"PATH": "/usr/bin:/bin", "HOME": directory}, check=False)
    return os.path.exists(os.path.join(directory, "ran"))


def test_embedded_bare_repository_is_listed_and_applied_only_with_a_confirmation(bench, change):
    source, run, call = change(REPOSITORY)
    before = tree(source)
    for words in (["diff", run], ["diff", run, "--stat"]):
        shown = call(*words)
        must(shown.returncode == 0 and "git-repository docs/example/HEAD: Git takes" in shown.stderr.replace("/workspace/plugin/", ""), f"{shown}")
        must("note.txt:" not in shown.stderr, f"control: a file without risk is listed: {shown.stderr}")
    refused = call("apply", run)
    must(refused.returncode == 126 and "[wp_codebox_apply_confirmation_missing]" in refused.stderr, f"{refused}")
    must("git-repository" in refused.stderr and "--confirm-sensitive" in refused.stderr, f"{refused}")
    must(tree(source) == before, "a refused apply changed a file")
    # The other files need no confirmation.
    must(call("apply", run, "--file", "docs/note.txt").returncode == 0 and call("undo").returncode == 0, "the other file is not applied")
    must(call("apply", run, "--confirm-sensitive").returncode == 0, "a confirmed change is not applied")
    # Control: without the confirmation, this program would run.
    copy = os.path.join(bench.directory, "copy")
    shutil.copytree(os.path.join(source, "docs", "example"), copy)
    must(git_runs_the_program(copy), "git does not run the program of this repository, so the case proves nothing")
    must(call("undo").returncode == 0 and tree(source) == before, "the undo did not restore the directory")


@pytest.mark.parametrize("flag, path", [
    ("server-configuration", ".htaccess"), ("server-configuration", "sub/.user.ini"), ("must-use-plugin", "mu-plugins/a.php"), ("drop-in", "object-cache.php"),
    ("git-hook", ".husky/pre-commit"), ("editor-configuration", ".vscode/tasks.json"), ("shell-environment", ".envrc"),
])
def test_file_that_a_program_runs_by_itself_needs_a_confirmation(change, flag, path):
    source, run, call = change(f"mkdir -p $(dirname {path}); echo '<?php' > {path}")
    refused = call("apply", run)
    must(refused.returncode == 126 and f"{flag} " in refused.stderr and path in refused.stderr, f"{refused}")
    must(not os.path.exists(os.path.join(source, path)), "it was applied")
    must(call("apply", run, "--confirm-sensitive").returncode == 0 and os.path.exists(os.path.join(source, path)), "it is not applied")


@pytest.mark.parametrize("flag, path", [
    ("ci-configuration", ".github/workflows/a.yml"), ("package-scripts", "composer.json"), ("build-file", "Makefile"), ("autoload-file", "vendor/composer/autoload_files.php"),
    ("agent-instructions", "AGENTS.md"),
])
def test_file_that_somebody_must_run_is_listed_and_applied_without_a_confirmation(change, flag, path):
    source, run, call = change(f"mkdir -p $(dirname {path}); echo '<?php' > {path}")
    must(f"{flag} " in call("diff", run).stderr, "it is not listed")
    applied = call("apply", run)
    must(applied.returncode == 0 and os.path.exists(os.path.join(source, path)), f"{applied}")


def test_deleted_main_file_of_a_plugin_needs_a_confirmation_and_another_deleted_file_does_not(change):
    source, run, call = change("mv plugin.php renamed.php; rm lib/a.txt")
    refused = call("apply", run)
    must(refused.returncode == 126 and "plugin-main-file" in refused.stderr and "deactivates" in refused.stderr, f"{refused}")
    must(os.path.exists(os.path.join(source, "plugin.php")), "it was applied")
    must(call("apply", run, "--file", "lib/a.txt").returncode == 0, "control: the other deletion is not applied")
    must(call("apply", run, "--file", "plugin.php", "--file", "renamed.php", "--confirm-sensitive").returncode == 0, "a confirmed deletion is not applied")
    must(sorted(name for name in os.listdir(source) if name.endswith(".php")) == ["renamed.php"], f"{os.listdir(source)}")
