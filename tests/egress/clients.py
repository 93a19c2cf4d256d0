"""Runs guest scripts that use the usual HTTP clients, and reads the egress log."""

import json
import os

GUEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest")

PRELUDE = r"""
cd /tmp
C=/workspace/clients
WP="php /opt/codebox/guest/run-php.php $C/wordpress.php"
say() { name=$1; shift; printf '%s=' "$name"; "$@" 2>&1 | head -n 1; }
web() { curl -sS -m 20 -o body -w '%{http_code} ' "$@" 2>error; echo "$(head -n 1 body 2>/dev/null)$(head -n 1 error)"; rm -f body error; }
"""


def run(bench, script, *arguments, environment=None):
    """Runs a script as the agent, with the clients mounted; returns the answer and its `name=value` lines."""
    answer = start(bench, script, *arguments, environment=environment)
    return answer, output_lines(answer)


def start_arguments(bench, script, *arguments):
    quoted = "'" + (PRELUDE + script).replace("'", "'\\''") + "'"
    return bench.run_arguments("--mount", f"{bench.source()}:/workspace/plugin", "--mount", f"{GUEST}:/workspace/clients:readonly",
                               "--agent-command", f"sh -c {quoted}", *arguments)


def start(bench, script, *arguments, environment=None):
    variables = {"PATH": "/usr/bin:/bin", **(environment or {})}
    return bench.call(*start_arguments(bench, script, *arguments), environment=variables)


def output_lines(answer):
    lines = {}
    for execution in answer.result["transcript"]["executions"]:
        if execution["phase"] == "agent":
            lines.update(line.split("=", 1) for line in execution["stdout"].splitlines() if "=" in line)
    return lines


def bundle(bench, answer):
    """Verifies the bundle and returns its directory."""
    path = answer.json["artifacts"]["directory"]
    bench.call("artifacts", "verify", "--bundle", path, "--state", bench.state, "--json").expect(0)
    return path


def rows(bench, answer):
    with open(os.path.join(bundle(bench, answer), "files", "runtime-evidence", "egress.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def policy(**network):
    return json.dumps({"network": network, "filesystem": "readwrite-mounts", "commands": ["command-agent-run"],
                       "secrets": "none", "approvals": "never"})
