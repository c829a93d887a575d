"""Pictures of layouts, as text on pages of fixed width."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from shardviz.notation import Context, parse_mesh, read_sharding
from shardviz.render.layouts.holders import Copies
from shardviz.render.layouts.layout_view import layout_view
from shardviz.render.layouts.picture import notes, picture, repetition
from shardviz.render.palette import ANSI, GLYPHS, PLAIN, TRUECOLOR, Palette
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray


def layout_of(shape: tuple[int, ...], mesh: str, spec: str) -> Layout:
    where = parse_mesh(mesh)
    reading = read_sharding(spec, Context(where, len(shape)))
    return Layout(ShardedArray(reading.name or "A", reading.dim_names, shape, "bf16", reading.spec), where)


def drawn(layout: Layout, width: int) -> str:
    made = picture(layout, width, TRUECOLOR)
    return "\n".join(line.plain.rstrip() for line in (made.title, *made.lines))


PICTURES = [
    (
        "both dimensions",
        layout_of((8, 2048), "X=2,Y=4", "A[b_X, d_Y]"),
        80,
        """
        A[b_X, d_Y]
             d 2048
              Y0    Y1    Y2    Y3
        b 8 ┌─────┬─────┬─────┬─────┐
         X0 │ α 0 │ β 1 │ γ 2 │ δ 3 │
            ├─────┼─────┼─────┼─────┤
         X1 │ ε 4 │ ζ 5 │ η 6 │ θ 7 │
            └─────┴─────┴─────┴─────┘
        """,
    ),
    (
        "replicas stand in one cell",
        layout_of((2048, 8192), "X=2,Y=4", "W[d_Y, f]"),
        40,
        """
        W[d_Y, f]
                f 8192
        d 2048 ┌───────┐
            Y0 │ α 0,4 │
               ├───────┤
            Y1 │ β 1,5 │
               ├───────┤
            Y2 │ γ 2,6 │
               ├───────┤
            Y3 │ δ 3,7 │
               └───────┘
        """,
    ),
    (
        "partial sums are striped and joined by +",
        layout_of((8, 8192), "X=2,Y=4", "Out[b_X, f]{U_Y}"),
        80,
        """
        Out[b_X, f]{U_Y}
             f 8192
        b 8 ┌─────────────┐
         X0 │╱ α 0+1+2+3 ╱│
            ├─────────────┤
         X1 │╱ β 4+5+6+7 ╱│
            └─────────────┘
        """,
    ),
    (
        "partial sums with replicas",
        layout_of((8,), "X=2,Y=2", "A[b]{U_Y}"),
        80,
        """
        A[b]{U_Y}
         b 8
        ┌─────────────────┐
        │╱ α (0,2)+(1,3) ╱│
        └─────────────────┘
        """,
    ),
    (
        "rank 1, padded",
        layout_of((10,), "X=2,Y=4", "A[b_Y]"),
        80,
        """
        A[b_Y]
         b 10
           Y0      Y1      Y2      Y3
        ┌───────┬───────┬───────┬───────┐
        │ α 0,4 │ β 1,5 │ γ 2,6 │ δ░3,7░│
        └───────┴───────┴───────┴───────┘
        """,
    ),
    (
        "rank 0",
        layout_of((), "X=2,Y=2", "()"),
        80,
        """
        A[]
        ┌───────────┐
        │ α 0,1,2,3 │
        └───────────┘
        """,
    ),
    (
        "rank 3 in slices",
        layout_of((4, 8, 2048), "X=2,Y=4", "A[h_X, b, d_Y]"),
        80,
        """
        A[h_X, b, d_Y]
        h 0:2 X0                        h 2:4 X1
             d 2048                          d 2048
              Y0    Y1    Y2    Y3            Y0    Y1    Y2    Y3
        b 8 ┌─────┬─────┬─────┬─────┐   b 8 ┌─────┬─────┬─────┬─────┐
            │ α 0 │ β 1 │ γ 2 │ δ 3 │       │ ε 4 │ ζ 5 │ η 6 │ θ 7 │
            └─────┴─────┴─────┴─────┘       └─────┴─────┴─────┴─────┘
        """,
    ),
    (
        "two axes on one dimension, labels shortened to fit",
        layout_of((4096, 8192), "X=2,Y=4", "A[b, d_XY]"),
        40,
        """
        A[b, d_XY]
                d 8192
                0,0 0,1 0,2 0,3 1,0 1,1 1,2 1,3
        b 4096 ┌───┬───┬───┬───┬───┬───┬───┬───┐
               │ 0 │ 1 │ 2 │ 3 │ 4 │ 5 │ 6 │ 7 │
               └───┴───┴───┴───┴───┴───┴───┴───┘
        """,
    ),
    (
        "131,072 devices",
        layout_of((4096, 8192), "data=1024,model=16,x=8", "A[b_{data}, d_{model}]"),
        80,
        """
        A[b_{data}, d_{model}]
                   d 8192
                         model 0              model 1         …        model 15
           b 4096 ┌────────────────────┬────────────────────┬───┬────────────────────┐
           data 0 │ α 0,1,2,3,4,5,6,7  │       β 8–15       │ … │     π 120–127      │
                  ├────────────────────┼────────────────────┼───┼────────────────────┤
           data 1 │     ρ 128–135      │     σ 136–143      │ … │     θ₁ 248–255     │
                  ├────────────────────┼────────────────────┼───┼────────────────────┤
           data 2 │     ι₁ 256–263     │     κ₁ 264–271     │ … │     ω₁ 376–383     │
                  ├────────────────────┼────────────────────┼───┼────────────────────┤
           data 3 │     α₂ 384–391     │     β₂ 392–399     │ … │     π₂ 504–511     │
                  ├────────────────────┼────────────────────┼───┼────────────────────┤
                ⋮ │         ⋮          │         ⋮          │ … │         ⋮          │
                  ├────────────────────┼────────────────────┼───┼────────────────────┤
        data 1023 │ α₆₈₂ 130944–130951 │ β₆₈₂ 130952–130959 │ … │ π₆₈₂ 131064–131071 │
                  └────────────────────┴────────────────────┴───┴────────────────────┘
        some of 1024×16 blocks
        """,
    ),
    (
        "131,072 devices on 40 columns",
        layout_of((4096, 8192), "data=1024,model=16,x=8", "A[b_{data}, d_{model}]"),
        40,
        """
        A[b_{data}, d_{model}]
                   d 8192
                    0    1    2    3    …   15
           b 4096 ┌────┬────┬────┬────┬───┬────┐
           data 0 │ ×8 │ ×8 │ ×8 │ ×8 │ … │ ×8 │
                  ├────┼────┼────┼────┼───┼────┤
           data 1 │ ×8 │ ×8 │ ×8 │ ×8 │ … │ ×8 │
                  ├────┼────┼────┼────┼───┼────┤
           data 2 │ ×8 │ ×8 │ ×8 │ ×8 │ … │ ×8 │
                  ├────┼────┼────┼────┼───┼────┤
           data 3 │ ×8 │ ×8 │ ×8 │ ×8 │ … │ ×8 │
                  ├────┼────┼────┼────┼───┼────┤
                ⋮ │ ⋮  │ ⋮  │ ⋮  │ ⋮  │ … │ ⋮  │
                  ├────┼────┼────┼────┼───┼────┤
        data 1023 │ ×8 │ ×8 │ ×8 │ ×8 │ … │ ×8 │
                  └────┴────┴────┴────┴───┴────┘
        some of 1024×16 blocks
        """,
    ),
]


@pytest.mark.parametrize(
    ("layout", "width", "expected"), [case[1:] for case in PICTURES], ids=[c[0] for c in PICTURES]
)
def test_picture(layout: Layout, width: int, expected: str) -> None:
    assert drawn(layout, width) == dedent(expected).strip("\n")


def test_device_order_shows_in_the_cells() -> None:
    layout = layout_of((8, 8), "X=2,Y=2", "XY")
    mesh = Mesh(("X", "Y"), (2, 2), (3, 1, 2, 0))
    text = drawn(Layout(layout.array, mesh), 80)
    assert "│ α 3 │ β 1 │" in text
    assert "│ γ 2 │ δ 0 │" in text


@pytest.mark.parametrize(
    ("shape", "mesh", "spec"),
    [
        ((512, 512), "X=8,Y=8", "XY"),
        ((512, 512), "X=16,Y=16,Z=2", "(XZ)Y"),
        ((4, 64, 64), "X=4,Y=8,Z=8", "XYZ"),
        ((40, 64, 64), "X=40,Y=2", "X_Y"),
    ],
)
@pytest.mark.parametrize("width", [40, 52, 60, 80, 100, 120])
def test_every_cell_of_an_array_has_its_glyph_or_none_has(
    shape: tuple[int, ...], mesh: str, spec: str, width: int
) -> None:
    text = drawn(layout_of(shape, mesh, spec), width)
    cells = [cell for line in text.splitlines() for cell in line.split("│")[1:-1]]
    shown = [any(letter in GLYPHS for letter in cell) for cell in cells if any(map(str.isdigit, cell))]
    assert len(shown) > 1
    assert len(set(shown)) == 1


def test_columns_that_are_left_out_leave_room_for_glyphs() -> None:
    text = drawn(layout_of((512, 512), "X=64,Y=64", "XY"), 60)
    assert "│ α₁₆₈ 4032 │" in text


COLOURS_REPEAT = "colours repeat after 24; letters and device numbers do not"


@pytest.mark.parametrize(
    ("shards", "palette", "said"),
    [
        (24, TRUECOLOR, []),
        (25, TRUECOLOR, [COLOURS_REPEAT]),
        (13, ANSI, [COLOURS_REPEAT.replace("24", "12")]),
        (25, PLAIN, []),
    ],
)
def test_colours_that_repeat_are_said(shards: int, palette: Palette, said: list[str]) -> None:
    assert [line.plain for line in repetition(shards, palette)] == said
    lines = layout_view(layout_of((shards,), f"X={shards}", "X"), 80, palette)
    assert [line.plain for line in lines if "repeat" in line.plain] == said


def test_many_slices_are_summarised() -> None:
    text = drawn(layout_of((64, 8, 8), "X=64", "A[h_X, b, d]"), 80)
    assert "h 0:1 X0" in text
    assert "… 59 more slices …" in text
    assert "h 63:64 X63" in text


NOTES = [
    (
        layout_of((10, 8), "X=2,Y=4", "YX"),
        "░ I of A: 10 does not divide by the 4 parts over Y. jit pads it to 12, 3 a device, and the last 2 "
        "are padding; a JAX array refuses it (IndivisibleError).",
    ),
    (
        layout_of((7, 8), "X=2,Y=4", "XY"),
        "░ I of A: 7 does not divide by the 2 parts over X. jit pads it to 8, 4 a device, and the last one "
        "is padding; a JAX array refuses it (IndivisibleError).",
    ),
    (
        layout_of((8, 8), "X=2,Y=4", "Out[b_X, f]{U_Y}"),
        "╱ Out is unreduced over Y: each block is the sum of 4 partial sums, one on each of the "
        "devices joined by +.",
    ),
]


@pytest.mark.parametrize(("layout", "note"), NOTES)
def test_notes(layout: Layout, note: str) -> None:
    assert notes(layout) == [note]


def test_an_even_layout_needs_no_note() -> None:
    assert notes(layout_of((8, 8), "X=2,Y=4", "XY")) == []


@st.composite
def layouts(draw: st.DrawFn, most_devices: int = 64) -> Layout:
    sizes: list[int] = []
    for _ in range(draw(st.integers(0, 4))):
        sizes.append(draw(st.integers(1, max(1, min(8, most_devices // max(1, _product(sizes)))))))
    names = tuple("XYZW"[: len(sizes)])
    order = draw(st.none() | st.permutations(range(_product(sizes))).map(tuple))
    rank = draw(st.integers(0, 4))
    dims: list[list[str]] = [[] for _ in range(rank)]
    pending = []
    for name in draw(st.permutations(names)):
        place = draw(st.integers(-2, rank - 1))
        if place >= 0:
            dims[place].append(name)
        elif place == -2:
            pending.append(name)
    spec = PartitionSpec(tuple(map(tuple, dims)), tuple(pending))
    shape = tuple(draw(st.integers(0, 40)) for _ in range(rank))
    return Layout(
        ShardedArray("A", tuple("bdfh"[:rank]), shape, "bf16", spec), Mesh(names, tuple(sizes), order)
    )


def _product(sizes: list[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


@given(layouts(), st.integers(40, 200))
@settings(max_examples=100)
def test_no_line_is_wider_than_the_page(layout: Layout, width: int) -> None:
    made = picture(layout, width, TRUECOLOR)
    assert max(cell_len(line.plain) for line in (made.title, *made.lines)) <= width


@given(layouts())
@settings(max_examples=200)
def test_every_cell_names_the_devices_that_hold_its_block(layout: Layout) -> None:
    held: dict[tuple[tuple[int, ...], int], list[int]] = {}
    for position in range(len(layout)):
        key = (layout.block(position), layout.partial(position))
        held.setdefault(key, []).append(layout.mesh.device_id(position))
    for (block, partial), ids in held.items():
        found = Copies(layout).holders(block, partial)
        assert found.first == tuple(sorted(ids))
        assert (found.last, found.count) == (max(ids), len(ids))
        assert next(found.labels()) == ",".join(map(str, sorted(ids)))


def test_labels_grow_shorter() -> None:
    layout = layout_of((8, 8), "X=4,Y=16", "Y _")
    assert list(Copies(layout).holders((0, 0)).labels()) == [
        "0,16,32,48",
        "0,16,…,48",
        "4 devices",
        "0,…,48",
        "×4",
    ]
    layout = layout_of((8, 8), "X=4,Y=16", "X _")
    assert list(Copies(layout).holders((1, 0)).labels())[1:] == ["16–31", "16 devices", "16–31", "×16"]
    layout = layout_of((8, 8), "X=4,Y=2", "A[b, d]{U_X}")
    assert list(Copies(layout).labels((0, 0))) == ["(0,1)+(2,3)+(4,5)+(6,7)", "(0,1)+…+(6,7)", "Σ4"]


def test_holders_of_a_huge_mesh_are_not_listed() -> None:
    layout = layout_of((8, 8), "X=1048576,Y=1048576", "_ _")
    found = Copies(layout).holders((0, 0))
    assert (found.first[:3], found.last, found.count) == ((0, 1, 2), 2**40 - 1, 2**40)
    assert next(found.labels()) == f"0–{2**40 - 1}"
