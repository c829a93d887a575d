"""Arrays that XLA copies whole onto every device, because it knows no way from one sharding to another, by
its warnings or by the program; and a way by the planner's moves, each of which XLA knows."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from shardviz.errors import QuestionError
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.hlo.collective import Collective
from shardviz.hlo.module import HloModule
from shardviz.hlo.text.instruction import Instruction, parse_instruction
from shardviz.hlo.text.instructions import reached
from shardviz.hlo.text.opcodes import MOVES
from shardviz.hlo.text.shapes import one_array
from shardviz.hlo.text.source_locations import SourceLocations
from shardviz.hlo.text.values import Made, ProgramValue, Values
from shardviz.notation.gspmd import written_spec
from shardviz.notation.mesh import mesh_in_text, parse_mesh
from shardviz.planner.plan import Step
from shardviz.planner.states.moves import Node, move_step, state_of, state_space
from shardviz.planner.states.paths import ArrayKind, CheapestPaths
from shardviz.planner.states.prices import Prices
from shardviz.reports.entries import CollectiveEntry
from shardviz.reports.failures import STUCK, metadata_in
from shardviz.reports.lowered_module import Meeting
from shardviz.reports.why import meetings_of
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, array_bytes, shard_shape

MOST_AXES = 5
"""Mesh axes up to which a route is looked for."""
MARK = "Involuntary full rematerialization"

_WARNING = re.compile(
    MARK + r"\. The compile[rd] [a-z ]{1,40}from sharding (?P<before>\{.*?\}) to (?P<after>\{.*?\})"
    r" (?:efficiently|without)(?P<rest>.*)"
)
_INSTRUCTION = re.compile(r" for HLO operation:? (.*?)(?:\. As the last resort|\. You probably want|$)")
_SIZES = r"\d{1,9}(?:,\d{1,9})*"

MAX_STEPS = 50
"""Instructions that are followed from one gather at most."""
_PASSING = MOVES | {"parameter", "fusion"}
_COPIES = ("copy", "bitcast", "fusion")
_OF_THE_DEVICE = frozenset(
    {
        *("partition-id", "replica-id", "constant", "convert", "bitcast", "reshape", "copy", "dynamic-slice"),
        *("add", "subtract", "multiply", "divide", "remainder", "minimum", "maximum", "clamp", "and"),
        *("shift-left", "shift-right-logical", "compare", "select", "slice", "broadcast"),
    }
)
"""Operations that make a place out of a device's number and constants."""


@dataclass(frozen=True)
class Rematerialization:
    """An array that is fully replicated in order to reshard it.

    `written` are the two shardings as XLA prints them, None where it did not warn; `before` and `after` in
    axis names, None where they are not known. `shape` is global (rounded up where the axes do not divide it),
    None in the words of old versions. `times` counts equal ones. `kept` is the shape of the part that a
    device keeps where only that is known of `after`, and `route` the planner's moves."""

    written: tuple[str, str] | None
    before: PartitionSpec | None = None
    after: PartitionSpec | None = None
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    op_name: str = ""
    source: str = ""
    times: int = 1
    parts: int = 1
    route: tuple[Step, ...] = ()
    kept: tuple[int, ...] = ()

    @property
    def whole_bytes(self) -> int | None:
        """Bytes of the whole array, which every device holds for a while."""
        return None if self.shape is None else array_bytes(self.shape, self.dtype)

    @property
    def wire_bytes(self) -> int | None:
        """Bytes that one device sends at least to have the array whole everywhere."""
        whole = self.whole_bytes
        return None if whole is None else whole * (self.parts - 1) // self.parts

    @property
    def route_bytes(self) -> int | None:
        """Bytes that one device sends on the route; None without one."""
        return sum(step.wire_bytes for step in self.route) if self.route else None


