"""Flow control of `exec` input and output without loss. CODEBOX_FULL=1 uses longer pauses and 1 GiB."""

import base64
import contextlib
import hashlib
import json
import os
import random
import select
import signal
import subprocess
import threading
import time

from held_sandbox import guest_processes, is_full, sleep, unread

from harness import poll_until

FULL = os.environ.get("CODEBOX_FULL") == "1"
MIB = 1 << 20
# Bytes of a transfer: more than all pipes, sockets and queues between client and program can buffer.
SIZE = 1024 * MIB if FULL else 4 * MIB
# Longer than 20 s: in earlier versions a side timed out when the other side did not read for this long.
PAUSE = 150 if FULL else 25
TIMEOUT_SECONDS = 3600 if FULL else 300


def pattern(size):
    """Yields `size` pseudo-random bytes in blocks of 1 MiB."""
    block = random.Random(size).randbytes(MIB)
    for number in range(size // MIB):
        yield number.to_bytes(8, "big") + block[8:]


def digest(pieces):
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(piece)
    return whole.hexdigest()


@contextlib.contextmanager
def client(bench, run, *args):
    """Starts `exec` and kills it at the end of the block."""
    with subprocess.Popen(bench.argv("exec", run, *args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        try:
            yield command
        finally:
            command.kill()


def shell(bench, run, script):
    done = bench.exec(run, "--", "sh", "-c", script)
    assert done.returncode == 0, done
    return done.stdout


def fill(fd, pieces):
    """Writes in varying sizes; the first 2 MiB in pieces so small that a full socket accepts a line entirely or not at all."""
    sizes, written = random.Random(7), 0
    with os.fdopen(fd, "wb", buffering=0) as file:
        for piece in pieces:
            at = 0
            while at < len(piece):
                while written < 2 * MIB and unread(fd):
                    time.sleep(0.0005)
                count = file.write(piece[at:at + (1000 if written < 2 * MIB else sizes.randrange(1, 200_000))])
                at, written = at + count, written + count


def stuck(fd):
    """Writes until the pipe stays full for one second; returns the bytes written."""
    os.set_blocking(fd, False)
    written, silent = 0, 0
    while silent < 10:
        try:
            written += os.write(fd, b"x" * 65536)
            silent = 0
        except BlockingIOError:
            _, ready, _ = select.select([], [fd], [], 0.1)
            silent += not ready
    os.set_blocking(fd, True)
    return written


class Raw:
    """An `exec` client that speaks the live protocol directly."""

    def __init__(self, bench, run, argv, **request):
        self.socket = bench.connect(run)
        self.socket.settimeout(TIMEOUT_SECONDS)
        self.file = self.socket.makefile("rb")
        self.say({"live": 1, "actor": "flow", "request": {"type": "exec", "argv": argv, **request}})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def say(self, message):
        self.socket.sendall(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")

    def replies(self):
        """Yields replies up to the final one. Sending after that would make the kernel reset the connection."""
        for line in self.file:
            yield (reply := json.loads(line))
            if reply["type"] in ("exited", "error"):
                return

    def next(self):
        return json.loads(self.file.readline())


def printed(reply):
    return base64.b64decode(reply["base64"]) if "base64" in reply else reply.get("text", "").encode()


def stdin(data):
    return {"type": "stdin", "base64": base64.b64encode(data).decode()}


def test_pauses_over_twenty_seconds_in_reading_lose_no_input_or_output(bench):
    """Tests a program and a client that read late, in parallel; with CODEBOX_FULL=1 also both in one exec."""
    run = bench.start("--hold-max", "120m", hold="120m") if FULL else bench.sandbox()
    wanted = digest(pattern(SIZE))
    failures = []

    def late_program():
        feeder_in, feeder_out = os.pipe()
        argv = bench.argv("exec", run, "--", "sh", "-c", f"sleep {PAUSE}; sha256sum")
        with subprocess.Popen(argv, stdin=feeder_in, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
            os.close(feeder_in)
            fill(feeder_out, pattern(SIZE))
            out, err = reader.communicate(timeout=TIMEOUT_SECONDS)
        assert (reader.returncode, out.split()[:1]) == (0, [wanted]), (reader.returncode, out, err)

    def late_client():
        # The guest hashes its random bytes; the test compares the hash with the received bytes.
        count = SIZE // MIB
        script = f"head -c {count}M /dev/urandom | tee /dev/fd/3 | sha256sum >&2; exit 3"
        with Raw(bench, run, ["bash", "-c", f"exec 3>&1; {script}"]) as raw:
            poll_until(lambda: is_full(raw.socket), what="still waiting for a full socket")
            # No event shows when a timeout of the sandbox has passed, so the test pauses longer than any of them.
            time.sleep(PAUSE)
            whole, said, last = hashlib.sha256(), b"", {}
            for last in raw.replies():
                if last["type"] == "output" and last["stream"] == "stdout":
                    whole.update(printed(last))
                elif last["type"] == "output":
                    said += printed(last)
        assert last.get("code") == 3 and not last.get("output_truncated"), last
        assert said.split()[:1] == [whole.hexdigest().encode()], (said, whole.hexdigest())

    def both_in_turn():
        script = f"head -c {MIB}; sleep {PAUSE}; cat"
        with client(bench, run, "--", "sh", "-c", script) as both:
            feeder = threading.Thread(target=fill, args=(os.dup(both.stdin.fileno()), pattern(SIZE)))
            both.stdin.close()
            feeder.start()
            whole, seen, paused = hashlib.sha256(), 0, False
            while piece := both.stdout.read1(MIB):
                whole.update(piece)
                seen += len(piece)
                if seen > 2 * MIB and not paused:
                    paused = True
                    time.sleep(PAUSE)
            feeder.join()
            assert (both.wait(TIMEOUT_SECONDS), whole.hexdigest()) == (0, wanted), (both.returncode, seen, both.stderr.read())

    def guarded(side):
        try:
            began = time.monotonic()
            side()
            if FULL:
                print(f"     {side.__name__}: {SIZE // MIB} MiB, pauses of {PAUSE} s, {time.monotonic() - began:.0f} s", flush=True)
        except BaseException as error:  # Report later; the other threads continue.
            failures.append((side.__name__, repr(error)))

    late = (late_program, late_client, both_in_turn) if FULL else (late_program, late_client)
    sides = [threading.Thread(target=guarded, args=(side,)) for side in late]
    for side in sides:
        side.start()
    for side in sides:
        side.join()
    assert not failures, failures


def test_signal_reaches_a_program_whose_stdin_pipe_is_full(bench):
    run = bench.sandbox()
    script = 'trap "exit 5" INT; echo up; while :; do sleep 0.1; done'
    with client(bench, run, "--", "sh", "-c", script) as full:
        assert full.stdout.readline() == b"up\n"
        assert stuck(full.stdin.fileno()) > MIB // 2
        full.send_signal(signal.SIGINT)
        full.stdin.close()
        assert full.wait(60) == 5, full.stderr.read()


def test_signal_and_stdin_reach_a_program_whose_stdout_pipe_is_full(bench):
    """A client that does not read blocks only its program's output; its input and signals still arrive."""
    run = bench.sandbox()
    script = 'rm -f flow-input; exec 3<&0; cat <&3 >flow-input & trap "exit 6" USR1; yes'
    with Raw(bench, run, ["sh", "-c", script], stdin="credit") as silent:
        poll_until(lambda: is_full(silent.socket), what="still waiting for a full socket")
        silent.say(stdin(b"words"))
        poll_until(lambda: shell(bench, run, "cat flow-input") == "words", what="still waiting for its input")
        silent.say({"type": "signal", "signal": "USR1"})
        # The status shows the program's end before the client has read its output.
        poll_until(lambda: bench.ask(run, {"type": "status"})["answer"]["executions"] == [], what="still waiting for its end")
        *_, last = silent.replies()
    assert last["type"] == "exited" and last.get("code") == 6, last


def test_killed_exec_client_does_not_signal_end_of_input_to_its_program(bench):
    run = bench.sandbox()
    shell(bench, run, "rm -f flow-got flow-whole")
    script = "cat >flow-got; echo whole >flow-whole"
    with client(bench, run, "--", "sh", "-c", script) as dying:
        dying.stdin.write(b"x" * MIB)
        dying.stdin.flush()
        poll_until(lambda: shell(bench, run, "test ! -s flow-got || echo some") == "some\n", what="still waiting for some of its input")
        dying.kill()
        dying.wait(60)
    poll_until(lambda: bench.ask(run, {"type": "status"})["answer"]["executions"] == [], what="still waiting for its end")
    assert shell(bench, run, "ls flow-whole 2>/dev/null; true") == "", "the program took partial input for complete input"
    # Control: a regular end of input.
    assert bench.exec(run, "--", "sh", "-c", script, input="all").returncode == 0
    assert shell(bench, run, "cat flow-got flow-whole") == "allwhole\n"


def test_malformed_stdin_message_or_more_stdin_than_granted_ends_the_program(bench):
    run = bench.sandbox()
    cut = json.dumps(stdin(b"lost")).encode()[:-9]
    for bad in ({"type": "stdin", "base64": "!!"}, b'"x"\n', cut + json.dumps(stdin(b"next")).encode() + b"\n", {"type": "stdin"}):
        with Raw(bench, run, ["sh", "-c", "cat; echo whole"]) as raw:
            # The supervisor closes the connection after the malformed message, maybe before the later ones are sent.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                for message in (stdin(b"ok"), bad, stdin(b"more"), {"type": "stdin_end"}):
                    raw.say(message)
            *others, last = raw.replies()
        assert last["type"] == "error" and last["error"]["code"] == "wp_codebox_input_invalid", (bad, last)
        assert "incomplete" in last["error"]["message"] and not any("whole" in r.get("text", "") for r in others), others
    # More input than the granted credit.
    with Raw(bench, run, ["sleep", "60"], stdin="credit") as raw:
        assert raw.next()["stdin"] == "credit"
        granted = raw.next()["bytes"]
        raw.say(stdin(b"x" * (granted // 2)))
        raw.say(stdin(b"x" * (granted // 2 + 1)))
        *_, last = raw.replies()
    assert last["type"] == "error" and last["error"]["code"] == "wp_codebox_input_invalid", last
    assert bench.exec(run, "--", "cat", input="alive").stdout == "alive"


def test_stdin_arrives_complete_with_and_without_flow_control_credit(bench):
    """The client without credit sends its lines one byte at a time."""
    run = bench.sandbox()
    words = [bytes([n]) * (n + 1) + b"\n" for n in range(64)]
    for flow in ({}, {"stdin": "credit"}):
        with Raw(bench, run, ["cat"], **flow) as raw:
            for line in [*(json.dumps(stdin(word)) for word in words), json.dumps({"type": "stdin_end"})]:
                for byte in line.encode() + b"\n" if not flow else [line.encode() + b"\n"]:
                    raw.say(bytes([byte]) if isinstance(byte, int) else byte)
            replies = list(raw.replies())
        assert replies[0].get("stdin") == flow.get("stdin"), replies[0]
        assert any(r["type"] == "stdin_credit" for r in replies) == bool(flow)
        assert b"".join(printed(r) for r in replies if r["type"] == "output") == b"".join(words) and replies[-1]["code"] == 0


def test_process_that_feeds_an_exec_client_ends_when_the_guest_program_closes_its_stdin(bench):
    run = bench.sandbox()
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as producer:
        argv = bench.argv("exec", run, "--", "sh", "-c", f"exec <&-; {sleep(600)}")
        with subprocess.Popen(argv, stdin=producer.stdout, stdout=subprocess.PIPE) as consumer:
            producer.stdout.close()
            # The producer must end while the program still runs.
            try:
                assert producer.wait(60) == -signal.SIGPIPE
                assert consumer.poll() is None and guest_processes(sleep(600))
            finally:
                producer.kill()
                consumer.terminate()
            assert consumer.wait(60) == 128 + signal.SIGTERM


def test_unreadable_stdin_kills_the_program(bench):
    """Reading a directory as standard input fails with EISDIR, and a failed read is not an end of input."""
    run = bench.sandbox()
    shell(bench, run, "rm -f flow-whole")
    argv = bench.argv("exec", run, "--", "sh", "-c", "cat; echo whole >flow-whole")
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        done = subprocess.run(argv, stdin=root, capture_output=True, text=True, timeout=60)
    finally:
        os.close(root)
    assert done.returncode == 1 and "standard input cannot be read" in done.stderr, done
    assert shell(bench, run, "ls flow-whole 2>/dev/null; true") == "", "the program took a failed read for the end of input"
