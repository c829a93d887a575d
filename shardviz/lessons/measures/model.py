"""Whole models on the problem's mesh and machine: parameters, a train step, inference."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError, quote
from shardviz.lazy_names import LazyImports
from shardviz.lessons.measures.answers import (
    FLOPS,
    LARGE_NUMBER,
    NUMBER,
    ROUNDED_BYTES,
    SECONDS,
    AnswerKind,
    ComputedAnswer,
    whole_number,
)
from shardviz.strict_table import closest

with LazyImports():
    from shardviz.models import answer, rule_files, serving, sources
    from shardviz.planner.problem import training

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.machine import PlacedMesh

Figures = dict[str, tuple[AnswerKind, Callable[[Any], object]]]

OF_STEPS: Figures = {
    "flops": (FLOPS, lambda found: found.step.flops),
    "memory": (ROUNDED_BYTES, lambda found: found.memory.training),
    "seconds": (SECONDS, lambda found: found.step.seconds),
    "overlapped": (SECONDS, lambda found: found.step.overlapped_seconds),
}
"""Figures of a `ModelAnswer`: of a train step, on each device."""
OF_SERVING: Figures = {
    "cache": (ROUNDED_BYTES, lambda found: found.cache_bytes),
    "held": (ROUNDED_BYTES, lambda found: found.decode.memory),
    "token": (SECONDS, lambda found: found.decode.step.seconds),
    "prefill": (SECONDS, lambda found: found.prefill.seconds),
    "rate": (NUMBER, lambda found: round(found.decode.tokens_per_s_per_device)),
    "critical": (NUMBER, lambda found: round(found.critical_batch)),
    "largest": (NUMBER, lambda found: found.largest_batch),
    "chips": (NUMBER, lambda found: found.fewest_devices),
}
"""Figures of a `ServingAnswer`."""
STEP_OPTIONS = ("rules", "dtype", "batch", "sequence", "remat", "optimizer")
SERVING_OPTIONS = ("rules", "dtype", "batch", "sequence", "cache", "activations")
COUNTS = ("batch", "sequence")


def model(resolved: ResolvedProblem, name: str, figure: str, *options: str) -> ComputedAnswer:
    """A figure of a model as `shardviz model` has it, with its options: ``batch=32``."""
    if figure == "parameters":
        return LARGE_NUMBER.answer(sources.built_in_model(name).elements)
    known = OF_SERVING if figure in OF_SERVING else OF_STEPS
    if figure not in known:
        figures = ("parameters", *OF_STEPS, *OF_SERVING)
        raise QuestionError(f"a model has no figure {quote(figure, 30)}", closest(figure, figures))
    given = tuple(option.partition("=")[::2] for option in options)
    allowed = SERVING_OPTIONS if known is OF_SERVING else STEP_OPTIONS
    for key, _ in given:
        if key not in allowed:
            raise QuestionError(f"{figure} takes no option {quote(key, 30)}", closest(key, allowed))
    kind, of = known[figure]
    found = of(_answered(name, known is OF_SERVING, given, resolved.placed))
    if found is None:
        raise QuestionError(f"{figure} is not known on this machine", "take another machine")
    return kind.answer(Fraction(found) if isinstance(found, float) else found)


@lru_cache(maxsize=32)  # a goal asks for several figures of one answer
def _answered(name: str, is_served: bool, given: tuple[tuple[str, str], ...], placed: PlacedMesh) -> Any:
    asked: dict[str, Any] = {key: whole_number(text) if key in COUNTS else text for key, text in given}
    mesh = placed.mesh
    rules = rule_files.named_rules(asked.pop("rules", "fsdp"), mesh)
    of = sources.built_in_model(name)
    if is_served:
        return serving.serving_answer(of, rules, placed, mesh, **asked)
    remat, optimizer = asked.pop("remat", "layer"), asked.pop("optimizer", "adam")
    update = training.parse_training(True, remat, optimizer, mesh)
    return answer.answered(answer.model_question(of, rules, placed, mesh, training=update, **asked))
