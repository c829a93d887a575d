"""A program before any compiler has seen it, or why JAX makes none of it: its arguments, the places where two
shardings of one value meet (by Shardy's pass `insert-explicit-reshards`), its changes, its lines' values."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from shardviz.errors import QuestionError
from shardviz.sharding import Mesh, PartitionSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

ValueKind = Literal["carry", "stacked", "residual", "slice", "constant", "matmul", "padded", "value"]
ARGUMENT = "argument"
"""In place of the operation that makes an argument of the function around it."""
CONSTRAINTS = frozenset(("sharding_constraint", "reshard"))
"""JAX's names of operations that say how a value is split."""

FEW_ELEMENTS = 1024
"""Keys, steps and other small arrays, which need no sharding of their own, have no more."""
_NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"[()]')


def name_in(location: object) -> str:
    """JAX's name of an operation, or the path of an argument, in its MLIR location; "" where it has none."""
    name = _NAME.match(str(location))
    return name[1] if name else ""


@dataclass(frozen=True)
class LoweredArray:
    """An argument or a result of a program: `path` is JAX's, `shape` is global, and `spec` is what it asks
    for, None where the compiler may choose. `memory_kind` is JAX's, "" for that of the device, and `logical`
    are the names that Flax gives its dimensions. `rule` is the user's that gives it the spec `ruled`."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    spec: PartitionSpec | None = None
    is_donated: bool = False
    memory_kind: str = ""
    logical: tuple[str, ...] = ()
    rule: str = ""
    ruled: PartitionSpec | None = None


@dataclass(frozen=True)
class LoweredModule:
    """A program before any compiler has seen it: `code` is its StableHLO module as MLIR's bytes.

    `platform` is the one that it is lowered for, "" where that was done before. All of its `meshes` have its
    `devices` in the same order. `lost_donation` is JAX's warning of arguments whose memory no result may
    take. `notes` are sentences on how it was traced, and `options` the `compiler_options` of the jit."""

    name: str
    platform: str
    devices: int
    meshes: tuple[Mesh, ...]
    code: bytes
    arguments: tuple[LoweredArray, ...] = ()
    results: tuple[LoweredArray, ...] = ()
    lost_donation: str = ""
    notes: tuple[str, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def mesh(self) -> Mesh:
        """The mesh that is laid on the devices."""
        return self.meshes[0] if self.meshes else Mesh(("device",), (self.devices,))

    @property
    def unsplit(self) -> tuple[str, ...]:
        """The paths of large arguments without a sharding."""
        large = (one for one in self.arguments if math.prod(one.shape) > FEW_ELEMENTS)
        return tuple(one.path for one in large if one.spec is None and self.devices > 1)


@dataclass(frozen=True)
class Meeting:
    """A value split as `before` says, where `after` is wanted; `kind` is "sum" where every device has a part
    of a sum over `axes`, and then both are equal.

    `shape` is global. `producer` and `consumer` are the operations on both sides ("dot_general", "argument",
    "return") with JAX's names of them; `name` is that of the change itself. `argument` is the path of the
    program's argument that it is; inside of a function the first that has its shape and sharding, but for a
    scan's dimension of layers. `calls` counts the calls of the function around it, and `consumer_shape` is
    that of what the consumer makes. `sources` are the user's lines of both sides, ``file:line`` or "". Where
    the consumer is a constraint, `constraint` is its location in MLIR, and `then` what takes its result."""

    kind: Literal["reshard", "sum"]
    axes: tuple[str, ...]
    before: PartitionSpec
    after: PartitionSpec
    shape: tuple[int, ...]
    dtype: str
    producer: str
    consumer: str
    producer_name: str
    consumer_name: str
    name: str
    argument: str = ""
    calls: int = 1
    consumer_shape: tuple[int, ...] = ()
    sources: tuple[str, str] = ("", "")
    constraint: str = ""
    then: str = ""


@dataclass(frozen=True)
class SplitArgument:
    """An argument of the program, by its path and its number; `shape` is global. One whose shape and dtype a
    result has `is_returned`, as the state of a step is and its batch is not."""

    number: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    spec: PartitionSpec
    is_returned: bool = False


@dataclass(frozen=True)
class SplitValue:
    """A large value inside of the program; `shape` is global.

    A "carry" goes from one run of a loop to the next, and "stacked" are the slices that the runs of a loop
    write; a "residual" is stacked, and another loop reads it. A "slice" is that of the `argument` at a path
    which one run of a loop takes. A "matmul" makes `products` multiplications, each on `repeats` devices, and
    what is "padded" its axes do not divide. `name` is JAX's name of the operation, `source` the user's line.
    Of a "value", what is "padded" and a "slice" each split of a shape is there once."""

    kind: ValueKind
    shape: tuple[int, ...]
    dtype: str
    spec: PartitionSpec
    name: str = ""
    source: str = ""
    argument: str = ""
    products: int = 0
    repeats: int = 1


@dataclass(frozen=True)
class ExplicitReshards:
    """A program in whose text every reshard is an operation: the `meetings` in the order in which they run,
    the `arguments` whose sharding and place it tells, the multiplications of one device in all of its
    matmuls, each counted once, large `values` beside the arguments, and the constraints whose axes do not
    divide a value and the user's optimization barriers: the changes that remove them."""

    meetings: tuple[Meeting, ...] = ()
    arguments: tuple[SplitArgument, ...] = ()
    products: int = 0
    values: tuple[SplitValue, ...] = ()
    uneven: tuple[ShardingCandidate, ...] = ()
    barriers: tuple[ScheduleCandidate, ...] = ()


