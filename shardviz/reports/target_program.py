"""A program of the user's as a target has compiled it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shardviz.errors import CompilerError, ShardvizError, TargetError
from shardviz.hlo import HloModule
from shardviz.reports.arrays import ProgramArray, ProgramEnds, arrays_of, partitioned_arrays
from shardviz.reports.entries import CollectiveEntry, entries_of
from shardviz.reports.lowered_module import ExplicitReshards, LoweredModule
from shardviz.reports.program_report import ProgramReport, TimesAnswer, answer_times, report_of
from shardviz.reports.rematerialization import Rematerialization, unwarned_rematerializations
from shardviz.reports.target_result import TargetResult, bytes_sent, without_answer
from shardviz.reports.why import Reason, TrainStep, lost_batch, reasons
from shardviz.sharding import Mesh
from shardviz.sharding.array import BITS

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.hlo import Collective, ShardyModule
    from shardviz.timeline.program_timeline import MemoryReport


class OutOfMemoryError(CompilerError):
    """A program that does not fit into a device's memory. `memory` is what would lie there at the peak."""

    def __init__(self, message: str, hint: str, memory: MemoryReport) -> None:
        super().__init__(message, hint)
        self.memory = memory


@dataclass(frozen=True)
class TargetProgram:
    """One target's answer: the `module` that it has made of the program, None where it has made none.

    `mesh` is the program's mesh whose axes the collectives name; `notes`, on how it was read, and
    `lost_donations` are sentences. `warned` are the arrays that XLA says it replicates on every device.
    `reshards` are None where Shardy has refused the program, and `lowered`, what the target was given, where
    it was asked nothing. A program that does not fit may have a module, too."""

    answer: TargetResult
    module: HloModule | ShardyModule | None = None
    mesh: Mesh | None = None
    notes: tuple[str, ...] = ()
    lost_donations: tuple[str, ...] = ()
    warned: tuple[Rematerialization, ...] = ()
    reshards: ExplicitReshards | None = field(default=None, repr=False)
    lowered: LoweredModule | None = field(default=None, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    result_shardings: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        return self.answer.target

    @property
    def memory(self) -> MemoryReport | None:
        """Bytes of one device by the compiler's account; None where the target has none."""
        return self.answer.memory

    @property
    def bytes_sent(self) -> int | None:
        """The least bytes that one device sends in all collectives; None without a program."""
        return None if self.module is None else bytes_sent(self.module.collectives)

    def report(self, told: TimesAnswer) -> ProgramReport | None:
        """Its collectives with what they cost, by the times that were told of it; None without a program."""
        if self.module is None:
            return None
        return report_of(self.module, None if told.times is None else told.times.model)

    @cached_property
    def arrays(self) -> tuple[ProgramArray, ...]:
        """Every array of the program, with what of it is waste; none without a program."""
        module, lowered, mesh = self.module, self.lowered, self.mesh
        if module is None or lowered is None or mesh is None:
            return ()
        ends = ProgramEnds(lowered.arguments, lowered.results, self.result_shardings)
        values = self.explicit_reshards.values
        if not isinstance(module, HloModule):
            return partitioned_arrays(self.answer.text, mesh, ends, values)
        return arrays_of(module, mesh, ends, values, () if self.memory is None else self.memory.buffers)

    @cached_property
    def reasons(self) -> tuple[Reason, ...]:
        """The reason of each of the entries of its report."""
        return reasons(self._entries, self.mesh, self.explicit_reshards)

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on what the program loses silently: memory that is donated, the split of its batch."""
        if not self.reshards:
            return self.lost_donations
        told = zip(self._entries, self.reasons, strict=True)
        lost = lost_batch(told, TrainStep(self.explicit_reshards))
        return (*self.lost_donations, *filter(None, [lost]))

    @cached_property
    def _entries(self) -> tuple[CollectiveEntry, ...]:
        return () if self.module is None else entries_of(self.module)

    @cached_property
    def rematerializations(self) -> tuple[Rematerialization, ...]:
        """The arrays that are fully replicated in order to reshard them: those of which XLA has warned, and
        those that its program shows. Of Shardy's own program there are none."""
        mesh, reshards = self.mesh, self.reshards
        if not isinstance(self.module, HloModule) or not reshards or mesh is None or mesh.size == 1:
            return self.warned
        return self.warned + unwarned_rematerializations(self._entries, reshards.meetings, mesh, self.warned)

    @property
    def explicit_reshards(self) -> ExplicitReshards:
        """`reshards`, empty where Shardy has refused the program."""
        return self.reshards or ExplicitReshards()

    def times(self, machine: Machine | None = None) -> TimesAnswer:
        """When each instruction runs on the target's own hardware, or on a machine; or why it has none."""
        answer = self.answer
        if answer.memory is not None and answer.status == "ok" and not answer.memory.buffers:
            # Sums alone: what lies there, and when, is estimated from the program's order.
            answer = replace(answer, memory=None)
        module = self.module if isinstance(self.module, HloModule) else None
        return answer_times(answer, self.mesh or Mesh((), ()), machine, module)

    def check(self) -> None:
        """Raise what the target said where it has made no program of it, `OutOfMemoryError` where that would
        not fit."""
        answer = self.answer
        if answer.status == "unavailable":
            raise TargetError(answer.error, answer.hint)
        if answer.status != "ok":
            named = answer.target in answer.error.split()
            message = f"{'' if named else f'{answer.target}: '}{answer.error}"
            if answer.memory is not None and answer.memory.over_bytes:
                raise OutOfMemoryError(message, answer.hint, answer.memory)
            raise CompilerError(message, answer.hint)


def without_program(target: str, error: ShardvizError) -> TargetProgram:
    """In the place of an answer, one that says why there is none."""
    return TargetProgram(without_answer(target, error))


def widened_types(text: str, collectives: Sequence[Collective]) -> list[str]:
    """Sentences where XLA for CPU may have computed the floats of the arguments and results, which the first
    line of its text lists, in a wider type, and moved them so."""
    moved = {one.dtype for one in collectives if one.wire_bytes and re.match(r"bf16|f\d", one.dtype)}
    widest = max(moved, key=BITS.__getitem__, default="")
    given = dict.fromkeys(re.findall(r"\b(bf16|f\d\w*)\[", text.partition("\n")[0]))
    narrower = [dtype for dtype in given if widest and BITS[dtype] < BITS[widest]]
    return [
        f"XLA for CPU computes {dtype} as {widest}: what carries {widest} here may carry {dtype} on a TPU or "
        f"GPU, 1/{BITS[widest] // BITS[dtype]} of the bytes"
        for dtype in narrower
    ]
