"""Previews: HTTP access of visitors on the host to the site in a sandbox, and what ends a preview."""

import json
import re
import socket
import time
import urllib.parse

from harness import await_count, kill_and_wait, must, poll_until, previews, sleeper, wake
from harness.previews import SETUP, HeldPreview, check_security_headers, connection_refused, document, free_port, http_request


def shared(bench):
    """Returns the held sandbox that read-only cases share."""
    port = previews.shared("port", free_port)
    held = previews.shared("preview", lambda: HeldPreview(
        bench, "--mount", f"{bench.source('shared')}:/wordpress/wp-content/plugins/sample", "--preview-port", str(port),
        "--command", "wordpress.run-php", "--arg", f"code={SETUP}", seconds=3000))
    held.address()
    return held


def test_preview_serves_pages_and_assets_but_no_private_files_or_listings(bench):
    held = shared(bench)
    port = held.port
    must(port == previews.shared("port", free_port), held.stderr)
    origin = f"http://127.0.0.1:{port}"
    front = check_security_headers(http_request(port, "/"))
    must(front.status == 200 and f"{origin}/".encode() in front.body, str(front))
    pretty = check_security_headers(http_request(port, "/a-pretty-page/"))
    must(pretty.status == 200 and b"Sturmvogel" in pretty.body, str(pretty))
    rest = check_security_headers(http_request(port, "/wp-json/"))
    must(rest.status == 200 and f'"home":"{origin}"'.replace("/", "\\/").encode() in rest.body, str(rest))
    must(check_security_headers(http_request(port, "/no-such-page/")).status == 404, "a page that is not there")
    style = check_security_headers(http_request(port, "/wp-includes/css/dashicons.min.css"))
    must(style.header("content-type") == ["text/css; charset=UTF-8"] and len(style.body) > 1000, str(style))
    must(check_security_headers(http_request(port, "/wp-content/plugins/sample/lib/a.txt")).body == b"one\ntwo\nthree\n", "a file of the mount")
    must(check_security_headers(http_request(port, "/wp-admin", headers={"X-Forwarded-Host": "evil.example"})).header("location") == [f"{origin}/wp-admin/"], "the slash")
    for path in ("/wp-config.php", "//wp-config.php", "/%77p-config.php", "/wp-content/database/.ht.sqlite", "/.htaccess",
                 "/wp-content/plugins/sample/.git/config"):
        page = check_security_headers(http_request(port, path))
        must(page.status == 404 and b"DB_NAME" not in page.body, f"{path}: {page}")
    must(check_security_headers(http_request(port, "/wp-admin/../wp-config.php")).status == 400, "dots")
    listing = check_security_headers(http_request(port, "/wp-content/plugins/sample/lib/"))
    must(b"a.txt" not in listing.body, f"a directory was listed: {listing}")


def test_wordpress_answers_preview_requests_for_absent_paths_that_look_like_hidden_files(bench):
    """A WordPress slug may look like a hidden file. The proxy's own 404 is plain text, WordPress's is HTML."""
    port = shared(bench).port
    ours = lambda page: page.status == 404 and page.body == b"There is nothing here.\n"  # noqa: E731
    page = check_security_headers(http_request(port, "/wp-config-guide/"))
    must(page.status == 200 and b"Basstoelpel" in page.body, str(page))
    must(check_security_headers(http_request(port, "/wp-config-guide")).header("location") == [f"http://127.0.0.1:{port}/wp-config-guide/"], "the canonical address")
    for path in ("/release.sql", "/debug.log/today", "/zz~", "/.hidden", "/wp-content/uploads/other.sql"):
        page = check_security_headers(http_request(port, path))
        must(page.status == 404 and b"</html>" in page.body, f"{path}: {page}")
    route = check_security_headers(http_request(port, "/wp-json/notes.sql"))
    must(route.status == 404 and b"rest_no_route" in route.body, str(route))
    must(check_security_headers(http_request(port, "/wp-content/uploads/a.txt")).body == b"text", "the control")
    for path in ("/wp-config.php", "/wp-config.php/more", "/wp-content/uploads/notes.sql", "/wp-content/uploads/notes.sql/more", "/wp-content/uploads/wp-config-old/a.txt",
                 "/wp-content/uploads/wp-config-old/none", "/wp-content/uploads/gone.log", "/wp-content/database/.ht.sqlite"):
        page = check_security_headers(http_request(port, path))
        must(ours(page), f"{path}: {page}")


