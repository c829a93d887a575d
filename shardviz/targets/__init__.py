"""The targets: their names after `--target`, and how large a mesh each can hold.

Files beside this one: what is `installed`, and the `hardware` of targets, all of them in groups.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from shardviz.errors import TargetError, place, quote

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.planner.problem import Problem
    from shardviz.sharding import Mesh

ProcessName = Literal["simulated", "real", "tpu", "cuda"]
"""The process that answers: JAX can be set up for one of these in a process."""

MAX_CPU_DEVICES = 2048
"""XLA's CPU client numbers the devices of its second process from 2048 (jaxlib 0.10 and 0.12)."""

UNSAFE = ("s2", "u2")
"""Types whose values XLA for CPU mixes up, or on which it dies (jaxlib 0.10 and 0.12)."""

MAX_PARTITIONS = 2**31 - 1
"""A module states its number of partitions in 32 bits (`mhlo.num_partitions`)."""


@dataclass(frozen=True)
class Target:
    """A partitioner or a compiler. `max_devices` is None where only the child can know how many there are.

    `machine` is the hardware of a TPU or GPU target, whose mesh takes all of its `max_devices`.
    """

    name: str
    description: str
    max_devices: int | None = None
    process: ProcessName = "simulated"
    machine: Machine | None = None

    @property
    def platform(self) -> str:
        """The platform of JAX for which a program is lowered; for Shardy any does."""
        return self.process if self.machine is not None else "cpu"


TARGETS = {
    target.name: target
    for target in (
        Target("shardy", "Shardy, the partitioner inside jaxlib: any mesh, no devices", MAX_PARTITIONS),
        Target("cpu", f"XLA for up to {MAX_CPU_DEVICES:,} simulated CPU devices", MAX_CPU_DEVICES),
        Target("real", "XLA for the devices that JAX finds here", process="real"),
    )
}
"""The targets without a size, by name."""

EXAMPLES = "v5e:2x4 or h100:8"


def parse_targets(text: str) -> tuple[Target, ...]:
    """Read ``shardy,cpu,v5e:2x4,h100:8``: targets in the order given, each once; none for ``none``.

    Raises `TargetError` for a name that is empty or unknown, and for hardware that cannot be.
    """
    if text.strip().lower() == "none":
        return ()
    found: dict[str, Target] = {}
    start = 0
    for piece in text.split(","):
        target = _target(piece.strip(), text, start + len(piece) - len(piece.lstrip()))
        found[target.name] = target
        start += len(piece) + 1
    return tuple(found.values())


def check_axis_types(problem: Problem) -> None:
    """Raise `TargetError` for a sum left pending under Auto axes, which JAX refuses for every target."""
    if problem.axis_types != "auto":
        return
    for array in (*problem.arguments, *(part.result for part in problem.parts)):
        if array.spec is not None and array.spec.unreduced:
            raise TargetError(
                f"JAX leaves no array unreduced under Auto axes, and {array.name} is unreduced over "
                f"{', '.join(array.spec.unreduced)}",
                "add --axis-types explicit, or use --target none to ask the planner alone",
            )


def check_devices(problem: Problem) -> None:
    """Raise `TargetError` for an argument on other devices, which JAX refuses for every target."""
    for array in problem.arguments:
        if array.spec is not None and array.spec.devices:
            spec = replace(array.spec, devices=())
            raise TargetError(
                f"JAX runs a program on one mesh, and {array.name} is {array.spec}",
                f"move it first, by jax.device_put({array.name}, NamedSharding(mesh, {spec})); the planner "
                "alone, with --target none, plans that too",
            )


def check_mesh(target: Target, mesh: Mesh) -> None:
    """Raise `TargetError` when a mesh has more devices than the target can ever have, or others."""
    machine = target.machine
    if machine is not None and mesh.size != machine.devices:
        from shardviz.hardware.machine import another_size

        raise TargetError(*another_size(machine, mesh, "--target"))
    if machine is None and target.max_devices is not None and mesh.size > target.max_devices:
        smaller = target.max_devices < MAX_PARTITIONS
        raise TargetError(
            f"the mesh {mesh} has {mesh.size:,} devices but target {target.name} takes at most "
            f"{target.max_devices:,}",
            "ask --target shardy, which needs no devices" if smaller else "use smaller axes",
        )


def _target(piece: str, text: str, start: int) -> Target:
    """One target, which stands at `start` of all the text."""
    name = piece.lower()
    if name in TARGETS:
        return TARGETS[name]
    unsized = name.partition(":")[0].rpartition("*")[2].strip()
    if unsized in TARGETS:
        where = place(text, start, start + len(name))
        hint = f"write {unsized}; its devices are as many as the mesh's"
        raise TargetError(f"{unsized} takes no size, {where}", hint)
    # Only now: most questions name no hardware.
    from shardviz.hardware.clusters import Fault, hardware_words, parse_cluster

    try:
        machine = parse_cluster(name)
    except Fault as fault:
        where = place(text, start + fault.start, start + fault.stop)
        raise TargetError(f"{fault.problem} {where}", fault.hint) from None
    if machine is None:
        raise _unknown(piece, text, start)
    words = f"XLA for {hardware_words(machine)}"
    return Target(machine.name, words, machine.devices, machine.family.process, machine)


def _unknown(piece: str, text: str, start: int) -> TargetError:
    everything = f"the targets are {', '.join(TARGETS)}, or none, and hardware such as {EXAMPLES}"
    where = place(text, start, start + max(1, len(piece)))
    if not piece:
        return TargetError(f"a target is missing {where}", everything)
    if piece.lower() == "none":
        return TargetError(f"none stands beside other targets {where}", "give none alone, or leave it out")
    from difflib import get_close_matches

    close = get_close_matches(piece.lower(), TARGETS, n=1) if len(piece) <= 40 else []
    hint = f"did you mean {close[0]}? shardviz targets lists all" if close else everything
    return TargetError(f"unknown target {quote(piece)} {where}", hint)
