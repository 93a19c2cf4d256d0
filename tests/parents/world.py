"""Creates the parent sites (sites that start sandboxes): several WordPress versions, on MariaDB and on SQLite.

All files are below one scratch directory, which is removed at the end. The database server listens
on a socket in this directory and on no network, and is stopped by its process id.
"""

import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

from harness import Failed, must, poll_until
from harness.templates import seed_template

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Call:
    """Exit status and output of one command."""

    def __init__(self, arguments, done):
        self.arguments, self.exit = arguments, done.returncode
        self.out, self.err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def __str__(self):
        return f"{self.arguments}\nexit {self.exit}\nstdout: {self.out[-3000:]}\nstderr: {self.err[-2000:]}"

    def expect(self, code=0):
        must(self.exit == code, f"expected exit {code}\n{self}")
        return self

    @property
    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise Failed(f"no JSON: {error}\n{self}") from error


class MariaDb:
    """A MariaDB server for these tests only."""

    def __init__(self, work):
        self.home = work / "mariadb"
        self.socket = self.home / "s"
        self.process = None

    def start(self):
        """Starts the server at its first use."""
        if self.process is not None:
            return
        for program in ("mariadbd", "mariadb-install-db", "mariadb"):
            must(shutil.which(program), f"{program} is not installed; run: apt-get install mariadb-server")
        data = self.home / "data"
        self.home.mkdir()
        user = []
        if os.getuid() == 0:
            shutil.chown(self.home, "mysql", "mysql")
            user = ["--user=mysql"]
        log = self.home / "log"
        with open(log, "wb") as out:
            made = subprocess.run(
                ["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db", *user],
                stdout=out, stderr=out, check=False,
            )
            must(made.returncode == 0, f"mariadb-install-db failed\n{log.read_text()[-2000:]}")
            self.process = subprocess.Popen(
                ["mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={self.socket}", "--skip-networking", f"--pid-file={self.home}/pid", *user],
                stdout=out, stderr=out, start_new_session=True,
            )

        def answers():
            must(self.process.poll() is None, f"mariadbd ended\n{log.read_text()[-2000:]}")
            return self.query("SELECT 1", quiet=True)

        poll_until(answers, what="mariadbd does not answer")

    def query(self, sql, quiet=False):
        """Returns rows as text."""
        done = subprocess.run(["mariadb", "--no-defaults", f"--socket={self.socket}", "-uroot", "-N", "-e", sql], capture_output=True, check=False)
        must(quiet or done.returncode == 0, f"{sql}: {done.stderr.decode()}")
        return done.stdout.decode() if done.returncode == 0 else ""

    def stop(self):
        """Stops the server by its process id."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


class Site:
    """One WordPress with the plugin's files in it, not yet activated."""

    def __init__(self, world, name, core, database):
        self.world, self.name, self.database = world, name, database
        self.path = world.work / name
        self.log = world.work / f"{name}.log"
        shutil.copytree(core, self.path)
        content = self.path / "wp-content"
        (content / "mu-plugins").mkdir(exist_ok=True)
        shutil.copytree(world.plugin, content / "plugins/wp-codebox")
        shutil.copytree(ROOT / "tests/fixtures/host-plugin", content / "plugins/host-plugin")
        shutil.copytree(ROOT / "tests/wordpress/fixtures/sample", content / "plugins/sample")
        shutil.copy(ROOT / "tests/wordpress/fixtures/agent.php", content / "plugins/sample/agent.php")
        defines = {"DB_CHARSET": "utf8mb4", "DB_COLLATE": "", "DB_PASSWORD": ""}
        if database == "mariadb":
            world.mariadb.start()
            schema = "wp_" + re.sub(r"[^a-z0-9]", "_", name)
            world.mariadb.query(f"CREATE DATABASE {schema}; CREATE USER IF NOT EXISTS 'wordpress'@'localhost'; GRANT ALL ON {schema}.* TO 'wordpress'@'localhost'")
            defines |= {"DB_NAME": schema, "DB_USER": "wordpress", "DB_HOST": f"localhost:{world.mariadb.socket}"}
            self.schema = schema
        else:
            drop_in = content / "mu-plugins/sqlite-database-integration"
            shutil.copytree(pathlib.Path(world.env["CODEBOX_SHARE"]) / "sqlite-database-integration", drop_in)
            text = (drop_in / "db.copy").read_text()
            text = text.replace("{SQLITE_IMPLEMENTATION_FOLDER_PATH}", str(drop_in)).replace("{SQLITE_PLUGIN}", "sqlite-database-integration/load.php")
            (content / "db.php").write_text(text)
            (world.work / f"{name}-db").mkdir()
            defines |= {"DB_NAME": "wordpress", "DB_USER": "", "DB_HOST": "", "DB_DIR": f"{world.work}/{name}-db/", "DB_FILE": "test.sqlite"}
        lines = [f"define( '{key}', '{value}' );" for key, value in defines.items()]
        lines += [f"define( '{key}', '{secrets.token_hex(16)}' );" for key in ("AUTH_KEY", "SECURE_AUTH_KEY", "LOGGED_IN_KEY", "NONCE_KEY", "AUTH_SALT", "SECURE_AUTH_SALT", "LOGGED_IN_SALT", "NONCE_SALT")]
        lines += [
            "define( 'WP_DEBUG', true );", "define( 'WP_DEBUG_DISPLAY', false );", f"define( 'WP_DEBUG_LOG', '{self.log}' );",
            "define( 'DISABLE_WP_CRON', true );", "define( 'WP_HTTP_BLOCK_EXTERNAL', true );", "define( 'AUTOMATIC_UPDATER_DISABLED', true );",
            "define( 'FS_METHOD', 'direct' );", "$table_prefix = 'wp_';", "defined( 'ABSPATH' ) || define( 'ABSPATH', __DIR__ . '/' );",
            "require_once ABSPATH . 'wp-settings.php';",
        ]
        (self.path / "wp-config.php").write_text("<?php\n" + "\n".join(lines) + "\n")
        self.password = secrets.token_hex(12)
        self.wp("core", "install", "--url=http://localhost", "--title=Parent", "--admin_user=admin", f"--admin_password={self.password}",
                "--admin_email=admin@example.org", "--skip-email", extension=False).expect()

    def wp(self, *arguments, extension=True, stdin=b""):
        """Runs WP-CLI on this site, with or without the extension."""
        world = self.world
        command = [world.env["CODEBOX_PHP"], *world.compiled, *(world.flags if extension else []), world.env["CODEBOX_WP_CLI"], f"--path={self.path}"]
        command += ["--allow-root"] if os.getuid() == 0 else []
        environment = dict(os.environ, WP_CLI_CONFIG_PATH="/dev/null", WP_CLI_DISABLE_AUTO_CHECK_UPDATE="1", WP_CLI_PHP=world.env["CODEBOX_PHP"])
        done = subprocess.run([*command, *arguments], capture_output=True, check=False, cwd=world.work, env=environment, input=stdin, timeout=300)
        return Call(arguments, done)

    def eval(self, code, extension=True):
        """Returns the output of PHP code in this site."""
        return self.wp("eval", code, extension=extension).expect().out

    def complaints(self):
        """Returns the debug log."""
        return self.log.read_text() if self.log.exists() else ""

    def forget_complaints(self):
        """Empties the debug log."""
        self.log.unlink(missing_ok=True)

    def serve(self, extension=True):
        """Serves the site on loopback."""
        return Server(self, extension)


