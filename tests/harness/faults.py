"""A proxy between one party and the message server, which kills the party or cuts its connection at a chosen message.

The proxy forwards the text protocol of NATS message by message, so that a test can choose the step of the party at which something happens.
"""

import contextlib
import os
import re
import signal
import socket
import threading

from .checks import must
from .processes import sockets


class Fault:
    """What happens at one message. `subject` and `content` are regular expressions; `down` selects messages from the server.
    The subject of a message to a stream is the one under which the stream stores it.

    `arrives`: a message to the server still gets there, but the answer to it does not come back. `then`: `kill` the party; `cut` the connection
    and keep it silent until `Proxy.heal`; the number of seconds for which connections are closed and refused; or a function, after which the
    message goes on.
    """

    def __init__(self, subject, content="", arrives=False, down=False, then="kill"):
        self.subject, self.content = re.compile(subject), re.compile(content.encode())
        self.arrives, self.down, self.then = arrives, down, then

    def matches(self, down, subject, reply, body):
        # A message from a consumer has the subject under which it was stored; only its reply subject names the consumer.
        name = reply if down else subject
        name = re.sub(r"^store\.[0-9a-f]{32}\.", "", name)
        return self.down == down and self.subject.fullmatch(name) and self.content.search(body)


class Proxy:
    """Listens on a loopback port for one party and forwards to `server`."""

    def __init__(self, server, fault=None):
        self.server, self.fault = server, fault
        self.hit = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.lock, self.links, self.state = threading.Lock(), set(), "open"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"nats://127.0.0.1:{self.listener.getsockname()[1]}"

    def cut(self, state="silent"):
        """`silent`: nothing is forwarded and nothing is closed, as between two hosts without a route. `refused`: connections end at once."""
        with self.lock:
            self.state = state
            links = set(self.links)
        if state == "refused":
            for link in links:
                link.close()

    def heal(self):
        """Lets new connections through. Those from before the cut end."""
        with self.lock:
            self.state = "open"
            links = set(self.links)
        for link in links:
            link.close()

    def strike(self, link):
        """Does what the fault says; called once."""
        then = self.fault.then
        if then == "kill":
            pid = peer(link.client)
            must(pid, "the process of a connection is not found")
            os.kill(pid, signal.SIGKILL)
            link.close()
        elif then == "cut":
            self.cut()
        else:
            self.cut("refused")
            threading.Timer(then, self.heal).start()
        self.hit.set()

    def close(self):
        self.cut("refused")
        # A thread that waits in accept() does not notice that another one closes the socket.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                state = self.state
            if state == "refused":
                client.close()
                continue
            try:
                upstream = socket.create_connection((self.server.host, self.server.port))
            except OSError:
                client.close()
                continue
            link = Link(self, client, upstream)
            with self.lock:
                self.links.add(link)
            link.start()


class Link:
    """One connection of the party. `awaited` is the subject of the answer that the party must not see."""

    def __init__(self, proxy, client, upstream):
        self.proxy, self.client, self.upstream, self.awaited = proxy, client, upstream, None

    def start(self):
        for down, source, target in ((False, self.client, self.upstream), (True, self.upstream, self.client)):
            threading.Thread(target=self._pump, args=(down, source, target), daemon=True).start()

    def close(self):
        for one in (self.client, self.upstream):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self.proxy.lock:
            self.proxy.links.discard(self)

    def _pump(self, down, source, target):
        with contextlib.suppress(OSError, ValueError), source.makefile("rb") as lines:
            while line := lines.readline():
                words, body = line.decode().split(), b""
                if words and words[0] in ("PUB", "HPUB", "MSG", "HMSG"):
                    body = lines.read(int(words[-1]) + 2)
                    if not self._passes(down, words, body):
                        continue
                if self.proxy.state == "silent":
                    return
                target.sendall(line + body)
        if self.proxy.state != "silent":
            self.close()

    def _passes(self, down, words, body):
        """Applies the fault if the message matches it; returns whether the caller must forward the message."""
        proxy, subject = self.proxy, words[1]
        sizes = 2 if words[0].startswith("H") else 1
        before = 3 if down else 2
        reply = words[before] if len(words) == before + sizes + 1 else ""
        if down and self.awaited is not None and subject == self.awaited:
            self.awaited = None
            proxy.strike(self)
            return False
        fault = proxy.fault
        if fault is None or proxy.hit.is_set() or self.awaited is not None or not fault.matches(down, subject, reply, body):
            return True
        if callable(fault.then):
            fault.then()
            proxy.hit.set()
            return True
        if fault.arrives:
            self.awaited = reply
            return True
        proxy.strike(self)
        return False


def peer(connection):
    """Returns the process on this machine at the other end of a loopback connection, or None."""
    with contextlib.suppress(OSError):
        own, other = connection.getsockname()[1], connection.getpeername()[1]
        with open("/proc/net/tcp", encoding="ascii") as table:
            rows = [line.split() for line in table][1:]
        wanted = (f":{other:04X}", f":{own:04X}")
        inodes = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(wanted[0]) and row[2].endswith(wanted[1])}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) != os.getpid() and inodes & sockets(int(pid)):
                return int(pid)
    return None
