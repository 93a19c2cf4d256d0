#!/usr/bin/env python3
"""A model server on 127.0.0.1 that plays scripted conversations and faults. A part of the tests.

    server.py --script DIR|FILE [--port 0] [--port-file F] [--log F] [--key K | --key-env VAR] [--lifetime SECONDS]

See README.md for scripts, sessions and the log. It ends on SIGTERM, SIGINT, with its parent, and after its lifetime.
"""

import argparse
import os
import signal
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from scripted import Server, scripts_of  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description="plays scripted conversations of a model, for tests")
    parser.add_argument("--script", required=True, help="a script (.json or .py), or a directory of them")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", help="written when the server listens")
    parser.add_argument("--log", help="one JSON document a line and request; keys as SHA-256")
    key = parser.add_mutually_exclusive_group()
    key.add_argument("--key", help="the only key that is accepted")
    key.add_argument("--key-env", help="the environment variable that holds it")
    parser.add_argument("--lifetime", type=int, default=3600, help="seconds after which it ends by itself")
    given = parser.parse_args()
    server = Server(scripts_of(given.script), given.key or (os.environ[given.key_env] if given.key_env else None), given.log, given.port).start()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if given.port_file:
        with open(given.port_file + ".new", "w", encoding="ascii") as file:
            file.write(f"{server.port}\n")
        os.rename(given.port_file + ".new", given.port_file)
    else:
        print(server.port, flush=True)
    parent, end = os.getppid(), time.monotonic() + given.lifetime
    while not stop.wait(0.5) and os.getppid() == parent and time.monotonic() < end:
        pass
    server.close()


if __name__ == "__main__":
    main()
