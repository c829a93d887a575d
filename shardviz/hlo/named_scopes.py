"""The place in the user's program that a compiler's operation is named after.

JAX names operations after the function and the scopes (`jax.named_scope`, a module's name) that they stand
in, and compilers keep these names: ``jit(program)/transpose(jvp(H))/dot_general``.
"""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import groupby, takewhile
from typing import Literal, NamedTuple

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


class ProgramPlace(NamedTuple):
    """The place of an operation: the scopes that it stands in, outermost first, and JAX's name of it.

    `phase` tells whether it belongs to the program itself, computes a part of that again, or its gradients.
    With `is_differentiated` it is of a function whose gradients are taken (``jvp``), or of these.
    """

    scopes: tuple[str, ...]
    primitive: str
    phase: Phase
    is_differentiated: bool


def program_place(op_name: str) -> ProgramPlace:
    """The place that an operation's name tells.

    Of one that the compiler has made of several, that of the first, in the scopes that all of them share if
    there are such.
    """
    first, *others = (_place(each) for each in joined_names(op_name))
    shared = list(first.scopes)
    for each in others:
        same = (one == other for one, other in zip(shared, each.scopes, strict=False))
        del shared[sum(takewhile(bool, same)) :]
    return first._replace(scopes=tuple(shared)) if shared else first


def joined_names(op_name: str) -> tuple[str, ...]:
    """The names of the operations that one stands for.

    XLA joins them with semicolons, or writes what they share once: ``jit(f)/(mlp/dot:norm/mul)``.
    """
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
    return tuple(shared + each for each in names)


def _place(op_name: str) -> ProgramPlace:
    *path, primitive = op_name.split("/")
    phase: Phase = "forward"
    if "rematted_computation" in path:
        phase = "recomputed"
    elif "checkpoint" in path or any(each.startswith("transpose(") for each in path):
        phase = "backward"
    is_differentiated = phase != "forward" or any("jvp(" in each for each in path)
    if path and path[0].startswith(("jit(", "pjit(")):
        del path[0]
    inner = (_inner(each) for each in path)
    scopes = [each for each in inner if each and each not in _STRUCTURE and not _BRANCH.fullmatch(each)]
    # Flax names a module once more inside of what it computes again: Model/Model/layer_0.
    return ProgramPlace(tuple(name for name, _ in groupby(scopes)), primitive, phase, is_differentiated)


class NamedScope(NamedTuple):
    """A scope, and whether its operations make what it names, compute that again, or its gradients."""

    name: str
    phase: Phase


def named_scope(op_name: str, names: Container[str]) -> NamedScope | None:
    """The outermost scope among `names` that an operation stands in; None where there is none."""
    *path, _ = op_name.split("/")
    name = next((found for each in path if (found := _inner(each)) in names), None)
    return None if name is None else NamedScope(name, program_place(op_name).phase)


def _inner(name: str) -> str:
    while match := _AROUND.fullmatch(name):
        name = match[1]
    return name
