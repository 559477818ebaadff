"""A proxy before an S3 server that answers wrongly, fails or is slow on request."""

import http.client
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SLOW_SECONDS = 3


class FaultyProxy:
    """Forwards requests to the port `to`. `put` and `get` name the fault of requests that write and read objects, `of` limits it to one object, and `faults` counts them."""

    def __init__(self, to):
        self.to, self.put, self.get, self.of, self.faults = to, None, None, "", 0
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def clear_faults(self):
        self.put, self.get, self.of = None, None, ""


def handler(proxy):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def any(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            # Faults concern only objects that are named by their digest, not the bucket, its list or its owner.
            name = self.path.split("?")[0].rsplit("/", 1)[-1]
            of_object = len(name) == 64 and name.startswith(proxy.of)
            fault = {"PUT": proxy.put, "GET": proxy.get}.get(self.command) if of_object else None
            proxy.faults += fault is not None
            try:
                self.apply(fault, body)
            except OSError:
                self.close_connection = True

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = any

        def apply(self, fault, body):
            if fault == "refused":
                return self.answer(500, [], b"<Error><Code>InternalError</Code></Error>")
            if fault == "swallowed":
                return self.answer(200, [("ETag", '"0"')], b"")
            if fault == "slow":
                time.sleep(SLOW_SECONDS)
            if fault == "cut off before":
                return self.cut()
            if fault == "kept half":
                body = body[: len(body) // 2]
            status, headers, answer = self.forward(body)
            if fault == "answer lost":
                return self.cut()
            if fault == "flipped":
                answer = answer[:-9] + bytes([answer[-9] ^ 1]) + answer[-8:]
            if fault == "another's":
                answer = answer[::-1]
            if fault == "shorter":
                answer = answer[:-100]
            self.answer(status, headers, answer, half=fault == "truncated")

        def forward(self, body):
            server = http.client.HTTPConnection("127.0.0.1", proxy.to, timeout=20)
            try:
                server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in ("connection", "content-length", "x-amz-checksum-sha256", "content-md5"):
                        server.putheader(name, value)
                server.putheader("Content-Length", str(len(body)))
                server.endheaders(body)
                answer = server.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            finally:
                server.close()

        def answer(self, status, headers, body, half=False):
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                    self.send_header(name, value)
            length = len(body)
            if self.command == "HEAD":
                length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: length // 2] if half else body)
            if half:
                self.cut()

        def cut(self):
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)

    return Handler
