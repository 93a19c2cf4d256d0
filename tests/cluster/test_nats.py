"""The message server of a cluster: the bus on one server and on three, accounts with TLS, the commands of the operator.

The tests of the bus are in ext/platform/cluster/tests/nats.rs; here are the servers on which they run, and attempts without the product's code.
"""

import base64
import json
import os
import signal
import subprocess

import pytest

from harness import must, poll_until
from harness.accounts import Accounts
from harness.nats import Client, Cluster, Nats
from harness.nodes import Nodes

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SMALL = ("--task-space", "4", "--record-space", "4", "--object-space", "32", "--object-size", "16")


@pytest.fixture(scope="module")
def program(environment):
    return environment["CODEBOX_NATS_SERVER"]


@pytest.fixture(scope="module")
def server(program):
    one = Nats(program).start()
    yield one
    one.close()


@pytest.fixture(scope="module")
def tests_of_the_bus():
    """Returns the program of ext/platform/cluster/tests/nats.rs."""
    # Without `-p`, which would build the dependencies again with other features.
    built = subprocess.run(["cargo", "test", "--no-run", "--test", "nats", "--message-format=json"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    messages = [json.loads(line) for line in built.stdout.splitlines()]
    return next(one["executable"] for one in messages if one.get("executable") and one["target"]["name"] == "nats")


@pytest.fixture(scope="module")
def conformance(tests_of_the_bus):
    """Returns a function that runs tests of the bus with variables; it must have run as many as expected."""
    def run(expected, *arguments, **variables):
        environment = {**os.environ, **{f"CODEBOX_NATS_{name}": str(value) for name, value in variables.items()}}
        done = subprocess.run([tests_of_the_bus, "--ignored", "--nocapture", *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, check=False)
        must(done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
        passed = int(done.stdout.rsplit("test result: ok. ", 1)[1].split()[0])
        must(passed == expected, f"{passed} tests ran, not {expected}:\n{done.stdout}")
    return run


# Those that need another server, or are started by another test.
APART = ("accounts_of_", "call_to_a_stopped_server_", "each_record_update_", "process_that_holds_")
ON_ANY_SERVER = [word for name in APART for word in ("--skip", name)]


def test_conformance_tests_of_the_bus_pass_on_one_server(conformance, server):
    conformance(20, *ON_ANY_SERVER, URL=server.url)


@pytest.mark.matrix
def test_conformance_tests_of_the_bus_pass_on_three_servers(conformance, program):
    cluster = Cluster(program)
    try:
        conformance(20, *ON_ANY_SERVER, URL=cluster.start().url, REPLICAS=3)
    finally:
        cluster.close()


def test_call_to_a_stopped_server_fails_within_the_time_limit_and_succeeds_after_it_continues(conformance, program):
    one = Nats(program).start()
    try:
        conformance(1, "--exact", "call_to_a_stopped_server_fails_within_the_time_limit_and_succeeds_when_the_server_continues", STOP_URL=one.url, STOP_PID=one.pid)
    finally:
        one.process.send_signal(signal.SIGCONT)
        one.close()


def test_record_changes_are_neither_lost_nor_repeated_when_the_leader_is_killed(tests_of_the_bus, program):
    cluster = Cluster(program)
    try:
        cluster.start()
        test = subprocess.Popen([tests_of_the_bus, "--exact", "--ignored", "--nocapture", "each_record_update_is_stored_exactly_once_although_a_stream_leader_is_killed"],
                                env={**os.environ, "CODEBOX_NATS_COUNT": cluster.url, "CODEBOX_NATS_REPLICAS": "3"},
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        line = next(line for line in test.stdout if line.startswith("counts "))
        leader = poll_until(lambda: cluster.leader(line.split()[1]), what="the stream has no leader")
        leader.kill()
        rest, _ = test.communicate("killed\n", timeout=300)
        must(test.returncode == 0 and "counted" in rest, rest)
    finally:
        cluster.close()


# Accounts and TLS.


@pytest.fixture(scope="module")
def accounts(bench, program):
    one = Accounts(bench, program)
    bench.call("cluster", "setup", *one.options("operator"), "--submitter", "shop", "--submitter", "blog", *SMALL, "--json").expect(0)
    yield one
    one.server.close()


def test_each_account_can_do_a_whole_run_and_is_denied_the_subjects_of_other_parties(conformance, accounts):
    conformance(2, "accounts_", ACCOUNTS=accounts.directory)


def without_one_line(permissions):
    """Returns each line of an account's permissions with the permissions that lack it."""
    rows = []
    for verb in ("publish", "subscribe"):
        lines = permissions[verb]["allow"]
        # Without the right to send events a run still succeeds, so that line is left out; `test_publish_or_subscribe_outside_the_own_permissions_is_refused` covers it.
        rows += [(f"{verb} {line}", {**permissions, verb: {"allow": [other for other in lines if other != line]}}) for line in lines if line != "events.*.*"]
    return rows


def test_whole_run_is_denied_to_an_account_that_lacks_any_one_line_of_its_permissions(bench, program, tests_of_the_bus):
    accounts = Accounts(bench, program, "lines", {name: without_one_line for name in ("node", "shop")})
    try:
        bench.call("cluster", "setup", *accounts.options("operator"), "--submitter", "shop", "--submitter", "blog", *SMALL, "--json").expect(0)

        def whole_run(directory):
            environment = {**os.environ, "CODEBOX_NATS_ACCOUNTS": directory, "RUST_BACKTRACE": "0"}
            words = [tests_of_the_bus, "--ignored", "--exact", "--nocapture", "accounts_of_submitter_and_node_have_the_rights_for_a_whole_run"]
            done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False)
            with accounts.client("operator") as client:
                for stream in ("T", "R", "O"):
                    must(client.request(f"$JS.API.STREAM.PURGE.CODEBOX_{stream}_shop")["success"], "the rest of a run cannot be removed")
            return done
        whole = whole_run(accounts.directory)
        must(whole.returncode == 0 and "1 passed" in whole.stdout, whole.stdout + whole.stderr)
        for (party, line), directory in accounts.variants.items():
            done = whole_run(directory)
            said = done.stdout + done.stderr
            must(done.returncode != 0, f"{party} needs no right to {line}")
            must("Denied {" in said, f"{party} without {line}: {said[-1500:]}")
    finally:
        accounts.server.close()


def test_submitter_may_answer_a_request_once_and_not_at_all_without_allow_responses(bench, program):
    def silent(permissions):
        return [("answers", {name: value for name, value in permissions.items() if name != "allow_responses"})]
    accounts = Accounts(bench, program, "answers", {"shop": silent})
    try:
        mute = next(iter(accounts.others.values()))
        for user, refusals in ((accounts.users["shop"], [False, True]), (mute, [True])):
            with accounts.client("node") as node, Client(accounts.server, user, f"{accounts.directory}/ca.pem") as shop:
                must(shop.subscribe("secrets.shop.*") == "", "shop may not read requests for its secrets")
                reply = f"{node.inbox}.1"
                must(node.publish("secrets.shop.run_0", "request", reply) == "", "a node may not ask")
                must(shop.message()[1] == reply, "the request has another reply")
                for is_refused in refusals:
                    must(("Permissions Violation" in shop.publish(reply, "answer")) is is_refused, f"{user.permissions}: {is_refused}")
    finally:
        accounts.server.close()


#: What a party may not do, with the account that shows that the attempt is well formed.
REFUSED = {
    "task of another submitter": ("blog", "publish", "store.x.tasks.default.high.shop", "shop"),
    "record of another submitter": ("blog", "publish", "store.x.records.shop.run_0", "shop"),
    "object of another submitter": ("blog", "publish", "store.x.objects.shop.layer.x.end", "shop"),
    "event of a submitter": ("blog", "publish", "events.shop.run_0", "node"),
    "own event": ("shop", "publish", "events.shop.run_0", "node"),
    "announcement of a record": ("blog", "publish", "changes.shop.run_0", "operator"),
    "request for secrets": ("blog", "publish", "secrets.shop.run_0", "node"),
    "reply to another party": ("blog", "publish", "_INBOX_submitter_shop.x", "operator"),
    "reply to itself": ("blog", "publish", "_INBOX_submitter_blog.x", "operator"),
    "heartbeat of another node": ("node", "publish", "store.x.hosts.other", "operator"),
    "inbox of another submitter": ("blog", "subscribe", "_INBOX_submitter_shop.>", "shop"),
    "inbox of a node": ("blog", "subscribe", "_INBOX_node_node.>", "node"),
    "all inboxes": ("blog", "subscribe", "_INBOX_*.>", "operator"),
    "tasks": ("blog", "subscribe", "store.*.tasks.*.*.*", "node"),
    "own tasks": ("shop", "subscribe", "store.*.tasks.*.*.shop", "operator"),
    "announcements of another submitter": ("blog", "subscribe", "changes.shop.*", "shop"),
    "events of another submitter": ("blog", "subscribe", "events.shop.*", "shop"),
    "secrets of another submitter": ("blog", "subscribe", "secrets.*.*", "operator"),
    "secrets, as a node": ("node", "subscribe", "secrets.*.*", "operator"),
    "everything": ("node", "subscribe", ">", "operator"),
    "settings of the stream of heartbeats": ("blog", "publish", "$JS.API.STREAM.INFO.CODEBOX_HOSTS", "node"),
    "settings of a stream of another submitter": ("blog", "publish", "$JS.API.STREAM.INFO.CODEBOX_R_shop", "shop"),
    "queue of another submitter": ("blog", "publish", "$JS.API.CONSUMER.INFO.CODEBOX_T_shop.default_high", "shop"),
    "reports of calls": ("blog", "subscribe", "$JS.EVENT.ADVISORY.>", "operator"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_publish_or_subscribe_outside_the_own_permissions_is_refused(accounts, name):
    party, command, subject, allowed = REFUSED[name]
    for account, expected in ((party, True), (allowed, False)):
        with accounts.client(account) as client:
            refused = getattr(client, command)(subject)
            must(("Permissions Violation" in refused) is expected, f"{account}: {refused or 'accepted'}")


#: Calls of the JetStream API that only the operator may make, with a body that the server accepts.
OPERATOR = {
    "STREAM.CREATE.COPY": {"name": "COPY", "mirror": {"name": "CODEBOX_R_shop"}},
    "STREAM.UPDATE.CODEBOX_R_shop": {"name": "CODEBOX_R_shop", "subjects": ["records.shop.*"]},
    "STREAM.SNAPSHOT.CODEBOX_R_shop": {"deliver_subject": "x"},
    "STREAM.PURGE.CODEBOX_T_shop": {},
    "STREAM.MSG.DELETE.CODEBOX_R_shop": {"seq": 1},
    "CONSUMER.CREATE.CODEBOX_R_shop": {"stream_name": "CODEBOX_R_shop", "config": {"deliver_subject": "events.blog.run_0"}},
    "CONSUMER.CREATE.CODEBOX_R_blog.x.records.blog.run_0": {
        "stream_name": "CODEBOX_R_blog", "config": {"name": "x", "deliver_subject": "events.shop.run_0", "filter_subject": "records.blog.run_0"}},
    "STREAM.LIST": {},
    "CONSUMER.DELETE.CODEBOX_T_shop.default_high": {},
    "STREAM.DELETE.CODEBOX_T_shop": {},
}


@pytest.mark.parametrize("call", OPERATOR)
def test_jetstream_administration_call_is_refused_for_all_but_the_operator(bench, accounts, call):
    for account in ("node", "shop", "blog"):
        with accounts.client(account) as client:
            refused = client.publish(f"$JS.API.{call}", json.dumps(OPERATOR[call]), f"{client.inbox}.1")
            must("Permissions Violation" in refused, f"{account}: {refused or 'accepted'}")
    with accounts.client("operator") as client:
        must(client.publish(f"$JS.API.{call}", json.dumps(OPERATOR[call]), f"{client.inbox}.1") == "", "the operator is refused, too")
        # Repairs what the last two calls removed, and removes what others made.
        client.request("$JS.API.STREAM.DELETE.COPY")
    bench.call("cluster", "setup", *accounts.options("operator"), "--submitter", "shop", "--submitter", "blog", *SMALL, "--shrink", "--json").expect(0)


def test_answer_of_the_server_can_arrive_at_another_party_but_stored_content_cannot(accounts):
    """The server sends its own answers even to a reply subject on which the requester may not publish. The permissions in `permissions.rs` rely on what this test shows."""
    with accounts.client("shop") as shop, accounts.client("blog") as blog:
        must(shop.subscribe("events.shop.*") == "", "shop may not read its own events")
        must(blog.publish(blog.entry("records.blog.run_0"), "forged", f"{blog.inbox}.1") == "", "blog may not write its own records")
        body = json.dumps({"last_by_subj": "records.blog.run_0"})
        must(blog.publish("$JS.API.STREAM.MSG.GET.CODEBOX_R_blog", body, "events.shop.run_0") == "", "blog may not read its own records")
        arrived = json.loads(shop.message()[2])
        must(arrived["type"].startswith("io.nats.jetstream.api."), f"not the JSON of an answer: {arrived}")
        refused = blog.publish("$JS.API.DIRECT.GET.CODEBOX_R_blog", body, "events.shop.run_0")
        must("Permissions Violation" in refused, "a direct read would deliver the bare content")


#: Subjects of streams on which a submitter may not publish, with the stream and an account that may.
FOREIGN = {
    "task": ("tasks.default.high.shop", "CODEBOX_T_shop", "shop"),
    "record": ("records.shop.run_2", "CODEBOX_R_shop", "shop"),
    "object": ("objects.shop.layer.y.end", "CODEBOX_O_shop", "shop"),
    "heartbeat": ("hosts.node", "CODEBOX_HOSTS", "node"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_answer_of_the_server_replaces_nothing_of_another_party_because_its_stream_listens_on_an_unknown_subject(accounts, what):
    """The server stores its answer where a stream listens for the reply subject of a request. A submitter can name only subjects that it knows."""
    subject, stream, owner = FOREIGN[what]
    with accounts.client(owner) as party, accounts.client("blog") as blog, accounts.client("operator") as operator:
        def stored():
            found = operator.request(f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps({"last_by_subj": subject}))
            return found["message"]["seq"], json.loads(base64.b64decode(found["message"]["data"]))
        entry, own = party.entry(subject), blog.entry("records.blog.run_2")
        must("seq" in party.request(entry, json.dumps({"honest": 1})), "the party may not write")
        number, value = stored()
        must(value == {"honest": 1}, "the value of the party was not stored")
        must("Permissions Violation" in blog.publish(entry, "forged"), "blog may publish there")
        for reply in (subject, f"store.*.{subject}", "store.>", own.replace("records.blog.run_2", subject), f"store.{'0' * 32}.{subject}"):
            must(blog.publish(own, "own", reply) == "", "blog may not write its own records")
        # The server sends its answers in their order, so this control comes after them: an answer is stored where a stream listens.
        must(blog.publish(own, "own", entry) == "", "blog may not write its own records")
        last, value = poll_until(stored, lambda found: found[0] != number, what="positive control: the answer was not stored")
        must(value["stream"] == "CODEBOX_R_blog", f"not an answer of the server: {value}")
        must(last == number + 1, "another answer was stored, too")
        must(operator.request(f"$JS.API.STREAM.PURGE.{stream}", json.dumps({"filter": subject}))["success"], "the rest cannot be removed")


def test_nothing_that_a_submitter_may_read_contains_a_token_of_another_stream(accounts):
    with accounts.client("node") as node, accounts.client("blog") as blog, accounts.client("shop") as shop, accounts.client("operator") as operator:
        heartbeat = node.entry("hosts.node")
        must("seq" in node.request(heartbeat, "{}"), "the heartbeat was not stored")
        must("seq" in shop.request(shop.entry("records.shop.run_3"), "{}"), "the record was not stored")
        must(blog.subscribe("changes.blog.*") == "", "blog may not read announcements of its records")
        own = blog.entry("records.blog.run_3")
        must(blog.publish(own, "{}") == "", "blog may not write its own records")
        read = [" ".join(map(str, blog.message())), blog.publish(heartbeat.replace(heartbeat.split(".")[1], "x"), "{}")]
        for stream in ("CODEBOX_T_blog", "CODEBOX_R_blog", "CODEBOX_O_blog"):
            read.append(blog.request(f"$JS.API.STREAM.INFO.{stream}", json.dumps({"subjects_filter": ">"})))
        for body in ({"seq": 1, "next_by_subj": ">"}, {"last_by_subj": "hosts.*"}, {"seq": 0}, {"unknown": 1}):
            read += [blog.request(f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps(body)) for stream in ("CODEBOX_HOSTS", "CODEBOX_R_blog", "CODEBOX_O_blog")]
        read.append(blog.request("$JS.API.CONSUMER.INFO.CODEBOX_T_blog.default_high"))
        read = json.dumps(read)
        must('"hosts.node"' in read and own.split(".")[1] in read, "positive control: the answers have no subjects of streams")
        for subject in ("hosts.node", "records.shop.x", "objects.shop.x", "tasks.default.high.shop"):
            must(operator.entry(subject).split(".")[1] not in read, f"a submitter can read on which subject {subject} is expected")
        operator.request("$JS.API.STREAM.PURGE.CODEBOX_HOSTS")


def test_every_party_refuses_a_server_that_is_not_strict(bench, environment, program):
    """The test after this one shows what such a server does."""
    as_team = "--submitter", "team"
    state = os.path.join(bench.directory, "not-strict-host")
    os.mkdir(state, mode=0o700)
    bench.own(state)
    calls = {
        "operator": ("cluster", "setup", *as_team, *SMALL),
        "operator's list": ("cluster", "hosts"),
        "submitter": ("cluster", "hosts", *as_team),
        "configuration of a submitter": ("cluster", "configure", *as_team, "--node-key", f"node={'0' * 64}", "--state", state),
        "collection": ("cluster", "gc", *as_team, "--grace", "1s"),
    }
    one = Nats(program, "strict").start()
    nodes = None
    try:
        for call in calls.values():
            bench.call(*call, "--nats", one.url, "--json").expect(0)
        nodes = Nodes(environment, one.url)
        node = nodes.add("node")
        must(node.drain() == 0, node.text())
        # The streams have messages now, so nothing but the setting differs.
        one.kill()
        one.settings = {"jetstream": {"strict": False}}
        one.start()
        for call in calls.values():
            refused = bench.call(*call, "--nats", one.url, "--json").expect(125, "wp_codebox_cluster_server_not_strict")
            must("strict: true" in str(refused.json["error"]), str(refused))
        must(node.spawn().process.wait(timeout=60) == 125, node.text())
        must("wp_codebox_cluster_server_not_strict" in node.text(), node.text())
    finally:
        if nodes:
            nodes.close()
        one.close()


def test_strict_server_does_not_execute_its_own_answer_as_a_call_that_removes_messages(program):
    """The answer to a published message is {"stream": …, "seq": N}. A server that is not strict takes it for the body of a call, and removes the messages of any stream."""
    for is_strict in (True, False):
        one = Nats(program, f"strict-{is_strict}", {"jetstream": {"strict": is_strict}}).start()
        try:
            with Client(one) as client:
                for name in ("A", "B"):
                    client.request(f"$JS.API.STREAM.CREATE.{name}", json.dumps({"name": name, "subjects": [f"{name}.*"], "storage": "file", "retention": "limits"}))
                    client.request(f"{name}.1", "x")
                client.publish("A.1", "x", "$JS.API.STREAM.PURGE.B")
                def left():
                    return client.request("$JS.API.STREAM.INFO.B", "")["state"]["messages"]
                if is_strict:
                    # The server answers this later call after the one before.
                    client.request("$JS.API.STREAM.PURGE.A", "")
                    must(left() == 1, "the answer was executed")
                else:
                    poll_until(lambda: left() == 0, what="positive control: the answer was not executed")
        finally:
            one.close()


def test_node_can_empty_a_stream_by_an_answer_without_content_and_a_submitter_may_not_cause_such_an_answer(accounts):
    """A limit that docs/security/cluster.md states: a call without content is valid on every server, and the answer for an empty queue has no content."""
    empty_queue = "$JS.API.CONSUMER.MSG.NEXT.CODEBOX_T_blog.default_low", '{"batch":1,"no_wait":true}', "$JS.API.STREAM.PURGE.SCRATCH"
    with accounts.client("node") as node, accounts.client("blog") as blog, accounts.client("operator") as operator:
        operator.request("$JS.API.STREAM.CREATE.SCRATCH", json.dumps({"name": "SCRATCH", "subjects": ["scratch"], "max_bytes": 1024}))
        must("seq" in operator.request("scratch", "x"), "the message was not stored")
        must("Permissions Violation" in blog.publish(*empty_queue), "a submitter may take messages")
        must("Permissions Violation" in node.publish("$JS.API.STREAM.PURGE.SCRATCH"), "a node may remove messages")
        must(node.publish(*empty_queue) == "", "a node may not take messages")
        poll_until(lambda: operator.request("$JS.API.STREAM.INFO.SCRATCH")["state"]["messages"] == 0, what="the answer was not executed; correct the documentation")
        operator.request("$JS.API.STREAM.DELETE.SCRATCH")


def test_announcement_of_a_record_has_no_reply_subject(accounts):
    """A party may publish on the reply subject of each message that it receives. If announcements repeated the reply subject of the record's message, which the party chooses, it could publish on any subject."""
    with accounts.client("shop") as shop:
        must(shop.subscribe("changes.shop.*") == "", "shop may not read announcements of its records")
        must(shop.publish(shop.entry("records.shop.run_1"), "{}", "events.blog.run_0") == "", "shop may not write its own records")
        subject, reply, _ = shop.message()
        must((subject, reply) == ("changes.shop.run_1", ""), f"{subject} {reply}")
        must("Permissions Violation" in shop.publish("events.blog.run_0", "forged"), "the reply subject became a permission")


# Commands of the operator.


def set_up(bench, server, *arguments):
    small = [word for option in zip(SMALL[::2], SMALL[1::2]) if option[0] not in arguments for word in option]
    return bench.call("cluster", "setup", "--nats", server.url, *small, *arguments, "--json")


def test_setup_creates_streams_once_and_keeps_those_that_a_later_setup_does_not_name(bench, server):
    first = set_up(bench, server, "--submitter", "one").expect(0).json
    must("CODEBOX_R_one" in first["created"] and "CODEBOX_T_one/default_low" in first["created"], str(first))
    again = set_up(bench, server, "--submitter", "one").expect(0).json
    must(not again["created"] and not again["updated"] and "CODEBOX_R_one" in again["unchanged"], str(again))
    other = set_up(bench, server, "--submitter", "two", "--capability", "gpu").expect(0).json
    must("CODEBOX_T_two/gpu_high" in other["created"] and "CODEBOX_T_one/default_high" in other["kept"], str(other))
    raised = set_up(bench, server, "--submitter", "one", "--record-space", "8").expect(0).json
    must(raised["updated"] == ["CODEBOX_R_one"], str(raised))


def test_setup_gives_streams_of_an_earlier_version_a_token_and_keeps_their_messages_and_later_setups_keep_the_token(bench, program):
    stored = {"tasks.default.high.one": "T_one", "records.one.run_1": "R_one", "objects.one.task.x.end": "O_one", "hosts.node": "HOSTS"}
    plain = {"T_one": "tasks.*.*.one", "R_one": "records.one.*", "O_one": "objects.one.>", "HOSTS": "hosts.*"}
    one = Nats(program, "earlier").start()
    try:
        set_up(bench, one, "--submitter", "one").expect(0)
        with Client(one) as client:
            def config(stream):
                return client.request(f"$JS.API.STREAM.INFO.CODEBOX_{stream}")["config"]
            for stream, subjects in plain.items():
                earlier = {name: value for name, value in config(stream).items() if name != "subject_transform"}
                answer = client.request(f"$JS.API.STREAM.UPDATE.CODEBOX_{stream}", json.dumps({**earlier, "subjects": [subjects]}))
                must("error" not in answer, str(answer))
            for subject in stored:
                must(client.request(subject, "before")["seq"] == 1, f"{subject} was not stored")
            updated = set_up(bench, one, "--submitter", "one").expect(0).json
            must(sorted(updated["updated"]) == sorted(f"CODEBOX_{stream}" for stream in plain) and not updated["created"], str(updated))
            tokens = {subject: client.entry(subject) for subject in stored}
            must(len({entry.split(".")[1] for entry in tokens.values()}) == 4, str(tokens))
            for subject, stream in stored.items():
                def last(subject=subject, stream=stream):
                    message = client.request(f"$JS.API.STREAM.MSG.GET.CODEBOX_{stream}", json.dumps({"last_by_subj": subject}))["message"]
                    return message["seq"], base64.b64decode(message["data"])
                must(last() == (1, b"before"), f"{subject}: {last()}")
                must(client.publish(subject, "plain", f"{client.inbox}.1") == "", "the operator may not publish")
                must(client.request(tokens[subject], "after")["seq"] == 2, f"{subject} without a token was stored, or with a token was not")
                must(last() == (2, b"after"), f"{subject}: {last()}")
            waiting = client.request("$JS.API.CONSUMER.INFO.CODEBOX_T_one.default_high")["num_pending"]
            must(waiting == 2, f"{waiting} messages wait in the queue")
            again = set_up(bench, one, "--submitter", "one").expect(0).json
            must(not again["created"] and not again["updated"], str(again))
            must(tokens == {subject: client.entry(subject) for subject in stored}, "the tokens changed")
    finally:
        one.close()


def test_setup_that_lowers_a_stream_limit_without_shrink_option_is_refused_and_changes_nothing(bench, server):
    set_up(bench, server, "--submitter", "three").expect(0)
    lower = "--submitter", "three", "--submitter", "four", "--object-space", "16", "--object-size", "8"
    refused = set_up(bench, server, *lower).expect(1, "wp_codebox_cluster_conflict").json["error"]["message"]
    must("CODEBOX_O_three has max_bytes" in refused and "metadata" in refused, refused)
    with Client(server) as client:
        must(client.request("$JS.API.STREAM.INFO.CODEBOX_R_four")["error"]["err_code"] == 10059, "the refused setup created a stream")
    allowed = set_up(bench, server, *lower, "--shrink").expect(0).json
    must("CODEBOX_O_three" in allowed["updated"] and "CODEBOX_R_four" in allowed["created"], str(allowed))


def test_setup_with_an_invalid_name_or_more_replicas_space_or_payload_than_the_server_has_is_refused(bench, server, program):
    set_up(bench, server, "--submitter", "five", "--replicas", "3").expect(1, "wp_codebox_input_invalid")
    set_up(bench, server, "--submitter", "five", "--replicas", "2").expect(1, "wp_codebox_input_invalid")
    set_up(bench, server, "--submitter", "Five").expect(1, "wp_codebox_input_invalid")
    set_up(bench, server, "--submitter", "five", "--object-space", "1000000", "--object-size", "1").expect(125, "wp_codebox_cluster_full")
    small = Nats(program, "small", {"max_payload": 65536}).start()
    try:
        refused = set_up(bench, small, "--submitter", "five").expect(1, "wp_codebox_input_invalid").json["error"]["message"]
        must("max_payload" in refused, refused)
    finally:
        small.close()


def test_server_that_is_too_old_unreachable_or_not_set_up_is_refused_with_its_own_code(bench, environment, program):
    old = Nats(environment["CODEBOX_NATS_SERVER_DEBIAN"], "old", {"jetstream": {"strict": None}}).start()
    try:
        refused = bench.call("cluster", "hosts", "--nats", old.url, "--json").expect(125, "wp_codebox_cluster_server_too_old").json["error"]["message"]
        must("2.9.10" in refused and "2.11.1" in refused, refused)
        set_up(bench, old, "--submitter", "one").expect(125, "wp_codebox_cluster_server_too_old")
    finally:
        old.close()
    bench.call("cluster", "hosts", "--nats", old.url, "--json").expect(125, "wp_codebox_cluster_unreachable")
    fresh = Nats(program, "fresh").start()
    try:
        bench.call("cluster", "hosts", "--nats", fresh.url, "--json").expect(125, "wp_codebox_cluster_not_set_up")
        set_up(bench, fresh).expect(0)
        must(bench.call("cluster", "hosts", "--nats", fresh.url, "--json").expect(0).json["hosts"] == [], "there are nodes")
    finally:
        fresh.close()


def test_group_readable_or_wrong_credentials_and_remote_addresses_without_tls_are_refused(bench, accounts):
    options = accounts.options("operator")
    bench.call("cluster", "hosts", *options, "--json").expect(0)
    seed = f"{accounts.directory}/operator.seed"
    os.chmod(seed, 0o640)
    try:
        refused = bench.call("cluster", "hosts", *options, "--json").expect(1, "wp_codebox_secret_invalid")
        must(accounts.users["operator"].seed not in refused.stdout + refused.stderr, "the message has the seed")
    finally:
        os.chmod(seed, 0o600)
    bench.call("cluster", "hosts", "--nats", "nats://192.0.2.1:4222", "--json").expect(1, "wp_codebox_input_invalid")
    bench.call("cluster", "hosts", "--nats", "nats://user:pass@127.0.0.1:4222", "--json").expect(1, "wp_codebox_input_invalid")
    bench.call("cluster", "hosts", *accounts.options("wrong"), "--json").expect(126, "wp_codebox_cluster_denied")
    bench.call("cluster", "hosts", *accounts.options("shop"), "--submitter", "shop", "--json").expect(0)
    bench.call("cluster", "setup", *accounts.options("shop"), "--json").expect(126, "wp_codebox_cluster_denied")
