"""Episodes: steps, observations, resets and snapshots of a held sandbox, and the trace in its bundle.
"""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")

from harness import must, tree

DIGITS = set("0123456789abcdef")


class Episode:
    """One episode (a held sandbox with a recorded trace), used through the command line."""

    def __init__(self, bench, source, *arguments):
        self.bench = bench
        answer = bench.call("episode", "start", "--mount", f"{source}:/workspace/plugin", "--ttl", "3m", *arguments,
                            *bench.paths(), "--site", bench.site, "--json")
        self.id = answer.expect(0).json["id"]

    def ask(self, verb, *arguments):
        return self.bench.call("episode", verb, self.id, *arguments, "--state", self.bench.state, "--site", self.bench.site, "--json")

    def step(self, command, *arguments):
        pairs = [part for argument in arguments if "=" in argument and not argument.startswith("--") for part in ("--arg", argument)]
        flags = [argument for argument in arguments if argument.startswith("--") or "=" not in argument]
        return self.ask("step", "--command", command, *pairs, *flags)

    def close(self):
        """Closes the episode and returns the document. `close` waits for the cleanup, which follows the terminal record."""
        closed = self.ask("close").expect(0).json
        later = self.bench.call("runs", "status", self.id, "--state", self.bench.state, "--site", self.bench.site, "--json").expect(0).json
        must(closed["record"]["lifecycle"]["cleanup"]["status"] == "succeeded" and later == closed["record"], json.dumps([closed["record"], later]))
        return closed


def verifiers(bench, directory):
    """Verifies a bundle with `artifacts verify` and with tests/conformance/verify_bundle.py; returns both results."""
    own = bench.call("artifacts", "verify", "--bundle", directory, "--state", bench.state, "--json").exit
    other = subprocess.run([sys.executable, os.path.join(ROOT, "conformance", "verify_bundle.py")], input=directory + "\n", capture_output=True,
                           text=True, check=True)
    return own == 0, json.loads(other.stdout)["valid"], other.stdout[-600:]


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(payload):
    return hashlib.sha256(("wp-codebox/runtime-episode-trace/v1\n" + canonical(payload)).encode()).hexdigest()


