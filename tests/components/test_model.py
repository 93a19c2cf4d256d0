"""An agent that is a plugin in the guest and calls the model with WordPress's AI client, through the egress bridge."""

import json
import os
import shutil

from scripted import Server
from world import component, run, shell, task

from harness import must
from harness.frames import task as goal
from harness.reduced import POLICY

KEY = "sk-of-the-host-that-stays-outside-0123456789"
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
PROBES = {"component-agent": {"type": "ability", "name": "example-agent/repair"},
          "provider-openai-compatible": {"type": "filter", "name": "provider_openai_compatible_ready"}}
REPAIR = [
    {"calls": [{"tool": "list_files", "args": {}}], "expect": {"first": "Mend the second line", "tools": ["replace_text"]}},
    {"calls": [{"tool": "read_file", "args": {"path": "lib/a.txt"}}], "expect": {"last": "a.txt"}},
    {"calls": [{"tool": "replace_text", "args": {"path": "lib/a.txt", "old": "two", "new": "2"}}], "expect": {"last": "three"}},
    {"text": "The second line says 2 now.", "expect": {"last": "replaced"}},
]


def fixture(bench, slug):
    path = os.path.join(bench.directory, "components", slug)
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(os.path.join(FIXTURES, slug), path)
    bench.own(path)
    return {"slug": slug, "source": path, "load_as": "plugin", "activate": True, "required": True, "readiness_probe": PROBES[slug]}


def both(bench):
    return [fixture(bench, "provider-openai-compatible"), fixture(bench, "component-agent")]


def model(server, script, **changes):
    """Returns the request fields that allow the guest to call the scripted model."""
    policy = {**POLICY, "network": {"presets": ["model"]}, "secrets": "connector-scoped", "minimum_isolation": "full"}
    return {"model": {"provider": "test", "model": "scripted", "api": "openai-chat", "base_url": server.base(script), "private": True, "secret": "OPENAI_COMPATIBLE_API_KEY"},
            "secrets": [{"env": "OPENAI_COMPATIBLE_API_KEY", "value": KEY, "hosts": []}], "policy": policy, "task": goal("Mend the second line"), **changes}


def test_component_agent_repairs_a_file_through_the_wordpress_ai_client(bench):
    server = Server({"repair": REPAIR}, key=KEY).start()
    try:
        checks = ["grep -qx 2 lib/a.txt", "sh -c '! printenv OPENAI_COMPATIBLE_API_KEY && ! printenv CODEBOX_MODEL_BASE_URL'"]
        ended = run(bench, task("example-agent/repair", max_turns=6), both(bench), **model(server, "repair", checks=checks)).expect("succeeded")
        must(ended.answered() == {"status": "completed", "result": {"summary": "The second line says 2 now.", "turns": 4, "files": ["lib/a.txt"]}},
             str(ended.answered()))
        must([row["path"] for row in ended.result["changed_files"]] == ["/workspace/plugin/lib/a.txt"], str(ended))
        must(len(server.of("repair")) == 4 and not any(row.get("mismatch") for row in server.requests), str(server.requests)[:2000])
        must(KEY not in json.dumps(ended.frame) + json.dumps(ended.events) and KEY.encode() not in ended.whole(), "the key left the runner")
    finally:
        server.close()


def test_provider_key_is_not_in_the_guest(bench):
    """Searches the agent's PHP environment and every file and process of its guest."""
    server = Server({"repair": REPAIR}, key=KEY).start()
    try:
        # The key is split because the search's own command line is visible in the guest.
        # grep exits 2 for unreadable files, so only its output counts.
        look = ("KEY=$(printf %s sk-of-the- host-that-stays-outside-); "
                "test -z \"$(grep -rlsF \"$KEY\" / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr --exclude-dir=wordpress --exclude-dir=opt)\" && "
                "test -z \"$(cat /proc/*/environ | tr '\\0' '\\n' | grep -aF \"$KEY\")\"")
        ended = run(bench, shell(look), both(bench), **model(server, "repair")).expect("no_op")
        # Control: the same search finds a planted key.
        control = look.replace("KEY=", "printf %s sk-of-the-host-that-stays-outside- >/tmp/planted; KEY=")
        run(bench, shell(control), both(bench), **model(server, "repair")).expect("failed", "wp_codebox_run_failed")
        control = look.replace("KEY=", "export PLANTED=$(printf %s sk-of-the- host-that-stays-outside-); KEY=", 1)
        run(bench, shell(control), **model(server, "repair")).expect("failed", "wp_codebox_run_failed")
        show = shell("echo key=$OPENAI_COMPATIBLE_API_KEY base=$CODEBOX_MODEL_BASE_URL model=$CODEBOX_MODEL api=$CODEBOX_MODEL_API")
        ended = run(bench, show, **model(server, "repair")).expect("no_op")
        must("key=codebox_" in ended.output, ended.output)
        must("base=http://127.0.0.1:3128/model model=scripted api=openai-chat" in ended.output, ended.output)
    finally:
        server.close()


