"""Who may use the service: users of the machine by their uid, everybody else by a token with scopes."""

import grp
import json
import os
import pwd
import subprocess
import sys

from harness import contents, must, skip_unless_root
from service import Service

PROGRAM = """
import http.client, json, socket, sys
class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
connection = Unix("localhost", timeout=30)
headers = {"Authorization": "Bearer " + sys.argv[3]} if len(sys.argv) > 3 else {}
try:
    connection.request("GET", sys.argv[2], headers=headers)
    answer = connection.getresponse()
    print(json.dumps({"status": answer.status, "body": answer.read().decode()}))
except OSError as error:
    print(json.dumps({"error": type(error).__name__}))
"""


def ask_as(user, service, path, *token):
    rights = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    done = subprocess.run([sys.executable, "-c", PROGRAM, service.socket, path, *token], check=True, capture_output=True, timeout=60, **rights)
    return json.loads(done.stdout)


def test_another_local_user_is_refused_on_the_socket_and_the_owner_is_not(service):
    if os.geteuid() != 0:
        skip_unless_root("to become another user")
    os.chmod(service.directory, 0o755)
    must(os.stat(service.socket).st_mode & 0o777 == 0o600, f"{oct(os.stat(service.socket).st_mode)}")
    must(ask_as("nobody", service, "/v1/sandboxes") == {"error": "PermissionError"}, "the mode of the socket lets everybody connect")
    owner = service.bench.owner
    must(ask_as(owner, service, "/v1/sandboxes")["status"] == 200, "control: the owner of the state directory is refused")
    # Even if the mode of the socket lets other users connect, the server checks their uid.
    os.chmod(service.socket, 0o666)
    try:
        refused = ask_as("nobody", service, "/v1/sandboxes")
        must(refused["status"] == 401 and json.loads(refused["body"])["code"] == "wp_codebox_service_token_required", f"{refused}")
        token = service.token("sandboxes:read", "sandboxes:all")
        must(ask_as("nobody", service, "/v1/sandboxes", token)["status"] == 200, "control: another user with a token is refused")
        wrong = token[:-1] + ("a" if token[-1] != "a" else "b")
        must(ask_as("nobody", service, "/v1/sandboxes", wrong)["status"] == 401, "a changed token is accepted")
    finally:
        os.chmod(service.socket, 0o600)


def test_members_of_the_socket_group_need_a_token_and_other_users_can_neither_connect_nor_start_it(bench, service):
    if os.geteuid() != 0:
        skip_unless_root("to become another user")
    member, stranger = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")
    group, owner = grp.getgrgid(member.pw_gid).gr_name, pwd.getpwnam(bench.owner)
    must(stranger.pw_gid != member.pw_gid, "both users have the same group")
    inside = Service(bench, "group-inside", "--socket-group", group)
    inside.socket = os.path.join(inside.state, "api.sock")
    refused = bench.call(*inside.words())
    must(refused.exit != 0 and "outside of the state directory" in refused.stderr, f"{refused}")
    # A user outside of the group cannot give the new directory to the group, and leaves none behind.
    outside = Service(bench, "group-outside", "--socket-group", group)
    outside.socket = os.path.join(outside.directory, "open", "api.sock")
    os.chmod(outside.directory, 0o755)
    rights = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    refused = subprocess.run([bench.environment["CODEBOX"], *outside.words()], **rights, capture_output=True, text=True, timeout=60, check=False)
    must(refused.returncode != 0 and "cannot be created or used: Operation not permitted" in refused.stderr, f"{refused}")
    must(not os.path.exists(os.path.dirname(outside.socket)), "the directory is left")
    # The service is started by root, and by an ordinary user in the group.
    as_member = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": [member.pw_gid]}
    for name, rights in (("group-root", {}), ("group-member", as_member)):
        one = Service(bench, name, "--socket-group", group)
        one.rights, one.socket = rights, os.path.join(one.directory, "open", "api.sock")
        os.chmod(one.directory, 0o755)
        one.start()
        try:
            for path, mode in ((one.socket, 0o660), (os.path.dirname(one.socket), 0o2750)):
                found = os.stat(path)
                must((found.st_mode & 0o7777, found.st_gid, found.st_uid) == (mode, member.pw_gid, owner.pw_uid), f"{path}: {found}")
            must(ask_as("daemon", one, "/v1/sandboxes") == {"error": "PermissionError"}, "a user outside of the group can connect")
            without = ask_as("nobody", one, "/v1/sandboxes")
            must(without["status"] == 401 and json.loads(without["body"])["code"] == "wp_codebox_service_token_required", f"{without}")
            must(ask_as("nobody", one, "/v1/sandboxes", one.token("sandboxes:read"))["status"] == 200, "control: a member with a token is refused")
            must(ask_as(bench.owner, one, "/v1/sandboxes")["status"] == 200, "control: the owner needs a token")
        finally:
            one.close()


