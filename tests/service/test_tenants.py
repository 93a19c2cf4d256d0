"""Previews of sandboxes of the service."""

import urllib.parse

from harness import must
from harness.previews import http_request


def test_preview_of_a_service_sandbox_needs_the_token_of_its_link(service):
    service.profile("profile.shown", more="reachability: { exec: true, preview: true }\n")
    made = service.create("profile.shown")
    url = urllib.parse.urlsplit(made["reachability"]["preview_url"])
    token = urllib.parse.parse_qs(url.query)["preview_token"][0]
    must(url.hostname == "127.0.0.1" and len(token) == 64, f"{url}")
    must(http_request(url.port, "/").status == 401, "a visitor without the token is let in")
    must(http_request(url.port, "/?preview_token=" + "0" * 64).status == 403, "a visitor with another token is let in")
    with_token = http_request(url.port, f"/?preview_token={token}")
    must(with_token.status in (302, 303), f"control: {with_token}")
    # Neither the run's files nor an event has the token.
    events = service.get("/v1/events?after=0&follow=now").expect(200).body.decode()
    journal = str(service.get(f"/v1/runs/{made['id']}/events").json) + str(service.get(f"/v1/runs/{made['id']}").json)
    must(made["id"] in events and token not in events + journal, "an event has the token")
    # A preview that is opened again needs the same token.
    shown = service.cli("preview", made["id"]).expect(0).json
    must(shown["access"] == "token" and token in shown["accessUrl"], f"{shown}")
    service.delete(f"/v1/sandboxes/{made['id']}").expect(200)
