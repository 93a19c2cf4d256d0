"""Invalid input is refused with a stable code and a sentence before a guest starts."""

import json
import os
import shutil
import socket
import subprocess

from harness import must, skip_unless_root, tree

PHP = ["--command", "wordpress.run-php", "--arg", "code=echo 1;"]


def test_call_without_arguments_prints_usage(bench):
    answer = bench.call()
    must(answer.exit == 1 and "Usage" in answer.stdout + answer.stderr, f"no help\n{answer}")


def test_version_subcommand_prints_only_the_version_number_and_the_version_option_contains_it(bench):
    answer = bench.call("--version")
    must(answer.exit == 0 and "0.1.0" in answer.stdout, str(answer))
    must(bench.call("version").stdout == "0.1.0\n", "version is not bare")


def test_unknown_subcommand_is_refused(bench):
    answer = bench.call("frobnicate", "--json").expect(1, "wp_codebox_input_invalid")
    must(answer.json["schema"] == "wp-codebox/cli-failure/v1" and answer.json["success"] is False, str(answer))


def test_commands_subcommand_lists_the_command_catalog(bench):
    answer = bench.call("commands", "--json").expect(0)
    text = answer.stdout
    must(answer.json["schema"] == "wp-codebox/command-catalog/v1", text)
    for command in ("inspect-mounted-inputs", "wordpress.run-php", "wordpress.wp-cli", "command-agent-run"):
        must(f'"{command}"' in text, f"{command} is missing")


def test_run_without_command_or_agent_is_refused(bench):
    bench.run("--mount", f"{bench.source()}:/workspace/plugin").expect(1, "wp_codebox_input_invalid")


def test_blank_goal_is_refused(bench):
    bench.agent("true", "--goal", "  ").expect(1, "wp_codebox_task_missing")


def test_run_without_wordpress_directory_is_refused(bench):
    arguments = ["run", "--json", "--state", bench.state, "--mount", f"{bench.source()}:/workspace/plugin", *PHP]
    bench.call(*arguments, environment=bench.without_wordpress()).expect(125, "wp_codebox_wordpress_unavailable")


def test_launcher_beside_the_program_is_used_if_no_launcher_option_is_given(bench):
    """`wp-codebox` finds `wp-codebox-launch` in its own directory without `--launcher`."""
    home = os.path.join(bench.directory, "programs")
    os.makedirs(home)
    for name in ("CODEBOX", "CODEBOX_LAUNCH"):
        shutil.copy(bench.environment[name], home)
    paths = [p for p in bench.paths() if p not in ("--launcher", bench.environment["CODEBOX_LAUNCH"])]
    call = [os.path.join(home, os.path.basename(bench.environment["CODEBOX"])), "run", "--json", *PHP, *paths]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=120)
    must(done.returncode == 0, done.stdout + done.stderr)
    os.unlink(os.path.join(home, os.path.basename(bench.environment["CODEBOX_LAUNCH"])))
    missing = subprocess.run(call, capture_output=True, text=True, check=False, timeout=120)
    installed = os.path.exists("/usr/libexec/wp-codebox-launch")
    must(installed or missing.returncode == 125 and "wp_codebox_config_invalid" in missing.stdout, missing.stdout + missing.stderr)


def test_missing_mount_source_is_refused(bench):
    answer = bench.run("--mount", f"{bench.directory}/absent:/workspace/plugin", *PHP).expect(1, "wp_codebox_mount_source_invalid")
    must(answer.json["error"]["message"].startswith(f"{bench.directory}/absent: "), str(answer))


def test_mount_source_that_is_a_file_is_refused(bench):
    source = bench.source()
    bench.run("--mount", f"{source}/plugin.php:/workspace/plugin", *PHP).expect(1, "wp_codebox_mount_source_invalid")


def test_mount_source_inside_wordpress_or_state_is_denied(bench):
    wordpress = bench.environment["CODEBOX_WORDPRESS"]
    inside = [os.path.join(wordpress, name) for name in ("wp-admin", "wp-content", "wp-includes/blocks")]
    for path in (wordpress, os.path.dirname(wordpress), *inside, "/", bench.state):
        bench.run("--mount", f"{path}:/workspace/plugin", *PHP).expect(126, "wp_codebox_mount_denied")


def test_mount_source_with_a_fifo_is_refused(bench):
    source = bench.source()
    os.mkfifo(os.path.join(source, "lib", "pipe"))
    answer = bench.run("--mount", f"{source}:/workspace/plugin", *PHP).expect(1, "wp_codebox_mount_special_file")
    must(answer.json["error"]["message"].startswith(f"{source}: "), str(answer))


