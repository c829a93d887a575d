"""A member of a group, given by its number."""

from __future__ import annotations

from shardviz.errors import QuestionError


def check_member(number: int, group_size: int, least: int = 0) -> None:
    """Raise `QuestionError` for a number below `least` or beyond the group."""
    if not least <= number < group_size:
        raise QuestionError(
            f"there is no device {number} in a group of {group_size:,}",
            f"the devices of a group count from 0 to {group_size - 1:,}",
        )
