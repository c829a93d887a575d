"""Whole models on the problem's mesh and machine: parameters, a train step, inference."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.lessons.measures.answers import (
    BYTES,
    FLOPS,
    LARGE_NUMBER,
    NUMBER,
    SECONDS,
    AnswerKind,
    ComputedAnswer,
    byte_count,
    check,
    whole_number,
)
from shardviz.units import human_bytes

with LazyImports():
    from shardviz.models import answer, rule_files, serving, sources
    from shardviz.planner.problem import training

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.machine import PlacedMesh

Figures = dict[str, tuple[AnswerKind, Callable[[Any], object]]]

OF_STEPS: Figures = {
    "flops": (FLOPS, lambda found: found.step.flops),
    "memory": (BYTES, lambda found: byte_count(human_bytes(found.memory.training))),
}
"""Figures of a `ModelAnswer`: of a train step, on each device."""
OF_SERVING: Figures = {
    "cache": (BYTES, lambda found: found.cache_bytes),
    "token": (SECONDS, lambda found: found.decode.step.seconds),
    "rate": (NUMBER, lambda found: round(found.decode.tokens_per_s_per_device)),
    "critical": (NUMBER, lambda found: round(found.critical_batch)),
    "largest": (NUMBER, lambda found: found.largest_batch),
}
"""Figures of a `ServingAnswer`."""
STEP = ("rules", "dtype", "batch", "sequence", "remat", "optimizer")
SERVING = ("rules", "dtype", "batch", "sequence", "cache", "activations")


def model(resolved: ResolvedProblem, name: str, figure: str, *options: str) -> ComputedAnswer:
    """A figure of a model as `shardviz model` has it, with its options: ``batch=32``."""
    if figure == "parameters":
        return LARGE_NUMBER.answer(sources.built_in_model(name).elements)
    check(figure, ("parameters", *OF_STEPS, *OF_SERVING), "a model has no figure {}")
    known, allowed = (OF_SERVING, SERVING) if figure in OF_SERVING else (OF_STEPS, STEP)
    given = tuple(option.partition("=")[::2] for option in options)
    for key, _ in given:
        check(key, allowed, f"{figure} takes no option {{}}")
    kind, of = known[figure]
    found = of(_answered(name, known is OF_SERVING, given, resolved.placed))
    if found is None:
        raise QuestionError(f"{figure} is not known on this machine", "take another machine")
    return kind.answer(Fraction(found) if isinstance(found, float) else found)


@lru_cache(maxsize=32)  # a goal asks for several figures of one answer
def _answered(name: str, is_served: bool, given: tuple[tuple[str, str], ...], placed: PlacedMesh) -> Any:
    asked: dict[str, Any] = dict(given)
    asked |= {key: whole_number(asked[key]) for key in ("batch", "sequence") if key in asked}
    mesh = placed.mesh
    rules = rule_files.named_rules(asked.pop("rules", "fsdp"), mesh)
    of = sources.built_in_model(name)
    if is_served:
        return serving.serving_answer(of, rules, placed, mesh, **asked)
    remat, optimizer = asked.pop("remat", "layer"), asked.pop("optimizer", "adam")
    update = training.parse_training(True, remat, optimizer, mesh)
    return answer.answered(answer.model_question(of, rules, placed, mesh, training=update, **asked))
