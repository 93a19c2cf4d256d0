"""The parent site: WordPress on SQLite behind nginx and php-fpm, with or without the extension, with the plugin as `cargo xtask dist` built it."""

import base64
import contextlib
import hashlib
import html
import http.client
import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from urllib.parse import urlencode

from harness import Failed, must
from harness.servers import free_ports, nginx, php_fpm
from harness.templates import seed_template

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OWNER = "www-data"
PLUGIN = os.environ.get("CODEBOX_PLUGIN") or os.path.join(ROOT, "dist", "wp-codebox")
RUNTIME = os.environ.get("CODEBOX_BROWSER_ZIP") or os.path.join(ROOT, "dist", "codebox-browser.zip")
PASSWORD = "correct-horse-battery"


class Parent:
    """One site, its servers, and HTTP sessions of its users."""

    def __init__(self, environment, with_extension=False):
        self.environment = environment
        self.directory = tempfile.mkdtemp(prefix="codebox-browser-sessions.")
        os.chmod(self.directory, 0o755)
        self.account = pwd.getpwnam(OWNER)
        self.port, self.pool = free_ports(2)
        self.url = f"http://127.0.0.1:{self.port}"
        for name in ("db", "servers", "tmp"):
            os.mkdir(self.path(name))
        # The file cache of opcodes makes each WP-CLI process take a third of the processor time.
        for name in ("state", "opcache"):
            os.mkdir(self.path(name), 0o700)
        self.give(*(self.path(name) for name in ("db", "tmp", "state", "opcache")))
        if with_extension:
            seed_template(self.path("state"))
        self.extension = self.settings() if with_extension else {}
        self.fpm = php_fpm(self.path("servers"), {"site": {"port": self.pool, "max_children": 4, "settings": {
            "upload_max_filesize": "64M", "post_max_size": "80M", "memory_limit": "256M", "opcache.revalidate_freq": "0", "upload_tmp_dir": self.path("tmp")}}}, self.extension, OWNER)
        self.nginx = nginx(self.path("servers"), self.path("site"), {self.port: self.pool})
        config = self.path("servers", "nginx.conf")
        with open(config, encoding="utf-8") as file:
            text = file.read()
        # Module scripts need the media type of JavaScript; the archive of the runtime files is larger than the default limit.
        text = text.replace("http {\n", "http {\n\tinclude /etc/nginx/mime.types;\n\tdefault_type application/octet-stream;\n")
        with open(config, "w", encoding="utf-8") as file:
            file.write(text.replace("client_max_body_size 8m", "client_max_body_size 80m"))

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def give(self, *paths):
        for path in paths:
            for directory, names, files in os.walk(path):
                for name in [directory] + [os.path.join(directory, n) for n in names + files]:
                    os.lchown(name, self.account.pw_uid, self.account.pw_gid)

    def settings(self):
        """Returns the ini settings of the extension."""
        given = self.environment
        return {"extension": given["CODEBOX_SO"], "wp_codebox.state_dir": self.path("state"), "wp_codebox.share_dir": given["CODEBOX_SHARE"],
                "wp_codebox.runner": given["CODEBOX"], "wp_codebox.launcher": given["CODEBOX_LAUNCH"], "wp_codebox.php_binary": given["CODEBOX_PHP"]}

    def build(self):
        """Creates the site with the plugin, two administrators and an editor, and starts the servers."""
        site, share = self.path("site"), self.environment["CODEBOX_SHARE"]
        shutil.copytree(self.environment["CODEBOX_WORDPRESS"], site, symlinks=True)
        content = os.path.join(site, "wp-content")
        sqlite = os.path.join(content, "mu-plugins", "sqlite-database-integration")
        shutil.copytree(os.path.join(share, "sqlite-database-integration"), sqlite)
        with open(os.path.join(sqlite, "db.copy"), encoding="utf-8") as file:
            dropin = file.read()
        dropin = dropin.replace("{SQLITE_IMPLEMENTATION_FOLDER_PATH}", sqlite).replace("{SQLITE_PLUGIN}", "sqlite-database-integration/load.php")
        self.write("wp-content/db.php", dropin)
        shutil.copytree(PLUGIN, os.path.join(content, "plugins", "wp-codebox"))
        shutil.copytree(os.path.join(os.path.dirname(os.path.abspath(__file__)), "banner"), os.path.join(content, "plugins", "banner"))
        # WordPress puts its command palette on every page of wp-admin: four megabytes of scripts, two thirds of the processor time of a page.
        self.write("wp-content/mu-plugins/palette.php",
                   "<?php isset( $_GET['palette'] ) || remove_action( 'admin_enqueue_scripts', 'wp_enqueue_command_palette_assets' );\n")
        self.configure({})
        self.give(site)
        self.wp("core", "install", f"--url={self.url}", "--title=Parent", "--admin_user=admin", "--admin_email=admin@example.org",
                f"--admin_password={PASSWORD}", "--skip-email")
        # One WP-CLI process, because each loads WordPress. Without avatars: the admin bar of the parent would load a picture from gravatar.com,
        # and a request of the sandbox to that host would go unnoticed.
        self.wp("eval", f"""
            $GLOBALS['wp_rewrite']->set_permalink_structure( '/%postname%/' );
            flush_rewrite_rules( false );
            update_option( 'show_avatars', '0' );
            foreach ( [ 'second' => 'administrator', 'editor' => 'editor' ] as $name => $role ) {{
                wp_insert_user( [ 'user_login' => $name, 'user_email' => "$name@example.org", 'role' => $role, 'user_pass' => '{PASSWORD}' ] );
            }}""")
        self.wp("plugin", "activate", "wp-codebox", "banner")
        self.fpm.start()
        self.nginx.start()

    def configure(self, more):
        """Writes wp-config.php with further constants. Salts stay the same for the life of the site."""
        constants = {"DB_NAME": "wordpress", "DB_DIR": self.path("db") + "/", "DB_FILE": "test.sqlite", "DB_USER": "", "DB_PASSWORD": "", "DB_HOST": "",
                     "DB_CHARSET": "utf8mb4", "DB_COLLATE": "", "WP_ENVIRONMENT_TYPE": "local", "WP_DEBUG": True, "WP_DEBUG_DISPLAY": False,
                     "WP_DEBUG_LOG": self.path("servers", "debug.log"), "DISABLE_WP_CRON": True, "WP_HTTP_BLOCK_EXTERNAL": True,
                     "AUTOMATIC_UPDATER_DISABLED": True, **more}
        for name in ("AUTH", "SECURE_AUTH", "LOGGED_IN", "NONCE"):
            for kind in ("KEY", "SALT"):
                constants[f"{name}_{kind}"] = hashlib.sha256(f"{self.directory}{name}{kind}".encode()).hexdigest()
        rows = "".join(f"define( '{name}', {json.dumps(value)} );\n" for name, value in constants.items())
        self.write("wp-config.php", "<?php\n" + rows + "$table_prefix = 'wp_';\ndefined( 'ABSPATH' ) || define( 'ABSPATH', __DIR__ . '/' );\n"
                   "require_once ABSPATH . 'wp-settings.php';\n")
        with open(self.path("servers", "debug.log"), "a", encoding="utf-8"):
            os.lchown(self.path("servers", "debug.log"), self.account.pw_uid, self.account.pw_gid)

    def write(self, name, text):
        path = self.path("site", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.lchown(path, self.account.pw_uid, self.account.pw_gid)

    def read(self, name):
        with open(self.path("site", name), encoding="utf-8") as file:
            return file.read()

    def wp(self, *arguments, check=True):
        """Runs WP-CLI on the site as the user of the web server."""
        settings = {"opcache.enable_cli": 1, "opcache.file_cache": self.path("opcache"), "opcache.file_cache_only": 1, **self.extension}
        call = [self.environment["CODEBOX_PHP"]] + [part for name, value in settings.items() for part in ("-d", f"{name}={value}")]
        call += [self.environment["CODEBOX_WP_CLI"], "--path=" + self.path("site"), *arguments]
        done = subprocess.run(call, capture_output=True, text=True, check=False, user=OWNER, group=OWNER, extra_groups=[], cwd="/",
                              env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "WP_CLI_CONFIG_PATH": "/dev/null", "WP_CLI_DISABLE_AUTO_CHECK_UPDATE": "1"})
        if check and done.returncode != 0:
            raise RuntimeError(f"wp {arguments[:2]} ended with {done.returncode}: {done.stdout[-500:]} {done.stderr[-1500:]}")
        return done.stdout if check else done

    def install_runtime(self):
        """Installs the runtime files, if they are not there, with WP-CLI, which reads the archive as the user of the web server."""
        if os.path.isdir(self.path("site/wp-content/uploads/wp-codebox-browser-runtime")):
            return
        copy = self.path("tmp", "codebox-browser.zip")
        shutil.copy(RUNTIME, copy)
        os.chmod(copy, 0o644)
        self.wp("codebox", "browser-assets", "install", copy)

    def close(self):
        for server in (self.nginx, self.fpm):
            with contextlib.suppress(Exception):
                server.stop()
        if os.environ.get("CODEBOX_KEEP") != "1":
            shutil.rmtree(self.directory, ignore_errors=True)

    def login(self, user):
        visitor = Visitor(self)
        visitor.login(user)
        return visitor

    def complaints(self):
        """Returns what PHP wrote about this plugin into the debug log."""
        with open(self.path("servers", "debug.log"), encoding="utf-8", errors="replace") as file:
            return [line for line in file.read().splitlines() if "wp-codebox" in line or "WPCodebox" in line]


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, {name.lower(): value for name, value in headers}, body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    @property
    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise Failed(f"no JSON: {self.status} {self.text[:500]}") from error

    def __str__(self):
        return f"{self.status}: {self.text[:600]}"


