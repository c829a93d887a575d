"""What JAX says of a result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.collectives.verification import Verification
    from shardviz.compiler import Ran


@dataclass(frozen=True)
class Verdict:
    """The same collective as JAX ran it, and its values beside ours."""

    ran: Ran
    verification: Verification

    @property
    def agrees(self) -> bool:
        """Whether nothing differs but by the order of additions."""
        return self.verification.verdict != "different"
