"""Command line behaviour: usage errors, pipes, full disks, manual pages, completion, control socket paths."""

import fcntl
import json
import os
import pty
import re
import shlex
import shutil
import signal
import struct
import subprocess
import termios
import time
import unicodedata

from harness import must, poll_until
from harness.processes import read_until
from harness.templates import seed_template

ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def shell(bench, script, *arguments, environment=None, **options):
    """Runs a bash script in which `codebox` calls the program."""
    full = "codebox() { " + shlex.quote(bench.environment["CODEBOX"]) + ' "$@"; }\n' + script
    return subprocess.run(["bash", "-c", full, "bash", *arguments], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, env={**ENVIRONMENT, **(environment or {})}, **options)


def hold_sandbox(bench, state=None):
    """Starts a held sandbox; returns its run id and the arguments that locate its state."""
    arguments = bench.run_arguments("--mount", f"{bench.source()}:/workspace/plugin", "--command", "wordpress.run-php",
                                    "--arg", "code=1;", "--hold", "2m", "--detach", state=state)
    run = bench.call(*arguments).expect(0).json["run_id"]
    place = ["--state", state or bench.state, "--site", bench.site]
    poll_until(lambda: bench.call("exec", run, *place, "--", "true").exit == 0, what="the sandbox is not held")
    return run, place


def test_usage_error_names_command_and_argument_and_gives_a_hint(bench):
    for arguments, command, said, hint in (
        (["recipe", "validate", "--json"], "recipe validate", "--recipe <FILE>", "wp-codebox recipe validate --help"),
        (["runs", "lits", "--json"], "runs", "lits", "'list'"),
        (["run", "--moutn", "x", "--json"], "run", "--moutn", "'--mount'"),
        (["runs", "list", "--limit", "900", "--json"], "runs list", "1..=200", "wp-codebox runs list --help"),
    ):
        answer = bench.call(*arguments).expect(1, "wp_codebox_input_invalid")
        error = answer.json["error"]
        must(answer.json["command"] == command and said in error["message"], str(answer))
        must(any(hint in line for line in error["hints"]), str(answer))
        plain = bench.call(*(a for a in arguments if a != "--json"))
        must(plain.exit == 1 and not plain.stdout and said in plain.stderr, str(plain))


def test_help_subcommand_prints_the_text_of_the_help_flag_wrapped_at_terminal_width_or_100_columns(bench):
    for words in ([], ["run"], ["runs", "list"], ["runs", "events"]):
        must(bench.call("help", *words).stdout == bench.call(*words, "--help").stdout, str(words))
    bench.call("help", "runz").expect(1)
    for columns in (80, 200):
        answer = bench.call("run", "--help", environment={"COLUMNS": str(columns)})
        widest = max(len(line) for line in answer.stdout.splitlines())
        must(widest <= min(columns, 100), f"{widest} of {columns}")
        must("\x1b" not in answer.stdout, "colours without a terminal")
    # Example commands are not wrapped at 80 columns, so that they can be copied.
    lines = bench.call("run", "--help", environment={"COLUMNS": "80"}).stdout.splitlines()
    must(any(line.startswith("    --command ") and line.endswith(" \\") for line in lines), "\n".join(lines[-30:]))


def test_command_with_unwritable_stdout_exits_1_with_a_single_error_message(bench):
    place = ["--state", bench.state]
    listed = ["runs", "list", *place]
    for arguments in (listed, [*listed, "--json"], ["--help"], ["man"], ["completion", "bash"], ["schema", "--list"]):
        full = shell(bench, 'codebox "$@" >/dev/full', *arguments)
        must(full.returncode == 1, f"{arguments}: exit {full.returncode} with a full disk")
        must(full.stderr.count("cannot be written") == 1, f"{arguments}: {full.stderr}")
        whole = shell(bench, 'codebox "$@" >/dev/null', *arguments)
        must(whole.returncode == 0 and "written" not in whole.stderr, f"{arguments}: {whole}")
        # A reader that closes the pipe early (EPIPE) is not an error.
        left = shell(bench, 'codebox "$@" | true; echo ${PIPESTATUS[0]}', *arguments)
        must(left.stdout.strip() == "0" and not re.search("error|panic", left.stderr, re.I), f"{arguments}: {left}")
        closed = shell(bench, 'codebox "$@" >&- <&-', *arguments)
        must("panic" not in closed.stderr, f"{arguments}: {closed}")


def test_non_utf8_arguments_are_refused_without_panic(bench):
    odd = os.fsencode(bench.directory) + b"/odd-\xff"
    shutil.copytree(os.fsencode(bench.source()), odd)
    program = os.fsencode(bench.environment["CODEBOX"])
    for arguments, wanted in (([b"run", b"--mount=" + odd + b":/workspace/x", b"--json"], 1),
                              ([b"recipe", b"validate", b"--recipe", odd, b"--json"], 1)):
        done = subprocess.run([program, *arguments], capture_output=True, env=ENVIRONMENT, stdin=subprocess.DEVNULL, timeout=30)
        must(done.returncode == wanted and b"panic" not in done.stderr, str(done))
        must(json.loads(done.stdout)["schema"] == "wp-codebox/cli-failure/v1", str(done))


