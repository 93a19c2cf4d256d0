"""The OpenAI responses protocol without server-side state."""

import json

from ..conversation import Asked, Call, Message
from .chat import error, key

__all__ = ["NAME", "PATH", "error", "error_event", "events", "key", "parse", "whole"]

NAME = "openai-responses"
PATH = "/responses"


def text_of(content):
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


def parse(body):
    items = body.get("input")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    if not isinstance(items, list) or not items:
        raise ValueError("Missing required parameter: 'input'.")
    system, found = [body.get("instructions") or ""], []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            role, text = item["role"], text_of(item["content"])
            if role in ("system", "developer"):
                system.append(text)
            else:
                found.append(Message(role, text))
        elif kind in ("function_call", "custom_tool_call"):
            call = Call(item["call_id"], item["name"], item.get("arguments", item.get("input", "")))
            if found and found[-1].role == "assistant":
                found[-1].calls.append(call)
            else:
                found.append(Message("assistant", "", [call]))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            found.append(Message("tool", text_of(item["output"]), call_id=item["call_id"]))
    tools = {tool["name"]: tool.get("parameters", {}) for tool in body.get("tools") or [] if "name" in tool}
    return Asked(body["model"], "\n".join(system), found, tools, bool(body.get("stream")), body)


def items(answer):
    if answer.text:
        yield {"type": "message", "id": "msg_scripted", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": answer.text, "annotations": []}]}
    for place, call in enumerate(answer.calls):
        yield {"type": "function_call", "id": f"fc_{place}", "call_id": call.id, "name": call.name,
               "arguments": call.arguments, "status": "completed"}


def document(answer, status, output):
    return {"id": "resp_scripted", "object": "response", "created_at": 0, "status": status, "model": answer.model, "output": output,
            "error": None, "incomplete_details": None, "parallel_tool_calls": True,
            "usage": {"input_tokens": answer.input_tokens, "input_tokens_details": {"cached_tokens": answer.cached_tokens},
                      "output_tokens": answer.output_tokens, "output_tokens_details": {"reasoning_tokens": 0},
                      "total_tokens": answer.input_tokens + answer.output_tokens}}


def whole(answer):
    return document(answer, "completed", list(items(answer)))


def event(value):
    return f"event: {value['type']}\ndata: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def events(answer, size):
    yield event({"type": "response.created", "sequence_number": 0, "response": document(answer, "in_progress", [])})
    for index, item in enumerate(items(answer)):
        place = {"output_index": index, "item_id": item["id"]}
        begun = {**item, "status": "in_progress"}
        if item["type"] == "message":
            text = item["content"][0]["text"]
            yield event({"type": "response.output_item.added", "output_index": index, "item": {**begun, "content": []}})
            for begin in range(0, len(text), size):
                yield event({"type": "response.output_text.delta", **place, "content_index": 0, "delta": text[begin:begin + size]})
        else:
            yield event({"type": "response.output_item.added", "output_index": index, "item": {**begun, "arguments": ""}})
            for begin in range(0, len(item["arguments"]), size):
                yield event({"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"][begin:begin + size]})
            yield event({"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]})
        yield event({"type": "response.output_item.done", "output_index": index, "item": item})
    yield event({"type": "response.completed", "response": whole(answer)})


def error_event(message):
    return event({"type": "error", "code": "server_error", "message": message})
