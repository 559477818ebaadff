"""An HTTP server for tests of `fetch`: each path has an answer, honest or not."""

import base64
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


class Peer:
    """An HTTP server that keeps every request, and answers by the path."""

    def __init__(self):
        self.requests = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.origin = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def count(self, path):
        return sum(urlsplit(one["path"]).path == path for one in self.requests)

    def last(self):
        return self.requests[-1]


def handler(peer):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def any(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            peer.requests.append({"method": self.command, "path": self.path, "headers": self.headers.items(), "body": body})
            target = urlsplit(self.path)
            name, _, rest = target.path[1:].partition("/")
            query = {key: value[0] for key, value in parse_qs(target.query).items()}
            try:
                getattr(self, f"do_{name.replace('-', '_')}", self.do_hello)(rest=rest, body=body, **query)
            except OSError:
                self.close_connection = True  # The client has disconnected.

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = any

        def answer(self, status, body=b"", **headers):
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key.replace("_", "-"), value)
            if status not in (204, 304):
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" or status in (204, 304) else body)

        def do_hello(self, **_):
            self.answer(200, "hällo".encode(), Content_Type="text/plain;charset=utf-8", X_Made="by hand", Set_Cookie="id=1")

        def do_echo(self, body, **_):
            echo = {"method": self.command, "path": self.path, "headers": dict(self.headers.items()), "body": base64.b64encode(body).decode()}
            self.answer(200, json.dumps(echo).encode(), Content_Type="application/json")

        def do_header(self, **query):
            """Answers with a header in the given encoding. The standard library writes header text as Latin-1."""
            raw = {"utf8": "café".encode(), "latin": "café".encode("latin-1"), "wide": "日".encode()}[query["as"]]
            self.answer(200, b"{}", X_Name=raw.decode("latin-1"))

        def do_bytes(self, body, **_):
            self.answer(200, body, Content_Type="application/octet-stream")

        def do_status(self, rest, **_):
            self.answer(int(rest), b'{"status": true}')

        def do_redirect(self, to, status="302", **_):
            self.answer(int(status), Location=to)

        def do_slow(self, ms="60000", **_):
            time.sleep(int(ms) / 1000)
            self.answer(200, b"slow")

        def do_drip(self, **_):
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            for _ in range(600):
                self.wfile.write(b".")
                self.wfile.flush()
                time.sleep(0.1)

        def do_huge(self, bytes="5000000", **_):
            self.answer(200, b"x" * int(bytes))

        def do_endless(self, **_):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for _ in range(10_000):
                self.wfile.write(b"2710\r\n" + b"y" * 10_000 + b"\r\n")

        def raw(self, bytes_):
            self.wfile.write(bytes_)
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def do_garbage(self, **_):
            self.raw(b"\x00\xff\x16\x03 what is this\r\n\r\n" * 20)

        def do_half(self, **_):
            self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nten bytes.")

        def do_nothing(self, **_):
            self.raw(b"")

        def do_headers(self, **_):
            self.raw(b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"a" * 2_000_000 + b"\r\n\r\n")

        def do_gzip(self, **_):
            self.answer(200, b"this is no gzip", Content_Encoding="gzip")

        def do_not_text(self, **_):
            self.answer(200, b"\xff\xfe\xfd{", Content_Type="application/json")

    return Handler
