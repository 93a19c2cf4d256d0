"""Where and with what a measurement was made."""

import os
import platform
import subprocess

from harness.detectors import read


def commit(root):
    """Commit of the checkout, and whether it was changed since."""
    def ask(*arguments):
        return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False).stdout.strip()
    return {"id": ask("rev-parse", "HEAD"), "dirty": bool(ask("status", "--porcelain", "--untracked-files=no"))}


def machine():
    """Processor, kernel and load."""
    model = next((line.split(":", 1)[1].strip() for line in read("/proc/cpuinfo").splitlines() if line.startswith("model name")), "")
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(), "load": round(os.getloadavg()[0], 1)}
