"""A repair task: creates its tree, runs the agent loop, and verifies the bundle with checks that the loop never sees.

Hidden checks are files of `hidden/`. They are not in the run's mounts, not staged and not in its request. When the run is
over, its patch is applied with `git apply` to a fresh copy of the tree, and a second run without any agent mounts the
result and runs the hidden checks in a fresh sandbox. As controls, the hidden checks must fail on
the original tree and, with the scripted model, on a change that satisfies only the visible check.
"""

import json
import os
import re
import shutil
import subprocess

from loop import ANTHROPIC, KEY, MODEL, OPENAI, Loop, changed, document, must
from scripted import load

from harness import tree

HERE = os.path.dirname(os.path.abspath(__file__))
#: Task names in the order of their runs. WP-CLI starts the first task, `wp-codebox run` the others.
NAMES = ("plugin-bug", "failing-test", "coding-standard")
APIS = {"plugin-bug": OPENAI, "failing-test": ANTHROPIC, "coding-standard": OPENAI}


def provider(environment):
    """Returns the model that the variables AGENT_TASKS_* name; None selects the scripted model."""
    model = environment.get("AGENT_TASKS_MODEL")
    if not model:
        return None
    variable = environment.get("AGENT_TASKS_KEY_ENV", "")
    return {"model": model, "api": environment.get("AGENT_TASKS_API", OPENAI), "base": environment["AGENT_TASKS_BASE_URL"],
            "key": environment[variable] if variable else ""}


class Tasks(Loop):
    """Calls `wp-codebox` for the repair tasks, with the scripted or a real model."""

    def __init__(self, environment, real):
        super().__init__(environment)
        self.real = real

    def tree(self, name, task, label):
        """Creates a fresh tree of the task in a directory named like the mount target.
        The tree belongs to the owner of the state directory."""
        path = os.path.join(self.directory, label, os.path.basename(task["target"]))
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if "copy" in task:
            shutil.copytree(os.path.join(self.environment["CODEBOX_WPFILES"], task["copy"]), path)
        else:
            shutil.copytree(os.path.join(HERE, name, "files"), path)
        for change in task.get("inject", []):
            file = os.path.join(path, change["file"])
            with open(file, encoding="utf-8") as opened:
                text = opened.read()
            must(text.count(change["from"]) == 1, f"{change['file']} is not the file that the bug was made for")
            with open(file, "w", encoding="utf-8") as opened:
                opened.write(text.replace(change["from"], change["to"]))
        return self.own(path)

    def judged(self, name, task, path, which):
        """Runs the visible or the hidden checks on a tree, in a fresh sandbox without an agent. Returns whether all pass."""
        arguments = ["--mount", f"{path}:{task['target']}", "--agent-command", "true"]
        staged = task.get("staged", {}) if which == "checks" else {
            f"hidden/{file}": f"/workspace/hidden/{file}" for file in sorted(os.listdir(os.path.join(HERE, name, "hidden")))}
        for line in task[which]:
            arguments += ["--check", line]
        for file, target in staged.items():
            arguments += ["--staged-file", f"{os.path.join(HERE, name, file)}:{target}"]
        answer = self.run(*arguments)
        must(answer.exit in (0, 3) and len(answer.result["checks"]) == len(task[which]), f"the {which} did not run\n{answer}")
        must(all(check["status"] in ("passed", "failed") for check in answer.result["checks"]), f"a check could not run\n{answer}")
        return answer.exit == 0, answer


def solve(bench, name):
    """Solves one repair task with the agent loop. All its checks must fail before the run; the hidden checks must pass after it."""
    with open(os.path.join(HERE, name, "task.json"), encoding="utf-8") as file:
        task = json.load(file)
    before = bench.tree(name, task, "before")
    for which in ("checks", "hidden"):
        passed, answer = bench.judged(name, task, before, which)
        must(not passed, f"control: the {which} pass before anything was done\n{answer}")
    if not bench.real:
        shortcut(bench, name, task)
    source = bench.tree(name, task, "work")
    untouched = tree(source)
    answer = through_wordpress(bench, name, task, source) if name == NAMES[0] else through_the_command(bench, name, task, source)
    must(tree(source) == untouched, "the run wrote to the host's directory")
    if not bench.real:
        must(not answer.mismatches, f"the model requests differ from the script: {answer.mismatches}\n{answer}")
    must(answer.outcome == "succeeded" and answer.exit == 0, f"expected succeeded and exit 0, got {answer.outcome}\n{answer}")
    bundle = answer.bundle
    bench.call("artifacts", "verify", "--bundle", bundle, "--state", bench.state, "--json").expect(0)
    told(bundle, answer)
    after = applied(bench, name, task, bundle, "after")
    passed, judged = bench.judged(name, task, after, "hidden")
    must(passed, f"the hidden checks do not pass on the repaired tree\n{judged}")
    bench.without(answer, answer.key)


def shortcut(bench, name, task):
    """Control: a change that satisfies only the visible checks fails the hidden ones."""
    source = bench.tree(name, task, "shortcut")
    answer = through_the_command(bench, name, task, source, "shortcut.json")
    must(answer.outcome == "succeeded", f"control: the shortcut does not even please the visible checks\n{answer}")
    passed, _ = bench.judged(name, task, applied(bench, name, task, answer.bundle, "shortened"), "hidden")
    must(not passed, "control: the hidden checks pass on the shortcut")