def _logged_in(bench, port):
    """Logs in as the template's first user; returns the cookies and the response that set them."""
    login = check_security_headers(http_request(port, "/wp-login.php"))
    cookies = [c.split(";")[0] for c in login.header("set-cookie")]
    form = urllib.parse.urlencode({"log": "admin", "pwd": "visitor-pass", "wp-submit": "1", "testcookie": "1"}).encode()
    name = re.search(r"[\w.@-]+$", _login_name(bench)).group(0)
    form = form.replace(b"log=admin", f"log={urllib.parse.quote(name)}".encode())
    done = check_security_headers(http_request(port, "/wp-login.php", "POST", headers={"Cookie": "; ".join(cookies)}, body=form))
    must(done.status == 302 and done.header("location") == [f"http://127.0.0.1:{port}/wp-admin/"], str(done))
    cookies += [c.split(";")[0] for c in done.header("set-cookie")]
    return "; ".join(cookies), done


def test_preview_visitor_can_log_in(bench):
    port = shared(bench).port
    cookies, done = _logged_in(bench, port)
    must(not any("domain" in c.lower() for c in done.header("set-cookie")), str(done))
    inside = check_security_headers(http_request(port, "/wp-admin/", headers={"Cookie": cookies}))
    must(inside.status == 200 and b"wp-admin-bar" in inside.body, str(inside))
    outside = check_security_headers(http_request(port, "/wp-admin/"))
    must(outside.status == 302, f"the control: {outside}")


def test_preview_passes_the_rest_method_override_header_on_so_that_a_post_is_deleted(bench):
    """The block editor sends DELETE as POST with X-HTTP-Method-Override. Without the header the request updates the post."""
    port = shared(bench).port
    cookies, _ = _logged_in(bench, port)
    nonce = http_request(port, "/wp-admin/admin-ajax.php?action=rest-nonce", headers={"Cookie": cookies}).body.decode()
    said = {"Cookie": cookies, "X-WP-Nonce": nonce}
    made = json.loads(http_request(port, "/wp-json/wp/v2/posts", "POST", headers=said, body=b"title=Bent&status=publish").body)
    must(made["status"] == "publish", json.dumps(made)[:600])
    place = f"/wp-json/wp/v2/posts/{made['id']}"
    updated = json.loads(check_security_headers(http_request(port, place, "POST", headers=said, body=b"")).body)
    must(updated["status"] == "publish", f"the control: {json.dumps(updated)[:600]}")
    trashed = json.loads(check_security_headers(http_request(port, place, "POST", headers={**said, "X-HTTP-Method-Override": "DELETE"}, body=b"")).body)
    must(trashed["status"] == "trash", json.dumps(trashed)[:600])


def test_preview_login_link_signs_in_only_once_and_a_newer_link_replaces_it(bench):
    held = shared(bench)
    port, origin = held.port, f"http://127.0.0.1:{held.port}"
    command = ["sandbox", "preview", held.run_id(), "--site", bench.site, "--state", bench.state, "--json"]
    link = lambda *user: bench.call(*command, *user).expect(0).json["loginUrl"]  # noqa: E731
    must("loginUrl" not in bench.call(*command).expect(0).json, "a login URL without --login")
    replaced, first = link("--login"), link("--login")
    path = first.removeprefix(origin)
    must(path.startswith("/?preview_login="), first)
    must(check_security_headers(http_request(port, path, "HEAD")).status == 405, "a HEAD used it up")
    must(check_security_headers(http_request(port, replaced.removeprefix(origin))).status == 403, "a link that was replaced")
    done = check_security_headers(http_request(port, path))
    must(done.status == 302 and done.header("location") == [f"{origin}/wp-admin/"], str(done))
    cookies = "; ".join(c.split(";")[0] for c in done.header("set-cookie"))
    inside = check_security_headers(http_request(port, "/wp-admin/users.php", headers={"Cookie": cookies}))
    must(inside.status == 200 and b"wp-admin-bar" in inside.body, str(inside))
    again = check_security_headers(http_request(port, path))
    must(again.status == 403 and b"works once" in again.body and not again.header("set-cookie"), str(again))
    nobody = check_security_headers(http_request(port, link("--login=nobody-of-this-name").removeprefix(origin)))
    must(nobody.status == 404 and not nobody.header("set-cookie"), str(nobody))


