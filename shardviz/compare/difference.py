"""A difference between the plan and a target."""

from __future__ import annotations

import re
from dataclasses import dataclass

SAME_TRAFFIC = frozenset(
    {
        "overlapped",
        "fused_reduce_scatter",
        "combined_collectives",
        "packed_dtype",
        "moved_elsewhere",
        "only_other_result",
    }
)
"""Codes of differences after which as many bytes move by the same collectives, only at another time,
together, or of another array."""


@dataclass(frozen=True)
class Difference:
    """One difference between the plan and a target: a stable code and one sentence with the numbers."""

    target: str
    code: str
    message: str

    def said_of(self, subject: str) -> str:
        """The sentence about another subject than the target's name: "it", or "each" of several targets."""
        name = rf"(?<![\w:*]){re.escape(self.target)}(?![\w:*])"
        return re.sub(name, lambda _: subject, self.message)
