"""An S3 server (moto) and a bucket in it, both on the loopback.

The server under test gets its address and credentials from the environment, as AWS tools do.
"""

import hashlib
import http.client
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

SECRET = "a-secret-that-nobody-prints"
# moto does not check the signature, but refuses a request without one.
AUTHORIZATION = "AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
# Large enough to be a blob of its own, and different for each n.
BIG = "globalThis.big = Array.from({{length: 20000}}, (_, i) => ({{i, text: `row {n} ${{i * 7919 % 10007}}`}})); big.length"


@contextmanager
def moto():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 40
        while True:
            assert process.poll() is None, "moto ended"
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline, "moto does not listen"
                time.sleep(0.1)
        yield port
    finally:
        process.kill()
        process.wait(10)


class Bucket:
    def __init__(self, port, name):
        self.port, self.name = port, name
        assert self.ask("PUT", f"/{name}")[0] == 200

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, {"Authorization": AUTHORIZATION})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def keys(self, prefix=""):
        status, listed = self.ask("GET", f"/{self.name}?list-type=2&prefix={prefix}")
        assert status == 200, listed
        # The object `owner` is left out; it names the database that owns the prefix.
        return re.findall(r"<Key>((?:[^<]*/)?[0-9a-f]{64})</Key>", listed.decode())

    def get(self, key):
        return self.ask("GET", f"/{self.name}/{key}")[1]

    def put(self, key, body):
        assert self.ask("PUT", f"/{self.name}/{key}", body)[0] == 200


@contextmanager
def environment_of_s3(port):
    """Processes that start inside this block reach S3 at this port."""
    names = {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }
    os.environ.update(names)
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]


def assert_names_are_digests(bucket, prefix):
    keys = bucket.keys(prefix)
    assert keys, f"nothing under {prefix}"
    for key in keys:
        name = key.removeprefix(prefix)
        assert hashlib.sha256(bucket.get(key)).hexdigest() == name, f"{key} is not what its name says"
    return keys
