"""Replay packages: the snapshot of a site becomes a package that sets up the site elsewhere."""

import json
import os

import pytest
import recipes
from harness import must
from recipes import wp


@pytest.fixture(scope="module")
def snapshot(bench):
    """Path of the snapshot of a site with the name `Replayed`."""
    steps = [wp("option update blogname Replayed"), {"command": "wordpress.export-replay-package"}]
    answer = recipes.run(bench, recipes.write(bench, "replay", steps)).expect(0)
    found = [os.path.join(parent, name) for parent, _, names in os.walk(answer.json["artifacts"]["directory"]) for name in names if name.endswith("runtime-snapshot.json")]
    must(len(found) == 1, f"the bundle has no snapshot: {found}")
    return found[0]


def test_replay_package_of_a_snapshot_has_a_blueprint_that_sets_up_the_same_site(bench, snapshot):
    out = os.path.join(bench.directory, "package")
    call = lambda *more: bench.call("materialize-replay-package", "--snapshot", snapshot, "--output", out, *more, "--json")
    package = call("--landing-page", "/wp-admin/", "--snapshot-ref", "snap_1").expect(0).json
    must(package["schema"] == "wp-codebox/artifact-result-envelope/v1" and package["status"] == "created", str(package))
    with open(os.path.join(out, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    must(manifest["schema"] == "wp-codebox/replayable-wordpress-site/v1" and manifest["version"] == 1, str(manifest))
    must(manifest["id"] == "replayable-wordpress-site-sha256-" + manifest["contentDigest"]["value"], str(manifest))
    must(manifest["contentDigest"]["inputs"] == ["blueprint.json", "files/runtime-snapshot.json", "files/replay-limitations.json"], str(manifest))
    must(call("--landing-page", "/wp-admin/").expect(0).json["status"] == "existing", "the same package")
    must("other contents" in call("--landing-page", "/other/").expect(1, "wp_codebox_input_invalid").json["error"]["message"], "another package")
    with open(os.path.join(out, "blueprint.json"), encoding="utf-8") as file:
        blueprint = json.load(file)
    again = recipes.write(bench, "replayed", [wp("option get blogname")], runtime={"blueprint": blueprint})
    must(recipes.run(bench, again).expect(0).json["executions"][-1]["stdout"] == "Replayed\n", "the blueprint sets up another site")


def test_replay_package_of_a_wrong_snapshot_or_with_a_wrong_option_is_refused_and_not_written(bench, snapshot):
    wrong = os.path.join(bench.directory, "wrong.json")
    with open(wrong, "w", encoding="utf-8") as file:
        json.dump({"schema": "wp-codebox/other/v1"}, file)
    out = os.path.join(bench.directory, "never")
    for given, more, says in ((wrong, [], "wp-codebox/wordpress-runtime-snapshot"), (snapshot, ["--landing-page", "x"], "landing-page"),
                              (snapshot, ["--id", "../x"], "id"), (snapshot, ["--created-at", "today"], "created-at")):
        answer = bench.call("materialize-replay-package", "--snapshot", given, "--output", out, *more, "--json").expect(1, "wp_codebox_input_invalid")
        must(says in answer.json["error"]["message"], str(answer))
        must(not os.path.exists(out), "a package was written")
