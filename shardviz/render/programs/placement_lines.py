"""Where a mesh lies on the hardware: what each of its axes runs along."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.hardware import AxisRun, Placement, axis_runs
from shardviz.render.lines import sentence
from shardviz.render.units import times
from shardviz.sharding import Mesh

MAX_LISTED = 16
"""Devices whose order is told."""
BETWEEN = {"slice": "between slices", "node": "between nodes"}
WITHIN = {"core": "the cores of a chip", "gpu": "the GPUs of a node"}


def placement_lines(
    placements: Sequence[tuple[str, Placement]], mesh: Mesh, width: int, indent: int = 0
) -> list[Text]:
    """A sentence for every placement, after the names of the targets that have it."""
    names: dict[str, list[str]] = {}
    for name, placement in placements:
        names.setdefault(placement_words(placement, mesh), []).append(name)
    lines: list[Text] = []
    for words, those in names.items():
        lead = f"{', '.join(those)} placed: ".lstrip()
        lines += sentence(words, width, indent, lead, "dim")
    return lines


def placement_words(placement: Placement, mesh: Mesh) -> str:
    """``X along y (1 hop, a line), Y along x (1 hop, a ring), on a torus of 2×4 chips``."""
    axes: dict[str, list[str]] = {}
    for run in axis_runs(placement, mesh):
        axes.setdefault(_run(run), []).append(run.axis)
    words = ", ".join(f"{' and '.join(names)} {way}" for way, names in axes.items()) + _order(placement, mesh)
    ground = _ground(placement)
    if not placement.torus and f"along {WITHIN['gpu']}" in axes and BETWEEN["node"] not in words:
        return words.replace(WITHIN["gpu"], f"the {ground}")
    return f"{words}, on {ground}"


def _order(placement: Placement, mesh: Mesh) -> str:
    """The devices by mesh position, a row for each line along the last axis; "" where they are in order."""
    ids, row = placement.ids, mesh.axis_sizes[-1]
    if ids == (*range(len(ids)),) or len(ids) > MAX_LISTED:
        return ""
    rows = (" ".join(map(str, ids[start : start + row])) for start in range(0, len(ids), row))
    return f", devices {' / '.join(rows)}"


def _run(run: AxisRun) -> str:
    if not run.along:
        return "on one device"
    ways = [BETWEEN[one] for one in run.along if one in BETWEEN]
    along = [WITHIN.get(one, one) for one in run.along if one not in BETWEEN]
    ways += [f"along {' and '.join(along)}"] if along else []
    words = " and ".join(ways)
    if run.hops is None or not set(run.along) - {*BETWEEN, *WITHIN}:
        return words
    return f"{words} ({plural(run.hops, 'hop')}, {'a ring' if run.is_ring else 'a line'})"


def _ground(placement: Placement) -> str:
    count = len({place.slice for place in placement.places})
    if not placement.torus:
        gpus = plural(len(placement.places) // count, "GPU")
        return f"{gpus} of one node" if count == 1 else f"{count:,} nodes of {gpus}"
    is_one = set(placement.torus) == {1}
    shape = f"{times(placement.torus)} {'chip' if is_one else 'chips'}"
    return shape if count == 1 else f"{count:,} slices of {shape}"
