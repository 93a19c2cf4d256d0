"""Follow-up runs: the guest starts from the change of an earlier bundle of the same site, with comments on it."""

import json
import os
import shutil
import subprocess
import sys
import uuid

from test_git import VIEWS, source_in_view

from harness import must, tree
from harness.bundles import bundle_of, changed, verified_bundle
from harness.frames import SupervisorClient, runs

CONFORMANCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conformance")
# Several suites import verify_bundle.py, which is a separate program in another directory.
sys.path.append(CONFORMANCE)
import verify_bundle

BASE = "/workspace/plugin/"
# The form of a GitHub token, which every run redacts.
TOKEN = "ghp_" + "Zz09" * 9


def source_with_file(bench, name="follow"):
    source = bench.source(name)
    with open(os.path.join(source, "a.php"), "w", encoding="utf-8") as file:
        file.write("<?php // one\n")
    return bench.own(source)


def first_run(bench, source, *arguments, script="echo '<?php // two' > a.php; echo '<?php // b' > b.php"):
    return bench.agent(script, *arguments, source=source)


def follow(bench, earlier, source, script, *arguments):
    return bench.agent(script, "--follow-up", earlier, *arguments, source=source)


def read(path, member):
    with open(os.path.join(path, member), encoding="utf-8") as file:
        return json.load(file)


def bundles(bench, site=None):
    """Returns the names of the bundles of a site."""
    path = os.path.join(bench.state, "sites", site or bench.site, "artifacts")
    return sorted(os.listdir(path)) if os.path.isdir(path) else []


def newest(bench):
    return runs(bench, "list").json["runs"][0]


def apply_patch(directory, patch):
    subprocess.run(["git", "apply", "-p1", patch], cwd=directory, check=True, capture_output=True)


def contents(directory, *names):
    found = tree(directory)
    return [found[name][1] if name in found else None for name in names]


def refused(bench, answer, code, before):
    """Checks that the call is refused with this code before a run exists."""
    answer.expect(answer.exit or 1, code)
    must(bundles(bench) == before, f"there is another bundle\n{answer}")
    return answer.json["error"]


def test_bundle_of_a_follow_up_has_both_changes_and_a_second_patch_with_only_the_new_change(bench):
    source = source_with_file(bench)
    before = tree(source)
    first = first_run(bench, source).expect(0)
    run_id = first.result["run_id"]
    script = "cat a.php b.php; test -f plugin.php || exit 9; echo '<?php // b2' > b.php; echo '<?php // c' > c.php"
    second = follow(bench, run_id, source, script, "--check", "grep -q two a.php", "--check", "grep -q b2 b.php").expect(0)
    must("// two\n<?php // b\n" in second.result["transcript"]["executions"][0]["stdout"], str(second))
    must([check["status"] for check in second.result["checks"]] == ["passed", "passed"], str(second))
    must(changed(second) == [BASE + name for name in ("a.php", "b.php", "c.php")], str(changed(second)))
    must(tree(source) == before, "the host directory was written")
    path = verified_bundle(bench, second, "succeeded", "promote")
    must(json.loads(subprocess.run([sys.executable, verify_bundle.__file__], input=path + "\n", text=True, check=True,
                                   capture_output=True).stdout)["codes"] == [], "the second verifier refuses the bundle")

    # patch.diff applies to the source; follow-up.patch applies to the result of the first run.
    copy = os.path.join(bench.directory, "applied")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    apply_patch(copy, os.path.join(path, "files", "patch.diff"))
    names = ("a.php", "b.php", "c.php")
    expected = [b"<?php // two\n", b"<?php // b2\n", b"<?php // c\n"]
    must(contents(copy, *names) == expected, str(contents(copy, *names)))
    shutil.rmtree(copy)
    shutil.copytree(source, copy)
    apply_patch(copy, os.path.join(bundle_of(first), "files", "patch.diff"))
    apply_patch(copy, os.path.join(path, "files", "follow-up.patch"))
    must(contents(copy, *names) == expected, str(contents(copy, *names)))

    record = read(path, "files/follow-up.json")
    must((record["artifactId"], record["runId"]) == (first.json["artifacts"]["id"], run_id), json.dumps(record))
    must(record["manifestSha256"] == first.json["artifacts"]["manifestSha256"] and record["chain"] == [run_id], json.dumps(record))
    must([row["path"] for row in record["changedFiles"]] == [BASE + "b.php", BASE + "c.php"], json.dumps(record))
    must(read(path, "metadata.json")["provenance"]["follow_up_of"]["run_id"] == run_id, "the provenance lacks the earlier run")

    # A third run reverts the change of a.php by the first run and deletes b.php: its patch has neither file.
    third = follow(bench, second.json["artifacts"]["id"], source, "echo '<?php // one' > a.php; rm b.php").expect(0)
    must(changed(third) == [BASE + "c.php"], str(changed(third)))
    record = read(verified_bundle(bench, third, "succeeded", "promote"), "files/follow-up.json")
    must(record["chain"] == [run_id, second.result["run_id"]], json.dumps(record))
    must([(row["relativePath"], row["status"]) for row in record["changedFiles"]] == [("a.php", "modified"), ("b.php", "deleted")], json.dumps(record))


