"""Reads the artifact bundle of a run."""

import json
import os

from .checks import must


def changed(answer):
    return sorted(entry["path"] for entry in answer.result["changed_files"])


def bundle_of(answer):
    path = answer.json["artifacts"]["directory"]
    must(os.path.isfile(os.path.join(path, "manifest.json")), f"no bundle at {path}")
    return path


def verified_bundle(bench, answer, status, action):
    """Checks that the bundle verifies and has this completion status and next action; returns its path."""
    path = bundle_of(answer)
    bench.call("artifacts", "verify", "--bundle", path, "--state", bench.state, "--json").expect(0)
    outcome = answer.result["completion_outcome"]
    must(outcome["status"] == status and outcome["nextAction"] == action, json.dumps(outcome))
    return path


def omitted_entries(answer):
    """Returns path and reason of each change that the bundle lists as omitted."""
    with open(os.path.join(bundle_of(answer), "files", "mounts.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return sorted((row["path"], row["reason"]) for mount in rows for row in mount.get("omitted", []))


def mount_views(bench, answer):
    path = os.path.join(bench.state, "sites", bench.site, "artifacts", answer.result["run_id"], "files/mounts.jsonl")
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)["view"] for line in file]
