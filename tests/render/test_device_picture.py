"""The picture of a round: devices with their links, what they hold, and what moves, marked on both ends."""

from __future__ import annotations

from textwrap import dedent

import pytest
from rich.text import Text

from shardviz.collectives.algorithms import schedules_for
from shardviz.collectives.schedule import KINDS, Pattern
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.rounds.device_picture import DevicePicture, GroupBoxes

NAMES = dict(
    zip(KINDS, ("all_gather", "psum_scatter", "psum", "all_to_all", "ppermute", "pbroadcast"), strict=True)
)


def picture(run, number: int, width: int = 80, height: int = 24, group: int = 0, palette=PLAIN):
    return DevicePicture(GroupBoxes(run, group, width, height, palette), number)


def drawn(run, number: int, width: int = 80, height: int = 24, group: int = 0) -> str:
    found = picture(run, number, width, height, group)
    return "\n".join(found.line(y, 0, width).plain for y in range(found.height))


def check(found: str, expected: str) -> None:
    assert dedent(found) == dedent(expected).strip("\n").rstrip()


def test_a_ring_of_four(run_of):
    """γ, δ, … travel clockwise; ▸ before a piece has arrived, ▸ behind it has left."""
    check(
        drawn(run_of("all_gather", "i=4", [3, 9, 5, 2]), 2, width=41, height=7),
        """
        ┌ 0  i0 ────────┐       ┌ 1  i1 ────────┐
        │ 3   ·  ▸5   2▸│──δ───→│ 3▸  9   ·  ▸2 │
        └ δ→1 ──────────┘       └ α→2 ──────────┘
                ↑γ                      ↓α
        ┌ 3  i3 ────────┐       ┌ 2  i2 ────────┐
        │ ·  ▸9   5▸  2 │←──β───│▸3   9▸  5   · │
        └ γ→0 ──────────┘       └ β→3 ──────────┘
        """,
    )


def test_a_ring_of_eight_on_a_small_page(run_of):
    check(
        drawn(run_of("all_gather", "i=8", 8), 3, width=39, height=9),
        """
        ┌ 0 ─┐     ┌ 1 ─┐     ┌ 2 ─┐     ┌ 3 ─┐
        │α···│─η──→│αβ··│─θ──→│αβγ·│─α──→│αβγδ│
        │·ζηθ│     │··ηθ│     │···θ│     │····│
        └────┘     └────┘     └────┘     └────┘
           ↑ζ                               ↓β
        ┌ 7 ─┐     ┌ 6 ─┐     ┌ 5 ─┐     ┌ 4 ─┐
        │····│←─ε──│···δ│←─δ──│··γδ│←─γ──│·βγδ│
        │εζηθ│     │εζη·│     │εζ··│     │ε···│
        └────┘     └────┘     └────┘     └────┘
        """,
    )


def test_both_halves_of_a_psum(run_of):
    """Partial sums say whose addends they hold; then totals go around."""
    run = run_of("psum", "i=4", range(16), shard=(4,))
    check(
        drawn(run, 2, width=69, height=9),
        """
        ┌ 0  i0 ──────────────────────┐       ┌ 1  i1 ──────────────────────┐
        │     ╱0╱          ▸9+13+1╱   │──γ───→│     (4)            ╱5╱      │
        │    (14+2)   ▸      (3)      │       │   ▸14+2+6╱        (3+7)    ▸│
        └ γ→1 ────────────────────────┘       └ δ→2 ────────────────────────┘
                       ↑β                                    ↓δ
        ┌ 3  i3 ──────────────────────┐       ┌ 2  i2 ──────────────────────┐
        │   ▸4+8+12╱        (9+13)   ▸│←──α───│    (4+8)    ▸      (9)      │
        │     (14)           ╱15╱     │       │     ╱10╱         ▸3+7+11╱   │
        └ β→0 ────────────────────────┘       └ α→3 ────────────────────────┘
        """,
    )
    check(
        drawn(run, 6, width=69, height=9),
        """
        ┌ 0  i0 ──────────────────────┐       ┌ 1  i1 ──────────────────────┐
        │      24            ▸28      │──γ───→│      24             28      │
        │      32     ▸       36      │       │     ▸32             36     ▸│
        └ γ→1 ────────────────────────┘       └ δ→2 ────────────────────────┘
                       ↑β                                    ↓δ
        ┌ 3  i3 ──────────────────────┐       ┌ 2  i2 ──────────────────────┐
        │     ▸24             28     ▸│←──α───│      24     ▸       28      │
        │      32             36      │       │      32            ▸36      │
        └ β→0 ────────────────────────┘       └ α→3 ────────────────────────┘
        """,
    )


