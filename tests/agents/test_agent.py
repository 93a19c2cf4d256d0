"""Runs each agent program: it edits a mounted plugin, searches the guest for the key, and prints a final message."""

import os
import shutil
import subprocess

import pytest

from harness import must

#: The model's command for the agent: the repair, then a search for the key in everything that a guest program can
#: read. The pattern does not match itself; finding the placeholder shows that the search reads the environment.
HUNT = r"""sed -i 's/return $a - $b;/return $a + $b;/' plugin.php; grep -c 'a + ' plugin.php
env | grep -o 'codebox_[0-9a-f]\{40\}' | head -n 1 | sed 's/[0-9a-f]\{40\}$/PLACEHOLDER/'
cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -c 'codebox_[0-9a-f]\{40\}' | sed 's/^/environ /'
{ env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; grep -rhas 'sk-re[a]l-' /home /tmp /run /workspace /wordpress/wp-content /etc /dev/shm; } 2>/dev/null | tr '\0' '\n' | grep -a 'sk-re[a]l-' | wc -l | sed 's/^/keys /'"""

#: A goal with shell metacharacters and an option prefix.
GOAL = "Mend sums_add: --yes '; touch /workspace/pwned; $(touch /workspace/pwned) `id` {key} \"quoted\""
LAST = "I mended the sum."

SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def player(tool, argument, rest, last):
    """Returns a function that answers an agent's model requests: the first with a call of the tool, later ones with `last`.
    Requests that offer no tools, e.g. for a title, get a short text."""

    def step(asked):
        expect = {"shape": False}
        if not asked.tools:
            return {"text": "Sums", "expect": expect}
        if not any(message.role == "tool" for message in asked.messages):
            return {"text": "I look.", "calls": [{"tool": tool, "args": {argument: HUNT, **rest}}], "expect": {**expect, "tools": tool, "anywhere": "Mend sums_add"}}
        return {"expect": expect, **last}

    return step


def solve(bench, name, step, api="openai-chat", message=LAST):
    bench.install(name)
    source = bench.plugin()
    session = bench.script(step)
    answer = bench.in_project(source, GOAL, "--agent", name,
                       "--check", "grep -q '$a + $b' plugin.php", "--timeout", "180s", "--memory", "4G", *bench.model(session, api)).expect(0)
    result = answer.result
    must(result["outcome"] == "succeeded", f"{result['outcome']}: {result['summary']}\n{answer}")
    must([check["status"] for check in result["checks"]] == ["passed"], f"{result['checks']}")
    must(message in (result["agent_result"].get("message") or ""), f"the last word is {result['agent_result'].get('message')!r}")

    rows = bench.asked(session)
    answered = [row for row in rows if row["status"] == 200]
    bench.check_key_arrived(rows)
    must(len(answered) >= 2, f"{len(rows)} requests, {len(answered)} answered")
    must(any(GOAL in message["text"] for row in answered for message in row["messages"]), "the goal did not arrive as it was given")
    results = [message["text"] for row in answered for message in row["messages"] if message["role"] == "tool"]
    must(results, "no tool was run")
    # Control: the search found the placeholder in the guest.
    must("codebox_PLACEHOLDER" in results[-1], f"the search did not see the environment: {results[-1]}")
    must("environ 0" not in results[-1] and "environ " in results[-1], f"the search did not see other processes: {results[-1]}")
    must("keys 0" in results[-1], f"the search found a key: {results[-1]}")
    must("pwned" not in str(result["changed_files"]), "the goal was run by a shell")

    bundle = answer.json["artifacts"]["directory"]
    bench.call("artifacts", "verify", "--bundle", bundle, "--state", bench.state, "--json").expect(0)
    copy = os.path.join(bench.directory, "applied")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    with open(os.path.join(bundle, "files", "patch.diff"), "rb") as patch:
        subprocess.run(["git", "apply", "-p1"], cwd=copy, stdin=patch, check=True, capture_output=True)
    with open(os.path.join(copy, "plugin.php"), encoding="utf-8") as file:
        must("return $a + $b;" in file.read(), "the patch does not hold the change")
    with open(os.path.join(source, "plugin.php"), encoding="utf-8") as file:
        must("return $a - $b;" in file.read(), "the parent's file was changed")
    bench.check_key_not_stored(answer)
    return answer


def shown_as_steps(bench, answer):
    """Checks that `runs events` shows an agent's JSON lines as steps, and the raw lines on request and in the transcript."""
    def events(*arguments):
        text = bench.call("runs", "events", answer.result["run_id"], "--state", bench.state, "--site", bench.site, *arguments).expect(0).stdout
        return text.split("command-agent-run")[1]

    steps, raw = events(), events("--agent-output", "raw")
    must(any("$ " in line.split("sed -i")[0] for line in steps.splitlines() if "sed -i" in line), f"the command is not a step: {steps[:3000]}")
    must(LAST in steps and '"type"' not in steps, f"a line of the protocol is shown: {steps[:3000]}")
    must('"type"' in raw and LAST in raw, f"the lines are gone: {raw[:2000]}")
    words = [row["stdout"] for row in answer.result["transcript"]["executions"] if row["phase"] == "agent"]
    must(any('"type"' in text for text in words), "the transcript has no protocol lines")
    with open(os.path.join(answer.json["artifacts"]["directory"], "events.jsonl"), encoding="utf-8") as file:
        text = file.read()
    must('\\"type\\"' in text and '"shown"' not in text, "the bundle has the lines as they came and nothing else")


@pytest.mark.agent("codex")
def test_codex_repairs_a_plugin_through_the_openai_responses_api(bench):
    shown_as_steps(bench, solve(bench, "codex", player("exec_command", "cmd", {}, {"text": LAST})))


@pytest.mark.agent("mini-swe-agent")
def test_mini_swe_agent_repairs_a_plugin_through_openai_chat_completions(bench):
    last = {"text": LAST, "calls": [{"tool": "bash", "args": {"command": SUBMIT}}]}
    solve(bench, "mini-swe-agent", player("bash", "command", {}, last), message="Saved trajectory")


@pytest.mark.agent("claude")
def test_claude_repairs_a_plugin_through_the_anthropic_messages_api(bench):
    shown_as_steps(bench, solve(bench, "claude", player("Bash", "command", {"description": "Mend it"}, {"text": LAST}), api="anthropic-messages"))


@pytest.mark.agent("opencode")
def test_opencode_repairs_a_plugin_through_openai_chat_completions(bench):
    shown_as_steps(bench, solve(bench, "opencode", player("bash", "command", {"description": "Mend it"}, {"text": LAST})))
