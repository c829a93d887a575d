"""A difference between the plan and a target."""

from __future__ import annotations

import re
from dataclasses import dataclass

AS_PLANNED = frozenset({"overlapped", "fused_reduce_scatter", "combined_collectives", "packed_dtype"})
"""Codes of differences after which every byte still moves as planned, only at another time or together."""
SAME_TRAFFIC = AS_PLANNED | {"moved_elsewhere", "only_other_result"}
"""Those, and codes of differences with as many bytes by the same collectives, but of other arrays."""


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
