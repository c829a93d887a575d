"""A terminal that is given back as it was, also when a signal ends the application in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

RESET = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l"  # the mouse
    "\x1b[?2004l\x1b[?2048l\x1b[?1004l"  # pasted text, sizes, focus
    "\x1b[<u\x1b[?7h\x1b[?1049l\x1b[?25h"  # keys, wrapping, the first screen, the cursor
)


def giving_back() -> Callable[[], None]:
    """What puts the terminal into the state that it is in now; it takes no lock and waits for nothing."""
    import termios
    from contextlib import suppress

    keys, screen = sys.__stdin__, sys.__stderr__
    assert keys is not None
    assert screen is not None
    before = termios.tcgetattr(keys.fileno())
    terminal, nowhere = os.dup(screen.fileno()), os.open(os.devnull, os.O_WRONLY)

    def give_back() -> None:
        with suppress(OSError, termios.error):
            # What a thread still draws must not land on the screen that is given back.
            os.dup2(nowhere, screen.fileno())
            os.write(terminal, RESET.encode())
            termios.tcsetattr(keys.fileno(), termios.TCSANOW, before)

    return give_back
