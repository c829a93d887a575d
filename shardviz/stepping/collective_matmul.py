"""A collective matmul: an operand that is gathered is multiplied block by block as the blocks arrive, a
result that is summed made block by block before each is sent (Wang et al., "Overlap Communication with
Dependent Computation via Decomposition in Large Deep Learning Models", ASPLOS 2023)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardviz.collectives.values import Ints
from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.plan import LOCAL_OPS, Plan, Step
from shardviz.stepping.collective_run import CollectiveRun

MAX_BLOCKS = 2**16
"""Blocks times members of a group, of which each has its slot."""
NEVER = -1


@dataclass(frozen=True)
class Slot:
    """A stretch of a group's time, in seconds from the beginning: the work on the blocks of one slot, and the
    round that runs beside or before it. Both are empty where nothing is done."""

    work: tuple[float, float]
    sends: tuple[float, float]


@dataclass(frozen=True)
class BlockwiseMatmul:
    """The matmul `einsum` of a plan and the collective `step` beside it, whose rounds `run` has; with
    `is_gather` it brings an operand, else it sums the result.

    The blocks are the chunks of the run, each of which takes its part of the `matmul_seconds` on a device.
    `before` is the step before it that is a matmul, and its seconds, under which an argument can be gathered
    whole ahead of time, as fully sharded data parallelism does."""

    run: CollectiveRun
    step: Step
    einsum: Step
    is_gather: bool
    matmul_seconds: float
    before: tuple[int, float] | None = None

    @cached_property
    def slot_of(self) -> Ints:
        """(members, blocks): the slot in which a member multiplies a block. Slot n follows round n."""
        run = self.run
        members, blocks = run.schedule.pattern.group_size, run.schedule.chunks
        slots = np.full((members, blocks), NEVER)
        if self.is_gather:
            for member in range(members):
                slots[member, run.held_chunks(member, False)] = 0
        for number in range(1, self.rounds + 1):
            sends = run.schedule.round(number).expanded(blocks)
            # What arrives is multiplied after its round, what is sent before it.
            who, slot = (sends.dst, number) if self.is_gather else (sends.src, number - 1)
            new = slots[who, sends.chunk] == NEVER
            slots[who[new], sends.chunk[new]] = slot
        if not self.is_gather:
            slots[slots == NEVER] = self.rounds
        return slots

    @property
    def rounds(self) -> int:
        """The rounds beside which blocks are multiplied: all of a gather, those of a sum that add."""
        phases = [phase for phase in self.run.schedule.phases if phase.rounds]
        return sum(phase.rounds for phase in phases if self.is_gather or phase.sends(0).reduce.any())

    def blocks(self, slot: int, member: int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.slot_of[member] == slot).tolist())

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """The time of every slot: rounds follow one another, and so does the work of the busiest member. Of a
        gather the work of a slot waits for its round; of a sum a round waits for the work before it."""
        block_seconds = self.matmul_seconds / self.run.schedule.chunks
        counts = [int((self.slot_of == slot).sum(axis=1).max(initial=0)) for slot in range(self.rounds + 1)]
        slots = []
        start = self.run.timeline.start
        worked, sent = 0.0, start if self.is_gather else 0.0
        for slot, count in enumerate(counts):
            # A sum starts when its first block is made.
            round_begin = sent if self.is_gather else max(sent, worked + start * (slot == 1))
            took = self.run.timeline[slot - 1].seconds if slot else 0.0
            sent = round_begin + took if slot else sent
            begin = max(worked, sent) if self.is_gather and slot else worked
            worked = begin + count * block_seconds
            slots.append(Slot((begin, worked), (round_begin, sent) if slot else (0.0, 0.0)))
        return tuple(slots)

    @cached_property
    def rest_seconds(self) -> float:
        """Seconds of the rounds after those beside which blocks are multiplied."""
        every = range(self.rounds, self.run.schedule.rounds)
        return math.fsum(self.run.timeline[index].seconds for index in every)

    @property
    def seconds(self) -> float:
        last = self.slots[-1]
        return max(last.work[1], last.sends[1]) + self.rest_seconds

    @property
    def apart_seconds(self) -> float:
        return self.matmul_seconds + self.run.timeline.seconds

    @property
    def exposed_seconds(self) -> float:
        """Seconds of the whole collective that are left when the matmul `before` it has ended."""
        return max(0.0, self.run.timeline.seconds - self._before_seconds)

    @property
    def prefetched_seconds(self) -> float:
        """Seconds of the matmul `before` and of this one, if the whole collective runs beside the former."""
        return max(self._before_seconds, self.run.timeline.seconds) + self.matmul_seconds

    @property
    def _before_seconds(self) -> float:
        return 0.0 if self.before is None else self.before[1]

    @property
    def letter(self) -> str:
        """The dimension along which the blocks lie; "" where they are parts of all of an array."""
        einsum, dim = self.einsum.einsum, self.step.dim
        if einsum is None or dim is None:
            return ""
        if not self.is_gather:
            return einsum.result[dim]
        return einsum.operands[self.einsum.operands.index(self.step.array)][dim]


def matmul_of_step(plan: Plan, placed: PlacedMesh, number: int, run: CollectiveRun) -> BlockwiseMatmul | None:
    """The matmul that step `number` of a plan, from 1, can run beside on a machine: the local step just after
    a gather of its operand, or just before a sum of its result; None where there is none, or its time is not
    known."""
    from shardviz.planner.pricing.costs import price

    step = plan.steps[number - 1]
    pattern = run.schedule.pattern
    if pattern.group_size * run.schedule.chunks > MAX_BLOCKS or pattern.group_size < 2:
        return None
    index = _beside(plan, number)
    if index is None or plan.steps[index - 1].einsum is None:
        return None
    seconds = [step.seconds for step in price(plan, placed).steps]
    took = seconds[index - 1]
    if took is None:
        return None
    is_gather = step.op == "all_gather"
    before = None
    earlier = plan.steps[: number - 1]
    if is_gather and not any(prev.array == step.array and (prev.einsum or prev.function) for prev in earlier):
        matmuls = [index for index, step in enumerate(earlier, 1) if step.einsum is not None]
        hides = seconds[matmuls[-1] - 1] if matmuls else None
        before = None if hides is None else (matmuls[-1], hides)
    return BlockwiseMatmul(run, step, plan.steps[index - 1], is_gather, took, before)


def _beside(plan: Plan, number: int) -> int | None:
    """The number of the local step that makes what a collective sums, or takes what it gathers."""
    step = plan.steps[number - 1]
    if step.op == "all_gather":
        later = range(number + 1, len(plan.steps) + 1)
        index = next((candidate for candidate in later if plan.steps[candidate - 1].op in LOCAL_OPS), None)
        return index if index is not None and step.array in plan.steps[index - 1].operands else None
    is_sum = step.op in ("psum", "psum_scatter") and number > 1
    return number - 1 if is_sum and plan.steps[number - 2].array == step.array else None
