"""A compiled program: its collectives with what they cost, and its time and memory on a machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.hlo import read_hlo
from shardviz.reports.entries import CollectiveEntry, entries_of
from shardviz.timeline.of_program import timed_program

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.hardware.placement import Placement
    from shardviz.hlo import HloModule, ShardyModule
    from shardviz.sharding import Mesh
    from shardviz.timeline.program_timeline import ProgramTimeline


@dataclass(frozen=True)
class ProgramReport:
    """A program as one compiler left it. `entries` are in program order; `timeline` has its time and its
    memory, None where no machine prices it."""

    module: HloModule | ShardyModule
    entries: tuple[CollectiveEntry, ...]
    timeline: ProgramTimeline | None = None


def report_of(module: HloModule | ShardyModule, timeline: ProgramTimeline | None = None) -> ProgramReport:
    """The report on a module that was read with origins, timed where there is its timeline."""
    return ProgramReport(module, entries_of(module, timeline), timeline)


def program_report(
    text: str,
    machine: Machine | None = None,
    *,
    mesh: Mesh | None = None,
    placement: Placement | None = None,
    infer: bool = False,
) -> ProgramReport:
    """The report on HLO text, with seconds where there is a machine.

    Raises what `read_hlo` and, with a machine, `timed_program` raise.
    """
    if machine is None:
        slices = None if placement is None else placement.slices
        return report_of(read_hlo(text, mesh, infer=infer, origins=True, slices=slices))
    return report_of(*timed_program(text, machine, mesh=mesh, placement=placement, infer=infer, origins=True))
