"""Outcomes, limits, bundles and process wrappers of runs."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CONFORMANCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "conformance")
# Several suites import verify_bundle.py, which is a separate program in another directory.
sys.path.append(CONFORMANCE)
import verify_bundle

from harness import await_count, must, running, skip_unless_root, sleeper, tree, wake
from harness.bundles import bundle_of, changed, verified_bundle
from harness.frames import SupervisorClient

VECTORS = os.path.join(CONFORMANCE, "vectors")


def test_successful_run_bundles_a_patch_that_applies(bench):
    source = bench.source()
    before = tree(source)
    answer = bench.agent("echo four >> lib/a.txt; echo new > added.txt; rm plugin.php", source=source).expect(0)
    must(answer.result["outcome"] == "succeeded", str(answer))
    base = "/workspace/plugin/"
    must(changed(answer) == [base + "added.txt", base + "lib/a.txt", base + "plugin.php"], str(changed(answer)))
    path = verified_bundle(bench, answer, "succeeded", "promote")
    must(tree(source) == before, "the host directory was written")
    # Applied to the baseline, the patch must produce the guest's final tree.
    with open(os.path.join(path, "files", "patch.diff"), "rb") as patch:
        subprocess.run(["git", "apply", "-p1"], cwd=source, stdin=patch, check=True, capture_output=True)
    after = tree(source)
    must(after["lib/a.txt"][1] == b"one\ntwo\nthree\nfour\n" and after["added.txt"][1] == b"new\n", "wrong content")
    must("plugin.php" not in after, "plugin.php is still there")


def test_agent_works_where_the_plugin_is_mounted_and_also_by_the_link_below_workspace(bench):
    answer = bench.agent("pwd -P; cd /workspace/plugin; pwd -P; echo x > by-link.txt; cat /wordpress/wp-content/plugins/plugin/by-link.txt",
                         target="/wordpress/wp-content/plugins/plugin").expect(0)
    output = next(row["stdout"] for row in answer.result["transcript"]["executions"] if row["phase"] == "agent")
    must(output.split() == ["/wordpress/wp-content/plugins/plugin"] * 2 + ["x"], output)
    must(changed(answer) == ["/wordpress/wp-content/plugins/plugin/by-link.txt"], str(changed(answer)))


def test_run_php_command_executes_code_in_wordpress(bench):
    answer = bench.run("--mount", f"{bench.source()}:/workspace/plugin", "--command", "wordpress.run-php",
                       "--arg", "code=echo 'wp ' . get_bloginfo( 'version' ) . ' a=b';").expect(0)
    must("wp 7" in answer.stdout and "a=b" in answer.stdout, str(answer))


def test_code_file_argument_is_resolved_from_the_working_directory_and_read_only_in_the_guest(bench):
    directory = os.path.join(bench.directory, "code")
    os.makedirs(directory)
    file = os.path.join(directory, "the code.php")
    with open(file, "w", encoding="utf-8") as opened:
        opened.write("<?php\necho wp_json_encode( array( __FILE__, @file_put_contents( __FILE__, 'x' ), get_bloginfo( 'name' ) ) );")
    bench.own(directory)
    mount = ["--mount", f"{bench.source()}:/workspace/plugin"]
    for path in (os.path.relpath(file), file):
        answer = bench.run(*mount, "--command", "wordpress.run-php", "--arg", f"code-file={path}").expect(0)
        found = json.loads(answer.json["execution"]["stdout"])
        must(found == ["/run/codebox/staged/code/0/the_code.php", False, "Codebox"], f"{path}: {found}")
    # A path below a mount is a path of the guest: the host's file of this name is not copied.
    answer = bench.run(*mount, "--command", "wordpress.run-php", "--arg", "code-file=/workspace/plugin/none.php")
    must(answer.exit == 1 and "readable in the guest" in answer.stdout, str(answer))
    missing = bench.run(*mount, "--command", "wordpress.run-php", "--arg", "code-file=none.php")
    must(missing.exit != 0 and "none.php" in missing.json["error"]["message"], str(missing))


def test_wp_cli_command_lists_the_mounted_plugin(bench):
    answer = bench.run("--mount", f"{bench.source('sample')}:/wordpress/wp-content/plugins/sample", "--command",
                       "wordpress.wp-cli", "--arg", "command=plugin list --field=name").expect(0)
    must("sample" in answer.json["execution"]["stdout"].split(), str(answer))


def test_inspect_mounted_inputs_command_lists_the_mount_target(bench):
    answer = bench.run("--mount", f"{bench.source()}:/workspace/plugin", "--command", "inspect-mounted-inputs").expect(0)
    must("/workspace/plugin" in answer.stdout, str(answer))


def test_text_mode_prints_data_on_stdout_and_status_on_stderr(bench):
    source = bench.source()
    arguments = [a for a in bench.run_arguments("--mount", f"{source}:/workspace/plugin", "--command", "wordpress.run-php",
                                                "--arg", "code=echo 'only this';") if a != "--json"]
    answer = bench.call(*arguments).expect(0)
    must(answer.stdout == "only this", f"standard output is for data only\n{answer}")
    must("bundle artifact-bundle-sha256-" in answer.stderr, str(answer))


def test_text_mode_passes_agent_stdout_and_stderr_through(bench):
    """The agent's standard output goes to standard output, so that it can be piped."""
    agent = ["--mount", f"{bench.source()}:/workspace/plugin", "--agent-command", "sh -c 'echo out; echo err >&2; echo x > x.txt'"]
    answer = bench.call(*(a for a in bench.run_arguments(*agent) if a != "--json")).expect(0)
    must(answer.stdout == "out\n", f"standard output is the program's\n{answer}")
    must("err\n" in answer.stderr and "x.txt" in answer.stderr and "out\n" not in answer.stderr, str(answer))


