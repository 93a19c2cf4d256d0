"""Small disks that a case fills."""

import contextlib
import os
import shutil
import subprocess

from .checks import must


@contextlib.contextmanager
def small_disk(path, owner, size):
    """Makes the directory `path`, which is a file system of `size` (as `48m`) of the user `owner`; removes it at the end."""
    os.makedirs(path, mode=0o700)
    shutil.chown(path, owner)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700,uid={os.stat(path).st_uid}", "tmpfs", path],
                          capture_output=True, text=True, check=False)
    try:
        must(done.returncode == 0, done.stderr)
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=False)
        shutil.rmtree(path, ignore_errors=True)


def fill(path):
    """Appends to a file until its file system is full."""
    with contextlib.suppress(OSError), open(path, "ab", buffering=0) as file:
        while file.write(b"x" * 4096) == 4096:
            pass
