"""A developer with an empty home, and a loopback server in place of wordpress.org."""

import hashlib
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import zipfile

from .checks import must
from .users import PATH

PLUGIN = "<?php\n/**\n * Plugin Name: Hello\n * Version: 1.0\n */\nfunction hello_text() { return 'helo'; }\n"


class Origin:
    """wordpress.org on a loopback port: the version check, an archive with its sha1, and the checksums of its files."""

    def __init__(self, wordpress):
        self.version = read_version(wordpress)
        self.asked = []
        archive = tempfile.TemporaryFile()
        checksums = {}
        with zipfile.ZipFile(archive, "w") as out:
            for directory, _, files in os.walk(wordpress):
                for name in files:
                    path = os.path.join(directory, name)
                    inner = os.path.relpath(path, wordpress)
                    if inner == "wp-config.php" or inner.startswith("wp-content/"):
                        continue
                    with open(path, "rb") as file:
                        data = file.read()
                    checksums[inner] = hashlib.md5(data).hexdigest()
                    # Only a part is compressed: that takes less time, and `wp-codebox` reads both kinds of entries.
                    out.writestr(f"wordpress/{inner}", data, zipfile.ZIP_DEFLATED if inner.startswith("wp-admin/") else None, 1)
            out.writestr("wordpress/wp-content/index.php", "<?php\n")
            out.writestr("wordpress/wp-content/themes/index.php", "<?php\n")
        archive.seek(0)
        body = archive.read()
        archive.close()
        documents = {
            f"/release/wordpress-{self.version}.zip": body,
            f"/release/wordpress-{self.version}.zip.sha1": hashlib.sha1(body).hexdigest().encode(),
            "/core/version-check/1.7/": json.dumps({"offers": [{"response": "upgrade", "version": self.version}]}).encode(),
            "/core/checksums/1.0/": json.dumps({"checksums": checksums}).encode(),
        }
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                path = self.path.split("?")[0]
                origin.asked.append(path)
                data = documents.get(path)
                self.send_response(404 if data is None else 200)
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def read_version(wordpress):
    with open(os.path.join(wordpress, "wp-includes/version.php"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("$wp_version"):
                return line.split("'")[1]
    raise AssertionError("no version")


class Developer:
    """A user with an empty home and one plugin, who calls `wp-codebox` in the plugin's directory."""

    def __init__(self, program, home, uid, prefix, origin):
        self.program, self.home, self.uid, self.prefix = program, home, uid, prefix
        self.plugin = os.path.join(home, "hello")
        os.makedirs(self.plugin)
        self.write("hello.php", PLUGIN)
        self.own(home)
        self.environment = {**PATH, "HOME": home, "WP_CODEBOX_WORDPRESS_ORIGIN": origin.url, "PATH": PATH["PATH"]}

    def write(self, name, text):
        with open(os.path.join(self.plugin, name), "w", encoding="utf-8") as file:
            file.write(text)
        self.own(self.plugin)

    def own(self, path):
        """Gives a tree to the developer. The home has thousands of files after its first run, so cases name what they made."""
        subprocess.run(["chown", "-R", "-h", f"{self.uid}:{self.uid}", path], check=True)

    def read(self, name="hello.php"):
        with open(os.path.join(self.plugin, name), encoding="utf-8") as file:
            return file.read()

    def call(self, *arguments, cwd=None, check=0, **environment):
        done = subprocess.run([*self.prefix, "env", "-C", cwd or self.plugin, self.program, *arguments], env={**self.environment, **environment},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)
        must(check is None or done.returncode == check, f"{arguments}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done


if __name__ == "__main__":
    # Serves the WordPress in a directory until standard input ends; prints the address.
    served = Origin(sys.argv[1])
    print(served.url, flush=True)
    sys.stdin.read()
    served.close()
