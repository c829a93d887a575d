"""The collectives that a train step has by design, proved by its arguments and its sums.

A step returns its state anew and not its batch: arguments whose types no result has are data, and the axes
that split the first split dimension of all of them split the batch. A sum over these axes while gradients are
taken, of an array with a parameter's dimensions, is a gradient: nothing else contracts the batch. What has no
such proof is called nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from shardviz.hlo.arguments import pieces_of
from shardviz.hlo.named_scopes import program_place
from shardviz.reports.explicit_reshards import ExplicitReshards, Meeting, SplitArgument


class TrainStep:
    """A program with explicit reshards, if it is a train step."""

    def __init__(self, program: ExplicitReshards) -> None:
        self.program = program
        data = [one for one in program.arguments if any(one.spec.dims) and not one.is_returned]
        split = [{*next(filter(None, one.spec.dims))} for one in data]
        self.batch_axes = frozenset(set.intersection(*split)) if split else frozenset()
        self._state = [one for one in program.arguments if one.is_returned]

    def is_gradient(self, meeting: Meeting) -> bool:
        """Return whether a sum is of a parameter's gradient, over axes that split the batch."""
        is_backward = program_place(meeting.name).phase == "backward"
        over_batch = {*meeting.axes} <= self.batch_axes
        return meeting.kind == "sum" and is_backward and over_batch and self._places(meeting.shape) > 0

    def sums_once(self, meeting: Meeting, runs: int | None) -> bool:
        """Return whether all gradients like this one are summed no more often than there are parameters of
        its shape: not in every micro-batch. `runs` are those of a collective for it."""
        alike = (
            each.calls
            for each in self.program.meetings
            if each.axes == meeting.axes and _dims(each.shape) == _dims(meeting.shape)
            if self.is_gradient(each)
        )
        return runs is not None and 0 < sum(alike) * runs <= self._places(meeting.shape)

    def gathers_parameter(self, path: str, meeting: Meeting, runs: int | None) -> bool:
        """Return whether the argument at `path` is a parameter that FSDP stores in parts: its gradient is
        summed over the axes over which it is gathered, in a gather that no micro-batch repeats."""
        for one in self._state:
            layers = _layers(one, meeting.shape)
            if one.name == path and layers and runs is not None and runs <= layers:
                return {*meeting.axes} <= self.batch_axes and any(
                    {*meeting.axes} <= {*each.axes} and _layers(one, each.shape) == layers
                    for each in self.program.meetings
                    if self.is_gradient(each)
                )
        return False

    def lost_batch(self) -> Meeting | None:
        """The first place at which a value that is split as the batch is, outside of the gradients, is split
        over its axes no longer: from there on every device works on more than its part."""
        state = {one.name for one in self._state}
        for each in self.program.meetings:
            before, after = (frozenset(chain(*spec.dims)) for spec in (each.before, each.after))
            lost = (before - after) & self.batch_axes
            is_backward = program_place(each.name).phase == "backward"
            if each.kind == "reshard" and lost and not is_backward and each.argument not in state:
                return each
        return None

    @property
    def state(self) -> dict[str, SplitArgument]:
        """The arguments that the step returns anew, by their paths."""
        return {one.name: one for one in self._state}

    def _places(self, shape: Sequence[int]) -> int:
        """The parameters with these dimensions, those of every layer counted where they are stacked."""
        trees: Counter[tuple[str, ...]] = Counter()
        for one in self._state:
            trees[_tree(one.name)] += _layers(one, shape)
        return min(filter(None, trees.values()), default=0)


def _tree(path: str) -> tuple[str, ...]:
    """The steps to the tree of an argument: parameters and their states in an optimizer have one each."""
    first, *rest = pieces_of(path) or [""]
    return (first, *(each for each in rest[:1] if each.startswith(".") or "param" in each))


def _layers(one: SplitArgument, shape: Sequence[int]) -> int:
    """1 where an argument has these dimensions in some order, their number where it stacks arrays of them,
    else 0."""
    if _dims(one.shape) == _dims(shape):
        return 1
    return one.shape[0] if one.shape and _dims(one.shape[1:]) == _dims(shape) else 0


def _dims(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(size for size in shape if size > 1))
