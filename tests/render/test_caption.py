"""The device that is marked everywhere, and its group, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.hlo import Collective
from shardviz.notation.mesh import parse_mesh
from shardviz.render.caption import group_along, lens_text, marked_group
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.programs.collective_rows import members_with

MESH = parse_mesh("X=2,Y=4")


def lit(text, palette=TRUECOLOR):
    return [text.plain[span.start : span.end] for span in text.spans if span.style == palette.lens]


@pytest.mark.parametrize("palette", [TRUECOLOR, PLAIN])
def test_the_device_with_its_place(palette):
    assert lens_text(MESH, 5, palette).plain == "device ▹5◃ X1 Y1"
    assert lit(lens_text(MESH, 5, palette), palette) == ["▹5◃"]
    assert not lens_text(MESH, None, palette)


@pytest.mark.parametrize(
    ("ids", "device", "words"),
    [
        ((1, 5), 5, "{1,▹5◃}"),
        (range(8), 7, "{0,1,2,3,4,5,6,▹7◃}"),
        (range(512), 37, "{0,1,…,▹37◃,…,511}"),
        (range(512), 2, "{0,1,▹2◃,…,511}"),
        (range(512), 0, "{▹0◃,1,…,511}"),
        (range(512), 511, "{0,1,…,▹511◃}"),
    ],
)
def test_a_group_names_the_device_however_large_it_is(ids, device, words):
    text = marked_group(ids, device, TRUECOLOR)
    assert text.plain == words
    assert lit(text) == [f"▹{device}◃"]


@pytest.mark.parametrize(("axes", "words"), [(("Y",), "{4,▹5◃,6,7}"), (("X",), "{1,▹5◃}")])
def test_the_group_along_axes(axes, words):
    assert group_along(axes, MESH, 5, TRUECOLOR).plain == words


REDUCE = Collective(
    "all-reduce", "all-reduce", ("Y",), MESH.replica_groups(("Y",)), (4,), (4,), "f32", 16, 24, group_size=4
)


@pytest.mark.parametrize(
    ("collective", "words"),
    [
        (REDUCE, "{4,▹5◃,6,7}"),
        (replace(REDUCE, groups=None), "{4,▹5◃,6,7}"),
        (replace(REDUCE, groups=None, axes=()), ""),
        (replace(REDUCE, groups=((0, 1),)), ""),
        (
            replace(REDUCE, op="collective-permute", groups=((4, 5), (5, 6), (6, 4))),
            "{4→▹5◃} {▹5◃→6}",
        ),
    ],
)
def test_the_groups_of_a_programs_collective(collective, words):
    assert members_with(collective, MESH, 5, TRUECOLOR).plain == words
