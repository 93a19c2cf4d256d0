"""`wp-codebox exec`: pipes, terminals, several clients, clients that die."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import termios
import time

from held_sandbox import SECRET, guest_processes, is_full, open_exec, sleep

from harness import poll_until


def test_exec_forwards_stdio_exit_status_working_directory_and_environment(bench):
    run = bench.sandbox()
    done = bench.exec(run, "--env", "ONE=1", "--env", "TWO", "--", "sh", "-c",
                      "pwd; cat; echo $ONE-$TWO; echo err >&2; exit 7", input="in\n", env={"TWO": "2"})
    assert done.returncode == 7, done
    assert done.stdout == "/workspace/plugin\nin\n1-2\n" and done.stderr == "err\n", done
    done = bench.exec(run[:12], "--cwd", "/wordpress", "--", "pwd")
    assert (done.returncode, done.stdout) == (0, "/wordpress\n"), done
    big = "x" * 3_000_000 + "\n"
    assert bench.exec(run, "--", "cat", input=big).stdout == big
    assert bench.exec(run, "--", "sh", "-c", "kill -TERM $$").returncode == 128 + 15
    lines = [json.loads(line) for line in bench.exec(run, "--json", "--", "echo", "hi").stdout.splitlines()]
    assert [line["type"] for line in lines] == ["started", "output", "exited"], lines
    # Files that one client writes are there for the next client and the bundle.
    assert bench.exec(run, "--", "sh", "-c", "echo second >b.txt").returncode == 0
    assert bench.exec(run, "--", "cat", "b.txt").stdout == "second\n"


def test_exec_with_a_missing_program_or_invalid_option_returns_the_error_code_of_its_cause(bench):
    run = bench.sandbox()
    for args, code, status in [
        (["--", "no-such-program"], "wp_codebox_agent_program_missing", 125),
        (["--env", "LD_PRELOAD=/x", "--", "true"], "wp_codebox_input_invalid", 1),
        (["--env", "NOT_SET_HERE", "--", "true"], "wp_codebox_input_invalid", 1),
        (["--cwd", "relative", "--", "true"], "wp_codebox_input_invalid", 1),
        (["--timeout", "soon", "--", "true"], "wp_codebox_limit_invalid", 1),
    ]:
        done = bench.exec(run, "--json", *args)
        try:
            failure = json.loads(done.stdout)
        except json.JSONDecodeError:
            failure = json.loads(done.stdout.splitlines()[-1])
        assert failure["error"]["code"] == code and done.returncode == status, (args, done)
    for args in (["ls | wc"], ["ls", "|", "wc"]):
        done = bench.exec(run, "--", *args)
        assert done.returncode != 0 and "there is no shell" in done.stderr, done
    done = bench.exec(run, "--", "false")
    assert done.returncode == 1 and "no shell" not in done.stderr, done
    done = bench.exec("run_" + "0" * 32, "--json", "--", "true")
    assert json.loads(done.stdout)["error"]["code"] == "wp_codebox_run_not_found", done


def test_exec_timeout_ends_the_program_and_not_the_sandbox(bench):
    run = bench.sandbox()
    started = time.monotonic()
    done = bench.exec(run, "--timeout", "15s", "--", "sh", "-c", f"echo up; {sleep(77)}")
    assert (done.returncode, done.stdout) == (124, "up\n"), done
    assert time.monotonic() - started < 60
    poll_until(lambda: not guest_processes(sleep(77)), what="still waiting for the end of what it had started")
    assert bench.exec(run, "--", "true").returncode == 0


def test_exec_with_tty_forwards_input_window_size_and_signals(bench):
    run = bench.sandbox()
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.execv(bench.env["CODEBOX"], bench.argv("exec", "--tty", run, "--", "bash", "--norc", "-i"))
    try:
        size(fd, 100, 30)
        screen = Screen(fd)
        screen.type("PS1='$ '; test -t 0 && test -t 1 && echo is-$((1+1))\r")
        screen.wait_for("is-2")
        # A prompt without newline must arrive, too.
        screen.type("read -p 'name''> ' x\r")
        screen.wait_for("name> ")
        screen.type("carl\recho got-$x\r")
        screen.wait_for("got-carl")
        size(fd, 132, 43)
        os.kill(pid, signal.SIGWINCH)
        screen.type("until [ \"$(stty size)\" = '43 132' ]; do sleep 0.05; done; echo seen-$((1+3))\r")
        screen.wait_for("seen-4")
        # Ctrl-C is byte 0x03 on the client side and SIGINT for the program.
        screen.type("echo begin-$((2+2)); " + sleep(60) + "\r")
        screen.wait_for("begin-4")
        poll_until(lambda: guest_processes(sleep(60)), what="still waiting for the program in the foreground")
        screen.type("\x03")
        screen.type("echo status-$?-\r")
        screen.wait_for("status-130-")
        raw = termios.tcgetattr(fd)
        screen.type("exit 9\r")
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 9, status
        after = termios.tcgetattr(fd)
        assert not raw[3] & termios.ICANON and after[3] & termios.ICANON, "the terminal was not put back"
    finally:
        os.close(fd)


def test_terminal_escapes_are_filtered_without_tty(bench):
    """Without --tty, file names, output and errors of the guest reach the client's terminal without escape sequences."""
    run = bench.sandbox()
    hostile = "x\x1b]0;owned\x07y\u009b31m\u202e\u200b\U000e0041z"
    make = f"mkdir -p '/workspace/plugin/t/{hostile}'; echo 1 > '/workspace/plugin/t/{hostile}/f'"
    assert bench.exec(run, "--", "sh", "-c", make).returncode == 0
    mine = os.path.join(bench.work, "mine")
    os.makedirs(mine)
    # A file where the guest has a directory, so that the error message contains the name.
    with open(os.path.join(mine, hostile), "w") as file:
        file.write("2")
    side = f"{mine}:/workspace/plugin/t"
    for args, held in (
        (("sync", run, "status", side), 'to push   "x\\033]0;owned\\ay\\302\\233'),
        (("sync", run, "status", side, "--json"), "x\\u001b"),
        (("sync", run, "pull", side, "--write-back", "--on-conflict", "theirs"), "xy"),
        (("exec", run, "--", "printf", hostile), "xy"),
        (("exec", run, "--json", "--", "printf", hostile), "x\\u001b"),
        (("exec", run, "--", hostile), "was not found in the sandbox"),
        (("runs", "events", run, "--limit", "1000", "--json"), "x\\u001b"),
    ):
        shown = on_a_terminal(bench.argv(*args))
        # Program output may keep the printable rest of the window title sequence.
        assert held in shown or held in shown.replace("]0;owned", ""), (args, shown)
        assert not any(c in shown for c in "\x1b\x07\u009b\u202e\u200b\U000e0041"), (args, shown)
    # Control: with --tty the client receives the escape sequences.
    assert hostile in on_a_terminal(bench.argv("exec", "--tty", run, "--", "printf", hostile))