def test_a_line_sends_what_goes_around_all_the_way_back(run_of):
    check(
        drawn(run_of("all_gather", "i=4", [3, 9, 5, 2], topology="line"), 2, width=57, height=4),
        """
        ┌ 0  i0 ┐       ┌ 1  i1 ┐       ┌ 2  i2 ┐       ┌ 3  i3 ┐
        │ 3   · │──δ───→│ 3▸  9 │──α───→│▸3   9▸│──β───→│ ·  ▸9 │
        │▸5   2▸│←──γ───│ ·  ▸2 │←──γ───│ 5   · │←──γ───│ 5▸  2 │
        └ δ→1 ──┘       └ α→2 ──┘       └ β→3 ──┘       └ γ→0 ──┘
        """,
    )


def test_a_switch_is_a_bar(run_of):
    check(
        drawn(run_of("all_gather", "i=3", [3, 9, 5], topology="switch"), 1, width=53, height=5),
        """
        ━━━ switch ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
           ↓γ ↑α               ↓α ↑β               ↓β ↑γ
        ┌ 0  i0 ────┐       ┌ 1  i1 ────┐       ┌ 2  i2 ────┐
        │ 3▸  ·  ▸5 │       │▸3   9▸  · │       │ ·  ▸9   5▸│
        └ α→1 ──────┘       └ β→2 ──────┘       └ γ→0 ──────┘
        """,
    )


def test_a_torus_shows_where_links_go_around(run_of):
    check(
        drawn(run_of("all_gather", "X=2,Y=4", 8, "torus"), 2, width=71, height=9),
        """
           ┌ 0  X0 Y0 ──┐   ┌ 1  X0 Y1 ──┐   ┌ 2  X0 Y2 ──┐   ┌ 3  X0 Y3 ──┐
        γ┄→│ α  · ▸γ  δ▸│δ─→│ α▸ β  · ▸δ │α─→│▸α  β▸ γ  · │β─→│ · ▸β  γ▸ δ │γ┄→
           │ ·  ·  ·  · │   │ ·  ·  ·  · │   │ ·  ·  ·  · │   │ ·  ·  ·  · │
           └ δ→1 ───────┘   └ α→2 ───────┘   └ β→3 ───────┘   └ γ→0 ───────┘
                  │                │                │                │
           ┌ 4  X1 Y0 ──┐   ┌ 5  X1 Y1 ──┐   ┌ 6  X1 Y2 ──┐   ┌ 7  X1 Y3 ──┐
        η┄→│ ·  ·  ·  · │θ─→│ ·  ·  ·  · │ε─→│ ·  ·  ·  · │ζ─→│ ·  ·  ·  · │η┄→
           │ ε  · ▸η  θ▸│   │ ε▸ ζ  · ▸θ │   │▸ε  ζ▸ η  · │   │ · ▸ζ  η▸ θ │
           └ θ→5 ───────┘   └ ε→6 ───────┘   └ ζ→7 ───────┘   └ η→4 ───────┘
        """,
    )


def test_an_all_to_all(run_of):
    check(
        drawn(run_of("all_to_all", "i=4", range(16), "pairwise", shard=(4,)), 1, width=73, height=7),
        """
        ┌ 0  i0 ────────────────────────┐       ┌ 1  i1 ────────────────────────┐
        │  α₀ 0   ▸β₀ 4    α₂ 2    α₃ 3 │──α₁──→│ ▸α₁ 1    β₁ 5    β₂ 6    β₃ 7 │
        └ α₁→1 ─────────────────────────┘←──β₀──└ β₀→0 ─────────────────────────┘
                        │                                       │
        ┌ 3  i3 ────────────────────────┐       ┌ 2  i2 ────────────────────────┐
        │ δ₀ 12   δ₁ 13  ▸γ₃ 11   δ₃ 15 │──δ₂──→│  γ₀ 8    γ₁ 9   γ₂ 10  ▸δ₂ 14 │
        └ δ₂→2 ─────────────────────────┘←──γ₃──└ γ₃→3 ─────────────────────────┘
        """,
    )


