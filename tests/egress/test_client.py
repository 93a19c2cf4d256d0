"""Egress policy: each common HTTP client in a guest reaches the allowed hosts and no other host."""

import json
import os
import subprocess

from clients import bundle, policy, rows, run, start_arguments

from harness import must

ALL_CLIENTS = r"""
say curl-http web http://{host}/a
say curl-https web https://{host}/a
say curl-socket web --unix-socket "$CODEBOX_EGRESS_SOCKET" --noproxy '*' http://localhost/https/{host}/a
say curl-base web "$CODEBOX_EGRESS_URL/https/{host}/a"
say php-curl-http php $C/http.php curl http://{host}/a
say php-curl-https php $C/http.php curl https://{host}/a
say php-stream-http php $C/http.php stream http://{host}/a
say php-stream-https php $C/http.php stream https://{host}/a
say python-connect python3 $C/connect.py {host} 443 /a
say wp-get-http $WP get http://{host}/a
say wp-get-https $WP get https://{host}/a
say wp-safe $WP safe https://{host}/a
say wp-download $WP download https://{host}/a
"""


def test_every_http_client_reaches_an_allowed_host(bench):
    answer, lines = run(bench, ALL_CLIENTS.replace("{host}", "allowed.test"), "--allow-host", "allowed.test")
    answer.expect(0)
    must(len(lines) == 13, f"{lines}\n{answer}")
    for name, line in lines.items():
        scheme = "http" if name.endswith("-http") else "https"
        must(line == f"200 hello from {scheme}://allowed.test/a", f"{name}: {line}")
    log = rows(bench, answer)
    must(len(log) == 13 and {row["decision"] for row in log} == {"allowed"}, json.dumps(log))
    must({row["mode"] for row in log} == {"absolute", "tunnel", "base-url"}, json.dumps(log))
    must(all(row["phase"] == "work" and row["rule"] == "allowHosts[0]" for row in log), json.dumps(log))


def test_no_http_client_reaches_a_host_that_is_not_allowed(bench):
    before = len(bench.world.seen())
    answer, lines = run(bench, ALL_CLIENTS.replace("{host}", "other.test"), "--allow-host", "allowed.test")
    answer.expect(0)
    must(len(lines) == 13, f"{lines}\n{answer}")
    for name, line in lines.items():
        # PHP streams report only that the tunnel failed.
        told = line == "0 " if name == "php-stream-https" else "403" in line or line.startswith("0 the sandbox denied the request to other.test:")
        must("hello" not in line and told, f"{name}: {line}")
    must(len(bench.world.seen()) == before, "a refused request reached the host")
    log = rows(bench, answer)
    must(len(log) == 13 and {row["decision"] for row in log} == {"denied"}, json.dumps(log))
    must(any("other.test" in notice and "wp_codebox_egress_denied" in notice for notice in answer.result["notices"]),
         json.dumps(answer.result["notices"]))


def test_denied_egress_request_returns_a_policy_hint(bench):
    script = """say sentence curl -sS -m 20 "$CODEBOX_EGRESS_URL/https/other.test/x/y?secret=1"
say told sh -c 'curl -sS -m 20 "$CODEBOX_EGRESS_URL/https/other.test/x/y?secret=1" | tail -n 1'
"""
    answer, lines = run(bench, script, "--allow-host", "allowed.test")
    must("(option --allow-host other.test) [wp_codebox_egress_denied]" in lines["sentence"], str(lines))
    body = json.loads(lines["told"])
    must(body["schema"] == "wp-codebox/egress-denied/v1" and body["code"] == "wp_codebox_egress_denied", str(body))
    must(body["policy_hint"]["host"] == "other.test", str(body))
    must("secret=1" not in json.dumps(rows(bench, answer)), "the query is in the log")


def test_guest_with_network_deny_has_no_egress_socket_or_proxy(bench):
    script = r"""
say socket sh -c 'ls /run/codebox/egress.sock 2>&1 >/dev/null | grep -c "No such"'
say proxies sh -c 'env | grep -ci proxy'
say direct web --noproxy '*' http://203.0.113.10/a
say port web http://127.0.0.1:3128/https/allowed.test/a
say wp $WP get https://allowed.test/a
say stream php $C/http.php stream http://allowed.test/a
"""
    answer, lines = run(bench, script)
    answer.expect(0)
    must(lines["socket"] == "1" and lines["proxies"] == "0", str(lines))
    must(lines["wp"].startswith("0 the sandbox has no network, so it denied the request to allowed.test;"), str(lines))
    for name in ("direct", "port", "stream"):
        must("hello" not in lines[name] and not lines[name].startswith("200"), str(lines))
    must(not os.path.exists(os.path.join(bundle(bench, answer), "files", "runtime-evidence", "egress.jsonl")), "there is a log")


