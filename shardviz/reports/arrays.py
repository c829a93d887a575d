"""Every array of a compiled program: how it is split, what a device holds of it, and what of that is waste.

Arguments and outputs are split as the compiled program says; their whole shapes are those of the program
before it, since a device's part does not tell its padding. What is inside is split as Shardy says
(`SplitValue`), where the compiled program has an array of that shape, or of one with the same axes on other
dimensions. Of the largest temporaries a spec is told where Shardy splits all with such a part alike."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product, repeat
from math import prod
from typing import Literal, get_args

from shardviz.hlo import HloModule
from shardviz.hlo.arguments import arguments_in
from shardviz.hlo.mlir.operations import MlirModule
from shardviz.hlo.mlir.shardings import RESULT, tensor_shardings
from shardviz.hlo.module import Reader
from shardviz.hlo.named_scopes import program_place
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.shapes import HOST, PlacedArray, one_array, placed_arrays
from shardviz.notation.gspmd import written_spec
from shardviz.reports.entries import numberless
from shardviz.reports.lowered_module import FEW_ELEMENTS, LoweredArray, SplitValue
from shardviz.sharding import Mesh, PartitionSpec, array_bytes, shard_shape
from shardviz.sharding.array import BITS
from shardviz.timeline.instruction_work import InstructionWork
from shardviz.timeline.live_memory import live_memory
from shardviz.timeline.program_timeline import LiveBuffer
from shardviz.timeline.rows import ProgramRows
from shardviz.units import human_bytes

ArrayKind = Literal["argument", "slice", "constant", "carry", "stacked", "residual", "temporary", "output"]
LARGE = 0.01
"""An array is large with this part of the bytes of all arguments on a device, or more."""
_NAMED = re.compile(r'^\s*(?:ROOT )?%?(\S+) = [^\n]*?op_name="((?:[^"\\]|\\.)*)"', re.MULTILINE)


@dataclass(frozen=True)
class Mark:
    """A waste of an array, in a sentence; `bytes` are those of one device."""

    kind: Literal["replicated", "padded", "repeated", "not reused", "resharded", "off rule"]
    words: str
    bytes: int = 0


@dataclass(frozen=True)
class ProgramArray:
    """An array of a program. `name` is the path of an argument or an output, of others JAX's name of the
    operation, and `source` the user's line; "" where not known. Kinds are as in `SplitValue`.

    `shape` is global, None where only the `part` of a device is known. `spec` is None where it is not known,
    and then so are the `copies`: how many devices hold the same elements. `asked` is the spec that the
    program gives. `bytes` are those of one device, in the memory of a "device" or a "host". `logical` are the
    names that Flax gives the dimensions of an argument, and `rule` is the user's that names it."""

    kind: ArrayKind
    name: str
    dtype: str
    shape: tuple[int, ...] | None
    part: tuple[int, ...]
    bytes: int
    spec: PartitionSpec | None = None
    copies: int | None = None
    asked: PartitionSpec | None = None
    source: str = ""
    memory_kind: Literal["device", "host"] = "device"
    marks: tuple[Mark, ...] = ()
    logical: tuple[str, ...] = ()
    rule: str = ""


@dataclass(frozen=True)
class ProgramEnds:
    """A program's arguments and results before it was compiled, and HLO's shardings of both after."""

    arguments: Sequence[LoweredArray] = ()
    results: Sequence[LoweredArray] = ()
    argument_shardings: Sequence[str] = ()
    result_shardings: Sequence[str] = ()


def arrays_of(
    module: HloModule,
    mesh: Mesh,
    ends: ProgramEnds,
    values: Sequence[SplitValue] = (),
    buffers: Iterable[LiveBuffer] = (),
) -> tuple[ProgramArray, ...]:
    """The arrays of a compiled program that was read with origins, of each kind in program order; of the
    `buffers` at the peak, the largest first, those that are nothing else. Without any they are estimated."""
    index = module.index
    if index is None or module.awaits_partitioner:
        return ()
    mesh = Mesh(mesh.axis_names, mesh.axis_sizes)  # a text numbers its devices in the mesh's order
    values = [value for value in values if _is_on(value.spec, mesh)]
    buffers = buffers or live_memory(ProgramRows(Reader(index.text, None, None))).buffers
    arguments, outputs = [*_arguments(index, mesh, ends)], [*_outputs(index, mesh, ends)]
    inside = [*_compiled_values(values, index, mesh)]
    inside += _temporaries(index.text, mesh, values, inside, buffers)
    return _in_order([*arguments, *inside, *outputs], mesh)


