"""All that the views of one collective show: what it is, what its rounds do, what they cost, who agrees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shardviz.collectives import Frames, LowerBound, Operation, Phase, Schedule
    from shardviz.collectives.judgement import Judgement
    from shardviz.compiler import Ran
    from shardviz.hardware import Row, Timeline, Topology, Wire
    from shardviz.sharding import Mesh


@dataclass(frozen=True)
class Walk:
    """One collective on one mesh by one algorithm.

    `shape`, `dtype` (HLO's name) and `spec` (as it is to be shown) are those of the global array,
    `shard_shape` that of a device's part. `chunk_bytes` are the bytes of every chunk, or of each.
    `bytes` is the larger of a device's operand and result, the payload of `bound`.
    `rows` compares all algorithms for the same question, the chosen one among them.
    `final_positions` are the mesh positions whose results, one after another on dimension 0, are what
    `shard_map` returns for `final_spec`: ``P()`` takes one copy of what all devices have.
    `ran` and `judgement` are None where JAX was not asked; without numbers, `frames` has none.
    """

    operation: Operation
    mesh: Mesh
    frames: Frames
    shape: tuple[int, ...]
    dtype: str
    spec: str
    shard_shape: tuple[int, ...]
    chunk_bytes: int | NDArray[np.int64]
    bytes: int
    timeline: Timeline
    topology: Topology
    wire: Wire
    bound: LowerBound
    rows: tuple[Row, ...]
    final_spec: str
    final_positions: tuple[int, ...]
    ran: Ran | None = None
    judgement: Judgement | None = None

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Mesh positions of the members of every group."""
        return self.mesh.groups(self.operation.axes)

    @cached_property
    def places(self) -> dict[int, tuple[int, int]]:
        """Group and member of every mesh position."""
        return {
            position: (number, member)
            for number, group in enumerate(self.groups)
            for member, position in enumerate(group)
        }

    def held_chunks(self, member: int, ended: bool) -> NDArray[np.int64]:
        """The chunks with which a member starts, or with which it has to end."""
        members, chunks = self._ends if ended else self._starts
        return chunks[members.searchsorted(member) : members.searchsorted(member + 1)]

    @cached_property
    def _starts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.schedule.pattern.starts(self.schedule.chunks)

    @cached_property
    def _ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.schedule.pattern.ends(self.schedule.chunks)

    @cached_property
    def final(self) -> NDArray[Any] | None:
        """What `shard_map` returns; None without numbers or positions, and where scalars cannot be joined."""
        import numpy as np

        after = self.frames.after
        count = len(self.final_positions)
        if after is None or not count or (after.ndim == 1 and count > 1):
            return None
        chosen = after[list(self.final_positions)]
        return chosen[0] if len(chosen) == 1 else np.concatenate(chosen)

    @property
    def result_dtype(self) -> str:
        """HLO's name of the results' dtype."""
        return self.dtype if self.frames.cuts is None else self.frames.cuts.dtype

    def phase_name(self, phase: Phase) -> str:
        """What the rounds of a phase do together, and along which mesh axes: "all-gather along X"."""
        axes = ", ".join(self.operation.axes[axis] for axis in phase.along)
        return f"{phase.name} along {axes}" if axes else phase.name

    @property
    def schedule(self) -> Schedule:
        """The rounds that the frames come from."""
        return self.frames.schedule
