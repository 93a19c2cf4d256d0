"""The blocks of docs/phpunit.md in their order: files are written, commands run, and their output compared."""

import os
import re
import shlex
import subprocess

from harness import must
from test_phpunit import LIBRARY, POLYFILLS, write

DOCUMENT = os.path.join(os.path.dirname(__file__), "../../docs/phpunit.md")


# The stand-in of the test library creates the tables of the tests, as the real one does.
INSTALLING = {**LIBRARY, "includes/bootstrap.php": LIBRARY["includes/bootstrap.php"].replace("abstract class", """
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
ob_start();
is_blog_installed() || wp_install( 'Tests', 'admin', 'admin@example.org', true );
ob_end_clean();
// The plugin was loaded after this action.
do_action( 'init' );
abstract class""")}


def same(text):
    """Replaces the seconds, which differ from run to run."""
    return re.sub(r" in [\d.]+ s$", " in N s", text, flags=re.M).strip()


def commands(block):
    """Returns each command of a console block with its expected output."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.M)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def test_commands_in_docs_phpunit_md_print_the_output_shown_there(bench):
    project = os.path.join(bench.directory, "page", "greeter")
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "WP_CODEBOX_STATE_DIR": bench.state, "WP_CODEBOX_WORDPRESS": bench.environment["CODEBOX_WORDPRESS"],
                   "WP_CODEBOX_SHARE_DIR": bench.environment["CODEBOX_SHARE"], "WP_CODEBOX_LAUNCHER": bench.environment["CODEBOX_LAUNCH"], "WP_CODEBOX_PHP": bench.environment["CODEBOX_PHP"]}
    with open(DOCUMENT, encoding="utf-8") as file:
        blocks = re.findall(r"```(php|json|console)\n(.*?)```", file.read(), re.S)
    ran = 0
    for language, text in blocks:
        if language == "php":
            write(project, {re.match(r"<\?php // (\S+)\n", text)[1]: text})
        elif language == "json":
            # Stands for `composer install`: no registry of Composer packages can be reached here.
            write(project, {"composer.json": text, **{f"vendor/wp-phpunit/wp-phpunit/{name}": content for name, content in INSTALLING.items()},
                            **{f"vendor/yoast/phpunit-polyfills/{name}": content for name, content in POLYFILLS.items()}})
        else:
            for line, expected in commands(text):
                program, *arguments = shlex.split(line, comments=True)
                must(program == "wp-codebox", line)
                status = re.search(r"# exit status (\d+)", line)
                done = subprocess.run([bench.environment["CODEBOX"], *arguments, "--site", bench.site] if "--" not in arguments else
                                      [bench.environment["CODEBOX"], arguments[0], "--site", bench.site, *arguments[1:]],
                                      cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
                must(done.returncode == int(status[1] if status else 0), f"{line}: {done.returncode}\n{done.stdout}\n{done.stderr}")
                must(same(done.stdout) == same(expected), f"{line} printed\n{done.stdout}\nand the page says\n{expected}\n{done.stderr}")
                ran += 1
    must(ran == 7, f"{ran} commands")
