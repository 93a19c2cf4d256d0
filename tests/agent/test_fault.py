"""Provider faults, and the outcome and saved changes of the run."""

import json
import socket
import threading

from loop import ANTHROPIC, OPENAI, call, changed, digest, finish, must, text
from scripted import Server

WRITE = call("workspace.write", path="added.txt", content="by the agent\n")


def good_run(bench, api, **how):
    answer = bench.play([
        {"expect": {"first": "Add a line", "tools": ["workspace.edit"]}, "text": "Grüße – ich sehe nach.", "calls": [
            {"tool": "workspace.read", "args": {"path": "lib/a.txt"}}, {"tool": "workspace.list"}]},
        {"expect": {"last": ["3\\|three", "plugin\\.php"]}, **call("workspace.edit", path="lib/a.txt", old_text="three\n", new_text="three\nfour\n")},
        {**finish("Added a line."), **how},
    ], api=api)
    bundle = bench.good(answer)
    must(changed(answer) == ["lib/a.txt"] and "+four" in text(bundle, "files/patch.diff"), str(answer))
    must(len(answer.requests) == 3, f"{len(answer.requests)} requests for three turns")
    must("Grüße" in text(bundle, "files/transcript.json") + json.dumps(answer.result, ensure_ascii=False), "the model's words are not in the transcript")
    for row in answer.requests:
        must(row["key_sha256"] == digest(answer.key), "another key arrived")
    return answer


def test_openai_chat_run_edits_a_file_end_to_end(bench):
    good_run(bench, OPENAI)


def test_anthropic_messages_run_edits_a_file_end_to_end(bench):
    good_run(bench, ANTHROPIC)


def test_slow_stream_and_single_json_response_are_both_accepted(bench):
    for shape in ({"pace": {"bytes": 37, "milliseconds": 1}}, {"pace": {"characters": 1}}, {"whole": True}):
        good_run(bench, OPENAI, **shape)
    good_run(bench, ANTHROPIC, pace={"bytes": 41, "milliseconds": 1})


def run_with_temporary_fault(bench, faults, api, tries):
    """Checks that after temporary provider faults the loop repeats only the model request; the preceding tool call is executed once."""
    append = call("terminal.run", command="echo once >> lib/a.txt")
    answer = bench.play([append, *faults, finish()], api=api)
    bundle = bench.good(answer)
    must(text(bundle, "files/patch.diff").count("+once") == 1, "the work was done twice")
    must(len(answer.requests) == tries, f"expected {tries} requests, there were {len(answer.requests)}")
    sent = [json.dumps(row["messages"]) for row in answer.requests[1:]]
    must(len(set(sent)) == 1, "another conversation was sent the second time")
    return answer


def test_model_request_answered_with_429_is_retried_after_the_delay_that_the_provider_states(bench):
    limited = {"fault": "status", "status": 429, "headers": {"Retry-After": "1"}, "times": 2}
    for api in (OPENAI, ANTHROPIC):
        answer = run_with_temporary_fault(bench, [limited], api, 4)
        times = [row["time"] for row in answer.requests]
        must(times[2] - times[1] >= 0.99 and times[3] - times[2] >= 0.99, f"retry-after was not honoured: {times}")


def test_temporary_provider_faults_are_retried(bench):
    run_with_temporary_fault(bench, [{"fault": "status", "status": 500}, {"fault": "status", "status": 503}], OPENAI, 4)
    run_with_temporary_fault(bench, [{"fault": "status", "status": 529, "message": "Overloaded"}], ANTHROPIC, 3)
    for api in (OPENAI, ANTHROPIC):
        run_with_temporary_fault(bench, [{"cut": 2, "text": "half an answ"}], api, 3)
        run_with_temporary_fault(bench, [{"fault": "error-event", "message": "overloaded"}], api, 3)