class Server:
    """Serves a site with PHP's built-in server, and sends requests with the cookies of a login."""

    def __init__(self, site, extension):
        self.site = site
        flags = site.world.flags if extension else []
        log = site.world.work / f"{site.name}.served"
        with open(log, "wb") as out:
            self.process = subprocess.Popen(
                [site.world.env["CODEBOX_PHP"], "-d", "opcache.enable_cli=1", "-d", "opcache.revalidate_freq=0", *flags, "-S", "127.0.0.1:0", "-t", str(site.path)],
                stdout=out, stderr=out, start_new_session=True, env=dict(os.environ, PHP_CLI_SERVER_WORKERS="2"),
            )
        # Port 0 lets the kernel choose and the server print the port, because a port probed earlier may be taken by then.
        def listens():
            must(self.process.poll() is None, f"PHP's server ended\n{log.read_text()[-1000:]}")
            return re.search(r"Development Server \(http://127\.0\.0\.1:(\d+)\) started", log.read_text())

        self.port = int(poll_until(listens, what="PHP's server does not listen")[1])
        self.cookies = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait(20)

    def get(self, path, data=None):
        """Sends a request; returns status and body of the response."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, headers={"Host": "localhost", "Cookie": self.cookies})
        opener = urllib.request.build_opener(NoRedirect)
        try:
            answer = opener.open(request, timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            for cookie in answer.headers.get_all("Set-Cookie") or []:
                self.cookies = "; ".join(filter(None, [self.cookies, cookie.split(";")[0]]))
            return answer.status, answer.read().decode("utf-8", "replace")

    def log_in(self):
        """Logs in as the administrator."""
        self.cookies = "wordpress_test_cookie=WP%20Cookie%20check"
        status, body = self.get("/wp-login.php", f"log=admin&pwd={self.site.password}&testcookie=1&wp-submit=1".encode())
        must(status == 302 and "wordpress_logged_in" in self.cookies, f"cannot log in: {status} {body[:500]}")
        return self


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Makes urllib return a redirect response instead of following it."""

    def redirect_request(self, *_):
        return None


