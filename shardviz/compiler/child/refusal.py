"""When JAX refuses: its own words, and a sharding of the result that it would accept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product

from jax.errors import JaxRuntimeError

from shardviz.compiler.child.program import Program
from shardviz.compiler.messages import Part, Spec

MAX_WORDS = 400
MAX_CANDIDATES = 64

_INTERNAL = re.compile(r" ?(-{10,}|This error occurs at source:|see current operation:).*")
"""What JAX appends about its own insides, and about files of this package."""


def words_of(error: Exception) -> str:
    """What JAX or XLA said, on one line, after the name of the exception where that says something."""
    text = _INTERNAL.sub("", " ".join(str(error).split())) or repr(error)
    if len(text) > MAX_WORDS:
        text = f"{text[:MAX_WORDS]}…"
    return text if isinstance(error, JaxRuntimeError) else f"{type(error).__name__}: {text}"


def settling_spec(program: Program) -> Spec | None:
    """A spec for the result of the refused part with which JAX accepts it: asked, not guessed.

    None when no einsum was refused, or it was for another reason than a result that is not said.
    """
    refused = program.question.parts[program.reached : program.reached + 1]
    if not program.operand_specs or not refused or refused[0].result.spec is not None:
        return None
    part = refused[0]
    candidates = islice(_candidates(part, program.operand_specs), MAX_CANDIDATES)
    return next((spec for spec in candidates if _accepts(program, spec)), None)


def _candidates(part: Part, operand_specs: Sequence[Spec | None]) -> Iterator[Spec]:
    """Each dimension split as an operand splits it, or whole; the most natural first."""
    inputs, result = part.subscripts.split("->")
    operands = [(names, spec) for names, spec in zip(inputs.split(","), operand_specs, strict=True) if spec]
    choices = []
    for letter in result:
        found = [spec.dims[names.index(letter)] for names, spec in operands if letter in names]
        choices.append(dict.fromkeys([*found, ()]))
    for dims in product(*choices):
        axes = [axis for dim in dims for axis in dim]
        if len(axes) == len(set(axes)):
            yield Spec(dims)


def _accepts(program: Program, spec: Spec) -> bool:
    """Whether JAX traces the chain as far as the refused part once that part's result has the spec."""
    *accepted, refused = program.question.parts[: program.reached + 1]
    part = replace(refused, result=replace(refused.result, spec=spec))
    trial = Program(replace(program.question, parts=(*accepted, part)), program.mesh)
    try:
        trial.trace()
    except Exception:
        return False
    return True
