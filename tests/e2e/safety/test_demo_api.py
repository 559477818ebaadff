"""The demo API takes no requests of web pages, which a browser sends to any port of its machine."""

import json
import os
from pathlib import Path

import pytest

from lib.client import request
from lib.server import Server


def listening_ports(pid):
    """The TCP ports on which a process listens."""
    links = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    sockets = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and row[9] in sockets}


@pytest.fixture(scope="module")
def demo_port():
    """The port of the demo API: the other port on which the process listens."""
    with Server() as server:
        ports = listening_ports(server.process.pid)
        assert server.port in ports and len(ports) == 2, ports
        yield (ports - {server.port}).pop()


TICKET = json.dumps({"title": "written by a page"})
PAGES = [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}]


@pytest.mark.parametrize("headers", PAGES, ids=lambda headers: "=".join(*headers.items()))
def test_a_page_can_neither_write_nor_read(demo_port, headers):
    for method, path, body in (("POST", "/api/projects/OPS/tickets", TICKET), ("GET", "/api/projects", b"")):
        assert request(demo_port, method, path, body, headers).status == 403, (method, headers)


def test_a_client_without_a_page_is_answered(demo_port):
    assert request(demo_port, "GET", "/api/projects").status == 200