def test_follow_up_that_changes_nothing_reports_this_and_bundles_the_earlier_change(bench):
    source = source_with_file(bench)
    first = first_run(bench, source).expect(0)
    answer = follow(bench, first.result["run_id"], source, "true").expect(0)
    must(changed(answer) == [BASE + "a.php", BASE + "b.php"], str(changed(answer)))
    must(any("nothing changed since the earlier bundle" in notice for notice in answer.result["notices"]), str(answer.result["notices"]))
    path = verified_bundle(bench, answer, "succeeded", "promote")
    must(os.path.getsize(os.path.join(path, "files", "follow-up.patch")) == 0, "the patch since the earlier bundle is not empty")


def test_follow_up_of_a_failed_run_and_of_one_without_changes_is_accepted(bench):
    source = source_with_file(bench)
    failed = first_run(bench, source, script="echo half > half.txt; exit 7").expect(1)
    answer = follow(bench, failed.result["run_id"], source, "cat half.txt && rm half.txt && echo whole > whole.txt").expect(0)
    must(changed(answer) == [BASE + "whole.txt"], str(changed(answer)))
    nothing = first_run(bench, source, script="true").expect(0)
    answer = follow(bench, nothing.result["run_id"], source, "echo x > x.txt").expect(0)
    must(changed(answer) == [BASE + "x.txt"], str(changed(answer)))


def test_follow_up_guest_sees_directories_links_and_modes_of_the_earlier_change(bench):
    source = source_with_file(bench)
    os.makedirs(os.path.join(source, "old", "in"))
    for name in ("old/in/x.txt", "old/y.txt"):
        with open(os.path.join(source, name), "w", encoding="utf-8") as file:
            file.write("old\n")
    bench.own(source)
    script = "rm -r old lib; mkdir -p empty new/deep; echo f > lib; echo n > new/deep/n.txt; ln -s ../a.php new/link; chmod +x a.php; printf 'a\\0b' > bin.dat"
    first = first_run(bench, source, script=script).expect(0)
    look = "test ! -e old; test -f lib; test -d empty; test -x a.php; test -L new/link; grep -q one new/link; test $(wc -c < bin.dat) = 3"
    answer = follow(bench, first.result["run_id"], source, f"set -e; {look}; mkfifo pipe; rm -f pipe; echo more >> new/deep/n.txt").expect(0)
    must(changed(answer) == changed(first), f"{changed(answer)}\n{changed(first)}")
    record = read(verified_bundle(bench, answer, "succeeded", "promote"), "files/follow-up.json")
    must([row["relativePath"] for row in record["changedFiles"]] == ["new/deep/n.txt"], json.dumps(record))


def test_git_in_a_follow_up_guest_shows_the_earlier_change_as_uncommitted(bench):
    source = source_with_file(bench)
    first = first_run(bench, source).expect(0)
    script = "git status --porcelain; git show HEAD:a.php; echo '<?php // three' >> a.php; git diff -U0 a.php"
    answer = follow(bench, first.result["run_id"], source, script, "--git", "baseline").expect(0)
    output = answer.result["transcript"]["executions"][0]["stdout"]
    must(output.startswith(" M a.php\n?? b.php\n<?php // one\n"), output)
    must("-<?php // one\n+<?php // two\n+<?php // three\n" in output, output)


def test_follow_up_guest_sees_the_earlier_change_in_overlay_and_copy_mounts(bench):
    for way, view in VIEWS.items():
        with source_in_view(bench, way) as (where, source, run):
            first = run(source, "echo two > first.txt; rm -rf lib; exit 0").expect(0)
            answer = run(source, "cat first.txt; test ! -e lib && echo three > second.txt", "--follow-up", first.result["run_id"],
                         "--check", "grep -q two first.txt", "--check", "grep -q three second.txt", "--check", "test ! -e lib").expect(0)
            must([check["status"] for check in answer.result["checks"]] == ["passed"] * 3, f"{way}\n{answer}")
            must(answer.result["mounts"][0]["view"] == view, f"{way}: {answer.result['mounts']}")
            must(changed(answer) == sorted([*changed(first), BASE + "second.txt"]), f"{way}: {changed(answer)}")
            bundle = os.path.join(where.state, "sites", where.site, "artifacts", answer.result["run_id"])
            rows = read(bundle, "files/follow-up.json")["changedFiles"]
            must([row["relativePath"] for row in rows] == ["second.txt"], f"{way}: {rows}")


