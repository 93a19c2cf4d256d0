"""A FastCGI client for one request."""

import socket
import struct

BEGIN, END, PARAMS, STDIN, STDOUT = 1, 3, 4, 5, 6


def record(kind, body):
    return struct.pack(">BBHHBx", 1, kind, 1, len(body), 0) + body


def pair(name, value):
    name, value = name.encode(), value.encode()
    sizes = b"".join(bytes([len(part)]) if len(part) < 128 else struct.pack(">I", len(part) | 1 << 31) for part in (name, value))
    return sizes + name + value


class Request:
    """A sent FastCGI request. `answer()` waits for the end of the response, `abort()` closes the connection."""

    def __init__(self, address, script, query):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM)
        self.socket.settimeout(60)
        self.socket.connect(address)
        params = {
            "SCRIPT_FILENAME": script,
            "SCRIPT_NAME": "/page.php",
            "REQUEST_METHOD": "GET",
            "REQUEST_URI": "/page.php?" + query,
            "QUERY_STRING": query,
            "SERVER_PROTOCOL": "HTTP/1.1",
            "GATEWAY_INTERFACE": "CGI/1.1",
        }
        body = b"".join(pair(*item) for item in params.items())
        self.socket.sendall(
            record(BEGIN, struct.pack(">HB5x", 1, 0)) + record(PARAMS, body) + record(PARAMS, b"") + record(STDIN, b"")
        )

    def read(self, size):
        data = b""
        while len(data) < size:
            chunk = self.socket.recv(size - len(data))
            if not chunk:
                raise ConnectionError("the server closed the connection")
            data += chunk
        return data

    def answer(self):
        """Returns the response body, or None when the server closed the connection early."""
        out = b""
        try:
            while True:
                _version, kind, _id, length, padding = struct.unpack(">BBHHBx", self.read(8))
                body = self.read(length)
                self.read(padding)
                if kind == STDOUT:
                    out += body
                elif kind == END:
                    break
        except ConnectionError:
            return None
        finally:
            self.socket.close()
        return out.partition(b"\r\n\r\n")[2].decode("utf-8", "replace")

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def abort(self):
        self.socket.close()
