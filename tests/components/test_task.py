"""Runtime tasks (an ability of a component does the work): the ability's input, result and failures."""

import json

from world import CATEGORY, ability, component, run, task

from harness import must
from harness.frames import task as goal


def agent(bench, body, slug="agent", **more):
    return component(bench, slug, ability(f"{slug}/work", body, **more))


def test_ability_agent_receives_its_input_and_the_task(bench):
    # What the ability prints is output of the run; only the value that it returns is its result.
    body = """
    echo '{"forged":"printed"}';
    fwrite( STDOUT, '{"status":"completed","result":"printed"}' );
    return array( 'input' => $input, 'goal' => json_decode( file_get_contents( getenv( 'CODEBOX_TASK' ) ), true )['goal'],
        'user' => get_current_user_id(), 'runtime' => WP_AGENT_RUNTIME, 'env' => getenv( 'WP_AGENT_RUNTIME' ), 'cwd' => getcwd() );"""
    one = agent(bench, body)
    ended = run(bench, task("agent/work", depth=3, words=["a"]), [one], task=goal("Mend it")).expect("no_op")
    answer = ended.answered()
    must(answer["status"] == "completed", str(answer))
    must(answer["result"] == {"input": {"depth": 3, "words": ["a"]}, "goal": "Mend it", "user": 1, "runtime": True, "env": "1",
                              "cwd": "/workspace/plugin"}, str(answer))
    must("forged" in ended.output, "what it prints stays its output")
    spec = json.loads(ended.text("metadata.json"))["spec"]
    must(spec["agent"] == {"kind": "ability", "ability": "agent/work", "input": {"depth": 3, "words": ["a"]}}, str(spec))
    must([row["slug"] for row in spec["components"]] == ["agent"] and "source" not in spec["components"][0], str(spec))


def test_ability_agent_change_is_captured(bench):
    one = agent(bench, "file_put_contents( 'lib/a.txt', \"changed\\n\" ); return true;")
    ended = run(bench, task("agent/work"), [one], checks=["grep -qx changed /workspace/plugin/lib/a.txt"]).expect("succeeded")
    must([row["path"] for row in ended.result["changed_files"]] == ["/workspace/plugin/lib/a.txt"], str(ended))
    must(ended.result["agent_result"]["status"] == "completed" and ended.result["agent_result"]["actionable"], str(ended))


def test_ability_agent_failure_fails_the_run_with_its_message(bench):
    rows = {
        "return new WP_Error( 'too_hard', 'This is beyond me.' );": ("This is beyond me.", "[too_hard]"),
        "throw new RuntimeException( 'out of ideas' );": ("out of ideas",),
        "exit( 0 );": ("PHP",),
        "exit( 7 );": ("7",),
        "return str_repeat( 'x', 2000000 );": ("larger than",),
    }
    for body, said in rows.items():
        one = agent(bench, "file_put_contents( 'half.txt', 'x' ); " + body)
        ended = run(bench, task("agent/work"), [one]).expect("failed", "wp_codebox_runtime_task_failed")
        for part in said:
            must(part in ended.message, f"{part!r} is not in the message: {ended.message}")
        must(ended.result["agent_result"]["status"] == "failed", str(ended))
        must([row["path"] for row in ended.result["changed_files"]] == ["/workspace/plugin/half.txt"], "the half is kept")


def test_ability_input_that_violates_its_schema_fails_the_run(bench):
    schema = "array( 'type' => 'object', 'properties' => array( 'n' => array( 'type' => 'integer' ) ), 'required' => array( 'n' ) )"
    one = agent(bench, "return $input;", schema=schema)
    run(bench, task("agent/work", n=1), [one]).expect("no_op")
    ended = run(bench, task("agent/work", n="one"), [one]).expect("failed", "wp_codebox_runtime_task_failed")
    must("ability_invalid_input" in ended.message, ended.message)
    none = component(bench, "bare", CATEGORY + ability("bare/work", "return func_get_args();", schema="array()"))
    ended = run(bench, task("bare/work"), [none]).expect("no_op")
    must(ended.answered()["result"] in ([], [None]), str(ended.answered()))


def test_ability_whose_permission_callback_denies_fails_the_run(bench):
    code = ability("agent/work", "return true;").replace("current_user_can( 'manage_options' )", "false")
    ended = run(bench, task("agent/work"), [component(bench, "agent", code)]).expect("failed", "wp_codebox_runtime_task_failed")
    must("ability_invalid_permissions" in ended.message, ended.message)


def test_missing_ability_is_refused_before_any_command_runs(bench):
    one = agent(bench, "return true;")
    commands = [{"command": "wordpress.wp-cli", "args": ["command=option get home"]}]
    ended = run(bench, task("agent/other"), [one], commands=commands)
    ended.refused("wp_codebox_runtime_task_request_invalid", "agent/other", "agent/", "core/")
    must("wordpress.wp-cli" not in json.dumps(ended.events), "a command ran")
    run(bench, task("agent/work"), [one], commands=commands).expect("no_op")
    gone = agent(bench, "return true;", slug="gone")
    ended = run(bench, task("gone/work"), [{**gone, "activate": False, "required": False, "readiness_probe": {"type": "ability", "name": "gone/work"}}])
    ended.refused("wp_codebox_runtime_task_request_invalid", "gone/work")
    must(any("gone" in hint for hint in ended.hints), str(ended.hints))
    run(bench, task("no ability")).refused("wp_codebox_runtime_task_request_invalid", "namespace")


def test_secret_in_an_ability_result_is_redacted(bench):
    one = agent(bench, "return array( 'seen' => 'a-secret-of-the-host-0123' );")
    ended = run(bench, task("agent/work"), [one], redact=["a-secret-of-the-host-0123"]).expect("no_op")
    must("a-secret-of-the-host-0123" not in json.dumps(ended.frame) and b"a-secret-of-the-host-0123" not in ended.whole(), str(ended))
    must("seen" in ended.answered()["result"], str(ended.answered()))


def test_ability_agent_needs_a_policy_that_allows_command_agent_run(bench):
    policy = {"network": "deny", "filesystem": "readwrite-mounts", "secrets": "none", "approvals": "never", "commands": ["wordpress.wp-cli"]}
    one = agent(bench, "return true;")
    run(bench, task("agent/work"), [one], policy=policy).refused("runtime-command-disallowed")
    policy["commands"].append("command-agent-run")
    run(bench, task("agent/work"), [one], policy=policy).expect("no_op")


def test_run_deadline_ends_an_ability_agent(bench):
    one = agent(bench, "file_put_contents( 'half.txt', 'x' ); sleep( 60 ); return true;")
    ended = run(bench, task("agent/work"), [one], limits={"wall_clock_ms": 20_000}).expect("timed_out", "wp_codebox_run_timeout")
    must([row["path"] for row in ended.result["changed_files"]] == ["/workspace/plugin/half.txt"], str(ended))