def test_failed_tool_call_prints_its_reason_in_agent_output(bench):
    absent = call("workspace.edit", path="lib/a.txt", old_text="not in it\n", new_text="x\n")
    good = call("workspace.edit", path="lib/a.txt", old_text="three\n", new_text="three\nfour\n")
    answer = bench.play([absent, good, finish()])
    bench.good(answer)
    words, = (row["stdout"] for row in answer.result["transcript"]["executions"] if row["command"] == "agent")
    failed = [line for line in words.splitlines() if line.startswith("[workspace.edit")]
    must(len(failed) == 1 and failed[0].startswith("[workspace.edit: failed: lib/a.txt: old_text is not in the file"), f"no reason: {words}")
    must("[task.finish: ok]" in words, f"the call that went well: {words}")


def run_with_lasting_fault(bench, fault, api=OPENAI):
    """Checks that a run with a lasting provider fault fails, and that the edit before the fault is saved."""
    answer = bench.play({"turns": [WRITE, fault], "after": "repeat"}, "--timeout", "300s", api=api, seconds=330)
    bench.good(answer, "failed", 1, "wp_codebox_provider_unavailable")
    must(changed(answer) == ["added.txt"], f"the edit was lost\n{answer}")
    outcome = answer.result["completion_outcome"]
    must((outcome["status"], outcome["nextAction"]) == ("partial", "review"), json.dumps(outcome))
    must(2 <= len(answer.requests) <= 12, f"{len(answer.requests)} requests")
    return answer


def test_run_whose_provider_stays_down_fails_and_keeps_its_changes(bench):
    run_with_lasting_fault(bench, {"fault": "status", "status": 500, "message": "down ${key}"})


def test_run_fails_if_the_provider_stream_is_cut_at_every_attempt(bench):
    run_with_lasting_fault(bench, {"cut": 2, "text": "half an answ"}, ANTHROPIC)


def test_malformed_provider_stream_fails_the_run(bench):
    run_with_lasting_fault(bench, {"fault": "malformed"})


def test_truncated_json_from_the_provider_fails_the_run(bench):
    run_with_lasting_fault(bench, {"fault": "malformed", "whole": True})


def test_empty_provider_response_fails_the_run(bench):
    run_with_lasting_fault(bench, {"fault": "empty"}, ANTHROPIC)


def test_oversized_provider_response_fails_the_run(bench):
    for api in (OPENAI, ANTHROPIC):
        run_with_lasting_fault(bench, {"fault": "oversized", "bytes": 256 << 20}, api)


def test_unreachable_provider_fails_the_run(bench):
    # The socket is bound, so that no other process gets the port, but not listening, so that connections are refused.
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        answer = bench.play([], "--timeout", "120s", base=f"http://127.0.0.1:{held.getsockname()[1]}/v1")
    bench.good(answer, "failed", 1, "wp_codebox_provider_unavailable")
    must(changed(answer) == [], str(answer))


def test_rejected_model_key_ends_the_run_as_blocked(bench):
    for api in (OPENAI, ANTHROPIC):
        full, environment, name, key = bench.arguments([finish()], api=api)
        environment = {**environment, "SCRIPTED_MODEL_KEY": "sk-test-anotherkeyanotherkeyanother"}
        answer = bench.known(bench.finish(full, bench.start(full, environment)), name, key)
        answer.key = environment["SCRIPTED_MODEL_KEY"]
        bench.good(answer, "blocked", 3, "wp_codebox_provider_rejected")
        must(len(answer.requests) == 1, "a refused key was tried again")
        must("key" in answer.json["error"]["message"], str(answer.json["error"]))


def test_unknown_model_ends_the_run_as_blocked(bench):
    answer = bench.play([finish()], model="scripted-2")
    bench.good(answer, "blocked", 3, "wp_codebox_provider_rejected")
    must("scripted-2" in answer.json["error"]["message"] and len(answer.requests) == 1, str(answer.json["error"]))


