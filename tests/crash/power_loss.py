"""A power loss while a run lives, and one right after its end.

The state directory is on an ext4 file system in an image file. The image is copied while the file system is mounted: the copy has
what ext4 has written to its disk and not what is only in the page cache, as after a power loss. A loop device needs no device mapper,
which small kernels lack. Before the copy an unrelated file is synced, which makes ext4 commit its journal: names of files that were
renamed meanwhile are then on the disk, and their contents only if somebody synced them. `noauto_da_alloc` turns off ext4's own flush
at a rename, which other file systems do not have.
"""

import contextlib
import json
import os
import shutil
import subprocess

from harness import must
from harness.bench import Bench
from harness.frames import SupervisorClient

GOAL = "Survive the power loss"
SIZE = 1 << 30


def command(*arguments):
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def mounted(image, directory, *options):
    os.makedirs(directory, exist_ok=True)
    command("mount", "-o", ",".join(["loop", *options]), image, directory)
    try:
        yield directory
    finally:
        command("umount", directory)


def lose_power(disk, image):
    """Copies the image to what a power loss leaves of it now, and returns the path of the copy."""
    descriptor = os.open(os.path.join(disk, "unrelated"), os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(descriptor, b"x")
    os.fsync(descriptor)
    os.close(descriptor)
    copy = image + ".after"
    command("cp", "--sparse=always", image, copy)
    return copy


def record_after_power_loss(directory, environment, ends):
    """Starts a run, loses the power when it was accepted or has ended, and returns what `runs get` and the record say afterwards."""
    image = os.path.join(directory, "disk.img")
    with open(image, "wb") as file:
        file.truncate(SIZE)
    command("mkfs.ext4", "-q", "-F", image)
    with mounted(image, os.path.join(directory, "disk"), "noauto_da_alloc") as disk:
        state = os.path.join(disk, "state")
        os.mkdir(state, 0o700)
        shutil.chown(state, environment["CODEBOX_OWNER"])
        os.sync()
        bench = Bench({**environment, "CODEBOX_STATE": state})
        try:
            run = SupervisorClient(bench, "sleep 60", mode="detached")
            run.request["task"]["goal"] = GOAL
            run.spawn().accepted()
            if ends:
                run.send({"type": "cancel"})
                last = run.last()
                must(last and last["type"] in ("result", "error"), json.dumps(last))
            run.kill()
            run.close()
            copy = lose_power(disk, image)
        finally:
            bench.close()
    # The path of the state directory is the same after the restart.
    with mounted(copy, os.path.join(directory, "disk")) as disk:
        site = os.path.join(disk, "state", "sites", bench.site)
        must(run.run_id in os.listdir(os.path.join(site, "runs")), "the directory of the run is gone")
        answer = bench.call("runs", "get", run.run_id, "--state", os.path.join(disk, "state"), "--json")
        with open(os.path.join(site, "runs", run.run_id, "run.json"), encoding="utf-8") as file:
            text = file.read()
        return answer, text


def findings(directory, environment):
    """Returns what a power loss damaged: nothing, if the records of runs are durable."""
    found = []
    for ends in (False, True):
        place = os.path.join(directory, "ended" if ends else "living")
        os.makedirs(place)
        name = "right after its end" if ends else "while the run lived"
        try:
            answer, text = record_after_power_loss(place, environment, ends)
            view = answer.expect(0).json
            must(view["status"] == "ended" and view.get("goal") == GOAL, f"the goal is lost: {json.dumps(view)}")
            must(view["provenance"] == {"requester": "the frames of a test"}, f"the owner is lost: {json.dumps(view)}")
            # A lost final record makes the next reader settle the run, as if its supervisor had died.
            wanted = "cancelled" if ends else "failed"
            must(view["outcome"] == wanted and ("supervisor" in json.dumps(view.get("error"))) is not ends, json.dumps(view))
            must(GOAL in text, f"the record on the disk: {text[:200]!r}")
        except Exception as error:  # a defect of the test is a finding too
            found.append(f"power loss {name}: {type(error).__name__}: {error}")
        finally:
            shutil.rmtree(place, ignore_errors=True)
    return found
