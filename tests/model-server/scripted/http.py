"""HTTP server: sessions, key checks, faults and the request log."""

import contextlib
import hashlib
import hmac
import http.server
import json
import re
import socket
import threading
import time

from . import protocols
from .script import Mismatch, Script, Session, answer, expect

#: Maximum request body in bytes; longer ones are not read.
LONGEST = 32 << 20
#: Maximum of concurrent requests; further ones get status 503.
AT_ONCE = 24
#: Maximum time in seconds for which a fault that sends no response keeps its connection open.
SILENCE = 120
SECRET_HEADERS = ("authorization", "x-api-key", "api-key", "cookie")


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Server:
    """A model API on 127.0.0.1 that answers from scripts. `scripts` maps names to scripts. The start of the URL path selects script
    and session: `/<script>/<session>/v1/chat/completions`. A script with the empty name gets the requests of any path."""

    def __init__(self, scripts=None, key=None, log=None, port=0):
        self.scripts = {name: script if isinstance(script, Script) else Script(script) for name, script in (scripts or {}).items()}
        self.key = key
        self.sessions = {}
        self.requests = []
        self.lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(AT_ONCE)
        self.stopping = threading.Event()
        self.log = open(log, "a", encoding="utf-8") if log else None
        handler = type("Handler", (Handler,), {"owner": self})
        self.http = Threads(("127.0.0.1", port), handler)
        self.port = self.http.server_address[1]
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def start(self):
        self.thread.start()
        return self

    def close(self):
        self.stopping.set()
        self.http.shutdown()
        self.thread.join(5)
        self.http.server_close()
        if self.log:
            self.log.close()

    def base(self, script, session="1", api="openai-chat"):
        """Returns the base URL of a session for a client of this protocol."""
        return f"http://127.0.0.1:{self.port}/{script}/{session}" + ("" if api == "anthropic-messages" else "/v1")

    def add(self, name, script):
        self.scripts[name] = script if isinstance(script, Script) else Script(script)

    def of(self, script, session="1"):
        """Returns the log rows of a session's requests, oldest first."""
        with self.lock:
            return [row for row in self.requests if row["session"] == f"{script}/{session}"]

    def session(self, prefix):
        name = re.sub(r"/v1$", "", prefix).strip("/")
        script = self.scripts.get(name.split("/")[0], self.scripts.get(""))
        if script is None:
            return None
        with self.lock:
            if name not in self.sessions:
                self.sessions[name] = Session(name, script)
            return self.sessions[name]

    def note(self, row):
        with self.lock:
            row["n"] = len(self.requests)
            self.requests.append(row)
            if self.log:
                self.log.write(json.dumps(row) + "\n")
                self.log.flush()


