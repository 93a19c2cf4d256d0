"""Runs the example recipes of the repository and compares each with its `metadata.expect`."""

import json
import os
import shutil
import subprocess

import recipes
from harness import must


def files(directory):
    for parent, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(parent, name), "rb") as file:
                yield os.path.join(parent, name), file.read()


def worked(bench, name, environment=None):
    """Runs an example recipe and checks document, bundle and the output that its metadata expects; returns answer, bundle and directory."""
    directory = os.path.join(bench.directory, f"worked-{name}")
    shutil.copytree(os.path.join(recipes.FIXTURES, name), directory)
    bench.own(directory)
    answer = recipes.run(bench, os.path.join(directory, "recipe.json"), environment=environment).expect(0)
    document = answer.json
    must(document["schema"] == "wp-codebox/recipe-run/v1" and document["success"] is True, str(answer))
    must(document["outcome"] == "succeeded" and document["result"]["success"] is True, str(answer))
    must(document["completionOutcome"]["status"] == "succeeded", str(answer))
    bundle = recipes.verified(bench, answer)
    for path, content in files(bundle):
        must(bench.directory.encode() not in content, f"{path} holds a host path")
    with open(os.path.join(bundle, "files/runtime-evidence/recipe-workflow.json"), encoding="utf-8") as file:
        must(len(json.load(file)["executions"]) == len(document["executions"]), "the evidence is another")
    expect = (json.loads(open(os.path.join(directory, "recipe.json"), encoding="utf-8").read()).get("metadata") or {}).get("expect", {})
    if "lastStdout" in expect:
        rows = recipes.executions(answer, "after") or recipes.executions(answer, "steps")
        must(rows[-1]["stdout"] == expect["lastStdout"], f"last step printed {rows[-1]['stdout']!r}\n{answer}")
    return answer, bundle, directory


def test_example_recipe_wp_cli_succeeds(bench):
    worked(bench, "wp-cli")


def test_example_recipe_code_file_succeeds(bench):
    worked(bench, "code-file")


def test_example_recipe_before_after_runs_all_phases(bench):
    answer, _, _ = worked(bench, "before-after")
    phases = [row["recipePhase"] for row in answer.json["executions"]]
    must(phases == ["before", "steps", "after"], f"ran {phases}")


def test_example_recipe_plugin_activation_records_phases(bench):
    answer, _, _ = worked(bench, "plugin-activation")
    names = [row["name"] for row in answer.json["phaseEvidence"]]
    must(names == ["activate_plugins", "run_health_probes", "run_workloads"], f"phases {names}")


def test_example_recipe_staged_files_succeeds(bench):
    worked(bench, "staged-files")


def test_example_recipe_site_seed_creates_its_records(bench):
    answer, _, _ = worked(bench, "site-seed")
    seeded = json.loads(recipes.executions(answer, "seed")[0]["stdout"])
    must(seeded["created"] == {"users": 1, "posts": 1, "options": 2}, f"seeded {seeded}")
    titles = recipes.executions(answer, "steps")[0]["stdout"].split("\n")
    must("Shop" in titles, f"pages: {titles}")


def test_example_recipe_continuation_repeats_its_step_until_the_third_iteration(bench):
    answer, _, _ = worked(bench, "continuation")
    rows = recipes.executions(answer, "steps")
    evidence = rows[-1]["continuationEvidence"]
    must(evidence["status"] == "completed" and evidence["iterations"] == 3 and len(rows) == 3, str(evidence))


def test_example_recipe_with_an_allowed_failure_reports_it_and_succeeds(bench):
    answer, _, _ = worked(bench, "failures")
    document = answer.json
    must([row["allowed"] for row in document["stepFailures"]] == [True], str(document["stepFailures"]))
    must(len(document["advisoryFailures"]) == 1, "the advisory failure is not there")
    must(document["probes"][0]["status"] == "passed" and "url" in document["probes"][0]["json"], str(document["probes"]))


