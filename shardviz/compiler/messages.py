"""The messages between the two processes, frozen objects of plain values, and the pipes for them.

The child imports this file before it answers, and every import delays the first answer. So a question
carries what JAX needs of a problem and no more, and what the child loads of shardviz imports nothing heavy.
"""

from __future__ import annotations

import os
import pickle
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.reports.target_result import ExecutionResult

if TYPE_CHECKING:
    from shardviz.devices.measurement import Measurement, NoMeasurement
    from shardviz.devices.question import Case
    from shardviz.reports.explicit_reshards import ExplicitReshards
    from shardviz.reports.target_result import TargetResult
    from shardviz.targets.described_hardware import TopologyRequest

NO_ROOM = re.compile(r"RESOURCE_EXHAUSTED|[Oo]ut of memory")
"""What a compiler says of a program that does not fit."""

Versions = tuple[tuple[str, str], ...]
"""(name, version) of what computes the answers."""


@dataclass(frozen=True)
class Spec:
    """A partition spec: the mesh axes of each dimension, and the axes of a pending sum."""

    dims: tuple[tuple[str, ...], ...]
    unreduced: tuple[str, ...] = ()


@dataclass(frozen=True)
class Array:
    """An array; `dtype` is HLO's name, `spec` None where the compiler may choose."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    spec: Spec | None


@dataclass(frozen=True)
class StatementPart:
    """One statement of a program; see `shardviz.planner.problem.Statement`.

    `code` is its JAX expression, with ``operands`` for the list of its operands and, where JAX is told of the
    result, ``wanted`` for its sharding. `subscripts` are the dimensions of operands and result as
    `jnp.einsum` takes them. Gradients go through those that are `is_forward`; an optimizer's follow them.
    """

    code: str
    subscripts: str
    operands: tuple[Array, ...]
    result: Array
    is_forward: bool = True


@dataclass(frozen=True)
class DeviceMesh:
    """A mesh; `device_order` as in `shardviz.sharding.Mesh`. Under Explicit axes `is_explicit`, else Auto.

    Devices are placed along `axis_names`. JAX has no parts of axes: where specs name some, each of `parts`
    (name, size) is an axis of the JAX mesh, in the same order of devices.
    """

    axis_names: tuple[str, ...]
    axis_sizes: tuple[int, ...]
    device_order: tuple[int, ...] | None
    is_explicit: bool = False
    parts: tuple[tuple[str, int], ...] = ()

    @property
    def jax_names(self) -> tuple[str, ...]:
        """The names of the JAX mesh's axes."""
        return tuple(name for name, _ in self.parts) or self.axis_names

    @property
    def jax_sizes(self) -> tuple[int, ...]:
        """The sizes of the JAX mesh's axes."""
        return tuple(size for _, size in self.parts) or self.axis_sizes


@dataclass(frozen=True)
class Question:
    """To the child: compile this for `target`.

    `arguments` are what the program takes, the first of them what it hands on from run to run; `results` what
    it returns, the last the one handed on. It runs `layers` times, one after the other, and has the arrays
    named in `stacked` once for each run. In a train step `gradients` pairs arguments with
    their gradients, whose statements are not among the parts, and `cotangents` pairs results with the
    arguments that are their gradients; `remat` is what `Training` calls so.
    `topology` describes the hardware of a TPU or GPU target. With `dump_to`, a folder, XLA leaves there the
    module after every one of its passes; with `costs_to`, another, its schedule, and the answer has that and
    the memory.
    """

    target: str
    mesh: DeviceMesh
    parts: tuple[StatementPart, ...]
    topology: TopologyRequest | None = None
    dump_to: str = ""
    costs_to: str = ""
    arguments: tuple[Array, ...] = ()
    results: tuple[Array, ...] = ()
    layers: int = 1
    stacked: frozenset[str] = frozenset()
    gradients: tuple[tuple[str, Array], ...] = ()
    cotangents: tuple[tuple[str, str], ...] = ()
    remat: str = "none"


