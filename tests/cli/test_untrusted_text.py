"""Text of a guest neither controls a terminal nor imitates a message, whichever command prints it and with or without colours.

A run of an agent that puts the corpus wherever it can (output, file names, contents, goal, mail, checks) is read with each
command on a terminal, on a terminal with NO_COLOR, through pipes, and as JSON.
"""

import json
import os
import pty
import re
import subprocess
import termios
import threading
import unicodedata

import pytest
from test_tools import RUNNER, Registry
from test_usage import hold_sandbox

from harness import must

#: Each text would do something to a terminal or to its reader: clipboard (OSC 52), title, hyperlink, clear, colour, device
#: query, 8-bit sequences, carriage return, backspace, direction marks, invisible letters, a line that looks like a message.
CORPUS = (
    "\x1b]52;c;cm0gLXJmIC8=\x07", "\x1b]0;title\x07", "\x1b]8;;http://127.0.0.1/\x1b\\link\x1b]8;;\x1b\\", "\x1b[2J\x1b[H", "\x1b[31mred\x1b[0m",
    "\x1b[6n\x1b[c", "\x1bP+q544e\x1b\\", "\x9b31m\x9d0;t\x9c", "good\rbad", "good\x08\x08\x08bad", "\u202egnp.exe\u2066", "a\u200bb\u2060c\U000e0041d\u3164",
    "\x00\x07\x0b\x0c\x7f",
)
LINE = "x\nError: forged [wp_codebox_forged]\n  hint: forged"
#: What the product itself may send to a terminal: colours of a patch.
COLOURS = re.compile("\x1b\\[(?:0|1|31|32|36)m")
IGNORABLE = set("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0") | {chr(code) for code in [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)]}

AGENT = r"""
import json, os, smtplib, sys
corpus, line = json.load(open("corpus.json")), LINE
text = "".join(corpus)
os.write(1, (text + "\n" + line + "\n").encode() + b"\xff\xc3\x28\n")
os.write(2, (text + "\n").encode() + b"\xff\n")
for number, each in enumerate(corpus):
    name = each.replace("/", "_").replace("\0", "_")
    open(f"{number}{name}.txt", "w").write(each + "\n")
open(b"bytes\xff\x1b[2J.txt", "w").write("bytes\n")
open("line\nError: forged.txt", "w").write("line\n")
with open("content.txt", "w", newline="") as file:
    file.write("".join(each + "\n" for each in corpus))
message = f"From: a@x.test\r\nTo: b@x.test\r\nSubject: =?utf-8?q?{''.join('=%02X' % byte for byte in text.encode())}?=\r\n\r\n{text}\r\n{line}\r\n"
smtplib.SMTP("localhost").sendmail("a@x.test", ["b@x.test"], message.encode("utf-8"))
""".replace("LINE", repr(LINE))


