"""A stock Chromium over the DevTools protocol: pages, frames and workers, screenshots, and a trap for requests to other hosts.

Stock switches matter: the switches of test tools turn off the partitioning of storage, and service workers in frames of
another site then fail.
"""

import base64
import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import tempfile
import threading
import time

from harness import Failed, must, poll_until

# The headless shell needs less processor time; tests/browser-engine runs the same pages in Chromium.
PROGRAM = os.environ.get("CODEBOX_BROWSER", "/usr/bin/chromium-headless-shell")


class Trap(socketserver.ThreadingTCPServer):
    """A proxy that refuses and records every request. Chromium sends it all requests for other machines."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self):
        self.requests = []
        super().__init__(("127.0.0.1", 0), TrapHandler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]


class TrapHandler(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline(4096).decode("latin1").strip()
        if line:
            self.server.requests.append(line)
        self.wfile.write(b"HTTP/1.1 502 Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


class WebSocket:
    """A client connection (RFC 6455) with text frames."""

    def __init__(self, port, path):
        self.socket = socket.create_connection(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        self.stream = self.socket.makefile("rb")
        must(b" 101 " in self.stream.readline(), "no web socket")
        while self.stream.readline().strip():
            pass

    def send(self, text):
        data = text.encode()
        size = len(data)
        head = bytes([0x81]) + (bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + struct.pack(">H", size) if size < 65536
                                else bytes([0x80 | 127]) + struct.pack(">Q", size))
        # RFC 6455 requires a mask. It protects caches in between, and there are none, so zeros will do.
        self.socket.sendall(head + b"\0\0\0\0" + data)

    def receive(self):
        """Returns the next message; None at the end of the connection."""
        message = b""
        while True:
            head = self.stream.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7F
            if size == 126:
                size = struct.unpack(">H", self.stream.read(2))[0]
            elif size == 127:
                size = struct.unpack(">Q", self.stream.read(8))[0]
            data = self.stream.read(size)
            kind = head[0] & 0x0F
            if kind == 8:
                return None
            if kind in (0, 1, 2):
                message += data
                if head[0] & 0x80:
                    return message.decode("utf-8", "replace")


class Chromium:
    """One browser process with a profile of its own."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="codebox-chromium.")
        self.trap = Trap()
        account = pwd.getpwnam("www-data")
        extra = {}
        if os.geteuid() == 0:
            # Chromium's own sandbox does not work as root.
            os.chown(self.profile, account.pw_uid, account.pw_gid)
            extra = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        # `--liftoff-only`: without V8's optimizing compiler for WebAssembly, which costs more time than it saves, as a sandbox lives for seconds here.
        self.process = subprocess.Popen([
            PROGRAM, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={self.profile}", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-gpu", "--disable-dev-shm-usage",
            "--js-flags=--liftoff-only", "--window-size=1280,1000", f"--proxy-server=http://127.0.0.1:{self.trap.port}", "--proxy-bypass-list=127.0.0.1;localhost", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
            env={"PATH": "/usr/bin:/bin", "HOME": self.profile, "LANG": "C.UTF-8"}, **extra)
        found = os.path.join(self.profile, "DevToolsActivePort")
        poll_until(lambda: self.process.poll() is not None or (os.path.exists(found) and open(found, encoding="utf-8").read().count("\n") >= 1), seconds=90,
                   what="Chromium did not start")
        must(self.process.poll() is None, f"Chromium ended with {self.process.poll()}")
        port, path = open(found, encoding="utf-8").read().split("\n")[:2]
        self.socket = WebSocket(int(port), path)
        self.lock, self.number, self.answers, self.sessions = threading.Lock(), 0, {}, {}
        self.changed = threading.Condition()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while (text := self.socket.receive()) is not None:
            message = json.loads(text)
            with self.changed:
                if "id" in message:
                    self.answers[message["id"]] = message
                else:
                    self.event(message)
                self.changed.notify_all()

    def event(self, message):
        method, values = message["method"], message.get("params", {})
        session = self.sessions.get(message.get("sessionId"))
        if method == "Target.attachedToTarget":
            made = Session(self, values["sessionId"], values["targetInfo"], session)
            self.sessions[values["sessionId"]] = made
            threading.Thread(target=made.begin, daemon=True).start()
        elif method == "Target.detachedFromTarget":
            self.sessions.pop(values["sessionId"], None)
        elif session is not None:
            session.event(method, values)

    def send(self, method, values=None, session=None, seconds=120):
        with self.lock:
            self.number += 1
            number = self.number
            self.socket.send(json.dumps({"id": number, "method": method, "params": values or {}, **({"sessionId": session} if session else {})}))
        with self.changed:
            must(self.changed.wait_for(lambda: number in self.answers, seconds), f"no answer to {method}")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def page(self, url="about:blank", own_storage=False):
        """Opens a tab; with `own_storage` it shares no cookies, caches and service workers with the other tabs."""
        context = self.send("Target.createBrowserContext") if own_storage else {}
        target = self.send("Target.createTarget", {"url": "about:blank", **context})["targetId"]
        session = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        poll_until(lambda: session in self.sessions and self.sessions[session].ready, seconds=30, what="no session")
        page = Page(self, self.sessions[session])
        if url != "about:blank":
            page.go(url)
        return page

    def close(self):
        with contextlib.suppress(Exception):
            self.send("Browser.close", seconds=10)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.trap.shutdown()
        self.trap.server_close()
        shutil.rmtree(self.profile, ignore_errors=True)


class Session:
    """One target: a page, a frame of another site, or a worker."""

    def __init__(self, browser, number, target, parent):
        self.browser, self.number, self.target, self.parent = browser, number, target, parent
        self.contexts, self.requests, self.console, self.ready = {}, [], [], False

    def begin(self):
        with contextlib.suppress(Failed):
            for method in ("Runtime.enable", "Network.enable"):
                with contextlib.suppress(Failed):
                    self.send(method)
            if self.target["type"] in ("page", "iframe"):
                self.send("Page.enable")
            self.send("Target.setAutoAttach", {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True})
        self.ready = True

    def send(self, method, values=None):
        return self.browser.send(method, values, self.number)

    def event(self, method, values):
        if method == "Runtime.executionContextCreated":
            self.contexts[values["context"]["uniqueId"]] = values["context"]
        elif method == "Runtime.executionContextDestroyed":
            self.contexts.pop(values.get("executionContextUniqueId"), None)
        elif method == "Runtime.executionContextsCleared":
            self.contexts.clear()
        elif method == "Page.javascriptDialogOpening":
            # For example the question whether to leave the page. Another thread accepts it, because accept() waits for a reply that this thread must read.
            threading.Thread(target=self.accept, daemon=True).start()
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(item.get("value", item.get("description", ""))) for item in values["args"]))
        elif method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details.get("text", "")))

    def accept(self):
        with contextlib.suppress(Failed):
            self.send("Page.handleJavaScriptDialog", {"accept": True})

    def evaluate(self, expression, context=None):
        values = {"expression": expression, "awaitPromise": True, "returnByValue": True, "userGesture": True}
        if context is not None:
            values["uniqueContextId"] = context
        answer = self.send("Runtime.evaluate", values)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failed(f"{details.get('exception', {}).get('description', details['text'])} in {expression[:200]}")
        return answer["result"].get("value")


