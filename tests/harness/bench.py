"""Calls `wp-codebox` and provides the directory, site and sample plugin of a test process.

A case names the exit status and the stable error code it expects. With `--json`, standard
output must be exactly one JSON document.
"""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import tempfile

from .checks import Failed, must


class Answer:
    """Exit status and output of one `wp-codebox` call."""

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
        """The stable error code of a failed run or a refused call, None on success."""
        error = self.json.get("error") or {}
        return error.get("code")

    def expect(self, exit_code, code=None):
        must(self.exit == exit_code, f"expected exit {exit_code}\n{self}")
        if code is not None:
            must(self.code == code, f"expected {code}, got {self.code}\n{self}")
            sentence = self.json["error"]["message"]
            must(len(sentence) > 15 and " " in sentence, f"the error message is not a sentence: {sentence!r}")
        return self


class Bench:
    """Calls `wp-codebox` for the cases of one process, which share a temporary directory, a site and a sample plugin."""

    def __init__(self, environment):
        self.environment = environment
        self.owner = environment["CODEBOX_OWNER"]
        self.state = environment["CODEBOX_STATE"]
        self.site = f"cli-test-{os.getpid()}"
        self.directory = tempfile.mkdtemp(prefix="codebox-cli.")
        os.chmod(self.directory, 0o755)

    def close(self):
        shutil.rmtree(self.directory, ignore_errors=True)
        shutil.rmtree(os.path.join(self.state, "sites", self.site), ignore_errors=True)

    def own(self, path):
        """Changes the owner of a tree to the owner of the state directory, as for a deployed plugin."""
        if os.geteuid() == 0:
            for directory, names, files in os.walk(path):
                for name in [directory] + [os.path.join(directory, n) for n in names + files]:
                    shutil.chown(name, self.owner, None) if not os.path.islink(name) else None
        return path

    def source(self, name="plugin"):
        """Creates a small plugin on the host and returns its path."""
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

    def start(self, arguments, environment=None, directory=None):
        return subprocess.Popen([self.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL, cwd=directory,
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

    def headline(self, directory, goal, *arguments, environment=None):
        """Runs `wp-codebox GOAL` in a directory."""
        arguments = [goal, *self.paths(), "--site", self.site, "--json", *arguments]
        return self.finish(arguments, self.start(arguments, environment, directory))

    def without_wordpress(self):
        """Returns an environment without a cached WordPress and with no server to install one from."""
        return {"PATH": "/usr/bin:/bin", "WP_CODEBOX_CACHE_DIR": os.path.join(self.directory, "no-cache"), "WP_CODEBOX_WORDPRESS_ORIGIN": "http://127.0.0.1:9"}

    def run_arguments(self, *arguments, state=None):
        return ["run", *self.paths(state), "--site", self.site, "--json", *arguments]

    def run(self, *arguments, state=None):
        return self.call(*self.run_arguments(*arguments, state=state))

    def agent(self, script, *arguments, target="/workspace/plugin", source=None, state=None):
        """Runs a shell script as the agent, in a fresh copy of the sample plugin unless one is given."""
        source = source or self.source()
        quoted = "'" + script.replace("'", "'\\''") + "'"
        return self.run("--mount", f"{source}:{target}", "--agent-command", f"sh -c {quoted}", *arguments, state=state)


def tree(path):
    """Returns mode and content of every path below a directory, to compare before and after."""
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


def contents(*roots):
    """Yields path and content of every regular file below directories that other processes may be changing: no links, sockets and pipes, and nothing that has disappeared."""
    for root in roots:
        for directory, _, names in os.walk(root):
            for path in (os.path.join(directory, name) for name in names):
                content = None
                with contextlib.suppress(FileNotFoundError):
                    if stat.S_ISREG(os.lstat(path).st_mode):
                        with open(path, "rb") as file:
                            content = file.read()
                if content is not None:
                    yield path, content