@dataclass(frozen=True)
class ShardingChange:
    """A sharding of Shardy's, `dims` by axis names: of the program's argument `argument`, or of the results
    of `shape` of the operations `opcode` that JAX's name `made_by` ends with the name of."""

    dims: tuple[tuple[str, ...], ...]
    argument: int | None = None
    made_by: str = ""
    opcode: str = ""
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class CompileModule:
    """To the child: compile a program of the user's for `target`.

    `code` is its StableHLO as MLIR's bytes, and its devices are those of the target in the order in which
    `mesh` lies on them. `topology` is that of a `Question`; `options` are the compiler's, by name, with which
    it is compiled. In `folder` XLA leaves what says why it gave up, and with `with_costs` also its schedule
    and its account of the memory, which the answer then has. `changes` are made to the module before.
    """

    target: str
    mesh: DeviceMesh
    code: bytes
    topology: TopologyRequest | None = None
    options: tuple[tuple[str, Any], ...] = ()
    folder: str = ""
    with_costs: bool = False
    changes: tuple[ShardingChange, ...] = ()


@dataclass(frozen=True)
class RunCollective:
    """To the child: run one collective over `axes` on the devices of `target`.

    `parameters` are JAX's, by name. `shards` are the bytes of an array (devices by mesh position, `shape`)
    of HLO's `dtype`, in which a type under a byte takes one.
    """

    target: str
    mesh: DeviceMesh
    op: str
    axes: tuple[str, ...]
    parameters: tuple[tuple[str, Any], ...]
    shape: tuple[int, ...]
    dtype: str
    shards: bytes


@dataclass(frozen=True)
class TimeLoop:
    """To the child: time an operation on the devices of `target`, in a loop, `runs` times or fewer.

    `shape` is that of a device's operand.
    """

    target: str
    mesh: DeviceMesh
    case: Case
    shape: tuple[int, ...]
    runs: int


@dataclass(frozen=True)
class AskLayout:
    """To the child: which elements of an array every device of a mesh holds."""

    mesh: DeviceMesh
    array: Array


@dataclass(frozen=True)
class PrintModules:
    """To the child: the text of compiled modules, each XLA's serialized `HloModuleProto`."""

    protos: tuple[bytes, ...]


@dataclass(frozen=True)
class AskAbout:
    """To the child: which versions run, and which devices they find."""


@dataclass(frozen=True)
class JoinJob:
    """To the child: all processes of the job are there: join it, with JAX's coordinator at `coordinator`."""

    coordinator: str


@dataclass(frozen=True)
class AskJob:
    """To the child: which process each device belongs to. `question` is what follows, which must be the same
    in all processes."""

    question: str


@dataclass(frozen=True)
class JobFound:
    """From the child, before it is ready: it belongs to a job of `processes`, as `process`, which meet at
    `coordinator`, "host:port". It waits for `JoinJob`."""

    coordinator: str
    processes: int
    process: int


@dataclass(frozen=True)
class ChildReady:
    """From the child, once: JAX is loaded."""

    versions: Versions


@dataclass(frozen=True)
class ChildBroken:
    """From the child, as its last word: JAX cannot be loaded, is too old, or finds no device."""

    reason: str
    hint: str = "python -c 'import jax; print(jax.devices())' should work first"


@dataclass(frozen=True)
class OtherRequest:
    """From a child in a job, as its last word: process 0 is asked something else."""


@dataclass(frozen=True)
class StageReport:
    """From the child: what it is doing now, as "lowering"."""

    stage: str


@dataclass(frozen=True)
class MemoryTexts:
    """From the child: the compiler's account of a device's memory.

    `sizes` has bytes by name ("argument", "output", "alias", "temporary", "peak"), nothing where the program
    does not fit. `assignment` and `live_ranges` are XLA's reports as text, `module` the last one before
    it gave up on a program that does not fit.
    """

    sizes: tuple[tuple[str, int], ...] = ()
    assignment: str = ""
    live_ranges: str = ""
    module: str = ""


