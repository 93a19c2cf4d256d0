"""What the cases of the command line share: calling `wp-codebox`, and counting verdicts.

A case names the exit code and the stable code it expects; everything on standard
output must be one JSON document when JSON was asked for.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time


class Failed(Exception):
    """A case did not hold; the text says how."""


class NotHere(Exception):
    """A case that this user cannot arrange; it counts neither way. Root can arrange all of them."""


def must(condition, text):
    """Fails the case unless the condition holds."""
    if not condition:
        raise Failed(text)


class Answer:
    """What one call of `wp-codebox` answered."""

    def __init__(self, arguments, process, stdout, stderr):
        self.arguments = arguments
        self.exit = process.returncode
        self.stdout = stdout.decode("utf-8", "replace")
        self.stderr = stderr.decode("utf-8", "replace")

    def __str__(self):
        return f"exit {self.exit}\nstdout: {self.stdout[-6000:]}\nstderr: {self.stderr[-800:]}"

    @property
    def json(self):
        try:
            return json.loads(self.stdout)
        except ValueError as error:
            raise Failed(f"standard output is not one JSON document: {error}\n{self}") from error

    @property
    def result(self):
        value = self.json.get("result")
        must(value is not None, f"there is no result\n{self}")
        return value

    @property
    def code(self):
        """The stable code of the failure, of a run that ended or of a call that was refused."""
        error = self.json.get("error") or {}
        return error.get("code")

    def expect(self, exit_code, code=None):
        must(self.exit == exit_code, f"expected exit {exit_code}\n{self}")
        if code is not None:
            must(self.code == code, f"expected {code}, got {self.code}\n{self}")
            sentence = self.json["error"]["message"]
            must(len(sentence) > 15 and " " in sentence, f"no sentence: {sentence!r}")
        return self


class Bench:
    """A workplace for the cases: a plugin to mount, a state directory, counters."""

    def __init__(self, environment):
        self.environment = environment
        self.owner = environment["CODEBOX_OWNER"]
        self.state = environment["CODEBOX_STATE"]
        self.site = f"cli-test-{os.getpid()}"
        self.directory = tempfile.mkdtemp(prefix="codebox-cli.")
        os.chmod(self.directory, 0o755)
        self.passed = 0
        self.failed = 0

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(os.path.join(self.state, "sites", self.site), ignore_errors=True)

    def own(self, path):
        """Gives a tree to the owner of the state directory, as a deployed plugin would be."""
        if os.geteuid() == 0:
            for directory, names, files in os.walk(path):
                for name in [directory] + [os.path.join(directory, n) for n in names + files]:
                    shutil.chown(name, self.owner, None) if not os.path.islink(name) else None
        return path

    def source(self, name="plugin"):
        """A fresh small plugin on the host."""
        path = os.path.join(self.directory, name)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(os.path.join(path, "lib"))
        with open(os.path.join(path, "plugin.php"), "w", encoding="utf-8") as file:
            file.write("<?php\n/* Plugin Name: Sample */\nreturn 1;\n")
        with open(os.path.join(path, "lib", "a.txt"), "w", encoding="utf-8") as file:
            file.write("one\ntwo\nthree\n")
        return self.own(path)

    def paths(self, state=None):
        e = self.environment
        return ["--wordpress", e["CODEBOX_WORDPRESS"], "--state", state or self.state, "--share", e["CODEBOX_SHARE"],
                "--launcher", e["CODEBOX_LAUNCH"], "--php", e["CODEBOX_PHP"]]

    def start(self, arguments, environment=None):
        return subprocess.Popen([self.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=environment if environment is not None else {"PATH": "/usr/bin:/bin"})

    def finish(self, arguments, process, seconds=300):
        try:
            stdout, stderr = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failed(f"{arguments} did not end within {seconds} s") from None
        return Answer(arguments, process, stdout, stderr)

    def call(self, *arguments, environment=None):
        return self.finish(arguments, self.start(arguments, environment))

    def run_arguments(self, *arguments, state=None):
        return ["run", *self.paths(state), "--site", self.site, "--json", *arguments]

    def run(self, *arguments, state=None):
        return self.call(*self.run_arguments(*arguments, state=state))

    def agent(self, script, *arguments, target="/workspace/plugin", source=None, state=None):
        """Runs a shell script as the agent, in a fresh copy of the sample plugin unless one is given."""
        source = source or self.source()
        quoted = "'" + script.replace("'", "'\\''") + "'"
        return self.run("--mount", f"{source}:{target}", "--agent-command", f"sh -c {quoted}", *arguments, state=state)

    def case(self, name, function):
        began = time.monotonic()
        try:
            function(self)
        except NotHere as reason:
            must(os.geteuid() != 0, f"root can arrange this: {reason}")
            print(f"n/a  {name}: {reason}", flush=True)
        except Failed as failure:
            self.failed += 1
            print(f"FAIL {name}: {failure}", flush=True)
        except Exception as error:  # a defect of the test is a failure too
            self.failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
        else:
            self.passed += 1
            print(f"ok   {name} ({time.monotonic() - began:.1f} s)", flush=True)


def tree(path):
    """Every name, mode and content below a directory, to compare before and after."""
    found = {}
    for directory, names, files in os.walk(path):
        for name in names + files:
            full = os.path.join(directory, name)
            status = os.lstat(full)
            content = None
            if os.path.isfile(full) and not os.path.islink(full):
                with open(full, "rb") as file:
                    content = file.read()
            found[os.path.relpath(full, path)] = (status.st_mode, content)
    return found


def sleeper(seconds):
    """A `sleep` that no other suite on this host has, and no other process of this one: several run side by side."""
    return f"sleep {seconds}.{os.getpid()}"


def alive(text):
    """Processes with exactly this command line. Not merely such as speak of it: the caller's own arguments do."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().rstrip(b"\0").replace(b"\0", b" ") == text.encode():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def running(text):
    """How many processes with exactly this command line are alive."""
    return len(alive(text))


def let_go(text):
    """Ends what a guest sleeps in, once it does: a script goes on when the test has looked, however long that took."""
    come_to(1, text)
    slain(*alive(text))


def slain(*pids, seconds=120, number=signal.SIGKILL):
    """Kills processes that are no children, and waits until each is gone with all it held. A signal
    alone is only on its way: who looks at once may find its locks, files and children as they were."""
    handles = [os.pidfd_open(pid) for pid in pids]
    try:
        for handle in handles:
            signal.pidfd_send_signal(handle, number)
        for handle in handles:
            must(select.select([handle], [], [], seconds)[0], f"killed, and still there after {seconds} s")
    finally:
        for handle in handles:
            os.close(handle)


def come_to(wanted, text, seconds=120):
    """Waits until so many processes with this command line are alive."""
    deadline = time.monotonic() + seconds
    while running(text) != wanted:
        must(time.monotonic() < deadline, f"{running(text)} of {text!r} are alive, not {wanted}, after {seconds} s")
        time.sleep(0.05)
