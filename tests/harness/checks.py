"""Fails a case, or skips it when the current user cannot set it up."""

import os


class Failed(Exception):
    """The product did not do what the case expects. The text describes what it did."""


def must(condition, text):
    """Fails the case unless the condition holds."""
    if not condition:
        raise Failed(text)


def skip_unless_root(reason):
    """Skips a case that needs root. Fails as root, because root can set up every case."""
    # Imported here because some programs that use this module run without pytest.
    import pytest

    must(os.geteuid() != 0, f"as root this case must not be skipped: {reason}")
    pytest.skip(reason)
