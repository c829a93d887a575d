"""Objects over a pair of pipes, each as its length and its pickle. Both processes use it."""

from __future__ import annotations

import os
import pickle

_LENGTH_BYTES = 8


class Channel:
    """One end of a conversation. Not for concurrent senders, nor concurrent receivers."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd, self.write_fd = read_fd, write_fd

    def send(self, message: object) -> None:
        """Write one object; `BrokenPipeError` when nobody reads any more."""
        body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        data = memoryview(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
        while data:
            data = data[os.write(self.write_fd, data) :]

    def receive(self) -> object:
        """Wait for one object; `EOFError` when the other end is closed."""
        length = int.from_bytes(self._read(_LENGTH_BYTES), "big")
        return pickle.loads(self._read(length))

    def close(self) -> None:
        os.close(self.read_fd)
        os.close(self.write_fd)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = os.read(self.read_fd, min(count - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)