def test_run_without_changes_has_outcome_no_op(bench):
    answer = bench.agent("true").expect(0)
    must(answer.result["outcome"] == "no_op" and changed(answer) == [], str(answer))
    verified_bundle(bench, answer, "partial", "review")
    must(answer.result["agent_result"]["actionable"] is False, str(answer.result["agent_result"]))


def test_failing_agent_with_changes_gives_a_partial_bundle(bench):
    answer = bench.agent("echo half > half.txt; exit 7").expect(1)
    must(answer.result["outcome"] == "failed" and changed(answer) == ["/workspace/plugin/half.txt"], str(answer))
    verified_bundle(bench, answer, "partial", "review")


def test_failing_agent_without_changes_gives_outcome_failed(bench):
    answer = bench.agent("exit 7").expect(1)
    verified_bundle(bench, answer, "failed", "retry")


def test_exit_status_listed_in_agent_success_codes_counts_as_success(bench):
    bench.agent("echo x > x.txt; exit 1").expect(1)
    bench.agent("echo x > x.txt; exit 1", "--agent-success-codes", "0,1").expect(0)


def test_missing_agent_program_is_refused(bench):
    answer = bench.run("--mount", f"{bench.source()}:/workspace/plugin", "--agent-command", "no-such-program --x")
    answer.expect(125, "wp_codebox_agent_program_missing")
    must("no-such-program" in answer.json["error"]["message"], str(answer))


def test_changes_made_before_a_missing_agent_program_is_found_are_bundled(bench):
    written = "file_put_contents( '/workspace/plugin/before.txt', 'kept' );"
    answer = bench.run("--mount", f"{bench.source()}:/workspace/plugin", "--command", "wordpress.run-php",
                       "--arg", f"code={written}", "--agent-command", "no-such-program --x")
    answer.expect(1, "wp_codebox_agent_program_missing")
    must(changed(answer) == ["/workspace/plugin/before.txt"], str(answer))
    verified_bundle(bench, answer, "partial", "review")


def test_checks_run_in_a_fresh_guest_with_the_captured_changes(bench):
    answer = bench.agent("echo done > done.txt; echo junk > /tmp/junk", "--check", "test -f done.txt",
                         "--check", "test ! -e /tmp/junk").expect(0)
    must([c["status"] for c in answer.result["checks"]] == ["passed", "passed"], str(answer.result["checks"]))
    answer = bench.agent("echo done > done.txt", "--check", "test -f absent.txt").expect(3)
    must(answer.result["outcome"] == "partial" and answer.result["checks"][0]["status"] == "failed", str(answer))
    verified_bundle(bench, answer, "partial", "review")


def test_run_past_its_timeout_ends_with_its_changes_bundled(bench):
    began = time.monotonic()
    answer = bench.agent("echo early > early.txt; sleep 120", "--timeout", "25s").expect(124, "wp_codebox_run_timeout")
    must(time.monotonic() - began < 100, "the timed-out run took more than 100 s")
    must(changed(answer) == ["/workspace/plugin/early.txt"], str(answer))
    verified_bundle(bench, answer, "partial", "review")


# PHP touches only half of the memory that it maps for such strings; the limit counts used memory.
HOG = "$a = []; while (true) { $a[] = str_repeat(chr(65), 1048576); }"


def test_process_over_the_memory_limit_ends_the_run(bench):
    hog = f"echo early > early.txt; php -d memory_limit=-1 -r '{HOG}'"
    answer = bench.agent(hog, "--memory", "160M", "--timeout", "60s").expect(1, "wp_codebox_memory_limit")
    must(changed(answer) == ["/workspace/plugin/early.txt"], str(answer))
    # Control: a program below the limit succeeds.
    calm = "echo early > early.txt; php -r '$a = str_repeat(chr(65), 20971520); echo strlen($a);'"
    bench.agent(calm, "--memory", "160M", "--timeout", "60s").expect(0)


