"""Peers that begin a request and do not go on."""

import socket
import threading

import pytest

from lib.hostile import assert_alive, http_head, open_session

# Longer than any honest client needs to send a request over loopback; the server waits 30 s.
SECONDS_UNTIL_CUT_OFF = 60
BODY = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
# The bytes that a peer sends, and the pause between two of them.
SLOW_PEERS = {
    "half a header": (http_head("POST", body=BODY)[:40], 0),
    "half a body": (http_head("POST", body=BODY) + BODY[:10], 0),
    "a header at one byte a second": (http_head("GET"), 1),
}


class SlowPeer(threading.Thread):
    """A connection that waits until the server ends it."""

    def __init__(self, port, sent, pause):
        super().__init__(daemon=True)
        self.port, self.sent, self.pause = port, sent, pause
        self.was_cut_off = False

    def run(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_UNTIL_CUT_OFF) as peer:
            try:
                if self.pause:
                    peer.settimeout(self.pause)
                    self._drip(peer)
                else:
                    peer.sendall(self.sent)
                    while peer.recv(1000):
                        pass
            except TimeoutError:
                return
            except OSError:
                pass  # A reset ends the connection too.
            self.was_cut_off = True

    def _drip(self, peer):
        for byte in self.sent[:SECONDS_UNTIL_CUT_OFF]:
            peer.sendall(bytes([byte]))
            try:
                if peer.recv(1000) == b"":
                    return
            except TimeoutError:
                continue
        raise TimeoutError


@pytest.fixture(scope="module")
def slow_peers(server):
    """All peers wait at the same time, because each waits for half a minute."""
    peers = {kind: SlowPeer(server.port, *how) for kind, how in SLOW_PEERS.items()}
    for peer in peers.values():
        peer.start()
    return peers


@pytest.mark.parametrize("kind", SLOW_PEERS)
def test_a_slow_peer_is_cut_off(slow_peers, kind):
    slow_peers[kind].join(SECONDS_UNTIL_CUT_OFF + 5)
    assert slow_peers[kind].was_cut_off, f"it still holds its connection after {SECONDS_UNTIL_CUT_OFF} s"


def test_the_server_works_beside_slow_peers(server, slow_peers):
    open_session(server)
    assert_alive(server)