def rematerializations(
    log: str, mesh: Mesh | None = None, module_text: str = ""
) -> tuple[Rematerialization, ...]:
    """The warnings of a log, each once, in its order, along the axes of `mesh`, or of the one by
    `mesh_of_warnings`. `module_text` is HLO whose tables tell the source lines."""
    if MARK not in log:
        return ()
    lines = Counter(match.group() for match in _WARNING.finditer(log))
    matches = [warning for line in lines if (warning := _WARNING.match(line))]
    mesh = mesh or mesh_of_warnings(match.group() for match in matches)
    locations = SourceLocations(module_text)
    kinds: Counter[Rematerialization] = Counter()
    for warning in matches:
        kinds[_read(warning, mesh, locations)] += lines[warning.group()]
    return tuple(_with_route(kind, mesh, times) for kind, times in kinds.items())


def without_warnings(text: str) -> str:
    """The text without the lines of XLA's warnings, which quote instructions."""
    return "".join(line for line in text.splitlines(keepends=True) if MARK not in line and STUCK not in line)


def unwarned_rematerializations(
    entries: Iterable[CollectiveEntry],
    meetings: Sequence[Meeting],
    mesh: Mesh,
    warned: Iterable[Rematerialization],
) -> tuple[Rematerialization, ...]:
    """Arrays that a compiler fully replicates in order to reshard them, without a warning as of those in
    `warned`: it gathers all of what is sharded before and after."""
    known = {(one.before, one.after, one.shape) for one in warned}
    made: dict[tuple[object, ...], Rematerialization] = {}
    for entry in entries:
        fitting = meetings_of(entry, meetings, mesh) if entry.collective.op == "all-gather" else []
        if len({(meeting.before, meeting.after, meeting.shape) for meeting in fitting}) != 1:
            continue
        meeting = fitting[0]
        key = before, after, shape = meeting.before, meeting.after, meeting.shape
        parts = [math.prod(shard_shape(shape, spec, mesh)) for spec in (before, after)]
        is_split = max(parts) < math.prod(shape)
        if is_split and key not in known and _is_made_whole(entry.collective, meeting, mesh):
            origin = entry.collective.op_name, entry.collective.source
            cuts = math.prod(before.parts(mesh))
            made.setdefault(key, Rematerialization(None, *key, meeting.dtype, *origin, parts=cuts))
    return tuple(_with_route(one, mesh, 1) for one in made.values())


def _is_made_whole(gather: Collective, meeting: Meeting, mesh: Mesh) -> bool:
    """Return whether a gather makes a meeting's whole value, along a dimension that its axes split before."""
    before, shape = meeting.before, meeting.shape
    # Sizes are rounded up where axes do not divide them.
    padded = [
        tuple(map(math.prod, zip(shard_shape(shape, spec, mesh), spec.parts(mesh), strict=True)))
        for spec in (before, meeting.after)
    ]
    if math.prod(gather.result_shape) not in map(math.prod, (shape, *padded)):
        return False
    split = [dim for dim, own in enumerate(before.dims) if set(gather.axes) & set(own)]
    if gather.dim is not None and gather.result_shape in (shape, *padded):
        return gather.dim in split
    sizes = {whole[dim] for whole in (shape, *padded) for dim in split}
    from_all = gather.group_size == math.prod(before.parts(mesh))
    return from_all or gather.dim is None or gather.result_shape[gather.dim] in sizes


def rematerializations_of(module: HloModule) -> tuple[Rematerialization, ...]:
    """Arrays that a compiled text gathers from all devices and cuts again, alike ones once: `kept` is what
    they are cut to, as the text does not name the axes of a cut."""
    kinds: Counter[Rematerialization] = Counter()
    for gathers, kept in cut_gathers(module):
        last = gathers[-1]
        dims: list[tuple[str, ...]] = [()] * len(last.result_shape)
        for gather in gathers:
            if gather.dim is not None:
                dims[gather.dim] = (*gather.axes, *dims[gather.dim])
        known = module.mesh is not None and all(gather.axes and gather.dim is not None for gather in gathers)
        before = PartitionSpec(tuple(dims)) if known else None
        parts = math.prod(gather.group_size for gather in gathers)
        told = last.result_shape, last.dtype, last.op_name, last.source
        kinds[Rematerialization(None, before, None, *told, parts=parts, kept=kept)] += 1
    return tuple(replace(kind, times=times) for kind, times in kinds.items())


