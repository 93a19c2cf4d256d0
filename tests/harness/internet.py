"""Two HTTP hosts inside a network namespace of the test process.

Each test process unshares its network and mount namespace. There, the loopback interface has
TEST-NET addresses, /etc/hosts names them, and the CA bundle ends with a test authority. The
product needs no test switch. The namespace has no route, so no packet leaves it.
"""

import ctypes
import http.server
import json
import os
import shutil
import ssl
import subprocess
import tempfile
import threading

#: TEST-NET-3: the policy treats it as public, and no network routes it.
ADDRESS = "203.0.113.10"
HOSTS = f"""127.0.0.1 localhost
{ADDRESS} allowed.test other.test api.wordpress.org
10.1.2.3 private.test
{ADDRESS} mixed.test
10.1.2.3 mixed.test
127.0.0.1 loop.test
"""
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000


def enter():
    """Unshares the network and mount namespace of this process and its later children."""
    libc = ctypes.CDLL(None, use_errno=True)
    for done in (libc.unshare(CLONE_NEWNET | CLONE_NEWNS), libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)):
        if done != 0:
            raise OSError(ctypes.get_errno(), "only root can create the namespaces of this suite")


def command(*arguments):
    subprocess.run(arguments, check=True, capture_output=True)


class World:
    """Addresses, host names, certificates and HTTP servers of the test hosts."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="codebox-egress.")
        os.chmod(self.directory, 0o755)
        self.requests = []
        #: Media type and body by path, for clients that need more than a line of text.
        self.files = {}
        #: The credential that a request to /store carried, and the function that makes the response of /stored from it.
        self.kept, self.stored = "", lambda text: [text.encode()]
        self.lock = threading.Lock()
        #: A request to /hold sets `held` and gets no response before `release` is set, so that a test can inspect the guest meanwhile.
        self.held, self.release = threading.Event(), threading.Event()
        command("ip", "link", "set", "lo", "up")
        command("ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
        self.cover("/etc/hosts", HOSTS.encode())
        self.certificates()
        self.servers = [self.serve(80, None), self.serve(443, self.tls())]

    def close(self):
        for server in self.servers:
            server.shutdown()
        shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.directory, name)

    def cover(self, target, content):
        """Bind-mounts a file with this content over a path, in this mount namespace only."""
        source = self.path("cover-" + target.strip("/").replace("/", "-"))
        with open(source, "wb") as file:
            file.write(content)
        os.chmod(source, 0o644)
        command("mount", "--bind", source, target)

    def certificates(self):
        authority, leaf = self.path("authority"), self.path("leaf")
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command("openssl", "req", "-x509", *key, "-keyout", authority + ".key", "-out", authority + ".pem", "-days", "2",
                "-subj", "/CN=Test Authority")
        command("openssl", "req", *key, "-keyout", leaf + ".key", "-out", leaf + ".csr", "-subj", "/CN=allowed.test")
        with open(leaf + ".ext", "w", encoding="ascii") as file:
            file.write("subjectAltName=DNS:allowed.test,DNS:other.test,DNS:api.wordpress.org\n")
        command("openssl", "x509", "-req", "-in", leaf + ".csr", "-CA", authority + ".pem", "-CAkey", authority + ".key",
                "-CAcreateserial", "-days", "2", "-extfile", leaf + ".ext", "-out", leaf + ".pem")
        with open(BUNDLE, "rb") as system, open(authority + ".pem", "rb") as own:
            self.cover(BUNDLE, system.read() + own.read())

    def tls(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path("leaf.pem"), self.path("leaf.key"))
        return context

    def serve(self, port, tls):
        world = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def log_message(self, *_):
                pass

            def do_POST(self):
                self.do_GET()

            def do_GET(self):
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                scheme = "https" if tls else "http"
                with world.lock:
                    world.requests.append({"scheme": scheme, "method": self.command, "host": self.headers.get("Host"),
                                           "path": self.path, "headers": {name.lower(): value for name, value in self.headers.items()}, "body": body})
                world.answer(self, scheme)

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        server = Server((ADDRESS, port), Handler)
        if tls:
            server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def answer(self, request, scheme):
        path = request.path.split("?")[0]
        headers, status = {}, 200
        text = f"hello from {scheme}://{request.headers.get('Host')}{path}\n"
        if path.startswith("/redirect/"):
            status, headers = 302, {"Location": path[len("/redirect/"):].replace("_", "/")}
        elif path == "/echo":
            text = "\n".join(f"{name}: {value}" for name, value in request.headers.items()) + "\n"
            headers = {"X-Echo": request.headers.get("Authorization") or "none"}
        elif path == "/echo-json":
            text = json.dumps({"you said": request.headers.get("Authorization")}) + "\n"
        elif path == "/store":
            self.kept = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        elif path.startswith("/stored"):
            text = "".join(f"form {form.decode()}\n" for form in self.stored(self.kept))
            headers = {"X-Stored": self.kept, **({"Content-Encoding": "gzip"} if path == "/stored-gzip" else {})}
        elif path == "/hold":
            self.held.set()
            self.release.wait(90)
        request.send_response(status)
        kind, data = self.files.get(path, ("text/plain", text.encode()))
        for name, value in {**headers, "Content-Type": kind, "Content-Length": str(len(data)), "Connection": "close"}.items():
            request.send_header(name, value)
        request.end_headers()
        # Two writes, so that an echoed secret may arrive split across reads.
        middle = len(data) // 2
        request.wfile.write(data[:middle])
        request.wfile.flush()
        request.wfile.write(data[middle:])

    def seen(self, **wanted):
        """Returns the requests that reached a host, newest last."""
        with self.lock:
            return [row for row in self.requests if all(row[key] == value for key, value in wanted.items())]
