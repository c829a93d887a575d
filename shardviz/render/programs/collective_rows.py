"""Collectives as rows: what moves, how much, over which axes, when, and by which algorithm."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from shardviz.compare.comparison import under_way
from shardviz.errors import plural
from shardviz.hlo import Collective, CollectiveMatmul
from shardviz.hlo.collective import MatmulOrder, Total, by_permute
from shardviz.render.caption import axes_text, group_along, marked_group
from shardviz.render.lines import columns, records, sentence
from shardviz.render.palette import Palette
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Mesh
from shardviz.units import exact_bytes, human_bytes

RIGHT = frozenset({2, 3})
MAX_GROUPS = 2
MAX_MEMBERS = 4


@dataclass(frozen=True)
class CollectiveRow:
    """One line of a table of collectives: the op and its axes, `moves` (operand and result on a device), the
    bytes, those that are sent (None where they are unknown), how `often`; `when` it runs, and the
    `algorithm`."""

    operation: Text
    moves: str
    bytes: int
    wire_bytes: int | None
    often: str
    when: str
    algorithm: str

    @property
    def cells(self) -> list[Text]:
        """The collective with its exact bytes."""
        sent = "" if self.wire_bytes is None else f"{self.wire_bytes:,} sent"
        return [
            self.operation,
            Text(self.moves),
            Text(exact_bytes(self.bytes)),
            Text(sent, "dim"),
            Text(self.often),
        ]

    @property
    def sent(self) -> str:
        """The bytes that are sent, in three digits and a unit."""
        return "" if self.wire_bytes is None else human_bytes(self.wire_bytes)

    @property
    def how(self) -> str:
        """When it runs and by which algorithm."""
        return "; ".join(words for words in (self.when, self.algorithm) if words)


def rows_of(
    collectives: Sequence[Collective], mesh: Mesh, palette: Palette, matmuls: Sequence[CollectiveMatmul] = ()
) -> list[CollectiveRow]:
    """One row a collective. Equal ones in a row share one, and so do the permutes of each of `matmuls`."""
    parts = by_permute(matmuls)
    rings = Counter(name for matmul in matmuls for name in matmul.permutes)
    seen, rows = [], []
    for same in folded(collectives, parts):
        one = same[0]
        matmul = parts.get(one.name)
        if matmul is None:
            operation, runs = _op(one, mesh, palette), often(same)
            sizes = one.bytes, one.wire_bytes
            rows.append(CollectiveRow(operation, shapes(one), *sizes, runs, when(one), one.algorithm))
        elif matmul not in seen:
            seen.append(matmul)
            shared = sum(rings[name] > 1 for name in matmul.permutes)
            rows.append(_taken_apart(matmul, shared, collectives, mesh, palette))
    return rows


def row_lines(rows: Sequence[CollectiveRow], width: int, tells_how: bool) -> list[Text]:
    """A line for each row, and below it, if `tells_how`, when it runs and by which algorithm."""
    aligned = columns([row.cells for row in rows], width, 2, RIGHT)
    lines: list[Text] = []
    for number, row in enumerate(rows):
        lines += records([row.cells], width, 2) if aligned is None else [aligned[number]]
        lines += sentence(row.how, width, 4, style="dim") if tells_how else []
    return lines


def folded(collectives: Sequence[Collective], apart: Iterable[str] = ()) -> list[list[Collective]]:
    """Collectives that read alike, and come one after the other, together; those named in `apart` alone."""
    names = frozenset(apart)
    runs = groupby(
        collectives,
        lambda collective: (collective.name if collective.name in names else "", reads_of(collective)),
    )
    return [[*run] for _, run in runs]


def often(alike: Sequence[Collective]) -> str:
    """The runs of collectives that read alike, in all: ``×4``; "" for once. The length of a loop may be
    unknown, which is then so of all of them."""
    counts = [collective.count for collective in alike if collective.count is not None]
    if len(counts) < len(alike):
        return "in a loop" if len(alike) == 1 else f"{len(alike):,} of these in loops"
    return f"×{sum(counts):,}" if sum(counts) != 1 else ""


def has_schedule(compiled: TargetResult) -> bool:
    """True for a program in the order in which it runs; Shardy's is not."""
    return compiled.status == "ok" and compiled.target != "shardy"


def shapes(collective: Collective) -> str:
    """``bf16[4,8192]``, or ``bf16[4,512]→[4,2048]`` where the shape changes; ``and 2 more arrays`` when
    several are combined."""
    operand, result = (
        f"[{','.join(map(str, shape))}]" for shape in (collective.operand_shape, collective.result_shape)
    )
    text = f"{collective.dtype}{operand}" + (f"→{result}" if operand != result else "")
    return text if collective.arrays == 1 else f"{text} and {plural(collective.arrays - 1, 'more array')}"


def when(collective: Collective) -> str:
    """``synchronous``, ``under 2 matmuls, ~52,626 cycles``, or that it is asynchronous for nothing; then
    where it stands among the matmuls."""
    where = _where(collective.matmul_order)
    if not collective.is_async:
        return f"synchronous, {where}" if where else "synchronous"
    busy = under_way(collective.overlapped)
    words = f"under {busy}" if busy else "asynchronous, nothing overlaps"
    return f"{words}, begun {where}" if where else words


def _where(matmul_order: MatmulOrder | None) -> str:
    if matmul_order is None or not matmul_order.matmuls:
        return ""
    before, matmuls = matmul_order.before, matmul_order.matmuls
    if matmuls == 1:
        return f"{'after' if before else 'before'} the matmul"
    if not before:
        return "before matmul 1"
    if before == matmuls:
        return f"after matmul {before:,}"
    return f"between matmuls {before:,} and {before + 1:,}"