def test_preview_visitor_cannot_request_the_login_endpoint(bench):
    port = shared(bench).port
    for headers in ({}, {"X-Codebox-Login": ""}, {"X-Codebox-Login": "admin"}, {"x_codebox_login": "admin"}, {"x.codebox.login": "admin"}):
        page = check_security_headers(http_request(port, "/.codebox/login", headers=headers))
        must(page.status == 404 and not [c for c in page.header("set-cookie") if "logged_in" in c], f"{headers}: {page}")
    for key in ("", "0" * 64, "x"):
        must(check_security_headers(http_request(port, f"/?preview_login={key}")).status == 403, f"the key {key!r}")


def _login_name(bench):
    held = shared(bench)
    answer = bench.call("runs", "events", held.run_id(), "--state", bench.state, "--site", bench.site, "--json")
    return "".join(e["data"].get("text", "") for e in answer.json["events"] if e["data"].get("stream") == "stdout").strip()


def test_preview_refuses_protocol_upgrades_tunnels_service_workers_and_requests_with_a_foreign_host(bench):
    port = shared(bench).port
    must(check_security_headers(http_request(port, "/", host=f"rebound.example:{port}")).status == 421, "a name that was rebound")
    must(check_security_headers(http_request(port, "/", host=f"localhost:{port}")).status == 200, "the control")
    must(check_security_headers(http_request(port, "/", headers={"Upgrade": "websocket", "Connection": "Upgrade"})).status == 501, "an upgrade")
    must(check_security_headers(http_request(port, "/sw.js", headers={"Service-Worker": "script"})).status == 403, "a service worker")
    must(check_security_headers(http_request(port, "http://127.0.0.1:3128/", host=f"127.0.0.1:{port}")).status == 400, "another port of the guest")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall(f"CONNECT 127.0.0.1:3128 HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        must(b" 501 " in raw.makefile("rb").readline(), "a tunnel")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall(f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc".encode())
        must(b" 400 " in raw.makefile("rb").readline(), "two lengths")


def test_preview_answers_requests_after_300_unfinished_connections(bench):
    port = shared(bench).port
    slow = []
    for _ in range(300):
        stream = socket.create_connection(("127.0.0.1", port), timeout=30)
        try:
            stream.sendall(b"GET / HTTP/1.1\r\nHost: ")
        except OSError:
            pass
        slow.append(stream)
    must(shared(bench).process.poll() is None, "the run ended")
    for stream in slow:
        stream.close()
    poll_until(lambda: _answers(port), what="the preview answers no request after the flood")


def _answers(port):
    try:
        return http_request(port, "/wp-includes/css/dashicons.min.css").status == 200
    except OSError:
        return False


def test_run_with_a_preview_port_in_use_is_refused_at_once(bench):
    port = shared(bench).port
    began = time.monotonic()
    answer = bench.run("--mount", f"{bench.source()}:/workspace/plugin", "--preview-hold", "180s", "--preview-port", str(port),
                       "--command", "wordpress.run-php", "--arg", "code=echo 1;")
    answer.expect(1, "wp_codebox_preview_unavailable")
    must(time.monotonic() - began < 100, "it waited for the port")
    with socket.socket() as theirs:
        theirs.bind(("127.0.0.1", 0))
        theirs.listen()
        bench.run("--mount", f"{bench.source()}:/workspace/plugin", "--preview-hold-seconds", "5", "--preview-port", str(theirs.getsockname()[1]),
                  ).expect(1, "wp_codebox_preview_unavailable")