def test_token_for_another_profile_cannot_learn_that_a_sandbox_exists(service):
    service.profile("profile.other")
    mine = service.token("sandboxes:create@profile.other", "sandboxes:read@profile.other", "sandboxes:exec", "files:read", "files:write", actor="agt:mine")
    same = service.token("sandboxes:create@profile.test", "sandboxes:read@profile.test", actor="agt:same")
    sandbox = service.create(wait=None, token=same)["id"]
    must(service.get(f"/v1/sandboxes/{sandbox}", token=same).status == 200, "control: its own token sees it")
    unknown = "run_" + "0" * 32
    for method, suffix, body in (("GET", "", None), ("DELETE", "", None), ("POST", "/exec", {"argv": ["true"]}), ("GET", "/files", None),
                                 ("PUT", "/files/workspace/plugin/a", b"x"), ("POST", "/extend-ttl", {"ttl": "5m"}), ("POST", "/snapshots", {}),
                                 ("POST", "/restore", {"snapshot": "snap_" + "0" * 32}), ("POST", "/recreate", None)):
        there = service.call(method, f"/v1/sandboxes/{sandbox}{suffix}", body, token=mine)
        absent = service.call(method, f"/v1/sandboxes/{unknown}{suffix}", body, token=mine)
        must(there.status == absent.status and there.status in (403, 404), f"{method} {suffix}: {there} {absent}")
        must(there.body.replace(sandbox.encode(), b"ID") == absent.body.replace(unknown.encode(), b"ID"), f"{method} {suffix}: {there} {absent}")
        quiet = {"date", "content-length"}
        must({k: v for k, v in there.headers.items() if k not in quiet} == {k: v for k, v in absent.headers.items() if k not in quiet}, f"{there.headers} {absent.headers}")
    must(sandbox not in json.dumps(service.sandboxes(token=mine)), "the list names it")
    must(sandbox in json.dumps(service.sandboxes(token=same)), "control: the list of its own token does not name it")
    service.post("/v1/sandboxes", {"profile": "profile.test"}, token=mine).expect(403, 404)
    service.delete(f"/v1/sandboxes/{sandbox}")


def test_revoked_token_is_refused_and_neither_list_nor_stored_files_contain_its_secret(service):
    token = service.token("sandboxes:read", actor="agt:short")
    service.get("/v1/sandboxes", token=token).expect(200)
    listed = service.bench.call("token", "list", "--state", service.state, "--json").expect(0)
    must(token not in listed.stdout and token.split("_")[2] not in listed.stdout, "the list shows the secret")
    for file, content in contents(os.path.join(service.state, "service")):
        must(token.split("_")[2].encode() not in content, f"{file} has the secret")
    service.bench.call("token", "revoke", token.split("_")[1], "--state", service.state, "--json").expect(0)
    service.get("/v1/sandboxes", token=token).expect(401, code="wp_codebox_service_token_required")


def test_profile_secret_is_read_from_its_file_and_is_in_neither_the_guest_nor_another_file(service):
    more = "network: { default: deny, egress: [api.example.org] }\nsetup:\n  secret_refs:\n    - { name: SHOP_API_KEY, hosts: [api.example.org] }\n"
    service.profile("profile.secret", more=more)
    missing = service.post("/v1/sandboxes", {"profile": "profile.secret"}, headers={"Prefer": "wait=240"})
    must("SHOP_API_KEY" in str(missing), f"a missing secret is not named: {missing}")
    secrets = os.path.join(service.state, "secrets")
    os.makedirs(secrets, mode=0o700, exist_ok=True)
    value = "value-of-the-secret-4711"
    path = os.path.join(secrets, "SHOP_API_KEY")
    with open(path, "w", encoding="utf-8") as file:
        file.write(value + "\n")
    os.chmod(path, 0o600)
    service.bench.own(secrets)
    sandbox = service.create("profile.secret")["id"]
    seen = service.sh(sandbox, "printf %s \"$SHOP_API_KEY\"; env")
    must(seen and value not in seen and "SHOP_API_KEY" in seen, f"{seen}")
    for file, content in contents(service.state):
        must(file == path or value.encode() not in content, f"{file} has the secret")
    service.delete(f"/v1/sandboxes/{sandbox}")


def test_administrator_mounts_only_directories_below_a_source_root_and_never_the_state_directory(bench, service):
    # The first sandbox builds the template, which the other state directory copies.
    service.delete(f"/v1/sandboxes/{service.create()['id']}")
    opened, closed = bench.source("opened/shop"), bench.source("closed")
    os.symlink(closed, os.path.join(bench.directory, "opened/link"))
    own = os.path.join(bench.directory, "service-roots")
    roots = Service(bench, "roots", "--source-root", os.path.dirname(opened), "--source-root", own, like=service).start()
    try:
        state, link = roots.state, os.path.join(bench.directory, "opened/link")
        for one, source in ((roots, closed), (roots, link), (roots, state), (service, opened)):
            refused = str(one.post("/v1/sandboxes", {"profile": "profile.test", "workspace": {"source": source}}, headers={"Prefer": "wait=240"}))
            must("wp_codebox_mount_denied" in refused, f"{source}: {refused}")
            must(("--source-root" in refused) == (source != state), f"denied for another reason, {source}: {refused}")
        # Control.
        sandbox = roots.create(workspace={"source": opened})["id"]
        must(roots.sh(sandbox, "cat /workspace/plugin/lib/a.txt") == "one\ntwo\nthree\n", "the directory is not mounted")
    finally:
        roots.close()
