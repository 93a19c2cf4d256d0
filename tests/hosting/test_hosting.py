"""Sites of three users on one runner socket: each works, and none reaches what belongs to another. Each attack has a control: the owner can."""

import json
import os
import shutil
import stat
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

from harness import kill_and_wait, must, poll_until, tree
from harness.callers import code, connect_as, flipping, setpriv
from harness.templates import seed_template
from hosting import OUTSIDER, SHARES, STATES, call

FILE = "/wordpress/wp-content/plugins/sample/sample.php"
SLEEP = "sleep 300"


@pytest.fixture(autouse=True)
def free_places(hosting):
    """Ends the runs that a case leaves, and waits until their places are free."""
    yield
    for site in hosting.sites:
        kill_and_wait(*site.supervisors())
        site.free_places()


@pytest.fixture(name="sites")
def sites_of_the_host(hosting):
    return hosting.sites


@pytest.fixture(name="one")
def site_of_the_victim(sites):
    return sites[0]


@pytest.fixture(name="two")
def site_of_the_attacker(sites):
    return sites[1]


@pytest.fixture(name="bundle", scope="module")
def bundle_of_the_victim(hosting):
    """The id of a run of the first site, and the directory of its bundle."""
    answer = hosting.sites[0].run("echo new >new.txt").expect(200).json
    must(answer["success"], answer)
    run = answer["run"]["run_id"]
    return run, os.path.join(hosting.sites[0].site_directory(), "artifacts", run)


def test_each_user_runs_a_task_over_rest_and_applies_its_result(sites):
    answers = {}

    def work(site):
        run = site.run(f"echo '// {site.owner}' >>sample.php", checks=["php -l sample.php"]).expect(200).json
        answers[site.owner] = run, site.ability("apply-approved-artifact", {"artifact_id": run["run"]["run_id"], "approved_files": [FILE]})

    threads = [threading.Thread(target=work, args=(site,)) for site in sites]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for site in sites:
        run, applied = answers[site.owner]
        must(run["success"] is True and [row["path"] for row in run["changed_files"]] == [FILE], run)
        applied.expect(200)
        with open(site.path("site/wp-content/plugins/sample/sample.php"), encoding="utf-8") as file:
            must(f"// {site.owner}" in file.read(), "the change is not applied")
        # Keys, bundles and templates are the user's own, in the directory that no setting names.
        for name in ("keys", "sites", "templates"):
            found = os.lstat(os.path.join(STATES, site.owner, name))
            must(found.st_uid == site.account.pw_uid and stat.S_ISDIR(found.st_mode), f"{site.owner} {name}: {found}")
    keys = {(call("sha256sum", os.path.join(STATES, site.owner, "keys", "host.ed25519")).stdout.split() or [""])[0] for site in sites}
    must(len(keys) == 3 and "" not in keys, f"the sites share a key: {keys}")


def test_state_bundle_key_and_journal_of_a_user_are_readable_by_its_owner_only(sites, one, bundle):
    run, directory = bundle
    for path in (one.state, directory, os.path.join(directory, "manifest.json"), os.path.join(one.state, "keys", "host.ed25519"),
                 os.path.join(one.site_directory(), "runs", run, "events.jsonl"), os.path.join(one.site_directory(), "audit.jsonl")):
        must(one.may_read(path), f"control: its owner cannot read {path}")
        for other in sites[1:]:
            must(not other.may_read(path), f"{other.owner} read {path}")


def mount(path):
    return lambda request: request["mounts"][0].__setitem__("source", path)


def staged(path):
    return lambda request: request["task"].__setitem__("staged_files", [{"source": path, "target": "/run/codebox/staged/x"}])


def state(path):
    return lambda request: request["paths"].__setitem__("state_dir", path)


def agents(path):
    def change(request):
        # A guest with a uid of its own executes only what every user may execute.
        request["paths"].update(agents_dir=path, identity="shared")
        request.update(agent={"kind": "preset", "name": "opencode"},
                       model={"provider": "any", "model": "any", "api": "openai-chat", "base_url": "http://127.0.0.1:9/v1", "private": True})
    return change


@pytest.mark.parametrize("name", ("state_dir", "mount", "staged_file", "agents_dir"))
def test_request_that_names_something_of_another_user_is_refused(one, two, name):
    # The state directory of another user is the only one of these that a run of the attacker could also damage.
    needle = one.secret + {"staged_file": " in a file", "agents_dir": " of an agent"}.get(name, "")
    change = {"state_dir": state(one.state), "mount": mount(os.path.join(one.private, "plugin")),
              "staged_file": staged(os.path.join(one.private, "file")), "agents_dir": agents(one.private)}[name]
    own = one.ask(change)
    must(code(own) == "result" and needle in json.dumps(own), f"control: its owner: {own[-1]}")
    before = tree(one.state)
    theirs = two.ask(change)
    must(code(theirs) not in ("result", "wp_codebox_internal"), f"the run started: {theirs[-1]}")
    must(one.secret not in json.dumps(theirs), "the answer has the secret")
    must(tree(one.state) == before, "the state of the other user changed")


