"""A denied request is a failure for every client: its exit status is not 0, and the error of the run names the option that allows the host."""

import io
import json
import shutil
import zipfile

import pytest
from clients import start

from harness import must

HOST, API = "other.test", "api.wordpress.org"
COMPOSER = json.dumps({"repositories": [{"type": "composer", "url": f"https://{HOST}"}, {"packagist.org": False}], "require": {"a/sample": "*"}})
#: By client: the host that it asks, and its command line. The last ones exist only on some machines.
CLIENTS = {
    "curl": (HOST, f"curl -sS https://{HOST}/a"),
    "curl -f": (HOST, f"curl -sSf http://{HOST}/a"),
    "git": (HOST, f"git ls-remote https://{HOST}/repo.git"),
    "file_get_contents": (HOST, f"php $C/fetch.php https://{HOST}/a"),
    "wp_remote_get": (HOST, f"""wp eval "\\$r = wp_remote_get( 'https://{HOST}/a' ); is_wp_error( \\$r ) && WP_CLI::error( \\$r );" """),
    "wp plugin install": (API, "wp plugin install sample"),
    "wp core check-update": (API, "wp core check-update"),
    # The second command asks within a minute of the first, which WordPress does not repeat.
    "wp core check-update, again": (API, "wp plugin list >/dev/null; wp cron event run wp_version_check >/dev/null 2>&1; wp core check-update"),
    "wp plugin update": (API, 'mkdir /wordpress/wp-content/plugins/mine && echo "<?php /* Plugin Name: Mine */" > /wordpress/wp-content/plugins/mine/mine.php && wp plugin update --all'),
    "pip3": (HOST, f"pip3 download --no-deps --no-cache-dir --retries 1 -d /tmp/wheels -i https://{HOST}/simple sample"),
    "npm": (HOST, f"NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt npm view sample version --registry https://{HOST}/"),
    "composer": (HOST, f"echo '{COMPOSER}' > composer.json && composer update --dry-run --no-interaction"),
}
OPTIONAL = {"pip3", "npm", "composer"}
#: pip does not say which host has no address.
UNNAMED = {"none": {"pip3"}, "denied": set()}


def archive(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
    return data.getvalue()


@pytest.fixture(scope="module", autouse=True)
def packages(bench):
    """The answers of a git server, of package indexes and of wordpress.org."""
    facts = {"METADATA": "Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n", "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n", "RECORD": ""}
    wheel = archive({"sample.py": "", **{f"sample-1.0.dist-info/{name}": text for name, text in facts.items()}})
    plugin = {"name": "Sample", "slug": "sample", "version": "1.0", "download_link": f"https://{HOST}/sample.zip"}
    offer = {"response": "latest", "download": "", "locale": "en_US", "packages": {"full": ""}, "current": "1.0", "version": "1.0", "php_version": "7.2", "mysql_version": "5.5"}
    documents = {
        "/sample": {"name": "sample", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "sample", "version": "1.0.0"}}},
        "/packages.json": {"packages": {"a/sample": {"1.0.0": {"name": "a/sample", "version": "1.0.0", "type": "metapackage"}}}},
        "/plugins/info/1.2/": plugin,
        "/core/version-check/1.7/": {"offers": [offer], "translations": []},
        "/plugins/update-check/1.1/": {"plugins": {}, "no_update": {}, "translations": []},
        "/themes/update-check/1.1/": {"themes": {}, "no_update": {}, "translations": []},
    }
    bench.world.files = {
        "/repo.git/info/refs": ("text/plain", b"1" * 40 + b"\trefs/heads/main\n"),
        "/repo.git/HEAD": ("text/plain", b"ref: refs/heads/main\n"),
        "/simple/sample/": ("text/html", b"<!DOCTYPE html><a href='/sample-1.0-py3-none-any.whl'>sample-1.0-py3-none-any.whl</a>"),
        "/sample-1.0-py3-none-any.whl": ("application/zip", wheel),
        "/sample.zip": ("application/zip", archive({"sample/sample.php": "<?php\n/* Plugin Name: Sample */\n"})),
        **{path: ("application/json", json.dumps(document).encode()) for path, document in documents.items()},
    }
    yield
    bench.world.files = {}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("network", ["denied", "none", "allowed"])
def test_denied_request_is_a_failure_of_its_client_and_the_run_names_the_option(bench, client, network):
    host, command = CLIENTS[client]
    if client in OPTIONAL and not shutil.which(client, path="/usr/bin"):
        pytest.skip(f"this machine has no /usr/bin/{client}")
    flags = {"denied": ["--allow-host", "allowed.test"], "none": [], "allowed": ["--allow-host", HOST, "--allow-host", API]}[network]
    before = len(bench.world.seen())
    answer = start(bench, f"cd /tmp; {command}", *flags)
    output = json.dumps(answer.result["transcript"])
    hints = [hint for hint in (answer.result.get("error") or {}).get("hints", []) if "--allow-host" in hint]
    if network == "allowed":
        answer.expect(0)
        must(hints == [], str(hints))
        must(len(bench.world.seen()) > before, output)
        return
    answer.expect(1, "wp_codebox_run_failed")
    must(len(bench.world.seen()) == before, "a denied request reached the host")
    option = "HOST" if client in UNNAMED[network] else host
    must(len(hints) == 1 and f"--allow-host {option}`" in hints[0], f"{hints}\n{answer}")
    must("Success" not in output and "latest version" not in output, output)


def test_run_that_succeeds_after_a_denied_request_has_no_hint(bench):
    answer = start(bench, f"curl -sS https://{HOST}/a; true", "--allow-host", "allowed.test")
    answer.expect(0)
    must(answer.result.get("error") is None, str(answer.result))


def test_hint_of_a_run_names_no_text_that_is_no_host_and_few_hosts(bench):
    hosts = " ".join(f"h{n}.test" for n in range(30))
    script = f"""for host in {hosts}; do curl -sS https://$host/; done; printf 'Could not resolve host: \\033[2Jx.test\\nCould not resolve host: $(id).test\\n'; exit 1"""
    answer = start(bench, script).expect(1, "wp_codebox_run_failed")
    hint = [hint for hint in answer.result["error"]["hints"] if "--allow-host" in hint][0]
    must(hint.count("--allow-host") == 8 and "and others" in hint, hint)
    must("\x1b" not in hint and "id" not in hint.replace("the sandbox denied", "").replace("others", ""), hint)
