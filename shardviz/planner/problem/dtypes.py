"""The dtype of every array of a program: those that are given, and for results what JAX makes of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shardviz.errors import NotationError, QuestionError, listed, quote
from shardviz.planner.problem import Problem, is_floating
from shardviz.planner.problem.functions import FUNCTIONS, computed_dtype
from shardviz.sharding import canonical_dtype


@dataclass(frozen=True)
class Dtypes:
    """The `usual` dtype of arguments, and those of some arrays by name, under HLO's names."""

    usual: str = "bf16"
    own: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return ",".join([self.usual, *(f"{name}={dtype}" for name, dtype in self.own.items())])


def parse_dtypes(text: str) -> Dtypes:
    """Read ``bf16``, or ``bf16,W1=int8``. Raises `QuestionError`."""
    usual, own = "", dict[str, str]()
    for word, start in listed(text):
        name, equals, dtype = (piece.strip() for piece in word.partition("="))
        if name in own or (usual and not equals):
            twice = f"{name} has two dtypes" if equals else f"{quote(name, 30)} is a second dtype"
            hint = "write bf16,W1=int8: the usual dtype, then those of single arrays"
            raise NotationError(f"{twice},", text, start, start + max(1, len(word)), hint)
        if equals:
            own[name] = canonical_dtype(dtype)
        else:
            usual = canonical_dtype(name)
    return Dtypes(usual or Dtypes.usual, own)


def with_dtypes(problem: Problem, given: Mapping[str, str]) -> Problem:
    """The problem whose arrays have the dtypes that are `given` by name; other arguments keep theirs, and
    other results have those in which they are computed. Raises `QuestionError` for an array that there is
    not, and for places in a table that are not whole numbers."""
    names = dict.fromkeys(array.name for array in problem.arrays)
    if unknown := next((name for name in given if name not in names), None):
        raise QuestionError(f"no array is called {quote(unknown, 30)}", f"the arrays are {', '.join(names)}")
    known: dict[str, str] = {}
    parts = []
    for part in problem.parts:
        for operand in part.operands:
            known.setdefault(operand.name, given.get(operand.name, operand.dtype))
        operands = tuple(replace(operand, dtype=known[operand.name]) for operand in part.operands)
        for index in FUNCTIONS[part.function].selects:
            if is_floating(operands[index]):
                name, dtype = operands[index].name, operands[index].dtype
                kind = "s32" if part.function.startswith(("take", "pick")) else "pred"
                raise QuestionError(f"{name} selects elements, which {dtype} cannot", f"write {name}={kind}")
        made = replace(part, operands=operands)
        known[part.result.name] = given.get(part.result.name) or computed_dtype(made)
        parts.append(replace(made, result=replace(part.result, dtype=known[part.result.name])))
    return replace(problem, parts=tuple(parts))
