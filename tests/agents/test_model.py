"""Model endpoint access with curl from real guests, and refused agent options."""

import json
import os

import pytest

from harness import must

#: Each output line is `<name> <status> <reason or model text>`.
PROBE = r"""
ask() { name=$1; shift; out=$(curl -s -m 20 -o /tmp/body -w '%{http_code}' "$@"); end=$?
	if [ $end != 0 ]; then echo "$name failed $end"; return; fi
	word=$(grep -o '"reason":"[a-z-]*"' /tmp/body | head -n 1); echo "$name $out ${word:-$(grep -o 'It is [a-z]*' /tmp/body | head -n 1)}"; }
body='{"model":"scripted-1","messages":[{"role":"user","content":"hello"}]}'
base=${CODEBOX_MODEL_BASE_URL:-http://127.0.0.1:3128/model}
ask answer -d "$body" "$base/chat/completions"
ask placeholder -d "$body" -H "Authorization: Bearer $OPENAI_API_KEY" "$base/chat/completions"
ask foreign -d "$body" -H 'Authorization: Bearer sk-foreign' -H 'X-Api-Key: sk-foreign' "$base/chat/completions"
ask models "$base/models"
ask files "$base/files"
ask beside --path-as-is -d "$body" "$base/../admin"
ask encoded --path-as-is -d "$body" "$base/chat%2fcompletions"
ask delete -X DELETE "$base/models/scripted-1"
ask proxied --noproxy '' -x http://127.0.0.1:3128 -d "$body" "$MODEL_ADDRESS/chat/completions"
ask direct --noproxy '*' -d "$body" "$MODEL_ADDRESS/chat/completions"
echo "environment ${CODEBOX_MODEL:-none} ${CODEBOX_MODEL_API:-none} $(printf %s "$OPENAI_API_KEY" | sed 's/[0-9a-f]\{40\}$/PLACEHOLDER/')"
"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def hello(asked):
    return {"text": "It is answered."}


def probe(bench, session, *arguments):
    """Runs PROBE as the agent. Returns its output lines by their first word, and the answer of the run."""
    script = f"MODEL_ADDRESS={bench.server.base(session)}; export MODEL_ADDRESS; {PROBE}"
    source = bench.source()
    answer = bench.ask("--mount", f"{source}:/workspace/plugin", "--goal", "Look", "--agent-command", f"sh -c {quoted(script)}", *arguments)
    stdout = next(row["stdout"] for row in answer.result["transcript"]["executions"] if row["phase"] == "agent")
    return dict(line.partition(" ")[::2] for line in stdout.splitlines()), answer


def test_network_preset_model_allows_only_the_model_endpoints(bench):
    session = bench.script(hello)
    found, answer = probe(bench, session, "--network-preset", "model", *bench.model(session))
    answer.expect(0)
    for name in ("answer", "placeholder", "foreign"):
        must(found[name] == "200 It is answered", f"{name}: {found}")
    must(found["models"].startswith("200"), f"{found}")
    for name, wanted in {
        "files": '403 "reason":"model-path-not-allowed"',
        "beside": '403 "reason":"path-ambiguous"',
        "encoded": '403 "reason":"path-ambiguous"',
        "delete": '403 "reason":"model-method-not-allowed"',
        "proxied": '403 "reason":"private-address"',
        "direct": "failed 7",
        "environment": "scripted-1 openai-chat codebox_PLACEHOLDER",
    }.items():
        must(found[name] == wanted, f"{name}: {found[name]!r}, expected {wanted!r}")
    rows = bench.asked(session)
    must(len(rows) == 4, f"{[(row['method'], row['path']) for row in rows]}")
    bench.check_key_arrived(rows)
    must(not any("foreign" in json.dumps(row) for row in rows), "a key of the program's own arrived")
    bench.check_key_not_stored(answer)
    log = os.path.join(answer.json["artifacts"]["directory"], "files", "runtime-evidence", "egress.jsonl")
    with open(log, encoding="utf-8") as file:
        text = file.read()
    modes = [row for row in map(json.loads, text.splitlines()) if row["mode"] == "model"]
    must(len(modes) == 8 and all(row["host"] == "model" and "address" not in row for row in modes), f"{modes}")
    must(sum(row["decision"] == "allowed" and row["secrets"] == ["OPENAI_API_KEY"] for row in modes) == 4, f"{modes}")


def test_model_is_unreachable_without_network_preset_model(bench):
    session = bench.script(hello)
    policy = {"network": {"allowHosts": ["api.example.org"]}, "filesystem": "readwrite-mounts", "commands": ["command-agent-run"],
              "secrets": "none", "approvals": "never"}
    found, answer = probe(bench, session, "--policy", json.dumps(policy))
    answer.expect(0)
    must(found["answer"] == '403 "reason":"model-not-allowed"', f"{found}")
    must(found["environment"] == "none none ", f"{found}")
    found, answer = probe(bench, session)
    must(found["answer"] == "failed 7", f"{found}")
    must(not bench.asked(session), "the model was asked")


def test_guest_that_runs_checks_cannot_reach_the_model(bench):
    session = bench.script(hello)
    script = ("base=${CODEBOX_MODEL_BASE_URL:-closed}; echo \"$base ${OPENAI_API_KEY:-no key}\"; "
              "curl -s -d '{}' http://127.0.0.1:3128/model/chat/completions | grep -o '\"reason\":\"[a-z-]*\"'")
    source = bench.source()
    answer = bench.ask("--mount", f"{source}:/workspace/plugin", "--goal", "Look", "--network-preset", "model", *bench.model(session),
                       "--agent-command", "sh -c 'curl -s -d \"{\\\"model\\\":\\\"m\\\",\\\"messages\\\":[{\\\"role\\\":\\\"user\\\",\\\"content\\\":\\\"x\\\"}]}\" $CODEBOX_MODEL_BASE_URL/chat/completions'",
                       "--check", f"sh -c {quoted(script)}").expect(0)
    tail = answer.result["checks"][0]["output_tail"]
    must(tail.split("\n")[:2] == ["closed no key", '"reason":"model-not-allowed"'], tail)
    must(len(bench.asked(session)) == 1, "control: the agent's own question arrived, and no other")


@pytest.mark.agent("codex")
def test_run_with_invalid_agent_or_model_options_is_refused_before_the_model_is_asked(bench):
    session = bench.script(hello)
    mount = ["--mount", f"{bench.source()}:/workspace/plugin", "--goal", "Look"]
    model = bench.model(session)
    policy = {"network": "deny", "filesystem": "readwrite-mounts", "commands": ["command-agent-run"], "secrets": "none", "approvals": "never"}
    opened = {**policy, "network": {"presets": ["model"]}}

    answer = bench.ask(*mount, "--agent", "telepathy", *model).expect(2, "wp_codebox_agent_missing")
    for name in ("aider", "claude", "codex", "mini-swe-agent", "opencode"):
        must(name in answer.json["error"]["message"], f"{name} is not named: {answer}")
    bench.ask(*mount, "--agent", "../codex", *model).expect(1, "wp_codebox_input_invalid")
    answer = bench.ask(*mount, "--agent", "codex", *model, agents=bench.directory).expect(125, "wp_codebox_agent_program_missing")
    must("npm install" in str(answer.json["error"]["hints"]) and bench.directory in str(answer.json["error"]["hints"]), f"{answer}")
    bench.install("codex")
    bench.ask(*mount, "--agent", "claude", *model).expect(1, "wp_codebox_model_invalid")
    bench.ask(*mount, "--agent", "codex").expect(1, "wp_codebox_model_missing")
    bench.ask(*mount, "--agent-command", "true", "--network-preset", "model").expect(1, "wp_codebox_model_missing")
    bench.ask(*mount, "--agent", "codex", "--policy", json.dumps(policy), *model).expect(126, "wp_codebox_forbidden")
    exposing = {**opened, "secrets": "connector-scoped", "expose_secrets": ["OPENAI_API_KEY"]}
    answer = bench.ask(*mount, "--agent-command", "true", "--policy", json.dumps(exposing), *model).expect(1, "wp_codebox_secret_invalid")
    must(bench.key not in answer.stdout + answer.stderr, "the refusal shows the key")
    must(not bench.asked(session), "the model was asked")
    # Control: the same run with complete options starts.
    bench.ask(*mount, "--agent-command", "true", "--policy", json.dumps(opened), *model).expect(0)


def test_agents_command_lists_the_agent_presets(bench):
    rows = {row["name"]: row for row in bench.call("agents", "--share", bench.environment["CODEBOX_SHARE"], "--agents-dir", bench.directory, "--json").expect(0).json["agents"]}
    must(sorted(rows) == ["aider", "claude", "codex", "mini-swe-agent", "opencode"], f"{sorted(rows)}")
    must(not any("error" in row or row["installed"] for row in rows.values()), f"{rows}")
