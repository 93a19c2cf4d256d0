"""Jobs of ci/wp-codebox-ci in real sandboxes: by hand, by the steps of the GitHub action, and by gitlab-ci-local."""

import json
import os
import shutil
import subprocess
import tarfile
import xml.etree.ElementTree

import yaml
from actions import Action
from conftest import ROOT

from harness import must

ACTION = os.path.join(ROOT, "ci", "github", "action.yml")


def results(cwd, name):
    with open(os.path.join(cwd, "wp-codebox-results", name), encoding="utf-8") as file:
        return file.read()


def outputs(cwd):
    return dict(line.split("=", 1) for line in results(cwd, "outputs.env").splitlines())


def junit(cwd):
    return xml.etree.ElementTree.fromstring(results(cwd, "junit.xml"))


def action(machine, cwd, **given):
    with open(ACTION, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    return Action(document, ACTION, machine, cwd, {name.replace("_", "-"): text for name, text in given.items()})


def recipe(machine, name, command):
    document = {"schema": "wp-codebox/workspace-recipe/v1", "runtime": {}, "workflow": {"steps": [
        {"command": "wordpress.wp-cli", "args": ["command=option get blogname"]}, {"command": "wordpress.wp-cli", "args": [f"command={command}"]}]}}
    return machine.write(name, json.dumps(document))


def ended(done, status):
    must(done.returncode == status, f"expected {status}, got {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


def test_github_action_succeeds_for_passing_phpunit_tests_and_fails_with_an_annotation_for_a_failing_one(machine):
    green = os.path.dirname(machine.project("green"))
    run = action(machine, green, job="phpunit", project="shop", cache="true")
    must(run.status == 0 and run.outputs["success"] == "true" and run.outputs["exit-code"] == "0", f"{run.outputs}\n{run.log[-3000:]}")
    must(run.steps == ["Install", "Key of the cache", "Prepare", "Run", "Pack the cache"], str(run.steps))
    must(junit(green).attrib["tests"] == "1" and "1 tests, 1 passed" in run.summary, run.summary)
    must(os.path.exists(os.path.join(green, ".wp-codebox-cache", "cache.tar")), "no cache")
    red = os.path.dirname(machine.project("red", expected=4))
    run = action(machine, red, job="phpunit", project="shop", cache="false")
    must(run.status == 1 and run.outputs["success"] == "false" and run.outputs["exit-code"] == "1", f"{run.outputs}\n{run.log[-3000:]}")
    must("::error file=shop/tests/SumTest.php,line=4,title=SumTest%3A%3Atest_sum::" in run.log, run.log[-2000:])
    must(junit(red).find(".//failure") is not None and "SumTest::test\\_sum" in run.summary, run.summary)
    # Misspelt input: no run, exit status 2.
    must(action(machine, green, job="phpunti", cache="false").status == 2, "a misspelt job")
    wrong = ended(machine.job("phpunit", green, project="shop", multisite="yes"), 2)
    must("use true or false" in wrong.stderr, wrong.stderr)


def test_arguments_of_phpunit_are_not_read_by_a_shell(machine):
    cwd = os.path.dirname(machine.project("quoting"))
    done = machine.job("phpunit", cwd, project="shop", phpunit_arguments="--filter\ntest_sum$(touch pwned);`touch pwned`")
    must(done.returncode == 1 and not os.path.exists(os.path.join(cwd, "pwned")), f"{done.returncode} {done.stderr}")
    # Control: the same job with a pattern that fits.
    ended(machine.job("phpunit", cwd, project="shop", phpunit_arguments="--filter\ntest_sum"), 0)


def test_recipe_job_reports_each_step_and_fails_if_a_step_fails(machine):
    recipe(machine, "recipes/good.json", "option get home")
    recipe(machine, "recipes/bad.json", "option get no_such_option")
    cwd = os.path.join(machine.directory, "recipes")
    ended(machine.job("recipe", cwd, recipe="good.json"), 0)
    must(junit(cwd).attrib["failures"] == "0" and len(junit(cwd).findall(".//testcase")) == 2, results(cwd, "junit.xml"))
    must(os.listdir(os.path.join(cwd, "wp-codebox-results", "bundles")) == [outputs(cwd)["run-id"]], str(outputs(cwd)))
    done = ended(machine.job("recipe", cwd, recipe="bad.json", GITHUB_ACTIONS="true"), 1)
    must([case.find("failure") is not None for case in junit(cwd).iter("testcase")] == [False, True], results(cwd, "junit.xml"))
    must("::error title=steps[1] wordpress.wp-cli::step steps[1]" in done.stderr and outputs(cwd)["error-code"] == "wp_codebox_step_failed", done.stderr)
    # A recipe that is not valid leaves a report with a failure, not an empty one.
    machine.write("recipes/invalid.json", "{}")
    ended(machine.job("recipe", cwd, recipe="invalid.json"), 1)
    must(junit(cwd).attrib["failures"] == "1" and outputs(cwd)["error-code"] == "wp_codebox_recipe_invalid", results(cwd, "junit.xml"))
    ended(machine.job("recipe", cwd), 2)


def test_task_job_writes_an_applicable_patch_and_a_task_without_a_change_fails_only_if_the_job_requires_one(machine):
    cwd = os.path.dirname(machine.project("task"))
    task = {"project": "shop", "goal": "Add a comment"}
    ended(machine.job("task", cwd, **task, agent_command="sh -c 'echo // done >> shop.php'", checks="php -l shop.php"), 0)
    found = outputs(cwd)
    must(found["changed"] == "true" and found["changed-files-count"] == "1" and found["agent-task-status"] == "succeeded", str(found))
    must([case.attrib["name"] for case in junit(cwd).iter("testcase")] == ["check php -l shop.php"], results(cwd, "junit.xml"))
    patched = machine.run(["git", "apply", "--unsafe-paths", "--directory=shop", "wp-codebox-results/change.patch"], cwd)
    with open(os.path.join(cwd, "shop", "shop.php"), encoding="utf-8") as file:
        must(patched.returncode == 0 and file.read().endswith("// done\n"), patched.stderr)
    # A task without a change succeeds unless the job requires a change. The patch of the previous task is removed.
    ended(machine.job("task", cwd, **task, agent_command="true"), 0)
    must(outputs(cwd)["changed"] == "false" and "patch" not in outputs(cwd) and not os.path.exists(os.path.join(cwd, "wp-codebox-results", "change.patch")), str(outputs(cwd)))
    ended(machine.job("task", cwd, **task, agent_command="true", no_change="fail"), 4)
    ended(machine.job("task", cwd, **task, agent_command="sh -c 'echo // more >> shop.php'", no_change="fail"), 0)
    ended(machine.job("task", cwd, **task, agent_command="true", no_change="maybe"), 2)


def test_task_job_exits_1_for_a_failed_agent_3_for_a_failed_check_124_after_its_timeout_and_2_for_wrong_input(machine):
    cwd = os.path.dirname(machine.project("failing-task"))
    task = {"project": "shop", "goal": "Try"}
    ended(machine.job("task", cwd, **task, agent_command="false"), 1)
    must(junit(cwd).attrib["failures"] == "1" and outputs(cwd)["error-code"] == "wp_codebox_run_failed", results(cwd, "junit.xml"))
    ended(machine.job("task", cwd, **task, agent_command="true", checks="false"), 3)
    must(junit(cwd).find(".//failure").attrib["message"] == "the check failed", results(cwd, "junit.xml"))
    ended(machine.job("task", cwd, **task, agent_command="sleep 600", task_timeout_seconds="5"), 124)
    for wrong, says in [({"project": "shop"}, "CODEBOX_CI_GOAL"), ({**task, "max_turns": "many"}, "CODEBOX_CI_MAX_TURNS"), ({**task, "project": "none"}, "is not a directory"),
                        ({**task, "task_file": "none.json"}, "is not a file"), ({**task, "slug": "../x"}, "CODEBOX_CI_SLUG")]:
        must(says in ended(machine.job("task", cwd, **wrong), 2).stderr, str(wrong))
    must("wp-codebox is not on the PATH" in ended(machine.job("task", cwd, **task, PATH="/usr/bin:/bin"), 2).stderr, "without the program")


def test_workflow_commands_in_file_names_and_summary_of_an_agent_are_not_printed_at_line_start(machine):
    cwd = os.path.dirname(machine.project("hostile"))
    name = "a%0A::add-mask::x"
    done = ended(machine.job("task", cwd, project="shop", goal="x", agent_command=f"sh -c 'echo 1 > \"::error::owned\"; echo 1 > \"{name}\"'", GITHUB_ACTIONS="true",
                             GITHUB_OUTPUT=os.path.join(cwd, "out"), GITHUB_STEP_SUMMARY=os.path.join(cwd, "sum")), 0)
    must([line for line in (done.stdout + done.stderr).splitlines() if line.lstrip().startswith("::")] == [], done.stderr)
    with open(os.path.join(cwd, "out"), encoding="utf-8") as file:
        names = [line.split("=")[0] for line in file.read().splitlines()]
    must(sorted(names) == sorted(outputs(cwd)) and outputs(cwd)["changed-files-count"] == "2", str(names))
    # The summary of a task can be the agent's own words. A stand-in for wp-codebox prints them.
    machine.write("hostile/bin/wp-codebox", "#!/bin/sh\necho '{\"status\": \"completed\", \"summary\": \"::error::owned\"}'\n", 0o755)
    done = ended(machine.job("task", cwd, project="shop", goal="x", PATH=f"{cwd}/bin:{machine.places['PATH']}"), 0)
    must("::error::owned" in done.stderr and [line for line in done.stderr.splitlines() if line.lstrip().startswith("::")] == [], done.stderr)


def test_newlines_and_markup_in_a_result_add_no_output_and_no_test_case(machine):
    machine.write("crafted/result.json", json.dumps({"status": "failed\npatch=/etc/passwd", "summary": "a\n::error::b", "changed_files": [],
                                                     "error": {"code": "wp_codebox_run_failed", "message": "first]]>\n<failure/>\u0001"}}))
    cwd = os.path.join(machine.directory, "crafted")
    done = ended(machine.run([machine.places["WP_CODEBOX_PHP"], os.path.join(ROOT, "ci", "report.php"), "task", "1", cwd], cwd), 0)
    must("status=failed patch=/etc/passwd\n" in done.stdout and "\npatch=" not in done.stdout, done.stdout)
    with open(os.path.join(cwd, "junit.xml"), encoding="utf-8") as file:
        failures = xml.etree.ElementTree.fromstring(file.read()).findall(".//failure")
    must([row.text for row in failures] == ["first]]>\n<failure/>?"], str(failures))
    with open(os.path.join(cwd, "summary.md"), encoding="utf-8") as file:
        must(len(file.read().splitlines()) == 4, "the summary has further lines")


def test_restored_cache_has_the_template_but_not_the_signing_key(machine):
    cwd = os.path.dirname(machine.project("cached"))
    ended(machine.job("phpunit", cwd, project="shop"), 0)
    os.utime(machine.write("agents/own/program", "#!/bin/sh\n", 0o755), ns=(1_700_000_000_123_456_789, 1_700_000_000_123_456_789))
    ended(machine.job("save", cwd), 0)
    with tarfile.open(os.path.join(cwd, ".wp-codebox-cache", "cache.tar")) as archive:
        names = archive.getnames()
    must(not [name for name in names if "keys" in name.split("/") or "sites" in name.split("/")[:2]], "the cache has more than templates")
    must("agents/own/program" in names, str(names[:20]))
    must("everything already" in ended(machine.job("save", cwd), 0).stderr, "packed again")
    fresh = {"WP_CODEBOX_STATE_DIR": machine.own_directory("state-2"), "WP_CODEBOX_AGENTS_DIR": os.path.join(machine.directory, "agents-2")}
    ended(machine.job("restore", cwd, **fresh), 0)
    templates = os.path.join(fresh["WP_CODEBOX_STATE_DIR"], "templates")
    before = {name: os.stat(os.path.join(templates, name, "template.json")).st_ino for name in os.listdir(templates) if not name.startswith(".")}
    program = os.path.join(machine.directory, "agents-2", "own", "program")
    must(before and os.access(program, os.X_OK), str(before))
    # The cache must keep modification times to the nanosecond, because the name of a template depends on them.
    must(os.stat(program).st_mtime_ns == 1_700_000_000_123_456_789, f"the time became {os.stat(program).st_mtime_ns}")
    ended(machine.job("phpunit", cwd, project="shop", **fresh), 0)
    after = {name: os.stat(os.path.join(templates, name, "template.json")).st_ino for name in os.listdir(templates) if not name.startswith(".")}
    must(after == before, f"the template was made again: {before} {after}")
    # A damaged cache does not fail the job.
    with open(os.path.join(cwd, ".wp-codebox-cache", "cache.tar"), "wb") as file:
        file.write(b"no archive" * 100)
    ended(machine.job("restore", cwd, WP_CODEBOX_STATE_DIR=machine.own_directory("state-3")), 0)
    must(not os.path.exists(os.path.join(machine.directory, "state-3", "templates")), "a damaged cache left templates")


def test_cache_key_depends_on_wordpress_version_agent_and_agent_package(machine):
    keys = [ended(machine.job("cache-key", machine.directory, **inputs), 0).stdout for inputs in
            ({}, {}, {"wordpress": "6.9"}, {"agent": "codex"}, {"agent": "codex", "agent_package": "npm:x@1"})]
    must(keys[0] == keys[1] and len(set(keys)) == 4, str(keys))


def test_package_is_installed_only_if_its_sha256_matches(machine, tmp_path):
    calls = tmp_path / "calls"
    stand_in = tmp_path / "apt-get"
    stand_in.write_text(f"#!/bin/sh\necho \"$*\" >>{calls}\n", encoding="utf-8")
    stand_in.chmod(0o755)
    (tmp_path / "sudo").write_text("#!/bin/sh\nshift\nexec \"$@\"\n", encoding="utf-8")
    (tmp_path / "sudo").chmod(0o755)
    package = tmp_path / "a.deb"
    package.write_bytes(b"a package")
    path = {"PATH": f"{tmp_path}:{machine.places['PATH']}"}
    for wrong in ({"package_sha256": "0" * 64}, {"package_sha256": "short"}, {}):
        ended(machine.job("install", str(tmp_path), package=str(package), **wrong, **path), 2)
    must(not calls.exists(), "apt-get ran for a package with another checksum")
    ended(machine.job("install", str(tmp_path), package="http://example.org/a.deb", package_sha256="0" * 64, **path), 2)
    right = subprocess.run(["sha256sum", str(package)], capture_output=True, text=True, check=True).stdout.split()[0]
    ended(machine.job("install", str(tmp_path), package=str(package), package_sha256=right, **path), 0)
    must("install /" in calls.read_text(encoding="utf-8"), calls.read_text(encoding="utf-8"))


def repository(machine, name):
    """Creates a repository with the plugin in `shop`, and a bare one as its remote."""
    work = os.path.dirname(machine.project(name))
    for command in (["git", "init", "--quiet", "--bare", "../" + name + ".git"], ["git", "init", "--quiet", "-b", "main"], ["git", "add", "shop"],
                    ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "first"], ["git", "remote", "add", "origin", "../" + name + ".git"]):
        ended(machine.run(command, work), 0)
    return work


def test_patch_of_a_task_becomes_a_branch_but_a_change_of_ci_files_does_not(machine):
    work = repository(machine, "published")
    ended(machine.job("task", work, project="shop", goal="x", agent_command="sh -c 'echo // done >> shop.php; echo new > new.txt'"), 0)
    outputs_file = os.path.join(machine.directory, "published-out")
    ended(machine.job("publish", work, project="shop", branch="codebox/1", commit_message="Fix it", GITHUB_OUTPUT=outputs_file), 0)
    shown = ended(machine.run(["git", "--git-dir=../published.git", "log", "-1", "--name-only", "--format=%s", "codebox/1"], work), 0).stdout.split()
    must(shown == ["Fix", "it", "shop/new.txt", "shop/shop.php"], str(shown))
    with open(outputs_file, encoding="utf-8") as file:
        must(file.read().startswith("branch=codebox/1\ncommit="), "no outputs")
    # A change that also adds a workflow file of the CI system is refused.
    work = repository(machine, "refused")
    ended(machine.job("task", work, project="shop", goal="x", agent_command="sh -c 'mkdir -p .github/workflows; echo a > .github/workflows/a.yml'"), 0)
    done = ended(machine.job("publish", work, project="shop", branch="codebox/1"), 2)
    must("shop/.github/workflows/a.yml" in done.stderr, done.stderr)
    must(machine.run(["git", "--git-dir=../refused.git", "rev-parse", "--verify", "codebox/1"], work).returncode != 0, "the branch was pushed")
    ended(machine.job("publish", repository(machine, "nothing"), branch="x"), 0)
    for wrong in ("a b", "", "x..y"):
        must("is no name of a branch" in ended(machine.job("publish", work, project="shop", branch=wrong), 2).stderr, wrong)


def test_gitlab_job_from_the_template_reports_passing_and_failing_phpunit_tests(machine, node_tools):
    for name, expected, status in [("gitlab-green", 3, 0), ("gitlab-red", 4, 1)]:
        work = os.path.dirname(machine.project(name, expected))
        shutil.copytree(os.path.join(ROOT, "ci"), os.path.join(work, "ci"))
        machine.write(f"{name}/.gitlab-ci.yml", yaml.safe_dump({
            "include": [{"local": "ci/gitlab/wp-codebox.yml", "inputs": {"scripts": "ci"}}],
            "phpunit": {"extends": ".wp-codebox-phpunit", "variables": {"CODEBOX_CI_PROJECT": "shop"}}}))
        for command in (["git", "init", "--quiet"], ["git", "add", "."], ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "first"],
                        ["git", "remote", "add", "origin", "https://example.org/group/shop.git"]):
            ended(machine.run(command, work), 0)
        done = machine.run([os.path.join(node_tools, ".bin", "gitlab-ci-local"), "--force-shell-executor", "--no-shell-isolation", "phpunit"], work)
        must(done.returncode == status, f"{name}: {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        # gitlab-ci-local keeps artifacts as GitLab would upload them.
        found = [os.path.join(d, f) for d, _, files in os.walk(work) for f in files if f == "junit.xml"]
        must(found, f"no JUnit file below {work}\n{done.stdout[-2000:]}")
        must(xml.etree.ElementTree.parse(found[0]).getroot().attrib["failures"] == str(status), found[0])