def partitioned_arrays(
    text: str, mesh: Mesh, ends: ProgramEnds, values: Iterable[SplitValue] = ()
) -> tuple[ProgramArray, ...]:
    """The arrays of a program that Shardy has partitioned, and nobody compiled: `text` tells its outputs."""
    outputs = [tensor for tensor in tensor_shardings(MlirModule(text)) if tensor.op == RESULT]
    split = [PartitionSpec(output.dims, output.unreduced) if output.dims else None for output in outputs]
    given: list[tuple[ArrayKind, LoweredArray, PartitionSpec | None]]
    given = [("argument", one, one.spec) for one in ends.arguments]
    given += [("output", one, spec) for one, spec in zip(ends.results, split, strict=False)]
    rows = [
        _inside(value, shard_shape(value.shape, value.spec, mesh), value.spec, mesh)
        for value in values
        if _is_told(value) and _is_on(value.spec, mesh)
    ]
    for kind, one, spec in given:
        if one.dtype not in BITS:  # a token
            continue
        known = spec if spec is not None and _is_on(spec, mesh) else PartitionSpec.replicated(len(one.shape))
        part = shard_shape(one.shape, known, mesh)
        placed = PlacedArray(one.dtype, part, array_bytes(part, one.dtype))
        rows.append(_end(kind, placed, known, one, mesh))
    return _in_order(rows, mesh)


def alike_arrays(arrays: Iterable[ProgramArray]) -> list[list[ProgramArray]]:
    """Arrays that differ in the numbers of their names alone together, those that take most first."""
    groups: defaultdict[object, list[ProgramArray]] = defaultdict(list)
    for one in arrays:
        split = one.dtype, one.shape, one.part, one.spec, one.memory_kind
        groups[numberless(one.name), split, one.source, one.marks].append(one)
    return sorted(groups.values(), key=lambda group: -sum(one.bytes for one in group))


def _in_order(rows: Iterable[ProgramArray], mesh: Mesh) -> tuple[ProgramArray, ...]:
    """The rows by their kind, with the marks that their split tells."""
    every = sorted(rows, key=lambda row: get_args(ArrayKind).index(row.kind))
    held = sum(row.bytes for row in every if row.kind == "argument" and row.memory_kind == "device")
    return tuple(replace(row, marks=(*row.marks, *_marks(row, mesh, held))) for row in every)