def test_control_socket_of_another_user_takes_no_connection_and_its_run_no_cancellation(one, two):
    run = one.client(script="echo ready; sleep 60").accepted()
    run.until("runtime.command.output", "ready")
    directory = os.path.join(one.state, "sites", "raw", "runs", run.run_id)
    # The path of the socket is longer than an address may be, so the client enters the directory.
    program = "import os, socket, sys; os.chdir(sys.argv[1]); socket.socket(socket.AF_UNIX).connect('control.sock')"
    connect = lambda site: site.as_user("/usr/bin/python3", "-c", program, directory)  # noqa: E731
    cancel = lambda site: site.as_user(site.hosting.program, "runs", "cancel", run.run_id, "--state", one.state, "--site", "raw")  # noqa: E731
    must("PermissionError" in connect(two).stderr, "another user is connected")
    must(cancel(two).returncode != 0, "another user cancels the run")
    must(connect(one).returncode == 0, f"control: {connect(one)}")
    must(cancel(one).returncode == 0, f"control: {cancel(one)}")
    must(run.last()["result"]["outcome"] == "cancelled", "not cancelled")
    run.close()


def test_abilities_of_a_site_know_no_run_and_no_bundle_of_another_user(one, two, bundle):
    run, _ = bundle
    for name, method, value in (("get-run", "GET", {"run_id": run}), ("list-run-events", "GET", {"run_id": run}), ("cancel-run", "POST", {"run_id": run}),
                                ("get-artifact", "GET", {"artifact_id": run}),
                                ("apply-approved-artifact", "POST", {"artifact_id": run, "approved_files": ["/wordpress/wp-content/plugins/sample/new.txt"]})):
        theirs = two.ability(name, value, method=method)
        must(theirs.status == 404, f"{name}: {theirs}")
        own = one.ability(name, value, method=method)
        must(own.status == 200, f"control: {name}: {own}")