def _taken_apart(
    matmul: CollectiveMatmul,
    shared: int,
    collectives: Sequence[Collective],
    mesh: Mesh,
    palette: Palette,
) -> CollectiveRow:
    """The permutes of a collective matmul as one row; `shared` of them are others' as well."""
    permutes = [collective for collective in collectives if collective.name in matmul.permutes]
    text = Text.assemble((f"{matmul.op} by permutes", "bold"))
    if matmul.axes:
        text.append(" over ").append_text(axes_text(matmul.axes, mesh, palette))
    ways = "both ways" if matmul.directions == 2 else "one way"
    steps = f"{plural(len(matmul.permutes), 'permute')} {ways}" + f", {shared:,} shared" * (shared > 0)
    algorithms = dict.fromkeys(permute.algorithm for permute in permutes if permute.algorithm)
    sizes = matmul.bytes, matmul.wire_bytes
    return CollectiveRow(text, steps, *sizes, "", _while(matmul, permutes), "; ".join(algorithms))


def _while(matmul: CollectiveMatmul, permutes: Sequence[Collective]) -> str:
    """The partial matmuls that run while permutes are under way."""
    works = {work.name: work.cycles or 0 for permute in permutes for work in permute.overlapped}
    under = [name for name in matmul.matmuls if name in works]
    count = plural(len(matmul.matmuls), "partial matmul")
    if not under:
        return f"between {count}"
    some = f"{len(under):,} of " if len(under) < len(matmul.matmuls) else ""
    cycles = sum(works[name] for name in under)
    return f"under {some}{count}" + (f", ~{cycles:,} cycles" if cycles else "")


def reads_of(collective: Collective) -> tuple[object, ...]:
    """All that a row says of a collective but how often it runs: equal ones read alike."""
    sizes = collective.bytes, collective.wire_bytes, collective.arrays
    how = collective.algorithm, way_out(collective), when(collective)
    return (
        collective.op,
        collective.axes,
        collective.groups,
        shapes(collective),
        sizes,
        how,
        collective.count is None,
    )


def _op(collective: Collective, mesh: Mesh, palette: Palette) -> Text:
    text = Text.assemble((collective.op, "bold"))
    beyond = way_out(collective)
    if collective.axes:
        return text.append(" over ").append_text(axes_text(collective.axes, mesh, palette)).append(beyond)
    if members := members_text(collective, MAX_GROUPS):
        text.append(f" {members}")
    return text.append(beyond)


def way_out(one: Collective | Total) -> str:
    """`` between slices``, `` to the host``, `` from the host``; "" for what stays on a slice's links."""
    if one.is_host_transfer:
        return " to the host" if one.op == "send" else " from the host"
    return " between slices" * one.between_slices


def members_text(collective: Collective, most: int) -> str:
    """At most `most` of its groups: ``{0,1} {2,3} +6``, ``{0→1} {1→2} +6`` for a permute. Of groups that are
    too many to list, ``in 65,536 groups of 16``."""
    pairs, groups = collective.op == "collective-permute", collective.groups
    if groups is None:
        count = plural(collective.group_count, "pair" if pairs else "group")
        size = "" if pairs else f" of {collective.group_size:,}"
        return f"in {count}{size}" if collective.group_count else ""
    shown = [_group(group, "→" if pairs else ",") for group in groups[:most]]
    more = len(groups) - len(shown)
    return " ".join(shown) + (f" +{more:,}" if more else "")


def members_with(collective: Collective, mesh: Mesh, position: int, palette: Palette) -> Text:
    """Its groups that have the device at a position of the mesh, which is marked: ``{1,▹5◃}``, of a permute
    ``{1→▹5◃} {▹5◃→1}``. Empty where it takes no part, or nothing tells."""
    device, groups = mesh.device_id(position), collective.groups
    if groups is None:
        return group_along(collective.axes, mesh, position, palette) if collective.axes else Text()
    separator = "→" if collective.op == "collective-permute" else ","
    own = (group for group in groups if device in group)
    return Text(" ").join(marked_group(group, device, palette, separator) for group in own)


def _group(ids: tuple[int, ...], separator: str) -> str:
    """``{0,1}``, ``{0→1}``, ``{0,4,…,60}``."""
    shown = [*map(str, ids)] if len(ids) <= MAX_MEMBERS else [str(ids[0]), str(ids[1]), "…", str(ids[-1])]
    return f"{{{separator.join(shown)}}}"


_PART = re.compile(r"(.+):\((\d+)\)(\d+)")
MAX_TOLD = 3


def parts_of_axes(collectives: Iterable[Collective], mesh: Mesh | None) -> list[str]:
    """A sentence on each part of an axis that collectives run along, as far as they are few."""
    names = dict.fromkeys(axis for collective in collectives for axis in collective.axes)
    return [words for name in names if mesh and (words := part_of_axis(name, mesh))][:MAX_TOLD]


def part_of_axis(axis: str, mesh: Mesh) -> str:
    """``X:(2)8 is a part of X: X=16 is 2×8, and 8 is its inner factor``; "" for a whole axis."""
    part = _PART.fullmatch(axis)
    if part is None or part[1] not in mesh.axis_names:
        return ""
    name, above, size = part[1], int(part[2]), int(part[3])
    whole = mesh.axis_sizes[mesh.axis_names.index(name)]
    below = whole // (above * size)
    factors = "×".join(str(factor) for factor in (above, size, below) if factor > 1)
    place = "outer" if above == 1 else "inner" if below == 1 else "middle"
    return f"{axis} is a part of {name}: {name}={whole} is {factors}, and {size} its {place} factor"
