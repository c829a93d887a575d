"""The links of a group on the chips where a target has placed it."""

from __future__ import annotations

from shardviz.hardware.placement import Place, Placement
from shardviz.sharding import Mesh
from shardviz.stepping.placed_links import placed_topology

EIGHT = tuple(range(8))
MESH = Mesh(("X", "Y"), (2, 4))


def on_chips(wrap: tuple[bool, bool], slices: int = 1) -> Placement:
    """X along x, Y along y; or X between slices."""
    places = (Place((x * (slices == 1), y), slice=x * (slices > 1)) for x in range(2) for y in range(4))
    return Placement(EIGHT, tuple(places), (2, 4), wrap)


def test_axes_close_where_those_of_the_chips_do():
    assert str(placed_topology(on_chips((False, False)), MESH, ("Y",))) == "line of 4"
    assert str(placed_topology(on_chips((False, True)), MESH, ("Y",))) == "ring of 4"
    assert str(placed_topology(on_chips((False, False)), MESH, ("X", "Y"))) == "grid of 2x4"


def test_nothing_is_said_of_neighbours_that_have_no_link():
    apart = on_chips((False, False), 2)
    assert placed_topology(apart, MESH, ("X",)) is None
    assert str(placed_topology(apart, MESH, ("Y",))) == "line of 4"
    far = Placement(EIGHT, tuple(Place((0, y * 2)) for y in EIGHT), (1, 16), (False, True))
    assert placed_topology(far, MESH, ("Y",)) is None


def test_gpus_of_a_node_hang_on_a_switch():
    gpus = Placement(EIGHT, tuple(Place((), number) for number in EIGHT))
    assert str(placed_topology(gpus, MESH, ("X", "Y"))) == "switch with 8"
