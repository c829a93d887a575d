"""A bar for a figure beside others, in eighths of a column."""

from __future__ import annotations

BLOCKS = " ▏▎▍▌▋▊▉█"


def bar(size: float, most: float, room: int) -> str:
    """A bar of at most `room` columns, in eighths of one; what is there has at least an eighth."""
    eighths = max(round(8 * room * size / most) if most else 0, int(size > 0))
    return BLOCKS[-1] * (eighths // 8) + BLOCKS[eighths % 8].strip()