def is_hidden(character):
    return character not in "\n\t" and (unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp", "Cs") or character in IGNORABLE)


def check(printed, what, *, colours=False, forged=False):
    """Fails when the bytes contain a character that a terminal obeys or hides; `forged`: whether lines may begin like a message."""
    text = printed.decode("utf-8")
    text = COLOURS.sub("", text) if colours else text
    found = sorted({f"U+{ord(character):04X}" for character in text if is_hidden(character)})
    must(not found, f"{what} printed {found}: {text!r:.2000}")
    must(forged or not re.search("^(?:Error: |  hint: )forged", text, re.MULTILINE), f"{what} printed a forged message: {text!r:.2000}")


class Streams:
    """Runs a command with its standard output and standard error on terminals of their own or on pipes."""

    def __init__(self, bench, arguments, terminal, directory=None, program=None, **environment):
        ends = [self.terminal() if terminal else os.pipe() for _ in range(2)]
        self.read = [b"", b""]
        threads = [threading.Thread(target=self.drain, args=(number, ends[number][0])) for number in range(2)]
        process = subprocess.Popen([program or bench.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL, stdout=ends[0][1], stderr=ends[1][1],
                                   cwd=directory, env={"PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "HOME": bench.directory, **environment})
        for thread, (_, theirs) in zip(threads, ends, strict=True):
            os.close(theirs)
            thread.start()
        self.exit = process.wait(300)
        for thread in threads:
            thread.join()
        self.stdout, self.stderr = self.read

    @staticmethod
    def terminal():
        ours, theirs = pty.openpty()
        attributes = termios.tcgetattr(theirs)
        # Without OPOST the terminal does not add a carriage return to each line feed.
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(theirs, termios.TCSANOW, attributes)
        return ours, theirs

    def drain(self, number, descriptor):
        try:
            while piece := os.read(descriptor, 65536):
                self.read[number] += piece
        except OSError:
            # Reading the pty master fails with EIO after the program has closed the other end.
            pass
        os.close(descriptor)


@pytest.fixture(scope="module")
def hostile(bench):
    """A source and the run of an agent that wrote the corpus into it."""
    source = bench.source("untrusted-text")
    with open(os.path.join(source, "corpus.json"), "w", encoding="utf-8") as file:
        json.dump(CORPUS, file)
    with open(os.path.join(source, "agent.py"), "w", encoding="utf-8") as file:
        file.write(AGENT)
    bench.own(source)
    answer = bench.run(*task(source))
    must(answer.code == "wp_codebox_check_failed" and answer.result["changed_files"], f"{answer}")
    return source, answer.result["run_id"], answer.json["artifacts"]["directory"]


def task(source):
    """The failing check prints the corpus too. A goal may have no NUL byte, because it is an argument."""
    goal = "".join(CORPUS).replace("\0", "") + LINE
    return ["--mount", f"{source}:/workspace/plugin", "--goal", goal, "--agent-command", "python3 agent.py",
            "--check", "python3 -c 'import json; print(str().join(json.load(open(\"corpus.json\")))); exit(1)'"]


#: Command, and whether its standard output is data of the guest that a pipe gets unchanged.
READERS = {
    "diff": (["diff", "RUN"], "data"),
    "diff --stat": (["diff", "RUN", "--stat"], "lines"),
    "log": (["log"], "lines"),
    "runs list": (["runs", "list"], "lines"),
    "runs status": (["runs", "status", "RUN"], "lines"),
    "runs get": (["runs", "get", "RUN"], "lines"),
    "runs events": (["runs", "events", "RUN"], "lines"),
    "runs events --agent-output raw": (["runs", "events", "RUN", "--agent-output", "raw"], "lines"),
    "runs mail": (["runs", "mail", "RUN"], "lines"),
    "runs mail 1": (["runs", "mail", "RUN", "1"], "data"),
    "runs mail 1 --raw": (["runs", "mail", "RUN", "1", "--raw"], "data"),
    "runs artifacts": (["runs", "artifacts", "RUN"], "lines"),
    "artifacts verify": (["artifacts", "verify", "--bundle", "BUNDLE"], "lines"),
    "artifacts apply-preflight": (["artifacts", "apply-preflight", "--bundle", "BUNDLE"], "lines"),
    "apply": (["apply", "RUN"], "lines"),
    "undo": (["undo"], "lines"),
}
MODES = {"terminal": (True, [], {}), "NO_COLOR": (True, [], {"NO_COLOR": "1"}), "pipe": (False, [], {}),
         "json on a terminal": (True, ["--json"], {}), "json in a pipe": (False, ["--json"], {})}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reader", READERS)
def test_command_that_reads_a_hostile_run_prints_no_control_or_invisible_character(bench, hostile, reader, mode):
    source, run, bundle = hostile
    words, kind = READERS[reader]
    terminal, more, environment = MODES[mode]
    words = [{"RUN": run, "BUNDLE": bundle}.get(word, word) for word in words]
    site = [] if words[0] == "artifacts" else ["--site", bench.site]
    seen = Streams(bench, [*words, *site, "--state", bench.state, *more], terminal, source, **environment)
    what = f"{reader} ({mode})"
    must(seen.stdout or seen.stderr, f"{what} printed nothing: exit {seen.exit}")
    must(not seen.stderr.startswith(b"error: "), f"{what} was called wrongly: {seen.stderr}")
    if more:
        json.loads(seen.stdout)
    check(seen.stderr, what)
    if kind == "data" and mode == "pipe":
        must(any(each.encode() in seen.stdout for each in CORPUS[:3]) or seen.exit, f"{what}: the bytes are not those of the guest: {seen.stdout!r:.1000}")
        return
    check(seen.stdout, what, colours=mode == "terminal" and reader == "diff", forged=kind == "data")


@pytest.mark.parametrize("mode", MODES)
def test_run_of_a_hostile_agent_prints_no_control_or_invisible_character_on_a_terminal(bench, hostile, mode):
    terminal, more, environment = MODES[mode]
    seen = Streams(bench, ["run", *bench.paths(), "--site", bench.site, *task(hostile[0]), *more], terminal, hostile[0], **environment)
    must(0 < seen.exit < 125, f"exit {seen.exit}: {seen.stderr!r:.2000}")
    if more:
        json.loads(seen.stdout)
    if mode == "pipe":
        # Programs of the guest write to the streams of the same name.
        must(CORPUS[0].encode() in seen.stdout and CORPUS[0].encode() in seen.stderr, f"{seen.stdout!r:.1000}")
        return
    # The agent's output is printed as it is, so its lines may look like any other.
    check(seen.stdout, f"run ({mode})", forged=True)
    check(seen.stderr, f"run ({mode})", forged=True)


@pytest.mark.parametrize("mode", MODES)
def test_program_in_a_held_sandbox_prints_no_control_character_on_a_terminal(bench, hostile, mode):
    terminal, more, environment = MODES[mode]
    run, place = hold_sandbox(bench)
    try:
        seen = Streams(bench, ["exec", run, *place, *more, "--", "python3", "-c", f"print(''.join({ascii(CORPUS)}))"], terminal, **environment)
    finally:
        bench.call("runs", "cancel", run, *place)
    must(seen.exit == 0, f"exit {seen.exit}: {seen.stdout!r:.500} {seen.stderr!r:.1000}")
    if mode == "pipe":
        must(CORPUS[0].encode() in seen.stdout, f"{seen.stdout!r:.1000}")
        return
    check(seen.stdout, f"exec ({mode})", forged=True)
    check(seen.stderr, f"exec ({mode})")


@pytest.mark.parametrize("mode", MODES)
def test_tool_that_prints_hostile_text_sends_no_control_character_to_a_terminal(bench, request, mode):
    terminal, more, environment = MODES[mode]
    text = "".join(CORPUS).replace("\0", "") + "\\n" + LINE
    registry = Registry(bench, f"tool-{list(MODES).index(mode)}", RUNNER.replace("    cat\n", f"    printf %s '{text}'\n    printf %s '{text}' >made\n"))
    registry.call(*registry.add()).expect(0)
    source = bench.source(f"tool-source-{list(MODES).index(mode)}")
    seen = Streams(bench, registry.words("run", "code.make", "--dir", source, *more), terminal, **environment)
    must(seen.exit == 0 and seen.stdout, f"exit {seen.exit}: {seen.stderr!r:.1000}")
    if mode == "pipe":
        must(CORPUS[0].encode() in seen.stdout, f"{seen.stdout!r:.1000}")
        return
    check(seen.stdout, f"tools run ({mode})", forged=True)
    check(seen.stderr, f"tools run ({mode})")