def test_policy_without_the_network_preset_model_lets_no_request_reach_the_model(bench):
    server = Server({"repair": REPAIR}, key=KEY).start()
    try:
        closed = {**POLICY, "minimum_isolation": "full", "secrets": "connector-scoped"}
        ended = run(bench, task("example-agent/repair"), both(bench), **model(server, "repair", policy=closed))
        ended.expect("failed", "wp_codebox_runtime_task_failed")
        must(not server.requests, "the model was asked")
        other = {**closed, "network": {"allowHosts": ["example.org"]}}
        ended = run(bench, task("example-agent/repair"), both(bench), **model(server, "repair", policy=other))
        ended.expect("failed", "wp_codebox_runtime_task_failed")
        must(not server.requests, "the model was asked")
        # Control: with the preset the model receives requests.
        run(bench, task("example-agent/repair"), both(bench), **model(server, "repair")).expect("succeeded")
    finally:
        server.close()


def test_provider_error_fails_the_runtime_task(bench):
    steps = {"status": [{"fault": "status", "status": 500, "message": "down"}], "malformed": [{"fault": "malformed"}]}
    server = Server({**steps, "repair": REPAIR}, key="another-key-than-the-host-has-0123456789").start()
    try:
        ended = run(bench, task("example-agent/repair"), both(bench), **model(server, "repair"))
        ended.expect("failed", "wp_codebox_runtime_task_failed")
        must("401" in ended.message or "nauthorized" in ended.message, ended.message)
    finally:
        server.close()
    server = Server(steps, key=KEY).start()
    try:
        for name in steps:
            run(bench, task("example-agent/repair"), both(bench), **model(server, name)).expect("failed", "wp_codebox_runtime_task_failed")
            must(server.of(name), f"{name} was not asked")
    finally:
        server.close()


def test_instructions_in_a_file_give_the_agent_no_host_file_and_no_other_address(bench):
    """An agent that obeys instructions in a workspace file can neither read host files nor reach other addresses by HTTP."""
    steps = [
        {"calls": [{"tool": "read_file", "args": {"path": "lib/a.txt"}}]},
        {"calls": [{"tool": "read_file", "args": {"path": "../../etc/shadow"}}]},
        {"calls": [{"tool": "read_file", "args": {"path": "/etc/shadow"}}], "expect": {"last": "no such file"}},
        {"text": "Nothing was there.", "expect": {"last": "no such file"}},
    ]
    server = Server({"tricked": steps}, key=KEY).start()
    try:
        ended = run(bench, task("example-agent/repair"), both(bench), **model(server, "tricked")).expect("no_op")
        must(ended.answered()["result"]["summary"] == "Nothing was there.", str(ended))
        must(not any(row.get("mismatch") for row in server.requests), str(server.requests)[:2000])
        asks = "wp eval 'foreach ( array( \"http://127.0.0.1:{port}/x\", \"http://127.0.0.1:3128/model/files\", \"http://169.254.169.254/\" ) as $url ) " \
               "{{ $r = wp_safe_remote_get( $url ); echo is_wp_error( $r ) ? \"error\" : wp_remote_retrieve_response_code( $r ), \" \"; }}'"
        port = server.base("tricked").split(":")[2].split("/")[0]
        before = len(server.requests)
        ended = run(bench, shell(asks.format(port=port)), **model(server, "tricked")).expect("no_op")
        must("200" not in ended.output and len(server.requests) == before, ended.output)
    finally:
        server.close()


def test_missing_provider_plugin_fails_the_run(bench):
    server = Server({"repair": REPAIR}, key=KEY).start()
    try:
        agent = fixture(bench, "component-agent")
        ended = run(bench, task("example-agent/repair"), [agent], **model(server, "repair")).expect("failed", "wp_codebox_runtime_task_failed")
        must(not server.requests, "the model was asked")
        blind = component(bench, "blind", readiness_probe=PROBES["provider-openai-compatible"])
        ended = run(bench, task("example-agent/repair"), [blind, agent], **model(server, "repair"))
        ended.refused("wp_codebox_component_unavailable", "blind", "provider_openai_compatible_ready")
    finally:
        server.close()