class Page:
    """A tab with its frames; Chromium may run a frame in another process, as a target of its own."""

    def __init__(self, browser, session):
        self.browser, self.session, self.login = browser, session, {}

    def go(self, url):
        self.session.send("Page.navigate", {"url": url})
        poll_until(lambda: self.quietly("location.href !== 'about:blank' && document.readyState") == "complete", seconds=60, what=f"{url} did not load")

    def quietly(self, expression):
        try:
            return self.session.evaluate(expression)
        except Failed:
            return None

    def evaluate(self, expression):
        return self.session.evaluate(expression)

    def sessions(self):
        """Returns the sessions of this page, of its frames and of its workers."""
        found = [self.session]
        for one in list(self.browser.sessions.values()):
            at = one.parent
            while at is not None and at is not self.session:
                at = at.parent
            if at is self.session:
                found.append(one)
        return found

    def frames(self, part):
        """Returns sessions and contexts of the frames whose URL contains a text."""
        found = []
        for session in self.sessions():
            if session.target["type"] not in ("page", "iframe"):
                continue
            for unique, context in list(session.contexts.items()):
                if context.get("auxData", {}).get("isDefault"):
                    with contextlib.suppress(Failed):
                        if part in (session.evaluate("location.href", unique) or ""):
                            found.append((session, unique))
        return found

    def frame(self, part, expression, seconds=90):
        """Evaluates in the newest frame whose URL contains a text, as soon as the value is truthy; returns the value."""
        value = [None]

        def holds():
            for session, context in reversed(self.frames(part)):
                with contextlib.suppress(Failed):
                    value[0] = session.evaluate(expression, context)
                    if value[0]:
                        return True
            return False

        poll_until(holds, seconds=seconds, what=f"in a frame of {part}: {expression[:200]}")
        return value[0]

    def wait(self, expression, seconds=120):
        """Evaluates in the page until the value is truthy; returns it."""
        value = [None]

        def holds():
            value[0] = self.quietly(expression)
            return bool(value[0])

        try:
            poll_until(holds, seconds=seconds, what=expression[:200])
        except Failed as failed:
            raise Failed(f"{failed}; page: {str(self.quietly('document.body.innerText'))[:1500]}; console: {self.console()[-10:]}") from failed
        return value[0]

    def console(self):
        return [line for session in self.sessions() for line in session.console]

    def requests(self):
        return [url for session in self.sessions() for url in session.requests]

    def screenshot(self, path):
        data = self.session.send("Page.captureScreenshot", {"format": "png"})["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def cookies(self, url, values):
        self.login = values
        for name, value in values.items():
            self.session.send("Network.setCookie", {"url": url, "name": name, "value": value})

    def close(self):
        with contextlib.suppress(Failed):
            self.browser.send("Target.closeTarget", {"targetId": self.session.target["targetId"]})


def now():
    return time.monotonic()
