"""First uid of the subordinate id ranges that tests use, and a file system that does not support idmapped mounts."""

import contextlib
import os
import shutil
import subprocess

# Each worker of pytest has a range of its own: a guest takes the first free id, so a case with only one id fails while
# another worker's guest has it.
FIRST = 1_912_345_000 + 1_000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


@contextlib.contextmanager
def without_idmapped_mounts(bench, lower):
    """Mounts the directory as an overlay, which rejects idmapped mounts with EINVAL."""
    places = [os.path.join(bench.directory, f"overlay-{name}") for name in ("upper", "work", "merged")]
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
        os.mkdir(place)
        shutil.chown(place, bench.owner, bench.owner)
    upper, work, merged = places
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", merged], check=True)
    try:
        yield merged
    finally:
        subprocess.run(["umount", merged], check=True)
