"""Runs on a host that forbids user namespaces: level `reduced`, when the policy names it.

A seccomp filter, inherited by every process of the call, returns EPERM for
`unshare(CLONE_NEWUSER)`. The product has no test switch for this.
"""

import os
import subprocess

from harness import must, tree
from harness.bundles import changed, verified_bundle
from harness.reduced import agent, policy, run_without_userns


def level_of(answer):
    return answer.json["runtime"]["isolation"]["level"]


def test_run_without_user_namespaces_is_refused_if_the_policy_does_not_allow_level_reduced(bench):
    mount = ["--mount", f"{bench.source()}:/workspace/plugin"]
    refused = run_without_userns(bench, *mount, *agent("true"))
    must(refused.exit == 125, f"no policy names less than full\n{refused}")
    refused = run_without_userns(bench, *mount, *agent("true"), *policy(minimum_isolation="full"))
    must(refused.exit == 125, f"the policy names full\n{refused}")
    # Control: with user namespaces the same policy runs at level full.
    allowed = bench.run(*mount, *agent("true"), *policy()).expect(0)
    must(level_of(allowed) == "full", str(allowed))


def test_agent_and_checks_run_at_level_reduced_and_the_changes_are_bundled(bench):
    source = bench.source()
    before = tree(source)
    answer = run_without_userns(bench, "--mount", f"{source}:/wordpress/wp-content/plugins/plugin",
                       *agent("echo four >> lib/a.txt; echo new > added.txt; rm plugin.php; mkdir -p shut/in; "
                              "test ! -e /tmp/wp-codebox-shared && ! cat /etc/passwd && wp option get home"),
                       "--check", "test -f added.txt", "--check", "grep -q four lib/a.txt", "--check", "test ! -e plugin.php",
                       "--check", "test -f plugin.php", *policy())
    must([c["status"] for c in answer.result["checks"]] == ["passed", "passed", "passed", "failed"], str(answer))
    answer.expect(3)
    base = "/wordpress/wp-content/plugins/plugin/"
    must(changed(answer) == [base + n for n in ("added.txt", "lib/a.txt", "plugin.php", "shut/in")], str(changed(answer)))
    must(level_of(answer) == "reduced", str(answer))
    path = verified_bundle(bench, answer, "partial", "review")
    must(tree(source) == before, "the host directory was written")
    with open(os.path.join(path, "files", "patch.diff"), "rb") as patch:
        subprocess.run(["git", "apply", "-p1"], cwd=source, stdin=patch, check=True, capture_output=True)
    after = tree(source)
    must(after["lib/a.txt"][1] == b"one\ntwo\nthree\nfour\n" and "plugin.php" not in after, "wrong content")


def test_wordpress_commands_run_at_level_reduced(bench):
    mount = ["--mount", f"{bench.source()}:/wordpress/wp-content/plugins/plugin"]
    answer = run_without_userns(bench, *mount, "--command", "wordpress.run-php", "--arg", "code=echo 'wp ' . get_bloginfo( 'version' ) . ' a=b';",
                       *policy()).expect(0)
    must("wp 7" in answer.stdout and "a=b" in answer.stdout and level_of(answer) == "reduced", str(answer))
    answer = run_without_userns(bench, *mount, "--command", "wordpress.wp-cli", "--arg", "command=plugin list --field=name", *policy()).expect(0)
    must("plugin" in answer.stdout, str(answer))
    answer = run_without_userns(bench, *mount, "--command", "inspect-mounted-inputs", *policy()).expect(0)
    must("plugin.php" in answer.stdout, str(answer))


def test_reduced_isolation_captures_no_mail_and_reports_it(bench):
    """Level reduced has no network to capture mail on: mail functions return false, and a notice says so."""
    mount = ["--mount", f"{bench.source()}:/workspace/plugin"]
    send = "code=echo wp_json_encode( array( wp_mail( 'one@example.org', 's', 'x' ), mail( 'one@example.org', 's', 'x' ) ) );"
    notice = "mail is not captured at level reduced"
    answer = run_without_userns(bench, *mount, "--command", "wordpress.run-php", "--arg", send, *policy()).expect(0)
    must("[false,false]" in answer.stdout and level_of(answer) == "reduced", str(answer))
    must([notice in line for line in answer.result["notices"]].count(True) == 1, str(answer.result["notices"]))
    asked = policy(commands=["host/smtp.inspect"])
    answer = run_without_userns(bench, *mount, "--command", "host/smtp.inspect", "--arg", "service=mail", *asked)
    must(answer.exit != 0 and "wp_codebox_command_unsupported" in answer.stdout and notice in answer.stdout, str(answer))
    # Control: the same call with user namespaces.
    answer = bench.run(*mount, "--command", "wordpress.run-php", "--arg", send, *policy()).expect(0)
    must("[true,true]" in answer.stdout and notice not in answer.stdout, str(answer))
    bench.run(*mount, "--command", "host/smtp.inspect", "--arg", "service=mail", *asked).expect(0)


def test_run_at_level_reduced_removes_its_scratch_directory(bench):
    # A directory with mode 0, and a directory chain longer than PATH_MAX, which may end the guest by itself.
    deep = "cd \"$TMPDIR\"; php -r 'for ($i = 0; $i < 1500; $i++) { mkdir(\"deepdeep\"); chdir(\"deepdeep\"); }'"
    shut = "mkdir -m 0 \"$TMPDIR/shut\""
    answer = run_without_userns(bench, "--mount", f"{bench.source()}:/workspace/plugin", *agent(f"echo x > x.txt; {shut}; {deep}"), *policy())
    must(changed(answer) == ["/workspace/plugin/x.txt"] and level_of(answer) == "reduced", str(answer))
    runs = os.path.join(bench.state, "sites", bench.site, "runs")
    left = [name for name in os.listdir(runs) if os.path.exists(os.path.join(runs, name, "scratch"))]
    must(left == [], f"scratch left: {left}")
