"""The agent as a step of a recipe: it works in the sandbox of the other steps, at its place among them."""

import json
import os

import pytest

from loop import KEY, MODEL, call, finish, must

STEP = "wp-codebox.agent-sandbox-run"
POLICY = {"network": "deny", "filesystem": "readwrite-mounts", "secrets": "none", "approvals": "never",
          "commands": [STEP, "wordpress.run-php", "wordpress.wp-cli"]}
#: The step before the agent writes the word that the agent must copy; the step after it prints the copy.
BEFORE = {"command": "wordpress.run-php", "args": ["code=file_put_contents( '/workspace/plugin/brief.txt', 'the word is 4711' );"]}
AFTER = {"command": "wordpress.run-php", "args": ["code=echo file_get_contents( '/workspace/plugin/done.txt' );"]}
COPY = "sed 's/the word is //' brief.txt > done.txt"
#: A plugin with an ability that copies the word, and with an importer of agent bundles.
PLUGIN = """<?php
/* Plugin Name: Step agent */
function wp_agent_import_runtime_bundles( array $bundles ): array {
	update_option( 'step_agent', json_decode( file_get_contents( $bundles[0]['source'] ), true )['agent'] );
	return array( array( 'success' => true ) );
}
add_action( 'wp_abilities_api_categories_init', static function () {
	wp_register_ability_category( 'step-agent', array( 'label' => 'Test', 'description' => 'Test.' ) );
} );
add_action( 'wp_abilities_api_init', static function () {
	wp_register_ability( 'step-agent/copy', array(
		'label' => 'Copy', 'description' => 'Copies the word.', 'category' => 'step-agent', 'input_schema' => array( 'type' => 'object' ),
		'permission_callback' => '__return_true',
		'execute_callback' => static function ( $input ) {
			$word = str_replace( 'the word is ', '', file_get_contents( '/workspace/plugin/brief.txt' ) );
			file_put_contents( '/workspace/plugin/' . $input['name'], $word . ' ' . get_option( 'step_agent' ) . ' ' . $input['mode'] );
			return array( 'copied' => true );
		},
	) );
} );
"""


def agent(*args, **members):
    return {"command": STEP, "args": ["task=Copy the word of brief.txt to done.txt.", *args], **members}


class Recipe:
    """A recipe in a directory of its own, with the sample plugin as its writable mount."""

    def __init__(self, bench, workflow, **inputs):
        self.bench = bench
        self.directory = os.path.join(bench.directory, f"step-{next(bench.numbers)}")
        os.makedirs(self.directory)
        mounts = [{"source": bench.source(), "target": "/workspace/plugin"}]
        self.path = os.path.join(self.directory, "recipe.json")
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump({"schema": "wp-codebox/workspace-recipe/v1", "workflow": workflow, "inputs": {"mounts": mounts, **inputs}}, file)

    def arguments(self, *more):
        return ["recipe-run", "--recipe", self.path, *self.bench.paths(), "--site", f"{self.bench.site}-{next(self.bench.numbers)}", "--json", *more]

    def run(self, *more):
        return self.bench.call(*self.arguments(*more))

    def play(self, turns, *more):
        """Runs the recipe with a model that plays these turns."""
        bench, name = self.bench, f"s{next(self.bench.numbers)}"
        key = "sk-test-" + name.rjust(32, "0")
        bench.server.add(name, {"key": key, "models": [MODEL], "turns": turns})
        full = self.arguments("--model", MODEL, "--model-url", bench.server.base(name), "--provider", "scripted", "--model-key-env", KEY, *more)
        return bench.known(bench.finish(full, bench.start(full, {"PATH": "/usr/bin:/bin", KEY: key})), name, key)


def step_of(answer):
    """Returns the row of the agent's step and its document."""
    row = next(row for row in answer.json["executions"] if row["command"] == STEP)
    return row, json.loads(row["stdout"])


def printed(answer):
    return [row["stdout"] for row in answer.json["executions"] if row["command"] == "wordpress.run-php"]


