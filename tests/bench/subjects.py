"""Commands that the benchmark compares, prepared so that only the isolation differs.

`bare` (PHP on the host) and `guest` (PHP in a sandbox) load the same WordPress files: the template of
the guests, and a copy of it on the host. Each has an opcache file cache that was filled at its own
path. When root runs the benchmark, every command except `wp-codebox` runs as the owner of the state directory.
"""

import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile

NEEDED = ("CODEBOX", "CODEBOX_LAUNCH", "CODEBOX_WORDPRESS", "CODEBOX_SHARE", "CODEBOX_STATE", "CODEBOX_PHP",
          "CODEBOX_OWNER", "CODEBOX_WPFILES")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The opcache settings of the php.ini that is generated for a guest.
OPCACHE = ["-d", "opcache.enable=1", "-d", "opcache.enable_cli=1", "-d", "opcache.file_cache_only=1",
           "-d", "opcache.validate_timestamps=1", "-d", "opcache.revalidate_freq=0",
           "-d", "opcache.file_cache_consistency_checks=0", "-d", "opcache.jit=disable", "-d", "opcache.jit_buffer_size=0"]
OUTPUT = os.path.join(tempfile.gettempdir(), f"codebox-bench-{os.getpid()}.out")


def loader(profile):
    """Builds the backend's example program, which runs one PHP process in one guest."""
    # These arguments reuse the build of the tests, which have built the profile `dev`.
    what = ["--all-targets"] if profile == "dev" else ["-p", "wp-codebox-backend-native", "--example", "load_wordpress"]
    subprocess.run(["cargo", "build", "--quiet", "--profile", profile, *what], cwd=ROOT, check=True)
    target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
    return os.path.join(ROOT, target, "debug" if profile == "dev" else profile, "examples", "load_wordpress")


def bare_site(template, directory, share):
    """Copies the WordPress of the guests' template to a host directory, for PHP without isolation."""
    shutil.copytree(os.path.join(template, "core"), directory, symlinks=True)
    content = os.path.join(directory, "wp-content")
    shutil.rmtree(content, ignore_errors=True)
    shutil.copytree(os.path.join(template, "content"), content, symlinks=True)
    # The drop-in expects the share directory at the path /opt/codebox of its root, as in a guest.
    os.makedirs(os.path.join(os.path.dirname(directory), "opt"))
    os.symlink(share, os.path.join(os.path.dirname(directory), "opt", "codebox"))


@contextlib.contextmanager
def prepared(profile="release"):
    """Yields the commands to measure and their environments, by name; removes the created files at the end."""
    e = {name: os.environ[name] for name in NEEDED}
    work = tempfile.mkdtemp(prefix="codebox-bench.")
    os.chmod(work, 0o755)
    site = f"bench-{os.getpid()}"
    path = {"PATH": "/usr/bin:/bin"}
    try:
        run = [e["CODEBOX"], "run", "--json", "--site", site, "--wordpress", e["CODEBOX_WORDPRESS"], "--state",
               e["CODEBOX_STATE"], "--share", e["CODEBOX_SHARE"], "--launcher", e["CODEBOX_LAUNCH"], "--php", e["CODEBOX_PHP"],
               "--mount", f"{work}/plugin:/wordpress/wp-content/plugins/wordpress-importer",
               "--command", "wordpress.run-php", "--arg",
               "code=file_put_contents( WP_PLUGIN_DIR . '/wordpress-importer/new.txt', get_bloginfo( 'version' ) );"]
        shutil.copytree(os.path.join(e["CODEBOX_WPFILES"], "wordpress-importer"), f"{work}/plugin")
        shutil.copy(loader(profile), f"{work}/load_wordpress")
        # The first run builds a missing template, and checks that the timed command works.
        give(work, e["CODEBOX_OWNER"])
        answer = json.loads(subprocess.run(run, env=path, check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout)
        changed = [row["path"] for row in answer["result"]["changed_files"]]
        if changed != ["/wordpress/wp-content/plugins/wordpress-importer/new.txt"]:
            raise SystemExit(f"the run does not do what it should: {changed}")
        template = max(glob.glob(os.path.join(e["CODEBOX_STATE"], "templates", "*", "template.json")), key=os.path.getmtime)
        bare_site(os.path.dirname(template), f"{work}/site", e["CODEBOX_SHARE"])
        os.mkdir(f"{work}/opcache")
        give(work, e["CODEBOX_OWNER"])
        bare = [e["CODEBOX_PHP"], *OPCACHE, "-d", f"opcache.file_cache={work}/opcache", "-r",
                f"require '{work}/site/wp-load.php'; echo get_bloginfo('version'), \"\\n\";"]
        loaded = subprocess.run(as_owner(e["CODEBOX_OWNER"]) + bare, env=path, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if loaded.returncode != 0 or not re.fullmatch(rb"[0-9.]+\n", loaded.stdout):
            raise SystemExit(f"bare WordPress does not load: {loaded.stdout[:200]} {loaded.stderr[:200]}")
        guest = [f"{work}/load_wordpress", e["CODEBOX_STATE"], e["CODEBOX_SHARE"], e["CODEBOX_LAUNCH"], e["CODEBOX_PHP"],
                 e["CODEBOX_WORDPRESS"]]
        yield {
            "bare": (as_owner(e["CODEBOX_OWNER"]) + bare, path),
            "guest": (as_owner(e["CODEBOX_OWNER"]) + guest, path),
            "run": (run, path),
            "control": ([e["CODEBOX"], "--version"], path),
        }
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(os.path.join(e["CODEBOX_STATE"], "sites", site), ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(OUTPUT)


def as_owner(owner):
    if os.geteuid() != 0:
        return []
    return [shutil.which("setpriv"), "--reuid", owner, "--regid", owner, "--clear-groups"]


def give(directory, owner):
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{owner}:", directory], check=True)
