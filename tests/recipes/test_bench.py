"""Benchmark results: summary, comparison, matrix, and the commands that read them from a bundle."""

import json
import os
import subprocess

import recipes
from harness import must

BENCH = "wp-codebox/bench-results/v1"


def result(scenarios, component="demo"):
    rows = [{"id": name, "status": "ok", "samples": {"wallMs": samples}} for name, samples in scenarios.items()]
    return {"schema": BENCH, "status": "ok", "component": component, "iterations": 3, "scenarios": rows}


def stored(bench, name, document):
    path = os.path.join(bench.directory, f"{name}.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(document if isinstance(document, str) else json.dumps(document))
    return path


def bench_recipe(bench, name, *more):
    """Writes a recipe that measures two workloads of a small plugin."""
    plugin = os.path.join(bench.directory, "recipe-" + name, "measured")
    os.makedirs(plugin, exist_ok=True)
    with open(os.path.join(plugin, "measured.php"), "w", encoding="utf-8") as file:
        file.write("<?php\n/* Plugin Name: Measured */\n")
    bench.own(plugin)
    workloads = [{"id": "sum", "code": "array_sum( range( 1, 1000 ) );"}, {"id": "options", "code": "get_option( 'home' );"}]
    step = {"command": "wordpress.bench", "args": ["plugin-slug=measured", "iterations=5", f"workloads-json={json.dumps(workloads)}", *more]}
    return recipes.write(bench, name, [step], inputs={"extra_plugins": [{"source": "./measured"}]})


def test_benchmark_results_of_a_recipe_are_summarized_compared_and_extracted_from_its_bundle(bench):
    answer = recipes.run(bench, bench_recipe(bench, "bench")).expect(0)
    bundle = answer.json["artifacts"]["directory"]
    by_bundle = bench.call("bench", "summarize", "--bundle", bundle, "--json").expect(0).json
    must(by_bundle["schema"] == "wp-codebox/benchmark-summary/v1" and by_bundle["status"] == "passed", str(by_bundle))
    must([row["id"] for row in by_bundle["scenarios"]] == ["sum", "options"] and by_bundle["component"] == "measured", str(by_bundle))
    must(by_bundle["scenarios"][0]["metrics"]["wallMs"]["p50"] >= 0 and by_bundle["iterations"] == 5, str(by_bundle))
    piped = subprocess.run([bench.environment["CODEBOX"], "bench", "summarize", "--input", "-", "--json"], input=answer.stdout,
                           capture_output=True, text=True, check=True, env=recipes.PLAIN)
    must(json.loads(piped.stdout)["scenarios"] == by_bundle["scenarios"], piped.stdout)
    same = bench.call("artifacts", "bench-results", "--bundle", bundle, "--json").expect(0).json
    must(same["scenarios"] == by_bundle["scenarios"], str(same))
    compared = bench.call("artifacts", "bench-compare", "--baseline-bundle", bundle, "--candidate-bundle", bundle, "--json").expect(0).json
    must(compared["summary"]["compared"] == 2 and compared["scenarios"][0]["metrics"]["wallMs"]["delta"]["p50"] == 0, str(compared))
    target = os.path.join(bench.directory, "extracted")
    one = bench.call("artifacts", "benchmark", "--bundle", bundle, "--scenario-id", "sum", "--extract-to", target, "--json").expect(0).json
    must(one["schema"] == "wp-codebox/benchmark-artifacts/v1" and one["artifacts"][0]["scenarioIds"] == ["sum"], str(one))
    with open(one["artifacts"][0]["extractedTo"], encoding="utf-8") as file:
        must([row["id"] for row in json.load(file)["scenarios"]] == ["sum"], "another scenario was extracted")
    bench.call("artifacts", "benchmark", "--bundle", bundle, "--extract-to", target, "--json").expect(1, "wp_codebox_input_invalid")
    bench.call("artifacts", "benchmark", "--bundle", bundle, "--scenario-id", "none", "--json").expect(1, "wp_codebox_input_invalid")
    none = bench.call("artifacts", "browser-metrics", "--bundle", bundle, "--json").expect(1, "wp_codebox_input_invalid")
    must(none.json["error"]["data"]["reason"] == "no-browser-metrics", str(none))


def test_input_without_benchmark_results_and_comparison_of_different_scenarios_are_refused(bench):
    old = stored(bench, "old", result({"a": [10, 10, 10], "b": [1, 2, 3]}))
    new = stored(bench, "new", result({"a": [20, 20, 20], "b": [1, 2, 3]}))
    other = stored(bench, "other", result({"a": [1], "c": [1]}))
    compared = bench.call("bench", "compare", "--baseline", old, "--candidate", new, "--json").expect(0).json
    must(compared["scenarios"][0]["metrics"]["wallMs"]["changePercent"] == 100, str(compared))
    for arguments, reason in (
        (["bench", "compare", "--baseline", old, "--candidate", other], "different-scenarios"),
        (["bench", "summarize", "--input", stored(bench, "empty", {"executions": []})], "no-benchmark-results"),
        (["bench", "summarize", "--input", stored(bench, "text", "no JSON")], None),
        (["bench", "summarize", "--bundle", bench.directory], None),
        (["bench", "summarize", "--input", os.path.join(bench.directory, "missing.json")], None),
    ):
        answer = bench.call(*arguments, "--json")
        must(answer.exit == 1 and (answer.json["error"].get("data") or {}).get("reason") == reason, str(answer))
    several = stored(bench, "several", [result({"a": [1]}), result({"a": [2]})])
    first = bench.call("bench", "compare", "--baseline", several, "--candidate", several, "--json").expect(0).json
    must([row["code"] for row in first["diagnostics"]] == ["first-result-used", "first-result-used"], str(first))
    second = bench.call("bench", "compare", "--baseline", several, "--candidate", several, "--baseline-index", "0", "--candidate-index", "1", "--json").expect(0).json
    must(second["scenarios"][0]["metrics"]["wallMs"]["delta"]["p50"] == 1 and second["diagnostics"] == [], str(second))


def test_matrix_runs_the_recipe_once_per_combination_and_starts_no_run_if_one_is_invalid(bench):
    recipe = bench_recipe(bench, "matrix")
    call = lambda matrix: bench.call("bench", "matrix", "--recipe", recipe, "--matrix", json.dumps(matrix), *bench.paths(), "--site", bench.site, "--json")
    document = call({"dimensions": [{"name": "arg.iterations", "values": [1, 3]}, {"name": "CACHE", "values": ["on"]}]}).expect(0).json
    must(document["schema"] == "wp-codebox/benchmark-matrix-run/v1" and document["summary"]["succeeded"] == 2, str(document))
    must([row["summary"]["iterations"] for row in document["cells"]] == [1, 3], str(document["cells"]))
    must([row["id"] for row in document["cells"]] == ["arg.iterations=1,CACHE=on", "arg.iterations=3,CACHE=on"], str(document["cells"]))
    before = bench.call("runs", "list", "--site", bench.site, "--state", bench.state, "--json").json["total"]
    refused = call({"dimensions": [{"name": "wp", "values": ["latest", "1.0"]}]}).expect(1, "wp_codebox_recipe_invalid")
    must("wp=1.0" in refused.json["error"]["message"], str(refused))
    call({"dimensions": [{"name": "colour", "values": ["red"]}]}).expect(1, "wp_codebox_input_invalid")
    must(bench.call("runs", "list", "--site", bench.site, "--state", bench.state, "--json").json["total"] == before, "a run was started")


def test_discover_partial_lists_files_that_belong_to_no_complete_bundle(bench):
    out = os.path.join(bench.directory, "partial")
    os.makedirs(os.path.join(out, "run_0b"))
    with open(os.path.join(out, "run_0b", "events.jsonl"), "w", encoding="utf-8") as file:
        file.write("{}\n")
    os.symlink("/etc", os.path.join(out, "link"))
    bench.run("--command", "wordpress.run-php", "--arg", "code=1;", "--artifacts", out).expect(0)
    call = lambda *more: bench.call("artifacts", "discover-partial", "--artifacts", out, *more, "--json").expect(0).json
    found = call()
    must(found["schema"] == "wp-codebox/partial-artifact-discovery/v1" and found["status"] == "found", str(found))
    must([row["path"] for row in found["artifacts"]] == ["run_0b/events.jsonl"] and len(found["bundles"]) == 1, str(found))
    must(call("--session-id", found["bundles"][0]["runtimeId"])["summary"] == {"bundles": 1, "partial": 0}, "the session's bundle")
    must(call("--finished-at", "2001-01-01T00:00:00Z")["status"] == "none", "all is newer")
