"""Protocol-independent requests and responses of a conversation."""

import dataclasses
import json
import re


@dataclasses.dataclass
class Call:
    """A tool call of the model. `arguments` is the text on the wire, which may be invalid JSON."""

    id: str
    name: str
    arguments: str

    def read(self):
        """Returns the arguments as a value, None when they are not JSON."""
        try:
            return json.loads(self.arguments)
        except ValueError:
            return None


@dataclasses.dataclass
class Message:
    """One message of a request. `role` is user, assistant or tool. `failed`: the tool failed; only some protocols have this flag."""

    role: str
    text: str = ""
    calls: list = dataclasses.field(default_factory=list)
    call_id: str = ""
    failed: bool = False

    def row(self):
        found = {"role": self.role, "text": self.text}
        if self.calls:
            found["calls"] = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in self.calls]
        if self.call_id:
            found["call_id"] = self.call_id
        if self.failed:
            found["failed"] = True
        return found


@dataclasses.dataclass
class Asked:
    """One model request, independent of its protocol."""

    model: str
    system: str
    messages: list
    #: JSON Schema of the arguments, by tool name as sent in the request.
    tools: dict
    stream: bool
    #: The request document as received.
    body: dict

    @property
    def last(self):
        """Text of all messages after the model's last message: the tool results, or at first the task."""
        texts = []
        for message in reversed(self.messages):
            if message.role == "assistant":
                break
            texts.append(message.text)
        return "\n".join(reversed(texts))

    @property
    def everything(self):
        return "\n".join([self.system] + [message.text for message in self.messages])

    def tool(self, wanted):
        """Returns the name under which the request offers a tool, or None. Requests spell ids like `workspace.read` differently."""
        plain = normal(wanted)
        return next((name for name in self.tools if name == wanted or normal(name) == plain), None)

    def problems(self):
        """Returns what is malformed in the conversation: calls without results, or results without calls."""
        found, waiting = [], []
        for place, message in enumerate(self.messages):
            if message.role == "tool":
                if message.call_id not in waiting:
                    found.append(f"message {place}: a result for {message.call_id!r}, which was not called just before")
                else:
                    waiting.remove(message.call_id)
                continue
            if waiting:
                found.append(f"message {place}: no result for {', '.join(waiting)}")
            waiting = [call.id for call in message.calls]
        if waiting:
            found.append(f"at the end: no result for {', '.join(waiting)}")
        return found


@dataclasses.dataclass
class Answer:
    """One model response. `stop` is the reason why the response ends: end, tools, length or filtered."""

    text: str
    calls: list
    stop: str
    model: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0


def normal(name):
    return re.sub(r"[^a-z0-9]+", "_", name.lower())