def test_episode_trace_digests_are_correct_and_an_altered_trace_is_rejected(bench):
    """Runs two steps, one with an observation and one that fails. Recomputes the digests; both verifiers reject an altered trace."""
    episode = Episode(bench, bench.source("episode"))
    one = episode.step("wordpress.run-php", "code=update_option('episode_case', 'seen'); echo 41 + 1;", "--observe",
                       json.dumps({"type": "wordpress-state", "sections": ["options"], "optionNames": ["episode_case"]})).expect(0).json
    must(one["index"] == 0 and one["execution"]["stdout"] == "42" and one["execution"]["exitCode"] == 0, json.dumps(one)[:900])
    must(one["observation"]["data"]["options"] == {"episode_case": "seen"}, json.dumps(one["observation"]))
    action = {"schema": "wp-codebox/runtime-episode-action/v1", "kind": "command", "command": "wordpress.run-php", "args": one["action"]["args"]}
    must(one["action"]["digest"]["value"] == one["actionRef"]["digest"]["value"] == digest(action), "the digest of the action")
    must(one["executionRef"]["digest"]["value"] == digest(one["execution"]), "the digest of the execution")
    two = episode.ask("step", "--action", json.dumps({
        "command": "command-agent-run", "metadata": {"why": "a test"},
        "args": ["command=sh", "args-json=" + json.dumps(["-c", "echo changed > changed.txt; exit 3"])]})).expect(0).json
    must(two["index"] == 1 and two["execution"]["exitCode"] == 3 and two["action"]["metadata"] == {"why": "a test"}, json.dumps(two)[:900])
    # A command that cannot be executed adds no step.
    episode.step("wordpress.no-such-command").expect(126, "runtime-command-disallowed")
    trace = episode.ask("trace").expect(0).json
    must([step["index"] for step in trace["steps"]] == [0, 1] and trace["reset"]["id"] == f"{episode.id}:reset:0", json.dumps(trace)[:600])
    must([seen["type"] for seen in trace["reset"]["observations"]] == ["runtime-info", "mounts"], json.dumps(trace["reset"])[:600])
    must(bench.directory not in json.dumps(trace) and bench.state not in json.dumps(trace), "a host path")
    closed = episode.close()
    directory = closed["bundle"]["directory"]
    must(closed["record"]["status"] == "succeeded", json.dumps(closed["record"])[:600])
    kinds = {file["kind"]: file["path"] for file in closed["bundle"]["files"]}
    must(kinds.get("runtime-episode-trace") == "files/runtime-episode-trace.json" and kinds.get("runtime-episode") == "files/runtime-episode.jsonl",
         json.dumps(kinds))
    with open(os.path.join(directory, "files", "runtime-episode-trace.json"), encoding="utf-8") as file:
        kept = json.load(file)
    must(kept["steps"] == trace["steps"] and kept["runtime"]["status"] == "destroyed", "another trace than the one that was shown")
    with open(os.path.join(directory, "files", "runtime-episode.jsonl"), encoding="utf-8") as file:
        must([json.loads(line)["type"] for line in file] == ["episode.reset", "episode.step", "episode.step"], "the records")
    must(verifiers(bench, directory)[:2] == (True, True), str(verifiers(bench, directory)))
    # An altered trace with a corrected manifest digest must not verify.
    bent = os.path.join(bench.directory, "bent")
    shutil.copytree(directory, bent)
    for path in [os.path.join(d, n) for d, _, names in os.walk(bent) for n in names]:
        os.chmod(path, 0o644)
    kept["steps"][0]["execution"]["stdout"] = "43"
    text = json.dumps(kept).encode()
    with open(os.path.join(bent, "files", "runtime-episode-trace.json"), "wb") as file:
        file.write(text)
    with open(os.path.join(bent, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    for row in manifest["files"]:
        if row["kind"] == "runtime-episode-trace":
            row["sha256"]["value"] = hashlib.sha256(text).hexdigest()
    with open(os.path.join(bent, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    answer = bench.call("artifacts", "verify", "--bundle", bent, "--json")
    must(answer.exit == 1 and "episode trace is invalid" in answer.stdout, str(answer))
    must(not verifiers(bench, bent)[1], "the conformance verifier accepts the altered trace")


def test_each_known_observation_type_returns_data_and_others_are_refused(bench):
    """User names and secrets in the returned data are masked."""
    source = bench.source("seen")
    episode = Episode(bench, source)
    look = lambda spec: episode.ask("observe", json.dumps(spec) if isinstance(spec, dict) else spec)  # noqa: E731
    seen = look("runtime-info").expect(0).json
    must(seen["schema"] == "wp-codebox/runtime-episode-observation/v1" and seen["data"]["isolation"]["level"], json.dumps(seen)[:400])
    must(set(seen["digest"]["value"]) <= DIGITS and seen["id"] == f"{episode.id}:observation:0", json.dumps(seen)[:400])
    must(look("mounts").expect(0).json["data"][0]["target"] == "/workspace/plugin", "mounts")
    files = look({"type": "files", "path": "/workspace/plugin", "includeContent": True}).expect(0).json["data"]
    with open(os.path.join(source, "lib", "a.txt"), "rb") as file:
        content = file.read()
    rows = {row["path"]: row for row in files["files"]}
    row = rows["/workspace/plugin/lib/a.txt"]
    must(row["sha256"] == hashlib.sha256(content).hexdigest() and row["content"].encode() == content, json.dumps(row))
    plain = look({"type": "files", "path": "/workspace/plugin/lib"}).expect(0).json["data"]["files"]
    must(all("content" not in row for row in plain) and len(plain) == 1, json.dumps(plain))
    look({"type": "files", "path": "/workspace/../etc"}).expect(1, "wp_codebox_input_invalid")
    episode.step("wordpress.run-php", "code=echo 'from the step';").expect(0)
    result = look("command-result").expect(0).json["data"]
    must(result["stdout"] == "from the step" and result["exitCode"] == 0, json.dumps(result))
    look({"type": "command-result", "commandId": "exec-999"}).expect(1, "wp_codebox_input_invalid")
    state = look({"type": "wordpress-state", "sections": ["summary", "users", "plugins", "tables"]}).expect(0).json["data"]
    must(state["summary"]["wordpress"] and state["users"] == [{"ID": 1, "roles": ["administrator"]}] and state["tables"], json.dumps(state)[:600])
    look({"type": "wordpress-state", "sections": ["users"], "userFields": ["user_email"]}).expect(1, "wp_codebox_input_invalid")
    trusted = look({"type": "wordpress-state", "sections": ["users"], "userFields": ["user_email"], "redaction": "none"}).expect(0).json["data"]
    must("@" in trusted["users"][0]["user_email"], json.dumps(trusted))
    events = look("runtime-events").expect(0).json["data"]["events"]
    must("runtime.command.finished" in [event["type"] for event in events], json.dumps(events)[:400])
    must(any("runtime.mounted" in text for text in look("runtime-logs").expect(0).json["data"]["lines"]), "the log")
    page = look({"type": "http-response", "url": "/", "includeBody": True})
    if page.exit == 0:
        must(page.json["data"]["status"] == 200 and "<html" in page.json["data"]["body"], page.stdout[:600])
    else:
        must(page.code == "wp_codebox_command_denied", str(page))
    look("queue-depth").expect(1, "wp_codebox_command_unsupported")
    look({"type": "files", "paths": "/"}).expect(1, "wp_codebox_input_invalid")
    closed = episode.close()
    with open(os.path.join(closed["bundle"]["directory"], "observations.jsonl"), encoding="utf-8") as file:
        kinds = [json.loads(line)["type"] for line in file]
    must("files" in kinds and "wordpress-state" in kinds, str(kinds))
    must(verifiers(bench, closed["bundle"]["directory"])[:2] == (True, True), str(verifiers(bench, closed["bundle"]["directory"])))


def test_episode_reset_starts_a_fresh_guest_and_an_empty_trace(bench):
    """Guest and trace contain nothing from before the reset; the episode records still contain the earlier steps and snapshots."""
    episode = Episode(bench, bench.source("anew"))
    episode.step("wordpress.run-php", "code=update_option('episode_case', 'before'); file_put_contents('/workspace/plugin/x.txt', 'x');").expect(0)
    kept = episode.ask("snapshot", "first").expect(0).json
    episode.ask("reset").expect(0)
    step = episode.step("wordpress.run-php", "code=echo get_option('episode_case', 'nothing'), (int) file_exists('/workspace/plugin/x.txt');").expect(0).json
    must(step["index"] == 0 and step["execution"]["stdout"] == "nothing0", json.dumps(step)[:600])
    trace = episode.ask("trace").expect(0).json
    must(trace["reset"]["id"].endswith(":reset:1") and len(trace["steps"]) == 1 and trace["snapshots"] == [], json.dumps(trace)[:600])
    again = episode.ask("snapshot", "second").expect(0).json
    closed = episode.close()
    with open(os.path.join(closed["bundle"]["directory"], "files", "runtime-episode.jsonl"), encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    must([record["type"] for record in records] == ["episode.reset", "episode.step", "episode.snapshot", "episode.reset", "episode.step",
                                                    "episode.snapshot"], json.dumps(records)[:900])
    must([r["id"] for r in records if r["type"] == "episode.snapshot"] == [kept["id"], again["id"]], json.dumps(records)[:900])
    must(verifiers(bench, closed["bundle"]["directory"])[:2] == (True, True), str(verifiers(bench, closed["bundle"]["directory"])))


def test_value_that_looks_like_a_key_is_redacted_in_the_episode_trace(bench):
    """A value that looks like a key is redacted before digests are computed; the source stays unchanged."""
    source = bench.source("secret")
    before = tree(source)
    episode = Episode(bench, source)
    key = "sk-" + base64.b32encode(os.urandom(30)).decode().lower().rstrip("=")
    step = episode.step("wordpress.run-php", f"code=echo 'key: {key}';").expect(0)
    must(key not in step.stdout and "REDACTED" in step.stdout, step.stdout[:800])
    closed = episode.close()
    with open(os.path.join(closed["bundle"]["directory"], "files", "runtime-episode-trace.json"), encoding="utf-8") as file:
        must(key not in file.read(), "a key is in the trace")
    must(verifiers(bench, closed["bundle"]["directory"])[:2] == (True, True), "it does not verify")
    must(tree(source) == before, "the source changed")


def test_episode_trace_of_an_ended_or_unknown_run_and_an_invalid_ttl_are_refused(bench):
    ended = bench.agent("true").expect(0).result["run_id"]
    answer = bench.call("episode", "trace", ended, "--state", bench.state, "--site", bench.site, "--json")
    must(answer.exit != 0 and answer.code == "wp_codebox_sandbox_not_held", str(answer))
    bench.call("episode", "trace", "run_" + "0" * 32, "--state", bench.state, "--site", bench.site, "--json").expect(1, "wp_codebox_run_not_found")
    bench.call("episode", "start", "--ttl", "soon", *bench.paths(), "--site", bench.site, "--json").expect(1, "wp_codebox_input_invalid")
