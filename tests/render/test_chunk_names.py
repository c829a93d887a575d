"""Names and colours of chunks."""

from __future__ import annotations

import pytest

from shardviz.collectives import Pattern
from shardviz.render.palette import TRUECOLOR
from shardviz.render.rounds.pieces import chunk_name, chunk_style

NAMES = [
    ("all_gather", (4,), 4, 0, 0, "α"),
    ("all_gather", (4,), 4, 3, 0, "δ"),
    ("all_gather", (4,), 4, 0, 1, "ε"),
    ("all_gather", (48,), 48, 25, 0, "β₁"),
    ("all_to_all", (4,), 16, 0, 0, "α₀"),
    ("all_to_all", (4,), 16, 7, 0, "β₃"),
    ("all_to_all", (4,), 16, 7, 1, "ζ₃"),
    ("all_to_all", (2,), 8, 5, 0, "ζ"),
    ("all_to_all", (32,), 1024, 33, 0, "κ₁"),
]


@pytest.mark.parametrize(("kind", "dims", "chunks", "chunk", "group", "name"), NAMES)
def test_names(kind: str, dims: tuple[int, ...], chunks: int, chunk: int, group: int, name: str) -> None:
    assert chunk_name(Pattern(kind, dims), chunks, chunk, group) == name


@pytest.mark.parametrize(("size", "groups"), [(4, 6), (8, 3), (16, 1), (5, 4)])
def test_no_two_chunks_share_a_name(size: int, groups: int) -> None:
    for kind, chunks in (("all_gather", size), ("all_to_all", size * size)):
        pattern = Pattern(kind, (size,))
        names = [chunk_name(pattern, chunks, c, g) for g in range(groups) for c in range(chunks)]
        assert len(set(names)) == len(names)


def test_groups_that_run_together_have_colours_of_their_own() -> None:
    colours = {str(chunk_style(TRUECOLOR, 4, chunk, group)) for group in range(4) for chunk in range(4)}
    assert len(colours) == 16