def on_a_terminal(argv):
    """Runs a command on a pseudo-terminal and returns its combined output."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(argv[0], argv)
    shown = b""
    try:
        while piece := os.read(fd, 65536):
            shown += piece
    except OSError:
        pass
    os.close(fd)
    os.waitpid(pid, 0)
    return shown.decode()


def test_sigterm_to_an_exec_client_with_tty_restores_the_terminal_settings(bench):
    run = bench.sandbox()
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(bench.env["CODEBOX"], bench.argv("exec", "--tty", run, "--", "sh", "-c", f"echo up; {sleep(71)}"))
    try:
        Screen(fd).wait_for("up")
        assert not termios.tcgetattr(fd)[3] & termios.ICANON
        os.kill(pid, signal.SIGTERM)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 128 + 15, status
        assert termios.tcgetattr(fd)[3] & termios.ICANON, "the terminal was not put back"
        poll_until(lambda: not guest_processes(sleep(71)), what="still waiting for the end of a program whose client is gone")
    finally:
        os.close(fd)


def test_killed_exec_client_ends_only_its_own_program(bench):
    run = bench.sandbox()
    one = open_exec(bench, run, "--", "sh", "-c", f"read a; echo one $a; {sleep(72)}")
    two = open_exec(bench, run, "--", "sh", "-c", "read a; echo two $a; read b; echo $b; exit 3")
    for client, word in [(two, "b"), (one, "a")]:
        client.stdin.write(f"{word}\n")
        client.stdin.flush()
    assert one.stdout.readline() == "one a\n" and two.stdout.readline() == "two b\n"
    # A `command` request runs WordPress code at the same time.
    answer = bench.ask(run, {"type": "command", "call": {"command": "wordpress.run-php", "args": ["code=echo 6*7;"]}})
    assert answer["answer"]["status"] == "ok" and "42" in json.dumps(answer), answer
    # The supervisor may still list programs of earlier cases for a moment.
    poll_until(lambda: len(bench.ask(run, {"type": "status"})["answer"]["executions"]) == 2, what="still waiting for a list of two programs")
    one.send_signal(signal.SIGKILL)
    one.wait()
    poll_until(lambda: not guest_processes(sleep(72)), what="still waiting for the end of a program whose client is gone")
    two.stdin.write("still\n")
    two.stdin.flush()
    assert two.stdout.readline() == "still\n" and two.wait() == 3


def test_program_started_with_exec_option_leave_survives_its_killed_client(bench):
    run = bench.sandbox()
    client = open_exec(bench, run, "--leave", "--", "sh", "-c", "echo up; sleep 1; echo later >left.txt; echo told")
    assert client.stdout.readline() == "up\n"
    client.send_signal(signal.SIGKILL)
    client.wait()
    poll_until(lambda: bench.exec(run, "--", "cat", "left.txt").stdout == "later\n", what="still waiting for what it was to write")
    poll_until(lambda: any(e["data"].get("text") == "told\n" for e in bench.events(run)), what="still waiting for its last word in the journal")


def test_sigint_to_exec_client_reaches_the_program(bench):
    run = bench.sandbox()
    client = open_exec(bench, run, "--", "sh", "-c", "trap 'echo caught; exit 5' INT; echo up; while :; do sleep 0.1; done")
    assert client.stdout.readline() == "up\n"
    client.send_signal(signal.SIGINT)
    assert client.stdout.readline() == "caught\n" and client.wait() == 5


def test_exec_output_and_journal_redact_secrets(bench):
    run = bench.start("--policy", policy(bench), "--secret-env", "API_KEY", env={"API_KEY": SECRET})
    # Control: the policy exposes the value, so the guest has it.
    done = bench.exec(run, "--", "sh", "-c", "echo ${#API_KEY}; echo $API_KEY; printf %s $API_KEY; sleep 0.2; echo")
    assert done.stdout.splitlines()[0] == str(len(SECRET)), done
    assert SECRET not in done.stdout and done.stdout.count("REDACTED") == 2, done
    done = bench.exec(run, "--tty", "--", "sh", "-c", "echo $API_KEY; printf '%s> ' $API_KEY; sleep 0.2")
    assert SECRET not in done.stdout and done.stdout.count("REDACTED") == 2, done
    bench.exec(run, "--", "sh", "-c", f"exit 0 # {SECRET}")
    with open(os.path.join(bench.directory(run), "events.jsonl")) as file:
        text = file.read()
    assert SECRET not in text and text.count("REDACTED") >= 4
    bench.ask(run, {"type": "close"})


def test_slow_exec_client_does_not_delay_others(bench):
    run = bench.sandbox()
    call = {"live": 1, "actor": "slow", "request": {"type": "exec", "argv": ["sh", "-c", "yes | head -c 30000000"]}}
    with bench.connect(run) as slow:
        slow.sendall(json.dumps(call).encode() + b"\n")
        poll_until(lambda: is_full(slow), what="the output does not fill the socket")
        started = time.monotonic()
        for _ in range(3):
            assert bench.exec(run, "--", "echo", "hi").stdout == "hi\n"
        assert time.monotonic() - started < 60, "other clients waited for the client that does not read"
    poll_until(lambda: bench.ask(run, {"type": "status"})["answer"]["executions"] == [], what="still waiting for its end")


def test_exec_client_that_reads_in_pauses_loses_no_output(bench):
    """The last output of an ended program is still in its pipe while its client reads slowly."""
    run = bench.start(hold="5m")
    assert bench.exec(run, "--", "true").returncode == 0
    # Several lengths, because it is unknown at which position a pause could lose output.
    clients = {bench.connect(run): 60_000 + 3_500 * number for number in range(8)}
    answers = dict.fromkeys(clients, b"")
    for client, last in clients.items():
        call = {"live": 1, "actor": "halting", "request": {"type": "exec", "argv": ["seq", str(last)]}}
        client.sendall(json.dumps(call).encode() + b"\n")
    open_ones, pauses = list(clients), 0
    while open_ones:
        for client in list(open_ones):
            piece = client.recv(48 * 1024)
            answers[client] += piece
            if not piece:
                open_ones.remove(client)
                client.close()
        if max(map(len, answers.values())) > 150_000 and pauses < 9:
            pauses += 1
            # Longer than the program takes to end, so that most of its output is in the pipe and the socket by then.
            time.sleep(1.3)
    for client, last in clients.items():
        replies = [json.loads(line) for line in answers[client].splitlines()]
        whole = "".join(f"{number}\n" for number in range(1, last + 1))
        said = "".join(reply.get("text", "") for reply in replies)
        assert said == whole, f"{len(said)} of {len(whole)} came, and {replies[-1]}"
        assert replies[-1]["type"] == "exited" and not replies[-1].get("output_truncated"), replies[-1]
    bench.ask(run, {"type": "close"})


def test_exec_output_over_the_limit_is_truncated_only_in_the_journal(bench):
    run = bench.start("--output-limit", "4K")
    script = "echo first; head -c 200000 /dev/zero | tr '\\0' x; echo why >&2; echo; echo last"
    done = bench.exec(run, "--", "sh", "-c", script)
    # The client receives the complete output.
    assert len(done.stdout) == 200012 and done.stdout.endswith("\nlast\n"), len(done.stdout)
    bench.exec(run, "--", "echo", "short")
    bench.ask(run, {"type": "close"})
    bench.await_end(run)
    ends = [event["data"] for event in bench.events(run) if event["type"].endswith(".command.finished")]
    long = [data for data in ends if data.get("outputTruncated")]
    assert [(data["stdoutTruncated"], data["stdoutBytes"], "stderrTruncated" in data) for data in long] == [(True, 200012, False)], ends
    text = "".join(event["data"]["text"] for event in bench.events(run) if event["data"].get("stream") == "stdout")
    assert text.startswith("first\nx") and text.endswith("x\nlast\nshort\n") and " bytes left out …]" in text and len(text) < 6000, len(text)
    shown = json.loads(bench.call("runs", "get", run, "--json").stdout)
    assert any("wp_codebox_output_limit" in note and "stdout" in note for note in json.dumps(shown).split("\n")), shown


def policy(bench):
    path = os.path.join(bench.work, "policy.json")
    with open(path, "w") as file:
        json.dump({
            "network": "deny", "filesystem": "readwrite-mounts", "commands": ["command-agent-run"],
            "secrets": "connector-scoped", "approvals": "never", "expose_secrets": ["API_KEY"],
        }, file)
    return path


def size(fd, columns, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Screen:
    """Reads and writes the master side of a pseudo-terminal."""

    def __init__(self, fd):
        self.fd, self.seen = fd, ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, text, seconds=30):
        end = time.monotonic() + seconds
        while text not in self.seen:
            left = end - time.monotonic()
            assert left > 0, f"no {text!r}: {self.seen!r}"
            if select.select([self.fd], [], [], left)[0]:
                try:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    raise AssertionError(f"the terminal closed without {text!r}: {self.seen!r}") from None
        self.seen = self.seen.split(text, 1)[1]
