"""Metrics of the browser commands in a bundle."""

import json
import os

from harness import must


def test_browser_metrics_of_a_bundle_have_one_page_per_browser_command(bench):
    path = os.path.join(bench.directory, "metrics.json")
    load = {"command": "wordpress.browser-page-load", "args": ["url=/"]}
    probe = {"command": "wordpress.browser-probe", "args": ["url=/", "capture=none", "assert=exists:body"]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schema": "wp-codebox/workspace-recipe/v1", "workflow": {"steps": [load, probe]}}, file)
    run = bench.call("recipe-run", "--recipe", path, *bench.paths(), "--site", bench.site, "--json").expect(0).json
    directory = run["artifacts"]["directory"]
    metrics = bench.call("artifacts", "browser-metrics", "--bundle", directory, "--json").expect(0).json
    must(metrics["schema"] == "wp-codebox/browser-metrics/v1" and metrics["summary"] == {"pages": 2, "passed": 2, "failed": 0}, str(metrics))
    printed = json.loads(run["executions"][0]["stdout"])
    first = metrics["pages"][0]
    must(first["command"] == load["command"] and first["httpStatus"] == 200, str(first))
    must(first["metrics"]["totalMs"] == printed["timings"]["totalMs"] and first["metrics"]["requests"] == printed["networkTotal"], str(first))
    must({"navigationMs", "peakMemoryBytes"} <= {row["name"] for row in metrics["metrics"]}, str(metrics["metrics"]))
