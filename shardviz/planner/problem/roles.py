"""Dimensions and arrays of a program by what they are for: the first dimension of its first argument, or of
what it looks up there, is that of the examples. Arguments that have it are inputs, all others parameters; a
dimension of inputs alone is one of positions, one that a matrix or more of parameters, another operand and
their result share one of experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from shardviz.planner.problem import Phase, Problem
from shardviz.planner.problem.functions import FUNCTIONS
from shardviz.sharding import ShardedArray


@dataclass(frozen=True)
class Roles:
    """The roles of dimensions and arrays. `width` are those of this array that parameters have, too.
    `parameters` and `given` (gradients of results) are names of arguments. `follows` names for an array
    another one that is split alike: for a gradient its array, for an optimizer's state its parameter.
    `addends` are results that are only added: they may be pending sums. Rows are taken from `tables`."""

    examples: frozenset[str]
    positions: frozenset[str]
    experts: frozenset[str]
    width: frozenset[str]
    parameters: frozenset[str]
    given: frozenset[str]
    follows: dict[str, str]
    addends: frozenset[str]
    tables: frozenset[str]

    def leader(self, name: str) -> str:
        """The array that decides how this one is split."""
        while name in self.follows:
            name = self.follows[name]
        return name

    def is_hideable(self, name: str, phase: Phase) -> bool:
        """Return whether a move of an array can run beside the work of other layers, as what gathers
        parameters and reduces their gradients. One of activations stands between two statements."""
        return phase == "optimizer" or self.leader(name) in self.parameters


def roles_of(problem: Problem) -> Roles:
    """The roles in a program or a train step by the rules of this module."""
    forward = replace(problem, parts=problem.forward)
    arguments, roots = forward.arguments, forward.roots
    merged = {dim: factors for part in forward.parts for dim, factors in part.merged}
    # Of a table what is looked up in it first has the examples.
    looked_up = {part.operands[0].name: part.result for part in forward.parts if part.function == "take"}
    leading = looked_up.get(arguments[0].name, arguments[0])
    first = leading.dims[:1]

    def with_other_names(dims: set[str]) -> set[str]:
        """Dimensions and their other names in statements: of keys' positions beside queries'."""
        known = {roots[dim] for dim in dims if dim in roots}
        return dims | {dim for dim, root in roots.items() if root in known}

    examples = {*first, *(dim for dim, factors in merged.items() if factors[:1] == first)}
    inputs = frozenset(argument.name for argument in arguments if examples.intersection(argument.dims))
    parameters = frozenset(argument.name for argument in arguments) - inputs
    of_parameters = {dim for argument in arguments if argument.name in parameters for dim in argument.dims}
    positions = {
        dim for argument in arguments if argument.name in inputs for dim in argument.dims[1:]
    } - of_parameters
    positions |= {dim for dim, factors in merged.items() if factors[0] in positions}
    examples, positions = with_other_names(examples), with_other_names(positions)
    experts = {
        dim
        for part in forward.parts
        if part.function == "multiply" and len(part.operands) > 1 and part.einsum.contracted
        for dim in part.einsum.result
        if all(dim in dims for dims in part.einsum.operands)
        and any(operand.name in parameters and operand.rank > 1 for operand in part.operands)
    }
    # Where experts are chosen, heads that a product keeps so are none.
    chosen = {dim for part in forward.parts if part.function == "top_k" for dim in part.whole}
    experts = experts & chosen if chosen else experts
    known = {array.name: array for array in (*arguments, *(part.result for part in forward.parts))}
    follows = _follows(problem, known)
    if problem.layers > 1 and (last := forward.result).name not in follows:
        # What a layer makes is what the next one takes.
        same = [one.name for one in arguments if one.name in inputs and one.dims == last.dims]
        if same:
            follows[last.name] = same[0]
    given = {name for _, name in problem.gradients} & {argument.name for argument in problem.arguments}
    width = of_parameters.intersection(leading.dims)
    dims = (frozenset(examples), frozenset(positions - examples), frozenset(experts), frozenset(width))
    addends, tables = _addends(problem, known), frozenset(looked_up)
    return Roles(*dims, parameters, frozenset(given), follows, addends, tables)


def _follows(problem: Problem, known: Mapping[str, ShardedArray]) -> dict[str, str]:
    """Arrays split as one of the forward pass: recomputed results, optimizer state, gradients."""
    follows = {gradient: name for name, gradient in problem.gradients}
    follows |= {new: old for old, new in problem.updates if problem.training is None}
    for part in problem.parts:
        for array in part.arrays:
            stem = array.name[1:] if array.name.startswith("d") else ""
            leader = part.source if part.phase in ("recomputed", "optimizer") else stem
            is_new = array.name not in known and array.name not in follows
            if is_new and leader in known and known[leader].dims == array.dims:
                follows[array.name] = leader
    return follows


def _addends(problem: Problem, known: Mapping[str, ShardedArray]) -> frozenset[str]:
    """Results of the backward pass that only sums use."""
    made = {part.result.name for part in problem.parts} - {*known, problem.result.name, *problem.returned}
    largest = {part.result.name for part in problem.parts if FUNCTIONS[part.function].takes_largest}
    return frozenset(made - largest) - {
        operand.name
        for part in problem.parts
        for index, operand in enumerate(part.operands)
        if FUNCTIONS[part.function].linearity != "sum" or not FUNCTIONS[part.function].may_pend(index)
    }
