"""A preview while other things happen to its sandbox, and where there can be none."""

import re
import threading
import time

from harness import must
from held import Held, ask, converse
from preview_cases import forced
from reduced_cases import forbidden, policy

_SHARED = {}


def shared(bench):
    """One held sandbox, and its run."""
    if "held" not in _SHARED:
        held = Held(bench, "--mount", f"{bench.source('live')}:/wordpress/wp-content/plugins/sample", seconds=120)
        held.address()
        _SHARED.update(held=held, run=held.run_id())
    return _SHARED["held"], _SHARED["run"]


def close():
    if "held" in _SHARED and _SHARED["held"].process.poll() is None:
        _SHARED["held"].cancel()


def answered(bench, request):
    reply = converse(bench, shared(bench)[1], request)
    must(reply["type"] == "answer", str(reply))
    return reply["answer"]


def command(bench, name, *args):
    result = answered(bench, {"type": "command", "call": {"command": name, "args": list(args)}})
    must(result["status"] == "ok", str(result))
    return result


def title(port):
    page = forced(ask(port, "/"))
    must(page.status == 200, str(page))
    return re.search(r"<title>(.*?)</title>", page.body.decode(), re.S).group(1)


def visitors_are_answered_while_a_command_runs(bench):
    """Silent and talkative commands; each visit needs a connection of its own into the guest."""
    port = shared(bench)[0].port
    must(ask(port, "/wp-login.php").status == 200, "the control: nothing runs")
    for code in ("sleep(3);", "$end = microtime(true) + 3; while (microtime(true) < $end) { echo str_repeat('x', 400), PHP_EOL; usleep(2000); }"):
        began = time.monotonic()
        running = threading.Thread(target=command, args=(bench, "wordpress.wp-cli", f"command=eval {code!r}"))
        running.start()
        time.sleep(1)
        visits = []
        while time.monotonic() - began < 2.6:
            page = forced(ask(port, "/wp-content/plugins/sample/lib/a.txt"))
            visits.append((time.monotonic() - began, page.status))
        running.join()
        took = time.monotonic() - began
        must(took > 3, f"the command was over after {took:.1f} s")
        must(len(visits) >= 3 and all(at < 3 and status == 200 for at, status in visits), f"visitors waited for the command ({took:.1f} s): {visits}")


def the_same_address_shows_the_site_that_was_restored(bench):
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


def at_level_reduced_there_is_no_preview_and_no_browser(bench):
    close()
    allowed = policy(commands=["wordpress.run-php", "wordpress.browser-probe"])
    mount = ["--mount", f"{bench.source('plain')}:/workspace/plugin"]
    for asked, code, why in (
        (["--preview-hold", "1", "--command", "wordpress.run-php", "--arg", "code=echo 1;"], "wp_codebox_preview_unavailable", "has no sockets"),
        (["--command", "wordpress.browser-probe", "--arg", "url=/", "--arg", "capture=none"], "wp_codebox_browser_unavailable", "at isolation level reduced"),
    ):
        refused = forbidden(bench, *mount, *asked, *allowed)
        must(refused.exit != 0 and code in refused.stdout and why in refused.stdout, str(refused))
        # Judged before a server is started, which would be waited for.
        must("reduced" in refused.stdout and "cannot be served" not in refused.stdout, str(refused))
        # The control: the same where nothing is forbidden.
        bench.run(*mount, *asked, *allowed).expect(0)


CASES = [
    visitors_are_answered_while_a_command_runs,
    the_same_address_shows_the_site_that_was_restored,
    at_level_reduced_there_is_no_preview_and_no_browser,
]
