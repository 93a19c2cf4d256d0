"""Fixtures of the suite: one running service for all cases, and a second one whose sandboxes a third one uses as remote."""

import os
import shutil

import pytest

from harness.servers import free_ports
from service import Service, Tls


@pytest.fixture(scope="session")
def service(bench):
    """A service whose sandboxes run on this machine."""
    one = Service(bench, "one").start()
    yield one
    one.close()


@pytest.fixture(scope="session")
def remote(bench, service):
    """A service that runs its sandboxes in another service, which listens on loopback with TLS."""
    # The first sandbox builds the template, which the other state directories copy.
    first = service.create()
    service.delete(f"/v1/sandboxes/{first['id']}")
    tls, port = Tls(bench, "far"), free_ports(1)[0]
    far = Service(bench, "far", "--listen", f"127.0.0.1:{port}", "--tls-cert", tls.certificate, "--tls-key", tls.key, like=service).start()
    path = f"{bench.directory}/far-token"
    with open(path, "w", encoding="utf-8") as file:
        file.write(far.token("*", actor="atm:near"))
    shutil.chown(path, bench.owner) if os.geteuid() == 0 else None
    os.chmod(path, 0o600)
    near = Service(bench, "near", "--remote", f"far=https://127.0.0.1:{port},{path},{tls.certificate}", like=service)
    near.far = far
    # Both services get this profile, which pins no extension: `near` routes it to `far`, and `far` to its own machine.
    for one in (far, near):
        one.profile("profile.test", extension=None, source=far.source)
    near.start()
    near.post("/v1/hosts/local/drain").expect(200)
    yield near
    near.close()
    far.close()
