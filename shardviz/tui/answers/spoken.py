"""An answer in the application's words: why there is none, in sentences that name its fields and keys."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.drafts.wording import as_sentence

if TYPE_CHECKING:
    from shardviz.compiler import TargetResult


def spoken(compiled: TargetResult) -> TargetResult:
    """The same answer; what it says of itself where it is none is worded for the application."""
    if compiled.status == "ok":
        return compiled
    return replace(compiled, error=as_sentence(compiled.error), hint=as_sentence(compiled.hint))
