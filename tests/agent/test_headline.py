"""`wp-codebox GOAL` in the directory of a plugin: with the built-in agent, and without any agent."""

import os

from loop import KEY, MODEL, call, finish, must

BROKEN = "<?php\n/* Plugin Name: Sample */\nfunction sample( {\n"


def test_built_in_agent_is_told_why_the_plugin_is_not_active_and_repairs_it(bench):
    source = bench.source()
    with open(os.path.join(source, "plugin.php"), "w", encoding="utf-8") as file:
        file.write(BROKEN)
    edit = call("workspace.edit", path="plugin.php", old_text="sample( {", new_text="sample() {}")
    key = "sk-test-headline"
    bench.server.add("headline", {"key": key, "models": [MODEL], "turns": [edit, finish("Repaired.")]})
    answer = bench.headline(source, "Repair the plugin", "--model", MODEL, "--model-url", bench.server.base("headline"), "--model-key-env", KEY,
                            "--check", "php -l plugin.php", environment={"PATH": "/usr/bin:/bin", KEY: key}).expect(0)
    result = answer.result
    must([row["relativePath"] for row in result["changed_files"]] == ["plugin.php"], str(result["changed_files"]))
    name = f"the plugin {os.path.basename(source)}/plugin.php"
    must(f"with the change, {name} can be activated" in result["notices"], str(result["notices"]))
    first = bench.server.of("headline")[0]["messages"]
    told = "\n".join(message["text"] for message in first)
    must(f"> {name} cannot be activated: syntax error" in told, told)


def test_goal_without_an_agent_is_refused_before_anything_is_prepared_with_the_ways_to_choose_one(bench):
    source = bench.source()
    missing = os.path.join(bench.directory, "no-state")
    environment = {**bench.without_wordpress(), "SOME_API_KEY": "sk-secret-value"}
    for words in (["Repair the plugin"], ["run", "--goal", "Repair"]):
        process = bench.start([*words, "--state", missing], environment, source)
        refused = bench.finish(words, process)
        lines = refused.stderr.splitlines()
        must(refused.exit == 2 and refused.stdout == "", str(refused))
        must("[wp_codebox_agent_missing]" in lines[0] and len(lines) == 5, refused.stderr)
        for part in ("--agent-command", "--agent NAME", "--model NAME --model-url URL --model-key-env VARIABLE", "(SOME_API_KEY)"):
            must(part in refused.stderr, f"{part}: {refused.stderr}")
        must("sk-secret-value" not in refused.stderr and not os.path.exists(missing), refused.stderr)
