"""Who can be asked: the names after `--target`, and how large a mesh each can hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import TargetError, place, quote

if TYPE_CHECKING:
    from shardviz.planner.problem import Problem
    from shardviz.sharding import Mesh

MAX_CPU_DEVICES = 2048
"""XLA's CPU client numbers the devices of its second process from 2048 (jaxlib 0.10 and 0.12)."""

MAX_PARTITIONS = 2**31 - 1
"""A module states its number of partitions in 32 bits (`mhlo.num_partitions`)."""


@dataclass(frozen=True)
class Target:
    """One teller. `max_devices` is None where only the child can know how many there are."""

    name: str
    description: str
    max_devices: int | None = None


TARGETS = {
    target.name: target
    for target in (
        Target("shardy", "Shardy, the partitioner inside jaxlib: any mesh, no devices", MAX_PARTITIONS),
        Target("cpu", f"XLA for up to {MAX_CPU_DEVICES:,} simulated CPU devices", MAX_CPU_DEVICES),
        Target("real", "XLA for the devices that JAX finds here"),
    )
}
"""Every target of this version, by name."""

_TPU = re.compile(r"(\d{1,9}\*)?(v\d+[a-z]*|tpu\w*)(:[\dx]*)?", re.ASCII)
_GPU = re.compile(r"([ahb]\d{2,3}|gb\d{3})(:[\dx]*)?", re.ASCII)


def parse_targets(text: str) -> tuple[Target, ...]:
    """Read ``shardy,cpu``: targets in the order given, each once; ``none`` alone is no target.

    Raises `TargetError` for a name that is empty or unknown, or that this version cannot answer.
    """
    if text.strip().lower() == "none":
        return ()
    found: dict[str, Target] = {}
    start = 0
    for piece in text.split(","):
        name = piece.strip().lower()
        where = start + len(piece) - len(piece.lstrip())
        target = TARGETS.get(name)
        if target is None:
            raise _unknown(piece.strip(), text, where)
        found[name] = target
        start += len(piece) + 1
    return tuple(found.values())


def check_axis_types(problem: Problem) -> None:
    """Raise `TargetError` for a sum left pending under Auto axes, which JAX refuses whoever is asked."""
    if problem.axis_types != "auto":
        return
    for array in (*problem.arguments, *(part.result for part in problem.parts)):
        if array.spec is not None and array.spec.unreduced:
            raise TargetError(
                f"JAX leaves no array unreduced under Auto axes, and {array.name} is unreduced over "
                f"{', '.join(array.spec.unreduced)}",
                "add --axis-types explicit, or ask the planner alone with --target none",
            )


def check_mesh(target: Target, mesh: Mesh) -> None:
    """Raise `TargetError` when the mesh has more devices than the target can ever have."""
    if target.max_devices is not None and mesh.size > target.max_devices:
        smaller = target.max_devices < MAX_PARTITIONS
        raise TargetError(
            f"the mesh {mesh} has {mesh.size:,} devices but target {target.name} takes at most "
            f"{target.max_devices:,}",
            "ask --target shardy, which needs no devices" if smaller else "use smaller axes",
        )


def _unknown(piece: str, text: str, start: int) -> TargetError:
    everything = f"the targets are {', '.join(TARGETS)}, or none"
    where = place(text, start, start + max(1, len(piece)))
    if not piece:
        return TargetError(f"a target is missing {where}", everything)
    name = piece.lower()
    if name == "none":
        return TargetError(f"none stands beside other targets {where}", "give none alone, or leave it out")
    for kind, pattern in (("TPU", _TPU), ("GPU", _GPU)):
        if len(name) <= 40 and pattern.fullmatch(name):
            return TargetError(
                f"{quote(piece)} is a {kind} target, which this version cannot answer, {where}",
                f"it answers {', '.join(TARGETS)}; shardy takes a mesh of any size",
            )
    return TargetError(f"unknown target {quote(piece)} {where}", _suggestion(name) or everything)


def _suggestion(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, TARGETS, n=1) if len(name) <= 40 else []
    return f"did you mean {close[0]}? The targets are {', '.join(TARGETS)}" if close else ""
