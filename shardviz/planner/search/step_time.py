"""The seconds of a step from those of its work and its communication, by what is taken to overlap.

Communication that gathers parameters or reduces their gradients can run beside the work of other layers; that
of activations stands between two statements of a layer. By default the first is hidden behind the work of its
pass (`priced_plan`) as far as that lasts, and the second is waited for. ``none`` hides nothing, so that a
step is the sum of its plan's steps; ``all`` hides everything, as "How to Scale Your Model" counts: each pass
is the longer of its work and its communication.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from shardviz.planner.pricing.priced_plan import Passes, by_pass, overlapped
from shardviz.planner.search.program_tables import Multipliers, ProgramSharding
from shardviz.planner.states.moves import Axes

Overlap = Literal["none", "parameters", "all"]
OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)
LITTLE = 1e-3
"""The least weight of a side of the longer of two, so that of equal sums the one with less of it is
chosen."""


@dataclass(frozen=True)
class StepTime:
    """The seconds of a step of one device.

    `work` is local; `communication` by the axes of its groups, all of it; `exposed` the part of it that is
    not hidden; `bubble` what a pipeline waits. `seconds` are those of the step.
    """

    work: float
    communication: tuple[tuple[Axes, float], ...]
    exposed: float
    bubble: float
    seconds: float

    @property
    def communication_seconds(self) -> float:
        return sum(seconds for _, seconds in self.communication)


def step_time(found: ProgramSharding, overlap: Overlap, layers: float, bubble: float = 0.0) -> StepTime:
    """The time of so many layers on each device; `bubble` is what a pipeline waits, as a part of the rest."""
    work, hidden, waited = overlapping(found, overlap)
    busy = (overlapped(work, hidden) + sum(waited)) * layers
    by_axes: dict[Axes, float] = {}
    for _, axes, seconds in (*found.exposed, *found.hidden):
        by_axes[axes] = by_axes.get(axes, 0.0) + seconds * layers
    local = sum(work) * layers
    return StepTime(local, tuple(by_axes.items()), busy - local, busy * bubble, busy * (1 + bubble))


def overlapping(found: ProgramSharding, overlap: Overlap) -> tuple[Passes, Passes, Passes]:
    """By pass the seconds of one layer's work, of the communication that it can hide, and of all other."""
    exposed, hidden = (
        by_pass((phase, seconds) for phase, _, seconds in each) for each in (found.exposed, found.hidden)
    )
    every = exposed[0] + hidden[0], exposed[1] + hidden[1]
    none = 0.0, 0.0
    return found.work, *{"none": (none, every), "all": (every, none), "parameters": (hidden, exposed)}[
        overlap
    ]


def multipliers(overlap: Overlap, shares: Passes, memory: float) -> Multipliers:
    """Weights whose least sum is a bound on the time of a step: of the longer of work and hidden
    communication they take, in each pass, the part `shares` of the second, and of the first the rest."""
    if overlap == "none":
        return Multipliers(memory=memory)
    work = max(1 - shares[0], LITTLE), max(1 - shares[1], LITTLE)
    hidden = max(shares[0], LITTLE), max(shares[1], LITTLE)
    return Multipliers(work, hidden if overlap == "all" else (1.0, 1.0), hidden, memory)
