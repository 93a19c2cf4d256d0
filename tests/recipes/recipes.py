"""Writes and runs recipes and reads their results."""

import json
import os

from harness import must

FIXTURES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "recipes")
SCHEMA = "wp-codebox/workspace-recipe/v1"
PLAIN = {"PATH": "/usr/bin:/bin"}


def php(code):
    """Returns a step that runs PHP."""
    return {"command": "wordpress.run-php", "args": [f"code={code}"]}


def wp(line):
    """Returns a step that runs WP-CLI."""
    return {"command": "wordpress.wp-cli", "args": [f"command={line}"]}


def write(bench, name, steps, **sections):
    """Writes a recipe file with these steps and sections in a separate directory."""
    directory = os.path.join(bench.directory, f"recipe-{name}")
    os.makedirs(directory, exist_ok=True)
    workflow = steps if isinstance(steps, dict) else {"steps": steps}
    path = os.path.join(directory, "recipe.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"schema": SCHEMA, "workflow": workflow, **sections}, file)
    return path


def arguments(bench, path, *more):
    return ["recipe-run", "--recipe", path, *bench.paths(), "--site", bench.site, "--json", *more]


def run(bench, path, *more, environment=None):
    return bench.call(*arguments(bench, path, *more), environment={**PLAIN, **(environment or {})})


def executions(answer, phase):
    return [row for row in answer.json["executions"] if row["recipePhase"] == phase]


def check_failed_document(answer):
    """Checks that no part of a failed run's document reports success; returns the document."""
    document = answer.json
    must(document["success"] is False, f"it says success\n{answer}")
    must(answer.exit != 0, f"exit 0\n{answer}")
    result = document.get("result") or {}
    must(result.get("success") in (False, None), f"its summary says success\n{answer}")
    outcome = document.get("completionOutcome") or {}
    must(outcome.get("success") in (False, None), f"its completion outcome says success\n{answer}")
    must(outcome.get("status") != "succeeded", f"its completion outcome succeeded\n{answer}")
    return document


def verified(bench, answer):
    """Verifies the bundle of a run and returns its directory."""
    directory = answer.json["artifacts"]["directory"]
    check = bench.call("artifacts", "verify", "--bundle", directory, "--state", bench.state, "--json")
    must(check.exit == 0 and check.json["valid"] is True, f"the bundle does not verify\n{check}")
    return directory
