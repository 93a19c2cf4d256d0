"""Creates components on disk and starts runs that load them."""

import json
import os

from harness import must
from harness.frames import SupervisorClient

HEADER = "<?php\n/* Plugin Name: Component */\n"

CATEGORY = """
add_action( 'wp_abilities_api_categories_init', function () {
	wp_register_ability_category( 'test', array( 'label' => 'Test', 'description' => 'Test.' ) );
} );
"""


def ability(name, body, schema="array( 'type' => 'object' )"):
    """Returns PHP that registers an ability; `body` is the callback's body, with the input in $input."""
    return CATEGORY + f"""
add_action( 'wp_abilities_api_init', function () {{
	wp_register_ability( '{name}', array(
		'label' => 'Test', 'description' => 'Test.', 'category' => 'test', 'input_schema' => {schema},
		'permission_callback' => function () {{ return current_user_can( 'manage_options' ); }},
		'execute_callback' => function ( $input = null ) {{ {body} }},
	) );
}} );
"""


def component(bench, slug, code="", files=None, **fields):
    """Creates a plugin on the host and returns its entry for `components` of a request, by default activated and required."""
    path = os.path.join(bench.directory, "components", slug)
    os.makedirs(path, exist_ok=True)
    for name, text in {**({} if files is not None else {f"{slug}.php": HEADER + code}), **(files or {})}.items():
        with open(os.path.join(path, name), "w", encoding="utf-8") as file:
            file.write(text)
    bench.own(os.path.join(bench.directory, "components"))
    row = {"slug": slug, "source": path, "load_as": "plugin", "activate": True, "required": True, **fields}
    return {name: value for name, value in row.items() if value is not None}


def shell(script):
    return {"kind": "command", "argv": ["sh", "-c", script]}


def task(name, **given):
    return {"kind": "ability", "ability": name, "input": given}


class RunResult:
    """Result of an ended run: the supervisor's last frame, the events, and access to the bundle."""

    def __init__(self, frame, events):
        self.frame, self.events = frame, events
        self.result = frame.get("result", {})
        error = frame.get("error") or self.result.get("error") or {}
        self.code, self.message = error.get("code"), error.get("message", "")
        self.hints = error.get("hints", [])

    def __str__(self):
        return json.dumps(self.frame)[:3000] + "\n" + self.output[-1500:]

    @property
    def output(self):
        """Output of all guest programs."""
        pieces = [event["data"].get("text", "") for event in self.events if event["type"] == "runtime.command.output"]
        return "".join(pieces)

    def text(self, name):
        """Returns the content of the bundle's file `name`, a path relative to the bundle."""
        with open(os.path.join(self.result["artifacts"]["path"], name), encoding="utf-8") as file:
            return file.read()

    def whole(self):
        """Returns the concatenated files of the bundle."""
        found = b""
        for directory, _, files in os.walk(self.result["artifacts"]["path"]):
            for name in files:
                with open(os.path.join(directory, name), "rb") as file:
                    found += file.read()
        return found

    def expect(self, outcome, code=None):
        must(self.result.get("outcome") == outcome, f"expected {outcome}: {self}")
        must(self.code == code, f"expected {code}: {self}")
        return self

    def refused(self, code, *parts):
        """Checks that the supervisor refused the run with this error code, and that the error's message has these parts."""
        must(self.frame["type"] == "error" and self.code == code, f"expected the error {code}: {self}")
        for part in parts:
            must(part in self.message, f"{part!r} is not in the message: {self.message}")
        return self

    def answered(self):
        """Returns the ability's result from the transcript."""
        rows = [row for row in self.result["transcript"]["executions"] if row["phase"] == "agent"]
        must(len(rows) == 1, str(rows))
        return rows[0].get("parsed")


def run(bench, agent, components=(), spawn=None, **changes):
    """Starts a run with this agent and these components, waits for its end, and returns its last frame and events."""
    talk = SupervisorClient(bench, "true", components=list(components), **changes)
    talk.request["agent"] = agent
    talk.spawn(**(spawn or {}))
    events = []
    while True:
        frame = talk.frame()
        must(frame is not None, "the supervisor ended without a final frame")
        if frame["type"] == "event":
            events.append(frame["event"])
        elif frame["type"] != "accepted":
            break
    talk.close()
    talk.ended()
    return RunResult(frame, events)
