"""Installs the agent programs from lock files with checksums. An installation is reused until its lock file changes."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LOCKS = os.path.join(HERE, "lock")


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("CODEBOX_CACHE") or os.path.join(base, "wp-codebox")


def digest(name):
    """Returns the SHA-256 of the agent's lock files."""
    found = hashlib.sha256()
    directory = os.path.join(LOCKS, name)
    for file in sorted(os.listdir(directory)):
        with open(os.path.join(directory, file), "rb") as handle:
            found.update(file.encode() + b"\0" + handle.read())
    return found.hexdigest()


def command(name, directory):
    lock = os.path.join(LOCKS, name)
    if os.path.exists(os.path.join(lock, "package-lock.json")):
        for file in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(lock, file), directory)
        # Not `npm ci`, which also requires optional packages of other platforms; some registries lack them.
        return ["npm", "install", "--fetch-retries=5", "--no-save", "--prefix", directory, "--no-audit", "--no-fund", "--prefer-offline",
                "--cache", os.path.join(cache(), "npm")]
    return ["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:",
            "--no-warn-script-location", "--root-user-action", "ignore", "--cache-dir", os.path.join(cache(), "pip"),
            "--target", os.path.join(directory, "site"), "-r", os.path.join(lock, "requirements.txt")]


def check(name, directory):
    """Checks that every installed npm package has the integrity of the lock file; pip checks its hashes itself."""
    lock, there = os.path.join(LOCKS, name, "package-lock.json"), os.path.join(directory, "node_modules", ".package-lock.json")
    if not os.path.exists(lock):
        return
    with open(lock, encoding="utf-8") as file:
        pinned = json.load(file)["packages"]
    with open(there, encoding="utf-8") as file:
        installed = json.load(file)["packages"]
    for path, package in installed.items():
        if not package.get("integrity") or pinned.get(path, {}).get("integrity") != package["integrity"]:
            raise RuntimeError(f"{name}: {path} is not as its lock file says")


def ensure(name, root):
    """Installs the agent below `root`, unless an installation from the same lock files exists; returns its path."""
    place, wanted = os.path.join(root, name), digest(name)
    stamp = os.path.join(place, ".lock")
    if os.path.exists(stamp):
        with open(stamp, encoding="ascii") as file:
            if file.read() == wanted:
                return place
    os.makedirs(root, mode=0o755, exist_ok=True)
    work = f"{place}.new.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work, mode=0o755)
    began = time.monotonic()
    try:
        done = subprocess.run(command(name, work), cwd=work, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{name} could not be installed: {done.stderr[-1500:]}")
        check(name, work)
        with open(os.path.join(work, ".lock"), "w", encoding="ascii") as file:
            file.write(wanted)
        shutil.rmtree(place, ignore_errors=True)
        os.rename(work, place)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"     {name} installed ({time.monotonic() - began:.0f} s)", file=sys.stderr, flush=True)
    return place
