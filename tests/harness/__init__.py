"""Helpers that several suites share. Each suite runs in a process of its own: `python3 -m pytest tests/<suite>`."""

from .bench import Answer, Bench, contents, tree
from .checks import Failed, must, poll_until, remove_tree, skip_unless_root
from .processes import alive, await_count, copy_descriptors, kill_and_wait, running, sleeper, wake

__all__ = ["Answer", "Bench", "Failed", "alive", "await_count", "contents", "copy_descriptors", "kill_and_wait", "must", "poll_until", "remove_tree", "running", "skip_unless_root", "sleeper", "tree", "wake"]
