"""A model that follows a script, behind the two APIs that hosts speak: Anthropic Messages and OpenAI Responses, both streamed.

Invariants: it says only what its script says, whatever it is told; everything that a host sends it is kept; only the standard
library. A request that offers none of the tools under test (a title for the conversation, say) is answered with a word.
"""

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model:
    """`script(step, results)` is the next call `(tool, arguments)`, or the last words; `results` are the tool results so far."""

    def __init__(self, script):
        self.script = script
        self.requests = []
        self.seen = []
        self.trouble = []

    def __enter__(self):
        model = self

        class Handler(Answering):
            pass

        Handler.model = model
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def next(self, offered, results):
        """The next answer to a host that offers these tools and sent these results."""
        self.seen = max(self.seen, results, key=len)
        try:
            said = self.script(len(results), results)
        except Exception as problem:  # The result is another one than the script expects, so the script ends.
            self.trouble.append(f"step {len(results)}: {type(problem).__name__}: {problem}")
            return "The script ended early."
        if isinstance(said, str):
            return said
        tool, arguments = said
        named = next((name for name in offered if name.split("__")[-1] == tool), None)
        if named is None:
            self.trouble.append(f"step {len(results)}: {tool} is not offered: {sorted(offered)}")
            return "The tool is not there."
        return named, arguments


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        self.json(200, {"object": "list", "data": [], "models": []})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.split("?")[0]
        self.model.requests.append((path, body))
        if path.endswith("/messages"):
            anthropic(self, body)
        elif path.endswith("/responses"):
            openai(self, body)
        elif path.endswith("/count_tokens"):
            self.json(200, {"input_tokens": 1})
        else:
            self.json(404, {"error": {"type": "not_found_error", "message": path}})

    def json(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def events(self, events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for kind, data in events:
            self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode())
        self.wfile.flush()
        self.close_connection = True


def text_in(content):
    """The text of a result, as the model would read it."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or f"[{part.get('type')}]" for part in content or [])


# --- Anthropic Messages


def anthropic(http, body):
    offered = {tool["name"] for tool in body.get("tools", [])}
    blocks = [block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]]
    ours = {block["id"] for block in blocks if block["type"] == "tool_use" and "__" in block["name"]}
    results = [
        text_in(block.get("content"))
        for block in blocks
        if block["type"] == "tool_result" and block["tool_use_id"] in ours
    ]
    # A host may hide tools until the model searches for them; their names are in the conversation.
    named = set(re.findall(r"mcp__\w+?__\w+", json.dumps(body["messages"])))
    searched = any(block["type"] == "tool_use" and block["name"] == "ToolSearch" for block in blocks)
    if named - offered and "ToolSearch" in offered and not searched:
        said = "ToolSearch", {"query": "select:" + ",".join(sorted(named)), "max_results": len(named)}
    else:
        known = offered | named
        said = http.model.next(known, results) if any("__" in name for name in known) else "Yes."
    number = len(http.model.requests)
    if isinstance(said, str):
        content, stop = {"type": "text", "text": said}, "end_turn"
    else:
        content = {"type": "tool_use", "id": f"toolu_{number:04}", "name": said[0], "input": said[1]}
        stop = "tool_use"
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"]}
    message |= {"stop_sequence": None, "usage": usage}
    if not body.get("stream"):
        http.json(200, {**message, "content": [content], "stop_reason": stop})
        return
    if stop == "end_turn":
        empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": said}
    else:
        empty, delta = {**content, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(said[1])}
    http.events([
        ("message_start", {"message": {**message, "content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}),
        ("message_stop", {}),
    ])


# --- OpenAI Responses


def openai(http, body):
    # A tool is listed alone, or in a namespace of its server.
    offered = {}
    for tool in body.get("tools", []):
        inner = tool.get("tools") if tool.get("type") == "namespace" else None
        for one in inner or [tool]:
            full = f"{tool['name']}__{one['name']}" if inner else one.get("name", "")
            offered[full] = (one.get("name"), tool["name"] if inner else None)
    items = body.get("input") if isinstance(body.get("input"), list) else []
    ours = {i["call_id"] for i in items if i.get("type") == "function_call" and "__" in i["name"] + str(i.get("namespace"))}
    outputs = [i["output"] for i in items if i.get("type") == "function_call_output" and i["call_id"] in ours]
    # The host writes the duration of a call above its answer.
    results = [re.sub(r"\AWall time: [^\n]*\nOutput:\n", "", text_in(output)) for output in outputs]
    known = {name for name in offered if "__" in name}
    said = http.model.next(known, results) if known else "Yes."
    number = len(http.model.requests)
    if isinstance(said, str):
        item = {"type": "message", "role": "assistant", "id": f"msg_{number}"}
        item["content"] = [{"type": "output_text", "text": said}]
    else:
        name, namespace = offered[said[0]]
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number:04}", "name": name}
        item |= {"arguments": json.dumps(said[1]), **({"namespace": namespace} if namespace else {})}
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None}
    response = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item]}
    response["usage"] = {**usage, "total_tokens": 2}
    http.events([
        ("response.created", {"response": {"id": f"resp_{number}"}}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": response}),
    ])
