"""The memory of a train step on a device: by what it is for, and at most, in all layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.planner.pricing.priced_steps import PricedStep
from shardviz.planner.problem import Problem


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of a device in a train step of all layers.

    `gradients` are those of the parameters: of one layer the most that is held of them at once, some as
    pending sums, of all others as they stay. `optimizer` is its state. `activations` are what the backward
    pass takes from the forward pass, with each layer's input. `peak` is the most that is held at once, where
    the layers run forward one after the other, then backward from the last to the first, and then are updated
    in place.
    """

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    peak: int


def training_memory(problem: Problem, steps: Sequence[PricedStep]) -> TrainingMemory:
    """The memory of the priced steps of a train step."""
    layers, others = problem.layers, problem.layers - 1
    held: dict[str, list[int]] = {}
    for priced in steps:
        for array in priced.resident:
            held.setdefault(array.name, []).append(array.bytes)
    trained = set(problem.parameters)
    given = sum(held[name][0] for name in trained)
    state = sum(held[old][0] for old, _ in problem.updates if old not in trained)
    gradients = {gradient for name, gradient in problem.gradients if name in trained}
    left = sum(held[gradient][-1] for gradient in gradients)
    most = max(_bytes_of(gradients, priced) for priced in steps)
    kept = _kept_bytes(problem, steps)
    of_others = {"forward": kept, "optimizer": left}
    peak = max(
        priced.live_bytes + others * of_others.get(problem.parts[priced.step.part].phase, max(kept, left))
        for priced in steps
    )
    return TrainingMemory(
        parameters=layers * given,
        gradients=most + others * left,
        optimizer=layers * state,
        activations=layers * kept,
        peak=peak + others * (given + state),
    )


def _bytes_of(names: set[str], priced: PricedStep) -> int:
    """The bytes of some arrays at one step; of an array that a collective moves those of the larger copy."""
    held: dict[str, int] = {}
    for array in priced.resident:
        if array.name in names:
            held[array.name] = max(held.get(array.name, 0), array.bytes)
    return sum(held.values())


def _kept_bytes(problem: Problem, steps: Sequence[PricedStep]) -> int:
    """The bytes of one layer that the forward pass leaves for the backward pass."""
    before = next(each for each in steps if problem.parts[each.step.part].phase != "forward")
    names = _names_kept(problem)
    return sum(array.bytes for array in before.resident if array.name in names)


def _names_kept(problem: Problem) -> set[str]:
    """The arrays of the forward pass, but its parameters, that later statements take."""
    forward = {array.name for part in problem.forward for array in (*part.operands, part.result)}
    later = (part for part in problem.parts if part.phase != "forward")
    taken = {operand.name for part in later for operand in part.operands}
    return (forward & taken).difference(problem.parameters)
