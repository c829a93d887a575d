"""A difference between the plan and a target."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """One difference between the plan and a target: a stable code and one sentence with the numbers."""

    target: str
    code: str
    message: str
