"""Mounts of a run are never in the mount table of the host, whatever the propagation type of its `/`. systemd makes `/` shared.

Each case makes a mount namespace that stands for the host. The kernel reports every change of its mount table to `poll`, also one that is
undone at once.
"""

import collections
import contextlib
import os
import re
import select
import shutil
import subprocess

import pytest

from harness import must, skip_unless_root
from harness.templates import seed_template

SCRIPT = "echo agent >>plugin.php"


class MountTable:
    """A mount namespace that stands for the host, and its mount table."""

    def __init__(self, commands, within=None):
        inside = within.prefix if within else []
        self.holder = subprocess.Popen([*inside, "unshare", "--mount", "--propagation", "unchanged", "sh", "-c", f"{commands}; echo ready; exec cat"],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        must(self.holder.stdout.readline() == b"ready\n", f"the mount namespace could not be made: {commands}")
        self.prefix = ["nsenter", "--mount", "--target", str(self.holder.pid)]
        # A descriptor reports changes since it was opened or last polled.
        self.file = os.open(f"/proc/{self.holder.pid}/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        self.poll = select.poll()
        self.poll.register(self.file, select.POLLPRI)

    def changed(self):
        return bool(self.poll.poll(0))

    def text(self):
        os.lseek(self.file, 0, os.SEEK_SET)
        return b"".join(iter(lambda: os.read(self.file, 1 << 16), b"")).decode()

    def run(self, *words):
        return subprocess.run([*self.prefix, *words], check=True, capture_output=True, text=True).stdout

    def close(self):
        os.close(self.file)
        self.holder.kill()
        self.holder.wait()
        self.holder.stdin.close()
        self.holder.stdout.close()


@pytest.fixture(name="host", params=["private", "shared", "slave"])
def every_host(request):
    """The mount table of a host whose `/` has this propagation type. A slave is also shared, as for a unit of systemd."""
    with host_with(request.param) as table:
        yield table


@contextlib.contextmanager
def host_with(propagation):
    if os.geteuid() != 0:
        skip_unless_root("a host of its own")
    with contextlib.ExitStack() as tables:
        outer = MountTable("mount --make-rprivate /" + ("" if propagation == "private" else "; mount --make-rshared /"))
        tables.callback(outer.close)
        if propagation != "slave":
            yield outer
            return
        inner = MountTable("mount --make-rslave /; mount --make-rshared /", within=outer)
        tables.callback(inner.close)
        yield inner


class HostBench:
    """Runs the agent of a case as root on a host of [`MountTable`], with a state directory of its own."""

    def __init__(self, bench, host):
        self.bench, self.host = bench, host
        self.state = os.path.join(bench.directory, "propagation-state")
        shutil.rmtree(self.state, ignore_errors=True)
        os.mkdir(self.state, 0o700)
        shutil.chown(self.state, bench.owner, bench.owner)
        seed_template(self.state)
        self.keys = os.path.join(self.state, "keys")

    def run(self, *arguments, wrapper=()):
        asked = self.bench.run_arguments("--mount", f"{self.bench.source()}:/workspace/plugin", "--agent-command", f"sh -c '{SCRIPT}'", *arguments, state=self.state)
        process = subprocess.Popen([*self.host.prefix, *wrapper, self.bench.environment["CODEBOX"], *asked], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PATH": "/usr/bin:/bin"})
        return self.bench.finish(asked, process)


@pytest.mark.parametrize("identity", ["own", "shared"])
def test_run_by_root_never_changes_the_mount_table_of_the_host(bench, host, identity):
    runner = HostBench(bench, host)
    # Makes the directory of the key, which later runs cover.
    runner.run("--identity", identity).expect(0)
    before = host.text()
    runner.run("--identity", identity).expect(0)
    must(not host.changed() and host.text() == before, "the run changed the mount table of the host")
    # Control: the table of a host that shares its mounts shows those of a process in a namespace of its own; others show only their own mounts.
    inside = [] if "shared:" not in before else ["unshare", "--mount", "--propagation", "unchanged"]
    host.run(*inside, "mount", "-t", "tmpfs", "control", runner.keys)
    must(host.changed() and host.text() != before, "the control did not change the mount table")


def test_run_killed_before_any_mount_call_of_its_spawner_leaves_no_mount_on_the_host(bench):
    calls = "unshare,open_tree,mount_setattr,fsmount,move_mount,mount,umount2"
    with host_with("shared") as host:
        runner = HostBench(bench, host)
        log = os.path.join(bench.directory, "strace.log")
        traced = ["strace", "-f", "-qq", "-s", "200", "-o", log, "-e", f"trace=execve,{calls}"]
        runner.run("--identity", "own", wrapper=traced).expect(0)
        with open(log, encoding="utf-8") as file:
            lines = file.read().splitlines()
        (spawner,) = {line.split()[0] for line in lines if re.search(r'execve\(.*wp-codebox-launch.*"spawner"', line)}
        made = collections.Counter(line.split()[1].split("(")[0] for line in lines if line.split()[0] == spawner and "(" in line and "execve" not in line)
        must(made["move_mount"] > 3 and made["unshare"] > 1, f"the spawner made other calls: {made}")
        before = host.text()
        for name, number in [(name, number + 1) for name, count in made.items() for number in range(count)]:
            answer = runner.run("--identity", "own", wrapper=[*traced, "-e", f"inject={name}:signal=SIGKILL:when={number}"])
            must(answer.exit != 0, f"nothing was killed at call {number} of {name}: {answer}")
            must(not host.changed() and host.text() == before, f"a spawner that was killed at call {number} of {name} left a mount on the host: {host.text()}")
        runner.run("--identity", "own").expect(0)


def test_cover_that_an_earlier_version_left_over_the_keys_is_removed_by_the_next_run_of_root(bench):
    with host_with("shared") as host:
        runner = HostBench(bench, host)
        runner.run().expect(0)
        before = host.text()
        leak = ["mount", "-t", "tmpfs", "-o", "ro,size=4k,mode=555", "none", runner.keys]
        # Each run of such a version left one.
        host.run(*leak)
        host.run(*leak)
        # Without root a run cannot unmount it, and says what to do.
        owner = ["setpriv", f"--reuid={bench.owner}", f"--regid={bench.owner}", "--clear-groups"]
        refused = runner.run(wrapper=owner).expect(125, "wp_codebox_state_dir_invalid")
        must("umount" in refused.stdout and host.text() != before, refused)
        answer = runner.run("--identity", "own").expect(0)
        must(host.text() == before, f"the mount is still there: {host.text()}")
        said = [notice for notice in answer.result["notices"] if "left an empty mount" in notice]
        must(len(said) == 1 and runner.keys in said[0], answer)
        must("left an empty mount" not in runner.run().expect(0).stdout, "the notice was repeated")


def test_mount_over_the_keys_that_is_not_a_cover_stays(bench):
    with host_with("shared") as host:
        runner = HostBench(bench, host)
        runner.run().expect(0)
        host.run("mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "operator", runner.keys)
        before = host.text()
        runner.run("--identity", "own").expect(125, "wp_codebox_state_dir_invalid")
        must(host.text() == before, "the mount of the operator is gone")