def cut_gathers(module: HloModule) -> Iterator[tuple[tuple[Collective, ...], tuple[int, ...]]]:
    """The gathers of each array that a program replicates only to slice it, the last of which has it whole,
    and the shape that a device then keeps; none of a module that was read without origins. In a compiled text
    that is certain where every device has the whole array, and all that takes it cuts it at a place that the
    device's number tells."""
    devices = module.num_partitions * module.replica_count * module.num_slices
    if module.index is None or devices < 2:
        return
    values, pairs = Values(module.index), zip(module.collectives, module.lines, strict=True)
    gathers = [(record, line) for record, line in pairs if record.op == "all-gather" and record.arrays == 1]
    known = {record.name: record for record, _ in gathers}
    for last, line in gathers:
        if line.opcode != "all-gather" or math.prod(last.result_shape) < devices:
            continue
        chain = _chain(values, line, known)
        if math.prod(record.group_size for record in chain) == devices:
            kept = _kept(values, line)
            if len(kept) == len(last.result_shape):
                yield chain, kept


def _chain(values: Values, line: Instruction, known: dict[str, Collective]) -> tuple[Collective, ...]:
    """The gathers one after another that end in one, between which the array is at most copied."""
    collectives = [known[line.name]]
    for _ in range(MAX_STEPS):
        before = values.lines.operand(line, 0) if len(line.operands) == 1 else None
        if before is None:
            break
        if before.name in known:
            collectives.insert(0, known[before.name])
        elif before.opcode not in _COPIES or _sizes(before) != collectives[0].operand_shape:
            break
        line = before
    return tuple(collectives)


def _kept(values: Values, gather: Instruction) -> tuple[int, ...]:
    """The shape to which all that takes an array cuts it, () where something takes more of it."""
    shapes: set[tuple[int, ...]] = set()
    ways = reached(
        [ProgramValue(gather)],
        lambda value: () if value.line.opcode == "dynamic-slice" else values.used_by(value),
    )
    for number, value in enumerate(ways):
        line = value.line
        is_result = line.is_root and values.caller_of(line.home) is None
        if number > MAX_STEPS or value.path:
            return ()
        if line.opcode == "dynamic-slice" and _is_of_the_device(values, line):
            shapes.add(_sizes(line))
        elif is_result or (line is not gather and line.opcode not in _PASSING):
            return ()
    kept = shapes.pop() if len(shapes) == 1 else ()
    return kept if kept != _sizes(gather) else ()


def _is_of_the_device(values: Values, cut: Instruction) -> bool:
    """Return whether an array is cut at places made of the device's number and constants alone."""
    taken = values.lines.taken

    def made_of(value: ProgramValue) -> Iterable[ProgramValue]:
        if value.line.opcode not in ("parameter", "fusion"):
            return (ProgramValue(line, value.caller) for line in taken(value.line))
        made = values.how(value)
        return made.operands if isinstance(made, Made) else ()

    opcodes = set()
    for number, value in enumerate(reached(map(ProgramValue, taken(cut)[1:]), made_of)):
        line = value.line
        opcodes.add(line.opcode)
        if line.opcode in ("parameter", "fusion"):
            is_known = isinstance(values.how(value), Made)
        else:
            is_known = line.opcode == "constant" or len(taken(line)) == len(line.operands)
            is_known = is_known and line.opcode in _OF_THE_DEVICE
        if number > MAX_STEPS or not is_known:
            return False
    return not opcodes.isdisjoint(("partition-id", "replica-id"))


def _sizes(line: Instruction) -> tuple[int, ...]:
    """The sizes of the one array that an instruction makes, () where the text does not tell."""
    array = one_array(line.shape)
    return () if array is None else array.sizes


def mesh_of_warnings(lines: Iterable[str]) -> Mesh | None:
    """The mesh that the shardings name, else one of the sizes in which they number the devices most finely;
    what a damaged line says of one is passed over."""
    finest: tuple[int, ...] = ()
    for line in lines:
        if named := mesh_in_text(line):
            with suppress(QuestionError):
                return parse_mesh(named)
        for iota in re.findall(rf"<=\[({_SIZES})\]", line):
            sizes = tuple(size for size in map(int, iota.split(",")) if size != 1)
            finest = max(finest, sizes, key=len) if 0 not in sizes else finest
    if not finest or len(finest) > MOST_AXES:
        return None
    return Mesh(tuple("xyzwv"[: len(finest)]), finest)


