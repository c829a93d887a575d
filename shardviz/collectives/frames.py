"""A schedule run on numbers: the data of every member after every round, forwards and backwards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardviz.collectives.operation import Cuts, Operation
from shardviz.collectives.schedule import Phase, Schedule, Sends
from shardviz.collectives.trace import Trace
from shardviz.collectives.values import Ints, Small, Values, numpy_dtype
from shardviz.errors import QuestionError
from shardviz.sharding import Mesh, canonical_dtype

MAX_BYTES = 2**30


@dataclass(slots=True, eq=False)
class Piece:
    """A member's piece of one chunk at one time. Equal `datum` means equal data. `arrived`: it came in the
    last round, alone or added to what was there. `needed`: it is part of the result, or will be sent or added
    to."""

    _frames: Frames
    _group: int
    chunk: int
    datum: int
    arrived: bool
    needed: bool

    @property
    def values(self) -> Values | None:
        return self._frames.values(self._group, self.chunk, self.datum)

    @property
    def count(self) -> int:
        return self._frames.trace.count(self.datum)

    @property
    def addends(self) -> tuple[Values, ...] | None:
        """The elements of each contribution; None in frames without numbers."""
        leaves = self._frames.trace.addends(self.datum)
        contributions = [self._frames.values(self._group, self.chunk, leaf) for leaf in leaves]
        known = tuple(values for values in contributions if values is not None)
        return known if len(known) == len(contributions) else None


class Frame:
    """The state of every member after round `number`; 0 is before the first."""

    def __init__(self, frames: Frames, number: int) -> None:
        self.number = number
        self.phase: Phase | None = None
        """The phase of the round; None before the first."""
        self.sends: Sends | None = None
        """The sends of the round, one chunk an entry; None before the first."""
        if number:
            self.phase, within = frames.schedule.phase(number)
            self.sends = self.phase.sends(within).expanded(frames.schedule.chunks)
        self._frames = frames

    def needed(self, member: int) -> Ints:
        held = self._frames.trace.buffer(self.number, member)
        return held.chunk[held.needed]

    def pieces(self, member: int, group: int = 0, chunks: range | None = None) -> tuple[Piece, ...]:
        """The pieces of a member of a group, ordered by chunk; of some `chunks` only, if given."""
        held = self._frames.trace.buffer(self.number, member)
        seen = slice(None)
        if chunks is not None:
            seen = slice(held.chunk.searchsorted(chunks.start), held.chunk.searchsorted(chunks.stop))
        return tuple(
            Piece(self._frames, group, *piece)
            for piece in zip(
                held.chunk[seen].tolist(),
                held.datum[seen].tolist(),
                held.arrived[seen].tolist(),
                held.needed[seen].tolist(),
                strict=True,
            )
        )


class Frames:
    """Every state of a schedule: `frames[0]` before anything is sent, `frames[n]` after round n.

    With an operation, a mesh and `shards`, an array (devices in the mesh's row-major order, shape of a
    shard), pieces have numbers, and every group of the operation's axes runs at the same time. Raises
    `QuestionError` for shards that the operation cannot take, and for more numbers than fit."""

    def __init__(
        self,
        schedule: Schedule,
        operation: Operation | None = None,
        mesh: Mesh | None = None,
        shards: Values | None = None,
    ) -> None:
        self.schedule = schedule
        self.before: Values | None = None
        """Every device's shard, by mesh position."""
        self.cuts: Cuts | None = None
        """The way in which shards are cut into chunks."""
        if operation is None or mesh is None or shards is None:
            return
        self.before, self._operation = shards, operation
        self._positions: Ints = np.array(mesh.groups(operation.axes))
        dtype = canonical_dtype(str(shards.dtype))
        self._prepared = shards.astype(numpy_dtype(operation.moved_dtype(dtype)), copy=False)
        (groups, size), chunks, pattern = self._positions.shape, schedule.chunks, schedule.pattern
        starts_with = chunks if pattern.reduces or pattern.kind == "broadcast" else chunks // size
        largest = -(-math.prod(shards.shape[1:]) // starts_with)
        results = len(shards) * math.prod(operation.larger(shards.shape[1:], size))
        # Of each element's place at the start and at the end there are 8 bytes.
        needed = (groups * self.trace.data * largest + results) * self._prepared.dtype.itemsize
        needed += 16 * chunks * largest
        if needed > MAX_BYTES:
            most = f"{needed / 2**30:,.1f} GiB, more than {MAX_BYTES // 2**30}"
            raise QuestionError(f"the numbers of all steps take {most}", "take a smaller array or mesh")
        self.cuts = operation.cuts(shards.shape[1:], dtype, size, chunks)

    @cached_property
    def trace(self) -> Trace:
        return Trace(self.schedule)

    def __len__(self) -> int:
        return self.schedule.rounds + 1

    def __getitem__(self, number: int) -> Frame:
        if not -len(self) <= number < len(self):
            raise IndexError(f"frame {number} does not exist: there are {len(self)}")
        return Frame(self, number % len(self))

    def values(self, group: int, chunk: int, datum: int) -> Values | None:
        """The elements of a datum of a chunk in one group; None without numbers."""
        if self.cuts is None:
            return None
        elements: Values = self._data[group, datum, : self.cuts.sizes[chunk]]
        return elements

    @cached_property
    def _data(self) -> Values:
        """(groups, data, elements of the largest chunk); a smaller chunk has its elements first."""
        trace, cuts = self.trace, self.cuts
        assert cuts is not None
        shards = self._prepared.reshape(len(self._prepared), -1)[self._positions]
        data = np.zeros((len(self._positions), trace.data, cuts.start.shape[1]), dtype=shards.dtype)
        done = len(trace.leaf_member)
        if shards.size:
            # Where a chunk has no element, any will do: it is never looked at.
            index = cuts.start[trace.leaf_chunk].clip(0)
            data[:, :done] = shards[:, trace.leaf_member[:, None], index]
        for own, received in trace.sums:
            data[:, done : done + len(own)] = self._operation.combined(data[:, own], data[:, received])
            done += len(own)
        return data

    @cached_property
    def after(self) -> Values | None:
        """Every device's result as JAX gives it, by mesh position."""
        if self.cuts is None:
            return None
        groups, size = self._positions.shape
        elements = math.prod(self.cuts.shape)
        pattern, shared = self.schedule.pattern, self.trace.shared()
        if shared is not None and pattern.everyone:
            chunk = np.arange(len(shared))
            one = self._laid_out(self.cuts, np.zeros_like(chunk), chunk, shared, elements)
            result = np.repeat(one, size, axis=0)
        else:
            member, chunk = pattern.ends(self.schedule.chunks)
            datum = self.trace.final(member, chunk)
            result = self._laid_out(self.cuts, member, chunk, datum, size * elements)
        finished = self._operation.finished(result.reshape(groups, size, *self.cuts.shape), size)
        devices = np.empty((groups * size, *self.cuts.shape), dtype=finished.dtype)
        devices[self._positions.reshape(-1)] = finished.reshape(devices.shape)
        return devices

    def _laid_out(self, cuts: Cuts, member: Ints, chunk: Ints, datum: Ints | Small, length: int) -> Values:
        """(groups, length): the data where a member's chunks end; members follow one another."""
        result = np.zeros((len(self._positions), length), dtype=self._prepared.dtype)
        place = cuts.end[chunk]
        used = place >= 0
        place = place + (member * math.prod(cuts.shape))[:, None]
        if used.all():
            result[:, place.reshape(-1)] = self._data[:, datum].reshape(len(result), -1)
        else:
            result[:, place[used]] = self._data[:, datum][:, used]
        return result