class Visitor:
    """HTTP requests with the cookies of one user."""

    def __init__(self, parent):
        self.parent, self.cookies = parent, {}

    def request(self, method, url, body=None, headers=None):
        path = url.removeprefix(self.parent.url)
        connection = http.client.HTTPConnection("127.0.0.1", self.parent.port, timeout=120)
        sent = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()), **(headers or {})}
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            for name, value in answer.getheaders():
                if name.lower() == "set-cookie":
                    key, _, rest = value.partition("=")
                    self.cookies[key] = rest.split(";")[0]
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    def get(self, url, **headers):
        return self.request("GET", url, None, {name.replace("_", "-"): value for name, value in headers.items()})

    def login(self, user):
        self.get("/wp-login.php")
        self.request("POST", "/wp-login.php", urlencode({"log": user, "pwd": PASSWORD, "wp-submit": "Log In", "testcookie": "1"}),
                     {"Content-Type": "application/x-www-form-urlencoded"})
        must(any(name.startswith("wordpress_logged_in") for name in self.cookies), f"{user} is not logged in: {self.cookies}")

    def link(self, kind, slug):
        """Returns the address that opens a plugin or theme, from the page that lists them."""
        page = self.get("/wp-admin/admin.php?page=wp-codebox-browser")
        found = [html.unescape(address) for address in re.findall(r'href="([^"]*page=wp-codebox-browser[^"]*)"', page.text)]
        found = [address for address in found if f"kind={kind}&slug={slug}&" in address]
        must(len(found) == 1, f"{kind} {slug}: {found} in {page}")
        return found[0]

    def open(self, kind, slug, more=""):
        """Opens a sandbox and returns the configuration of its page."""
        page = self.get(self.link(kind, slug) + more)
        found = re.search(r"window\.wpCodeboxBrowserPage = (\{.*?\});\s*(?:\n|</script>)", page.text, re.S)
        must(found is not None, f"no configuration: {notices(page)}")
        return json.loads(found.group(1))

    def run(self, route, value):
        """Runs an ability as the page does."""
        answer = self.request("POST", route["url"], json.dumps({"input": value}), {"Content-Type": "application/json", "X-WP-Nonce": route["nonce"]})
        if answer.status == 405:
            query = urlencode({f"input[{key}]": item for key, item in value.items()})
            answer = self.request("GET", route["url"] + "?" + query, None, {"X-WP-Nonce": route["nonce"]})
        return answer

    def blueprint(self, page):
        ref = page["blueprint_ref"]
        answer = self.run(page["hydrate"], {"ref": ref["ref"] if isinstance(ref, dict) else ref})
        must(answer.status == 200, answer)
        return answer.json["blueprint"]


def notices(page):
    return re.findall(r'<div class="notice[^>]*>.*?</div>', page.text, re.S) or str(page)


def multipart(fields, files):
    """Returns body and content type of a form with files."""
    boundary = base64.b16encode(os.urandom(12)).decode()
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    for name, (filename, data) in files.items():
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\nContent-Type: application/zip\r\n\r\n'.encode()
                     + data + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def now():
    return time.monotonic()
