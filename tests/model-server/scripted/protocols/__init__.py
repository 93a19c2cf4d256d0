"""Protocols of model APIs. Each module implements one protocol and defines:

- `NAME` and `PATH`, the end of the request's path that belongs to it,
- `key(headers)`: the key that was sent, or an empty text,
- `parse(body) -> Asked`; raises `ValueError` with a sentence when the request is not of the protocol,
- `whole(answer) -> dict`: the response as one document,
- `events(answer, size) -> iterator of bytes`: the response as server-sent events, its text cut into
  pieces of `size` characters,
- `error(status, message) -> dict`: the body of an error response,
- `error_event(message) -> bytes`: an error inside a stream.

To add a protocol, add its module and its entry in `ALL`.
"""

from . import chat, messages, responses

ALL = [chat, messages, responses]


def of(path):
    """Returns the protocol whose PATH ends this path, and the rest, or `(None, path)`."""
    for protocol in ALL:
        if path.endswith(protocol.PATH):
            return protocol, path[: -len(protocol.PATH)]
    return None, path