def test_built_in_agent_sees_the_work_of_steps_before_it_and_steps_after_see_its_work(bench):
    recipe = Recipe(bench, {"before": [BEFORE], "steps": [agent("session-id=s-1", "mode=careful", "max-turns=9"), AFTER]})
    answer = recipe.play([call("workspace.read", path="brief.txt"),
                          call("workspace.write", path="done.txt", content="${last:the word is (\\d+)}"), finish("Copied.")])
    must(not answer.mismatches, str(answer.mismatches))
    answer.expect(0)
    must(printed(answer)[1] == "4711", str(answer))
    row, document = step_of(answer)
    must((document["schema"], document["command"], document["status"]) == ("wp-codebox/agent-step-result/v1", STEP, "ok"), str(document))
    must((document["agent"], document["message"], document["sessionId"]) == ({"name": f"scripted/{MODEL}", "end": "completed"}, "Copied.", "s-1"), str(document))
    must(document["usage"]["turns"] == 3 and document["executions"], str(document))
    must((row["recipePhase"], row["recipeStepIndex"], row["exitCode"]) == ("steps", 0, 0), str(row))
    must("careful" in json.dumps(answer.requests[0]["messages"]), "the agent did not get its mode")
    must((answer.json["outcome"], answer.json["agentResult"]["status"], answer.json["agentResult"]["agentSummary"]) == ("succeeded", "completed", "Copied."), str(answer.json["agentResult"]))
    must({os.path.basename(entry["path"]) for entry in answer.json["changedFiles"]} == {"brief.txt", "done.txt"}, str(answer.json["changedFiles"]))
    bundle = bench.bundle(answer)
    with open(os.path.join(bundle, "files", "transcript.json"), encoding="utf-8") as file:
        transcript = json.load(file)
    must(len(transcript["turns"]) == 3, f"the turns are not in the transcript: {list(transcript)}")


def test_agent_preset_runs_as_a_step_with_the_network_that_it_needs(bench):
    directory = os.path.join(bench.directory, f"agents-{next(bench.numbers)}")
    program = os.path.join(directory, "codex", "node_modules", ".bin", "codex")
    os.makedirs(os.path.dirname(program))
    message = json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": "Copied by the program."}})
    with open(program, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\ncat > goal.txt\n{COPY}\ncurl -s -m 20 -o /dev/null -w '%{{http_code}}' \"$CODEBOX_MODEL_BASE_URL/models\" > model.txt\necho '{message}'\n")
    os.chmod(program, 0o755)
    check = {"command": "wordpress.run-php", "args": ["code=echo file_get_contents( '/workspace/plugin/goal.txt' ), ' ', file_get_contents( '/workspace/plugin/model.txt' );"]}
    recipe = Recipe(bench, {"before": [BEFORE], "steps": [agent("agent=codex"), AFTER, check]})
    answer = recipe.play([], "--agents-dir", directory).expect(0)
    must(printed(answer)[1:] == ["4711", "Copy the word of brief.txt to done.txt. 200"], str(printed(answer)))
    document = step_of(answer)[1]
    must((document["agent"], document["message"]) == ({"name": "codex", "end": "completed"}, "Copied by the program."), str(document))
    bench.bundle(answer)
    # A policy of the caller replaces that of the preset, so it must allow the model itself.
    recipe.play([], "--agents-dir", directory, "--policy", json.dumps(POLICY)).expect(126, "wp_codebox_forbidden")


def test_agent_step_runs_the_ability_of_an_activated_plugin_with_an_imported_agent_bundle(bench):
    step = agent("runtime-task-json=" + json.dumps({"ability": "step-agent/copy", "input": {"name": "done.txt"}}), "mode=careful",
                 "component=./step-agent", "agent-bundles-json=" + json.dumps([{"source": "helper.json"}]))
    recipe = Recipe(bench, {"before": [BEFORE], "steps": [step, AFTER]}, extra_plugins=[{"source": "./step-agent"}])
    os.makedirs(os.path.join(recipe.directory, "step-agent"))
    for name, text in (("step-agent/step-agent.php", PLUGIN), ("helper.json", json.dumps({"agent": "helper"}))):
        with open(os.path.join(recipe.directory, name), "w", encoding="utf-8") as file:
            file.write(text)
    answer = recipe.run().expect(0)
    must(printed(answer)[-1] == "4711 helper careful", str(answer))
    document = step_of(answer)[1]
    must((document["agent"], document["result"]) == ({"name": "step-agent/copy", "end": "completed"}, {"copied": True}), str(document))