def test_provider_error_message_is_truncated_and_sanitized(bench):
    answer = bench.play([{"fault": "status", "status": 400, "message": "bad \x1b[31mred\x1b[0m ${key}\nsecond line\n" + "x" * 5000}])
    bench.good(answer, "blocked", 3, "wp_codebox_provider_rejected")
    said = answer.json["error"]["message"]
    must("bad" in said and len(said) < 500 and "second line" not in said and "\x1b" not in said, repr(said))


def test_provider_redirect_is_not_followed(bench):
    other = Server({"": {"turns": [finish()], "after": "repeat"}}).start()
    try:
        answer = bench.play([{"fault": "redirect", "to": f"http://127.0.0.1:{other.port}/v1/chat/completions"}])
        answer.expect(3, "wp_codebox_provider_rejected")
        must(answer.result["outcome"] == "blocked", str(answer))
        bench.bundle(answer)
        must(other.requests == [], "the redirect was followed")
        good = bench.play([finish()], base=f"http://127.0.0.1:{other.port}/v1")
        must(len(other.requests) == 1, f"control: that server does answer\n{good}")
    finally:
        other.close()


def test_model_is_told_about_unparsable_tool_arguments_and_can_retry(bench):
    for api in (OPENAI, ANTHROPIC):
        answer = bench.play([
            {"calls": [{"tool": "workspace.write", "raw_args": '{"path": "added.txt", "content": "x'}]},
            {"expect": {"last": "(?i)arguments|JSON"}, "calls": [{"tool": "workspace.write", "args": {"path": 7}}, {"tool": "workspace.write", "raw_args": "[1]"}]},
            {"expect": {"last": "(?i)content|path|argument"}, **WRITE},
            finish(),
        ], api=api)
        bench.good(answer)
        must(changed(answer) == ["added.txt"], str(answer))


def test_model_key_echoed_by_the_provider_is_redacted(bench):
    # The provider returns the key in its text and in a command for the guest.
    answer = bench.play([{"text": "Your key is ${key}.", **call("terminal.run", command="echo ${key} > /tmp/key; cat /tmp/key; echo done > done.txt")}, finish()])
    bench.good(answer)
    must(any("[REDACTED" in row["text"] for row in answer.requests[-1]["messages"]), "control: the redaction is seen")
    # A key in the change itself blocks the run.
    answer = bench.play([call("workspace.write", path="key.txt", content="${key}\n"), finish()])
    must(not answer.mismatches, str(answer.mismatches))
    answer.expect(3, "wp_codebox_secret_in_patch")
    bench.without(answer, answer.key)


def test_each_concurrent_run_sends_only_its_own_model_key(bench):
    slow = {"pace": {"characters": 8, "milliseconds": 30}, "text": "A long answer. " * 6}
    # The server answers only after both runs have sent a request, so the runs overlap.
    both = threading.Barrier(2, timeout=60)

    def first(number):
        def step(_asked):
            both.wait()
            return {**slow, **call("workspace.write", path=f"by-{number}.txt", content=f"{number}\n")}

        return step

    started = []
    for number in range(2):
        steps = [first(number), {**slow, **finish()}]
        full, environment, name, key = bench.arguments(steps, goal=f"Task {number}.")
        started.append((full, bench.start(full, environment), name, key))
    answers = [bench.known(bench.finish(full, process), name, key) for full, process, name, key in started]
    for number, answer in enumerate(answers):
        bench.good(answer)
        must(changed(answer) == [f"by-{number}.txt"], str(answer))
        must({row["key_sha256"] for row in answer.requests} == {digest(answer.key)}, "the keys were mixed")
        must(all(f"Task {number}." in row["messages"][0]["text"] for row in answer.requests), "the conversations were mixed")
        bench.without(answer, answers[1 - number].key)
    times = [[row["time"] for row in answer.requests] for answer in answers]
    must(times[0][0] < times[1][-1] and times[1][0] < times[0][-1], "control: they did not overlap")