def test_memory_limit_counts_all_processes_together(bench):
    # Each of four processes stays far below the limit; their sum does not.
    part = "php -d memory_limit=-1 -r '$a = []; for ($i = 0; $i < 70; $i++) { $a[] = str_repeat(chr(65), 1048576); } sleep(20);' &"
    script = "echo early > early.txt; " + part * 4 + " wait"
    answer = bench.agent(script, "--memory", "200M", "--timeout", "60s").expect(1, "wp_codebox_memory_limit")
    must(changed(answer) == ["/workspace/plugin/early.txt"], str(answer))
    bench.agent(script.replace("sleep(20)", "usleep(1)"), "--memory", "900M", "--timeout", "60s").expect(0)


def test_writing_past_the_disk_limit_fails_the_run(bench):
    fill = "echo early > early.txt; head -c 30000000 /dev/zero > big.bin"
    bench.agent(f"{fill} || exit 9", "--disk", "16M").expect(1, "wp_codebox_disk_limit")
    bench.agent(fill, "--disk", "64M").expect(0)


def test_output_past_the_limit_keeps_its_start_and_end_and_adds_a_notice(bench):
    def notices(size):
        script = f"echo early > early.txt; echo first; head -c {size} /dev/zero | tr '\\0' x; echo why >&2; echo; echo last"
        answer = bench.agent(script, "--output-limit", "4K").expect(0)
        execution = answer.result["transcript"]["executions"][0]
        text = execution["stdout"]
        must(len(text) <= 4096 + 200, f"{len(text)} bytes were kept")
        must(text.startswith("first\nx") and text.endswith("x\nlast\n") and execution["stderr"] == "why\n", text[:20] + text[-20:] + execution["stderr"])
        must((" bytes left out …]" in text) == (size > 4096), "the truncation mark is missing or unexpected")
        must(execution.get("stdoutBytes") == (size + 12 if size > 4096 else None) and "stderrTruncated" not in execution, str(list(execution)))
        with open(os.path.join(bundle_of(answer), "events.jsonl"), encoding="utf-8") as file:
            events = [json.loads(line)["data"] for line in file]
        journal = "".join(data["text"] for data in events if data.get("stream") == "stdout")
        must(journal.startswith("first\n") and journal.endswith("\nlast\n") and len(journal) < 6000, f"the journal has {len(journal)} bytes")
        must([data["stdoutBytes"] for data in events if data.get("stdoutTruncated")] == ([size + 12] if size > 4096 else []), "command.finished does not report the truncation")
        must(execution.get("outputTruncated", False) == (size > 4096), f"the transcript does not mark the truncated output: {list(execution)}")
        with open(os.path.join(bundle_of(answer), "commands.jsonl"), encoding="utf-8") as file:
            row = json.loads(file.readline())
        must(row.get("outputTruncated", False) == (size > 4096), f"commands.jsonl does not mark the truncated output: {list(row)}")
        return " ".join(answer.result.get("notices", []))
    must("wp_codebox_output_limit" in notices(200000), "no notice")
    must("wp_codebox_output_limit" not in notices(3000), "a notice without a reason")


def test_json_output_of_300_kilobytes_is_not_truncated(bench):
    write = "php -r 'echo json_encode( array_fill( 0, 30000, \"0123456\" ) );'"
    answer = bench.agent(f"echo x > x.txt; {write}").expect(0)
    row = answer.result["transcript"]["executions"][0]
    must(len(row["stdout"]) == 300001 and row["parsed"] == ["0123456"] * 30000, f"{len(row['stdout'])} bytes, {list(row)}")
    must(not any("Truncated" in name for name in row), str(list(row)))
    must(answer.json["execution"]["stdout"] == row["stdout"], "run --json prints another stdout than the transcript")


def test_output_too_large_for_the_result_keeps_its_start_and_end(bench):
    answer = bench.agent("echo x > x.txt; echo first; head -c 4400000 /dev/zero | tr '\\0' x; echo; echo last").expect(0)
    row = answer.result["transcript"]["executions"][0]
    text = row["stdout"]
    must(text.startswith("first\n") and text.endswith("\nlast\n") and " bytes left out …]" in text, text[:20] + text[-20:])
    must(row["stdoutTruncated"] and row["stdoutBytes"] == 4400012 and len(text) < 4.1 * 2**20, str(list(row)))
    must("outputTruncated" not in row, "the run's limit was not reached")
    with open(os.path.join(bundle_of(answer), "commands.jsonl"), encoding="utf-8") as file:
        kept = json.loads(file.readline())
    must(len(kept["stdout"]) == 4400012 and not kept.get("outputTruncated"), f"the bundle has {len(kept['stdout'])} bytes")