def test_follow_up_is_refused_with_the_list_of_files_of_the_earlier_change_that_differ_in_the_source(bench):
    source = source_with_file(bench)
    run_id = first_run(bench, source).expect(0).result["run_id"]
    with open(os.path.join(source, "a.php"), "a", encoding="utf-8") as file:
        file.write("// edited\n")
    with open(os.path.join(source, "b.php"), "w", encoding="utf-8") as file:
        file.write("// came meanwhile\n")
    before = bundles(bench)
    error = refused(bench, follow(bench, run_id, source, "echo x > x.txt").expect(1), "wp_codebox_base_changed", before)
    must(error["data"]["files"] == [BASE + "a.php", BASE + "b.php"], json.dumps(error))
    events = runs(bench, "events", newest(bench)["run_id"]).json["events"]
    must(not [event for event in events if event["type"] == "runtime.command.started"], f"a program started: {events}")
    # Control: the run is accepted after both files are as before. plugin.php differs, but the earlier run did not change it.
    with open(os.path.join(source, "a.php"), "w", encoding="utf-8") as file:
        file.write("<?php // one\n")
    os.unlink(os.path.join(source, "b.php"))
    with open(os.path.join(source, "plugin.php"), "a", encoding="utf-8") as file:
        file.write("// edited\n")
    follow(bench, run_id, source, "grep -q edited plugin.php").expect(0)


