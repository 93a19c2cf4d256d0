"""Client of a run's control socket, on which a held sandbox accepts requests as lines of JSON."""

import json
import os
import socket

from .checks import Failed

#: Frame types that end the response to a request.
FINAL = ("answer", "error", "exited")


def connect(directory, seconds=120):
    """Connects to the control socket in a run's directory. Uses /proc/self/fd because the path may exceed 107 bytes."""
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(seconds)
    opened = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        stream.connect(f"/proc/self/fd/{opened}/control.sock")
    except BaseException:
        stream.close()
        raise
    finally:
        os.close(opened)
    return stream


def send(directory, request, actor="test", seconds=120):
    """Sends a request and returns the open connection."""
    stream = connect(directory, seconds)
    stream.sendall(json.dumps({"live": 1, "actor": actor, "request": request}).encode() + b"\n")
    return stream


def ask(directory, request, actor="test", seconds=120):
    """Sends a request and returns its final frame."""
    with send(directory, request, actor, seconds) as stream:
        for line in stream.makefile("rb"):
            reply = json.loads(line)
            if reply["type"] in FINAL:
                return reply
    raise Failed(f"the supervisor closed the connection without a final frame: {request}")