def fetch(url):
    """Returns the status of a page."""
    try:
        # The token becomes a cookie, without which the redirect leads nowhere.
        with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(url, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_preview_of_a_user_on_a_loopback_address_needs_its_token(one):
    """A request to the socket that names no token: every user of the host can connect to a loopback address."""
    def change(request):
        del request["agent"]
        request["hold"] = {"ttl_ms": 120000, "max_ttl_ms": 120000, "preview": {}}

    run = one.client(change).accepted()
    while (frame := run.frame())["type"] == "event" and frame["event"]["data"].get("to") != "ready":
        pass
    must(frame["type"] == "event", str(frame))
    said = one.as_user("/usr/bin/python3", "-c", ASK, os.path.join(one.state, "sites", "raw", "runs", run.run_id))
    preview = json.loads(said.stdout)["answer"]
    must("accessUrl" in preview, f"the preview has no token: {preview}")
    for wrong in ("", "/?preview_token=" + "x" * 32):
        status = fetch(preview["localUrl"] + wrong)
        must(status in (401, 403), f"the preview answers {status} to {wrong!r}")
    must(fetch(preview["accessUrl"]) == 200, "control: the link of its owner")
    run.send({"type": "cancel"}).last()
    run.close()


#: Asks the control socket in a run's directory for its preview.
ASK = """
import json, os, socket, sys
os.chdir(sys.argv[1])
stream = socket.socket(socket.AF_UNIX)
stream.connect("control.sock")
stream.sendall(json.dumps({"live": 1, "actor": "test", "request": {"type": "preview", "action": "status"}}).encode() + b"\\n")
for line in stream.makefile():
    if json.loads(line)["type"] in ("answer", "error"):
        print(line)
        break
"""


def test_user_at_its_limit_gets_busy_and_the_others_still_run(sites):
    one, two, three = sites
    for _ in range(SHARES["user_max_runs"]):
        one.run(SLEEP, wait=False).expect(200)
    busy = one.run("true").expect(429, "wp_codebox_busy")
    must("one user may have no more at once" in busy.json["message"], busy)
    # The share of the caller's own word changes nothing.
    raw = one.ask(lambda request: request.update(max_runs=200))
    must(code(raw) == "wp_codebox_busy" and raw[-1]["error"]["data"]["limit"] == SHARES["user_max_runs"], raw[-1])
    must(two.run("true").expect(200).json["success"], "another user is refused")
    must(two.run(SLEEP, wait=False).status == 200, "another user is refused")
    full = three.run("true").expect(429, "wp_codebox_busy")
    must("of all users" in full.json["message"], full)
    # The kernel frees the place of a killed run.
    kill_and_wait(one.supervisors()[0])
    poll_until(lambda: three.run("true").status == 200, seconds=60, what="the place of a killed run is not free")


def test_connections_without_a_request_take_places_of_their_user_only(one, two, hosting):
    idle = [connect_as(hosting.service.address, one.owner) for _ in range(SHARES["user_max_runs"])]
    poll_until(lambda: one.run("true").code == "wp_codebox_busy", seconds=60, what="the connections take no place")
    must(two.run("true").expect(200).json["success"], "another user is refused")
    for connection in idle:
        connection.close()
    poll_until(lambda: one.run("true").status == 200, seconds=60, what="the places of closed connections are not free")


def test_request_above_the_memory_ceiling_of_the_host_is_refused(one):
    memory = lambda number: lambda request: request["limits"].__setitem__("memory_bytes", number)  # noqa: E731
    ceiling = SHARES["max_limits"]["memory_bytes"]
    above = one.ask(memory(ceiling + 1))
    must(code(above) == "wp_codebox_limit_invalid" and above[-1]["error"]["data"]["ceiling"] == ceiling, above[-1])
    must(code(one.ask(memory(ceiling))) == "result", "control: at the ceiling")


def test_user_outside_of_the_group_cannot_connect_until_it_is_added(hosting):
    def connects():
        return call(*setpriv(OUTSIDER), "/usr/bin/python3", "-c", "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])", hosting.service.address)

    must("PermissionError" in connects().stderr, "a user outside of the group is connected")
    hosting.users("add", OUTSIDER)
    must(connects().returncode == 0, f"control: a member: {connects()}")
    hosting.users("remove", OUTSIDER)
    must("PermissionError" in connects().stderr, "a removed user is connected")
    hosting.users("remove", OUTSIDER, "--delete-state")


def test_own_state_directory_cannot_be_replaced_and_a_name_that_changes_to_another_users_is_not_followed(one, two):
    moved = two.as_user("/usr/bin/python3", "-c", "import os, sys; os.rename(sys.argv[1], sys.argv[1] + '.old')", two.state)
    must("PermissionError" in moved.stderr, f"a user renamed its state directory: {moved}")
    # A directory of the attacker with a state directory in it that has the name of the victim's.
    place = two.path("own")
    own = os.path.join(place, one.owner)
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(own)
    two.give(place)
    os.chmod(own, 0o700)
    seed_template(own)
    link = os.path.join(place, "link")
    named = state(os.path.join(link, one.owner))
    os.symlink(place, link)
    must(code(two.ask(named)) == "result", "control: its own directory behind the link")
    os.unlink(link)
    before = tree(one.state)
    with flipping(link, place, STATES, user=two.owner):
        seen = set()
        poll_until(lambda: seen.add(os.readlink(link)) or len(seen) == 2, what="control: the link does not change")
        for _ in range(6):
            frames = two.ask(named, "true")
            must(code(frames) != "wp_codebox_internal" and one.secret not in json.dumps(frames), frames[-1])
    must(tree(one.state) == before, "the state of the other user changed")
    os.symlink(STATES, link)
    must(code(two.ask(named)) not in ("result", "wp_codebox_internal"), "the state of another user is used")
    must({os.lstat(os.path.join(at, name)).st_uid for at, names, files in os.walk(own) for name in names + files} == {two.account.pw_uid}, "files of another user")


def test_processes_of_a_run_belong_to_its_user_or_to_a_guest(one):
    one.run(SLEEP, wait=False).expect(200)
    one.await_agents()
    supervisors = one.supervisors()
    must(len(supervisors) == 1 and os.stat(f"/proc/{supervisors[0]}").st_uid == one.account.pw_uid, str(supervisors))
    with open(f"/proc/{supervisors[0]}/status", encoding="ascii") as file:
        uids = next(line for line in file if line.startswith("Uid:")).split()[1:]
    must(set(uids) == {str(one.account.pw_uid)}, f"the supervisor can become another user: {uids}")


def test_service_that_root_starts_for_a_member_keeps_the_group_of_the_socket(one, hosting):
    """As wp-codebox-serve.service: without the group the user it becomes could not connect."""
    group = str(os.stat(hosting.service.address).st_gid)
    for socket_options, kept in ((["--runner-socket", hosting.service.address], True), ([], False)):
        process = subprocess.Popen([hosting.program, "serve", "--state", one.state, "--wordpress", hosting.environment["CODEBOX_WORDPRESS"], *hosting.programs(), *socket_options],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            line = next((line for line in process.stderr if "listening" in line), None)
            must(line, "the service does not listen")
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                status = dict(line.rstrip().split(":\t", 1) for line in file if ":\t" in line)
            must(set(status["Uid"].split()) == {str(one.account.pw_uid)}, f"the service is {status['Uid']}")
            must((group in status["Groups"].split()) == kept, f"{socket_options}: groups {status['Groups']}")
        finally:
            process.terminate()
            process.wait(60)
            process.stderr.close()