def _marks(row: ProgramArray, mesh: Mesh, held: int) -> Iterator[Mark]:
    """The waste of an array by its split; `held` are the bytes of a device's arguments."""
    elements = array_bytes(row.part, row.dtype)
    is_large = elements * 8 > FEW_ELEMENTS * BITS[row.dtype] and row.bytes >= LARGE * held
    if is_large and row.copies == mesh.size > 1 and row.kind not in ("slice", "temporary", "output"):
        words = f"each of {mesh.size:,} devices holds all of it"
        yield Mark("replicated", words, row.bytes * (mesh.size - 1) // mesh.size)
    if row.shape is not None and row.spec is not None:
        parts = row.spec.parts(mesh)
        if any(size % count for size, count in zip(row.shape, parts, strict=True)):
            padding = elements - array_bytes(row.shape, row.dtype) // prod(parts)
            yield Mark("padded", "its axes do not divide it", padding)
    if row.bytes > 2 * elements and is_large:
        words = f"its layout has tiles: {human_bytes(row.bytes)} for {human_bytes(elements)} of elements"
        yield Mark("padded", words, row.bytes - elements)


def _arguments(index: Instructions, mesh: Mesh, ends: ProgramEnds) -> Iterator[ProgramArray]:
    for one in arguments_in(index):
        placed = PlacedArray(one.shape.dtype, one.shape.sizes, one.bytes, one.space)
        given = ends.arguments[one.number] if one.number < len(ends.arguments) else None
        # XLA's texts say it up to jax 0.11.
        told = ends.argument_shardings[one.number : one.number + 1]
        sharding = one.sharding or "".join(told)
        row = _end("argument", placed, written_spec(sharding, mesh, len(placed.sizes)), given, mesh)
        row = replace(row, name=one.path or row.name)
        if given is not None and given.is_donated and not one.is_donated:
            lost = Mark("not reused", "donated, and no output reuses its memory", one.bytes)
            row = replace(row, marks=(*row.marks, lost))
        yield row


def _outputs(index: Instructions, mesh: Mesh, ends: ProgramEnds) -> Iterator[ProgramArray]:
    """The arrays of what the program's entry ends with."""
    entry = index.computations.entry
    root = None if entry is None else index.root(entry)
    results = [one for one in ends.results if one.dtype in BITS]  # without tokens
    made = placed_arrays(root.shape) if root is not None else ()
    known = zip(made, chain(results, repeat(None)), chain(ends.result_shardings, repeat("")), strict=False)
    for placed, given, sharding in known:
        yield _end("output", placed, written_spec(sharding, mesh, len(placed.sizes)), given, mesh)


def _end(
    kind: ArrayKind, placed: PlacedArray, spec: PartitionSpec | None, given: LoweredArray | None, mesh: Mesh
) -> ProgramArray:
    """An argument or an output, with the spec that the compiled program says."""
    part, asked = placed.sizes, None if given is None else given.spec
    if asked is not None and (len(asked.dims) != len(part) or not _is_on(asked, mesh)):
        asked = None
    shape = None if given is None or len(given.shape) != len(part) else given.shape
    if mesh.size == 1:
        spec = PartitionSpec.replicated(len(part))
    if asked is not None and (spec is None or _splits_alike(spec, asked, mesh)):
        spec = asked  # HLO has no axes of size 1
    if spec is not None and shape is None:
        shape = tuple(size * count for size, count in zip(part, spec.parts(mesh), strict=True))
    if spec is not None and shape is not None and shard_shape(shape, spec, mesh) != part:
        spec = None
    marks = []
    if asked is not None and spec is not None and not _splits_alike(spec, asked, mesh):
        marks.append(Mark("resharded", f"the program asks for {asked}"))
    ruled = None if given is None else given.ruled
    if ruled is not None and spec is not None and not _splits_alike(spec, ruled, mesh):
        marks.append(Mark("off rule", f"it is {spec}, and the rule says {ruled}"))
    on_host = placed.space == HOST or (given is not None and "host" in given.memory_kind)
    return ProgramArray(
        kind,
        "" if given is None else given.path,
        placed.dtype,
        shape,
        part,
        placed.bytes,
        spec,
        _copies(spec, mesh),
        asked,
        memory_kind="host" if on_host else "device",
        marks=tuple(marks),
        logical=() if given is None else given.logical,
        rule="" if given is None else given.rule,
    )


def _inside(value: SplitValue, part: tuple[int, ...], spec: PartitionSpec | None, mesh: Mesh) -> ProgramArray:
    """A value inside of the program, of which a device has this part."""
    shape = value.shape
    kind: ArrayKind = "temporary"
    if value.kind != "matmul" and value.kind != "padded" and value.kind != "value":
        kind = value.kind
    if kind == "slice" and spec is not None and shape[0] == 1 and not spec.dims[0]:
        shape, part, spec = shape[1:], part[1:], PartitionSpec(spec.dims[1:], spec.unreduced)
    words = f"{value.repeats:,} devices compute the same matmul: {value.repeats:,} × its FLOPs"
    return ProgramArray(
        kind,
        f"{value.argument}[i]" if value.argument else value.name,
        value.dtype,
        shape,
        part,
        array_bytes(part, value.dtype),
        spec,
        _copies(spec, mesh),
        source=value.source,
        marks=(Mark("repeated", words),) if value.repeats > 1 else (),
    )


def _is_told(value: SplitValue) -> bool:
    """Return whether a value has a row for what it is, and not only where it is large."""
    return value.kind != "value" and (value.kind != "matmul" or value.repeats > 1)


def _compiled_values(values: Sequence[SplitValue], index: Instructions, mesh: Mesh) -> Iterator[ProgramArray]:
    """The values inside as the compiled program has them: XLA may split those of loops and matmuls anew."""
    work = InstructionWork(index)
    looped: set[tuple[int, ...]] = set()
    multiplied: defaultdict[str, set[tuple[int, ...]]] = defaultdict(set)
    flops, whole = Counter[object](), Counter[object]()
    for home in index.computations.all:
        for line in index.with_opcode(home, "while"):
            looped |= {array.sizes for array in placed_arrays(line.shape)}
        for opcode in ("dot", "convolution", "custom-call"):
            for line in index.with_opcode(home, opcode):
                if made := work.matmuls(line, work.operand_shapes(line)).flops:
                    sizes = {array.sizes for array in placed_arrays(line.shape)}
                    multiplied[line.op_name] |= sizes
                    # Matmuls of one name, of which a loop was unrolled, are told apart by their results.
                    for key in (line.op_name, *((line.op_name, one) for one in sizes)):
                        flops[key] += made
    owns = [shard_shape(value.shape, value.spec, mesh) for value in values]
    for value, own in zip(values, owns, strict=True):
        for key in (value.name, (value.name, own)):
            whole[key] += 2 * value.products
    for value, own in zip(values, owns, strict=True):
        parts = looped
        if value.kind == "matmul":
            parts = multiplied[value.name]
            key = (value.name, own) if own in parts else value.name
            repeats = flops[key] * mesh.size // max(whole[key], 1)
            value = replace(value, repeats=min(value.repeats, repeats))
        if not _is_told(value):
            continue
        if value.kind in ("slice", "constant", "padded") or own in parts:
            yield _inside(value, own, value.spec, mesh)
            continue
        fitting = _fitting(value, parts, mesh, value.spec.axes) or _fitting(value, parts, mesh)
        if len(fitting) == 1:
            yield _inside(value, *fitting[0], mesh)
        elif value.kind == "matmul" and parts:
            yield _inside(value, max(parts), None, mesh)


def _fitting(
    value: SplitValue, parts: Collection[tuple[int, ...]], mesh: Mesh, axes: Sequence[str] = ()
) -> list[tuple[tuple[int, ...], PartitionSpec]]:
    """Of some shapes those of a device's part of a value, and the spec of each, with axes of the mesh."""
    rank, fitting = len(value.shape), []
    every = [axis for axis in axes or mesh.axis_names if mesh.group_size((axis,)) > 1]
    if not parts or (rank + 1) ** len(every) > 10_000:
        return []
    for places in product(range(rank + (not axes)), repeat=len(every)):
        dims: list[tuple[str, ...]] = [()] * (rank + 1)
        for axis, dim in zip(every, places, strict=True):
            dims[dim] += (axis,)
        spec = PartitionSpec(tuple(dims[:rank]))
        if (part := shard_shape(value.shape, spec, mesh)) in parts:
            fitting.append((part, spec))
    return fitting


def _temporaries(
    text: str,
    mesh: Mesh,
    values: Iterable[SplitValue],
    known: Iterable[ProgramArray],
    buffers: Iterable[LiveBuffer],
) -> Iterator[ProgramArray]:
    """The largest buffers at the peak but for arguments, outputs and what is `known`."""
    splits: defaultdict[object, set[tuple[tuple[int, ...], PartitionSpec]]] = defaultdict(set)
    for value in values:
        part = shard_shape(value.shape, value.spec, mesh)
        splits[value.dtype, part].add((value.shape, value.spec))
    told = {(row.dtype, row.part) for row in known}
    largest = [buffer for buffer in buffers if buffer.kind in ("temporary", "constant")][:8]
    wanted = {name for buffer in largest for name in (buffer.name, buffer.last)}
    names = {line[1]: line[2] for line in _NAMED.finditer(text) if line[1] in wanted} if wanted else {}
    for buffer in largest:
        array = None if buffer.shape.startswith("(") else one_array(buffer.shape)
        if array is None or (array.dtype, array.sizes) in told or prod(array.sizes) <= FEW_ELEMENTS:
            continue
        fitting = splits[array.dtype, array.sizes]
        shape, spec = next(iter(fitting)) if len(fitting) == 1 else (None, None)
        made, read = (names.get(name, "") for name in (buffer.name, buffer.last))
        kind: ArrayKind = "constant" if buffer.kind == "constant" else "temporary"
        if made and read and program_place(made).phase != program_place(read).phase == "backward":
            kind = "residual"
        yield ProgramArray(
            kind,
            made or buffer.name,
            array.dtype,
            shape,
            array.sizes,
            buffer.bytes,
            spec,
            _copies(spec, mesh),
            source="" if buffer.source == made else buffer.source,
        )


def _copies(spec: PartitionSpec | None, mesh: Mesh) -> int | None:
    """The number of devices that hold the same elements; those of a pending sum hold different ones."""
    return None if spec is None else mesh.size // mesh.group_size((*spec.axes, *spec.unreduced))


def _is_on(spec: PartitionSpec, mesh: Mesh) -> bool:
    """Return whether a spec names axes of this mesh, and of no other of the program's."""
    return {axis.partition(":")[0] for axis in (*spec.axes, *spec.unreduced)} <= {*mesh.axis_names}


def _splits_alike(spec: PartitionSpec, other: PartitionSpec, mesh: Mesh) -> bool:
    """Return whether two specs split an array in the same way: an axis of size 1 splits nothing."""
    one, two = (
        [tuple(axis for axis in dim if mesh.group_size((axis,)) > 1) for dim in sharding.dims]
        for sharding in (spec, other)
    )
    return one == two and spec.unreduced == other.unreduced
