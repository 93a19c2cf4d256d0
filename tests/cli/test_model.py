"""Options of the model and the built-in agent: early refusals, and the destination of the model key."""

import contextlib
import http.server
import threading

from harness import must

VARIABLE = "CLI_TEST_MODEL_KEY"
KEY = "cli-test-correct-horse-battery"


class Refusing(http.server.BaseHTTPRequestHandler):
    """Answers 401 to every request, so that a run ends after one request."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.append((self.path, self.headers.get("authorization"), self.headers.get("x-api-key")))
        self.send_response(401)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def refusing():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(bench, *arguments):
    arguments = bench.run_arguments("--mount", f"{bench.source()}:/workspace/plugin", *arguments)
    return bench.call(*arguments, environment={"PATH": "/usr/bin:/bin", VARIABLE: KEY})


def model(url, *more):
    return ["--model", "m-1", "--model-url", url, *more]


def test_model_key_is_sent_only_to_the_model_endpoint(bench):
    with refusing() as server:
        base = f"http://127.0.0.1:{server.server_address[1]}"
        key = ["--model-key-env", VARIABLE, "--goal", "Do it"]
        for api, asked in (("openai-chat", ("/chat/completions", f"Bearer {KEY}", None)), ("anthropic-messages", ("/v1/messages", None, KEY))):
            server.asked.clear()
            answer = ask(bench, *model(base, "--model-api", api, *key)).expect(3, "wp_codebox_provider_rejected")
            must(server.asked == [asked], f"{api}: {server.asked}")
            must(KEY not in answer.stdout + answer.stderr, "the output contains the model key")
        server.asked.clear()
        ask(bench, *model(base), "--goal", "Do it").expect(3, "wp_codebox_provider_rejected")
        must(server.asked == [("/chat/completions", None, None)], f"without a key: {server.asked}")


def test_invalid_model_options_are_refused_before_any_request(bench):
    with refusing() as server:
        base = f"http://127.0.0.1:{server.server_address[1]}"
        goal = ["--goal", "Do it"]
        rows = [
            ("wp_codebox_task_missing", model(base)),
            ("wp_codebox_model_invalid", [*model(base + "/"), *goal]),
            ("wp_codebox_model_invalid", [*model(base + "?key=1"), *goal]),
            ("wp_codebox_model_invalid", [*model("http://user:key@127.0.0.1"), *goal]),
            ("wp_codebox_model_invalid", [*model("http://api.example.org/v1"), *goal]),
            ("wp_codebox_model_invalid", [*model("http://169.254.169.254"), *goal]),
            ("wp_codebox_model_invalid", [*model("http://192.168.0.9", "--model-key-env", VARIABLE), *goal]),
            ("wp_codebox_budget_invalid", [*model(base, "--max-turns", "0"), *goal]),
            ("wp_codebox_input_invalid", [*model(base, "--model-api", "soap"), *goal]),
            ("wp_codebox_input_invalid", [*model(base, "--max-cost", "1"), *goal]),
            ("wp_codebox_input_invalid", [*model(base, "--model-prices", "1,x"), *goal]),
            ("wp_codebox_sandbox_tool_policy_invalid", [*model(base, "--tool-policy", "{}"), *goal]),
            ("wp_codebox_input_invalid", [*model(base), "--agent-command", "true"]),
            ("wp_codebox_input_invalid", [*model(base), "--command", "wordpress.run-php", "--arg", "code=echo 1;"]),
            ("wp_codebox_secret_invalid", [*model(base, "--model-key-env", "CLI_TEST_UNSET"), *goal]),
            ("wp_codebox_secret_invalid", [*model(base, "--model-key-env", KEY), *goal]),
            ("wp_codebox_input_invalid", ["--model", "m-1", *goal]),
            ("wp_codebox_input_invalid", ["--model-url", base, *goal]),
        ]
        for name in ("PATH", "HOME", "LD_X", "CODEBOX_KEY"):
            for arguments in ([*model(base, "--model-key-env", name), *goal], [*model(base, "--secret-env", f"{name}=h"), *goal]):
                answer = ask(bench, *arguments).expect(1, "wp_codebox_secret_invalid")
                must("guest's own" in answer.stdout and "capital" not in answer.stdout, f"{arguments}: {answer}")
        for code, arguments in rows:
            answer = ask(bench, *arguments).expect(1, code)
            must(KEY not in answer.stdout + answer.stderr, f"{arguments}: the key was printed")
        must(server.asked == [], f"the model received requests: {server.asked}")
        # Control: with valid options the run sends its request to the model.
        ask(bench, *model(base), *goal).expect(3, "wp_codebox_provider_rejected")
        must(len(server.asked) == 1, f"{server.asked}")


def test_agent_without_a_model_is_refused_and_the_error_names_the_missing_option(bench):
    """`--agent codex` also sets the network preset `model`; nevertheless the error must name the agent, and no policy."""
    mount = ["--mount", f"{bench.source()}:/workspace/plugin", "--goal", "Do it"]
    answer = bench.run(*mount, "--agent", "codex").expect(1, "wp_codebox_model_missing")
    must("codex needs a model" in answer.stdout and "--model NAME" in answer.stdout and "policy" not in answer.stdout, str(answer))
    answer = bench.run(*mount, "--network-preset", "model", "--agent-command", "true").expect(1, "wp_codebox_model_missing")
    must("the network preset `model` needs a model" in answer.stdout, str(answer))
