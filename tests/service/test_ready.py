"""`/readyz` says whether the machine could start a run."""

import os
import shutil

from harness import must, poll_until
from harness.disks import fill, small_disk
from service import Service


def test_readyz_is_503_while_the_disk_has_less_space_than_a_run_reserves(bench):
    """A run keeps 16 MiB free for its end, so it does not start on such a disk."""
    service = Service(bench, "full")
    shutil.rmtree(service.state)
    with small_disk(service.state, bench.owner, "64m"):
        service.start()
        try:
            filler = os.path.join(service.state, "filler")
            fill(filler)
            os.truncate(filler, os.path.getsize(filler) - (8 << 20))
            # A small file could be written.
            with open(os.path.join(service.state, "small"), "wb") as file:
                file.write(b"x" * 65536)
            poll_until(lambda: service.get("/readyz").status, lambda status: status == 503, 30)
            answer = service.get("/readyz").expect(503, code="wp_codebox_service_unavailable")
            must(service.state not in answer.body.decode(), f"{answer}")
            must("16 MiB" in service.output(), service.output())
            os.remove(filler)
            poll_until(lambda: service.get("/readyz").status, lambda status: status == 204, 30)
        finally:
            service.stop()
