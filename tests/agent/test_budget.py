"""Budgets, repetitive conversations and context windows."""

import json

from loop import ANTHROPIC, OPENAI, call, changed, finish, must, results, text

WRITE = call("workspace.write", path="added.txt", content="x\n")


def steps(number, usage=None, start=0):
    """Returns `number` model turns, each with a different command, so that the loop detects no repetition."""
    return [{**call("terminal.run", command=f"echo {n} >> counted.txt"), **({"usage": usage} if usage else {})} for n in range(start, start + number)]


def exhausted(bench, script, *flags, requests, words):
    """Checks that the run ends before it exceeds a budget and keeps its changes. The loop estimates the size of a model
    request in advance, so `requests` lists each permitted number of requests."""
    answer = bench.play(script, *flags)
    bench.good(answer, "partial", 3, "wp_codebox_budget_exhausted")
    must(words in answer.json["error"]["message"], f"which budget? {answer.json['error']}")
    must(changed(answer) == ["counted.txt"], f"the change is lost\n{answer}")
    must(len(answer.requests) in requests, f"expected {requests} requests, there were {len(answer.requests)}")
    return answer


def test_exceeding_max_turns_ends_the_run_as_partial(bench):
    exhausted(bench, steps(5), "--max-turns", "3", requests=[3], words="turns")
    bench.good(bench.play([*steps(2), finish()], "--max-turns", "3"))


def test_exceeding_token_budgets_ends_the_run_as_partial(bench):
    use = {"input": 10_000, "output": 100}
    exhausted(bench, steps(6, use), "--max-input-tokens", "35000", requests=[2, 3], words="input")
    exhausted(bench, steps(6, use), "--max-output-tokens", "250", requests=[3], words="output")
    answer = bench.play([*steps(2, use), {**finish(), "usage": use}], "--max-input-tokens", "50000", "--max-output-tokens", "5000")
    bench.good(answer)
    model = answer.result["cost"]["model"]
    must((model["input_tokens"], model["output_tokens"], model["turns"]) == (30_000, 300, 3), json.dumps(model))


def test_exceeding_max_cost_ends_the_run_as_partial(bench):
    # At 1 and 2 dollars per million tokens, a turn of 10,000 input and 50,000 output tokens costs 0.11.
    use = {"input": 10_000, "output": 50_000}
    prices = ["--model-prices", "1,2", "--max-output-tokens", "1000000"]
    answer = exhausted(bench, steps(5, use), *prices, "--max-cost", "0.23", requests=[2, 3], words="dollar")
    must(answer.result["cost"]["model"]["cost_microusd"] == 110_000 * len(answer.requests), json.dumps(answer.result["cost"]))
    answer = bench.play([*steps(2, use), {**finish(), "usage": use}], *prices, "--max-cost", "0.90")
    bench.good(answer)
    must(answer.result["cost"]["model"]["cost_microusd"] == 330_000, json.dumps(answer.result["cost"]))
    refused = bench.play([finish()], "--max-cost", "0.50")
    must(refused.exit != 0 and refused.code == "wp_codebox_input_invalid" and refused.requests == [], f"a budget without prices\n{refused}")


def test_repeated_identical_turns_end_the_run_as_no_progress(bench):
    same = {"turns": [WRITE, call("workspace.read", path="lib/a.txt")], "after": "repeat"}
    answer = bench.play(same, "--max-turns", "30")
    bench.good(answer, "partial", 3, "wp_codebox_agent_no_progress")
    must(3 <= len(answer.requests) <= 12, f"{len(answer.requests)} requests")
    must(changed(answer) == ["added.txt"], str(answer))
    # Control: a run with more turns succeeds if all of them differ.
    bench.good(bench.play([*steps(len(answer.requests) + 2), finish()], "--max-turns", "30"))


def test_turns_with_only_failing_tool_calls_end_the_run_as_no_progress(bench):
    failing = [call("workspace.read", path=f"absent-{n}.txt") for n in range(40)]
    answer = bench.play([WRITE, *failing], "--max-turns", "38")
    bench.good(answer, "partial", 3, "wp_codebox_agent_no_progress")
    must(len(answer.requests) < 30, f"{len(answer.requests)} requests")


def test_run_without_changes_is_no_op_and_a_blocked_or_content_filtered_run_is_blocked(bench):
    answer = bench.play([call("workspace.read", path="plugin.php"), finish("Nothing to do.")])
    bench.good(answer, "no_op")
    answer = bench.play([WRITE, call("task.blocked", reason="The licence server is not reachable from here.")])
    bench.good(answer, "blocked", 3, "wp_codebox_agent_blocked")
    must("licence server" in json.dumps(answer.json), "the reason is lost")
    must(changed(answer) == ["added.txt"], str(answer))
    answer = bench.play([{**WRITE}, {"text": "x", "stop": "filtered"}])
    bench.good(answer, "blocked", 3, "wp_codebox_provider_rejected")


def test_conversation_over_the_context_window_is_compacted(bench):
    big = [call("terminal.run", command=f"head -c 12000 /dev/zero | tr '\\0' {letter}") for letter in "abcdefgh"]
    too_long = {"fault": "status", "status": 400, "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in more."}

    # The old outputs are cut; that is enough, so the model is not asked for a summary.
    def go(asked):
        return finish() if any(made.name == "workspace_write" for message in asked.messages for made in message.calls) else WRITE

    for api in (OPENAI, ANTHROPIC):
        answer = bench.play({"turns": [*big, too_long, go], "after": "repeat"}, api=api)
        bench.good(answer)
        sizes = [row["bytes"] for row in answer.requests]
        must(sizes[-1] < sizes[len(big)] * 0.6, f"the conversation was not shortened: {sizes}")
        last = json.dumps(answer.requests[-1]["messages"])
        must("Add a line" in last, "the task itself was lost")
        must(changed(answer) == ["added.txt"], str(answer))


def summary_wanted(asked):
    return "must become shorter" in asked.messages[-1].text


def test_model_requests_fit_the_configured_context_window(bench):
    waiting = [call("terminal.run", command=f"head -c 9000 /dev/zero | tr '\\0' {letter}") for letter in "abcdefghijkl"] + [WRITE]
    rest = iter(waiting)

    def go(asked):
        return {"text": "NOTE-OF-MINE: outputs were read."} if summary_wanted(asked) else next(rest, finish())

    answer = bench.play({"turns": [go], "after": "repeat"}, "--model-context-tokens", "16000", "--max-turns", "40")
    bench.good(answer)
    must(changed(answer) == ["added.txt"], str(answer))
    sizes = [row["bytes"] for row in answer.requests]
    must(max(sizes) < 16000 * 4, f"more was sent than the window holds: {sizes}")
    must(sum(9000 for _ in waiting) > 16000 * 4, "control: it would not have fitted")


def test_large_tool_output_is_truncated_before_it_reaches_the_model(bench):
    answer = bench.play([
        call("terminal.run", command="head -c 8000000 /dev/zero | tr '\\0' x; echo THE-END"),
        {"expect": {"last": "THE-END"}, **call("workspace.write", path="big.txt", content="line of text\n" * 4000)},
        call("workspace.read", path="big.txt", lines=2000),
        {"expect": {"last": "(?i)start_line|next|more"}, **finish()},
    ])
    bundle = bench.good(answer)
    sizes = [len(said) for _, said in results(answer)]
    must(max(sizes) < 70_000, f"a result of {max(sizes)} characters was sent")
    # The command printed 8 MB; the transcript holds at most 4 MiB of it plus the document around it.
    must(len(text(bundle, "files/transcript.json")) < 5_000_000, "the transcript is not bounded")