def unsigned_copy(bench, path):
    """Copies a bundle and removes the signature also from its manifest and metadata, so that the digests still verify; returns the run id of the copy."""
    run_id = "run_" + uuid.uuid4().hex
    copy = os.path.join(os.path.dirname(path), run_id)
    shutil.copytree(path, copy)
    metadata = read(copy, "metadata.json")
    del metadata["artifacts"]["attestation"]
    os.unlink(os.path.join(copy, "files/attestation.dsse.json"))
    manifest = read(copy, "manifest.json")
    manifest["files"] = [row for row in manifest["files"] if row["path"] != "files/attestation.dsse.json"]
    with open(os.path.join(copy, "metadata.json"), "w", encoding="utf-8") as file:
        json.dump(metadata, file)
    for row in manifest["files"]:
        if row["path"] == "metadata.json":
            with open(os.path.join(copy, "metadata.json"), "rb") as file:
                row["sha256"]["value"] = verify_bundle.sha256(file.read())
        elif row["path"] == "manifest.json":
            row["sha256"]["value"] = "0" * 64
            own = row
    text = verify_bundle.canonical(verify_bundle.parse(json.dumps(manifest).encode()))
    own["sha256"]["value"] = verify_bundle.sha256("wp-codebox/artifact-manifest-self/v1\n", text)
    with open(os.path.join(copy, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file)
    bench.own(copy)
    verified = bench.call("artifacts", "verify", "--bundle", copy, "--state", bench.state, "--json").expect(0).json
    must(verified["signature"]["status"] == "unsigned", json.dumps(verified["signature"]))
    return run_id


def test_follow_up_of_an_unsigned_or_tampered_bundle_or_one_of_another_site_is_refused(bench):
    source = source_with_file(bench)
    first = first_run(bench, source).expect(0)
    path = bundle_of(first)
    unsigned = unsigned_copy(bench, path)
    tampered = "run_" + uuid.uuid4().hex
    copy = os.path.join(os.path.dirname(path), tampered)
    shutil.copytree(path, copy)
    with open(os.path.join(copy, "files/diffs/mount-0.patch"), "a", encoding="utf-8") as file:
        file.write("\n")
    bench.own(copy)
    before = bundles(bench)
    try:
        for reference, code in ((unsigned, "wp_codebox_artifact_untrusted"), (tampered, "wp_codebox_artifact_verification_failed"),
                                ("run_" + "0" * 32, "wp_codebox_artifact_not_found"),
                                (first.json["artifacts"]["id"], "wp_codebox_artifact_ambiguous")):
            refused(bench, follow(bench, reference, source, "echo x > x.txt"), code, before)
    finally:
        for name in (unsigned, tampered):
            shutil.rmtree(os.path.join(os.path.dirname(path), name))
    site = bench.site + "-other"
    arguments = bench.run_arguments("--mount", f"{source}:/workspace/plugin", "--agent-command", "true", "--follow-up", first.result["run_id"])
    arguments[arguments.index("--site") + 1] = site
    try:
        bench.call(*arguments).expect(1, "wp_codebox_artifact_not_found")
        must(bundles(bench, site) == [], "the other site has a bundle")
    finally:
        shutil.rmtree(os.path.join(bench.state, "sites", site), ignore_errors=True)
    follow(bench, first.result["run_id"], source, "test -f b.php").expect(0)


def test_follow_up_of_a_recovery_bundle_or_a_bundle_blocked_for_a_secret_is_refused(bench):
    source = source_with_file(bench)
    blocked = first_run(bench, source, script=f"echo {TOKEN[:4]}{TOKEN[4:]} > b.php").expect(3, "wp_codebox_secret_in_patch")
    before = bundles(bench)
    refused(bench, follow(bench, blocked.result["run_id"], source, "true"), "wp_codebox_secret_in_patch", before)
    run = SupervisorClient(bench, "echo x > x.txt", checks=["sh -c 'echo checking; sleep 60'"]).spawn().accepted()
    run.until("runtime.command.output", "checking")
    run.kill()
    must(runs(bench, "get", run.run_id).json["salvaged"] is True, "there is no recovery bundle")
    before = bundles(bench)
    refused(bench, follow(bench, run.run_id, source, "true"), "wp_codebox_artifact_untrusted", before)


def test_comments_of_a_follow_up_are_in_its_task_document_with_secrets_redacted(bench):
    source = source_with_file(bench)
    first = first_run(bench, source, script=f"echo the token is {TOKEN[:4]}''{TOKEN[4:]}; echo '<?php // two' > a.php").expect(0)
    answer = follow(bench, first.result["run_id"], source, "cat $CODEBOX_TASK > seen.json", "--goal", "Go on", "--comment",
                    "a.php:1=rename the option", "--comment", f"{BASE}new.php=add it", "--with", f"do not print {TOKEN}").expect(0)
    path = verified_bundle(bench, answer, "succeeded", "promote")
    document = read(path, "files/mounts/0/seen.json")
    told = document["context"]["follow_up"]
    must(document["goal"] == "Go on" and told["run_id"] == first.result["run_id"], json.dumps(document))
    rows = [(row.get("path"), row.get("line"), row["body"]) for row in told["comments"]]
    must(rows[:2] == [(BASE + "a.php", 1, "rename the option"), (BASE + "new.php", None, "add it")], json.dumps(rows))
    must(rows[2][2].startswith("do not print [REDACTED") and rows[2][:2] == (None, None), json.dumps(rows))
    must("Untrusted text" in told["notice"] and told["earlier_run"]["outcome"] == "succeeded", json.dumps(told))
    must(told["earlier_run"]["last_message"].startswith("the token is [REDACTED"), json.dumps(told))
    for member in ("files/mounts/0/seen.json", "files/follow-up.json", "metadata.json"):
        with open(os.path.join(path, member), encoding="utf-8") as file:
            must(TOKEN not in file.read(), f"{member} contains the token")
    record = read(path, "files/follow-up.json")
    must([row["body"] for row in record["comments"]] == [row[2] for row in rows], json.dumps(record))


def test_invalid_follow_up_options_are_refused_before_anything_starts(bench):
    source = source_with_file(bench)
    run_id = first_run(bench, source).expect(0).result["run_id"]
    before = bundles(bench)
    for more, code in (
        (["--comment", "a.php"], "wp_codebox_input_invalid"),
        (["--comment", "/etc/passwd=look"], "wp_codebox_input_invalid"),
        (["--comment", "../other/a.php=look"], "wp_codebox_input_invalid"),
        (["--with", "x" * 8193], "wp_codebox_input_invalid"),
        (["--with", " "], "wp_codebox_input_invalid"),
        ([argument for number in range(101) for argument in ("--with", str(number))], "wp_codebox_input_invalid"),
    ):
        refused(bench, follow(bench, run_id, source, "true", *more), code, before)
    other = bench.agent("true", "--follow-up", run_id, source=source, target="/workspace/elsewhere")
    error = refused(bench, other, "wp_codebox_input_invalid", before)
    must(error["data"]["field"] == "mounts" and error["data"]["targets"] == ["/workspace/plugin"], json.dumps(error))
    goalless = bench.run("--mount", f"{source}:/workspace/plugin", "--command", "inspect-mounted-inputs", "--follow-up", run_id)
    refused(bench, goalless, "wp_codebox_task_missing", before)
    follow(bench, run_id, source, "true", "--with", "x" * 8192).expect(0)
