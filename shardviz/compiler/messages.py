"""The messages between the two processes, the pipes for them, and the end of one with the other. Before its
reply to a call the child sends, as text, what it is doing now: "lowering". Every import that this file needs
delays its first answer."""

from __future__ import annotations

import os
import pickle
import re
import signal
import sys
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
    """To the child: call a function of a file in `child/`, such as "answer.layout"."""

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

    `code` is its JAX expression of ``operands`` and, where JAX is told how to split the result, ``wanted``.
    That of the one that `is_last` is the program's."""

    code: str
    operands: tuple[ShardedArray, ...]
    result: ShardedArray
    is_last: bool = False


@dataclass(frozen=True)
class TargetMesh:
    """A mesh of a target's devices; `topology` describes those of a TPU or GPU target. JAX has no parts of
    axes: where specs name some, each is one of the `jax_axes` (name, size)."""

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
    """A program to compile for a target: `program` is the code of its functions, which call ``module``, the
    child's `Program`, for each of the `parts` by its number. In `folder` XLA leaves the module after each
    pass (`dumps` "passes"), or its "costs"."""

    mesh: TargetMesh
    parts: tuple[StatementPart, ...]
    arguments: tuple[ShardedArray, ...] = ()
    results: tuple[ShardedArray, ...] = ()
    program: str = ""
    folder: str = ""
    dumps: str = ""


@dataclass(frozen=True)
class ModuleQuestion:
    """A program of the user's to compile for a target: `code` is its StableHLO as MLIR's bytes, to which
    `changes` are made before, and `options` are the compiler's. `folder` and `dumps` are those of a
    `Question`; without costs texts are left only where the compiler gives up."""

    mesh: TargetMesh
    code: bytes
    options: tuple[tuple[str, Any], ...] = ()
    changes: tuple[ProgramChange, ...] = ()
    folder: str = ""
    dumps: str = ""


@dataclass(frozen=True)
class CollectiveCode:
    """The collective `name` as JAX code: `program` is its call, and `lines` are those of the function of one
    device's shard ``x``, the last its result. Where only some `platforms` have it, `instead`, another call
    and its lines, does the same on others."""

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
        """The sizes in a compiled program's `memory_analysis()`."""
        fields = {name: f"{name}_size" for name in ("argument", "output", "alias")}
        fields |= {"temporary": "temp_size", "peak": "peak_memory"}
        return cls(tuple((name, getattr(stats, f"{own}_in_bytes")) for name, own in fields.items()), *reports)


@dataclass(frozen=True)
class Output:
    """The reply to a `Question` or a `ModuleQuestion`.

    `result` goes on to the picture; the parent adds what it reads in the texts: `partitioned` is the module
    right after SPMD partitioning, `schedule` the latency-hiding scheduler's simulation ("" where XLA wrote
    none), `located` Shardy's module with the place of each operation, `warnings` XLA's log about arrays that
    it replicates. `memory` is there with costs, and for a program that does not fit. `settled_by` is a result
    whose sharding JAX wants to know, and a spec that it accepts. `reshards` are None where Shardy has refused
    the program, and `shardings` are those of arguments and results as HLO writes them."""

    result: TargetResult
    partitioned: str | None = None
    schedule: str = ""
    memory: MemoryTexts | None = None
    located: str = ""
    settled_by: tuple[str, PartitionSpec] | None = None
    warnings: str = ""
    reshards: ExplicitReshards | None = None
    shardings: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def shardings_of(executable: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Those of a compiled program's arguments and of its results, as HLO writes them; none on one device."""
    of_xla = sys.modules["jaxlib.xla_client"].HloSharding  # where there is a program, JAX is loaded
    ends = (executable.get_parameter_shardings(), executable.get_output_shardings())
    arguments, results = (tuple(str(of_xla.from_proto(one)) for one in end or ()) for end in ends)
    return arguments, results


class Channel:
    """One end of a pair of pipes, over which objects go as pickles, for one sender and one receiver."""

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


def end_with_parent() -> None:
    """On Linux, be killed with the parent even while a compiler holds the interpreter lock."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