@dataclass(frozen=True)
class Output:
    """From the child: the end of one question.

    `result` goes on to the picture, with the module to read as its text; the parent adds what it reads there
    and in the other texts. `partitioned` is the module right after SPMD partitioning. `located` is the text
    of Shardy's module with the place of each operation in a program of several statements. `warnings` are the
    lines of XLA's log about arrays that it replicates on every device. `reshards` are those of a
    program of the user's, None where Shardy has refused it. `result_spec` is
    None where the text must tell. `devices` says of the device at each mesh position its id (from 0), the
    coordinates of its chip, its core and its slice (a GPU: no coordinates, its number in the node, the node);
    empty where no machine was described. Where JAX refused, `refused_part` says which
    part it refused and `settled_by` is a spec for that part's result with which JAX accepts it, if there is
    one. `schedule` is the text of the latency-hiding scheduler's simulation, "" where XLA wrote none; that
    and `memory` are there for a question with `costs_to`, `memory` also for a program that does not fit.
    """

    result: TargetResult
    partitioned: str | None = None
    result_spec: Spec | None = None
    refused_part: int = 0
    settled_by: Spec | None = None
    devices: tuple[tuple[int, tuple[int, ...], int, int], ...] = ()
    schedule: str = ""
    memory: MemoryTexts | None = None
    located: str = ""
    warnings: str = ""
    reshards: ExplicitReshards | None = None


@dataclass(frozen=True)
class LoopOutput:
    """From the child: the end of one measurement. `text` is the final module, which the parent reads."""

    row: Measurement | NoMeasurement
    text: str = ""


@dataclass(frozen=True)
class LayoutOutput:
    """From the child: what `NamedSharding.shard_shape` and `devices_indices_map` say of an array.

    `devices` has for each mesh position the device's id and (start, stop) of every dimension; `bits` are
    those of one element. `error` has JAX's words where it refused, and then nothing else is there.
    """

    shard_shape: tuple[int, ...] = ()
    bits: int = 0
    devices: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = ()
    error: str = ""


@dataclass(frozen=True)
class ModuleTexts:
    """From the child: the modules as HLO text, "" for one that XLA does not read."""

    texts: tuple[str, ...]


@dataclass(frozen=True)
class About:
    """From the child: its versions, JAX's default platform, and the devices as (kind, count)."""

    versions: Versions
    platform: str
    devices: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class JobDevices:
    """From the child: its own process, and that of each device in the order of `jax.devices()`."""

    process: int
    process_of: tuple[int, ...]


Request = (
    Question
    | CompileModule
    | RunCollective
    | TimeLoop
    | AskLayout
    | PrintModules
    | AskAbout
    | AskJob
    | JoinJob
)
Reply = Output | ExecutionResult | LoopOutput | LayoutOutput | ModuleTexts | About | JobDevices


_LENGTH_BYTES = 8


class Channel:
    """One end of a pair of pipes; each object goes as its length and its pickle.

    Not for concurrent senders, nor concurrent receivers.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.read_fd, self.write_fd = read_fd, write_fd

    def send(self, message: object) -> None:
        """Write one object; `BrokenPipeError` when nobody reads any more."""
        body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        data = memoryview(len(body).to_bytes(_LENGTH_BYTES, "big") + body)
        while data:
            data = data[os.write(self.write_fd, data) :]

    def receive(self) -> object:
        """Wait for one object; `EOFError` when the other end is closed."""
        length = int.from_bytes(self._read(_LENGTH_BYTES), "big")
        return pickle.loads(self._read(length))

    def close(self) -> None:
        os.close(self.read_fd)
        os.close(self.write_fd)

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            piece = os.read(self.read_fd, min(count - len(data), 1 << 20))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)
