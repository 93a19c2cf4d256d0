"""Describes the commit and the machine of a measurement."""

import os
import platform
import subprocess

from harness.detectors import read


def commit(root):
    """Returns the commit of the checkout and whether tracked files differ from it."""
    def ask(*arguments):
        return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False).stdout.strip()
    return {"id": ask("rev-parse", "HEAD"), "dirty": bool(ask("status", "--porcelain", "--untracked-files=no"))}


def machine():
    """Returns processor, kernel and load average."""
    model = next((line.split(":", 1)[1].strip() for line in read("/proc/cpuinfo").splitlines() if line.startswith("model name")), "")
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(), "load": round(os.getloadavg()[0], 1)}
