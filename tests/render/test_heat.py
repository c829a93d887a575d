"""Shades of a figure, and what devices hold: against a count over all of them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings

from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.planner.plan import decided_parts
from shardviz.render.heat import Heat, layout_heat, layout_words
from shardviz.render.layouts.cells import BlockCells, CellIndex, DeviceCells
from shardviz.render.palette import ANSI, ON_LIGHT, PLAIN, SHADES, TRUECOLOR
from shardviz.render.plan_view import numbered_parts
from shardviz.sharding.array import BITS
from tests.render.test_layout_canvas import layout_of, layouts


def held(layout):
    """Bytes of every device's own elements, device by device."""
    only = layout.spec.only_device
    counts = [
        0 if only not in (None, device.id) else math.prod(stop - start for start, stop in device.slices)
        for device in layout
    ]
    return [-(-count * BITS[layout.array.dtype] // 8) for count in counts]


def arrays_of(resolved):
    """The arrays of a plan as they are given and wanted."""
    parts = numbered_parts(resolved.plan, decided_parts)
    return [layout for part in parts for layout, _ in part]


@settings(max_examples=60, deadline=None)
@given(layouts())
def test_least_and_most_are_those_of_all_devices(layout):
    assert [layout.held_bytes(position) for position in range(len(layout))] == held(layout)
    assert layout.held_range == (min(held(layout)), max(held(layout)))


def test_an_array_on_one_device():
    draft = ProblemForm(specs=("SingleDeviceSharding(jax.devices()[3])", "Y_", "X_"), targets="none")
    layouts = arrays_of(resolve(draft))
    first = layouts[0]
    assert [first.held_bytes(position) for position in range(8)] == held(first)
    assert held(first).count(0) == 7
    assert first.held_range == (0, 4 * 2**20)
    assert layout_words("memory", layouts, resolve(draft).cost) == (
        "Devices hold at most 4 MiB of A on device 3 alone, 8 MiB of W, 8 MiB of Out."
    )


@pytest.mark.parametrize("palette", [TRUECOLOR, ANSI, ON_LIGHT, PLAIN])
def test_shades_go_from_the_least_to_the_most(palette):
    heat = Heat(100, 200, palette)
    shades = [heat.shade(value) for value in range(100, 201)]
    assert [glyph for glyph, _ in (shades[0], shades[-1])] == [SHADES[0], SHADES[-1]]
    levels = [SHADES.index(glyph) for glyph, _ in shades]
    assert levels == sorted(levels)
    assert len(dict.fromkeys(shades)) == len(SHADES) == len({style.bgcolor for _, style in shades})


def test_the_scale_in_words():
    assert Heat(0, 65_536, PLAIN).legend().plain == "○ 0 B … ● 64 KiB"
    assert Heat(0, 2.5e-6, PLAIN, is_seconds=True).legend().plain == "○ 0 ns … ● 2.5 µs"
    assert Heat(0, 65_536, PLAIN).exact(65_537) == "65,537 bytes"


@pytest.mark.parametrize("kind", [BlockCells, DeviceCells])
def test_cells_are_shaded_by_what_their_devices_hold(kind):
    layout = layout_of((10, 7), "X=4,Y=2", "A[a_X, b_Y]")
    heat = layout_heat([layout], TRUECOLOR)
    assert heat is not None
    assert (heat.least, heat.most) == (2 * 3, 2 * 12)
    cells = kind(layout, TRUECOLOR, 0, heat)
    for row in range(cells.rows.count):
        for column in range(cells.columns.count):
            index = CellIndex(0, row, column)
            shade, style = heat.shade(held(layout)[cells.position(index)])
            cell = cells.cell(index)
            assert (cell.fill, cell.style) == (shade, style)
            assert shade in cell.text(9, True)
            assert cells.sample(index)[0] == shade


def test_even_arrays_need_no_shades():
    assert layout_heat([layout_of((8, 8), "X=4,Y=2", "A[a_X, b_Y]")], TRUECOLOR) is None


SENTENCES = [
    (ProblemForm(), "memory", "Every device holds 512 KiB of A, 8 MiB of W, 8 MiB of Out."),
    (ProblemForm(sizes="b=7,d=30,f=7"), "memory", ", padding included."),
    (ProblemForm(), "sent", "Every device sends 12 MiB in the collectives of the plan."),
    (ProblemForm(specs=("__",) * 3), "sent", "The plan sends nothing."),
    (ProblemForm(), "time", "Every device computes for 21.8 µs and takes part in collectives for 140 µs."),
]


@pytest.mark.parametrize(("form", "tint", "said"), SENTENCES)
def test_a_sentence_where_all_devices_are_alike(form, tint, said):
    resolved = resolve(replace(form, targets="none"))
    assert layout_words(tint, arrays_of(resolved), resolved.cost).endswith(said)


def test_of_a_permute_only_the_most_is_said():
    specs = ("P(('X','Y'))", "()", "P(('Y','X'))")
    resolved = resolve(ProblemForm(einsum="b,->b", specs=specs, targets="none"))
    assert any(step.op == "ppermute" for step in resolved.plan.steps)
    assert layout_words("sent", [], resolved.cost).startswith("A device sends at most ")