def test_change_set_past_the_entry_limit_is_refused(bench):
    many = "for ($i = 0; $i < 50100; $i++) { touch(\"f$i\"); }"
    answer = bench.agent(f"php -r '{many}'").expect(1, "wp_codebox_capture_limit")
    must(changed(answer) == [], str(answer))
    verified_bundle(bench, answer, "failed", "retry")
    bench.agent(f"php -r '{many.replace('50100', '400')}'").expect(0)


def test_guest_cannot_start_more_processes_than_the_limit(bench):
    bomb = "php -r '$n = 0; for ($i = 0; $i < 60; $i++) { $p = @proc_open([\"sleep\", \"60\"], [], $x); if ($p) { $n++; $all[] = $p; } } foreach ($all as $p) { proc_terminate($p, 9); } echo \"started=$n\\n\";'"
    def started(*flags):
        answer = bench.agent(f"echo x > x.txt; {bomb}", *flags)
        return int(answer.result["transcript"]["executions"][0]["stdout"].split("started=")[1])
    must(started("--processes", "20") < 20, "the process limit was not enforced")
    must(started("--processes", "100") == 60, "the control did not start them all")


def test_run_whose_source_changed_meanwhile_cannot_be_approved(bench):
    source = bench.source()
    waits = sleeper(60)
    arguments = bench.run_arguments("--mount", f"{source}:/workspace/plugin", "--agent-command",
                                    f"sh -c 'echo x > x.txt; {waits}; true'")
    process = bench.start(arguments)
    await_count(1, waits)
    with open(os.path.join(source, "lib", "a.txt"), "a", encoding="utf-8") as file:
        file.write("changed by the host\n")
    wake(waits)
    answer = bench.finish(arguments, process)
    must(answer.result["approvable"] is False, f"it can still be approved\n{answer}")
    must("wp_codebox_baseline_changed" in answer.stdout or "baseline-changed" in answer.stdout, str(answer))
    bundle_of(answer)


def test_reported_wall_time_starts_at_the_request_time_asked_ns(bench):
    began = time.monotonic()
    for minutes, least in [(0, 0), (10, 600000), (-10, 0)]:
        run = SupervisorClient(bench, "true")
        run.first = {"asked_ns": time.monotonic_ns() - minutes * 60 * 10**9}
        frame = run.spawn().accepted().last()
        must(frame["type"] == "result", f"{frame}")
        run.ended()
        # An `asked_ns` in the future is ignored.
        most = least + (time.monotonic() - began) * 1000
        wall = frame["result"]["cost"]["wall_ms"]
        must(least <= wall <= most, f"asked {minutes} minutes ago: {wall} ms, not from {least} to {most}")


def test_mount_copy_is_removed_before_cost_is_measured(bench):
    if os.geteuid() != 0:
        skip_unless_root("only root has files that are not the owner's")
    source = tempfile.mkdtemp(prefix="large-", dir=bench.directory)
    os.chmod(source, 0o755)
    for number in range(3000):
        with open(os.path.join(source, f"file-{number}.txt"), "w", encoding="utf-8") as file:
            file.write("one\n")
    os.chown(os.path.join(source, "file-0.txt"), 64_998, 64_998)
    waits = sleeper(60)
    run = SupervisorClient(bench, f"echo x > x.txt; {waits}; true", mounts=[
        {"source": source, "target": "/workspace/large", "mode": "readwrite"}])
    copy = os.path.join(run.directory, "scratch", "mount-0")
    view = run.spawn().accepted().until("runtime.mounted")["data"]["view"]
    await_count(1, waits)
    must(view == "copy" and len(os.listdir(copy)) == 3000, f"the source was not copied: {view}")
    wake(waits)
    run.until("runtime.artifacts.collected")
    must(not os.path.exists(copy), "the copy is still there when the cost is taken")
    must(run.last()["type"] == "result", "no result")
    run.ended()