def applied(bench, name, task, bundle, label):
    """Applies the bundle's patch to a fresh tree; checks that only the expected files differ."""
    path = bench.tree(name, task, label)
    subprocess.run(["git", "apply", "--whitespace=nowarn", os.path.join(bundle, "files", "patch.diff")], cwd=path, check=True, capture_output=True,
                   env={"PATH": "/usr/bin:/bin", "GIT_CEILING_DIRECTORIES": os.path.dirname(path), "HOME": "/nonexistent"})
    old, new = tree(bench.tree(name, task, label + "-base")), tree(path)
    differ = sorted(file for file in old.keys() | new.keys() if old.get(file) != new.get(file))
    must(differ, "the patch changed nothing")
    if not bench.real:
        must(differ == task["changes"], f"expected changes of {task['changes']}, got {differ}")
    return bench.own(path)


def told(bundle, answer):
    """Checks that the bundle records the turns, tool calls and tokens of the model."""
    manifest = document(bundle, "manifest.json")
    kinds = {row.get("kind") for row in manifest["files"]}
    must("tool-call-transcript" in kinds, f"no tool call transcript among {sorted(map(str, kinds))}")
    calls = next(document(bundle, row["path"]) for row in manifest["files"] if row.get("kind") == "tool-call-transcript")["tool_calls"]
    must(calls, "no call is recorded")
    if answer.requests:
        made = sum(len(message.get("calls", [])) for message in answer.requests[-1]["messages"]) + 1
        must(len(calls) == made, f"the model made {made} calls, the transcript has {len(calls)}")


def through_the_command(bench, name, task, source, script="conversation.json"):
    """Solves the task with `wp-codebox run`."""
    more = [flag for line in task["checks"] for flag in ("--check", line)]
    for file, target in task.get("staged", {}).items():
        more += ["--staged-file", f"{os.path.join(HERE, name, file)}:{target}"]
    how = {"source": source, "target": task["target"], "goal": task["goal"], "api": APIS[name]}
    steps = []
    if bench.real:
        how.update(api=bench.real["api"], model=bench.real["model"], base=bench.real["base"], key=bench.real["key"] or "none")
        more += ["--timeout", "20m"]
    else:
        steps = {"turns": load(os.path.join(HERE, name, script)).steps}
    answer = bench.play(steps, *more, seconds=1260, **how)
    answer.outcome, answer.bundle = answer.result["outcome"], answer.json["artifacts"]["directory"]
    if script == "conversation.json" and not bench.real:
        must(changed(answer, task["target"]) == task["changes"], f"changed: {changed(answer, task['target'])}")
    return answer


def through_wordpress(bench, name, task, source):
    """Solves the task with `wp codebox run-agent-task`. The site has a provider and a default model, so the task names neither."""
    slug = os.path.basename(task["target"])
    installed = os.path.join(bench.environment["CODEBOX_PARENT"], "wp-content", "plugins", slug)
    aside = os.path.join(bench.directory, "aside")
    real = bench.real or {}
    key = real.get("key", "sk-test-wordpress-" + os.urandom(12).hex())
    api = real.get("api", APIS[name])
    if not bench.real:
        bench.server.add(name, {"key": key, "models": [MODEL], "turns": load(os.path.join(HERE, name, "conversation.json")).steps})
    row = {"api": api, "base_url": real.get("base") or bench.server.base(name, api=api)}
    # The operator's settings of this provider, in a file of the php.ini scan directory.
    host = row["base_url"].split("/")[2]
    ini = os.path.join(bench.directory, "php.d")
    os.makedirs(ini, exist_ok=True)
    with open(os.path.join(ini, "provider.ini"), "w") as file:
        file.write(f'wp_codebox.provider_keys = "{KEY}@{host}"\nwp_codebox.private_models = "{host}"\n')
    operator = {"PHP_INI_SCAN_DIR": f":{ini}"}
    if key:
        row["key_env"] = KEY
    options = {"wp_codebox_providers": {"agent-tasks": row}, "wp_codebox_default_provider": "agent-tasks",
               "wp_codebox_default_model": real.get("model", MODEL)}
    checks = [line.replace(target, os.path.join(HERE, name, file)) for line in task["checks"] for file, target in task["staged"].items()]
    saved = {option: wp(bench, "option", "get", option, "--format=json") for option in options}
    if os.path.isdir(installed):
        shutil.move(installed, aside)
    try:
        shutil.copytree(source, installed)
        bench.own(installed)
        for option, value in options.items():
            done = wp(bench, "option", "update", option, json.dumps(value), "--format=json", environment=operator)
            must(done.exit == 0, f"the option {option} was not taken\n{done}")
        before = tree(installed)
        answer = wp(bench, "codebox", "run-agent-task", task["goal"], f"--plugin={slug}", f"--check={json.dumps(checks)}", "--format=json",
                    *(["--timeout=20m"] if bench.real else []), seconds=1260, environment={KEY: key, **operator})
        must(tree(installed) == before, "the run wrote to the parent's plugin")
    finally:
        shutil.rmtree(installed, ignore_errors=True)
        if os.path.isdir(aside):
            shutil.move(aside, installed)
        for option, was in saved.items():
            wp(bench, "option", *(["update", option, was.stdout.strip(), "--format=json"] if was.exit == 0 else ["delete", option]))
    bench.known(answer, name, key)
    found = answer.json
    must(found.get("success") is True, f"the task was not solved\n{answer}")
    artifact = wp(bench, "codebox", "artifacts", "get", run_id(answer), "--format=json").expect(0).json["artifact"]
    answer.outcome, answer.bundle = found["completion_outcome"]["status"], artifact["directory"]
    return answer


def run_id(answer):
    found = re.search(r"run_[0-9a-f]{32}", answer.stdout)
    must(found, f"there is no run\n{answer}")
    return found[0]


def wp(bench, *arguments, seconds=60, environment=None):
    """Runs WP-CLI on the parent site (the site that starts sandboxes)."""
    process = subprocess.Popen([bench.environment["CODEBOX_WP"], *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"PATH": "/usr/bin:/bin", **(environment or {})})
    return bench.finish(arguments, process, seconds)
