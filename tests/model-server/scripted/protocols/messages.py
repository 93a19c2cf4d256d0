"""The Anthropic messages protocol."""

import json

from ..conversation import Asked, Call, Message

NAME = "anthropic-messages"
PATH = "/v1/messages"


def key(headers):
    if headers.get("x-api-key"):
        return headers["x-api-key"]
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() == "bearer" else ""


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content or [] if block.get("type", "text") == "text")


def parse(body):
    if not isinstance(body.get("max_tokens"), int):
        raise ValueError("max_tokens: Field required")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        raise ValueError("messages: at least one message is required")
    found, before = [], None
    for place, message in enumerate(body["messages"]):
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant"):
            raise ValueError(f"messages.{place}.role: Input should be 'user' or 'assistant'")
        if role == before:
            raise ValueError(f"messages.{place}: roles must alternate between user and assistant")
        before = role
        if content in ("", []):
            raise ValueError(f"messages.{place}: all messages must have non-empty content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if any(block["type"] == "text" and not block["text"] for block in blocks):
            raise ValueError(f"messages.{place}: text content blocks must be non-empty")
        if role == "assistant":
            calls = [Call(block["id"], block["name"], json.dumps(block["input"])) for block in blocks if block["type"] == "tool_use"]
            found.append(Message("assistant", text_of(blocks), calls))
            continue
        for block in blocks:
            if block["type"] == "tool_result":
                found.append(Message("tool", text_of(block.get("content")), call_id=block["tool_use_id"], failed=bool(block.get("is_error"))))
        text = text_of(blocks)
        if text:
            found.append(Message("user", text))
    tools = {tool["name"]: tool.get("input_schema", {}) for tool in body.get("tools") or []}
    return Asked(body["model"], text_of(body.get("system")), found, tools, bool(body.get("stream")), body)


STOPS = {"end": "end_turn", "tools": "tool_use", "length": "max_tokens", "filtered": "refusal"}


def usage(answer):
    return {"input_tokens": answer.input_tokens - answer.cached_tokens, "cache_read_input_tokens": answer.cached_tokens,
            "cache_creation_input_tokens": 0, "output_tokens": answer.output_tokens}


def whole(answer):
    content = [{"type": "text", "text": answer.text}] if answer.text else []
    for call in answer.calls:
        value = call.read()
        content.append({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments if value is None else value})
    return {"id": "msg_scripted", "type": "message", "role": "assistant", "model": answer.model, "content": content,
            "stop_reason": STOPS[answer.stop], "stop_sequence": None, "usage": usage(answer)}


def event(value):
    return f"event: {value['type']}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def events(answer, size):
    start = {**whole(answer), "content": [], "stop_reason": None, "usage": {**usage(answer), "output_tokens": 1}}
    yield event({"type": "message_start", "message": start})
    yield event({"type": "ping"})
    index = 0
    if answer.text:
        yield event({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}})
        for begin in range(0, len(answer.text), size):
            yield event({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": answer.text[begin:begin + size]}})
        yield event({"type": "content_block_stop", "index": index})
        index += 1
    for call in answer.calls:
        yield event({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}})
        for begin in range(0, len(call.arguments), size):
            yield event({"type": "content_block_delta", "index": index,
                         "delta": {"type": "input_json_delta", "partial_json": call.arguments[begin:begin + size]}})
        yield event({"type": "content_block_stop", "index": index})
        index += 1
    yield event({"type": "message_delta", "delta": {"stop_reason": STOPS[answer.stop], "stop_sequence": None},
                 "usage": {"output_tokens": answer.output_tokens}})
    yield event({"type": "message_stop"})


def error(status, message):
    kind = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
            429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def error_event(message):
    return event({"type": "error", "error": {"type": "overloaded_error", "message": message}})