def test_manual_pages_have_the_standard_sections(bench):
    pages = os.path.join(bench.directory, "man")
    bench.call("man", "--directory", pages).expect(0)
    names = sorted(os.listdir(pages))
    must(len(names) > 50 and "wp-codebox.1" in names and not any("supervise" in name for name in names), str(names))
    for name in names:
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-rLL=80n", "-P-cbou", os.path.join(pages, name)],
                              capture_output=True, text=True, timeout=30, env={**ENVIRONMENT, "LC_ALL": "C.UTF-8"})
        must(done.returncode == 0 and not done.stderr, f"{name}: {done.stderr[:400]}")
        sections = re.findall(r"^[A-Z][A-Z ]+$", done.stdout, re.M)
        must(sections[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], f"{name}: {sections}")
        must("EXTRA" not in sections and ("SUBCOMMANDS" in sections or {"EXAMPLES", "EXIT STATUS"} <= set(sections)), f"{name}: {sections}")
        # Every referenced manual page exists.
        for page in re.findall(r"(wp-codebox[a-z-]*)\(1\)", done.stdout):
            must(f"{page}.1" in names, f"{name} names {page}, which there is not")
        examples = done.stdout.partition("\nEXAMPLES\n")[2].partition("\n\n")[0]
        must(all(len(line) <= 86 for line in examples.splitlines()), f"{name}: an example is too wide\n{examples}")


TRY = """source <(codebox completion bash) || exit 9
for line in "$@"; do
	read -ra COMP_WORDS <<<"${line%% }"; [ "$line" = "${line% }" ] || COMP_WORDS+=( '' )
	COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); COMPREPLY=()
	[[ $(complete -p "${COMP_WORDS[0]}") =~ -F\\ ([^\\ ]+) ]] || exit 8
	"${BASH_REMATCH[1]}" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
	echo "${COMPREPLY[*]}"
done"""


def test_bash_completion_covers_every_subcommand_level(bench):
    wanted = {"wp-codebox ru": "run", "wp-codebox runs l": "list", "codebox runs ": "events", "wp-codebox runs list --st": "--status",
              "wp-codebox runs list --status ": "ended", "wp-codebox agent-sandbox-run --in": "--input-file",
              "wp-codebox run --outer-sandbox ": "bubblewrap", "wp-codebox run --model-api ": "anthropic-messages"}
    done = shell(bench, TRY, *wanted, "wp-codebox ")
    must(done.returncode == 0 and not done.stderr, f"{done}")
    answers = done.stdout.splitlines()
    for (line, word), answer in zip(wanted.items(), answers):
        must(word in answer.split(), f"{line!r}: {answer!r}")
    # Internal subcommands are not completed.
    must("doctor" in answers[-1] and not re.search("supervise|spawn|keep-cgroups", answers[-1]), answers[-1])


def test_exec_passes_program_arguments_unchanged_and_fails_if_its_stdout_cannot_be_written(bench):
    run, place = hold_sandbox(bench)
    for theirs in ("--json", "--format=json"):
        answer = bench.call("exec", run, *place, "--", "echo", theirs)
        must(answer.exit == 0 and answer.stdout == theirs + "\n", str(answer))
    lines = bench.call("exec", run, *place, "--json", "--", "echo", "x").stdout.splitlines()
    must([json.loads(line)["type"] for line in lines] == ["started", "output", "exited"], str(lines))
    # When the reader closes the pipe, `exec` ends with SIGPIPE status 141, and the guest program ends, too.
    began = time.monotonic()
    done = shell(bench, 'codebox exec "$@" -- yes wp-codebox-yes | head -n 1; echo ${PIPESTATUS[0]}', run, *place)
    must(done.stdout.split() == ["wp-codebox-yes", "141"] and time.monotonic() - began < 50, str(done))
    # A write that fails for another reason is an error with a message, as of other programs.
    full = 'codebox exec "$@" -- echo x 2>&1 >/dev/full; echo $?; codebox exec "$@" -- yes wp-codebox-yes 2>&1 >/dev/full; echo $?'
    said = shell(bench, full, run, *place).stdout.splitlines()
    must([line for line in said if line.isdigit()] == ["1", "1"] and "standard output cannot be written" in said[0], str(said))
    must(shell(bench, 'codebox exec "$@" -- echo x >/dev/null; echo $?', run, *place).stdout.split() == ["0"], "control")
    count = "grep -slx '[w]p-codebox-yes' /proc/[0-9]*/cmdline -z | wc -l"
    poll_until(lambda: bench.call("exec", run, *place, "--", "sh", "-c", count).stdout.strip(), lambda left: left == "0")
    bench.call("runs", "cancel", run, *place).expect(0)