def test_example_recipe_secret_stays_out_of_output_and_bundle(bench):
    secret = "a-secret-value-of-the-suite-4711"
    answer, bundle, _ = worked(bench, "secret", {"MAILING_KEY": secret})
    must(secret not in answer.stdout + answer.stderr, "the secret is in the output")
    for path, content in files(bundle):
        must(secret.encode() not in content, f"the secret is in {path}")


def test_example_recipe_workspace_patch_applies_to_its_source(bench):
    """The patch of a workspace applies to its source directory."""
    answer, bundle, directory = worked(bench, "workspace")
    must(answer.json["declaredArtifacts"][0]["json"] == {"notes": open(os.path.join(directory, "notes/note.txt"), encoding="utf-8").read().strip()}, "the declared file is another")
    verification = answer.json["verification"]
    must(verification["valid"] is True, "it was not verified")
    must(verification["bundleDirectory"] == bundle, f"{verification['bundleDirectory']} is not {bundle}")
    must(answer.json["workspacePolicy"]["passed"] is True, str(answer.json["workspacePolicy"]))
    paths = [row["path"] for row in answer.json["changedFiles"]]
    must(paths == ["/workspace/site/report.json"], f"changed {paths}")
    patches = [os.path.join(bundle, path) for path, _ in files(bundle) if path.endswith(".patch") or path.endswith(".diff")]
    preflight = bench.call("artifacts", "apply-preflight", "--bundle", bundle, "--state", bench.state,
                           "--approved-file", paths[0], "--json").expect(0).json
    for row in preflight["payload"]["mountPatches"]:
        if row["patch"]:
            applied = subprocess.run(["patch", "-p1", "-d", os.path.join(directory, "site")], input=row["patch"], text=True,
                                     capture_output=True, check=False)
            must(applied.returncode == 0, f"the patch does not apply: {applied.stdout}{applied.stderr} {patches}")
    must(os.path.isfile(os.path.join(directory, "site/report.json")), "the patch did not make the file")


def test_example_recipe_services_starts_mysql_http_and_smtp_services_and_stores_an_order(bench):
    answer, _, _ = worked(bench, "services")
    must([row["kind"] for row in answer.json["managedRuntimeServices"]] == ["mysql", "http", "smtp"], f"{answer.json['managedRuntimeServices']}")


def test_example_recipe_theme_switches_to_its_theme_and_renders_a_page_with_it(bench):
    worked(bench, "theme")


def test_example_recipe_bench_measures_its_workload(bench):
    answer, _, _ = worked(bench, "bench")
    scenario = json.loads(recipes.executions(answer, "steps")[0]["stdout"])["scenarios"][0]
    must(scenario["id"] == "count" and len(scenario["samples"]["wallMs"]) == 5, str(scenario))


def test_example_recipe_multisite_creates_a_site(bench):
    worked(bench, "multisite")


def test_example_recipe_mail_finds_the_link_of_the_captured_mail(bench):
    answer, _, _ = worked(bench, "mail")
    mails = json.loads(recipes.executions(answer, "steps")[1]["stdout"])
    must(mails["matched"] == 1 and mails["messages"][0]["links"] == ["http://localhost/?confirm=7"], str(mails))


def test_example_recipe_mariadb_rolls_a_transaction_back(bench):
    worked(bench, "mariadb")


def test_example_recipe_block_editor_opens_a_new_post(bench):
    answer, _, _ = worked(bench, "block-editor")
    must("Hello" in recipes.executions(answer, "steps")[0]["stdout"], str(answer))


def test_example_recipe_shop_takes_an_order_and_mails_it(bench):
    answer, _, _ = worked(bench, "shop")
    total, mails, _ = [row["stdout"] for row in recipes.executions(answer, "steps")]
    must(total == "13" and json.loads(mails)["messages"][0]["subject"] == "Order", f"{total} {mails}")