class World:
    """Owns what all cases share: scratch directory, WordPress copies, sites and database server."""

    def __init__(self, env):
        self.env = env
        self.sites = {}
        self.cores = {}
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="codebox-parents."))
        self.work.chmod(0o755)
        self.mariadb = MariaDb(self.work)
        self.plugin = self.work / "plugin"
        shutil.copytree(ROOT / "plugin-php", self.plugin)
        shutil.copytree(ROOT / "abilities", self.plugin / "abilities", ignore=shutil.ignore_patterns("schemas"))
        shutil.copytree(ROOT / "dist/wp-codebox/abilities/schemas", self.plugin / "abilities/schemas")
        shutil.copytree(ROOT / "dist/wp-codebox/languages", self.plugin / "languages")
        shutil.copytree(ROOT / "wp-cli", self.plugin / "wp-cli")
        home = pathlib.Path(env["CODEBOX_STATE"]).parent
        self.state = pathlib.Path(tempfile.mkdtemp(prefix=".state-parents.", dir=home))
        if os.getuid() == 0:
            shutil.chown(self.state, env["CODEBOX_OWNER"], env["CODEBOX_OWNER"])
        seed_template(str(self.state))
        settings = {"state_dir": self.state, "share_dir": env["CODEBOX_SHARE"], "runner": env["CODEBOX"], "launcher": env["CODEBOX_LAUNCH"], "php_binary": env["CODEBOX_PHP"]}
        # With a file cache of opcodes, each WP-CLI process takes a third of the processor time.
        (self.work / "opcache").mkdir()
        self.compiled = ["-d", "opcache.enable_cli=1", "-d", f"opcache.file_cache={self.work}/opcache", "-d", "opcache.file_cache_only=1"]
        self.flags = ["-d", f"extension={env['CODEBOX_SO']}"]
        for name, value in settings.items():
            self.flags += ["-d", f"wp_codebox.{name}={value}"]

    def core(self, version):
        """Returns the directory with this WordPress: `provisioned` (by tests/provision), or a version in the file `packages`."""
        if version == "provisioned":
            return pathlib.Path(self.env["CODEBOX_WORDPRESS"])
        if version not in self.cores:
            self.cores[version] = self.unpack(version)
        return self.cores[version]

    def unpack(self, version):
        """Unpacks WordPress and its libraries from Debian packages, without symlinks."""
        pins = [line.split() for line in (HERE / "packages").read_text().splitlines() if line and not line.startswith("#")]
        root = self.work / f"debian-{version}"
        for _, suite, package, pinned, checksum in [pin for pin in pins if pin[0] == version]:
            done = subprocess.run([HERE / "debian", suite, package, pinned, checksum], capture_output=True, check=False)
            must(done.returncode == 0, f"{package} of {suite} cannot be had: {done.stderr.decode()}")
            print(done.stderr.decode(), end="")
            subprocess.run(["dpkg-deb", "-x", done.stdout.decode().strip(), root], check=True)
        core = self.work / f"wordpress-{version}"
        # Debian links scripts and libraries of other packages into WordPress; links to packages
        # that are not unpacked here lead to browser scripts, which no case needs.
        shutil.copytree(root / "usr/share/wordpress", core, symlinks=False, ignore_dangling_symlinks=True, ignore=shutil.ignore_patterns("wp-config.php", ".htaccess"))
        found = re.search(r"\$wp_version = '([^']+)'", (core / "wp-includes/version.php").read_text())
        must(found and (found[1] + ".").startswith(version + "."), f"the package is WordPress {found and found[1]}, not {version}")
        themes = core / "wp-content/themes"
        themes.mkdir(parents=True, exist_ok=True)
        provisioned = pathlib.Path(self.env["CODEBOX_WORDPRESS"]) / "wp-content/themes"
        for theme in provisioned.iterdir():
            if theme.is_dir() and not (themes / theme.name).exists():
                shutil.copytree(theme, themes / theme.name)
        shutil.rmtree(root)
        return core

    def site(self, version, database):
        """Returns a site, created at first use."""
        name = f"{version}-{database}"
        if name not in self.sites:
            self.sites[name] = Site(self, name, self.core(version), database)
        return self.sites[name]

    def close(self):
        """Stops and removes everything."""
        self.mariadb.stop()
        if not os.environ.get("CODEBOX_KEEP"):
            shutil.rmtree(self.work, ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)