def _read(warning: re.Match[str], mesh: Mesh | None, locations: SourceLocations) -> Rematerialization:
    written = warning["before"], warning["after"]
    instruction = _INSTRUCTION.search(warning["rest"])
    line = instruction[1] if instruction else ""
    metadata = metadata_in(line)
    name = metadata.get("op_name", "").replace("\\'", "'")
    rank = next((rank for text in written if (rank := _rank(text)) is not None), None)
    made = parse_instruction(line)
    part = one_array(made.shape) if made else None
    if part is not None and rank is None:
        rank = len(part.sizes)
    before, after = (written_spec(text, mesh, rank) for text in written)
    one = Rematerialization(written, before, after, op_name=name, source=locations.of(metadata))
    if part is None or mesh is None or before is None or len(part.sizes) != before.rank:
        return one
    cuts = before.parts(mesh)
    shape = tuple(map(math.prod, zip(part.sizes, cuts, strict=True)))
    return replace(one, shape=shape, dtype=part.dtype, parts=math.prod(cuts))


def _rank(sharding: str) -> int | None:
    """The dimensions of an array, where its sharding tells them."""
    if named := re.search(r"\], \[(.*)\]", sharding):
        return named[1].count("{")
    tiles = re.search(rf"devices=\[({_SIZES})\]", sharding)
    if tiles is None:
        return None
    groups = re.search(r"last_tile_dims=\{([^}]*)\}", sharding)
    extra = len(groups[1].split(",")) if groups else "last_tile_dim_replicate" in sharding
    return tiles[1].count(",") + 1 - extra


def _with_route(one: Rematerialization, mesh: Mesh | None, times: int) -> Rematerialization:
    route: tuple[Step, ...] = ()
    if mesh is not None and one.before is not None and one.after is not None and one.shape is not None:
        route = reshard_route(one.before, one.after, one.shape, one.dtype, mesh)
    return replace(one, times=times, route=route)


def reshard_route(
    before: PartitionSpec, after: PartitionSpec, shape: Sequence[int], dtype: str, mesh: Mesh
) -> tuple[Step, ...]:
    """The cheapest moves between two shardings, on a v5e of which every axis is a ring, none of which makes
    the array whole; () where there are none. JAX has no names for parts of axes, and so none move."""
    axes = [axis for spec in (before, after) for dim in spec.dims for axis in dim]
    wide = [axis for axis, size in mesh.shape.items() if size > 1]
    if any(":" in axis for axis in axes) or len(wide) > MOST_AXES or before.rank != after.rank:
        return ()
    sizes = tuple(mesh.shape.items())
    space = state_space(tuple((axis, size) for axis, size in sizes if size > 1), sizes, frozenset())
    source, goal = state_of(before, mesh), state_of(after, mesh)
    uneven = frozenset((dim, own) for dims, _ in (source, goal) for dim, own in enumerate(dims))
    prices = Prices(place_mesh(assumed_machine(), mesh), "time")
    array = ShardedArray("x", tuple(f"d{dim}" for dim in range(before.rank)), tuple(shape), dtype, before)

    def allows(earlier: Node, later: Node) -> bool:
        # XLA carries out as one collective what takes axes from one dimension, and gives them to one.
        pairs = [(old, new) for old, new in zip(earlier.state[0], later.state[0], strict=True) if old != new]
        taken = sum(len(new) < len(old) for old, new in pairs)
        is_whole = not any(later.state[0]) and later.state != goal
        return not is_whole and len(pairs) <= 2 and taken <= 1 and len(pairs) - taken <= 1

    kind = ArrayKind(array.shape, dtype, uneven)
    paths = CheapestPaths(space, kind, prices, {source: 0}, allows=allows)
    if paths.cost(goal) is None:
        return ()
    return tuple(move_step(array, mesh, move) for move in paths.path(goal)[1])


def route_code(step: Step) -> str:
    """A step as it is written, for an array x; the spec needs a mesh in context (`jax.set_mesh`)."""
    return f"x = jax.lax.with_sharding_constraint(x, {step.to_spec})  # {step.op.replace('_', '-')}"
