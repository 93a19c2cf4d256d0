"""A FastCGI request whose response is read incrementally by line."""

import socket
import struct

from harness.fastcgi import BEGIN, END, PARAMS, STDIN, STDOUT, pair, record

STDERR = 7
RESPONDER = 1


class Request:
    """One POST to a script. `lines` grows with each complete line of the response body."""

    def __init__(self, port, script, body):
        self.lines, self.errors, self.ended = [], b"", False
        self._bytes, self._text, self._in_body = b"", b"", False
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        values = {"SCRIPT_FILENAME": script, "SCRIPT_NAME": "/" + script.rsplit("/", 1)[1], "REQUEST_METHOD": "POST",
                  "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(body)), "SERVER_PROTOCOL": "HTTP/1.1",
                  "GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_URI": "/", "QUERY_STRING": "", "REMOTE_ADDR": "127.0.0.1"}
        message = record(BEGIN, struct.pack("!HB5x", RESPONDER, 0)) + record(PARAMS, b"".join(pair(*item) for item in values.items())) + record(PARAMS, b"")
        for start in range(0, len(body), 60000):
            message += record(STDIN, body[start:start + 60000])
        self._socket.sendall(message + record(STDIN, b""))
        self._socket.setblocking(False)

    def poll(self):
        """Reads, without waiting, what php-fpm has sent since the last call."""
        while not self.ended:
            try:
                piece = self._socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            if not piece:
                self.ended = True
                return
            self._bytes += piece
            self._records()

    def _records(self):
        while len(self._bytes) >= 8:
            _version, kind, _id, length, padding = struct.unpack("!BBHHBx", self._bytes[:8])
            if len(self._bytes) < 8 + length + padding:
                return
            body, self._bytes = self._bytes[8:8 + length], self._bytes[8 + length + padding:]
            if kind == STDOUT:
                self._take(body)
            elif kind == STDERR:
                self.errors += body
            elif kind == END:
                self.ended = True

    def _take(self, body):
        self._text += body
        if not self._in_body:
            if b"\r\n\r\n" not in self._text:
                return
            self._text = self._text.split(b"\r\n\r\n", 1)[1]
            self._in_body = True
        *whole, self._text = self._text.split(b"\n")
        self.lines += [line.decode("utf-8", "replace") for line in whole]

    def close(self):
        self._socket.close()