def test_tampered_bundle_fails_verification_and_preflight(bench):
    path = bundle_of(bench.agent("echo x >> lib/a.txt").expect(0))
    verify = ["artifacts", "verify", "--bundle", path, "--state", bench.state, "--json"]
    answer = bench.call(*verify).expect(0)
    must(answer.json["valid"] is True, "it does not verify")
    must(answer.json["signature"]["coverage"] == "manifest", str(answer))
    must(answer.json["bundleDirectory"] == os.path.realpath(path), str(answer))
    patch = os.path.join(path, "files", "patch.diff")
    with open(patch, "rb") as file:
        original = file.read()
    with open(patch, "wb") as file:
        file.write(original.replace(b"+x", b"+y"))
    answer = bench.call(*verify)
    must(answer.exit == 1 and answer.json["valid"] is False and answer.json["violations"], str(answer))
    preflight = ["artifacts", "apply-preflight", "--bundle", path, "--state", bench.state, "--json",
                 "--approved-file", "/workspace/plugin/lib/a.txt"]
    must(bench.call(*preflight).exit == 1, "a tampered bundle passed the preflight")
    with open(patch, "wb") as file:
        file.write(original)
    bench.call(*preflight).expect(0)
    # An added manifest key outside the file list, with every hash recomputed.
    manifest = os.path.join(path, "manifest.json")
    with open(manifest, encoding="utf-8") as file:
        document = json.load(file)
    document["cases"] = [{"id": "a", "artifacts": [
        {"path": "events.jsonl", "kind": "x", "publicUrl": "https://example.org/x"}]}]
    other = verify_bundle.Bundle(path)
    other.manifest = verify_bundle.parse(json.dumps(document).encode())
    document["files"][0]["sha256"]["value"] = other.self_hash()
    with open(manifest, "w", encoding="utf-8") as file:
        json.dump(document, file)
    answer = bench.call(*verify)
    codes = [row["code"] for row in answer.json["violations"]]
    must(answer.exit == 1 and codes == ["attestation-invalid"], str(answer))
    must(bench.call(*preflight).exit == 1, "a manifest with another key passed the preflight")
    # Control: a bundle of an earlier version, whose signature does not cover keys outside the file list, has coverage `files`.
    before = os.path.join(VECTORS, "signed-before", "bundle")
    answer = bench.call("artifacts", "verify", "--bundle", before, "--json").expect(0)
    must(answer.json["signature"]["coverage"] == "files", str(answer))
    answer = bench.call("artifacts", "verify", "--bundle", before).expect(0)
    must("the signature covers only identity" in answer.stdout, str(answer))


def test_apply_preflight_accepts_only_files_of_the_bundle(bench):
    path = bundle_of(bench.agent("echo x >> lib/a.txt; echo y > b.txt").expect(0))
    base = ["artifacts", "apply-preflight", "--bundle", path, "--state", bench.state, "--json"]
    must(bench.call(*base).exit == 1, "no approved file was accepted")
    must(bench.call(*base, "--approved-file", "/workspace/plugin/other.txt").exit == 1, "an unknown file was accepted")
    refused = bench.call(*base, "--approved-file", "/workspace/plugin/other.txt").json
    answer = bench.call(*base, "--approved-files", "/workspace/plugin/b.txt").expect(0)
    for document in (refused, answer.json):
        named = {document["bundleDirectory"], document["verification"]["bundleDirectory"]}
        must(named == {os.path.realpath(path)}, str(named))
    must("lib/a.txt" not in json.dumps(answer.json.get("patch", "")), "the patch has an unapproved file")
    bench.call("artifact", "verify", "--bundle", path, "--state", bench.state).expect(0)
    must(bench.call("artifacts", "verify", "--bundle", bench.directory + "/absent", "--json").exit == 1, "no bundle verified")


def test_artifacts_option_exports_a_verifiable_bundle(bench):
    target = os.path.join(bench.directory, "out")
    answer = bench.agent("echo x > x.txt", "--artifacts", target).expect(0)
    path = bundle_of(answer)
    must(path.startswith(target), path)
    bench.call("artifacts", "verify", "--bundle", path, "--state", bench.state, "--json").expect(0)


def test_killed_caller_ends_the_guest(bench):
    source = bench.source()
    arguments = bench.run_arguments("--mount", f"{source}:/workspace/plugin", "--agent-command",
                                    f"sh -c 'echo x > x.txt; {sleeper(61)}'")
    process = bench.start(arguments)
    await_count(1, sleeper(61))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    await_count(0, sleeper(61))


def test_sigint_and_sigterm_cancel_the_run_and_save_changes(bench):
    for number in (signal.SIGINT, signal.SIGTERM):
        source = bench.source()
        arguments = bench.run_arguments("--mount", f"{source}:/workspace/plugin", "--agent-command",
                                        f"sh -c 'echo x > x.txt; {sleeper(62)}'")
        process = bench.start(arguments)
        await_count(1, sleeper(62))
        process.send_signal(number)
        answer = bench.finish(arguments, process).expect(130, "wp_codebox_run_cancelled")
        must(changed(answer) == ["/workspace/plugin/x.txt"], f"the work is lost: {answer}")
        must(not running(sleeper(62)), "the guest outlived the run")


def test_bundle_contains_no_host_path(bench):
    path = bundle_of(bench.agent("echo x > x.txt").expect(0))
    needles = [os.fsencode(p) for p in (bench.directory, bench.state, bench.environment["CODEBOX_WORDPRESS"])]
    for directory, _, files in os.walk(path):
        for name in files:
            with open(os.path.join(directory, name), "rb") as file:
                content = file.read()
            for needle in needles:
                must(needle not in content, f"{name} names {needle.decode()}")


