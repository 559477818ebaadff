"""A port that leads to another one until it is cut; moto keeps everything in memory, so a test takes away the way to it."""

import select
import socket
import threading


class Forwarder:
    """A port that leads to another one, until it is cut."""

    def __init__(self, to):
        self.to = to
        self.port = 0
        self.open()

    def open(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        self.listener.listen(64)
        self.sockets = []
        self.up = True
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def cut(self):
        """Closes the port and all connections."""
        self.up = False
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _accept(self, listener):
        while self.up:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            self.sockets += [near, far]
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    @staticmethod
    def _carry(near, far):
        other = {near: far, far: near}
        try:
            while True:
                for connection in select.select([near, far], [], [])[0]:
                    data = connection.recv(65536)
                    if not data:
                        return
                    other[connection].sendall(data)
        except OSError:
            pass
        finally:
            near.close()
            far.close()
