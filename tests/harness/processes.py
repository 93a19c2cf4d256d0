"""Finds, counts, awaits and kills host processes by their command line."""

import contextlib
import ctypes
import glob
import os
import select
import signal

from .checks import must, poll_until


def sleeper(seconds):
    """Returns a `sleep` command line that is unique to this process, because suites run side by side."""
    return f"sleep {seconds}.{os.getpid()}"


def alive(text):
    """Returns the processes with exactly this command line. A substring match would also find the calling command."""
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
    """Returns the number of live processes with exactly this command line."""
    return len(alive(text))


def wake(text):
    """Waits for a guest's `sleep` to start and kills it, so that the guest's script continues."""
    await_count(1, text)
    kill_and_wait(*alive(text))


def kill_and_wait(*pids, seconds=120, number=signal.SIGKILL):
    """Kills processes that are not children and waits until each has ended. Right after the signal alone, the
    process may still hold its locks, files and children."""
    handles = [os.pidfd_open(pid) for pid in pids]
    try:
        for handle in handles:
            signal.pidfd_send_signal(handle, number)
        for handle in handles:
            must(select.select([handle], [], [], seconds)[0], f"a killed process still exists after {seconds} s")
    finally:
        for handle in handles:
            os.close(handle)


def copy_descriptors(pid, *paths):
    """Returns copies (pidfd_getfd) of the descriptors that a process has of these files, one of each. Only root can do that."""
    pidfd_getfd, found = 438, {}
    handle = os.pidfd_open(pid)
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            # A connection may close during the scan.
            with contextlib.suppress(FileNotFoundError):
                found[os.readlink(f"/proc/{pid}/fd/{name}")] = int(name)
        must(set(paths) <= set(found), f"process {pid} has no descriptor of {set(paths) - set(found)}")
        copies = [ctypes.CDLL(None, use_errno=True).syscall(pidfd_getfd, handle, found[path], 0) for path in paths]
    finally:
        os.close(handle)
    must(min(copies) >= 0, f"{copies}: {os.strerror(ctypes.get_errno())}")
    return copies


def await_count(wanted, text, seconds=120):
    """Waits until exactly `wanted` processes with this command line are alive."""
    poll_until(lambda: running(text), lambda count: count == wanted, seconds, f"not {wanted} processes {text!r} are alive")


def parent(pid):
    """Returns the parent process, or 0 when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def children(pid):
    """Returns the child processes of `pid`."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]
    return []


def descends_from(pid, ancestor):
    """Whether `ancestor` is the process itself or one of its ancestors."""
    while pid > 1:
        if pid == ancestor:
            return True
        pid = parent(pid)
    return False


def sockets(pid):
    """Returns the sockets that a process has open."""
    found = set()
    for link in glob.glob(f"/proc/{pid}/fd/*"):
        # A connection may close during the scan.
        with contextlib.suppress(OSError):
            target = os.readlink(link)
            if target.startswith("socket:"):
                found.add(target)
    return found


def read_until(process, *texts):
    """Reads a program's standard output until it contains all texts; returns everything read."""
    said = b""
    while not all(text in said for text in texts):
        must(select.select([process.stdout], [], [], 120)[0], f"the program printed no {texts} within 120 s: {said}")
        piece = os.read(process.stdout.fileno(), 65536)
        must(piece, f"the program ended its output without {texts}: {said}")
        said += piece
    return said
