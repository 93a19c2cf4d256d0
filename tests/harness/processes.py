"""Processes of the host, found by their command line: counted, waited for, killed."""

import os
import select
import signal
import time

from .checks import must


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


def wake(text):
    """Ends what a guest sleeps in, once it does: a script goes on when the test has looked, however long that took."""
    await_count(1, text)
    kill_and_wait(*alive(text))


def kill_and_wait(*pids, seconds=120, number=signal.SIGKILL):
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


def await_count(wanted, text, seconds=120):
    """Waits until so many processes with this command line are alive."""
    deadline = time.monotonic() + seconds
    while running(text) != wanted:
        must(time.monotonic() < deadline, f"{running(text)} of {text!r} are alive, not {wanted}, after {seconds} s")
        time.sleep(0.05)


def ancestor(pid, wanted):
    while pid > 1:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
        if pid == wanted:
            return True
    return False


def read_until(process, *texts):
    """Reads what a program prints until it has said these; all of it."""
    said = b""
    while not all(text in said for text in texts):
        must(select.select([process.stdout], [], [], 120)[0], f"no {texts} in {said}")
        piece = os.read(process.stdout.fileno(), 65536)
        must(piece, f"it ended without {texts}: {said}")
        said += piece
    return said
