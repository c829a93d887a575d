"""Python's search for circles of objects, which looks at all that a process has loaded or read."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_is_frozen = False


def freeze() -> None:
    """Leave all that there is out of every later search: a process has loaded what it needs."""
    global _is_frozen
    gc.freeze()
    _is_frozen = True


@contextmanager
def uncollected() -> Iterator[None]:
    """Around a function that reads a text: Python does not search for circles of objects meanwhile. Reading
    makes none, and of 30 MB that search takes a third of the time, as all objects are looked at again and
    again. Young garbage of others goes before: all that is young afterwards was read, and counts as old."""
    is_stopped = gc.isenabled()
    if is_stopped:
        gc.collect(1)
        gc.disable()
    try:
        yield
    finally:
        if is_stopped:
            # Thawing would undo `freeze`; `gc.get_freeze_count` would look at each object that is frozen.
            if not _is_frozen:
                gc.freeze()
                gc.unfreeze()
            gc.enable()
