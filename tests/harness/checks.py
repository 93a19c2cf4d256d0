"""Fails a case, waits for a condition, or skips a case that the current user cannot set up."""

import os
import shutil
import time


class Failed(Exception):
    """Raised when the product did not do what a case expects; the text says what it did."""


def must(condition, text):
    """Fails the case unless the condition holds."""
    if not condition:
        raise Failed(text)


def poll_until(look, holds=bool, seconds=120, what="the condition does not hold"):
    """Calls `look` until its value satisfies `holds`, and returns that value."""
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        seen = look()
        if holds(seen):
            return seen
        ended = time.monotonic()
        must(ended < deadline, f"after {seconds:g} s: {what}; last value: {str(seen)[:800]}")
        # A scan of /proc or a call of a page takes processor time from the awaited programs, so a slow `look` is repeated less often.
        time.sleep(min(0.2, max(0.02, 4 * (ended - began))))


def remove_tree(path):
    """Removes a directory in which a program of an ended command may still make and remove files, such as a state directory."""
    poll_until(lambda: shutil.rmtree(path, ignore_errors=True) or not os.path.lexists(path), what=f"{path} cannot be removed")


def skip_unless_root(reason):
    """Skips a case that this user cannot set up. Fails for root, who can set up every case."""
    # Imported here because some programs that use this module run without pytest.
    import pytest

    must(os.geteuid() != 0, f"as root this case must not be skipped: {reason}")
    pytest.skip(reason)