def test_mount_source_with_a_socket_is_refused(bench):
    source = bench.source()
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(source)
    server.bind("socket")
    os.chdir(here)
    try:
        bench.run("--mount", f"{source}:/workspace/plugin", *PHP).expect(1, "wp_codebox_mount_special_file")
    finally:
        server.close()


def test_mount_source_with_a_device_is_refused(bench):
    if os.geteuid() != 0:
        skip_unless_root("only root can make a device file")
    source = bench.source()
    os.mknod(os.path.join(source, "device"), 0o600 | 0o020000, os.makedev(1, 3))
    bench.run("--mount", f"{source}:/workspace/plugin", *PHP).expect(1, "wp_codebox_mount_special_file")


def test_mount_target_outside_workspace_and_wordpress_is_refused(bench):
    source = bench.source()
    for target in ("/etc", "/", "/usr/a", "/run/codebox/x", "/wordpress/../etc", "/workspace/../etc", "/workspace//a"):
        bench.run("--mount", f"{source}:{target}", *PHP).expect(1, "wp_codebox_mount_target_invalid")


def test_overlapping_mount_targets_are_refused(bench):
    first, second = bench.source("one"), bench.source("two")
    for target in ("/workspace/a", "/workspace/a/b"):
        bench.run("--mount", f"{first}:/workspace/a", "--mount", f"{second}:{target}", *PHP).expect(
            1, "wp_codebox_mount_target_overlap")
    both = bench.run("--mount", f"{first}:/workspace/a", "--mount", f"{second}:/workspace/ab", *PHP)
    both.expect(0)


def test_malformed_mount_option_is_refused(bench):
    for text in ("", ":/workspace/a", "/tmp:workspace", "/tmp:/workspace/a:sideways"):
        bench.run("--mount", text, *PHP).expect(1, "wp_codebox_mount_invalid")
    # Without a guest path the directory must be a project. /tmp does not count as one, because every user may
    # create files there.
    bench.run("--mount", "/tmp", *PHP).expect(1, "wp_codebox_input_invalid")


def test_run_of_an_unregistered_command_is_refused(bench):
    bench.run("--mount", f"{bench.source()}:/workspace/plugin", "--command", "wordpress.destroy").expect(1, "wp_codebox_command_unknown")


def test_invalid_or_unenforceable_policy_is_refused(bench):
    source, folder = bench.source(), os.path.join(os.path.dirname(__file__), "..", "fixtures", "policies")
    for name, exit_code, code in (
        ("allows-run-php.json", 0, None),
        ("allows-nothing.json", 126, "runtime-command-disallowed"),
        ("malformed.json", 126, "runtime-policy-invalid"),
        ("network-allow.json", 126, "wp_codebox_policy_unenforceable"),
    ):
        answer = bench.run("--mount", f"{source}:/workspace/plugin", "--policy", os.path.join(folder, name), *PHP)
        answer.expect(exit_code, code)
    with open(os.path.join(folder, "allows-run-php.json"), encoding="utf-8") as file:
        misspelt = json.dumps({**json.load(file), "isolation_flors": {"memory": "enforced"}})
    answer = bench.run("--mount", f"{source}:/workspace/plugin", "--policy", misspelt, *PHP)
    answer.expect(126, "runtime-policy-invalid")
    must("isolation_flors" in str(answer), str(answer))
    bench.run("--mount", f"{source}:/workspace/plugin", "--policy", "{not json", *PHP).expect(126, "runtime-policy-invalid")
    bench.run("--mount", f"{source}:/workspace/plugin", "--allow-host", "http://example.org/", *PHP).expect(126, "runtime-policy-invalid")


def test_whole_float_in_a_policy_is_an_integer_and_a_fraction_is_refused(bench):
    policy = {"filesystem": "readwrite-mounts", "commands": ["wordpress.run-php"], "secrets": "none", "approvals": "never"}
    for port, exit_code, code in ((443, 0, None), (443.0, 0, None), (443.5, 126, "runtime-policy-invalid"), (1e300, 126, "runtime-policy-invalid")):
        network = {"rules": [{"host": "example.org", "ports": [port]}]}
        bench.run("--policy", json.dumps({**policy, "network": network}), *PHP).expect(exit_code, code)


