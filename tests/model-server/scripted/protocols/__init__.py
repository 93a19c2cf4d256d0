"""Protocols. A module is one: it has

- `NAME` and `PATH`, the end of the request's path that belongs to it,
- `key(headers)`: the key that was sent, or an empty text,
- `parse(body) -> Asked`; raises `ValueError` with a sentence when the request is not of the protocol,
- `whole(answer) -> dict`: the answer in one piece,
- `events(answer, size) -> iterator of bytes`: the same as server-sent events, text cut in pieces of `size` characters,
- `error(status, message) -> dict`: an error's body,
- `error_event(message) -> bytes`: an error inside a stream.

A new protocol is a file and a name in `ALL`.
"""

from . import chat, messages, responses

ALL = [chat, messages, responses]


def of(path):
    """The protocol of a path, and what stands before its end; `(None, path)` when there is none."""
    for protocol in ALL:
        if path.endswith(protocol.PATH):
            return protocol, path[: -len(protocol.PATH)]
    return None, path
