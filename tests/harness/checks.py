"""How a case fails, and how it says that this user cannot arrange it."""

import os


class Failed(Exception):
    """The product did not do what the case expects; the text says what it did."""


def must(condition, text):
    """Fails the case unless the condition holds."""
    if not condition:
        raise Failed(text)


def skip_unless_root(reason):
    """Skips a case that needs root. As root it is a failure: root can arrange every case."""
    # Not every program that uses this module is run by pytest.
    import pytest

    must(os.geteuid() != 0, f"root can arrange this: {reason}")
    pytest.skip(reason)
