"""Pieces of the sentences that name a difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from shardviz.compare.transfer import ArrayTransfer
from shardviz.errors import plural
from shardviz.hlo import Collective, Work
from shardviz.sharding import Mesh

_MOST_NAMED = 3
"""Arrays of which each is named where a collective moves one of them."""


def in_dtype(other: ArrayTransfer, mine: ArrayTransfer) -> str:
    return f" in {other.dtype}" if other.dtype != mine.dtype else ""


def done_too(partner: Sequence[ArrayTransfer]) -> str:
    return f", besides {listed(partner)}" if partner else ""


def with_article(name: str) -> str:
    """Such as "an all-gather"; several of them, as "2 times all-gather", have no article."""
    return name if name[0].isdigit() else f"{'an' if name[0] == 'a' else 'a'} {name}"


def against(theirs: int, ours: int) -> str:
    return f"both send {ours:,} bytes" if theirs == ours else f"it sends {theirs:,} bytes instead of {ours:,}"


def over(one: ArrayTransfer | Collective) -> str:
    """The axes, as in ` over X, Y`; nothing where it follows none."""
    return f" over {', '.join(one.axes)}" if one.axes else ""


def wire(several: Iterable[ArrayTransfer]) -> int:
    return sum(one.wire_bytes for one in several)


def listed(several: Sequence[ArrayTransfer]) -> str:
    """All in turn; equal ones in a row once, with how many they are."""
    runs = [(text, len([*run])) for text, run in groupby(map(str, several))]
    return ", then ".join(text if count == 1 else f"{count} times {text}" for text, count in runs)


def arrays(several: Sequence[ArrayTransfer]) -> str:
    """The arrays of some transfers; where one of them may move several arrays, "A or W"."""
    names = dict.fromkeys(one_of(one.arrays) for one in several if one.arrays)
    *most, last = names or ["other data"]
    return f"{', '.join(most)} and {last}" if most else last


def one_of(names: Sequence[str]) -> str:
    """Such as "A or W"; of many their number."""
    return " or ".join(names) if len(names) <= _MOST_NAMED else f"one of {len(names)} arrays"


def does(several: Sequence[ArrayTransfer]) -> str:
    """All in turn, and what they send; by array where there are several."""
    if len({one.arrays for one in several}) > 1:
        return acts(several)
    return f"does {listed(several)}, sending {wire(several):,} bytes" if several else "needs nothing"


def acts(several: Sequence[ArrayTransfer]) -> str:
    """The work on each array in turn, and the bytes that all of it sends."""
    return f"{acts_on(several)}, sending {wire(several):,} bytes" if several else "sends nothing else"


def acts_on(several: Sequence[ArrayTransfer]) -> str:
    """Such as "moves A by all-gather over X (64 bytes), then adds up Out by all-reduce over Y (8 bytes)"."""
    runs = groupby(several, key=lambda one: (one.arrays, one.is_sum))
    turns = ((is_sum, [*run]) for (_, is_sum), run in runs)
    return ", then ".join(
        f"{'adds up' if is_sum else 'moves'} {arrays(run)} by {listed(run)}" for is_sum, run in turns
    )


def verb(several: Sequence[ArrayTransfer]) -> str:
    """The verb for some transfers of an array: a sum does more than move it."""
    sums = {one.is_sum for one in several}
    return "adds up and moves" if len(sums) > 1 else "adds up" if sums == {True} else "moves"


def cheaper(theirs: Sequence[ArrayTransfer], ours: Sequence[ArrayTransfer]) -> str:
    """The end of a sentence about two ways of which the target's sends less; "" where it does not."""
    return ", which is more" if wire(theirs) < wire(ours) else ""


def listed_axes(axes: frozenset[str], mesh: Mesh) -> str:
    """Axes in the mesh's order."""
    return ", ".join(axis for axis in mesh.axis_names if axis in axes)


def under_way(overlapped: Sequence[Work]) -> str:
    """The work during a collective: "2 matmuls, ~52,626 cycles"; "" where there is none."""
    if not overlapped:
        return ""
    matmuls = sum(work.op == "matmul" for work in overlapped)
    others = len(overlapped) - matmuls
    words = [plural(matmuls, "matmul")] if matmuls else []
    words += [plural(others, "other instruction" if matmuls else "instruction")] if others else []
    cycles = sum(work.cycles or 0 for work in overlapped)
    return " and ".join(words) + (f", ~{cycles:,} cycles" if cycles else "")
