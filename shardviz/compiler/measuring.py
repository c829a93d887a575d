"""A case as a message to the child, and what it measured as a row, with a look at the program that ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.compiler.messages import DeviceMesh, TimeLoop
from shardviz.devices.measurement import Measurement, NoMeasurement
from shardviz.errors import CompilerError, TargetError, plural
from shardviz.hardware.measured import COLLECTIVES
from shardviz.hlo import read_hlo

if TYPE_CHECKING:
    from shardviz.compiler.messages import LoopOutput
    from shardviz.devices.question import Case
    from shardviz.hlo import Collective
    from shardviz.sharding import Mesh
    from shardviz.targets import Target


def loop_request(case: Case, mesh: Mesh, target: Target, runs: int) -> TimeLoop:
    """The message that has the child time a case.

    Raises `TargetError` for a target that runs nothing or can never have as many devices.
    """
    if target.name == "shardy" or target.cluster is not None:
        raise TargetError(f"target {target.name} has no devices to run on", "use cpu or real")
    if target.max_devices is not None and mesh.size > target.max_devices:
        most = plural(target.max_devices, "device")
        raise TargetError(
            f"the mesh {mesh} has {mesh.size:,} devices, and {most} can be simulated", "use a smaller mesh"
        )
    shape = (case.side, case.side) if case.side else (_elements(case),)
    described = DeviceMesh(mesh.axis_names, mesh.axis_sizes, mesh.device_order)
    return TimeLoop(target.name, described, case, shape, runs)


def _elements(case: Case) -> int:
    """Elements of a device's operand."""
    return case.count * case.group_size if case.op in ("psum_scatter", "all_to_all") else case.count


def read_loop(output: LoopOutput, case: Case, mesh: Mesh) -> Measurement | NoMeasurement:
    """The row, with what the compiler made of it that was not asked for. Raises `CompilerError` where it left
    nothing of the collective in the loop."""
    row = output.row
    if isinstance(row, NoMeasurement) or not case.is_collective:
        return row
    # A loop whose length only the run tells has a collective of which nobody knows how often it runs.
    inside = [each for each in read_hlo(output.text, mesh).collectives if each.count is None]
    if not inside:
        raise CompilerError(f"XLA has left no {case.op} in the loop that was to be timed")
    return replace(row, note="; ".join(_notes(case, inside[0])))


def _notes(case: Case, found: Collective) -> Iterator[str]:
    if found.op != COLLECTIVES[case.op]:
        yield f"XLA runs {case.op} as {found.op} here"
    if found.dtype != case.dtype:
        yield f"XLA moves {case.dtype} as {found.dtype} here"