def test_full_disk_error_while_writing_the_bundle_says_where_changes_are_saved(bench):
    if os.geteuid() != 0:
        skip_unless_root("a small file system needs root to mount")
    # 40 MiB are free, of which the run reserves 16 for its end. The smaller captured change fits and its bundle does not; of the larger change neither fits.
    for size, kept_where in ((20_000_000, "the captured change stays in"), (40_000_000, "the journal stays in")):
        answer = run_on_small_disk(bench, size)
        must(answer.exit == 1 and answer.code == "wp_codebox_bundle_write_failed", str(answer))
        must(kept_where in " ".join(answer.json["error"]["hints"]), str(answer))
    # This change and its bundle fit, although a recovery bundle would not fit beside them.
    run_on_small_disk(bench, 9_000_000).expect(0)


def test_state_directory_inside_wordpress_is_refused(bench):
    site = os.path.join(bench.directory, "site")
    state = os.path.join(site, "wp-content", "state")
    os.makedirs(state, mode=0o700)
    shutil.chown(state, bench.owner)
    # A symlink that leads into the site from outside, and a missing directory behind the symlink.
    link = os.path.join(bench.directory, "link-into-site")
    os.symlink(os.path.join(site, "wp-content"), link)
    for place in (state, os.path.join(link, "state"), os.path.join(link, "absent")):
        answer = bench.call("run", "--state", place, "--wordpress", site, "--share", bench.environment["CODEBOX_SHARE"],
                            "--launcher", bench.environment["CODEBOX_LAUNCH"], "--site", bench.site, "--json",
                            "--mount", f"{bench.source()}:/workspace/plugin", "--agent-command", "true")
        must(answer.exit == 125 and answer.code == "wp_codebox_state_dir_invalid", str(answer))
        must("inside the WordPress directory" in answer.json["error"]["message"], str(answer))
    must(os.listdir(state) == [] and os.listdir(os.path.dirname(state)) == ["state"], "a file was written to the refused state directory")
    bench.agent("true").expect(0)