def test_command_started_with_sighup_ignored_continues_after_sighup(bench):
    """A SIGHUP that the caller ignores (nohup) stays ignored; other signals end the command."""
    run, place = hold_sandbox(bench)
    arguments = [bench.environment["CODEBOX"], "runs", "events", run, *place, "--follow"]
    # The process that runs the suite may ignore SIGHUP as well, so both dispositions are set.
    for disposition, hears in (("--ignore-signal=HUP", False), ("--default-signal=HUP", True)):
        process = subprocess.Popen(["env", disposition, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT)
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        try:
            status = process.wait(30 if hears else 1)
        except subprocess.TimeoutExpired:
            status = None
            process.send_signal(signal.SIGTERM)
            must(process.wait(30) == 130, "SIGTERM is ignored as well")
        must(status == (130 if hears else None), f"{disposition}: {status}")
    bench.call("runs", "cancel", run, *place).expect(0)


def curl_events(path, *texts):
    """Reads events with curl until these texts have arrived, then kills curl: the stream does not end."""
    process = subprocess.Popen(["curl", "-sN", "--unix-socket", path, "http://sandbox/events"], stdout=subprocess.PIPE, env=ENVIRONMENT)
    try:
        return read_until(process, *texts)
    finally:
        process.kill()
        process.communicate()


def test_curl_reaches_a_control_socket_with_a_path_over_107_bytes_by_the_path_that_runs_socket_prints(bench):
    deep = bench.directory
    while len(deep) < 150:
        deep = os.path.join(deep, "a-directory-with-a-long-name")
    os.makedirs(deep)
    bench.own(os.path.join(bench.directory, "a-directory-with-a-long-name"))
    os.chmod(deep, 0o700)
    seed_template(deep)
    run, place = hold_sandbox(bench, state=deep)
    answer = bench.call("runs", "socket", run, *place, "--json").expect(0).json
    path = answer["path"]
    must(len(path) <= 107 and bench.call("runs", "socket", run, *place).stdout == path + "\n", str(answer))
    must(os.path.realpath(path) == os.path.join(os.path.realpath(deep), "sites", bench.site, "runs", run, "control.sock"), path)
    folder = os.lstat(os.path.dirname(path))
    must(folder.st_mode & 0o777 == 0o700 and folder.st_uid == os.stat(deep).st_uid, str(folder))
    curl_events(path, b"data: ", b"runtime.created")
    # Control: curl cannot use the real path, which exceeds 107 bytes.
    real = subprocess.run(["curl", "-sN", "-m", "30", "--unix-socket", os.path.realpath(path), "http://sandbox/events"], capture_output=True, env=ENVIRONMENT)
    must(real.returncode != 0 and not real.stdout, str(real))
    bench.call("runs", "cancel", run, *place).expect(0)
    poll_until(lambda: bench.call("runs", "status", run, *place, "--json").json["lifecycle"]["terminal"], what="the run does not end")
    bench.call("runs", "socket", run, *place, "--json").expect(1, "wp_codebox_sandbox_not_held")
    if os.geteuid() == 0:
        os.unlink(path)


def test_runs_socket_command_prints_the_real_control_socket_path_unless_it_is_too_long(bench):
    run, place = hold_sandbox(bench)
    path = bench.call("runs", "socket", run, *place).expect(0).stdout.strip()
    own = os.path.join(bench.state, "sites", bench.site, "runs", run, "control.sock")
    must(path == own if len(own) <= 107 else path != own, path)
    curl_events(path, b"data: ", b"runtime.created")
    bench.call("runs", "cancel", run, *place).expect(0)


def on_a_terminal(bench, columns, *arguments):
    """Runs the program on a pseudo-terminal of this width and returns the printed lines."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([bench.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL, stdout=theirs,
                               stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65536):
            said += piece
    except OSError:
        # Reading the pty master fails with EIO after the program has closed the other end.
        pass
    finally:
        os.close(ours)
    must(process.wait() == 0, f"{arguments}: {process.returncode}")
    return said.decode().splitlines()


def test_list_output_fits_the_terminal_width(bench):
    goal = "A goal that is longer than any terminal of a test is wide, \u4e2d\u6587, and goes on for a while after that"
    place = ["--state", bench.state, "--site", bench.site]
    run = bench.agent("true", "--goal", goal).expect(0).result["run_id"]
    listed = ["runs", "list", *place, "--limit", "5"]
    whole = bench.call(*listed).expect(0).stdout
    must(run in whole and goal in whole, f"a pipe gets less than everything: {whole}")
    agents = ["agents", "--share", bench.environment["CODEBOX_SHARE"]]
    for columns in (60, 80, 200):
        for arguments in (listed, agents):
            lines = on_a_terminal(bench, columns, *arguments)
            wide = [line for line in lines if sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) > columns]
            must(len(lines) > 1 and not wide, f"{columns} columns: {wide or lines}")
        must(any(line.startswith(run[:12]) for line in on_a_terminal(bench, columns, *listed)), "the run is not listed")
    shown = bench.call(*agents[:1], "codex", *agents[1:]).expect(0).stdout
    must("install" in shown and len(shown.splitlines()) > 3, shown)
