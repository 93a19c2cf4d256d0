#!/usr/bin/env python3
"""Sends one FastCGI request to php-fpm, like a web server; prints status, headers and body.

    fastcgi.py <socket> <document root> <method> <uri> [--user name:password] [--body file]
"""
import argparse
import base64
import socket
import struct
import sys

BEGIN, PARAMS, STDIN, STDOUT, STDERR, END = 1, 4, 5, 6, 7, 3


def record(kind, content):
    return struct.pack("!BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def pair(name, value):
    def length(text):
        return bytes([len(text)]) if len(text) < 128 else struct.pack("!I", len(text) | 1 << 31)
    name, value = name.encode(), value.encode()
    return length(name) + length(value) + name + value


def chunks(kind, content):
    for at in range(0, len(content), 65000):
        yield record(kind, content[at:at + 65000])
    yield record(kind, b"")


def main():
    parser = argparse.ArgumentParser()
    for name in ("socket", "root", "method", "uri"):
        parser.add_argument(name)
    parser.add_argument("--user")
    parser.add_argument("--body")
    given = parser.parse_args()
    body = open(given.body, "rb").read() if given.body else b""
    path, _, query = given.uri.partition("?")
    params = {
        "SCRIPT_FILENAME": given.root + "/index.php", "SCRIPT_NAME": "/index.php", "DOCUMENT_ROOT": given.root,
        "REQUEST_METHOD": given.method, "REQUEST_URI": given.uri, "DOCUMENT_URI": path, "QUERY_STRING": query,
        "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": "application/json" if body else "",
        "SERVER_PROTOCOL": "HTTP/1.1", "GATEWAY_INTERFACE": "CGI/1.1", "HTTP_HOST": "localhost",
        "SERVER_NAME": "localhost", "SERVER_PORT": "80", "REMOTE_ADDR": "127.0.0.1",
    }
    if given.user:
        params["HTTP_AUTHORIZATION"] = "Basic " + base64.b64encode(given.user.encode()).decode()
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(120)
    connection.connect(given.socket)
    connection.sendall(record(BEGIN, struct.pack("!HB5x", 1, 0)))
    for part in chunks(PARAMS, b"".join(pair(*item) for item in params.items())):
        connection.sendall(part)
    for part in chunks(STDIN, body):
        connection.sendall(part)
    stream = connection.makefile("rb")
    said = b""
    while header := stream.read(8):
        _, kind, _, length, padding, _ = struct.unpack("!BBHHBB", header)
        content = stream.read(length)
        stream.read(padding)
        if kind == STDOUT:
            said += content
        elif kind == STDERR:
            sys.stderr.buffer.write(content)
        elif kind == END:
            break
    if not said.startswith(b"Status:"):
        said = b"Status: 200 OK\r\n" + said
    sys.stdout.buffer.write(said)


main()
