"""An HTTPS client like that of a package manager: CONNECT, TLS through the tunnel, one request.

`python3 connect.py HOST PORT PATH`; prints the status and the first line of the body.
"""

import http.client
import os
import ssl
import sys
import urllib.parse

host, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
proxy = urllib.parse.urlsplit(os.environ["https_proxy"])
client = http.client.HTTPSConnection(proxy.hostname, proxy.port, timeout=20, context=ssl.create_default_context())
client.set_tunnel(host, port)
try:
    client.request("GET", path)
    answer = client.getresponse()
    print(answer.status, answer.read().decode().split("\n")[0])
except OSError as error:
    print("0", error)
