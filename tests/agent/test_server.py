"""The scripted model server: mismatches, key checks and faults."""

import http.client
import json

import pytest
from loop import must
from scripted import Script, Server
from scripted.script import ScriptError


def ask(server, path, body, key="right", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "Authorization": f"Bearer {key}", **headers})
    try:
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except http.client.HTTPException as error:
        return None, type(error).__name__
    finally:
        connection.close()


def chat(text, **more):
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


@pytest.fixture
def server():
    server = Server(key="right").start()
    yield server
    server.close()


def test_model_server_rejects_requests_that_differ_from_the_script(server):
    steps = [{"expect": {"last": "hello"}, "text": "one"}, {"expect": {"last": "hello"}, "text": "two"}]
    for script in ("good", "bad"):
        server.add(script, steps)
    path = "/%s/1/v1/chat/completions"
    must(ask(server, path % "good", chat("hello"))[0] == 200 and "two" in ask(server, path % "good", chat("hello again"))[1], "control: the script as written")
    status, text = ask(server, path % "good", chat("hello"))
    must(status == 400 and "request 3" in text, f"a third request of two steps: {status} {text}")
    status, text = ask(server, path % "bad", chat("goodbye"))
    must(status == 400 and server.of("bad")[0]["mismatch"], f"another text: {status} {text}")
    torn = {"model": "m", "messages": [{"role": "user", "content": "hello"}, {"role": "tool", "tool_call_id": "x", "content": "y"}]}
    must(ask(server, path % "bad", torn)[0] == 400 and "not called" in server.of("bad")[1]["mismatch"], "a result without a call")
    must(ask(server, "/none/1/v1/chat/completions", chat("hello"))[0] == 404, "a script that does not exist")
    must(ask(server, "/good/2/v1/chat/completions", chat("hello"))[0] == 200, "another session begins at the beginning")


def test_model_server_checks_api_keys_and_does_not_log_them(server):
    server.add("s", {"turns": [{"text": "x"}], "models": ["m"], "after": "repeat"})
    path = "/s/1/v1/chat/completions"
    must(ask(server, path, chat("a"))[0] == 200, "control: the right key")
    must(ask(server, path, chat("a"), key="wrong")[0] == 401, "a wrong key")
    must(ask(server, path, chat("a", model="n"))[0] == 404, "a model that it does not have")
    must(ask(server, "/s/1/v1/messages", {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}, **{"x-api-key": "wrong"})[0] == 401,
         "a wrong key in the other protocol's header")
    must("right" not in json.dumps(server.requests) and "wrong" not in json.dumps(server.requests), "a key is in the log")


def test_model_server_produces_each_fault_that_a_script_names(server):
    server.add("s", [{"fault": "status", "status": 429, "headers": {"Retry-After": "3"}}, {"cut": 2, "text": "abcdef"}, {"fault": "malformed"}, {"text": "fine"}])
    path = "/s/1/v1/chat/completions"
    must(ask(server, path, chat("a", stream=True))[0] == 429, "429")
    must(ask(server, path, chat("a", stream=True))[1] == "IncompleteRead", "a cut stream")
    must("<html>" in ask(server, path, chat("a", stream=True))[1], "not JSON")
    must(ask(server, path, chat("a", stream=True))[1].rstrip().endswith("data: [DONE]"), "control: a stream with its end")
    for wrong in ([{"txt": "x"}], [{"fault": "fire"}], [{"expect": {"lst": "x"}}]):
        try:
            Script(wrong)
        except ScriptError:
            continue
        must(False, f"the script was accepted: {wrong}")
