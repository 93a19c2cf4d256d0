"""Starts nats-server, alone or as a cluster of three, on loopback ports that the kernel gives, with accounts and TLS if wanted.

A server is ready when its port file names its ports and it answers a request; `Client` speaks the text protocol of the server.
"""

import base64
import contextlib
import glob
import hashlib
import json
import os
import socket
import ssl
import subprocess
import tempfile

from .checks import must, poll_until
from .servers import free_ports

# --- nkeys: a user is an ed25519 key pair (RFC 8032), written in base32 with a prefix and a checksum ----------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def _add(a, b):
    """Adds two points in extended coordinates."""
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    x, y, z, t = f - e, h - g, h + g, f + e
    return x * y % P, z * t % P, y * z % P, x * t % P


def _times(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point, scalar = _add(point, point), scalar >> 1
    return result


_Y = 4 * pow(5, P - 2, P) % P
_X2 = (_Y * _Y - 1) * pow(D * _Y * _Y + 1, P - 2, P) % P
_X = pow(_X2, (P + 3) // 8, P)
if (_X * _X - _X2) % P:
    _X = _X * pow(2, (P - 1) // 4, P) % P
BASE = (_X if _X % 2 == 0 else P - _X, _Y, 1, (_X if _X % 2 == 0 else P - _X) * _Y % P)


def _encode(point):
    inverse = pow(point[2], P - 2, P)
    return (point[1] * inverse % P | (point[0] * inverse % P & 1) << 255).to_bytes(32, "little")


def _secret(seed):
    digest = hashlib.sha512(seed).digest()
    return int.from_bytes(digest[:32], "little") & ((1 << 254) - 8) | (1 << 254), digest[32:]


def sign(seed, message):
    scalar, prefix = _secret(seed)
    public = _encode(_times(scalar, BASE))
    nonce = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % L
    point = _encode(_times(nonce, BASE))
    challenge = int.from_bytes(hashlib.sha512(point + public + message).digest(), "little") % L
    return point + ((nonce + challenge * scalar) % L).to_bytes(32, "little")


def _written(prefix, data):
    raw, crc = prefix + data, 0
    for byte in raw:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return base64.b32encode(raw + crc.to_bytes(2, "little")).decode().rstrip("=")


class User:
    """A user of a server: name, permissions, and a new key pair."""

    def __init__(self, name, permissions):
        self.name, self.permissions = name, permissions
        self.raw = os.urandom(32)
        user = 20 << 3
        self.seed = _written(bytes([18 << 3 | user >> 5, (user & 31) << 3]), self.raw)
        self.public = _written(bytes([user]), _encode(_times(_secret(self.raw)[0], BASE)))


# --- the server -----------------------------------------------------------------------------------------------------------------


class Nats:
    """One nats-server with its own directory. `settings` are members of its configuration, those of `jetstream` in addition to the usual ones; None removes one."""

    def __init__(self, program, name="single", settings=None, scheme="nats", host="127.0.0.1", prefix=()):
        self.program, self.name, self.scheme, self.host, self.prefix = program, name, scheme, host, prefix
        self.directory = tempfile.mkdtemp(prefix=f"codebox-nats-{name}.")
        self.settings = settings or {}
        self.process = None
        self.port = -1

    @property
    def url(self):
        return f"{self.scheme}://{self.host}:{self.port}"

    @property
    def pid(self):
        return self.process.pid

    def spawn(self):
        """Starts the process and waits for its port; a server that starts again keeps its port and its data."""
        for old in glob.glob(f"{self.directory}/*.ports"):
            os.unlink(old)
        jetstream = {"store_dir": f"{self.directory}/data", "max_file_store": 2 << 30, "strict": True, **self.settings.get("jetstream", {})}
        config = {"server_name": self.name, "host": self.host, "port": self.port, "ports_file_dir": self.directory, **self.settings,
                  "jetstream": {name: value for name, value in jetstream.items() if value is not None}}
        path = f"{self.directory}/server.conf"
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
        with open(f"{self.directory}/server.log", "ab") as log:
            self.process = subprocess.Popen([*self.prefix, self.program, "-c", path], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.port = poll_until(self._port, seconds=60, what=f"{self.name} wrote no port file: {self.log()}")
        return self

    def start(self):
        self.spawn()
        poll_until(self.is_ready, seconds=60, what=f"{self.name} is not ready")
        return self

    def _port(self):
        must(self.process.poll() is None, f"{self.name} ended: {self.log()}")
        for path in glob.glob(f"{self.directory}/*.ports"):
            with contextlib.suppress(ValueError), open(path, encoding="utf-8") as file:
                return int(json.load(file)["nats"][0].rsplit(":", 1)[1])
        return 0

    def is_ready(self):
        """Whether the server greets clients and has JetStream."""
        with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), timeout=5) as connection:
            return json.loads(connection.makefile("rb").readline().split(b" ", 1)[1]).get("jetstream") is True
        return False

    def log(self):
        with contextlib.suppress(OSError), open(f"{self.directory}/server.log", encoding="utf-8", errors="replace") as file:
            return file.read()[-3000:]
        return ""

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process and self.process.poll() is None:
            self.kill()
        subprocess.run(["rm", "-rf", self.directory], check=True)


class Cluster:
    """Three servers on loopback. The ports of their routes are free ports, because each must know those of the others."""

    def __init__(self, program, settings=None, scheme="nats"):
        routes = free_ports(3)
        self.servers = []
        for number, port in enumerate(routes):
            joined = {"name": "codebox", "host": "127.0.0.1", "port": port, "routes": [f"nats://127.0.0.1:{other}" for other in routes if other != port]}
            self.servers.append(Nats(program, f"n{number + 1}", {**(settings or {}), "cluster": joined}, scheme))

    @property
    def url(self):
        return ",".join(server.url for server in self.servers)

    def start(self):
        for server in self.servers:
            server.spawn()
        for server in self.servers:
            poll_until(lambda one=server: one.is_ready() and one_answers(one), seconds=60, what=f"{server.name} has no leader: {server.log()}")
        return self

    def leader(self, stream):
        """Returns the server that leads a stream."""
        for server in self.servers:
            if server.process.poll() is None:
                with Client(server) as client:
                    name = client.request(f"$JS.API.STREAM.INFO.{stream}")["cluster"].get("leader")
                return next((one for one in self.servers if one.name == name), None)
        return None

    def close(self):
        for server in self.servers:
            server.close()


def one_answers(server):
    """Whether the group of servers has a leader."""
    # Servers drop requests while they elect a leader.
    with contextlib.suppress(OSError), Client(server, seconds=1) as client:
        return "error" not in client.request("$JS.API.INFO")
    return False


class Client:
    """A connection without the product's code; `user` logs in with the key of a `User`, `ca` is the file of an authority."""

    def __init__(self, server, user=None, ca=None, seconds=60):
        self.socket = socket.create_connection((server.host, server.port), timeout=seconds)
        self.lines = self.socket.makefile("rb")
        info = json.loads(self.lines.readline().split(b" ", 1)[1])
        if ca:
            self.lines.close()
            context = ssl.create_default_context(cafile=ca)
            self.socket = context.wrap_socket(self.socket, server_hostname=server.host)
            self.lines = self.socket.makefile("rb")
        options = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "protocol": 1, "lang": "test", "version": "0"}
        if user:
            signature = base64.urlsafe_b64encode(sign(user.raw, info["nonce"].encode())).decode().rstrip("=")
            options.update(nkey=user.public, sig=signature)
        self.ids, self.inbox = 0, f"_INBOX_{'operator' if not user or user.name == 'operator' else user.inbox}.{os.urandom(8).hex()}"
        self.send(f"CONNECT {json.dumps(options)}\r\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lines.close()
        self.socket.close()

    def send(self, text):
        self.socket.sendall(text.encode())

    def attempt(self, command):
        """Sends a command and returns what the server refuses before it answers a PING; empty if it accepts the command."""
        self.send(f"{command}PING\r\n")
        refused = ""
        while True:
            line = self.lines.readline().decode()
            must(line, "the server closed the connection")
            if line.startswith("PONG"):
                return refused
            if line.startswith("-ERR"):
                refused = line.strip()
            elif line.startswith(("MSG", "HMSG")):
                self.lines.read(int(line.split()[-1]) + 2)
            elif line.startswith("PING"):
                self.send("PONG\r\n")

    def publish(self, subject, body="", reply=""):
        return self.attempt(f"PUB {subject} {reply + ' ' if reply else ''}{len(body)}\r\n{body}\r\n")

    def entry(self, subject):
        """Returns the subject on which a stream listens for what it stores under `subject`. The account must have the right to read the settings of the stream."""
        kind, *parts = subject.split(".")
        stream = {"hosts": "HOSTS", "tasks": f"T_{parts[-1]}", "records": f"R_{parts[0]}", "objects": f"O_{parts[0]}"}[kind]
        listens = self.request(f"$JS.API.STREAM.INFO.CODEBOX_{stream}")["config"]["subjects"][0]
        return ".".join([*listens.split(".")[:2], subject])

    def subscribe(self, subject):
        self.ids += 1
        return self.attempt(f"SUB {subject} {self.ids}\r\n")

    def message(self):
        """Returns subject, reply and body of the next message."""
        while True:
            words = self.lines.readline().decode().split()
            must(words, "the server closed the connection")
            if words[0] in ("MSG", "HMSG"):
                sizes = 1 if words[0] == "MSG" else 2
                content = self.lines.read(int(words[-1]) + 2)[:-2]
                head = int(words[-2]) if sizes == 2 else 0
                return words[1], words[3] if len(words) == 4 + sizes else "", content[head:]
            must(words[0] != "-ERR", " ".join(words))
            if words[0] == "PING":
                self.send("PONG\r\n")

    def request(self, subject, body=""):
        """Returns the JSON answer to a request with a text or bytes."""
        self.ids += 1
        reply = f"{self.inbox}.{self.ids}"
        data = body.encode() if isinstance(body, str) else body
        self.socket.sendall(f"SUB {reply} {self.ids}\r\nPUB {subject} {reply} {len(data)}\r\n".encode() + data + b"\r\n")
        answer = json.loads(self.message()[2])
        self.send(f"UNSUB {self.ids}\r\n")
        return answer


def certificates(directory, *authorities, addresses=("127.0.0.1",)):
    """Writes `<name>.pem` of each authority, and `server.pem` and `server.key` for these addresses that the first one signed."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)
    for name in authorities:
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.pem",
                "-subj", f"/CN={name}", "-days", "30", "-addext", "basicConstraints=critical,CA:TRUE")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=nats")
    with open(f"{directory}/names", "w", encoding="utf-8") as file:
        file.write(f"subjectAltName={','.join(f'IP:{one}' for one in addresses)}\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", f"{authorities[0]}.pem", "-CAkey", f"{authorities[0]}.key", "-CAcreateserial",
            "-days", "30", "-extfile", "names", "-out", "server.pem")
