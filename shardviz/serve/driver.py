"""The terminal driver of a visitor's application: keys come in, pictures go out, and nothing else."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from textual import events, messages
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver
from textual.message import Message

from shardviz.serve.lecture import pointer_in
from shardviz.tui.terminal_input import TerminalInput

PATIENCE_S = 4.0
"""The longest that the application takes to end by itself."""
MAX_REASON = 300
"""Characters of an error that the server gets."""


class VisitorDriver(WebDriver):
    """Textual's driver for the web without its ways to hand out files and open links. The process ends with
    the server's pipe, however the server ends."""

    def run_input_thread(self) -> None:
        packets, typed = ByteStream(), TerminalInput()
        with suppress(ConnectionError):  # of a server that died with pictures unread
            for data in self._input_reader:
                for kind, payload in packets.feed(data) if data else ():
                    if kind == "D":
                        self._process(typed.feed(payload))
                    else:
                        self._on_meta(kind, payload)
                self._process(typed.tick())
        self._end_soon()

    def _process(self, typed: Iterable[Message]) -> None:
        for message in typed:
            self.process_message(message)

    def stop_application_mode(self) -> None:
        """Leave it to `say_end` to tell the server how the application has ended."""
        self.exit_event.set()
        self._input_reader.close()

    def process_message(self, message: Message) -> None:
        """Pass over sizes of the terminal in what is typed: the server sends them, within its limits."""
        if not isinstance(message, (events.Resize, messages.InBandWindowResize)):
            super().process_message(message)

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        if packet_type == "quit":
            self._end_soon()
        elif packet_type == "follow":
            self._app.led = payload["shared"], pointer_in(payload)  # type: ignore[attr-defined]
            self._ask(self._app.follow)  # type: ignore[attr-defined]
        elif packet_type == "repaint":
            self._ask(self._repaint)
        elif packet_type in ("resize", "focus", "blur"):
            super().on_meta(packet_type, payload)

    def open_url(self, url: str, new_tab: bool = True) -> None:
        """A visitor opens links in a browser."""

    def deliver_binary(self, *_args: Any, **_named: Any) -> None:
        """A visitor gets no files."""

    def _repaint(self) -> None:
        """Draw the whole screen, in a terminal of whose modes nothing is known."""
        self.write_meta({"type": "repaints"})
        self.write("\x1b[?1049h\x1b[?25l")  # its other screen, without the cursor
        self._enable_mouse_support()
        self._enable_bracketed_paste()
        self._app.refresh(layout=True)

    def _ask(self, what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the application's loop may have ended already
            self._app.call_later(what)

    def _end_soon(self) -> None:
        self._ask(self._app.exit)
        timer = threading.Timer(PATIENCE_S, leave, (1,))
        timer.daemon = True
        timer.start()


def say_end(error: Exception | None) -> None:
    """Tell the server that the application has ended, and why where it has failed."""
    said = {"type": "exit"}
    if error is not None:
        said = {"type": "failed", "reason": f"{type(error).__name__}: {error}"[:MAX_REASON]}
    packet = json.dumps(said).encode()
    with suppress(OSError):  # the server may have gone
        os.write(1, b"M%s%s" % (len(packet).to_bytes(4, "big"), packet))


def leave(code: int) -> NoReturn:
    """End the process, also while it computes, and remove its folder: the server, which would remove that as
    well, may have been killed."""
    with suppress(OSError):
        Path.cwd().rmdir()
    os._exit(code)
