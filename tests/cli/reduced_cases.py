"""Runs on a host that forbids user namespaces: level `reduced`, when the policy names it.

The host is made to forbid them for one call: a seccomp filter, inherited by everything the
call starts, answers EPERM to `unshare(CLONE_NEWUSER)`. The product knows nothing of it.
"""

import ctypes
import json
import os
import platform
import struct
import subprocess

from harness import must, tree
from run_cases import bundle_of, changed, kept

POLICY = {"network": "deny", "filesystem": "readwrite-mounts", "secrets": "none", "approvals": "never",
          "commands": ["command-agent-run", "wordpress.run-php", "wordpress.wp-cli", "inspect-mounted-inputs"],
          "minimum_isolation": "reduced"}
UNSHARE = {"x86_64": 272, "aarch64": 97}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
CLONE_NEWUSER, EPERM = 0x10000000, 1


class Program(ctypes.Structure):
    """struct sock_fprog."""
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def forbid_user_namespaces():
    """Runs in the child before it becomes the program."""
    code = b"".join(struct.pack("=HBBI", *row) for row in (
        (0x20, 0, 0, 0),                                    # the call's number
        (0x15, 0, 3, UNSHARE[platform.machine()]),
        (0x20, 0, 0, 16),                                   # its first argument
        (0x45, 0, 1, CLONE_NEWUSER),
        (0x06, 0, 0, 0x00050000 | EPERM),
        (0x06, 0, 0, 0x7FFF0000),
    ))
    memory = ctypes.create_string_buffer(code, len(code))
    program = Program(len(code) // 8, ctypes.addressof(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program)):
        os._exit(99)


def forbidden(bench, *arguments):
    arguments = bench.run_arguments(*arguments)
    process = subprocess.Popen([bench.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env={"PATH": "/usr/bin:/bin"}, preexec_fn=forbid_user_namespaces)
    return bench.finish(arguments, process, 300)


def agent(script):
    return ["--agent-command", "sh -c '" + script.replace("'", "'\\''") + "'"]


def policy(**changes):
    return ["--policy", json.dumps({**POLICY, **changes})]


def level_of(answer):
    return answer.json["runtime"]["isolation"]["level"]


def reduced_only_when_named(bench):
    mount = ["--mount", f"{bench.source()}:/workspace/plugin"]
    refused = forbidden(bench, *mount, *agent("true"))
    must(refused.exit == 125, f"no policy names less than full\n{refused}")
    refused = forbidden(bench, *mount, *agent("true"), *policy(minimum_isolation="full"))
    must(refused.exit == 125, f"the policy names full\n{refused}")
    # Control: the same policy where nothing is forbidden gives full.
    allowed = bench.run(*mount, *agent("true"), *policy()).expect(0)
    must(level_of(allowed) == "full", str(allowed))


def reduced_agent_and_checks(bench):
    source = bench.source()
    before = tree(source)
    answer = forbidden(bench, "--mount", f"{source}:/wordpress/wp-content/plugins/plugin",
                       *agent("echo four >> lib/a.txt; echo new > added.txt; rm plugin.php; mkdir -p shut/in; "
                              "test ! -e /tmp/wp-codebox-shared && ! cat /etc/passwd && wp option get home"),
                       "--check", "test -f added.txt", "--check", "grep -q four lib/a.txt", "--check", "test ! -e plugin.php",
                       "--check", "test -f plugin.php", *policy())
    must([c["status"] for c in answer.result["checks"]] == ["passed", "passed", "passed", "failed"], str(answer))
    answer.expect(3)
    base = "/wordpress/wp-content/plugins/plugin/"
    must(changed(answer) == [base + n for n in ("added.txt", "lib/a.txt", "plugin.php", "shut/in")], str(changed(answer)))
    must(level_of(answer) == "reduced", str(answer))
    path = kept(bench, answer, "partial", "review")
    must(tree(source) == before, "the host directory was written")
    with open(os.path.join(path, "files", "patch.diff"), "rb") as patch:
        subprocess.run(["git", "apply", "-p1"], cwd=source, stdin=patch, check=True, capture_output=True)
    after = tree(source)
    must(after["lib/a.txt"][1] == b"one\ntwo\nthree\nfour\n" and "plugin.php" not in after, "wrong content")


def reduced_wordpress(bench):
    mount = ["--mount", f"{bench.source()}:/wordpress/wp-content/plugins/plugin"]
    answer = forbidden(bench, *mount, "--command", "wordpress.run-php", "--arg", "code=echo 'wp ' . get_bloginfo( 'version' ) . ' a=b';",
                       *policy()).expect(0)
    must("wp 7" in answer.stdout and "a=b" in answer.stdout and level_of(answer) == "reduced", str(answer))
    answer = forbidden(bench, *mount, "--command", "wordpress.wp-cli", "--arg", "command=plugin list --field=name", *policy()).expect(0)
    must("plugin" in answer.stdout, str(answer))
    answer = forbidden(bench, *mount, "--command", "inspect-mounted-inputs", *policy()).expect(0)
    must("plugin.php" in answer.stdout, str(answer))


def reduced_captures_no_mail_and_says_so(bench):
    """There is no network to capture it on. Nothing may take the mail for sent, nor its absence for none."""
    mount = ["--mount", f"{bench.source()}:/workspace/plugin"]
    send = "code=echo wp_json_encode( array( wp_mail( 'one@example.org', 's', 'x' ), mail( 'one@example.org', 's', 'x' ) ) );"
    notice = "mail is not captured at level reduced"
    answer = forbidden(bench, *mount, "--command", "wordpress.run-php", "--arg", send, *policy()).expect(0)
    must("[false,false]" in answer.stdout and level_of(answer) == "reduced", str(answer))
    must([notice in line for line in answer.result["notices"]].count(True) == 1, str(answer.result["notices"]))
    asked = policy(commands=["host/smtp.inspect"])
    answer = forbidden(bench, *mount, "--command", "host/smtp.inspect", "--arg", "service=mail", *asked)
    must(answer.exit != 0 and "wp_codebox_command_unsupported" in answer.stdout and notice in answer.stdout, str(answer))
    # Control: the same where nothing is forbidden.
    answer = bench.run(*mount, "--command", "wordpress.run-php", "--arg", send, *policy()).expect(0)
    must("[true,true]" in answer.stdout and notice not in answer.stdout, str(answer))
    bench.run(*mount, "--command", "host/smtp.inspect", "--arg", "service=mail", *asked).expect(0)


def reduced_scratch_goes_with_the_run(bench):
    # A directory nobody may enter, and in the end one deeper than any path: that alone may end the guest.
    deep = "cd \"$TMPDIR\"; php -r 'for ($i = 0; $i < 1500; $i++) { mkdir(\"deepdeep\"); chdir(\"deepdeep\"); }'"
    shut = "mkdir -m 0 \"$TMPDIR/shut\""
    answer = forbidden(bench, "--mount", f"{bench.source()}:/workspace/plugin", *agent(f"echo x > x.txt; {shut}; {deep}"), *policy())
    must(changed(answer) == ["/workspace/plugin/x.txt"] and level_of(answer) == "reduced", str(answer))
    runs = os.path.join(bench.state, "sites", bench.site, "runs")
    left = [name for name in os.listdir(runs) if os.path.exists(os.path.join(runs, name, "scratch"))]
    must(left == [], f"scratch left: {left}")


CASES = [reduced_only_when_named, reduced_agent_and_checks, reduced_wordpress, reduced_captures_no_mail_and_says_so,
         reduced_scratch_goes_with_the_run]
