"""Gives a new state directory the WordPress template of the state directory of `make env`, so that its first run builds none."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def seed_template(state):
    """Copies the template into the empty state directory `state` and gives it to the owner of `state`."""
    subprocess.run([os.path.join(ROOT, "tests", "seed-template"), state], check=True)