def test_of_many_chunks_a_bar_tells_which_are_there(run_of):
    found = picture(run_of("all_gather", "i=64", 64), 20, width=66)
    check(
        "\n".join(found.line(y, 0, 66).plain for y in range(4)),
        """
                ┌ 0  i0 ───────────┐        ┌ 1  i1 ───────────┐
        ┄┄φ₁┄┄┄→│▒▒··········▒▒████│──χ₁───→│▒▒··········▒▒████│
                │▸φ₁←63            │        │▸χ₁←0             │
                └ χ₁→1 ────────────┘        └ ψ₁→2 ────────────┘
        """,
    )


def test_a_name_that_is_cut_says_so(run_of):
    found = picture(run_of("all_to_all", "i=65536", 65536, "pairwise"), 65535, width=58)
    assert found.line(1, 7, 25).plain == "│▸α₁₇₈₉₅₄₂₄₀←655…│"


def test_names_have_the_colours_of_their_cells(run_of):
    found = picture(run_of("all_gather", "i=4", [3, 9, 5, 2]), 2, width=41, height=7, palette=TRUECOLOR)
    line = found.line(1, 0, 80)

    def ground(place: int) -> object:
        return next(span.style.bgcolor for span in line.spans if span.start <= place < span.end)

    assert ground(line.plain.index("δ")) == ground(line.plain.index("2▸"))


def test_boxes_and_links_use_the_room_that_they_have(run_of):
    check(
        drawn(run_of("psum", "i=2", range(4), shard=(2,)), 1, width=60, height=9),
        """
        ┌ 0  i0 ────────────────┐          ┌ 1  i1 ────────────────┐
        │                       │          │                       │
        │                       │          │                       │
        │                       │          │                       │
        │  ▸2+0=2        (1)   ▸│────β────→│    (2)   ▸   ▸1+3=4   │
        │                       │←────α────│                       │
        │                       │          │                       │
        │                       │          │                       │
        └ β→1 ──────────────────┘          └ α→0 ──────────────────┘
        """,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_algorithm_is_drawn(run_of, kind):
    """At every size and on every topology, lines are as wide as the picture says, boxes closed."""
    for size in (1, 2, 3, 5, 8):
        perm = tuple((member, (member + 1) % size) for member in range(size))
        parameters = {"ppermute": {"perm": perm}, "pbroadcast": {"source": 0}}.get(NAMES[kind], {})
        pattern = Pattern(kind, (size,), perm if kind == "permute" else ())
        for schedule in schedules_for(pattern):
            topology = (None, "line", "switch")[(size + len(schedule.algorithm)) % 3]
            shard = size * schedule.chunks
            # With numbers where they are few, else chunks alone.
            values = [number % 7 for number in range(size * shard)] if size < 4 else size * shard
            run = run_of(
                NAMES[kind],
                f"i={size}",
                values,
                schedule.algorithm,
                shard=(shard,),
                topology=topology,
                **parameters,
            )
            found = picture(run, (schedule.rounds + 1) // 2, 60, 20)
            lines = [found.line(y, 0, found.width) for y in range(found.height)]
            assert all(line.cell_len <= found.width for line in lines)
            text = "\n".join(line.plain for line in lines)
            assert text.count("┌") == text.count("└") == size


def test_a_line_is_the_same_wherever_it_is_cut(run_of):
    found = picture(run_of("psum", "X=3,Y=5", 15 * 15, "torus"), 3, 60, 20)
    for y in range(found.height):
        whole = found.line(y, 0, found.width).plain.ljust(found.width)
        for left in range(0, found.width, 7):
            part = found.line(y, left, left + 23)
            assert part.plain.ljust(23) == whole[left : left + 23].ljust(23)
            assert isinstance(part, Text)


def test_groups_are_drawn_one_at_a_time(run_of):
    run = run_of("psum", "X=2,Y=2", range(8), axes=("Y",), shard=(2,))
    assert "┌ 0  X0 Y0" in drawn(run, 1)
    assert "┌ 2  X1 Y0" in drawn(run, 1, group=1)
    assert "δ→3" in drawn(run, 1, group=1)
