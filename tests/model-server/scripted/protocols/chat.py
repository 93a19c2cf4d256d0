"""The OpenAI chat completions protocol."""

import json

from ..conversation import Asked, Call, Message

NAME = "openai-chat"
PATH = "/chat/completions"


def key(headers):
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def text_of(content):
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def parse(body):
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise ValueError("messages must be a list that is not empty")
    if not isinstance(body.get("model"), str):
        raise ValueError("model must be a text")
    system, found = [], []
    for place, message in enumerate(body["messages"]):
        role, text = message.get("role"), text_of(message.get("content"))
        if role in ("system", "developer"):
            system.append(text)
        elif role in ("user", "assistant"):
            calls = [Call(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or []]
            if any(not isinstance(call.arguments, str) for call in calls):
                raise ValueError(f"messages[{place}]: function.arguments must be a text")
            found.append(Message(role, text, calls))
        elif role == "tool":
            found.append(Message("tool", text, call_id=message["tool_call_id"]))
        else:
            raise ValueError(f"messages[{place}]: there is no role {role!r}")
    tools = {tool["function"]["name"]: tool["function"].get("parameters", {}) for tool in body.get("tools") or []}
    return Asked(body["model"], "\n".join(system), found, tools, bool(body.get("stream")), body)


STOPS = {"end": "stop", "tools": "tool_calls", "length": "length", "filtered": "content_filter"}


def usage(answer):
    return {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens, "prompt_tokens_details": {"cached_tokens": answer.cached_tokens}}


def whole(answer):
    message = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                                 for call in answer.calls]
    return {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": answer.model,
            "choices": [{"index": 0, "message": message, "finish_reason": STOPS[answer.stop]}], "usage": usage(answer)}


def event(value):
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def events(answer, size):
    def chunk(delta, finish=None):
        return event({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": answer.model,
                      "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for start in range(0, len(answer.text), size):
        yield chunk({"content": answer.text[start:start + size]})
    for index, call in enumerate(answer.calls):
        yield chunk({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}]})
        for start in range(0, len(call.arguments), size):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": call.arguments[start:start + size]}}]})
    yield chunk({}, STOPS[answer.stop])
    yield event({"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 0, "model": answer.model, "choices": [],
                 "usage": usage(answer)})
    yield b"data: [DONE]\n\n"


def error(status, message):
    kind = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}.get(status, "scripted")
    return {"error": {"message": message, "type": kind, "code": kind}}


def error_event(message):
    return event({"error": {"message": message, "type": "server_error", "code": "server_error"}})
