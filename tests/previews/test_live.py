"""Previews during commands, restores and resets, and their refusal at level reduced."""

import re
import threading
import time

from harness import must, previews
from harness.previews import HeldPreview, check_security_headers, control_request, http_request
from harness.reduced import policy, run_without_userns


def shared(bench):
    """Returns the shared held sandbox and its run id."""
    held = previews.shared("live", lambda: HeldPreview(bench, "--mount", f"{bench.source('live')}:/wordpress/wp-content/plugins/sample", seconds=3000))
    held.address()
    return held, held.run_id()


def answered(bench, request):
    reply = control_request(bench, shared(bench)[1], request)
    must(reply["type"] == "answer", str(reply))
    return reply["answer"]


def command(bench, name, *args):
    result = answered(bench, {"type": "command", "call": {"command": name, "args": list(args)}})
    must(result["status"] == "ok", str(result)[:2000])
    return result


def title(port):
    page = check_security_headers(http_request(port, "/"))
    must(page.status == 200, str(page))
    return re.search(r"<title>(.*?)</title>", page.body.decode(), re.S).group(1)


def test_preview_answers_visitors_while_a_command_runs(bench):
    """Runs commands with and without output that end only after the preview has answered three visitors."""
    port = shared(bench)[0].port
    place = "/wp-content/plugins/sample/lib"
    visit = "<?php file_put_contents( __DIR__ . '/seen', 'v', FILE_APPEND );"
    command(bench, "wordpress.run-php", f"code=file_put_contents( WP_PLUGIN_DIR . '/sample/lib/visit.php', {visit!r} );")
    must(check_security_headers(http_request(port, f"{place}/visit.php")).status == 200, "the control: nothing runs")
    for number, noise in enumerate(("", "echo str_repeat( 'x', 400 ), PHP_EOL;")):
        waits = (f"chdir( WP_PLUGIN_DIR . '/sample/lib' ); unlink( 'seen' ); touch( 'begun{number}' ); $until = time() + 40;"
                 f"while ( time() < $until ) {{ clearstatcache(); if ( is_file( 'seen' ) && filesize( 'seen' ) > 2 ) {{ exit( 0 ); }} {noise} usleep( 2000 ); }} exit( 1 );")
        results = []
        call = {"type": "command", "call": {"command": "wordpress.run-php", "args": [f"code={waits}"]}}
        running = threading.Thread(target=lambda: results.append(answered(bench, call)))  # noqa: B023
        running.start()
        until = time.monotonic() + 30
        while check_security_headers(http_request(port, f"{place}/begun{number}")).status != 200:
            must(running.is_alive() and time.monotonic() < until, "the command does not begin")
        for _ in range(3):
            must(check_security_headers(http_request(port, f"{place}/visit.php")).status == 200, "a visitor is turned away")
        running.join()
        must(results and results[0]["status"] == "ok", f"visitors waited for the command: {str(results)[:600]}")


def test_preview_keeps_its_address_and_shows_the_restored_or_fresh_site_after_restore_and_reset(bench):
    port = shared(bench)[0].port
    command(bench, "wordpress.wp-cli", "command=option update blogname Kept")
    must(title(port).startswith("Kept"), title(port))
    kept = answered(bench, {"type": "snapshot", "name": "kept"})
    command(bench, "wordpress.wp-cli", "command=option update blogname Changed")
    must(title(port).startswith("Changed"), "the control: visitors see what is there now")
    answered(bench, {"type": "restore", "id": kept["id"]})
    must(title(port).startswith("Kept"), title(port))
    answered(bench, {"type": "reset"})
    fresh = title(port)
    must(not fresh.startswith(("Kept", "Changed")), fresh)
    preview = answered(bench, {"type": "preview", "action": "status"})
    must(preview["status"] == "open" and preview["localUrl"] == f"http://127.0.0.1:{port}", str(preview))


def test_preview_and_browser_are_refused_at_isolation_level_reduced(bench):
    allowed = policy(commands=["wordpress.run-php", "wordpress.browser-probe"])
    mount = ["--mount", f"{bench.source('plain')}:/workspace/plugin"]
    for asked, code, why in (
        (["--preview-hold", "1s", "--command", "wordpress.run-php", "--arg", "code=echo 1;"], "wp_codebox_preview_unavailable", "has no sockets"),
        (["--command", "wordpress.browser-probe", "--arg", "url=/", "--arg", "capture=none"], "wp_codebox_browser_unavailable", "at isolation level reduced"),
    ):
        refused = run_without_userns(bench, *mount, *asked, *allowed)
        must(refused.exit != 0 and code in refused.stdout and why in refused.stdout, str(refused))
        # Refused before the run starts a web server in the guest.
        must("reduced" in refused.stdout and "web server of the sandbox" not in refused.stdout, str(refused))
        # Control: the same command succeeds where user namespaces are allowed.
        bench.run(*mount, *asked, *allowed).expect(0)
