"""The problem: a mesh, and the statements that run on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from shardviz.planner.problem.statement import Statement, is_floating, statement_text
from shardviz.planner.problem.training import Training
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

Objective = Literal["given", "time", "bytes"]
"""What a plan minimises first: the estimated seconds of its steps in sequence, with the work divided as the
given arrays are ("given") or in any way ("time"), or the bytes that a device sends."""


class PaddedDim(NamedTuple):
    """A dimension of `size` elements that is padded to more, so that its axes divide it (`padding`)."""

    dim: str
    size: int
    padded: int


@dataclass(frozen=True)
class Problem:
    """A question to the planner and the compilers. Built from text by `problem_from_text`.

    `parts` are in an order in which they can run. `returned` are the names of results that the program
    returns beside the last. `layers` is how often the whole program runs, one after the other. `padding` are
    the dimensions whose sizes in the arrays are larger than asked. `objective` is what its plan minimises.

    A train step (`training.with_backward`) says so in `training`. Its `gradients` are pairs of names: of each
    result of the forward statements and the argument that is its gradient, then of each argument and its
    gradient, which is returned, or used by the optimizer. The same gradients are `jax.grad` by these
    arguments of the sum of the forward results, each multiplied by the argument that is its gradient.
    `updates` are pairs of arguments and what the optimizer makes of them, in their place.
    """

    mesh: Mesh
    parts: tuple[Statement, ...]
    axis_types: Literal["auto", "explicit"] = "auto"
    returned: tuple[str, ...] = ()
    layers: int = 1
    training: Training | None = None
    gradients: tuple[tuple[str, str], ...] = ()
    padding: tuple[PaddedDim, ...] = ()
    objective: Objective = "given"
    updates: tuple[tuple[str, str], ...] = ()

    @property
    def arguments(self) -> tuple[ShardedArray, ...]:
        """The arrays that the program takes, in the order in which it uses them first."""
        found: dict[str, ShardedArray] = {}
        made: set[str] = set()
        for part in self.parts:
            for operand in part.operands:
                if operand.name not in made:
                    found.setdefault(operand.name, operand)
            made.add(part.result.name)
        return tuple(found.values())

    @property
    def is_chain(self) -> bool:
        """Each statement is an einsum whose first operand is the result before it, used nowhere else."""
        follows = all(part.operands[0].name == before.result.name for before, part in pairwise(self.parts))
        used = [operand.name for part in self.parts for operand in part.operands]
        plain = all(part.function == "multiply" and not part.merged and not part.whole for part in self.parts)
        return follows and plain and not self.returned and len(set(used)) == len(used)

    @property
    def forward(self) -> tuple[Statement, ...]:
        """The statements that are not there for training."""
        return tuple(part for part in self.parts if part.phase == "forward")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the arguments that training changes: those of floating point but the program's input.

        The input is its integers, such as tokens, and what has all dimensions of one of these; where it has
        none, its first argument.
        """
        arguments = replace(self, parts=self.forward).arguments
        integers = [{*array.dims} for array in arguments if not is_floating(array)]
        floating = [array for array in arguments if is_floating(array)]
        if not integers:
            return tuple(array.name for array in floating[1:])
        return tuple(array.name for array in floating if not any(dims <= {*array.dims} for dims in integers))

    @property
    def results(self) -> tuple[str, ...]:
        """The names of all results that the program returns."""
        return tuple(dict.fromkeys((*self.returned, self.result.name)))

    @property
    def is_tree(self) -> bool:
        """Every array is used once at most, and only the last result is returned."""
        used = [operand.name for part in self.parts for operand in part.operands]
        return self.results == (self.result.name,) and len({*used, self.result.name}) == len(used) + 1

    @property
    def result(self) -> ShardedArray:
        """The last part's result."""
        return self.parts[-1].result

    @property
    def passed_on(self) -> ShardedArray | None:
        """Where the program runs several times, the argument whose place its result takes in the next run:
        the first of its dimensions and shape, or else the first of all if that has its shape. Of all other
        arguments each run has its own."""
        if self.layers == 1:
            return None
        forward = replace(self, parts=self.forward)
        result, arguments = forward.result, forward.arguments
        alike = [each for each in arguments if (each.dims, each.shape) == (result.dims, result.shape)]
        return next((each for each in (*alike, arguments[0]) if each.shape == result.shape), None)

    @property
    def own_arguments(self) -> tuple[str, ...]:
        """The names of the forward arguments of which each of several runs has its own: weights, caches."""
        passed = self.passed_on
        arguments = replace(self, parts=self.forward).arguments if self.layers > 1 else ()
        return tuple(each.name for each in arguments if passed is None or each.name != passed.name)

    @property
    def carried(self) -> ShardedArray | None:
        """The argument that is `passed_on` by a forward pass, if the result has its dimensions: both are
        split alike."""
        passed = self.passed_on if self.training is None else None
        return passed if passed is not None and passed.dims == self.result.dims else None

    @property
    def wanted_spec(self) -> PartitionSpec | None:
        """The spec in which the result is left: its own, or that of the array whose place it takes; None
        where the compiler may choose."""
        if self.result.spec is None and self.carried is not None:
            return self.carried.spec
        return self.result.spec

    @property
    def aliases(self) -> tuple[frozenset[str], ...]:
        """Names of one dimension: those that an array has in the same place, as the statements call it."""
        named: dict[tuple[str, int], set[str]] = {}
        for array in self.arrays:
            for place, dim in enumerate(array.dims):
                named.setdefault((array.name, place), set()).add(dim)
        groups: list[set[str]] = []
        for names in named.values():
            joined = [group for group in groups if group & names]
            groups = [group for group in groups if not group & names]
            groups.append(names.union(*joined))
        return tuple(frozenset(group) for group in groups if len(group) > 1)

    @property
    def arrays(self) -> tuple[ShardedArray, ...]:
        """Operands and result of every part; what one part hands to the next stands twice."""
        return tuple(array for part in self.parts for array in (*part.operands, part.result))

    @property
    def text(self) -> str:
        """The einsum, or a chain of them with semicolons; of a program its statements, those of its forward
        pass."""
        if self.training is not None:
            return replace(self, parts=self.forward, training=None).text
        texts = (str(part.einsum) if self.is_chain else statement_text(part) for part in self.parts)
        return "; ".join(texts) + (f" × {self.layers}" if self.layers > 1 else "")
