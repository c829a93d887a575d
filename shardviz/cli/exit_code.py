"""What the command's exit status tells a script."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """0 fine, 1 a check failed, 2 a wrong question or damaged text, 3 a compiler failed, 130 interrupted."""

    FINE = 0
    CHECK_FAILED = 1
    QUESTION = 2
    COMPILER = 3
    INTERRUPTED = 130