def test_resource_limits_out_of_range_are_refused(bench):
    source = bench.source()
    for flags in (["--processes", "1"], ["--memory", "1K"], ["--timeout", "1ms"], ["--disk", "x"]):
        bench.run("--mount", f"{source}:/workspace/plugin", *flags, *PHP).expect(1, "wp_codebox_limit_invalid")
    # The parser takes a negative duration for an option.
    bench.run("--mount", f"{source}:/workspace/plugin", "--timeout", "-1s", *PHP).expect(1, "wp_codebox_input_invalid")


def test_duration_without_a_unit_is_refused_and_the_error_suggests_seconds_or_ms(bench):
    """A bare number could mean seconds or milliseconds, so every duration flag refuses one."""
    source = bench.source()
    store = ["--state", bench.state, "--site", bench.site]
    place = [*bench.paths(), "--site", bench.site]
    run = lambda *flags: bench.run_arguments("--mount", f"{source}:/workspace/plugin", *flags, *PHP)
    limit, argument = "wp_codebox_limit_invalid", "wp_codebox_input_invalid"
    for flag, arguments, code in (
        ("--timeout", run("--timeout", "90"), limit),
        ("--hold", run("--hold", "90"), limit),
        ("--hold-max", run("--hold", "90s", "--hold-max", "90"), limit),
        ("--hold-idle", run("--hold", "90s", "--hold-idle", "90"), limit),
        ("--preview-hold", run("--preview-hold", "90"), limit),
        ("--hold", ["boot", *place, "--hold", "90"], limit),
        ("--ttl", ["episode", "start", *place, "--ttl", "90"], argument),
        ("--idle", ["episode", "start", *place, "--idle", "90"], argument),
        ("--max-age", ["gc", *store, "--dry-run", "--max-age", "90"], argument),
        ("--artifacts-max-age", ["gc", *store, "--dry-run", "--artifacts-max-age", "90"], argument),
        ("--snapshots-max-age", ["gc", *store, "--dry-run", "--snapshots-max-age", "90"], argument),
    ):
        answer = bench.call(*arguments, *([] if "--json" in arguments else ["--json"])).expect(1, code)
        must(answer.json["error"]["message"].startswith(f'{flag} "90" ') and "90sec or 90ms" in answer.stdout, f"{flag}: {answer}")
    bench.call("gc", *store, "--dry-run", "--max-age", "90s", "--json").expect(0)


def test_invalid_preview_options_are_refused(bench):
    source = bench.source()
    for code, *flags in (("wp_codebox_input_invalid", "--preview-port", "8080"),
                         ("wp_codebox_limit_invalid", "--preview-hold", "0s"),
                         ("wp_codebox_limit_invalid", "--preview-hold", "2h"),
                         ("wp_codebox_input_invalid", "--preview-hold", "9s", "--preview-bind", "localhost"),
                         ("wp_codebox_input_invalid", "--preview-hold", "9s", "--preview-public-url", "https://example.org/below")):
        bench.run("--mount", f"{source}:/workspace/plugin", *flags, *PHP).expect(1, code)


def test_world_writable_state_directory_is_refused(bench):
    path = os.path.join(bench.directory, "state-open")
    os.mkdir(path)
    bench.own(path)
    os.chmod(path, 0o777)
    answer = bench.agent("true", state=path).expect(125, "wp_codebox_state_dir_invalid")
    os.chmod(path, 0o700)
    must("chmod" in answer.stdout, f"the fix is not named\n{answer}")


def test_state_directory_owned_by_root_is_refused(bench):
    if os.geteuid() != 0:
        bench.agent("true", state="/root").expect(125, "wp_codebox_state_dir_invalid")
        return
    path = os.path.join(bench.directory, "state-root")
    os.mkdir(path, 0o700)
    answer = bench.agent("true", state=path).expect(125, "wp_codebox_state_dir_invalid")
    must("chown" in answer.stdout, f"the fix is not named\n{answer}")


def test_missing_state_directory_is_refused(bench):
    bench.agent("true", state=os.path.join(bench.directory, "absent", "state")).expect(125, "wp_codebox_state_dir_invalid")


def test_missing_launcher_is_refused(bench):
    source = bench.source()
    arguments = bench.run_arguments("--mount", f"{source}:/workspace/plugin", *PHP)
    arguments[arguments.index("--launcher") + 1] = "/nonexistent/launcher"
    bench.call(*arguments).expect(125, "wp_codebox_config_invalid")


def test_refused_run_leaves_the_source_unchanged(bench):
    source = bench.source()
    before = tree(source)
    bench.run("--mount", f"{source}:/etc", *PHP).expect(1)
    must(tree(source) == before, "the source changed")