@dataclass(frozen=True)
class ShardingCandidate:
    """A change: an argument, or else what the operation `made_by` makes (by JAX's name, with its `opcode` in
    StableHLO), is split as `spec`; or the `result` with a number is, in place of `before`, and then takes the
    argument's memory. `source` is the user's line at which it is written; the constraint at a location of
    MLIR is `removed`, or has the `spec` for `before`. `memory_bytes` is what the argument takes more."""

    spec: PartitionSpec
    argument: SplitArgument | None = None
    made_by: str = ""
    opcode: str = ""
    shape: tuple[int, ...] = ()
    memory_bytes: int = 0
    result: int | None = None
    before: PartitionSpec | None = None
    source: str = ""
    removed: str = ""

    @property
    def code(self) -> str:
        """The change as it is written."""
        if self.result is not None:
            return f"out_shardings, result {self.result}: {self.spec} in place of {self.before}"
        if self.argument is not None:
            return f"{self.argument.name}: {self.spec} in place of {self.argument.spec}"
        constraint = f"x = jax.lax.with_sharding_constraint(x, {self.spec})"
        if self.removed and self.before is not None:
            return f"{constraint} in place of {self.before}"
        return f"delete {constraint}" if self.removed else constraint


@dataclass(frozen=True)
class ScheduleCandidate:
    """A change of when collectives run: the barriers at the locations of MLIR are `removed`, which the user's
    line `source` has written, or the compiler has `options`."""

    removed: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    source: str = ""
    memory_bytes = 0

    @property
    def code(self) -> str:
        """The change as it is written."""
        if self.removed:
            return "delete jax.lax.optimization_barrier(…)"
        return f"jax.jit(…, compiler_options={dict(self.options)})"


ProgramChange = ShardingCandidate | ScheduleCandidate


@dataclass(frozen=True)
class SourceChange:
    """An expression to write at the refused place. JAX was asked again: `lowered` is the program with it, or
    `then` is what JAX refuses next, in another line. `note` says what it changes beside the shardings. Once
    a target has compiled it, a device sends `sent_bytes` in a run of `seconds`, and needs `peak_bytes`."""

    code: str
    note: str = ""
    lowered: LoweredModule | None = None
    then: str = ""
    sent_bytes: int | None = None
    seconds: float | None = None
    peak_bytes: int | None = None

    @property
    def is_unchecked(self) -> bool:
        """True for a change that switches JAX's check off, and may be wrong in silence."""
        return self.code.endswith("check_vma=False)")


class ShardingRefusal(QuestionError):
    """JAX refuses a program for its shardings at a `place`, in its own `words`, whole; `source` is the user's
    expression, and `types` those of its arrays, ``f32[64_X, 512]``. JAX accepts the `changes` at that place.
    Once a `target` has compiled them, the cheapest is first; those that switch JAX's check off are last."""

    place = words = source = target = ""
    types: tuple[str, ...] = ()
    changes: tuple[SourceChange, ...] = ()


@dataclass(frozen=True)
class LineValue:
    """The value of a statement that begins in a line, or of the parameter `name` of a function defined there.

    `shape` is that of a device's part within `shard_map`, where `spec` is empty, else of the whole array.
    `devices` are pairs of a position in the mesh and the part of that device, of the `shard_shape`; of large
    parts there are the first numbers of the first device. `note` says what kind of line it is: "gradient"."""

    file: str
    line: int
    text: str
    name: str
    note: str
    dtype: str
    shape: tuple[int, ...]
    spec: str = ""
    shard_shape: tuple[int, ...] = ()
    devices: tuple[tuple[int, NDArray[Any]], ...] = ()

    @property
    def is_cut(self) -> bool:
        """Only the first numbers are here."""
        return self.devices[0][1].shape != self.shard_shape


@dataclass(frozen=True)
class ProgramValues:
    """The lines in the order in which they ran, on as many simulated devices as the mesh has."""

    mesh: Mesh
    lines: tuple[LineValue, ...]
    jax_version: str
