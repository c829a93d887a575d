"""What the step screen says of JAX's verdict on the numbers, also while there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.drafts.wording import as_sentence
from shardviz.render.lines import sentence
from shardviz.render.rounds.step_notes import short_verdict

if TYPE_CHECKING:
    from shardviz.sharding import Mesh
    from shardviz.tui.target_answers import Verification

LINES = 2
"""Lines of a verdict at most."""


def verdict_of(verification: Verification | None, mesh: Mesh, width: int) -> list[Text]:
    """Whether JAX has confirmed the numbers; a line at least, so that little moves."""
    if verification is None:
        said = "no numbers to verify: they would be too many"
    elif verification.verdict is not None:
        return short_verdict(verification.verdict, mesh, width, LINES)
    elif verification.state in ("waiting", "asked"):
        said = "… JAX computes the same"
    else:
        said = as_sentence(verification.silence) or "not verified: cancelled; r asks again"
    return sentence(said, width, style="dim")[:LINES]