def test_guest_has_no_route_around_the_egress_bridge(bench):
    script = r"""
say direct web --noproxy '*' http://203.0.113.10/a
say name web --noproxy '*' http://allowed.test/a
say route sh -c 'wc -l < /proc/self/net/route'
"""
    answer, lines = run(bench, script, "--allow-host", "allowed.test")
    must("hello" not in json.dumps(lines) and lines["route"] == "1", str(lines))


def test_policy_path_rules_apply_to_wordpress_requests_and_refuse_connect_tunnels(bench):
    rules = policy(rules=[{"host": "allowed.test", "methods": ["GET"], "paths": ["/v1/"]}])
    script = r"""
say inside $WP get https://allowed.test/v1/x
say outside $WP get https://allowed.test/v2/x
say dots $WP get https://allowed.test/v1/../v2/x
say post $WP post https://allowed.test/v1/x
say tunnel web https://allowed.test/v1/x
say tunnelcode curl -s -m 20 -o /dev/null -w '%{http_connect}' https://allowed.test/v1/x
"""
    answer, lines = run(bench, script, "--policy", rules)
    must(lines["inside"] == "200 hello from https://allowed.test/v1/x", str(lines))
    for name in ("outside", "dots", "post"):
        must(lines[name].startswith("0 the sandbox denied the request to allowed.test:443:"), f"{name}: {lines[name]}")
    must(lines["tunnelcode"].startswith("403") and "hello" not in lines["tunnel"], str(lines))
    must(bench.world.seen(path="/v2/x") == [], "a refused path reached the host")


def test_policy_path_rules_apply_to_every_http_client_if_tls_is_terminated(bench):
    rules = policy(rules=[{"host": "allowed.test", "methods": ["GET"], "paths": ["/t1/"]}], tls="terminate")
    script = r"""
for path in t1 t2; do
say curl-$path web https://allowed.test/$path/x
say php-curl-$path php $C/http.php curl https://allowed.test/$path/x
say php-stream-$path php $C/http.php stream https://allowed.test/$path/x
say python-$path python3 $C/connect.py allowed.test 443 /$path/x
say wp-$path $WP get https://allowed.test/$path/x
done
say issuer sh -c 'curl -sSv -m 20 https://allowed.test/t1/x 2>&1 | grep -c "Test Authority"'
"""
    answer, lines = run(bench, script, "--policy", rules)
    for name, line in lines.items():
        if name.endswith("-t1"):
            must(line == "200 hello from https://allowed.test/t1/x", f"{name}: {line}\n{answer}")
        elif name.endswith("-t2"):
            must(line.startswith("0 the sandbox denied " if name == "wp-t2" else "403 "), f"{name}: {line}")
    must(lines["issuer"] == "0", "the guest met the host's own certificate")
    must(bench.world.seen(path="/t2/x") == [], "a refused path reached the host")


def test_hosts_that_resolve_or_redirect_to_private_addresses_are_refused(bench):
    allow = [flag for host in ("allowed.test", "private.test", "loop.test", "mixed.test") for flag in ("--allow-host", host)]
    script = r"""
say private web "$CODEBOX_EGRESS_URL/http/private.test/"
say loop web "$CODEBOX_EGRESS_URL/http/loop.test/"
say mixed web "$CODEBOX_EGRESS_URL/http/mixed.test/"
say safe $WP safe http://private.test/
say redirect $WP get https://allowed.test/redirect/http:__private.test_
say control $WP get https://allowed.test/redirect/https:__allowed.test_there
"""
    answer, lines = run(bench, script, *allow)
    for name in ("private", "loop", "mixed", "safe", "redirect"):
        must(lines[name].startswith("0 the sandbox denied " if name in ("safe", "redirect") else "403 "), f"{name}: {lines[name]}\n{answer}")
    must(lines["control"] == "200 hello from https://allowed.test/there", str(lines))


def test_check_commands_are_limited_by_the_egress_policy_of_their_run(bench):
    check = "curl -sS -m 20 http://allowed.test/from-check"
    answer, _ = run(bench, "say one web http://allowed.test/from-work", "--allow-host", "allowed.test", "--check", check)
    answer.expect(0)
    must(answer.result["checks"][0]["status"] == "passed", str(answer))
    log = [(row["phase"], row["path"]) for row in rows(bench, answer)]
    must(log == [("work", "/from-work"), ("check", "/from-check")], str(log))


def test_run_fails_when_the_egress_bridge_cannot_start(bench):
    arguments = start_arguments(bench, "say ran true", "--allow-host", "allowed.test")
    # Without trusted CA certificates the bridge cannot verify any host.
    covers = " && ".join(f"mount -t tmpfs none {path}" for path in ("/etc/ssl", "/usr/lib/ssl", "/usr/share/ca-certificates"))
    process = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{covers} && exec "$0" "$@"',
                                bench.environment["CODEBOX"], *arguments], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PATH": "/usr/sbin:/usr/bin:/bin"})
    answer = bench.finish(arguments, process)
    answer.expect(125, "wp_codebox_egress_unavailable")
