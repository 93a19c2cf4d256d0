"""`run-wordpress-workload`: reads one JSON document with steps and prints one with their results."""

import json
import os
import subprocess

import recipes
from harness import must
from recipes import php, wp

SCHEMA = "wp-codebox/wordpress-workload-run/v1"
RESULT = "wp-codebox/wordpress-workload-run-result/v1"


def document(steps, **members):
    return {"schema": SCHEMA, "steps": steps, **members}


def run(bench, workload, *more):
    """Runs a workload that is given on standard input; returns the exit status, the document and standard error."""
    text = workload if isinstance(workload, str) else json.dumps(workload)
    arguments = [bench.environment["CODEBOX"], "run-wordpress-workload", "--input", "-", *bench.paths(), "--site", bench.site, *more]
    done = subprocess.run(arguments, input=text, capture_output=True, text=True, timeout=300, env=recipes.PLAIN, cwd=bench.directory, check=False)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        must(False, f"standard output is not one document: {done}")
    must(answer["schema"] == RESULT and answer["success"] is (answer["status"] in ("completed", "skipped")), str(answer))
    for name, kind in (("request", dict), ("steps", list), ("artifacts", list), ("diagnostics", list), ("metadata", dict)):
        must(isinstance(answer[name], kind), f"{name}: {answer}")
    must(("error" in answer) is not answer["success"], str(answer))
    return done.returncode, answer, done.stderr


def test_workload_runs_its_steps_with_its_inputs_and_prints_one_result_document(bench):
    directory = os.path.join(bench.directory, "workload-data")
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "a.txt"), "w", encoding="utf-8") as file:
        file.write("mounted")
    bench.own(directory)
    code = "echo wp_json_encode( array( get_option( 'blogname' ), get_option( 'later' ), getenv( 'FROM_WORKLOAD' ), file_get_contents( '/workspace/data/a.txt' ) ) ); file_put_contents( '/tmp/report.json', '{}' );"
    status, answer, said = run(bench, document(
        [php(code)],
        before=[wp("option get siteurl")],
        after=[{**wp("option get no_such_option"), "allowFailure": True}],
        blueprint={"siteOptions": {"blogname": "Workload"}},
        post_runtime_blueprint={"steps": [{"step": "setSiteOptions", "options": {"later": "yes"}}]},
        mounts=[{"source": "./workload-data", "target": "/workspace/data", "mode": "readonly"}],
        runtime_env={"FROM_WORKLOAD": "value"},
        artifacts=[{"path": "/tmp/report.json"}],
        metadata={"task": 7},
        runtime_overlays=[],
    ))
    must(status == 0 and answer["status"] == "completed", f"{answer}\n{said}")
    must([(row["phase"], row["status"]) for row in answer["steps"]] == [("before", "completed"), ("steps", "completed"), ("after", "failed")], str(answer["steps"]))
    must(answer["steps"][1]["result"] == ["Workload", "yes", "value", "mounted"] and answer["steps"][1]["exitCode"] == 0, str(answer["steps"][1]))
    must(answer["metadata"] == {"task": 7} and answer["request"]["schema"] == SCHEMA, str(answer))
    kinds = [(row.get("name"), row.get("kind")) for row in answer["artifacts"]]
    must(kinds == [("report.json", None), (None, "artifact-bundle")], str(kinds))
    must(answer["run"]["runId"].startswith("run_"), str(answer["run"]))


def test_workload_step_that_fails_makes_the_workload_fail_with_its_error(bench):
    status, answer, _ = run(bench, document([wp("option get no_such_option"), php("echo 1;")]))
    must(status == 1 and answer["status"] == "failed", str(answer))
    must([row["status"] for row in answer["steps"]] == ["failed", "skipped"], str(answer["steps"]))
    first = answer["diagnostics"][0]
    must(first["command"] == "wordpress.wp-cli" and first["index"] == 0 and first["message"], str(first))


def test_invalid_or_unsupported_workload_is_refused_with_the_path_of_the_wrong_member(bench):
    good = [php("echo 1;")]
    for workload, wanted, path in (
        ("{", "failed", "$"),
        (document([]), "failed", "$.steps"),
        (document(good, frobnicate=1), "failed", "$.frobnicate"),
        (document(good, runtime_overlays=[{"kind": "x"}]), "unsupported", "$.runtime_overlays"),
        (document([{"command": "wordpress.no-such"}]), "unsupported", "$.steps[0].command"),
        (document(good, mounts=[{"source": "./missing", "target": "/workspace/x"}]), "failed", "$.mounts[0].source"),
        (document(good, wordpress_version="1.0"), "unsupported", "$.wordpress_version"),
        (document(good, blueprint={"plugins": ["x"]}), "unsupported", "$.blueprint.plugins[0]"),
    ):
        status, answer, _ = run(bench, workload)
        must(status == 1 and answer["status"] == wanted and "run" not in answer, f"{workload}: {answer}")
        must(any(row.get("path") == path for row in answer["diagnostics"]), f"{path}: {answer['diagnostics']}")
        must(answer["error"]["code"] == "wp_codebox_recipe_invalid", str(answer["error"]))


def test_workload_dry_run_and_file_input_check_the_workload_without_running_it(bench):
    status, answer, _ = run(bench, document([php("echo 1;")]), "--dry-run")
    must(status == 0 and answer["status"] == "skipped" and [row["status"] for row in answer["steps"]] == ["skipped"], str(answer))
    path = os.path.join(bench.directory, "workload.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(document([{"command": "wordpress.run-php", "args": ["code-file=./code.php"]}]), file)
    for exists, wanted in ((False, 1), (True, 0)):
        if exists:
            with open(os.path.join(bench.directory, "code.php"), "w", encoding="utf-8") as file:
                file.write("<?php echo 'from a file';")
        answer = bench.call("run-wordpress-workload", "--input-file", path, "--format", "json", "--dry-run", *bench.paths())
        must(answer.exit == wanted and answer.json["schema"] == RESULT, str(answer))
    missing = bench.call("run-wordpress-workload", "--input", path + ".none")
    must(missing.exit == 1 and missing.json["status"] == "failed" and missing.code == "wp_codebox_input_invalid", str(missing))
