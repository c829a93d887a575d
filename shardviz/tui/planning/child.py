"""The planning process: calls one function after the other until its parent is gone."""

from __future__ import annotations

import signal
from typing import Any

from shardviz.compiler.child.main import end_with_parent
from shardviz.compiler.messages import Channel
from shardviz.errors import ShardvizError


def main(read_fd: int, write_fd: int) -> None:
    """Serve the parent over two file descriptors: a function and its arguments go in, what it returns or the
    `ShardvizError` that it raises comes out. Any other error ends the process, with a traceback."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    channel = Channel(read_fd, write_fd)
    while True:
        try:
            call: Any = channel.receive()
        except EOFError:
            return
        function, arguments = call
        answer: object
        try:
            answer = function(*arguments)
        except ShardvizError as error:
            answer = error
        channel.send(answer)