def run_on_small_disk(bench, size_of_change):
    state = os.path.join(bench.directory, f"small-state-{size_of_change}")
    os.mkdir(state)
    arguments = bench.run_arguments(
        "--mount", f"{bench.source()}:/workspace/plugin", "--agent-command",
        f"sh -c 'head -c {size_of_change} /dev/urandom > big.bin'", state=state)
    script = 'mount -t tmpfs -o size=40m,mode=0700,uid="$1" small "$2" && mkdir "$2/templates" && mount --bind "$3" "$2/templates" && shift 3 && exec "$@"'
    uid = str(int(subprocess.run(["id", "-u", bench.owner], capture_output=True, text=True, check=True).stdout))
    command = ["unshare", "-m", "sh", "-c", script, "sh", uid, state, os.path.join(bench.state, "templates"),
               bench.environment["CODEBOX"], *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    return bench.finish(command, process, 900)


def test_doctor_fails_for_a_missing_launcher(bench):
    answer = bench.call("doctor", *bench.paths(), "--json").expect(0)
    must(answer.json["schema"] == "wp-codebox/doctor/v1" and answer.json["level"] == "full", str(answer))
    broken = bench.paths()
    broken[broken.index("--launcher") + 1] = "/nonexistent/launcher"
    answer = bench.call("doctor", *broken, "--json")
    must(answer.exit != 0 and answer.json["status"] == "error", str(answer))


def test_verify_command_reads_the_state_directory_from_the_environment(bench):
    answer = bench.agent("echo x > x.txt").expect(0)
    verify = ["artifacts", "verify", "--bundle", answer.json["artifacts"]["directory"]]
    place = {"PATH": "/usr/bin:/bin", "WP_CODEBOX_STATE_DIR": bench.state}
    own = bench.call(*verify, "--json", environment=place).expect(0)
    must(own.json["signature"]["status"] == "signed-by-this-host" and not own.stderr, str(own))
    nowhere = {**place, "WP_CODEBOX_STATE_DIR": "/nonexistent/state"}
    other = bench.call(*verify, environment=nowhere).expect(0)
    must("signed-by-unknown" in other.stdout and "this host has no key to compare signatures with" in other.stderr, str(other))
    bench.call(*verify, "--state", "/nonexistent/state", "--json").expect(125, "wp_codebox_state_dir_invalid")


def other_host(bench):
    """Creates a state directory with a signing key of its own and returns its path."""
    state = tempfile.mkdtemp(prefix="other-host.", dir=bench.directory)
    os.mkdir(os.path.join(state, "keys"), 0o700)
    with open(os.path.join(state, "keys", "host.ed25519"), "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(os.urandom(32))
    return bench.own(state)


def test_bundle_of_another_host_is_applied_only_if_its_key_id_is_trusted(bench):
    source = bench.source()
    answer = bench.agent("echo x > x.txt", source=source).expect(0)
    bundle = answer.json["artifacts"]["directory"]
    run = os.path.basename(bundle)
    state = other_host(bench)
    verify = ["artifacts", "verify", "--bundle", bundle, "--state", state]
    seen = bench.call(*verify, "--json").expect(0).json["signature"]
    key = seen["keyId"]
    must(seen["status"] == "signed-by-unknown" and len(key) == 64, str(seen))
    must(f"(signed-by-unknown with the key {key})" in bench.call(*verify).expect(0).stdout, "the key's id is not shown")
    known = bench.call(*verify, "--trusted-key", key, "--json").expect(0).json["signature"]
    must(known["status"] == "signed-by-known", str(known))
    preflight = ["artifacts", "apply-preflight", "--bundle", bundle, "--state", state, "--approved-file", "/workspace/plugin/x.txt", "--json"]
    bench.call(*preflight).expect(1, "wp_codebox_artifact_untrusted")
    bench.call(*preflight, "--trusted-key", "0" * 64).expect(1, "wp_codebox_artifact_untrusted")
    bench.call(*preflight, "--trusted-key", key).expect(0)

    shutil.copytree(bundle, os.path.join(state, "sites", bench.site, "artifacts", run))
    bench.own(state)
    apply = ["apply", run, "--site", bench.site, "--state", state, "--to", source, "--json"]
    bench.call(*apply).expect(1, "wp_codebox_artifact_untrusted")
    must(not os.path.exists(os.path.join(source, "x.txt")), "the file was applied")
    bench.call(*apply, "--trusted-key", key).expect(0)
    must(os.path.exists(os.path.join(source, "x.txt")), "the file was not applied")


def test_malformed_trusted_key_id_is_refused_and_the_error_states_the_format(bench):
    for malformed in ("0" * 63, "0" * 65, "G" * 64, "A" * 64, ""):
        refused = bench.call("artifacts", "verify", "--bundle", bench.directory, "--trusted-key", malformed)
        must(refused.exit == 1 and "64 lowercase hex digits" in refused.stderr, str(refused))


def test_doctor_reports_all_failures_in_one_call(bench):
    """With an invalid state directory, `doctor` still reports the other failed checks."""
    paths = bench.paths()
    for name, wrong in (("--state", "/nonexistent/state"), ("--php", "/nonexistent/php"), ("--wordpress", "/usr")):
        paths[paths.index(name) + 1] = wrong
    before = os.listdir("/tmp")
    answer = bench.call("doctor", *paths, "--json")
    must(answer.exit == 1, str(answer))
    rows = {row["id"]: row for row in answer.json["checks"]}
    for name in ("state-dir", "php", "guest-wordpress"):
        must(rows[name]["status"] == "error", f"{name}: {answer}")
    must(rows["share-dir"]["status"] == "ok" and answer.json["level"] == "full", str(answer))
    must("host-key" not in rows, "a key was made although there is no state directory")
    left = [name for name in set(os.listdir("/tmp")) - set(before) if name.startswith("wp-codebox-doctor-")]
    must(not left, f"it left {left}")


def test_agent_command_with_shell_operators_gets_a_hint(bench):
    agent = lambda line: bench.run("--mount", f"{bench.source()}:/workspace/plugin", "--agent-command", line)

    def text(line):
        arguments = bench.run_arguments("--mount", f"{bench.source()}:/workspace/plugin", "--agent-command", line)
        return bench.call(*[argument for argument in arguments if argument != "--json"])

    line = "'ls | wc'"
    answer = agent(line)
    must(answer.exit != 0 and "there is no shell" in answer.stdout, str(answer))
    answer = text(line)
    must(answer.exit != 0 and "hint: there is no shell" in answer.stderr, f"in text mode: {answer}")
    # Without quotes, the line is refused before anything runs.
    answer = agent("ls | wc").expect(1, "wp_codebox_input_invalid")
    must("sh -c 'ls | wc'" in answer.json["error"]["message"], str(answer))
    answer = agent("false")
    must(answer.exit != 0 and "there is no shell" not in answer.stdout, str(answer))
    must("there is no shell" not in text("false").stderr, "a hint for a line without operators")
    agent("sh -c 'ls | wc'").expect(0)


def test_file_name_with_control_characters_prints_as_one_line(bench):
    """A newline or a bidirectional control character in a file name must not forge or split a line of the output."""
    source = bench.source()
    # The notice about entries left out of the mount also prints the name.
    os.symlink("/etc/hostname", os.path.join(source, "out\n  added     \u202eforged"))
    bench.own(source)
    agent = ["--mount", f"{source}:/workspace/plugin", "--agent-command", "php -r '" + 'touch("a\\nforged"); touch("x\\u{202e}y"); touch("é");' + "'"]
    arguments = [a for a in bench.run_arguments(*agent) if a != "--json"]
    answer = bench.call(*arguments).expect(0)
    rows = [line.split(None, 1)[1] for line in answer.stderr.splitlines() if line.startswith("  added")]
    expected = ['"/workspace/plugin/a\\nforged"', '"/workspace/plugin/x\\342\\200\\256y"', "/workspace/plugin/é"]
    must(sorted(rows) == sorted(expected), f"{rows}")
    notes = [line for line in answer.stderr.splitlines() if line.endswith("forged\")")]
    must(len(notes) == 1 and "1 link that leads out of the mount" in notes[0] and "\u202e" not in answer.stderr, str(answer))
    raw = bench.run(*agent).expect(0).result["changed_files"]
    must("/workspace/plugin/a\nforged" in [row["path"] for row in raw], f"JSON has the name itself: {raw}")


def test_equal_changes_have_equal_bundle_ids(bench):
    first = bench.agent("echo same > same.txt").expect(0).json["artifacts"]
    second = bench.agent("echo same > same.txt").expect(0).json["artifacts"]
    must(first["id"] == second["id"] and first["directory"] != second["directory"], f"{first} {second}")
    parts = []
    for name in (b"files/changed-files.json", b"files/patch.diff"):
        with open(os.path.join(os.fsencode(first["directory"]), name), "rb") as file:
            parts += [name, file.read()]
    content = b"wp-codebox/artifact-content/v1\n" + b"\n".join(parts)
    must(first["id"] == "artifact-bundle-sha256-" + hashlib.sha256(content).hexdigest(), "the id is not the digest")


def sandbox_audits(answer):
    """Returns the process wrapper audit of each guest from the bundle; the result must contain the same rows."""
    with open(os.path.join(bundle_of(answer), "files", "runtime-evidence", "run-attestation.json"), encoding="utf-8") as file:
        found = json.load(file)["sandboxAudits"]
    must(found == answer.result["sandboxAudits"], json.dumps(found))
    return found


def test_process_wrapper_audit_lists_kind_none_without_a_wrapper(bench):
    found = sandbox_audits(bench.agent("echo x > a", "--check", "test -f a").expect(0))
    must([row["kind"] for row in found] == ["none", "none"], json.dumps(found))
    must(all(row["wrappedArgs"] == [] and row["wrappedCmd"] == "wp-codebox-launch" for row in found), json.dumps(found))


def test_run_wrapped_in_bubblewrap_reports_the_same_isolation(bench):
    bare = bench.agent("echo x > a", "--check", "test -f a").expect(0)
    source = bench.source()
    answer = bench.agent("echo x > a", "--check", "test -f a", "--outer-sandbox", "bubblewrap", source=source).expect(0)
    path = verified_bundle(bench, answer, "succeeded", "promote")
    must(answer.result["isolation"] == bare.result["isolation"], "the wrapped guest reports another isolation")
    found = sandbox_audits(answer)
    must([row["kind"] for row in found] == ["bubblewrap"] * 2, json.dumps(found))
    for row in found:
        must(row["wrapperName"] == "bwrap" and "/workspace/plugin" in row["mounts"], json.dumps(row))
    text = json.dumps(found)
    for host in (bench.directory, bench.state, source, bench.environment["CODEBOX_LAUNCH"]):
        must(host not in text, f"{host} in {text}")
    must(os.path.isdir(path), path)


def test_missing_process_wrapper_is_refused_unless_optional(bench):
    missing = ("--outer-sandbox", "bubblewrap", "--outer-sandbox-program", "/nonexistent/bwrap")
    refused = bench.agent("echo x > a", *missing).expect(125, "wp_codebox_sandbox_wrapper_missing")
    must(refused.json["error"].get("hints"), str(refused))
    answer = bench.agent("echo x > a", *missing, "--outer-sandbox-optional").expect(0)
    must(any("without it" in notice for notice in answer.result["notices"]), str(answer))
    (row,) = sandbox_audits(answer)
    must(row["kind"] == "none" and "bubblewrap" in row["reason"], json.dumps(row))


def test_gvisor_process_wrapper_is_refused_because_gvisor_lacks_landlock(bench):
    """The gVisor kernel has no Landlock, which level full needs. The bubblewrap case is the control."""
    refused = bench.agent("echo x > a", "--outer-sandbox", "gvisor").expect(125, "wp_codebox_sandbox_start_failed")
    must("Landlock" in json.dumps(refused.json["error"]["hints"]), str(refused))


def test_unknown_process_wrapper_and_a_wrapper_program_without_an_absolute_path_are_refused(bench):
    bench.agent("true", "--outer-sandbox", "docker").expect(1, "wp_codebox_input_invalid")
    bench.agent("true", "--outer-sandbox", "bubblewrap", "--outer-sandbox-program", "bwrap").expect(1, "wp_codebox_input_invalid")