def test_agent_step_of_a_workload_runs_with_the_agent_of_the_command_line(bench):
    path = os.path.join(bench.directory, f"workload-{next(bench.numbers)}.json")
    workload = {"schema": "wp-codebox/wordpress-workload-run/v1", "before": [BEFORE], "steps": [agent(), AFTER],
                "mounts": [{"source": bench.source(), "target": "/workspace/plugin"}]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(workload, file)
    call_it = ["run-wordpress-workload", "--input", path, *bench.paths(), "--site", f"{bench.site}-{next(bench.numbers)}"]
    refused = bench.call(*call_it)
    must(refused.exit == 2 and "--agent-command" in refused.stdout, str(refused))
    answer = bench.call(*call_it, "--agent-command", f'sh -c "{COPY}"').expect(0)
    must('"4711"' in answer.stdout and answer.json["status"] == "completed", str(answer))


@pytest.mark.parametrize("allowed", (False, True))
def test_failed_agent_fails_its_step_unless_the_step_may_fail(bench, allowed):
    tail = {"command": "wordpress.run-php", "args": ["code=echo 'reached';"]}
    step = agent(**({"allowFailure": True} if allowed else {}))
    recipe = Recipe(bench, {"steps": [step, tail], "after": [{"command": "wordpress.run-php", "args": ["code=echo 'cleaned up';"]}]})
    answer = recipe.run("--agent-command", "sh -c 'echo tried > done.txt; exit 3'")
    answer.expect(*((0,) if allowed else (1, "wp_codebox_step_failed")))
    must(printed(answer) == (["reached", "cleaned up"] if allowed else ["cleaned up"]), str(printed(answer)))
    document = step_of(answer)[1]
    must((document["status"], document["agent"]) == ("error", {"name": "sh", "end": "failed"}), str(document))
    must("exited with 3" in document["error"]["message"], str(document["error"]))
    failure = answer.json["stepFailures"][0]
    must((failure["classification"], failure.get("allowed", False)) == ("error", allowed), str(failure))
    must(answer.json["outcome"] == ("succeeded" if allowed else "failed") and answer.json["agentResult"]["status"] == "failed", str(answer))
    must([os.path.basename(entry["path"]) for entry in answer.json["changedFiles"]] == ["done.txt"], "the work is lost")


def test_time_limit_of_an_agent_step_stops_a_program_and_a_model_but_not_the_sandbox(bench):
    alive = {"after": [{"command": "wordpress.run-php", "args": ["code=echo 'still alive';"]}]}
    program = Recipe(bench, {"steps": [agent("timeout-seconds=2")], **alive})
    model = Recipe(bench, {"steps": [agent("timeout-seconds=600", timeoutMs=4000)], **alive})
    for answer in (program.run("--agent-command", "sleep 300"), model.play([{"fault": "never"}])):
        answer.expect(1, "wp_codebox_step_failed")
        must(answer.json["stepFailures"][0]["classification"] == "timeout", str(answer.json["stepFailures"]))
        must(step_of(answer)[1]["agent"]["end"] == "timed-out", str(step_of(answer)))
        must(printed(answer) == ["still alive"], "the sandbox is gone")


def test_agent_step_that_uses_all_its_turns_makes_the_run_partial(bench):
    recipe = Recipe(bench, {"steps": [agent("max-turns=1")], "after": [BEFORE]})
    answer = recipe.play([call("workspace.write", path="done.txt", content="x")]).expect(3, "wp_codebox_budget_exhausted")
    must(step_of(answer)[1]["agent"]["end"] == "partial" and answer.json["outcome"] == "partial", str(answer))
    must(len(printed(answer)) == 1, "the step after it did not run")


def test_agent_step_is_validated_without_a_model_and_a_second_one_is_refused(bench):
    def issues(*steps, **workflow):
        recipe = Recipe(bench, {"steps": list(steps), **workflow})
        answer = bench.call("recipe", "validate", "--recipe", recipe.path, *bench.paths(), "--json")
        must(answer.exit == (1 if answer.json["issues"] else 0), str(answer))
        return recipe, [(row["code"], row["path"], row["message"]) for row in answer.json["issues"]]

    recipe, found = issues(agent("provider=p", "model=m"))
    must(found == [], str(found))
    recipe.run("--dry-run").expect(0)
    refused = recipe.run().expect(1, "wp_codebox_model_missing")
    must("--model-url" in refused.json["error"]["message"], str(refused))
    _, found = issues(agent(), after=[agent()])
    must([row[:2] for row in found] == [("unsupported-command", "$.workflow.after[0].command")] and "one agent" in found[0][2], str(found))
    _, found = issues(agent("code=echo 1;"))
    must(len(found) == 1 and "wordpress.run-php" in found[0][2], str(found))
    _, found = issues(agent("provider-plugin-slugs=provider"))
    must(len(found) == 1 and "inputs.extra_plugins" in found[0][2], str(found))


def test_agent_step_outside_a_recipe_and_agent_options_without_an_agent_step_are_refused(bench):
    answer = bench.run("--command", STEP, "--arg", "task=x").expect(1, "wp_codebox_command_unsupported")
    must("recipe-run" in answer.json["error"]["message"], str(answer))
    answer = Recipe(bench, {"steps": [BEFORE]}).run("--agent-command", "true").expect(1, "wp_codebox_input_invalid")
    must("--agent-command" in answer.json["error"]["message"], str(answer))
    answer = Recipe(bench, {"steps": [agent()]}).run().expect(2, "wp_codebox_agent_missing")
    must("--model-url" in answer.json["error"]["message"], str(answer))
    # Control: the same recipe with an agent, by a policy that lists only the public commands of the step.
    Recipe(bench, {"steps": [agent()]}).run("--agent-command", "touch done.txt", "--policy", json.dumps(POLICY)).expect(0)
