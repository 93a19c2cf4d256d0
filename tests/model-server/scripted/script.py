"""Scripts: the model's responses turn by turn, and the expected requests.

A script is a list of steps, or `{"turns": [...], "models": [...], "key": "...", "after": "repeat"}`. Each request takes
one step. README.md lists what a step may hold. A request that differs from the step's expectation
gets status 400 and is logged as a mismatch: the server never continues a conversation that left the
script.
"""

import copy
import importlib.util
import json
import os
import re
import threading

from .conversation import Answer, Call, normal

#: Allowed members of a step; other names are rejected as misspellings.
FIELDS = {"about", "expect", "text", "calls", "usage", "stop", "model", "times", "pace", "cut", "fault", "status", "headers", "message", "bytes", "to",
          "whole"}
EXPECTATIONS = {"system", "first", "last", "not_last", "anywhere", "nowhere", "tools", "no_tools", "messages_at_most", "shape"}
FAULTS = {"status", "malformed", "error-event", "never", "stall", "oversized", "redirect", "empty"}


class ScriptError(Exception):
    """Raised for an invalid script."""


class Mismatch(Exception):
    """Raised when a model request differs from what the script's step expects."""


def load(path):
    """Returns the script in a `.json` file, or in a `.py` file that defines SCRIPT."""
    if path.endswith(".py"):
        spec = importlib.util.spec_from_file_location("script_" + normal(path), path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return Script(module.SCRIPT)
    with open(path, encoding="utf-8") as file:
        return Script(json.load(file))


class Script:
    """A script whose steps are valid. A step may be a function: it is called with the request, and the step that it returns
    is validated then."""

    def __init__(self, given):
        whole = {"turns": given} if isinstance(given, list) else dict(given)
        self.models = whole.get("models")
        self.key = whole.get("key")
        self.repeat = whole.get("after") == "repeat"
        self.steps = []
        for step in whole["turns"]:
            times = 1 if callable(step) else check(step).get("times", 1)
            self.steps += [step] * times


def check(step):
    unknown = set(step) - FIELDS
    if unknown:
        raise ScriptError(f"a step has no {', '.join(sorted(unknown))}")
    unknown = set(step.get("expect", {})) - EXPECTATIONS
    if unknown:
        raise ScriptError(f"a step cannot expect {', '.join(sorted(unknown))}")
    if step.get("fault", "status") not in FAULTS:
        raise ScriptError(f"there is no fault {step['fault']!r}")
    return step


class Session:
    """One conversation: a script and its current step."""

    def __init__(self, name, script):
        self.name, self.script = name, script
        self.at = 0
        self.lock = threading.Lock()

    def next(self, asked):
        """Returns number and content of the script's next step, which answers this request."""
        with self.lock:
            at = self.at
            self.at += 1
        if at >= len(self.script.steps):
            if not (self.script.repeat and self.script.steps):
                raise Mismatch(f"the script has {len(self.script.steps)} steps and this is request {at + 1}")
            step = self.script.steps[-1]
        else:
            step = self.script.steps[at]
        if callable(step):
            step = check(step(asked))
        return at, step


def expect(step, asked):
    """Raises Mismatch unless the request is what the step expects."""
    wanted = step.get("expect", {})
    first = next((message.text for message in asked.messages if message.role == "user"), "")
    texts = {"system": asked.system, "first": first, "last": asked.last, "anywhere": asked.everything}
    for name, text in texts.items():
        for pattern in listed(wanted.get(name)):
            if not re.search(pattern, text, re.S):
                raise Mismatch(f"{name} does not hold {pattern!r}: {text[-1500:]!r}")
    for name, text in {"not_last": asked.last, "nowhere": asked.everything}.items():
        for pattern in listed(wanted.get(name)):
            if re.search(pattern, text, re.S):
                raise Mismatch(f"{name}: {pattern!r} was sent")
    for tool in listed(wanted.get("tools")):
        if asked.tool(tool) is None:
            raise Mismatch(f"the tool {tool} is not offered, but {', '.join(asked.tools)}")
    for tool in listed(wanted.get("no_tools")):
        if asked.tool(tool) is not None:
            raise Mismatch(f"the tool {tool} is offered")
    if len(asked.messages) > wanted.get("messages_at_most", len(asked.messages)):
        raise Mismatch(f"there are {len(asked.messages)} messages")
    if wanted.get("shape", True) and asked.problems():
        raise Mismatch("; ".join(asked.problems()))


def listed(value):
    return [] if value is None else value if isinstance(value, list) else [value]


def answer(step, asked, number, key):
    """Returns the model response that a step describes."""
    calls = []
    for place, call in enumerate(step.get("calls", [])):
        wanted = call["tool"]
        name = asked.tool(wanted) or re.sub(r"[^A-Za-z0-9_]", "_", wanted)
        arguments = call["raw_args"] if "raw_args" in call else json.dumps(fill(copy.deepcopy(call.get("args", {})), asked, key))
        calls.append(Call(call.get("id", f"call_{number}_{place}"), name, arguments))
    text = fill(step.get("text", ""), asked, key)
    usage = step.get("usage", {})
    size = len(text) + sum(len(call.arguments) for call in calls)
    return Answer(text, calls, step.get("stop", "tools" if calls else "end"), step.get("model", asked.model),
                  usage.get("input", max(1, len(json.dumps(asked.body)) // 4)), usage.get("output", max(1, size // 4)), usage.get("cached", 0))


def fill(value, asked, key):
    """Replaces what is computed from the conversation: `${last:REGEX}` and `${any:REGEX}` are the first group of a
    match, `{"$line": REGEX}` the number in front of the first line of the last results that matches, `${key}` the
    key that was sent (to imitate servers that reveal it)."""
    if isinstance(value, str):
        return re.sub(r"\$\{(last|any):((?:[^{}]|\{[^{}]*\})+)\}", lambda found: group(found[2], asked.last if found[1] == "last" else asked.everything),
                      value).replace("${key}", key)
    if isinstance(value, list):
        return [fill(entry, asked, key) for entry in value]
    if isinstance(value, dict):
        if set(value) == {"$line"}:
            return line_number(value["$line"], asked.last)
        if set(value) == {"$number"}:
            return int(fill(value["$number"], asked, key))
        return {name: fill(entry, asked, key) for name, entry in value.items()}
    return value


def group(pattern, text):
    found = re.search(pattern, text, re.M)
    if not found:
        raise Mismatch(f"nothing matches {pattern!r}: {text[-1500:]!r}")
    return found.group(1)


def line_number(pattern, text):
    for line in text.split("\n"):
        found = re.match(r"\D{0,12}?(\d+)", line)
        if found and re.search(pattern, line):
            return int(found[1])
    raise Mismatch(f"no numbered line matches {pattern!r}: {text[-1500:]!r}")


def scripts_of(path):
    """Returns the scripts of a directory by file name without extension, or the script of a file under the empty name."""
    if os.path.isfile(path):
        return {"": load(path)}
    return {os.path.splitext(name)[0]: load(os.path.join(path, name)) for name in sorted(os.listdir(path)) if name.endswith((".json", ".py"))}