def test_preview_with_a_token_refuses_requests_without_it(bench):
    """Starts a second preview and kills its supervisor at the end."""
    held = HeldPreview(bench, "--mount", f"{bench.source('second')}:/workspace/plugin", "--preview-token", "--preview-public-url",
                "https://preview.example.org", seconds=600)
    link = held.address()
    token = link.split("preview_token=")[1]
    must(link.startswith("https://preview.example.org/?preview_token=") and len(token) == 64, link)
    pid = None
    status = bench.call("runs", "list", "--state", bench.state, "--site", bench.site, "--status", "running", "--json")
    ports = set()
    for row in status.json["runs"]:
        text = bench.call("runs", "events", (row.get("run_id") or row["runId"]), "--state", bench.state, "--site", bench.site, "--json").stdout
        must(token not in text, "the journal has the token")
        # Other cases hold previews, too; the public URL identifies this one.
        if "preview.example.org" in text:
            ports |= {int(p) for p in re.findall(r'"localUrl": "http://127.0.0.1:(\d+)"', text)}
    must(len(ports) == 1, f"ports {ports}")
    port = ports.pop()
    try:
        must(check_security_headers(http_request(port, "/")).status == 401, "without the token")
        must(check_security_headers(http_request(port, "/?preview_token=" + "0" * 64)).status == 403, "with another one")
        let_in = check_security_headers(http_request(port, f"/a?b=1&preview_token={token}", host="preview.example.org"))
        must(let_in.status == 303 and let_in.header("location") == ["https://preview.example.org/a?b=1"], str(let_in))
        cookie = let_in.header("set-cookie")[0]
        must("; HttpOnly" in cookie and "; Secure" in cookie, cookie)
        page = check_security_headers(http_request(port, "/", host="preview.example.org", headers={"Cookie": cookie.split(";")[0]}))
        must(page.status == 200 and b"https://preview.example.org/" in page.body, str(page))
        must(token.encode() not in page.body, "the page has the token")
        held_port = type("P", (), {"port": port})
        pid = HeldPreview.supervisor(held_port)
    finally:
        kill_and_wait(pid or HeldPreview.supervisor(type("P", (), {"port": port})))
    poll_until(lambda: connection_refused(port), what="the preview outlives its supervisor")
    held.end()


def test_expired_preview_frees_its_port(bench):
    port = free_port()
    held = HeldPreview(bench, "--mount", f"{bench.source('third')}:/workspace/plugin", "--preview-port", str(port),
                "--command", "wordpress.run-php", "--arg", f"code=passthru('{sleeper(66)}');", "--check", "true", seconds=25)
    await_count(1, sleeper(66))
    must(connection_refused(port), "the preview port is open before the hold")
    wake(sleeper(66))
    held.address()
    must(http_request(port, "/wp-login.php").status == 200, "the control")
    open_connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    poll_until(lambda: connection_refused(port), what="the preview port is open after its expiry")
    with socket.socket() as mine:
        mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        mine.bind(("127.0.0.1", port))
    open_connection.close()
    answer = held.end()
    must(answer.exit == 0, str(answer))
    must(answer.result["checks"][0]["status"] == "passed", "the checks ran")
    for name in ("files/review.json", "metadata.json"):
        preview = document(answer, name)["preview"]
        must(preview["status"] == "expired" and preview["url"] == f"http://127.0.0.1:{port}", str(preview))
        must(preview["requests"]["served"] >= 1 and preview["closedAt"] >= preview["openedAt"], str(preview))
    bench.call("artifacts", "verify", "--bundle", answer.json["artifacts"]["directory"], "--state", bench.state, "--json").expect(0)


def test_cancelled_run_closes_its_preview(bench):
    held = shared(bench)
    port = held.port
    must(http_request(port, "/", method="TRACE").status == 405, "control: the preview refuses a request")
    answer = held.cancel()
    must(connection_refused(port), "the preview port is open after the cancellation")
    must(answer.exit == 130, str(answer))
    preview = document(answer, "files/review.json")["preview"]
    must(preview["status"] == "closed" and preview["requests"]["refused"] >= 1, str(preview))
    must("/?preview_token" not in answer.stdout, "a token")