class Threads(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # a client that hung up


class Handler(http.server.BaseHTTPRequestHandler):
    owner = row = None
    protocol_version = "HTTP/1.1"
    timeout = 60
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.serve()

    def do_POST(self):
        self.serve()

    def serve(self):
        if not self.owner.slots.acquire(blocking=False):
            self.answer(503, {"error": {"message": "too many conversations at one time"}}, {"Retry-After": "1"})
            return
        try:
            self.handle_request()
        finally:
            self.owner.slots.release()

    def handle_request(self):
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = self.path.split("?")[0]
        self.row = row = {"method": self.command, "path": self.path, "time": time.time(), "status": None,
               "headers": {name: value if name not in SECRET_HEADERS else "sha256:" + digest(value) for name, value in headers.items()}}
        protocol, prefix = protocols.of(path)
        models = protocol is None and path.endswith("/models")
        session = self.owner.session(path[:-len("/models")] if models else prefix)
        row["session"] = session.name if session else None
        body = self.body(headers)
        if body is None or session is None or not (protocol or models):
            row["body"] = None if body is None else body[:2000].decode("utf-8", "replace")
            return self.refuse(row, 404 if body is not None else 413, "there is no such thing here")
        # The model list accepts the key in either header, because clients of both protocols request it.
        key = next((found for found in (each.key(headers) for each in ([protocol] if protocol else protocols.ALL)) if found), "")
        row["key_sha256"] = digest(key) if key else None
        wanted = session.script.key or self.owner.key
        if wanted and not hmac.compare_digest(key.encode(), wanted.encode()):
            return self.refuse(row, 401, "Incorrect API key provided", protocol)
        if models:
            names = session.script.models or ["scripted-1"]
            row["status"] = 200
            self.owner.note(row)
            return self.answer(200, {"object": "list", "data": [{"id": name, "object": "model", "type": "model", "display_name": name} for name in names]})
        try:
            asked = protocol.parse(json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            row["mismatch"] = f"not of the protocol: {type(error).__name__}: {error}"
            return self.refuse(row, 400, f"this is not {protocol.NAME}: {error}", protocol)
        row.update(protocol=protocol.NAME, model=asked.model, stream=asked.stream, system=asked.system, tools=sorted(asked.tools),
                   messages=[message.row() for message in asked.messages], bytes=len(body), last=asked.last)
        if session.script.models and asked.model not in session.script.models:
            return self.refuse(row, 404, f"The model `{asked.model}` does not exist", protocol)
        try:
            row["step"], step = session.next(asked)
            expect(step, asked)
            # Compute the arguments first, so that a mismatch is reported before any byte is sent.
            made = answer(step, asked, row["step"], key)
        except Mismatch as error:
            row["mismatch"] = str(error)
            return self.refuse(row, 400, f"the script does not go on: {error}", protocol)
        row["fault"] = step.get("fault") or ("cut" if "cut" in step else None)
        # Logged before the response, so that a client with a response finds the row.
        row["status"] = step.get("status", 200 if step.get("fault") != "redirect" else 307)
        self.owner.note(row)
        try:
            self.play(step, asked, made, protocol, key)
        except (BrokenPipeError, ConnectionResetError):
            row["left"] = "the client hung up"
        finally:
            row["ended"] = time.time()

    def body(self, headers):
        try:
            size = int(headers.get("content-length") or 0)
        except ValueError:
            return None
        return self.rfile.read(size) if 0 <= size <= LONGEST else None

    def refuse(self, row, status, message, protocol=None):
        row["status"] = status
        self.owner.note(row)
        self.answer(status, protocol.error(status, message) if protocol else {"error": {"message": message}})

    def answer(self, status, document, headers=None, raw=None):
        data = raw if raw is not None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    # --- faults ---------------------------------------------------------------------------

    def play(self, step, asked, made, protocol, key):
        fault = step.get("fault")
        message = step.get("message", "scripted fault").replace("${key}", key)
        stream = asked.stream and not step.get("whole")
        if fault == "status":
            self.answer(step["status"], protocol.error(step["status"], message), step.get("headers"))
        elif fault == "redirect":
            self.answer(step.get("status", 307), {}, {"Location": step["to"]})
        elif fault == "never":
            self.silence()
        elif fault == "empty":
            self.answer(200, {}, raw=b"")
        elif fault == "malformed":
            if stream:
                self.stream([next(protocol.events(made, 16)), b'data: {"choices": [{"delta": \n\n', b"data: <html>\n\n"], step)
            else:
                self.answer(200, {}, raw=b'{"choices": [')
        elif fault == "error-event":
            begin = next(protocol.events(made, 16))
            self.stream([begin, protocol.error_event(message)], step) if stream else self.answer(500, protocol.error(500, message))
        elif fault == "stall":
            made.text = made.text or "I begin to say something that does not end."
            self.stream(list(protocol.events(made, 16))[:3], step, then="silence") if stream else self.silence()
        elif fault == "oversized":
            self.oversized(step.get("bytes", 64 << 20), made, protocol, stream)
        elif not stream:
            data = json.dumps(protocol.whole(made)).encode()
            if "cut" in step:
                self.answer(200, None, {"Content-Length": str(len(data)), "Connection": "close"}, raw=data[: len(data) // 2])
                self.hang_up()
            else:
                self.answer(200, None, raw=data)
        else:
            events = list(protocol.events(made, step.get("pace", {}).get("characters", 40)))
            if "cut" in step:
                self.stream(events[: step["cut"]], step, then="hang up")
            else:
                self.stream(events, step)

    def begin_stream(self, headers=None):
        self.send_response(200)
        for name, value in {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache", "Transfer-Encoding": "chunked",
                            **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def piece(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def stream(self, events, step, then="end"):
        pause = step.get("pace", {}).get("milliseconds", 0) / 1000
        self.begin_stream(step.get("headers"))
        size = step.get("pace", {}).get("bytes")
        if size:  # splits even single events and characters across writes
            joined = b"".join(events)
            events = [joined[start:start + size] for start in range(0, len(joined), size)]
        for event in events:
            self.piece(event)
            if pause and self.owner.stopping.wait(pause):
                return
        if then == "silence":
            self.silence()
        elif then == "hang up":
            self.hang_up()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def oversized(self, size, made, protocol, stream):
        """Sends an oversized response: one line or one document of the requested length."""
        block = b"x" * (1 << 16)
        if stream:
            self.begin_stream()
            self.piece(next(protocol.events(made, 16)))
            self.piece(b"data: ")
            for _ in range(size // len(block)):
                self.piece(block)
            self.wfile.write(b"0\r\n\r\n")
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(size))
        self.end_headers()
        for _ in range(size // len(block)):
            self.wfile.write(block)

    def silence(self):
        """Sends nothing until the client disconnects, the server stops, or SILENCE seconds have passed."""
        self.row["silent"] = True
        end = time.monotonic() + SILENCE
        self.connection.settimeout(0.1)
        while time.monotonic() < end and not self.owner.stopping.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        self.hang_up()

    def hang_up(self):
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
