"""The place in the user's program that a compiler's operation is named after.

JAX names operations after the function and the scopes (`jax.named_scope`, modules) that they stand in, and
compilers keep these names: ``jit(program)/transpose(jvp(H))/dot_general``. XLA names a sum after the
operation whose parts it adds, all other collectives after the one that wants the value."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from functools import lru_cache
from itertools import groupby
from typing import Literal, NamedTuple

from shardviz.hlo.arguments import shared_steps
from shardviz.hlo.text.cross_slice import CrossSliceTransfer
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import reached
from shardviz.hlo.text.opcodes import PLACES, whole_op
from shardviz.hlo.text.values import Made, ProgramValue, Values, max_looks

Phase = Literal["forward", "recomputed", "backward"]

_AROUND = re.compile(r"\w+\((.*)\)")
"""A name in what JAX does with its operations: ``transpose(jvp(H))`` differentiates H."""
_STRUCTURE = frozenset(
    (
        *("while", "body", "cond", "scan", "closed_call", "core_call", "eval_jaxpr", "pjit", "shard_map"),
        *("checkpoint", "remat", "remat2", "rematted_computation"),
        *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"),
    )
)
"""Pieces that tell how JAX runs operations, not where they stand."""
MAX_JOINED = 32
"""Names looked at where one operation stands for several."""
_BRANCH = re.compile(r"branch_\d+_fun")
MAX_STEPS = 300
"""Values looked at for one collective without a name."""
_SUMS = ("all-reduce", "reduce-scatter")
_PASSING = ("while", "parameter", "opt-barrier", "broadcast", "send", "recv")


class ProgramPlace(NamedTuple):
    """The place of an operation: the scopes that it stands in, outermost first, and JAX's name of it. `phase`
    tells whether it belongs to the program itself, computes a part of that again, or its gradients. With
    `is_differentiated` it is of a function whose gradients are taken (``jvp``), or of these."""

    scopes: tuple[str, ...]
    primitive: str
    phase: Phase
    is_differentiated: bool


@lru_cache(maxsize=65536)
def program_place(op_name: str) -> ProgramPlace:
    """The place that an operation's name tells; that of several has the scopes that they share."""
    places = [_place(joined_name) for joined_name in joined_names(op_name)]
    shared = places[0].scopes[: shared_steps(place.scopes for place in places)]
    return places[0]._replace(scopes=shared) if shared else places[0]


def joined_names(op_name: str) -> tuple[str, ...]:
    """The names of the operations that one stands for. XLA joins them with semicolons, or writes what they
    share once: ``jit(f)/(mlp/dot:norm/mul)``."""
    op_name = op_name.partition(";")[0]
    start = op_name.find("(") if op_name.startswith("(") else op_name.find("/(") + 1
    if not op_name.endswith(")") or not op_name.startswith("(", start):
        return (op_name,)
    shared, depth, names = op_name[:start], 0, [""]
    for character in op_name[start + 1 : -1]:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return (op_name,)
        if character == ":" and not depth and len(names) < MAX_JOINED:
            names.append("")
        else:
            names[-1] += character
    return tuple(shared + name for name in names)


def _place(op_name: str) -> ProgramPlace:
    *path, primitive = op_name.split("/")
    phase: Phase = "forward"
    if "rematted_computation" in path:
        phase = "recomputed"
    elif "checkpoint" in path or any(scope.startswith("transpose(") for scope in path):
        phase = "backward"
    is_differentiated = phase != "forward" or any("jvp(" in scope for scope in path)
    if path and path[0].startswith(("jit(", "pjit(")):
        del path[0]
    inner = (_inner(scope) for scope in path)
    scopes = [scope for scope in inner if scope and scope not in _STRUCTURE and not _BRANCH.fullmatch(scope)]
    # Flax names a module once more inside of what it computes again: Model/Model/layer_0.
    return ProgramPlace(tuple(name for name, _ in groupby(scopes)), primitive, phase, is_differentiated)


class NamedScope(NamedTuple):
    """A scope, and whether its operations make what it names, compute that again, or its gradients."""

    name: str
    phase: Phase


def named_scope(op_name: str, names: Container[str]) -> NamedScope | None:
    """The outermost scope among `names` that an operation stands in; None where there is none."""
    scopes = map(_inner, op_name.split("/")[:-1])
    name = next((scope for scope in scopes if scope in names), None)
    return None if name is None else NamedScope(name, program_place(op_name).phase)


def _inner(name: str) -> str:
    while match := _AROUND.fullmatch(name):
        name = match[1]
    return name


class NamelessCollectives:
    """Finds the operations on both sides of collectives of one text that have no name. For several TPU slices
    libtpu takes collectives apart and drops their names, but the operations on both sides keep theirs. They
    are reached through whatever only moves elements, fusions and loops too. What gathers a sum at once may be
    a part of that sum, or for who takes it: both sides are told."""

    def __init__(self, values: Values, transfers: Iterable[CrossSliceTransfer]) -> None:
        self._values = values
        has_names = " metadata={" in values.lines.text
        self._looks = max_looks(values.lines.text) if has_names else 0
        self._by_recv = {transfer.recv: transfer for transfer in transfers}
        self._recvs = {transfer.send: recv for recv, transfer in self._by_recv.items()}

    def served(self, op: str, line: Instruction) -> list[Instruction]:
        """The operations that a collective is for; none where these cannot be reached."""
        if self._looks <= 0:
            return []
        made, adds = self._first(self._values.taken(line), self._made_of)
        if op in _SUMS:
            return made
        result = ProgramValue(self._recvs.get(line, line))
        used, _ = self._first(self._values.used_by(result), self._values.used_by)
        return made + used if adds else used

    def _first(
        self, values: Iterable[ProgramValue], step: Callable[[ProgramValue], Iterable[ProgramValue]]
    ) -> tuple[list[Instruction], bool]:
        """The first operations on all ways from some values, and whether a sum is on one of them."""
        first: dict[Instruction, None] = {}
        adds = False
        ways = reached(values, lambda value: () if self._is_operation(value.line) else step(value))
        for number, value in enumerate(ways):
            self._looks -= 1
            if self._looks < 0 or number > MAX_STEPS:
                return [], False
            if self._is_operation(value.line):
                first[value.line] = None
            else:
                sent = self._by_recv.get(value.line)
                adds = adds or (sent.op if sent else whole_op(value.line.opcode)) in _SUMS
        return [*first], adds

    def _is_operation(self, line: Instruction) -> bool:
        """Return whether an instruction computes something of the program's own, which has a name."""
        is_passing = whole_op(line.opcode) in PLACES or line.opcode in _PASSING
        return not is_passing and line.says(" metadata={")

    def _made_of(self, value: ProgramValue) -> Iterable[ProgramValue]:
        if value.line.opcode == "recv":
            sent = self._by_recv.get(value.line)
            return () if sent is None else self._values.taken(sent.send)
        made = self._values.made_of(value)
        return made.operands if isinstance(made, Made) else ()
