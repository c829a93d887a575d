"""The messages between the two processes, and the pipes for them.

A question is a `ChildCall` of a function in `child/`; its arguments, and what it returns, are frozen objects
of plain values. Before its reply the child sends, as text, what it is doing now: "lowering". It imports this
file before it answers, and every import delays the first answer. So a question carries what JAX needs of a
problem and no more, and what the child loads of shardviz imports nothing heavy.
"""

from __future__ import annotations

import os
import pickle
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

if TYPE_CHECKING:
    from shardviz.reports.lowered_module import ExplicitReshards, ProgramChange
    from shardviz.reports.target_result import TargetResult
    from shardviz.targets.hardware import TopologyRequest

NO_ROOM = re.compile(r"RESOURCE_EXHAUSTED|[Oo]ut of memory")
"""What a compiler says of a program that does not fit."""

Versions = tuple[tuple[str, str], ...]
"""(name, version) of what computes the answers: the child's first word, once JAX is loaded."""


@dataclass(frozen=True)
class ChildCall:
    """To the child: call a function of a file in `child/`, such as "answer.layout", with what takes its
    stages, and the arguments."""

    function: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class ChildBroken:
    """From the child, as its last word: JAX cannot be loaded, is too old, or finds no device; without a
    reason, process 0 of its job is asked something else."""

    reason: str = ""
    hint: str = "python -c 'import jax; print(jax.devices())' should work first"


@dataclass(frozen=True)
class StatementPart:
    """One statement of a program; see `shardviz.planner.problem.Statement`.

    `code` is its JAX expression, with ``operands`` for the list of its operands and, where JAX is told of the
    result, ``wanted`` for its sharding. Gradients go through those that are `is_forward`; an optimizer's
    follow them.
    """

    code: str
    operands: tuple[ShardedArray, ...]
    result: ShardedArray
    is_forward: bool = True


@dataclass(frozen=True)
class TargetMesh:
    """A mesh of a target's devices, with Explicit axes or Auto ones.

    JAX has no parts of axes: where specs name some, each is one of the `jax_axes` (name, size), in the same
    order of devices. `topology` describes a TPU or GPU target, whose devices lie along the axes of `mesh`.
    """

    target: str
    mesh: Mesh
    jax_axes: tuple[tuple[str, int], ...]
    is_explicit: bool = False
    topology: TopologyRequest | None = None

    @property
    def jax_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.jax_axes)

    @property
    def jax_sizes(self) -> tuple[int, ...]:
        return tuple(size for _, size in self.jax_axes)


@dataclass(frozen=True)
class Question:
    """A program to compile for a target.

    Of its `layers` runs each takes what the one before returns last as the first of its `arguments`, and has
    its own of the arrays named in `stacked`. In a train step `gradients` pairs arguments with their
    gradients, whose statements are not among the parts, and `cotangents` results with the arguments that are
    their gradients; `remat` is that of `Training`. In `folder` XLA leaves texts: for `dumps` "passes" the
    module after each pass, for "costs" its schedule too, and the answer then has that and the memory.
    """

    mesh: TargetMesh
    parts: tuple[StatementPart, ...]
    arguments: tuple[ShardedArray, ...] = ()
    results: tuple[ShardedArray, ...] = ()
    layers: int = 1
    stacked: tuple[str, ...] = ()
    gradients: tuple[tuple[str, ShardedArray], ...] = ()
    cotangents: tuple[tuple[str, str], ...] = ()
    remat: str = "none"
    folder: str = ""
    dumps: str = ""


@dataclass(frozen=True)
class ModuleQuestion:
    """A program of the user's to compile for a target.

    `code` is its StableHLO as MLIR's bytes, to which `changes` are made before, and `options` are the
    compiler's, by name. `folder` and `dumps` are those of a `Question`; without costs texts are left only
    where the compiler gives up, and say why.
    """

    mesh: TargetMesh
    code: bytes
    options: tuple[tuple[str, Any], ...] = ()
    changes: tuple[ProgramChange, ...] = ()
    folder: str = ""
    dumps: str = ""


@dataclass(frozen=True)
class CollectiveCode:
    """The collective `name` as JAX code: `program` is its call, and `lines` are those of the function of one
    device's shard ``x``, the last its result. Only some `platforms` may have it, none named: all; on others
    `instead`, another call and its lines, does the same.
    """

    name: str
    program: str
    lines: tuple[str, ...]
    platforms: tuple[str, ...] = ()
    instead: tuple[str, tuple[str, ...]] = ("", ())


@dataclass(frozen=True)
class MemoryTexts:
    """The compiler's account of a device's memory: bytes by name ("argument", "output", "alias", "temporary",
    "peak"), and XLA's reports as text. Of a program that does not fit there are no `sizes`, and `module` is
    the last text before the compiler gave up."""

    sizes: tuple[tuple[str, int], ...] = ()
    assignment: str = ""
    live_ranges: str = ""
    module: str = ""

    @classmethod
    def of(cls, stats: Any, *reports: str) -> MemoryTexts:
        """The sizes in a compiled program's `memory_analysis()`; jaxlib before 0.8 knows no peak."""
        fields = {name: f"{name}_size" for name in ("argument", "output", "alias")}
        fields |= {"temporary": "temp_size", "peak": "peak_memory"}
        sizes = ((name, getattr(stats, f"{field}_in_bytes", None)) for name, field in fields.items())
        return cls(tuple((name, size) for name, size in sizes if size is not None), *reports)


@dataclass(frozen=True)
class Output:
    """The reply to a `Question` or a `ModuleQuestion`.

    `result` goes on to the picture, with the module as its text; the parent adds what it reads there and in
    the other texts: `partitioned` is the module right after SPMD partitioning, `schedule` the
    latency-hiding scheduler's simulation ("" where XLA wrote none), `located` Shardy's module with the place
    of each operation in a program of several statements, `warnings` XLA's log about arrays that it
    replicates. `memory` is there where costs were asked for, and for a program that does not fit.
    `settled_by` are a result whose sharding JAX wants to know, and a spec with which it accepts the
    statement. `reshards` are those of a program of the user's, None where Shardy has refused it, and
    `result_shardings` those that XLA has given its results, as HLO writes them.
    """

    result: TargetResult
    partitioned: str | None = None
    schedule: str = ""
    memory: MemoryTexts | None = None
    located: str = ""
    settled_by: tuple[str, PartitionSpec] | None = None
    warnings: str = ""
    reshards: ExplicitReshards | None = None
    result_shardings: tuple[str, ...] = ()


class Channel:
    """One end of a pair of pipes, over which objects go as pickles.

    Not for concurrent senders, nor concurrent receivers.
    """

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self.incoming, self._outgoing = os.fdopen(read_fd, "rb"), os.fdopen(write_fd, "wb")

    def send(self, message: object) -> None:
        """Write one object; `BrokenPipeError` when nobody reads any more."""
        self._outgoing.write(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))
        self._outgoing.flush()

    def receive(self) -> object:
        """Wait for one object; `EOFError` when the other end is closed."""
        try:
            return pickle.load(self.incoming)
        except pickle.UnpicklingError as error:  # in the middle of one
            raise EOFError from error

    def close(self) -> None:
        self.incoming.close()
        with suppress(BrokenPipeError):  # what nobody has read
            self._outgoing.close()
