"""The statement of a program that a compiler's operation is named after.

JAX names operations after the function and the scopes (`jax.named_scope`) that they stand in, and compilers
keep these names: ``jit(program)/transpose(jvp(H))/dot_general``.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Literal, NamedTuple

_AROUND = re.compile(r"\w+\((.*)\)")
"""A name in what JAX does with its operations: ``transpose(jvp(H))`` differentiates H."""


class NamedScope(NamedTuple):
    """A scope, and whether its operations make what it names, compute that again, or its gradients."""

    name: str
    phase: Literal["forward", "recomputed", "backward"]


def named_scope(source: str, names: Container[str]) -> NamedScope | None:
    """The scope among `names` that an operation stands in; None where there is none.

    The last piece of the text names the operation itself.
    """
    *path, _ = source.split("/")
    name = next((found for each in path if (found := _inner(each)) in names), None)
    if name is None:
        return None
    if "rematted_computation" in path:
        return NamedScope(name, "recomputed")
    if "checkpoint" in path or any(each.startswith("transpose(") for each in path):
        return NamedScope(name, "backward")
    return NamedScope(name, "forward")


def _inner(name: str) -> str:
    while match := _AROUND.fullmatch(name):
        name = match[1]
    return name
